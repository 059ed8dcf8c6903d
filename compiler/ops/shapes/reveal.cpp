// reveal: a small list of integers, its elements known as symbols from here on. The value is the input's.
//
// Two makers. Import makes one of an operand that decides extents and is an input of the model: attributes
// `values`, `open`, `least` and `most` have one entry an element, `open` 1 where the element is a symbol from
// `least` to `most`, else it is `values`; `names` are those by which --dim bounds them. reveal_operands()
// makes one where such an operand is computed by the model and lies in a range: attribute `range`, both ends;
// all elements are symbols in it, but for those that inference knows already. What a run finds outside of it
// is an error of the run.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ops/op.h"

namespace sinter {
namespace {

Dim element(Inference& x, size_t k, Interval range, bool learnable) {
  const std::vector<std::string> names = x.attributes().texts("names");
  const std::string name = names.empty() ? fmt::format("{}_{}", x.node.name, k) : names[k];
  if (!names.empty()) x.symbols.limit(name);  // asked for: it can be bounded
  return Dim(
      x.symbols.fresh(name, range, fmt::format("element {} of {}", k, label(x.node)), true, 1, learnable));
}

void infer(Inference& x) {
  x.same(0, 0);
  if (const std::vector<int64_t> range = x.attributes().integers("range"); !range.empty()) {
    if (const auto known = x.elements(0)) {
      x.out[0].elements = *known;
      return;
    }
    const int64_t size = product(x.shape(0)).value();
    for (size_t k = 0; k < static_cast<size_t>(size); ++k)
      x.out[0].elements.push_back(element(x, k, {range[0], range[1]}, false));
    return;
  }
  const std::vector<int64_t> values = x.attributes().integers("values"),
                             open = x.attributes().integers("open"), least = x.attributes().integers("least"),
                             most = x.attributes().integers("most");
  for (size_t k = 0; k < values.size(); ++k) {
    const Interval range{least[k], most[k]};
    x.out[0].elements.push_back(open[k] ? element(x, k, range, !range.bounded()) : Dim(values[k]));
  }
}

void eval(Evaluation& e) { e.out[0] = e.in[0]; }

// ---- operands that the model computes

struct ExtentOperand {
  std::string_view op;
  size_t input;
};
constexpr ExtentOperand kExtentOperands[] = {
    {"AffineGrid", 1}, {"BlackmanWindow", 0}, {"CenterCropPad", 1},
    {"Col2Im", 1},     {"Col2Im", 2},         {"ConstantOfShape", 0},
    {"DFT", 1},        {"Expand", 1},         {"HammingWindow", 0},
    {"HannWindow", 0}, {"MaxUnpool", 2},      {"OneHot", 1},
    {"Pad", 1},        {"Range", 0},          {"Range", 1},
    {"Resize", 3},     {"STFT", 1},           {"STFT", 3},
    {"Split", 1},      {"Tile", 1},
};
// Integer arithmetic that inference follows element by element.
constexpr std::string_view kArithmetic[] = {
    "Add", "Cast", "Concat",    "Div",       "Gather",    "Identity", "Max",   "Min",     "Mul",      "Neg",
    "Sub", "Mod",  "ReduceMax", "ReduceMin", "ReduceSum", "Reshape",  "Slice", "Squeeze", "Unsqueeze"};

bool is_arithmetic(const Node& n) {
  return n.op->domain[0] == '\0' && !n.epilogue &&
         std::find(std::begin(kArithmetic), std::end(kArithmetic), n.op->name) != std::end(kArithmetic);
}

bool is_small(const TensorType& t) {
  if (t.dtype != DType::kI32 && t.dtype != DType::kI64) return false;
  if (!is_static(t.shape)) return false;
  int64_t size = 1;
  for (const Dim& d : t.shape) {
    if (d.value() < 1 || d.value() > Fact::kMaxElements) return false;
    if ((size *= d.value()) > Fact::kMaxElements) return false;
  }
  return true;
}
bool decides_extents(const Node& n, size_t input) {
  return n.inputs[input] && n.op->domain[0] == '\0' &&
         std::any_of(std::begin(kExtentOperands), std::end(kExtentOperands),
                     [&](const ExtentOperand& e) { return e.op == n.op->name && e.input == input; });
}

// Makes the elements of one operand known, backwards through arithmetic to the values whose elements no
// inference could tell.
class Revealer {
 public:
  explicit Revealer(Graph& g) : g_(g) {}

  // Whether the elements can be known: of what is known, or by a reveal here or further up.
  bool possible(const Value* v) {
    if (known(*v)) return true;
    if (!is_small(v->type)) return false;
    if (const auto found = possible_.find(v); found != possible_.end()) return found->second;
    if (depth_ == kDeepest) return false;
    ++depth_;
    const bool yes = by_arithmetic(v) || bounded(v);
    --depth_;
    return possible_[v] = yes;
  }
  void make(Value* v) {
    if (known(*v) || !possible(v) || !made_.insert(v).second) return;
    if (!by_arithmetic(v)) return add_reveal(v);
    for (Value* in : v->producer->inputs)
      if (in) make(in);
    infer(g_, *v->producer);
    // Arithmetic that inference does not follow for these numbers.
    if (!known(*v) && bounded(v)) add_reveal(v);
  }

