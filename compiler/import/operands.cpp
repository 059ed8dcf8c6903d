// Operands that decide extents (the shape of an Expand, the pads of a Pad) and are run-time inputs.
//
// The elements of such an input become symbols ("sinter.reveal" reads them when the model runs), so that
// shapes are expressions of them like of any other unknown. What bounds them is the model's own declaration
// of its outputs: where an inferred extent is a linear expression of one element and the declared one is a
// number, the element is that number. A second import takes it as known; the generated code compares it with
// what it is given (Graph::element_checks). A count that a layer finds (the length of a Range, the trips of a
// Loop) gets its capacity the same way. Declared extents of what can't be solved that way are taken in the
// last import, and checked as well.
#include <algorithm>
#include <array>
#include <deque>

#include "import/importer.h"
#include "ir/error.h"

namespace sinter {

namespace {

constexpr int64_t kMostElements = 16;
constexpr int64_t kMostMagnitude = int64_t{1} << 31;

struct ExtentOperand {
  std::string_view op;
  int input;
  bool negative;  // may be negative
};
constexpr ExtentOperand kExtentOperands[] = {
    {"AffineGrid", 1, false},
    {"BlackmanWindow", 0, false},
    {"CenterCropPad", 1, false},
    {"Col2Im", 1, false},
    {"Col2Im", 2, false},
    {"ConstantOfShape", 0, false},
    {"DFT", 1, false},
    {"Expand", 1, false},
    {"GroupQueryAttention", 6, false},
    {"HammingWindow", 0, false},
    {"HannWindow", 0, false},
    {"MaxUnpool", 2, false},
    {"MelWeightMatrix", 0, false},
    {"MelWeightMatrix", 1, false},
    {"OneHot", 1, false},
    {"Pad", 1, true},
    {"Resize", 3, false},
    {"STFT", 1, false},
    {"STFT", 3, false},
    {"Split", 1, false},
    {"Tile", 1, false},
};
// Arithmetic on shapes: what goes in decides what comes out.
constexpr std::string_view kArithmetic[] = {"Add", "Div", "Max", "Min", "Mul", "Neg", "Sub"};
constexpr std::string_view kMovement[] = {"Cast",    "Concat", "Gather", "Identity", "If",
                                          "Reshape", "Slice",  "Split",  "Squeeze",  "Unsqueeze"};

template <class List>
bool contains(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// e at s = at; nullopt where that divides by zero or overflows.
std::optional<int64_t> value_at(const Dim& e, int64_t at) {
  try {
    return e.evaluate([&](const Symbol&) { return at; });
  } catch (const Refusal&) {
    return std::nullopt;
  }
}

// The s with a * s + b == value, where e is such an expression.
std::optional<int64_t> solve(const Dim& e, int64_t value) {
  std::array<int64_t, 4> y{};
  for (size_t i = 0; i < y.size(); ++i) {
    const auto v = value_at(e, static_cast<int64_t>(100 * i + i * i));
    if (!v) return std::nullopt;
    y[i] = *v;
  }
  const auto at_0 = value_at(e, 0), at_1 = value_at(e, 1);
  if (!at_0 || !at_1 || *at_1 == *at_0) return std::nullopt;
  const int64_t slope = *at_1 - *at_0;
  for (size_t i = 0; i < y.size(); ++i)
    if (y[i] != *at_0 + slope * static_cast<int64_t>(100 * i + i * i)) return std::nullopt;
  if ((value - *at_0) % slope != 0) return std::nullopt;
  return (value - *at_0) / slope;
}

// The greatest s at which e, which grows with s, is at most `most`.
std::optional<int64_t> greatest(const Dim& e, const Symbol& s, int64_t most) {
  const auto fits = [&](int64_t at) {
    const auto value = value_at(e, at);
    return value && *value <= most;
  };
  int64_t low = 0, high = std::min(s.range.hi, kMostMagnitude);
  if (!fits(low)) return std::nullopt;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    fits(middle) ? low = middle : high = middle - 1;
  }
  return low;
}

}  // namespace

// Which inputs lead to an extent operand through arithmetic on shapes alone.
void Importer::find_extent_operands() {
  const auto& nodes = model_.graph().node();
  std::unordered_map<std::string, std::vector<int>> readers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].input()) readers[name].push_back(i);
    if (nodes[i].op_type() != "If") continue;
    for (const auto& a : nodes[i].attribute())  // what its branches take from around it
      for (const std::string& name : free_names(a.g())) readers[name].push_back(i);
  }
  for (const auto& input : model_.graph().input()) {
    if (options_.constants.count(input.name())) continue;
    struct Reached {
      std::string name;
      bool moved;  // its elements are the input's own, not computed from them
    };
    std::deque<Reached> todo{{input.name(), true}};
    std::set<std::string> seen{input.name()};
    while (!todo.empty()) {
      const Reached at = todo.front();
      todo.pop_front();
      const auto found = readers.find(at.name);
      if (found == readers.end()) continue;
      for (int i : found->second) {
        const onnx::NodeProto& n = nodes[i];
        if (!normal_domain(n.domain()).empty() && n.domain() != "com.microsoft") continue;
        for (const ExtentOperand& e : kExtentOperands)
          if (n.op_type() == e.op && e.input < n.input_size() && n.input(e.input) == at.name) {
            extent_operands_.insert(input.name());
            if (e.negative && at.moved) signed_operands_.insert(input.name());
          }
        const bool moves = contains(kMovement, n.op_type());
        if (moves || contains(kArithmetic, n.op_type()))
          for (const std::string& o : n.output())
            if (seen.insert(o).second) todo.push_back({o, at.moved && moves});
      }
    }
  }
}

