// rows_half.h and Winograd's transforms of halves against doubles: tails, clipped taps, large and equal
// values.

// clang-format off
#include <gtest/gtest.h>
#include "sinter/half_arithmetic.h"
#include "simd_isa.h"
#include "half_reference.h"
#include "sinter/rows_half.h"
#include "sinter/winograd.h"
// clang-format on

namespace isa = sinter::SINTER_ISA;
using isa::f16v;
using isa::kHalfLanes;
using sinter::half;

namespace {

std::vector<half> random_halves(std::ptrdiff_t n, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<half> v(static_cast<size_t>(n));
  for (half& x : v) x = sinter::to_half(uniform(random));
  return v;
}
double at(const std::vector<half>& v, std::ptrdiff_t i) { return value(v[static_cast<size_t>(i)]); }

// Bit by bit: products are summed in the order of the taps.
template <int K, int Stride, int T>
void check_depthwise() {
  constexpr int kWide = (T - 1) * Stride + K;
  for (int channels : {8, 5})
    for (int first : {0, 1})
      for (int last : {K - 1, K}) {
        const std::vector<half> x = random_halves(K * kWide * channels, 1),
                                w = random_halves(K * K * channels, 2);
        f16v sum[T];
        for (f16v& s : sum) s = isa::splat<f16v>(0.25f);
        isa::depthwise_tile<K, K, Stride, T>(x.data(), kWide * channels, channels, w.data(), channels, first,
                                             last, channels, sum);
        for (int t = 0; t < T; t++) {
          half got[kHalfLanes];
          isa::store(got, sum[t]);
          for (int c = 0; c < channels; c++) {
            double want = 0.25;
            for (int ky = first; ky < last; ky++)
              for (int kx = 0; kx < K; kx++)
                want = nearest_half(at(x, (ky * kWide + t * Stride + kx) * channels + c) *
                                        at(w, (ky * K + kx) * channels + c) +
                                    want);
            ASSERT_EQ(value(got[c]), want)
                << K << " stride " << Stride << " output " << t << " channel " << c;
          }
        }
      }
}
TEST(HalfRows, Depthwise) {
  check_depthwise<3, 1, 1>();
  check_depthwise<3, 1, 8>();
  check_depthwise<3, 2, 4>();
  check_depthwise<5, 1, 4>();
  check_depthwise<5, 2, 2>();
}

TEST(HalfRows, Means) {
  // 3,000 rows of 40: their sum, 120,000, is no half.
  for (int lanes = 1; lanes <= kHalfLanes; lanes++) {
    std::vector<half> x(static_cast<size_t>(3000 * lanes));
    for (size_t i = 0; i < x.size(); i++) x[i] = sinter::to_half(40.0f + static_cast<float>(i % 7));
    half got[kHalfLanes];
    isa::store(got, isa::column_means(x.data(), 3000, lanes, lanes));
    for (int l = 0; l < lanes; l++) {
      double sum = 0;
      for (std::ptrdiff_t r = 0; r < 3000; r++) sum += at(x, r * lanes + l);
      EXPECT_LE(half_ulps(value(got[l]), sum / 3000), 0.6) << lanes;
    }
  }
}

TEST(HalfRows, Softmax) {
  for (std::ptrdiff_t n : {1, 2, 7, 8, 9, 16, 77, 1000})
    for (float scale : {0.0f, 1.0f, 20.0f, 60000.0f}) {
      const std::vector<half> x = random_halves(n, static_cast<unsigned>(n), scale);
      std::vector<half> y(x.size());
      isa::softmax_row(x.data(), n, y.data());
      double top = -HUGE_VAL, total = 0;
      for (std::ptrdiff_t i = 0; i < n; i++) top = std::max(top, at(x, i));
      for (std::ptrdiff_t i = 0; i < n; i++) total += std::exp(at(x, i) - top);
      for (std::ptrdiff_t i = 0; i < n; i++) {
        const double want = std::exp(at(x, i) - top) / total;
        EXPECT_LE(std::fabs(at(y, i) - want), std::max(2 * half_step(want), 0x1p-24)) << n << " " << scale;
      }
      std::vector<half> same = x;
      isa::softmax_row(same.data(), n, same.data());
      EXPECT_EQ(std::memcmp(same.data(), y.data(), same.size() * sizeof(half)), 0);
    }
}

TEST(HalfRows, LayerNorm) {
  for (std::ptrdiff_t n : {1, 3, 8, 13, 312, 768})
    for (float offset : {0.0f, 100.0f}) {
      std::vector<half> x = random_halves(n, static_cast<unsigned>(n), 3);
      for (half& h : x) h = sinter::to_half(sinter::to_float(h) + offset);
      const std::vector<half> scale = random_halves(n, 5), shift = random_halves(n, 6);
      std::vector<half> y(x.size()), plain(x.size());
      isa::layer_norm_row(x.data(), n, scale.data(), shift.data(), 1e-5f, y.data());
      isa::layer_norm_row(x.data(), n, scale.data(), nullptr, 1e-5f, plain.data());
      double mean = 0, variance = 0;
      for (std::ptrdiff_t i = 0; i < n; i++) mean += at(x, i) / static_cast<double>(n);
      for (std::ptrdiff_t i = 0; i < n; i++)
        variance += std::pow(at(x, i) - mean, 2) / static_cast<double>(n);
      for (std::ptrdiff_t i = 0; i < n; i++) {
        const double scaled = (at(x, i) - mean) / std::sqrt(variance + 1e-5) * at(scale, i);
        EXPECT_NEAR(at(y, i), scaled + at(shift, i), half_step(scaled + at(shift, i)) * 0.6 + 1e-4) << n;
        EXPECT_NEAR(at(plain, i), scaled, half_step(scaled) * 0.6 + 1e-4) << n;
      }
    }
}

// One tile: the transforms, the products in double, the transform back; weights of all ones make each output
// the sum of its nine inputs.
template <int M>
void check_winograd(double bound) {
  constexpr int N = M + 2, kPitch = 16, kPlane = kPitch;
  const std::vector<half> x = random_halves(N * N * 11, 3);
  std::vector<half> v(N * N * kPlane);
  isa::winograd_input<M, M, 3, 3, 1, 1>(x.data(), N, N, 11, 0, 0, 1, v.data(), kPlane, kPitch);
  // Sums of the rows of G.
  const double s = std::sqrt(2.0);
  const std::vector<double> g =
      M == 2 ? std::vector<double>{1, 1.5, 0.5, 1}
             : std::vector<double>{1, -(3 + s) / 3, -(3 - s) / 3, (3 + s) / 6, (3 - s) / 6, 1};
  for (int i = 0; i < N * N; i++)
    for (int c = 0; c < 11; c++) {
      half& h = v[static_cast<size_t>(i * kPlane + c)];
      h = sinter::to_half(
          static_cast<float>(value(h) * g[static_cast<size_t>(i / N)] * g[static_cast<size_t>(i % N)]));
    }
  for (int c = 0; c < 16; c += kHalfLanes)
    isa::winograd_output<M, M, 3, 3, 1, 1>(v.data() + c, kPlane, M, M, [&](int i, int j, f16v sum) {
      half got[kHalfLanes];
      isa::store(got, sum);
      for (int l = 0; l < kHalfLanes; l++) {
        double want = 0;
        for (int k = 0; k < 9 && c + l < 11; k++) want += at(x, ((i + k / 3) * N + j + k % 3) * 11 + c + l);
        EXPECT_NEAR(value(got[l]), want, bound) << M << " channel " << c + l;
      }
    });
}
TEST(HalfRows, Winograd) {
  check_winograd<2>(0.012);
  check_winograd<4>(0.05);
}

}  // namespace

#include "sinter/simd_end.h"
