// Kernels of tensors that are made from shapes and constants alone.
//
// "elements" serves every operator whose result is known at compile time but for the extents: the shape
// arithmetic that exporters write becomes a handful of assignments.
#include "ir/error.h"
#include "kernels/movement/copies.h"
#include "ops/movement/movement.h"

namespace sinter {
namespace {

bool is_op(const Node& n, std::string_view name) { return n.op->domain[0] == '\0' && n.op->name == name; }

// ---- nothing: every output is empty

bool accepts_nothing(const Node& n, const Context&) {
  bool any = false;
  for (const Value* v : n.outputs) {
    if (!v) continue;
    if (!is_movable(v->type.dtype) || !product(v->type.shape).is(0)) return false;
    for (const Dim& d : v->type.shape)
      if (own_count(n, d)) return false;
    any = true;
  }
  return any && n.bodies.empty();
}
void emit_nothing(LayerWriter& w) {
  w.summary(fmt::format("{}: nothing, the output is empty", w.node.op->name));
  for (size_t i = 0; i < w.node.outputs.size(); ++i)
    if (w.node.outputs[i]) w.output(i);
}

// ---- elements: contents known as expressions of extents

// Symbols that the node itself would have to count are not known before it has run.
bool known_before(const Node& n, const std::vector<Dim>& elements) {
  for (const Dim& d : elements) {
    std::vector<SymbolPtr> symbols;
    d.collect_symbols(symbols);
    for (const SymbolPtr& s : symbols)
      if (own_count(n, Dim(s))) return false;
  }
  return true;
}
bool accepts_elements(const Node& n, const Context&) {
  if (!n.bodies.empty()) return false;
  bool any = false;
  for (const Value* v : n.outputs) {
    if (!v) continue;
    any = true;
    const bool integral = is_integer(v->type.dtype) || v->type.dtype == DType::kBool;
    const Dim size = product(v->type.shape);
    if (!integral || v->elements.empty() || !size.is(static_cast<int64_t>(v->elements.size()))) return false;
    if (!known_before(n, v->elements)) return false;
  }
  return any;
}
void emit_elements(LayerWriter& w) {
  const Node& n = w.node;
  const Extents e(w);
  std::string summary = std::string(n.op->name) + ":";
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    const Value* v = n.outputs[i];
    if (!v) continue;
    const DType type = v->type.dtype;
    const std::string y = w.output(i);
    for (size_t k = 0; k < v->elements.size(); ++k) {
      const Dim& d = v->elements[k];
      const std::string value = d.is_static() && d.value() == INT64_MIN ? "INT64_MIN" : e.text(d);
      if (type == DType::kI64)
        w.out.line("{}[{}] = {};", y, k, value);
      else if (type == DType::kBool)
        w.out.line("{}[{}] = {};", y, k, d.is_static() ? (d.is(0) ? "false" : "true") : value + " != 0");
      else
        w.out.line("{}[{}] = static_cast<{}>({});", y, k, cpp_name(type), value);
      if (k < 8) summary += " " + d.text();
    }
    if (v->elements.size() > 8) summary += " …";
  }
  w.summary(summary);
}

// ---- ConstantOfShape

bool accepts_constant(const Node& n, const Context&) {
  return is_op(n, "ConstantOfShape") && !n.epilogue && is_movable(n.outputs[0]->type.dtype);
}
void emit_constant(LayerWriter& w) {
  const Node& n = w.node;
  const TensorType& type = n.outputs[0]->type;
  const Tensor* value = n.attributes.tensor("value");
  const std::string text = value ? element_literal(*value, 0) : zero_literal(type.dtype);
  w.summary(fmt::format("{} of {}", sinter::text(type), text));
  emit_fill(Extents(w), w.output(0), product(type.shape), text);
}

// ---- Range

bool accepts_range(const Node& n, const Context&) {
  if (!is_op(n, "Range") || n.epilogue) return false;
  const DType t = n.outputs[0]->type.dtype;
  return is_float(t) || is_integer(t);
}
// The value of scalar operand i: a literal, an extent, or an element read when it runs.
std::string operand(LayerWriter& w, size_t i) {
  const Value* v = w.node.inputs[i];
  const DType t = v->type.dtype;
  if (is_float(t)) {
    const std::string type = t == DType::kF64 ? "" : "double";
    if (v->data) return literal(*Expr::constant(v->data->real(0), DType::kF64));
    const std::string x = load_text(t, w.input(i) + "[0]");
    return t == DType::kF64 ? x : "static_cast<double>(" + x + ")";
  }
  if (const auto known = contents(v); known && known->size() == 1) {
    if (!(*known)[0].is(INT64_MIN)) return fmt::format("std::int64_t{{{}}}", Extents(w).text((*known)[0]));
  }
  return "static_cast<std::int64_t>(" + w.input(i) + "[0])";
}
// A length that the run tells: found, reported or compared. Whether it is one.
bool settle_range(LayerWriter& w, const std::string& start, const std::string& step) {
  const Node& n = w.node;
  const bool real = is_float(n.inputs[0]->type.dtype);
  bool known = true;
  for (const Value* v : n.inputs) known = known && (real ? v->data.has_value() : contents(v).has_value());
  const Dim& length = n.outputs[0]->type.shape[0];
  if (known || (real && !length.is_static() && !own_count(n, length))) return false;
  w.include("sinter/status.h");
  w.include("sinter/scalar.h");
  w.can_fail();
  const std::string limit = operand(w, 1);
  const auto wide = [&](const std::string& s) { return real ? s : "static_cast<double>(" + s + ")"; };
  w.out.line("const double steps = std::ceil(({} - {}) / {});", wide(limit), wide(start), wide(step));
  w.out.line("if (!(steps < 2147483648.0)) return sinter::kDimError;");
  w.out.line("const std::int64_t length = steps > 0.0 ? static_cast<std::int64_t>(steps) : 0;");
  if (own_count(n, length)) {
    w.out.line("*{} = length;", w.count(length));
    w.out.line("if (length > {}) return sinter::kCapacityError;", length.hi());
  } else {
    w.out.line("if (length != {}) return sinter::kDimError;", Extents(w).text(length));
  }
  return true;
}
void emit_range(LayerWriter& w) {
  const Node& n = w.node;
  const TensorType& type = n.outputs[0]->type;
  const Extents e(w);
  w.include("sinter/scalar.h");
  w.summary("Range -> " + sinter::text(type));
  const std::string start = operand(w, 0), step = operand(w, 2);
  const std::string y = w.output(0);
  const bool by_run = settle_range(w, start, step);
  w.out.line("for (std::int64_t i = 0; i < {}; ++i) {{", by_run ? "length" : e.text(type.shape[0]));
  std::string value;
  if (is_float(type.dtype)) {
    value = fmt::format("{} + static_cast<double>(i) * {}", start, step);
    if (type.dtype != DType::kF64) value = "static_cast<float>(" + value + ")";
    value = store_text(type.dtype, value);
  } else {
    value = fmt::format("sinter::cast_to<{}>(sinter::add({}, sinter::mul(i, {})))", cpp_name(type.dtype),
                        start, step);
  }
  w.out.line("{}[i] = {};", y, value);
  w.out.line("}}");
  if (by_run) w.out.line("return 0;");
}

// ---- EyeLike

bool accepts_eye(const Node& n, const Context&) {
  return is_op(n, "EyeLike") && !n.epilogue && is_movable(n.outputs[0]->type.dtype);
}
void emit_eye(LayerWriter& w) {
  const TensorType& type = w.node.outputs[0]->type;
  const Dim &rows = type.shape[0], &columns = type.shape[1];
  const int64_t k = w.node.attributes.integer("k", 0);
  const Extents e(w);
  w.include("sinter/copy.h");
  w.summary(fmt::format("ones on diagonal {} of {}", k, sinter::text(type)));
  const std::string y = w.output(0);
  w.out.line("sinter::fill({}, {}, {});", y, e.text(rows * columns), zero_literal(type.dtype));
  Tensor one(type.dtype, {1});
  one.set_integer(0, 1);
  // Beyond the matrix there is nothing to do, however far.
  if (k > (int64_t{1} << 40) || k < -(int64_t{1} << 40)) return;
  const Dim first = max(Dim(-k), 0), end = min(rows, columns - Dim(k));
  w.out.line("for (std::int64_t i = {}; i < {}; ++i) {{", e.text(first), e.text(end));
  w.out.line("{}[i * {}{}] = {};", y, e.text(columns + Dim(1)), k == 0 ? "" : fmt::format(" + {}", k),
             element_literal(one, 0));
  w.out.line("}}");
}

}  // namespace

const std::vector<Kernel>& kernels_fill() {
  static const std::vector<Kernel> table = {
      {"nothing", "any operator with empty outputs", accepts_nothing, emit_nothing},
      {"elements", "any operator whose small integer outputs are expressions of extents", accepts_elements,
       emit_elements},
      {"fill", "ConstantOfShape", accepts_constant, emit_constant},
      {"range", "Range", accepts_range, emit_range},
      {"eye", "EyeLike", accepts_eye, emit_eye},
  };
  return table;
}

}  // namespace sinter