// The option that says how large the elements of an input are; an extent of that name comes first.
const DimOption* Importer::value_option(const std::string& name) {
  if (dim_params_.count(name)) return nullptr;
  const DimOption* o = option_for("", name);
  if (o && o->step != 1) refuse("--dim {}: elements of an input have no step", sinter::quoted(name));
  return o;
}

// The input with its elements known as symbols, where they decide extents or the user bounds them; itself
// where it isn't a small list of integers: then what is computed of it may be revealed by its range.
Value* Importer::reveal(Value* input) {
  const TensorType& t = input->type;
  const std::string& name = input->name;
  const DimOption* all = value_option(name);
  const auto least = [](const DimOption& o) { return o.at_most ? 0 : o.lo; };
  if (all) input->range = Range{static_cast<double>(least(*all)), static_cast<double>(all->hi)};
  const bool decides = extent_operands_.count(name) != 0;
  if (decides && !dim_params_.count(name)) free_dim_names_.push_back(name);
  if ((t.dtype != DType::kI64 && t.dtype != DType::kI32) || t.shape.size() > 1 || !is_static(t.shape))
    return input;
  const int64_t size = product(t.shape).value();
  if (size < 1 || size > kMostElements) return input;
  const auto known = learned_.elements.find(name);
  const size_t index = graph_->inputs.size() - 1;
  std::vector<int64_t> values, open, from, to;
  std::vector<std::string> names;
  bool bounded = false;
  for (size_t k = 0; k < static_cast<size_t>(size); ++k) {
    names.push_back(size == 1 ? name : fmt::format("{}[{}]", name, k));
    const DimOption* own = size == 1 ? nullptr : value_option(names[k]);
    const DimOption* option = own ? own : all;
    bounded = bounded || option;
    std::optional<int64_t> fixed;
    if (!option && known != learned_.elements.end() && known->second.count(k)) fixed = known->second.at(k);
    if (option && least(*option) == option->hi) fixed = option->hi;
    if (fixed) graph_->element_checks.push_back({index, k, *fixed});
    open.push_back(!fixed);
    values.push_back(fixed.value_or(0));
    const int64_t open_end = signed_operands_.count(name) ? -Interval::kUnbounded : 0;
    from.push_back(option ? least(*option) : open_end);
    to.push_back(option ? option->hi : Interval::kUnbounded);
  }
  if (!decides && !bounded) return input;
  Value* out = graph_->add_value(name + "/revealed", {});
  Node* n = graph_->add_node(find_op("sinter", "reveal"), name + "/reveal", {input}, {out});
  n->attributes.set("values", values);
  n->attributes.set("open", open);
  n->attributes.set("least", from);
  n->attributes.set("most", to);
  if (!dim_params_.count(name)) n->attributes.set("names", names);
  infer(*graph_, *n);
  for (size_t k = 0; k < out->elements.size(); ++k) {
    std::vector<SymbolPtr> symbols;
    out->elements[k].collect_symbols(symbols);
    if (!symbols.empty()) revealed_[symbols[0]] = {name, k};
  }
  return out;
}

// What the model says of its outputs and of other values.
void Importer::read_declarations() {
  auto read = [&](const onnx::ValueInfoProto& info) {
    if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) return;
    Shape s;
    for (const auto& d : info.type().tensor_type().shape().dim())
      s.push_back(d.has_dim_value() && d.dim_value() >= 0 ? d.dim_value() : -1);
    declared_[info.name()] = std::move(s);
  };
  for (const auto& v : model_.graph().value_info()) read(v);
  for (const auto& v : model_.graph().output()) read(v);
}

