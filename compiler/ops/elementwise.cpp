// Elementwise operators: each is one row {name, inputs, expression}; types, shapes, broadcasting, evaluation
// and generated code all follow from the expression (ir/expr.h).
#include "ops/op.h"

namespace sinter {
namespace {

using Args = std::vector<ExprPtr>;
using E = Expr;

// The row of an operator that is a single scalar function of its inputs.
#define SAME(onnx, fn, n)                                             \
  {                                                                   \
    .name = onnx, .min_inputs = n, .max_inputs = n,                   \
    .expr = [](const Node&, const Args& a) { return E::call(fn, a); } \
  }

void one_type(const Node& n, const Args& a) {
  for (const ExprPtr& x : a)
    if (x->dtype != a[0]->dtype)
      refuse_node(n, fmt::format("inputs of types {} and {}", name_of(a[0]->dtype), name_of(x->dtype)));
}
ExprPtr fold(const Node& n, const char* fn, const Args& a) {
  one_type(n, a);
  ExprPtr e = a[0];
  for (size_t i = 1; i < a.size(); ++i) e = E::call(fn, {e, a[i]});
  return e;
}

}  // namespace

const std::vector<Op>& ops_elementwise() {
  static const std::vector<Op> table = {
      SAME("Relu", "relu", 1),
      SAME("Sigmoid", "sigmoid", 1),
      {.name = "Add",
       .min_inputs = 2,
       .max_inputs = 2,
       .expr = [](const Node& n, const Args& a) { return fold(n, "add", a); }},
      {.name = "Mul",
       .min_inputs = 2,
       .max_inputs = 2,
       .expr = [](const Node& n, const Args& a) { return fold(n, "mul", a); }},
  };
  return table;
}

}  // namespace sinter
