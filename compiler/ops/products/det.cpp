// Det and com.microsoft's Inverse: the determinant and the inverse of each matrix, by elimination with row
// exchanges in double precision.
#include <cmath>

#include "ops/op.h"

namespace sinter {
namespace {

void infer(Inference& x) {
  x.require(is_float(x.dtype(0)), "only for floats");
  x.require(x.rank(0) >= 2, fmt::format("matrices are needed, not {}", text(x.shape(0))));
  const Shape& s = x.shape(0);
  x.require_equal(s[s.size() - 2], s.back(), "rows and columns");
  x.set(0, x.dtype(0), Shape(s.begin(), s.end() - 2));
}

double determinant(std::vector<double> m, size_t n) {
  double product = 1;
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    for (size_t r = c + 1; r < n; ++r)
      if (std::abs(m[r * n + c]) > std::abs(m[pivot * n + c])) pivot = r;
    const double top = m[pivot * n + c];
    if (top == 0) return 0;
    if (pivot != c) {
      product = -product;
      for (size_t k = c; k < n; ++k) std::swap(m[pivot * n + k], m[c * n + k]);
    }
    product *= top;
    for (size_t r = c + 1; r < n; ++r) {
      const double factor = m[r * n + c] / top;
      for (size_t k = c; k < n; ++k) m[r * n + k] -= factor * m[c * n + k];
    }
  }
  return product;
}

void infer_inverse(Inference& x) {
  infer(x);
  x.set(0, x.dtype(0), x.shape(0));
}

// The solutions of m y = unit vectors; of a matrix without an inverse infinities and NaNs.
std::vector<double> inverse(std::vector<double> m, size_t n) {
  std::vector<double> y(n * n, 0);
  for (size_t i = 0; i < n; ++i) y[i * n + i] = 1;
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    for (size_t r = c + 1; r < n; ++r)
      if (std::abs(m[r * n + c]) > std::abs(m[pivot * n + c])) pivot = r;
    for (std::vector<double>* side : {&m, &y})
      for (size_t k = 0; pivot != c && k < n; ++k) std::swap((*side)[pivot * n + k], (*side)[c * n + k]);
    for (size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double factor = m[r * n + c] / m[c * n + c];
      for (std::vector<double>* side : {&m, &y})
        for (size_t k = 0; k < n; ++k) (*side)[r * n + k] -= factor * (*side)[c * n + k];
    }
  }
  for (size_t i = 0; i < n * n; ++i) y[i] /= m[i / n * n + i / n];
  return y;
}

void eval_inverse(Evaluation& e) {
  const int64_t n = e.in[0].shape().back();
  for (int64_t i = 0; n > 0 && i < e.in[0].size() / (n * n); ++i) {
    std::vector<double> m;
    for (int64_t k = 0; k < n * n; ++k) m.push_back(e.in[0].real(i * n * n + k));
    const std::vector<double> y = inverse(std::move(m), static_cast<size_t>(n));
    for (int64_t k = 0; k < n * n; ++k) e.out[0].set_real(i * n * n + k, y[static_cast<size_t>(k)]);
  }
}

void eval(Evaluation& e) {
  const int64_t n = e.in[0].shape().back();
  for (int64_t i = 0; i < e.out[0].size(); ++i) {
    std::vector<double> m;
    for (int64_t k = 0; k < n * n; ++k) m.push_back(e.in[0].real(i * n * n + k));
    e.out[0].set_real(i, determinant(std::move(m), static_cast<size_t>(n)));
  }
}

}  // namespace

const std::vector<Op>& ops_det() {
  static const std::vector<Op> table = {
      {.name = "Det", .infer = infer, .eval = eval},
      {.name = "Inverse", .domain = "com.microsoft", .infer = infer_inverse, .eval = eval_inverse},
  };
  return table;
}

}  // namespace sinter
