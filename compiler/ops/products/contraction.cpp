#include "ops/products/contraction.h"

#include <type_traits>

#include "ops/products/matrix_product.h"

namespace sinter {

template <class T>
void multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
              const T* b, int64_t ldb, T* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  const MatrixView<const T> of_a{a, transpose_a ? 1 : lda, transpose_a ? lda : 1},
      of_b{b, transpose_b ? 1 : ldb, transpose_b ? ldb : 1};
  if constexpr (std::is_floating_point_v<T>) {
    matrix_product(m, n, k, of_a, of_b, MatrixView<T>{c, ldc, 1});
  } else {
    // Integers wrap, so they are summed unsigned; uint64_t holds every narrower product modulo its own range.
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        uint64_t sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += static_cast<uint64_t>(of_a.data[i * of_a.row + l * of_a.column]) *
                 static_cast<uint64_t>(of_b.data[l * of_b.row + j * of_b.column]);
        c[i * ldc + j] = static_cast<T>(sum);
      }
  }
}

Tensor less_zero(const Node& n, const Tensor& x) {
  Tensor y = x.converted(DType::kF64);
  if (const int64_t zero = x_zero_of(n); zero != 0)
    for (int64_t i = 0; i < y.size(); ++i) y.as<double>()[i] -= static_cast<double>(zero);
  return y;
}

Tensor wrapped(const Tensor& sums) {
  Tensor out(DType::kI32, sums.shape());
  for (int64_t i = 0; i < sums.size(); ++i)
    out.as<int32_t>()[i] = static_cast<int32_t>(static_cast<int64_t>(sums.as<double>()[i]));
  return out;
}

template void multiply(bool, bool, int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t,
                       float*, int64_t);
template void multiply(bool, bool, int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t,
                       double*, int64_t);
template void multiply(bool, bool, int64_t, int64_t, int64_t, const int32_t*, int64_t, const int32_t*,
                       int64_t, int32_t*, int64_t);
template void multiply(bool, bool, int64_t, int64_t, int64_t, const int64_t*, int64_t, const int64_t*,
                       int64_t, int64_t*, int64_t);
template void multiply(bool, bool, int64_t, int64_t, int64_t, const uint32_t*, int64_t, const uint32_t*,
                       int64_t, uint32_t*, int64_t);
template void multiply(bool, bool, int64_t, int64_t, int64_t, const uint64_t*, int64_t, const uint64_t*,
                       int64_t, uint64_t*, int64_t);

}  // namespace sinter
