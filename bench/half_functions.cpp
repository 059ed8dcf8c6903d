// Vector functions of halves: modelled cycles for 4,096 elements from and to the first-level cache, in halves
// and through vectors of floats (docs/decisions/0020-half-arithmetic.md).
//
//   flags="-static -std=c++17 -O2 -fno-math-errno -fno-trapping-math -ffp-contract=fast -fno-tree-vectorize"
//   aarch64-linux-gnu-g++ $flags -Iruntime bench/half_functions.cpp -o half_functions
//   armsim --cpu cortex-a76,cortex-a55 --isa max --regions -- ./half_functions tanh [floats]
#include "sinter/half_arithmetic.h"
#include "sinter/simd_neon.h"
// The words first.
#include <cstdio>
#include <cstring>

#include "sinter/rows_half.h"

using namespace sinter::neon;
using sinter::half;

namespace {

half x[4096], y[4096];

template <class F>
[[gnu::noinline]] void apply(F f) {
  for (int i = 0; i < 4096; i += kHalfLanes) store(y + i, f(load<f16v>(x + i)));
}
template <class F>
void measure(F f) {
  apply(f);
  __asm__ volatile("hint #112" ::: "memory");
  apply(f);
  __asm__ volatile("hint #113" ::: "memory");
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 0; i < 4096; i++) x[i] = sinter::to_half(static_cast<float>(i - 2048) * 0x1p-8f);
  const char* const name = argc > 1 ? argv[1] : "tanh";
  const bool floats = argc > 2;
#define FUNCTION(NAME, CALL)                                                           \
  if (std::strcmp(name, NAME) == 0) {                                                  \
    const auto f = [](auto v) __attribute__((always_inline)) { return CALL; };         \
    if (floats)                                                                        \
      measure([&](f16v v) __attribute__((always_inline)) { return in_floats(v, f); }); \
    else                                                                               \
      measure(f);                                                                      \
  }
  FUNCTION("exp", exp(v))
  FUNCTION("exp_nonpos", exp_nonpos(v))
  FUNCTION("tanh", tanh(v))
  FUNCTION("sigmoid", sigmoid(v))
  FUNCTION("silu", silu(v))
  FUNCTION("gelu", gelu(v))
  FUNCTION("gelu_tanh", gelu_tanh(v))
  FUNCTION("hard_swish", hard_swish(v))
  FUNCTION("relu", relu(v))
  FUNCTION("sqrt", sqrt(v))
  FUNCTION("erf", erf(v))
  FUNCTION("softplus", softplus(v))
  if (std::strcmp(name, "softmax") == 0) {
    softmax_row(x, 4096, y);
    __asm__ volatile("hint #112" ::: "memory");
    softmax_row(x, 4096, y);
    __asm__ volatile("hint #113" ::: "memory");
  }
  if (std::strcmp(name, "layer_norm") == 0) {
    layer_norm_row(x, 4096, x, x, 1e-5f, y);
    __asm__ volatile("hint #112" ::: "memory");
    layer_norm_row(x, 4096, x, x, 1e-5f, y);
    __asm__ volatile("hint #113" ::: "memory");
  }
  if (std::strcmp(name, "depthwise") == 0) {  // 3x3, 8 channels, 8 outputs at a time, 8 x 64 of them
    const auto row = [&]() __attribute__((noinline)) {
      for (int r = 0; r < 4; r++)
        for (int o = 0; o < 56; o += 8) {
          f16v sum[8];
          for (f16v& s : sum) s = splat<f16v>(0.0f);
          depthwise_tile<3, 3, 1, 8>(x + r * 512 + o * 8, 512, 8, x, 8, 0, 3, 8, sum);
          for (int t = 0; t < 8; t++) store(y + r * 512 + (o + t) * 8, sum[t]);
        }
    };
    row();
    __asm__ volatile("hint #112" ::: "memory");
    row();
    __asm__ volatile("hint #113" ::: "memory");
  }
  std::printf("%d\n", y[1].bits);
}
