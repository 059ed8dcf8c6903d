// Elementwise arithmetic of two or more inputs, with ONNX's multidirectional broadcasting: one row
// {name, expression} each.
#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace sinter {
namespace {

using E = Expr;

ExprPtr fold(const char* fn, const Args& a) {
  ExprPtr e = a[0];
  for (size_t i = 1; i < a.size(); ++i) e = E::call(fn, {e, a[i]});
  return e;
}
ExprPtr sum(const Node& n, const Args& a) {
  allow_one_type(n, a, kFloats);
  return fold("add", a);
}
ExprPtr mean(const Node& n, const Args& a) {
  allow_one_type(n, a, kFloats);
  if (a.size() == 1) return a[0];
  return E::call("div", {fold("add", a), E::constant(static_cast<double>(a.size()), a[0]->dtype)});
}
ExprPtr maximum(const Node& n, const Args& a) {
  allow_one_type(n, a, kNumbers);
  return fold("max", a);
}
ExprPtr minimum(const Node& n, const Args& a) {
  allow_one_type(n, a, kNumbers);
  return fold("min", a);
}

ExprPtr mod(const Node& n, const Args& a) {
  allow_one_type(n, a, kNumbers);
  const int64_t truncates = n.attributes.integer("fmod", 0);
  if (truncates != 0 && truncates != 1) refuse_node(n, fmt::format("fmod is {}, not 0 or 1", truncates));
  return E::call(truncates ? "rem" : "mod", a);
}

// Whether input 1 is known and float32 holds all its values exactly.
bool exact_in_float(const Node& n) {
  const Value* v = n.input(1);
  if (!v || !v->data || v->data->size() > 4096) return false;
  for (int64_t e : v->data->integers())
    if (e < -(int64_t{1} << 24) || e > int64_t{1} << 24) return false;
  return true;
}
// The type to compute x^y in where the types differ: one that holds both, so that an exponent is never
// rounded or cut. Integers of modulo 2^64 keep their low bits, so that the wider product still wraps rightly.
DType power_type(const Node& n, DType x, DType y) {
  const auto wide = [](DType t) { return size_of(t) > 2; };
  if (!is_float(x) && !is_float(y)) return is_unsigned(y) ? DType::kU64 : DType::kI64;
  if (!is_float(x)) return DType::kF64;
  if (is_float(y)) return x == DType::kF64 || y == DType::kF64 ? DType::kF64 : DType::kF32;
  if (x == DType::kF64) return DType::kF64;
  return wide(y) && !exact_in_float(n) ? DType::kF64 : DType::kF32;
}
ExprPtr power(const Node& n, const Args& a) {
  const DType x = a[0]->dtype, y = a[1]->dtype;
  if (!is_float(x) && x != DType::kI32 && x != DType::kI64)
    refuse_node(n, fmt::format("not defined for a base of {}", name_of(x)));
  allow(n, a[1], kNumbers);
  if (x == y) return E::call("pow", a);
  const DType t = power_type(n, x, y);
  return E::cast(E::call("pow", {E::cast(a[0], t), E::cast(a[1], t)}), x);
}

ExprPtr prelu(const Node& n, const Args& a) {
  allow_one_type(n, a, kNumbers);
  return E::call("leaky_relu", a);
}
void infer_prelu(Inference& x) {  // the slope is broadcast to X, never X to the slope
  const ExprPtr e = prelu(x.node, {E::input(0, x.dtype(0)), E::input(1, x.dtype(1))});
  x.require(x.rank(1) <= x.rank(0), "slope has more axes than X");
  const Shape both = x.broadcast({&x.shape(0), &x.shape(1)});
  for (size_t i = 0; i < both.size(); ++i)
    x.require_equal(x.shape(0)[i], both[i], fmt::format("axis {} of the slope", i));
  x.set(0, e->dtype, Shape(x.shape(0)));
}

}  // namespace

const std::vector<Op>& ops_elementwise_binary() {
  static const std::vector<Op> table = {
      SINTER_SAME("Add", "add", 2, kNumbers),
      SINTER_SAME("Sub", "sub", 2, kNumbers),
      SINTER_SAME("Mul", "mul", 2, kNumbers),
      SINTER_SAME("Div", "div", 2, kNumbers),
      {.name = "Mod", .min_inputs = 2, .max_inputs = 2, .expr = mod},
      {.name = "Pow", .min_inputs = 2, .max_inputs = 2, .expr = power},
      {.name = "PRelu", .min_inputs = 2, .max_inputs = 2, .infer = infer_prelu, .expr = prelu},
      {.name = "Sum", .max_inputs = -1, .expr = sum},
      {.name = "Mean", .max_inputs = -1, .expr = mean},
      {.name = "Max", .max_inputs = -1, .expr = maximum},
      {.name = "Min", .max_inputs = -1, .expr = minimum},
  };
  return table;
}

}  // namespace sinter
