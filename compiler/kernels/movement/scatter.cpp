// ScatterElements, ScatterND and TensorScatter: the data are copied (or are in place already; of a constant
// whose elements are all the same, only that one is kept), then updated one by one in the order of the
// indices, each index checked where it is used; by whole rows where one index stands for all elements of a
// row. Where ScatterND's indices are constants that follow a rule, as those of an assignment to a slice do,
// runs of elements are copied.
#include <cmath>

#include "ir/error.h"
#include "kernels/movement/copies.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts_op(const Node& n, std::string_view name) {
  if (n.op->domain[0] != '\0' || n.op->name != name || n.epilogue || !is_movable(n)) return false;
  const DType t = n.inputs[0]->type.dtype;
  const bool number = is_float(t) || is_integer(t) || t == DType::kBool;
  return number || n.attributes.text("reduction", "none") == "none";
}

const Value* shown(const Value* v) {
  while (v->producer && v->producer->op->is_view && !v->producer->epilogue) v = v->producer->inputs[0];
  return v;
}

// Includes, summary and the copy of the data; `updates` is the input that holds what is written. `known`: the
// indices are not read.
void begin(LayerWriter& w, size_t updates = 2, bool known = false) {
  const Node& n = w.node;
  w.include("sinter/copy.h");
  if (!known) {
    w.include("sinter/index.h");
    w.include("sinter/scalar.h");
    w.include("sinter/status.h");
    w.can_fail();
  }
  const std::string how = n.attributes.text("reduction", "none");
  w.summary(fmt::format("{} of {} into {}{}", n.op->name, text(n.inputs[updates]->type),
                        text(n.inputs[0]->type), how == "none" ? "" : ", " + how));
  // NaN has no literal.
  const std::optional<Tensor>& data = n.inputs[0]->data;
  const bool uniform = data && data->is_uniform() && !(is_float(data->dtype()) && std::isnan(data->real(0)));
  const std::string x = uniform ? "" : w.input(0);
  bool alone = true;  // neither updates nor indices are read from the same memory
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    if (!n.inputs[i] || (known && i != updates)) continue;
    w.input(i);
    alone = alone && shown(n.inputs[0]) != shown(n.inputs[i]);
  }
  const std::string y = w.output(0);
  const Dim all = product(n.inputs[0]->type.shape);
  const Extents e(w);
  if (uniform) return emit_fill(e, y, all, element_literal(*data, 0));
  if (alone) w.may_overwrite(0);
  w.out.line("if ({} != {}) {{", y, x);
  const DType t = n.inputs[0]->type.dtype;
  emit_copy(e, {all}, {y, t, Dim(0), {Dim(1)}, {}}, {x, t, Dim(0), {Dim(1)}, {}}, true);
  w.out.line("}}");
}

// y[at] = y[at] (reduced with) u[from]
void update(LayerWriter& w, const std::string& at, const std::string& from) {
  const std::string how = w.node.attributes.text("reduction", "none");
  const std::string y = fmt::format("{}[{}]", w.output(0), at), u = fmt::format("{}[{}]", w.input(2), from);
  const DType t = w.node.inputs[0]->type.dtype;
  if (how == "none")
    w.out.line("{} = {};", y, u);
  else
    w.out.line("{} = {};", y,
               store_text(t, fmt::format("sinter::{}({}, {})", how, load_text(t, y), load_text(t, u))));
}
void look_up(LayerWriter& w, const std::string& name, const std::string& element, const std::string& extent) {
  w.out.line("const std::int64_t {} = sinter::index_of({}, {});", name, element, extent);
  w.out.line("if ({} < 0) return sinter::kIndexError;", name);
}
void open(LayerWriter& w, const std::string& i, const std::string& extent) {
  w.out.line("for (std::int64_t {0} = 0; {0} < {1}; ++{0}) {{", i, extent);
}

