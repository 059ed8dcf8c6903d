#include "ops/products/contraction.h"

#include <algorithm>
#include <type_traits>

#include "ir/error.h"

extern "C" {
#include <cblas.h>
}

// OpenBLAS's own question, which it asks while it is loaded, before main: here the program answers, and no
// threads are started, which could wait for ever where memory is short (ulimit -v).
extern "C" int openblas_num_threads_env() { return 1; }
// Weak: absent where the program is linked with BLIS (sinter_portable), which is built without threads.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace sinter {
namespace {

// One thread: the same sums in the same order on every machine of a kind.
void use_one_thread() {
  static const bool once = openblas_set_num_threads && (openblas_set_num_threads(1), true);
  (void)once;
}

int blas_int(int64_t v) {
  if (v > INT32_MAX) refuse("a matrix extent of {} exceeds 2^31", v);
  return static_cast<int>(std::max<int64_t>(v, 1));
}

}  // namespace

template <class T>
void multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
              const T* b, int64_t ldb, T* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if constexpr (std::is_floating_point_v<T>) {
    if (k > 0) {
      use_one_thread();
      const auto ta = transpose_a ? CblasTrans : CblasNoTrans, tb = transpose_b ? CblasTrans : CblasNoTrans;
      const int M = blas_int(m), N = blas_int(n), K = blas_int(k);
      const int la = blas_int(lda), lb = blas_int(ldb), lc = blas_int(ldc);
      if constexpr (std::is_same_v<T, float>)
        cblas_sgemm(CblasRowMajor, ta, tb, M, N, K, 1.0f, a, la, b, lb, 0.0f, c, lc);
      else
        cblas_dgemm(CblasRowMajor, ta, tb, M, N, K, 1.0, a, la, b, lb, 0.0, c, lc);
      return;
    }
  }
  // Integers wrap, so they are summed unsigned; uint64_t holds every narrower product modulo its own range.
  using Sum = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      Sum sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        const T x = transpose_a ? a[l * lda + i] : a[i * lda + l];
        const T y = transpose_b ? b[j * ldb + l] : b[l * ldb + j];
        sum += static_cast<Sum>(x) * static_cast<Sum>(y);
      }
      c[i * ldc + j] = static_cast<T>(sum);
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

#define INSTANCE(T)                                                                                          \
  template void multiply<T>(bool, bool, int64_t, int64_t, int64_t, const T*, int64_t, const T*, int64_t, T*, \
                            int64_t);
INSTANCE(float)
INSTANCE(double)
INSTANCE(int32_t)
INSTANCE(int64_t)
INSTANCE(uint32_t)
INSTANCE(uint64_t)
#undef INSTANCE

}  // namespace sinter
