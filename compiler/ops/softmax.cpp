// Softmax: exp(x - max) / sum(exp(x - max)) along one axis. LogSoftmax: its logarithm. Hardmax: 1 at the
// first greatest element of a line, else 0.
//
// Opsets 1 to 12 flatten the tensor to two dimensions first and default to axis 1; import/upgrade.cpp
// rewrites those to this form.
#include <algorithm>
#include <cmath>

#include "ops/op.h"

namespace sinter {
namespace {

void infer(Inference& x) {
  x.require(is_float(x.dtype(0)), "only for floats");
  x.axis("axis", -1, x.rank(0));
  x.same(0, 0);
}

// Calls f(begin, stride, n) for every line along the axis; element k of a line is at begin + k * stride.
template <class F>
void for_each_line(const Evaluation& e, F f) {
  const Tensor& t = e.in[0];
  const int64_t given = e.attributes().integer("axis", -1), axis = given < 0 ? given + t.rank() : given;
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < t.rank(); ++d) inner *= t.dim(d);
  const int64_t n = t.dim(axis);
  for (int64_t i = 0; i < t.size(); ++i)
    if (i / inner % n == 0) f(i, inner, n);
}

void softmax(Evaluation& e, bool log) {
  const Tensor& x = e.in[0];
  for_each_line(e, [&](int64_t begin, int64_t stride, int64_t n) {
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; ++k) top = std::max(top, x.real(begin + k * stride));
    for (int64_t k = 0; k < n; ++k) sum += std::exp(x.real(begin + k * stride) - top);
    for (int64_t k = 0; k < n; ++k) {
      const double shifted = x.real(begin + k * stride) - top;
      e.out[0].set_real(begin + k * stride, log ? shifted - std::log(sum) : std::exp(shifted) / sum);
    }
  });
}
void eval_softmax(Evaluation& e) { softmax(e, false); }
void eval_log_softmax(Evaluation& e) { softmax(e, true); }

void eval_hardmax(Evaluation& e) {
  const Tensor& x = e.in[0];
  for_each_line(e, [&](int64_t begin, int64_t stride, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; ++k)
      if (x.real(begin + k * stride) > x.real(begin + best * stride)) best = k;
    e.out[0].set_real(begin + best * stride, 1);
  });
}

}  // namespace

const std::vector<Op>& ops_softmax() {
  static const std::vector<Op> table = {
      {.name = "Softmax", .infer = infer, .eval = eval_softmax},
      {.name = "LogSoftmax", .infer = infer, .eval = eval_log_softmax},
      {.name = "Hardmax", .infer = infer, .eval = eval_hardmax},
  };
  return table;
}

}  // namespace sinter