// Whether all elements behind the axis have one index, as where a cache's rows are told by their positions
// (Expand of one that has no extent there), and are whole rows of the data.
bool places_rows(const Node& n, size_t axis) {
  const Node* expand = n.inputs[1]->producer;
  const Shape &data = n.inputs[0]->type.shape, &space = n.inputs[1]->type.shape;
  if (!expand || expand->op->domain[0] != '\0' || std::string_view(expand->op->name) != "Expand" ||
      expand->epilogue || n.attributes.text("reduction", "none") != "none" || axis + 1 == data.size())
    return false;
  const Shape& from = expand->inputs[0]->type.shape;
  const size_t missing = space.size() - from.size();  // axes in front that Expand has added
  for (size_t d = axis + 1; d < space.size(); ++d)
    if (!(data[d] == space[d]) || (d >= missing && !from[d - missing].is(1))) return false;
  return true;
}

// Rows behind the axis: one index each, and a copy.
void emit_rows(LayerWriter& w, size_t axis) {
  const Shape &data = w.node.inputs[0]->type.shape, &space = w.node.inputs[1]->type.shape;
  const Extents e(w);
  const auto front = [&](const Shape& shape) {
    const std::vector<Dim> strides = dim_strides(shape);
    return std::vector<Dim>(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  };
  std::vector<std::string> i, j;
  for (size_t d = 0; d <= axis; ++d) {
    i.push_back(fmt::format("i{}", d));
    j.push_back(d == axis ? "index" : i.back());
    open(w, i.back(), e.text(space[d]));
  }
  const std::string from = e.address(Dim(0), i, front(space));
  look_up(w, "index", fmt::format("{}[{}]", w.input(1), from), e.text(data[axis]));
  w.out.line("sinter::copy({}, {}, {});", behind(w.output(0), e.address(Dim(0), j, front(data))),
             behind(w.input(2), from), e.text(product(space, axis + 1)));
  for (size_t d = 0; d <= axis; ++d) w.out.line("}}");
  w.out.line("return sinter::kOk;");
}

void emit_elements(LayerWriter& w) {
  begin(w);
  const Shape &data = w.node.inputs[0]->type.shape, &space = w.node.inputs[1]->type.shape;
  const int64_t given = w.node.attributes.integer("axis", 0);
  const auto axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(data.size()) : given);
  if (places_rows(w.node, axis)) return emit_rows(w, axis);
  const Extents e(w);
  std::vector<std::string> i, j;
  for (size_t d = 0; d < space.size(); ++d) {
    i.push_back(space[d].is(1) ? "0" : fmt::format("i{}", d));
    j.push_back(d == axis ? "index" : i.back());
    if (i.back() != "0") open(w, i.back(), e.text(space[d]));
  }
  // Without loops the index needs a scope of its own no less.
  const std::string from = e.address(Dim(0), i, dim_strides(space));
  look_up(w, "index", fmt::format("{}[{}]", w.input(1), from), e.text(data[axis]));
  update(w, e.address(Dim(0), j, dim_strides(data)), from);
  for (const std::string& name : i)
    if (name != "0") w.out.line("}}");
  w.out.line("return sinter::kOk;");
}

// What constant indices copy; nothing where they aren't constant, one is outside, or they follow no rule.
std::vector<Runs> runs_of(const Node& n) {
  const Shape &data = n.inputs[0]->type.shape, &indices = n.inputs[1]->type.shape;
  const Value& value = *n.inputs[1];
  if (!value.data || n.attributes.text("reduction", "none") != "none") return {};
  for (const Dim& d : data)
    if (!d.is_static()) return {};
  const auto width = static_cast<size_t>(indices.back().value());
  const int64_t places = product(indices, 0, indices.size() - 1).value(),
                block = product(data, width).value();
  const std::vector<Dim> strides = dim_strides(data);
  RunFinder runs;
  for (int64_t p = 0; p < places; ++p) {
    int64_t at = 0;
    for (size_t c = 0; c < width; ++c) {
      const int64_t extent = data[c].value(),
                    given = value.data->integer(p * static_cast<int64_t>(width) + static_cast<int64_t>(c));
      if (given < -extent || given >= extent) return {};
      at += (given < 0 ? given + extent : given) * strides[c].value();
    }
    runs.add(at, p * block, block);
  }
  return runs.rules();
}

