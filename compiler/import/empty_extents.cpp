// Extents of inputs that may be 0: what grows from nothing, such as the length of a decoder's cache.
//
// An axis of an input may be empty where all that reads it joins it to something else along that axis (a
// Concat, an attention that takes a past), or asks for its shape, or where nothing reads it. What one branch
// of an If reads and the other doesn't (the caches of a merged decoder) may be empty as well, for the runs
// that take the other. An axis is followed through operators that move elements, and into branches, by names:
// bodies rarely use one twice, and where they do, more has to agree and the answer is only more careful.
#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>

#include "import/importer.h"

namespace sinter {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;

struct Axis {
  std::string name;
  int64_t axis, rank;
  auto operator<=>(const Axis&) const = default;
};

// Where operators take a cache, and which axis of it grows.
struct Cache {
  std::string_view op;
  int input;
  int64_t axis;
};
constexpr Cache kCaches[] = {
    {"Attention", 4, 2},           {"Attention", 5, 2},           {"Attention", 4, 3},
    {"GroupQueryAttention", 3, 2}, {"GroupQueryAttention", 4, 2}, {"MultiHeadAttention", 6, 2},
    {"MultiHeadAttention", 7, 2},
};

constexpr std::string_view kElementwise[] = {"Identity",         "Cast", "CastLike",
                                             "DequantizeLinear", "Neg",  "Relu"};

class Reader {
 public:
  explicit Reader(const GraphProto& g) { add(g, nullptr, {}); }

  bool may_be_empty(const Axis& start) const {
    std::deque<Axis> todo{start};
    std::set<Axis> seen{start};
    while (!todo.empty()) {
      const Axis at = todo.front();
      todo.pop_front();
      std::vector<Axis> next;
      if (const auto found = readers_.find(at.name); found != readers_.end())
        for (const auto& [node, input] : found->second)
          if (!follow(*node, input, at, next)) return false;
      if (const auto found = branches_.find(at.name); found != branches_.end())
        for (const auto& [node, output] : found->second) {
          if (node->op_type() != "If" || output >= node->output_size()) return false;
          next.push_back({node->output(output), at.axis, at.rank});
        }
      for (const Axis& a : next)
        if (seen.insert(a).second) todo.push_back(a);
    }
    return true;
  }

 private:
  // `spared`: names that another branch does without.
  void add(const GraphProto& g, const NodeProto* around, const std::set<std::string>& spared) {
    for (const auto& t : g.initializer()) constants_[t.name()] = &t;
    for (const NodeProto& n : g.node()) {
      for (int i = 0; i < n.input_size(); ++i)
        if (!spared.count(n.input(i))) readers_[n.input(i)].push_back({&n, i});
      for (const AttributeProto& a : n.attribute()) {
        if (n.op_type() == "Constant" && a.has_t() && n.output_size() > 0) constants_[n.output(0)] = &a.t();
        if (!a.has_g()) continue;
        std::set<std::string> inside = spared;
        if (n.op_type() == "If")
          for (const AttributeProto& other : n.attribute()) add_difference(a.g(), other.g(), inside);
        add(a.g(), &n, inside);
      }
    }
    for (int i = 0; around && i < g.output_size(); ++i) branches_[g.output(i).name()].push_back({around, i});
  }

  // What `a` takes from around it and `b` doesn't.
  static void add_difference(const GraphProto& a, const GraphProto& b, std::set<std::string>& to) {
    const std::set<std::string> of_a = free_names(a), of_b = free_names(b);
    std::set_difference(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::inserter(to, to.end()));
  }
  static const AttributeProto* attribute(const NodeProto& n, const char* name) {
    for (const AttributeProto& a : n.attribute())
      if (a.name() == name) return &a;
    return nullptr;
  }
  static int64_t integer(const NodeProto& n, const char* name, int64_t fallback) {
    const AttributeProto* a = attribute(n, name);
    return a ? a->i() : fallback;
  }
  // Axes given by attribute, or by an input that is constant; nothing where they aren't known.
  std::optional<std::vector<int64_t>> axes_of(const NodeProto& n, int input, int64_t rank) const {
    std::vector<int64_t> axes;
    if (const AttributeProto* a = attribute(n, "axes")) {
      axes.assign(a->ints().begin(), a->ints().end());
    } else {
      const auto t = input < n.input_size() ? constants_.find(n.input(input)) : constants_.end();
      if (t == constants_.end()) return std::nullopt;
      if (t->second->int64_data_size() > 0)
        axes.assign(t->second->int64_data().begin(), t->second->int64_data().end());
      else if (t->second->raw_data().size() % sizeof(int64_t) == 0)
        for (size_t at = 0; at < t->second->raw_data().size(); at += sizeof(int64_t))
          std::memcpy(&axes.emplace_back(), t->second->raw_data().data() + at, sizeof(int64_t));
    }
    for (int64_t& a : axes) a += a < 0 ? rank : 0;
    return axes;
  }

