// determinant and invert: Gaussian elimination with row exchanges.
#pragma once
#include <cmath>
#include <cstdint>

namespace sinter {

inline void exchange_rows(double* m, std::int64_t n, std::int64_t a, std::int64_t b) {
  for (std::int64_t k = 0; k < n; ++k) {
    const double kept = m[a * n + k];
    m[a * n + k] = m[b * n + k];
    m[b * n + k] = kept;
  }
}

// y = the inverse of the n x n matrix m, both row-major; destroys m. Infinities and NaNs where there is none.
inline void invert(double* m, std::int64_t n, double* y) {
  for (std::int64_t i = 0; i < n * n; ++i) y[i] = i / n == i % n ? 1.0 : 0.0;
  for (std::int64_t c = 0; c < n; ++c) {
    std::int64_t pivot = c;
    for (std::int64_t r = c + 1; r < n; ++r)
      if (std::fabs(m[r * n + c]) > std::fabs(m[pivot * n + c])) pivot = r;
    if (pivot != c) {
      exchange_rows(m, n, pivot, c);
      exchange_rows(y, n, pivot, c);
    }
    const double top = m[c * n + c];
    for (std::int64_t k = 0; k < n; ++k) {
      m[c * n + k] /= top;
      y[c * n + k] /= top;
    }
    for (std::int64_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double factor = m[r * n + c];
      for (std::int64_t k = 0; k < n; ++k) {
        m[r * n + k] -= factor * m[c * n + k];
        y[r * n + k] -= factor * y[c * n + k];
      }
    }
  }
}

// The determinant of the n x n matrix m, row-major; destroys it. 1 for n = 0, 0 where a pivot column is zero.
inline double determinant(double* m, std::int64_t n) {
  double product = 1.0;
  for (std::int64_t c = 0; c < n; ++c) {
    std::int64_t pivot = c;
    for (std::int64_t r = c + 1; r < n; ++r)
      if (std::fabs(m[r * n + c]) > std::fabs(m[pivot * n + c])) pivot = r;
    const double top = m[pivot * n + c];
    if (top == 0.0) return 0.0;
    product *= top;
    if (pivot != c) {
      product = -product;
      for (std::int64_t k = c; k < n; ++k) {
        const double kept = m[pivot * n + k];
        m[pivot * n + k] = m[c * n + k];
        m[c * n + k] = kept;
      }
    }
    for (std::int64_t r = c + 1; r < n; ++r) {
      const double factor = m[r * n + c] / top;
      for (std::int64_t k = c; k < n; ++k) m[r * n + k] -= factor * m[c * n + k];
    }
  }
  return product;
}

}  // namespace sinter
