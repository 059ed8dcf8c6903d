// determinant: Gaussian elimination with row exchanges.
#pragma once
#include <cmath>
#include <cstdint>

namespace sinter {

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
