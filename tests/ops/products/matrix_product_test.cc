// Products for evaluate(): the bits are those of sums in double, k upwards, whatever the machine, the blocks
// and the strides.
#include "ops/products/matrix_product.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ops/products/contraction.h"

extern "C" {
#include <cblas.h>
}

namespace sinter {
namespace {

template <class T>
std::vector<T> numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> any(-1, 1);
  std::vector<T> v(static_cast<size_t>(count));
  for (T& x : v) x = static_cast<T>(any(random));
  return v;
}

template <class T>
void expect_sums_in_order(int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
  SCOPED_TRACE(::testing::Message() << m << "x" << n << "x" << k << " " << ta << tb);
  const int64_t lda = (ta ? m : k) + 3, ldb = (tb ? k : n) + 2, ldc = n + 1;
  const std::vector<T> a = numbers<T>((ta ? k : m) * lda, 1), b = numbers<T>((tb ? n : k) * ldb, 2);
  std::vector<T> c(static_cast<size_t>(m * ldc), T(7)), want = c;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        const size_t of_a = static_cast<size_t>(ta ? l * lda + i : i * lda + l);
        const size_t of_b = static_cast<size_t>(tb ? j * ldb + l : l * ldb + j);
        const volatile double product = static_cast<double>(a[of_a]) * static_cast<double>(b[of_b]);
        sum += product;
      }
      want[static_cast<size_t>(i * ldc + j)] = static_cast<T>(sum);
    }
  multiply(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, c.data(), ldc);
  EXPECT_EQ(std::memcmp(c.data(), want.data(), c.size() * sizeof(T)), 0);
}

TEST(MatrixProduct, SumsInOrder) {
  const int64_t shapes[][3] = {{1, 1, 1},    {1, 9, 300},   {9, 1, 300},     {6, 8, 256},  {7, 9, 257},
                               {5, 130, 40}, {193, 17, 33}, {200, 140, 600}, {2, 300, 513}};
  for (const auto& [m, n, k] : shapes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        expect_sums_in_order<float>(m, n, k, ta, tb);
        expect_sums_in_order<double>(m, n, k, ta, tb);
      }
}

// Another's sums of the same terms, in another order and rounded at each addition.
TEST(MatrixProduct, AgreesWithOpenBlas) {
  for (const auto& [m, n, k] : {std::tuple(3, 5, 7), std::tuple(70, 33, 300), std::tuple(1, 200, 900)}) {
    const std::vector<float> a = numbers<float>(m * k, 3), b = numbers<float>(k * n, 4);
    std::vector<float> c(static_cast<size_t>(m * n)), want = c;
    multiply(false, false, m, n, k, a.data(), k, b.data(), n, c.data(), n);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0f, a.data(), k, b.data(), n, 0.0f,
                want.data(), n);
    for (size_t i = 0; i < c.size(); ++i) EXPECT_NEAR(c[i], want[i], 3e-5) << i;
  }
}

TEST(MatrixProduct, NoTermsAreZero) {
  const std::vector<float> none;
  std::vector<float> c(6, 5.0f);
  multiply(false, false, 2, 3, 0, none.data(), 1, none.data(), 3, c.data(), 3);
  EXPECT_EQ(c, std::vector<float>(6, 0.0f));
  multiply(false, false, 0, 3, 2, none.data(), 2, c.data(), 3, c.data(), 3);
}

}  // namespace
}  // namespace sinter
