// Elementwise operators of one data input: each is one row {name, expression}; types, shapes, broadcasting,
// evaluation and generated code all follow from the expression (ir/expr.h).
#include "ops/elementwise/elementwise.h"

namespace sinter {
namespace {

using E = Expr;

ExprPtr leaky_relu(const Node& n, const Args& a) {
  allow(n, a[0], kFloats);
  return E::call("leaky_relu", {a[0], attribute(n, "alpha", 0.01f, a[0])});
}
ExprPtr elu(const Node& n, const Args& a) {
  allow(n, a[0], kFloats);
  return E::call("elu", {a[0], attribute(n, "alpha", 1, a[0])});
}
ExprPtr selu(const Node& n, const Args& a) {
  allow(n, a[0], kFloats);
  return E::call("selu", {a[0], attribute(n, "alpha", 1.67326319217681884765625f, a[0]),
                          attribute(n, "gamma", 1.05070102214813232421875f, a[0])});
}
ExprPtr celu(const Node& n, const Args& a) {
  allow(n, a[0], kFloats);
  if (n.attributes.real("alpha", 1) == 0) refuse_node(n, "alpha is 0, by which it divides");
  return E::call("celu", {a[0], attribute(n, "alpha", 1, a[0])});
}
ExprPtr hard_sigmoid(const Node& n, const Args& a) {
  allow(n, a[0], kFloats);
  return E::call("hard_sigmoid", {a[0], attribute(n, "alpha", 0.2f, a[0]), attribute(n, "beta", 0.5f, a[0])});
}
ExprPtr swish_of(const Node& n, const ExprPtr& x) {  // x * sigmoid(alpha * x)
  if (n.attributes.real("alpha", 1) == 1) return E::call("silu", {x});
  return E::call("mul", {x, E::call("sigmoid", {E::call("mul", {attribute(n, "alpha", 1, x), x})})});
}
ExprPtr swish(const Node& n, const Args& a) {
  allow(n, a[0], kFloats);
  return swish_of(n, a[0]);
}
ExprPtr swiglu(const Node& n, const Args& a) {
  allow_one_type(n, a, kFloats);
  return E::call("mul", {swish_of(n, a[0]), a[1]});
}
void infer_swiglu(Inference& x) {  // the only one of two inputs that does not broadcast
  x.require(x.rank(0) == x.rank(1), "inputs of different rank");
  Shape s;
  for (size_t i = 0; i < x.shape(0).size(); ++i)
    s.push_back(x.require_equal(x.shape(0)[i], x.shape(1)[i], fmt::format("axis {}", i)));
  const ExprPtr e = swiglu(x.node, {E::input(0, x.dtype(0)), E::input(1, x.dtype(1))});
  x.set(0, e->dtype, std::move(s));
}
ExprPtr gelu(const Node& n, const Args& a) {
  allow(n, a[0], kFloats);
  const std::string how = n.attributes.text("approximate", "none");
  if (how != "none" && how != "tanh")
    refuse_node(n, fmt::format("approximate is {}, not none or tanh", sinter::quoted(how)));
  return E::call(how == "tanh" ? "gelu_tanh" : "gelu", {a[0]});
}
ExprPtr thresholded_relu(const Node& n, const Args& a) {
  allow(n, a[0], kFloats);
  return E::call("thresholded_relu", {a[0], attribute(n, "alpha", 1, a[0])});
}
// On integers lambd and bias are still real numbers: computed in float64, and the result truncates.
ExprPtr shrink(const Node& n, const Args& a) {
  allow(n, a[0], kNumbers);
  const ExprPtr x = is_float(a[0]->dtype) ? a[0] : E::cast(a[0], DType::kF64);
  const ExprPtr y = E::call("shrink", {x, attribute(n, "bias", 0, x), attribute(n, "lambd", 0.5f, x)});
  return E::cast(y, a[0]->dtype);
}

// min and max are scalars and may be computed; either may be absent.
ExprPtr clip(const Node& n, const Args& a) {
  Args given;
  for (const ExprPtr& x : a)
    if (x) given.push_back(x);
  allow_one_type(n, given, kNumbers);
  const ExprPtr lo = a.size() > 1 ? a[1] : nullptr, hi = a.size() > 2 ? a[2] : nullptr;
  if (lo && hi) return E::call("clamp", {a[0], lo, hi});
  if (lo) return E::call("max", {a[0], lo});
  return hi ? E::call("min", {a[0], hi}) : a[0];
}
void infer_clip(Inference& x) {
  Args a;
  for (size_t i = 0; i < x.in.size(); ++i) {
    a.push_back(x.has(i) ? E::input(static_cast<int>(i), x.dtype(i)) : nullptr);
    if (i == 0 || !x.has(i)) continue;
    x.require(x.rank(i) <= x.rank(0), fmt::format("{} is not a scalar", i == 1 ? "min" : "max"));
    x.require_equal(product(x.shape(i)), 1, i == 1 ? "elements of min" : "elements of max");
  }
  clip(x.node, a);
  x.same(0, 0);
}

ExprPtr is_inf(const Node& n, const Args& a) {
  allow(n, a[0], kFloats);
  const bool up = n.attributes.integer("detect_positive", 1) != 0;
  const bool down = n.attributes.integer("detect_negative", 1) != 0;
  const ExprPtr yes_up = E::call("is_positive_inf", {a[0]}), yes_down = E::call("is_negative_inf", {a[0]});
  if (up && down) return E::call("logical_or", {yes_up, yes_down});
  if (up || down) return up ? yes_up : yes_down;
  return E::call("logical_and", {yes_up, E::constant_integer(0, DType::kBool)});
}

}  // namespace

const std::vector<Op>& ops_elementwise_unary() {
  static const std::vector<Op> table = {
      SINTER_SAME("Abs", "abs", 1, kNumbers),
      SINTER_SAME("Neg", "neg", 1, kFloats | kSigned),
      SINTER_SAME("Sign", "sign", 1, kNumbers),
      SINTER_SAME("Reciprocal", "reciprocal", 1, kFloats),
      SINTER_SAME("Floor", "floor", 1, kFloats),
      SINTER_SAME("Ceil", "ceil", 1, kFloats),
      SINTER_SAME("Round", "round", 1, kFloats),
      SINTER_SAME("Sqrt", "sqrt", 1, kFloats),
      SINTER_SAME("Exp", "exp", 1, kFloats),
      SINTER_SAME("Log", "log", 1, kFloats),
      SINTER_SAME("Sin", "sin", 1, kFloats),
      SINTER_SAME("Cos", "cos", 1, kFloats),
      SINTER_SAME("Tan", "tan", 1, kFloats),
      SINTER_SAME("Asin", "asin", 1, kFloats),
      SINTER_SAME("Acos", "acos", 1, kFloats),
      SINTER_SAME("Atan", "atan", 1, kFloats),
      SINTER_SAME("Sinh", "sinh", 1, kFloats),
      SINTER_SAME("Cosh", "cosh", 1, kFloats),
      SINTER_SAME("Tanh", "tanh", 1, kFloats),
      SINTER_SAME("Asinh", "asinh", 1, kFloats),
      SINTER_SAME("Acosh", "acosh", 1, kFloats),
      SINTER_SAME("Atanh", "atanh", 1, kFloats),
      SINTER_SAME("Erf", "erf", 1, kFloats),
      SINTER_SAME("Relu", "relu", 1, kFloats | kSigned),
      SINTER_SAME("Sigmoid", "sigmoid", 1, kFloats),
      SINTER_SAME("HardSwish", "hard_swish", 1, kFloats),
      SINTER_SAME("Softplus", "softplus", 1, kFloats),
      SINTER_SAME("Softsign", "softsign", 1, kFloats),
      SINTER_SAME("Mish", "mish", 1, kFloats),
      SINTER_SAME("IsNaN", "is_nan", 1, kFloats),
      SINTER_SAME("Not", "logical_not", 1, kBool),
      SINTER_SAME("BitwiseNot", "bit_not", 1, kIntegers),
      {.name = "LeakyRelu", .expr = leaky_relu},
      {.name = "Elu", .expr = elu},
      {.name = "Selu", .expr = selu},
      {.name = "Celu", .expr = celu},
      {.name = "HardSigmoid", .expr = hard_sigmoid},
      {.name = "Swish", .expr = swish},
      {.name = "SwiGLU", .min_inputs = 2, .max_inputs = 2, .infer = infer_swiglu, .expr = swiglu},
      {.name = "Gelu", .expr = gelu},
      {.name = "ThresholdedRelu", .expr = thresholded_relu},
      {.name = "Shrink", .expr = shrink},
      {.name = "Clip", .max_inputs = 3, .infer = infer_clip, .expr = clip},
      {.name = "IsInf", .expr = is_inf},
  };
  return table;
}

}  // namespace sinter