void emit_nd(LayerWriter& w) {
  if (const std::vector<Runs> rules = runs_of(w.node); !rules.empty()) {
    begin(w, 2, true);
    return emit_runs(w, rules, w.output(0), w.input(2));
  }
  begin(w);
  const Shape &data = w.node.inputs[0]->type.shape, &indices = w.node.inputs[1]->type.shape;
  const auto n = static_cast<size_t>(indices.back().value());
  const Dim places = product(indices, 0, indices.size() - 1), block = product(data, n);
  const Extents e(w);
  const std::vector<Dim> strides = dim_strides(data);
  open(w, "p", e.text(places));
  std::vector<std::string> at;
  std::vector<Dim> at_strides;
  for (size_t c = 0; c < n; ++c) {
    at.push_back(fmt::format("c{}", c));
    at_strides.push_back(strides[c]);
    const std::string from = e.address(Dim(static_cast<int64_t>(c)), {"p"}, {Dim(static_cast<int64_t>(n))});
    look_up(w, at.back(), fmt::format("{}[{}]", w.input(1), from), e.text(data[c]));
  }
  if (w.node.attributes.text("reduction", "none") == "none" && !block.is(1)) {
    w.out.line("sinter::copy({}, {}, {});", behind(w.output(0), e.address(Dim(0), at, at_strides)),
               behind(w.input(2), e.address(Dim(0), {"p"}, {block})), e.text(block));
  } else if (block.is(1)) {
    update(w, e.address(Dim(0), at, at_strides), "p");
  } else {
    open(w, "i", e.text(block));
    at.push_back("i");
    at_strides.push_back(Dim(1));
    update(w, e.address(Dim(0), at, at_strides), e.address(Dim(0), {"p", "i"}, {block, Dim(1)}));
    w.out.line("}}");
  }
  w.out.line("}}");
  w.out.line("return sinter::kOk;");
}

// Whole runs of rows: those up to the end of the axis and, where the mode is circular, the rest from its
// beginning.
void emit_tensor(LayerWriter& w) {
  begin(w, 1);
  const Node& n = w.node;
  const Shape &cache = n.inputs[0]->type.shape, &updates = n.inputs[1]->type.shape;
  const int64_t given = n.attributes.integer("axis", -2);
  const auto axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(cache.size()) : given);
  const bool circular = n.attributes.text("mode", "linear") == "circular";
  const Extents e(w);
  const std::string rows = e.text(cache[axis]), written = e.text(updates[axis]),
                    block = e.text(product(cache, axis + 1));
  open(w, "batch", e.text(cache[0]));
  w.out.line("const std::int64_t first = {};", n.input(2) ? w.input(2) + "[batch]" : "0");
  w.out.line(
      "if (first < 0 || first > {}) return sinter::kIndexError;",
      circular ? fmt::format("{} - ({} > 0 ? 1 : 0)", rows, written) : fmt::format("{} - {}", rows, written));
  w.out.line("const std::int64_t whole = {};",
             circular ? fmt::format("{1} < {0} - first ? {1} : {0} - first", rows, written) : written);
  const std::string inner = e.text(product(cache, 1, axis));
  w.out.line("for (std::int64_t o = batch * {0}; o < (batch + 1) * {0}; ++o) {{", inner);
  w.out.line("const {}* from = {} + o * {} * {};", cpp_name(n.inputs[0]->type.dtype), w.input(1), written,
             block);
  w.out.line("{}* to = {} + o * {} * {};", cpp_name(n.inputs[0]->type.dtype), w.output(0), rows, block);
  w.out.line("sinter::copy(to + first * {0}, from, whole * {0});", block);
  if (circular) w.out.line("sinter::copy(to, from + whole * {0}, ({1} - whole) * {0});", block, written);
  w.out.line("}}");
  w.out.line("}}");
  w.out.line("return sinter::kOk;");
}

}  // namespace

const std::vector<Kernel>& kernels_scatter() {
  static const std::vector<Kernel> table = {
      {"scatter_elements", "ScatterElements with all reductions",
       [](const Node& n, const Context&) { return accepts_op(n, "ScatterElements"); }, emit_elements},
      {"scatter_nd", "ScatterND with all reductions",
       [](const Node& n, const Context&) { return accepts_op(n, "ScatterND"); }, emit_nd},
      {"tensor_scatter", "TensorScatter: runs of rows into a cache",
       [](const Node& n, const Context&) { return accepts_op(n, "TensorScatter"); }, emit_tensor},
  };
  return table;
}

}  // namespace sinter