  // What the node makes of the axis; false where it may not be empty there.
  bool follow(const NodeProto& n, int input, const Axis& at, std::vector<Axis>& next) const {
    const std::string& op = n.op_type();
    const auto on = [&](int64_t axis, int64_t rank) {
      for (const std::string& o : n.output())
        if (!o.empty()) next.push_back({o, axis, rank});
      return true;
    };
    for (const Cache& c : kCaches)
      if (op == c.op && input == c.input && at.axis == c.axis) return true;
    if (op == "Shape" || op == "Size") return true;
    if (std::find(std::begin(kElementwise), std::end(kElementwise), op) != std::end(kElementwise))
      return input == 0 && on(at.axis, at.rank);
    if (op == "Concat") {
      const int64_t axis = integer(n, "axis", 0);
      return (axis < 0 ? axis + at.rank : axis) == at.axis || on(at.axis, at.rank);
    }
    if (op == "Slice") return input == 0 && on(at.axis, at.rank);
    if (op == "Transpose") {
      const AttributeProto* perm = attribute(n, "perm");
      if (!perm) return on(at.rank - 1 - at.axis, at.rank);
      for (int i = 0; i < perm->ints_size(); ++i)
        if (perm->ints(i) == at.axis) return on(i, at.rank);
      return false;
    }
    if (op == "Split" || op == "Gather") return input == 0 && pick(n, at, op == "Gather", on);
    if (op == "Squeeze" || op == "Unsqueeze") return input == 0 && reshape(n, at, op == "Squeeze", on);
    return false;
  }
  template <class F>
  bool pick(const NodeProto& n, const Axis& at, bool gather, F on) const {
    int64_t axis = integer(n, "axis", 0);
    axis += axis < 0 ? at.rank : 0;
    if (axis == at.axis) return false;
    if (!gather) return on(at.axis, at.rank);
    const auto indices = n.input_size() > 1 ? constants_.find(n.input(1)) : constants_.end();
    if (indices == constants_.end()) return false;
    const int64_t added = indices->second->dims_size() - 1;
    return on(at.axis + (axis < at.axis ? added : 0), at.rank + added);
  }
  template <class F>
  bool reshape(const NodeProto& n, const Axis& at, bool squeeze, F on) const {
    const auto count = axes_of(n, 1, 0);
    if (!count) return false;
    const int64_t change = static_cast<int64_t>(count->size());
    std::vector<int64_t> axes = *axes_of(n, 1, squeeze ? at.rank : at.rank + change);
    std::sort(axes.begin(), axes.end());
    int64_t axis = at.axis;
    for (const int64_t a : axes) {
      if (squeeze && a == at.axis) return false;
      if (squeeze ? a < at.axis : a <= axis) axis += squeeze ? -1 : 1;
    }
    return on(axis, at.rank + (squeeze ? -change : change));
  }

  std::map<std::string, std::vector<std::pair<const NodeProto*, int>>> readers_, branches_;
  std::map<std::string, const onnx::TensorProto*> constants_;
};

}  // namespace

void Importer::find_empty_dims() {
  const Reader reader(model_.graph());
  std::set<std::string> never;
  for (const auto& input : model_.graph().input()) {
    const auto& shape = input.type().tensor_type().shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      const std::string& param = shape.dim(axis).dim_param();
      const std::string place = fmt::format("{}@{}", input.name(), axis);
      const bool may = reader.may_be_empty({input.name(), axis, shape.dim_size()});
      for (const std::string& name : {param, place})
        if (!name.empty()) (may ? empty_dims_ : never).insert(name);
    }
  }
  for (const std::string& name : never) empty_dims_.erase(name);
}

}  // namespace sinter