// Compares what was inferred with what is declared; takes the declared extents where nothing else tells them.
void Importer::adopt(Graph& g, Node& n) {
  if (&g != graph_.get()) return;
  for (Value* v : n.outputs) {
    if (!v) continue;
    const auto declared = declared_.find(v->name);
    Shape& shape = v->type.shape;
    if (declared == declared_.end()) continue;
    const bool same_rank = declared->second.size() == shape.size();
    bool fits = same_rank;
    for (size_t a = 0; fits && a < shape.size(); ++a)
      fits = declared->second[a].is(-1) || !shape[a].is_static() || shape[a] == declared->second[a];
    if (!fits) {  // what was inferred holds; add_outputs() tells of outputs
      if (!same_rank || !has_open_inputs_) stale_.push_back(v);
      continue;
    }
    for (size_t a = 0; a < shape.size(); ++a) {
      const Dim& wanted = declared->second[a];
      std::vector<SymbolPtr> symbols;
      shape[a].collect_symbols(symbols);
      const auto all = [&](auto f) { return std::all_of(symbols.begin(), symbols.end(), f); };
      if (symbols.empty() || wanted.is(-1)) continue;
      const bool learnable = all([](const SymbolPtr& s) { return s->learnable; });
      if (learnable || all([](const SymbolPtr& s) { return s->from_data && !s->range.bounded(); }))
        typed_.push_back({{shape[a]}, {wanted}});
      if (!learned_.final || !learnable) continue;
      if (wanted.value() > shape[a].hi())
        refuse_node(
            n, fmt::format("axis {} is declared as {}, but is at most {}", a, wanted.text(), shape[a].hi()));
      const bool own = symbols.size() == 1 && shape[a] == Dim(symbols[0]) &&
                       symbols[0]->origin.ends_with(" of " + label(n));
      if (!own)
        g.checks.push_back({shape[a], wanted, false, fmt::format("{}: declared extent {}", label(n), a)});
      shape[a] = wanted;
    }
  }
}

// A counted extent of an output may be bounded by the model's name for it, or OUTPUT@AXIS: what makes the
// count gets a capacity in another import.
void Importer::bound_output(const onnx::ValueInfoProto& info, const Value& v) {
  const auto& declared = info.type().tensor_type().shape();
  for (size_t a = 0; a < v.type.shape.size(); ++a) {
    const Dim& extent = v.type.shape[a];
    std::vector<SymbolPtr> symbols;
    extent.collect_symbols(symbols);
    if (symbols.size() != 1 || !symbols[0]->from_data) continue;
    const auto axis = static_cast<int>(a);
    std::string param = axis < declared.dim_size() ? declared.dim(axis).dim_param() : "";
    if (named_dims_.count(param)) param.clear();  // an input's
    const std::string place = fmt::format("{}@{}", info.name(), a);
    const std::string& name = param.empty() ? place : param;
    if (std::find(free_dim_names_.begin(), free_dim_names_.end(), name) == free_dim_names_.end())
      free_dim_names_.push_back(name);
    const DimOption* option = option_for(param, place);
    if (!option) continue;
    if (!option->is_bound())
      refuse("--dim {}: the data decide the count, which can only be bounded: {}<={}",
             sinter::quoted(option->name), option->name, option->hi);
    if (extent.hi() <= option->hi) continue;
    const auto most = greatest(extent, *symbols[0], option->hi);
    if (!most || learned_.limits.count(symbols[0]->name))
      refuse("--dim {}: {} can't be bounded", sinter::quoted(option->name), extent.text());
    capacities_[symbols[0]->name] = *most;
  }
}

bool Importer::learn(Learned& learned) const {
  bool more = false;
  for (const auto& capacity : capacities_) more |= learned.limits.insert(capacity).second;
  if (typed_.empty()) return more;
  for (const auto& [inferred, declared] : typed_) {
    std::vector<SymbolPtr> symbols;
    inferred[0].collect_symbols(symbols);
    if (symbols.size() != 1) continue;
    const auto value = solve(inferred[0], declared[0].value());
    if (!value || *value < -kMostMagnitude || *value > kMostMagnitude) continue;
    if (const auto at = revealed_.find(symbols[0]); at != revealed_.end())
      more |= learned.elements[at->second.input].emplace(at->second.element, *value).second;
    else if (!symbols[0]->range.bounded() && *value >= 0)
      more |= learned.limits.emplace(symbols[0]->name, *value).second;
  }
  learned.final = !more;
  return true;
}

}  // namespace sinter