 private:
  static constexpr int kDeepest = 1024;  // nodes of arithmetic between an operand and what decides it
  static bool known(const Value& v) { return v.data || !v.elements.empty(); }
  // From the value's range and what the user says; nothing where one end is open then. The user's bound has
  // 0 at the other end, as extents do.
  std::optional<Interval> bounds(const Value* v) const {
    const auto known = [](double end) { return std::abs(end) <= 0x1p31; };
    // An extent of that name is what the user means then.
    const int64_t most = g_.symbols->find(v->name) ? Interval::kUnbounded : g_.symbols->limit(v->name);
    const bool lower = v->range && known(v->range->lo), upper = v->range && known(v->range->hi);
    if (most == Interval::kUnbounded && !(lower && upper)) return std::nullopt;
    Interval r{lower ? static_cast<int64_t>(std::floor(v->range->lo)) : 0, std::min(most, int64_t{1} << 31)};
    if (upper) r.hi = std::min(r.hi, static_cast<int64_t>(std::ceil(v->range->hi)));
    r.hi = std::max(r.lo, r.hi);
    return r;
  }
  bool bounded(const Value* v) const { return bounds(v).has_value(); }
  bool by_arithmetic(const Value* v) {
    const Node* n = v->producer;
    if (!n || !is_arithmetic(*n)) return false;
    return std::all_of(n->inputs.begin(), n->inputs.end(),
                       [&](const Value* in) { return !in || possible(in); });
  }

  // Behind v's producer, or at the front where v is an input of the graph; all other uses of v see the
  // reveal.
  void add_reveal(Value* v) {
    const Interval range = *bounds(v);
    Node* before = g_.nodes.front().get();
    for (size_t i = 0; v->producer && i + 1 < g_.nodes.size(); ++i)
      if (g_.nodes[i].get() == v->producer) before = g_.nodes[i + 1].get();
    Value* out = g_.add_value(v->name + "/revealed", {});
    const std::vector<Node*> users = v->users;
    Node* n = g_.add_node(find_op("sinter", "reveal"), v->name + "/reveal", {v}, {out}, before);
    n->attributes.set("range", std::vector<int64_t>{range.lo, range.hi});
    if (v->producer) n->sources = v->producer->sources;
    for (Node* user : users)
      for (size_t i = 0; i < user->inputs.size(); ++i)
        if (user->inputs[i] == v) g_.set_input(user, i, out);
    infer(g_, *n);
    // What the operand's chain does not cover may know more now, too.
    bool behind = false;
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      Node& other = *g_.nodes[i];
      if (behind && is_arithmetic(other) && typed(other)) infer(g_, other);
      behind = behind || &other == n;
    }
  }
  static bool typed(const Node& n) { return n.outputs[0] && n.outputs[0]->type.dtype != DType::kUndefined; }
  Graph& g_;
  std::map<const Value*, bool> possible_;
  std::set<const Value*> made_;
  int depth_ = 0;
};

}  // namespace

void reveal_operands(Graph& g, Node& n) {
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    Value* v = decides_extents(n, i) ? n.inputs[i] : nullptr;
    if (!v || v->data || !v->elements.empty()) continue;
    Revealer revealer(g);
    if (!revealer.possible(v)) continue;
    revealer.make(n.inputs[i]);
  }
}

namespace {

bool is_unknown(const Value* v) { return v && !v->data && v->elements.empty(); }
bool has_bound(const Value* v) {
  return v && v->range && std::isfinite(v->range->lo) && std::isfinite(v->range->hi);
}

// The input of the model that alone decides v, through casts, arithmetic and moves; null where there is none.
const Value* sole_input(const Value* v) {
  constexpr std::string_view kSteps[] = {"Add",    "Cast",     "Ceil",  "Concat",  "Div", "Floor",
                                         "Gather", "Identity", "Max",   "Min",     "Mul", "Reshape",
                                         "Round",  "Slice",    "Split", "Squeeze", "Sub", "Unsqueeze"};
  while (const Node* from = v->producer) {
    const bool steps = std::find(std::begin(kSteps), std::end(kSteps), from->op->name) != std::end(kSteps);
    if (from->op->domain[0] != '\0' || from->epilogue || !steps) return nullptr;
    const Value* next = nullptr;
    for (const Value* in : from->inputs) {
      if (!is_unknown(in) || has_bound(in) || in == next) continue;
      if (next) return nullptr;
      next = in;
    }
    if (!next) return nullptr;
    v = next;
  }
  return is_integer(v->type.dtype) || is_float(v->type.dtype) ? v : nullptr;
}

}  // namespace

const Value* to_be_bounded(const Node& n, size_t i) {
  constexpr std::string_view kMoves[] = {"Concat", "Unsqueeze", "Squeeze", "Reshape",
                                         "Cast",   "Identity",  "Gather",  "Slice"};
  if (!decides_extents(n, i)) return nullptr;
  if (const Value* input = sole_input(n.inputs[i])) return input;
  if (!is_small(n.inputs[i]->type)) return nullptr;
  const Value* v = n.inputs[i];
  for (const Node* from = v->producer; from; from = v->producer) {
    if (std::find(std::begin(kMoves), std::end(kMoves), from->op->name) == std::end(kMoves)) break;
    const auto next = std::find_if(from->inputs.begin(), from->inputs.end(), is_unknown);
    if (next == from->inputs.end() || !is_small((*next)->type)) break;
    v = *next;
  }
  return v;
}

const std::vector<Op>& ops_reveal() {
  static const std::vector<Op> table = {
      {.name = "reveal", .domain = "sinter", .infer = infer, .eval = eval, .note = "made by import"}};
  return table;
}

}  // namespace sinter
