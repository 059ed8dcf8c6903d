// Units for different instruction sets in one program: each computes the same layer, none leaks into another.
#include "simd_coexist.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace {

using Layer = void (*)(const float*, const float*, float*, int);

TEST(SimdCoexist, EveryInstructionSetOfThisCpu) {
  std::vector<Layer> layers = {coexist_scalar::layer};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) layers.push_back(coexist_sse42::layer);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) layers.push_back(coexist_avx2::layer);
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    layers.push_back(coexist_avx512::layer);
  }
#elif defined(__aarch64__)
  layers.push_back(coexist_neon::layer);
#endif
  for (int n : {1, 5, 16, 37}) {
    std::vector<float> x(static_cast<size_t>(n)), w(x), y(x);
    for (size_t i = 0; i < x.size(); i++) {
      x[i] = static_cast<float>(i) * 0.25f - 3.0f;
      w[i] = 1.5f - static_cast<float>(i) * 0.125f;
    }
    for (Layer layer : layers) {
      layer(x.data(), w.data(), y.data(), n);
      for (size_t i = 0; i < x.size(); i++) {
        const double z =
            static_cast<double>(x[i]) * static_cast<double>(w[i]) + std::tanh(static_cast<double>(x[i]));
        EXPECT_NEAR(static_cast<double>(y[i]), z / (1 + std::exp(-z)), 1e-5) << n << " " << i;
      }
    }
  }
}

}  // namespace
