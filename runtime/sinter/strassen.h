// Strassen's product of matrices in Winograd's form: seven products of quarters instead of eight.
//
//   [C11 C12]   [X11 X12]   [W11 W12]
//   [C21 C22] = [X21 X22] * [W21 W22]
//
//   S1 = X21 + X22   S2 = S1 - X11   S3 = X11 - X21   S4 = X12 - S2
//   T1 = W12 - W11   T2 = W22 - T1   T3 = W22 - W12   T4 = T2 - W21
//   U2 = X11 W11 + S2 T2      U3 = U2 + S3 T3      P5 = S1 T1
//   C11 = X11 W11 + X12 W21   C21 = U3 - X22 T4    C22 = U3 + P5   C12 = U2 + P5 + S4 W22
//
// (V. Strassen, "Gaussian elimination is not optimal", 1969; S. Winograd, "On multiplication of 2 x 2
// matrices", 1971.) The sums T of the weights are made when the model is compiled, so only four sums over X
// are left. A product that another one builds on keeps its sums, and that one starts from them.
#ifndef SINTER_STRASSEN_H_
#define SINTER_STRASSEN_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/strassen.h"
#endif
#include "sinter/mac.h"

namespace sinter::SINTER_ISA {

// One of the seven products, in the order in which the weights are packed: W11, W21, T2, T3, -T4, T1, W22.
struct StrassenStep {
  int from, plus;    // sums that the product starts from: kept ones, -1: none
  int keep;          // where its sums are kept, -1: nowhere
  int result, with;  // which quarter of C it ends, 2 * row + column, -1: none; with kept sums added, -1: none
};
constexpr StrassenStep kStrassenSteps[7] = {
    {-1, -1, 0, -1, -1},  // X11 W11
    {0, -1, -1, 0, -1},   // C11 = ... + X12 W21
    {0, -1, 1, -1, -1},   // U2 = X11 W11 + S2 T2
    {1, -1, 2, -1, -1},   // U3 = U2 + S3 T3
    {2, -1, -1, 2, -1},   // C21 = U3 - X22 T4
    {-1, -1, 0, 3, 2},    // P5 = S1 T1, C22 = P5 + U3
    {0, 1, -1, 1, -1},    // C12 = P5 + U2 + S4 W22
};

// The sums S1 to S4 of x's quarters: `rows` rows from x and from `below`, each of two halves of `half`
// floats. Rows of x, below, s and s34 are `pitch` floats apart. S1 and S2 go to the halves of s, S3 and S4 to
// those of s34.
[[gnu::noinline, maybe_unused]] static void strassen_sums(const float* x, const float* below,
                                                          std::int64_t rows, std::int64_t half,
                                                          std::int64_t pitch, float* s, float* s34) {
  for (std::int64_t i = 0; i < rows; i++) {
    const float* const upper = x + i * pitch;
    const float* const lower = below + i * pitch;
    float* const to = s + i * pitch;
    float* const to34 = s34 + i * pitch;
    // Two at a time: more streams at once than the processor foresees would wait for memory.
    const auto first = [&](std::int64_t k, int lanes) __attribute__((always_inline)) {
      const f32v s1 = add(load_lanes(lower + k, lanes), load_lanes(lower + half + k, lanes));
      store_lanes(to + k, s1, lanes);
      store_lanes(to + half + k, sub(s1, load_lanes(upper + k, lanes)), lanes);
    };
    const auto second = [&](std::int64_t k, int lanes) __attribute__((always_inline)) {
      const f32v x11 = load_lanes(upper + k, lanes), x12 = load_lanes(upper + half + k, lanes);
      store_lanes(to34 + k, sub(x11, load_lanes(lower + k, lanes)), lanes);
      store_lanes(to34 + half + k, sub(x12, load_lanes(to + half + k, lanes)), lanes);
    };
    const int rest = static_cast<int>(half % kLanes);
    std::int64_t k = 0;
    for (; k + kLanes <= half; k += kLanes) first(k, kLanes);
    if (rest > 0) first(k, rest);
    for (k = 0; k + kLanes <= half; k += kLanes) second(k, kLanes);
    if (rest > 0) second(k, rest);
  }
}

// What a tile's product starts from: the sums that earlier ones kept. Kept tiles [T][OB][kLanes] lie `plane`
// floats apart, one for each number that a step may name.
template <int OB, int T>
SINTER_INLINE void strassen_start(Tile<OB, T>& sum, const float* kept, std::ptrdiff_t plane,
                                  const StrassenStep& step) {
  if (step.from < 0) {
    tile_bias(sum, nullptr);
    return;
  }
  const float* const from = kept + step.from * plane;
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) sum.a[t][o] = load(from + (t * OB + o) * kLanes);
  }
  if (step.plus < 0) return;
  const float* const plus = kept + step.plus * plane;
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) sum.a[t][o] = add(sum.a[t][o], load(plus + (t * OB + o) * kLanes));
  }
}

// Keeps the sums of a product, and makes them those of the quarter of C that it ends.
template <int OB, int T>
SINTER_INLINE void strassen_keep(Tile<OB, T>& sum, float* kept, std::ptrdiff_t plane,
                                 const StrassenStep& step) {
  if (step.keep >= 0) {
    float* const to = kept + step.keep * plane;
    SINTER_UNROLL
    for (int t = 0; t < T; t++) {
      SINTER_UNROLL
      for (int o = 0; o < OB; o++) store(to + (t * OB + o) * kLanes, sum.a[t][o]);
    }
  }
  if (step.with < 0) return;
  const float* const with = kept + step.with * plane;
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) sum.a[t][o] = add(sum.a[t][o], load(with + (t * OB + o) * kLanes));
  }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_STRASSEN_H_
