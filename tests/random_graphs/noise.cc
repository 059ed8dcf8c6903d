#include "random_graphs/noise.h"

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "ops/op.h"

namespace sinter::random_graphs {
namespace {

// Rounding errors of one operator, relative to the element, or (sums) to the largest of all.
// kSingle: computed with factors in float32, whatever the type.
enum class Error { kNone, kElement, kSum, kConvolution, kSingle };

Error error_of(const std::string& op) {
  static const std::set<std::string> kExact = {"Relu",
                                               "Max",
                                               "Min",
                                               "Neg",
                                               "Abs",
                                               "Transpose",
                                               "Reshape",
                                               "Flatten",
                                               "Squeeze",
                                               "Concat",
                                               "Split",
                                               "Slice",
                                               "Gather",
                                               "Expand",
                                               "Tile",
                                               "Identity",
                                               "Dropout",
                                               "MaxPool",
                                               "Unsqueeze",
                                               "ReduceMax",
                                               "ReduceMin",
                                               "DepthToSpace",
                                               "SpaceToDepth",
                                               "Clip",
                                               "Trilu",
                                               "Where",
                                               "Pad",
                                               "GatherElements",
                                               "GatherND",
                                               "TopK",
                                               "Sign",
                                               "Floor",
                                               "Ceil",
                                               "Round",
                                               "GlobalMaxPool",
                                               "ReverseSequence",
                                               "ScatterElements",
                                               "ScatterND",
                                               "OneHot",
                                               "Compress",
                                               "NonZero",
                                               "ConstantOfShape",
                                               "Shape",
                                               "Range",
                                               "EyeLike",
                                               "QuantizeLinear",
                                               "CenterCropPad",
                                               "ThresholdedRelu"};
  static const std::set<std::string> kElementwise = {
      "Add",      "Sub",      "Mul",         "Div",        "Exp",       "Log",   "Sqrt",
      "Sigmoid",  "Tanh",     "Erf",         "Elu",        "Selu",      "Celu",  "Mish",
      "Softplus", "Softsign", "HardSigmoid", "HardSwish",  "LeakyRelu", "PRelu", "Pow",
      "Sin",      "Cos",      "Atan",        "Reciprocal", "Gelu",      "Cast",  "DequantizeLinear",
      "Sum",      "Mean",     "Swish"};
  if (kExact.count(op)) return Error::kNone;
  if (kElementwise.count(op)) return Error::kElement;
  if (op == "Resize") return Error::kSingle;
  return op == "Conv" || op == "ConvTranspose" ? Error::kConvolution : Error::kSum;
}

double step(DType t) {
  switch (t) {
    case DType::kF64: return 1e-14;
    case DType::kF16: return 1e-3;
    case DType::kBF16: return 8e-3;
    default: return 1e-6;
  }
}

void disturb(Tensor& t, Error error, std::mt19937& random) {
  if (error == Error::kNone || !is_float(t.dtype())) return;
  Tensor out(t.dtype(), t.shape());
  const double size =
      error == Error::kSingle ? std::max(step(t.dtype()), step(DType::kF32)) : step(t.dtype());
  // Winograd's sums lose about a decimal digit.
  const double top = error == Error::kElement ? 0 : largest(t) * (error == Error::kConvolution ? 8 : 1);
  for (int64_t i = 0; i < t.size(); ++i) {
    const double u = 2 * (static_cast<double>(random()) / 4294967296.0) - 1, v = t.real(i);
    out.set_real(i, v + u * size * std::max(std::fabs(v), top));
  }
  t = out;
}

}  // namespace

Values evaluate_with_noise(const Graph& graph, const std::vector<Tensor>& inputs, uint32_t run) {
  Values values;
  std::mt19937 random(run);
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i]->name] = inputs[i];
  for (const auto& n : graph.nodes) {
    std::vector<Tensor> in;
    for (const Value* v : n->inputs) in.push_back(!v ? Tensor() : v->data ? *v->data : values.at(v->name));
    std::vector<Tensor> out = evaluate(*n, std::move(in));
    for (size_t i = 0; i < n->outputs.size(); ++i) {
      if (!n->outputs[i]) continue;
      if (run != 0) disturb(out[i], error_of(n->op->name), random);
      values[n->outputs[i]->name] = out[i];
    }
  }
  for (const Value* v : graph.outputs)
    if (v->data) values[v->name] = *v->data;
  return values;
}

double largest(const Tensor& t) {
  double top = 0;
  for (int64_t i = 0; i < t.size(); ++i)
    if (const double v = std::fabs(t.real(i)); std::isfinite(v)) top = std::max(top, v);
  return top;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return -1;
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (!is_float(a.dtype())) {
      if (a.integer(i) != b.integer(i)) return std::numeric_limits<double>::infinity();
      continue;
    }
    const double x = a.real(i), y = b.real(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
    most = std::max(most, std::fabs(x - y));
  }
  return most;
}

double allowed_deviation(const Tensor& t) {
  if (!is_float(t.dtype())) return 0;
  return 200 * step(t.dtype()) * std::max(largest(t), 1e-3);
}

double tolerance(const Tensor& t, double deviation) {
  if (!is_float(t.dtype())) return 0;
  return 6 * deviation + 20 * step(t.dtype()) * largest(t);
}

}  // namespace sinter::random_graphs
