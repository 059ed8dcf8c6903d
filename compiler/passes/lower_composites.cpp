// lower_composites: operators with several forms in the one form that kernels and later passes know.
//
// BatchNormalization whose statistics are computed (or that computes them: training_mode) becomes the
// arithmetic it stands for, the losses of classification Gathers and sums (lower_losses.cpp). Gemm becomes A
// [M,K] times B [K,N] plus C, with no factors and no transposed constants: alpha goes into a constant B, beta
// into a constant C (rounded once; with `exact` only powers of two, which round nothing), transposed
// constants are stored transposed. What isn't constant keeps its attribute.
#include <cmath>

#include "passes/builder.h"
#include "passes/lower_losses.h"
#include "passes/passes.h"

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

// y = (x - mean) / sqrt(var + epsilon) * scale + offset, the parameters as [C,1,..] in the type of x.
bool lower_batchnorm(Graph& g, Node* n) {
  Value* x = n->inputs[0];
  const DType t = x->type.dtype;
  const bool training = n->attributes.integer("training_mode", 0) != 0;
  if (!n->has_output(0) || x->type.shape.size() < 2) return false;
  // Constant statistics are left to fold_batchnorm.
  bool constant = !training;
  for (size_t i = 1; i < 5; ++i) constant = constant && n->inputs[i]->is_constant();
  if (constant) return false;
  Builder make(g, n);
  std::vector<int64_t> per_channel(x->type.shape.size() - 1, 1), axes;
  per_channel[0] = -1;
  for (size_t a = 0; a < x->type.shape.size(); ++a)
    if (a != 1) axes.push_back(static_cast<int64_t>(a));
  auto parameter = [&](Value* v) {
    if (v->type.dtype != t) v = make("Cast", {v}, {{"to", static_cast<int64_t>(onnx_of(t))}});
    return make("Reshape", {v, make.integers("per_channel", per_channel)});
  };
  Value *mean = nullptr, *variance = nullptr;
  if (training) {
    Value* over = make.integers("axes", axes);
    mean = make("ReduceMean", {x, over}, {{"keepdims", int64_t{1}}});
    Value* d = make("Sub", {x, mean});
    variance = make("ReduceMean", {make("Mul", {d, d}), over}, {{"keepdims", int64_t{1}}});
  } else {
    mean = parameter(n->inputs[3]);
    variance = parameter(n->inputs[4]);
  }
  Value* deviation =
      make("Sqrt", {make("Add", {variance, make.number(n->attributes.real("epsilon", 1e-5f), t)})});
  Value* factor = make("Div", {parameter(n->inputs[1]), deviation});
  Value* y = make("Add", {make("Mul", {make("Sub", {x, mean}), factor}), parameter(n->inputs[2])});
  take_output(y->producer, 0, n, 0);
  // Running statistics: momentum of the old, the rest of this batch's.
  for (size_t i = 1; i < n->outputs.size(); ++i) {
    if (!n->has_output(i)) continue;
    Value* old = n->inputs[2 + i];
    Value* now = make("Reshape", {i == 1 ? mean : variance, make.integers("channels", {-1})});
    const DType u = old->type.dtype;
    if (u != t) now = make("Cast", {now}, {{"to", static_cast<int64_t>(onnx_of(u))}});
    const float momentum = n->attributes.real("momentum", 0.9f);
    Value* sum = make("Add", {make("Mul", {old, make.number(momentum, u)}),
                              make("Mul", {now, make.number(1 - momentum, u)})});
    take_output(sum->producer, 0, n, i);
  }
  return true;
}

}  // namespace

bool lower_composites(Graph& g, const PassOptions& options) {
  bool changed = false;
  for (Node* n : snapshot(g)) {
    if (is_op(n, "BatchNormalization")) changed |= lower_batchnorm(g, n);
    changed |= lower_loss(g, n);
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
