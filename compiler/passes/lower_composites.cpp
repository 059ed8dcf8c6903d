// lower_composites: Gemm in the one form that kernels and later passes know: A [M,K] times B [K,N] plus C,
// with no factors and no transposed constants.
//
// alpha goes into a constant B, beta into a constant C (rounded once; with `exact` only powers of two, which
// round nothing), transposed constants are stored transposed. What isn't constant keeps its attribute.
#include <cmath>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

bool exact_factor(float f) {
  int exponent = 0;
  return std::frexp(std::fabs(f), &exponent) == 0.5f;
}

bool fold_factor(Graph& g, Node* n, const char* attribute, size_t input, const PassOptions& options) {
  const float f = n->attributes.real(attribute, 1);
  if (f == 1) return false;
  const Value* v = n->input(input);
  if (v) {
    if (!v->data || !is_float(v->data->dtype()) || !std::isfinite(f)) return false;
    if (options.exact && !exact_factor(f)) return false;
    Tensor t(v->data->dtype(), v->data->shape());
    for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, v->data->real(i) * f);
    g.set_input(n, input, g.add_constant(v->name + "/" + attribute, std::move(t)));
  } else if (input != 2) {
    return false;
  }
  n->attributes.erase(attribute);
  return true;
}

bool fold_transposition(Graph& g, Node* n, const char* attribute, size_t input) {
  const Value* v = n->input(input);
  if (n->attributes.integer(attribute, 0) == 0 || !v || !v->data) return false;
  g.set_input(n, input, g.add_constant(v->name + "/transposed", v->data->transposed({1, 0})));
  n->attributes.erase(attribute);
  return true;
}

}  // namespace

bool lower_composites(Graph& g, const PassOptions& options) {
  bool changed = false;
  for (Node* n : snapshot(g)) {
    if (!is_op(n, "Gemm")) continue;
    changed |= fold_transposition(g, n, "transA", 0);
    changed |= fold_transposition(g, n, "transB", 1);
    changed |= fold_factor(g, n, "alpha", 1, options);
    changed |= fold_factor(g, n, "beta", 2, options);
  }
  g.erase_unused();
  return changed;
}

}  // namespace sinter
