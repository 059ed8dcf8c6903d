// Softmax: exp(x - max) / sum(exp(x - max)) along one axis. LogSoftmax: its logarithm. Hardmax: 1 at the
// first greatest element of a line, else 0.
//
// Opsets 1 to 12 flatten the tensor to two dimensions first and default to axis 1; import/upgrade.cpp
// rewrites those to this form.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ops/op.h"

namespace sinter {
namespace {

void infer(Inference& x) {
  x.require(is_float(x.dtype(0)), "only for floats");
  x.axis("axis", -1, x.rank(0));
  x.same(0, 0);
}

template <class T>
double widen(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(v);
  else
    return static_cast<double>(to_float(v));
}
template <class T>
T narrow(double v) {
  if constexpr (std::is_same_v<T, half>)
    return to_half(static_cast<float>(v));
  else if constexpr (std::is_same_v<T, bfloat16>)
    return to_bfloat16(static_cast<float>(v));
  else
    return static_cast<T>(v);
}

// Replaces every line along the axis by f(line); lines are vectors of double.
template <class T, class F>
void map_lines(const Tensor& in, Tensor& out, int64_t axis, F f) {
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < in.rank(); ++d) inner *= in.dim(d);
  const int64_t n = in.dim(axis);
  std::vector<double> line(static_cast<size_t>(n));
  for (int64_t l = 0; n > 0 && l < in.size() / n; ++l) {
    const int64_t begin = l / inner * inner * n + l % inner;
    for (int64_t k = 0; k < n; ++k) line[static_cast<size_t>(k)] = widen(in.as<T>()[begin + k * inner]);
    f(line);
    for (int64_t k = 0; k < n; ++k) out.as<T>()[begin + k * inner] = narrow<T>(line[static_cast<size_t>(k)]);
  }
}
template <class F>
void map_lines(Evaluation& e, F f) {
  const Tensor& in = e.in[0];
  const int64_t given = e.attributes().integer("axis", -1), axis = given < 0 ? given + in.rank() : given;
  with_type(in.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (!std::is_integral_v<T>) map_lines<T>(in, e.out[0], axis, f);
  });
}

void softmax(Evaluation& e, bool log) {
  map_lines(e, [&](std::vector<double>& line) {
    const double top = *std::max_element(line.begin(), line.end());
    double sum = 0;
    for (double& v : line) {
      v -= top;
      const double power = std::exp(v);
      sum += power;
      if (!log) v = power;
    }
    const double log_sum = std::log(sum);
    for (double& v : line) v = log ? v - log_sum : v / sum;
  });
}
void eval_softmax(Evaluation& e) { softmax(e, false); }
void eval_log_softmax(Evaluation& e) { softmax(e, true); }

void eval_hardmax(Evaluation& e) {
  map_lines(e, [](std::vector<double>& line) {
    const auto best = std::max_element(line.begin(), line.end());  // the first of equal ones
    const auto at = best - line.begin();
    std::fill(line.begin(), line.end(), 0.0);
    line[static_cast<size_t>(at)] = 1;
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
