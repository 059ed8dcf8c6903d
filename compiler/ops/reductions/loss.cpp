// NegativeLogLikelihoodLoss (ONNX 22) and SoftmaxCrossEntropyLoss (ONNX 13): how far the scores of classes
// are from what they should be.
//
// x [N, C, d...] and target [N, d...] of class numbers give -weight[t] * x[n, t, d...] for each target; those
// equal to ignore_index count nothing. The mean is weighted. A target beyond the classes is refused; negative
// ones count from the end. Pass lower_composites turns both into Gathers and sums.
#include <cmath>

#include "ops/op.h"

namespace sinter {
namespace {

void infer_loss(Inference& x) {
  x.require(is_float(x.dtype(0)), "only for floats");
  x.require(x.dtype(1) == DType::kI32 || x.dtype(1) == DType::kI64, "its target must be int32 or int64");
  const Shape& s = x.shape(0);
  x.require(s.size() >= 2, fmt::format("scores of shape {}: N and C are needed", text(s)));
  x.require(x.rank(1) + 1 == x.rank(0),
            fmt::format("a target of shape {} for scores of shape {}", text(x.shape(1)), text(s)));
  Shape each;
  for (size_t d = 0; d < x.shape(1).size(); ++d)
    each.push_back(
        x.require_equal(s[d == 0 ? 0 : d + 1], x.shape(1)[d], fmt::format("axis {} of the target", d)));
  x.require(s[1].hi() >= 1, "there are no classes");
  x.require_equal(max(s[1], 1), s[1], "there are classes");
  if (x.has(2)) {
    x.require(x.dtype(2) == x.dtype(0), "its weight has another type than the scores");
    x.require(x.rank(2) == 1, fmt::format("a weight of shape {}", text(x.shape(2))));
    x.require_equal(x.shape(2)[0], s[1], "elements of the weight");
  }
  const std::string how = x.attributes().text("reduction", "mean");
  x.require(how == "none" || how == "sum" || how == "mean",
            fmt::format("its reduction is {}", sinter::quoted(how)));
  x.attributes().integer("ignore_index", 0);
  x.set(0, x.dtype(0), how == "none" ? std::move(each) : Shape{});
  if (x.out.size() > 1) x.set(1, x.dtype(0), s);
}

void loss(Evaluation& e, const Tensor& scores) {
  const Attributes& a = e.attributes();
  const bool ignores = a.has("ignore_index");
  const int64_t ignored = a.integer("ignore_index", 0), classes = scores.dim(1);
  const int64_t inner = scores.size() == 0 ? 0 : scores.size() / scores.dim(0) / classes;
  const std::string how = a.text("reduction", "mean");
  double sum = 0, weights = 0;
  for (int64_t i = 0; i < e.in[1].size(); ++i) {
    int64_t t = e.in[1].integer(i);
    if (ignores && t == ignored) continue;
    if (t < -classes || t >= classes) e.fail(fmt::format("target {} outside of {} classes", t, classes));
    if (t < 0) t += classes;
    const double weight = e.has(2) ? e.in[2].real(t) : 1;
    const double v = -scores.real((i / inner * classes + t) * inner + i % inner) * weight;
    if (how == "none") e.out[0].set_real(i, v);
    sum += v;
    weights += weight;
  }
  if (how != "none") e.out[0].set_real(0, how == "sum" ? sum : sum / weights);
}

void eval_nll(Evaluation& e) { loss(e, e.in[0]); }

void eval_cross_entropy(Evaluation& e) {
  const Tensor& x = e.in[0];
  const int64_t classes = x.dim(1), inner = x.size() == 0 ? 0 : x.size() / x.dim(0) / classes;
  Tensor logs(x.dtype(), x.shape());
  for (int64_t line = 0; line < (x.size() == 0 ? 0 : x.dim(0) * inner); ++line) {
    const int64_t first = line / inner * classes * inner + line % inner;
    double top = x.real(first), sum = 0;
    for (int64_t c = 1; c < classes; ++c) top = std::max(top, x.real(first + c * inner));
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(x.real(first + c * inner) - top);
    for (int64_t c = 0; c < classes; ++c)
      logs.set_real(first + c * inner, x.real(first + c * inner) - top - std::log(sum));
  }
  loss(e, logs);
  if (e.node.has_output(1)) e.out[1] = logs;
}

}  // namespace

const std::vector<Op>& ops_loss() {
  static const std::vector<Op> table = {
      {.name = "NegativeLogLikelihoodLoss",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer_loss,
       .eval = eval_nll},
      {.name = "SoftmaxCrossEntropyLoss",
       .min_inputs = 2,
       .max_inputs = 3,
       .max_outputs = 2,
       .infer = infer_loss,
       .eval = eval_cross_entropy},
  };
  return table;
}

}  // namespace sinter
