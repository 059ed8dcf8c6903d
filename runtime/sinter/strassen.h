// Strassen's product of matrices in Winograd's form: seven products of quarters instead of eight.
//
//   [C11 C12]   [X11 X12]   [W11 W12]
//   [C21 C22] = [X21 X22] * [W21 W22]
//
//   S1 = X21 + X22   S2 = S1 - X11   S3 = X11 - X21   S4 = X12 - S2
//   T1 = W12 - W11   T2 = W22 - T1   T3 = W22 - W12   T4 = T2 - W21
//   U2 = X11 W11 + S2 T2      V = U2 + S1 T1     P6 = S3 T3     U3 = U2 + P6
//   C11 = X11 W11 + X12 W21   C12 = V + S4 W22   C22 = V + P6   C21 = U3 - X22 T4
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

// One of the seven products, in the order in which the weights are packed: W11, W21, T2, T1, W22, T3, -T4.
//
// What a tile does with its sums, keep them or end a quarter of C, is compiled apart: tests of the table's
// fields, different for each product, are badly foreseen by a processor (2 to 4 % of a layer on Zen 3). What
// differs for one product only stays a test; written out for each of them the code would be twice as large,
// which costs as much.
struct StrassenStep {
  int from;    // the number of the kept sums that it starts from; -1: from zero
  int to;      // ... where its own are kept, -1: nowhere
  int result;  // which quarter of C it ends, 2 * row + column, -1: none
  // Its sums are added to those at `to`, and with those kept under 1 they are the quarter of C.
  constexpr bool both() const { return to >= 0 && result >= 0; }
};
constexpr StrassenStep kStrassenSteps[7] = {
    {-1, 0, -1},  // X11 W11
    {0, -1, 0},   // C11 = X11 W11 + X12 W21
    {0, 0, -1},   // U2 = X11 W11 + S2 T2
    {0, 1, -1},   // V = U2 + S1 T1
    {1, -1, 1},   // C12 = V + S4 W22
    {-1, 0, 3},   // U3 = U2 + S3 T3, C22 = V + S3 T3
    {0, -1, 2},   // C21 = U3 - X22 T4
};

// product(ends, q) for each of the seven; ends, a type: whether it ends a quarter of C.
template <class F>
SINTER_INLINE void strassen_steps(F product) {
  for (int q = 0; q < 7; q++) {
    if (kStrassenSteps[q].result < 0)
      product(std::false_type(), q);
    else
      product(std::true_type(), q);
  }
}

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

// The left factor of one of the seven products, quarter by quarter: x of each, `apart` floats from the upper
// ones to the lower.
struct StrassenFactor {
  const float* x;
  std::ptrdiff_t apart;
};

// The left factor of product Q of the quarters of x, each of which has four again: two above, `quarter`
// floats each, and two `apart` floats behind them. Its own sums S2, S1, S4, S3 go side by side to `sums`. A
// factor that is a sum goes to the rows of `to`, the upper half's quarters and then the lower half's. Rows
// are `pitch` floats apart everywhere.
template <int Q>
[[gnu::noinline, maybe_unused]] static StrassenFactor strassen_left(const float* const* x,
                                                                    std::ptrdiff_t apart, std::int64_t rows,
                                                                    std::int64_t quarter, std::int64_t pitch,
                                                                    float* to, float* sums) {
  constexpr bool kSum = Q >= 2 && Q <= 5;
  const int rest = static_cast<int>(quarter % kLanes);
  for (std::int64_t i = 0; i < rows; i++) {
    const auto block = [&](std::int64_t k, int lanes) __attribute__((always_inline)) {
      f32v f[4];
      SINTER_UNROLL
      for (int b = 0; b < 4; b++) {
        const std::ptrdiff_t at = i * pitch + k + b % 2 * quarter + b / 2 * apart;
        float* const own = to + i * pitch + k + b * quarter;
        if constexpr (Q == 0) f[b] = load_lanes(x[0] + at, lanes);
        if constexpr (Q == 1) f[b] = load_lanes(x[1] + at, lanes);
        if constexpr (Q >= 2 && Q <= 4)
          f[b] = add(load_lanes(x[2] + at, lanes), load_lanes(x[3] + at, lanes));
        if constexpr (Q == 2 || Q == 4) f[b] = sub(f[b], load_lanes(x[0] + at, lanes));
        if constexpr (Q == 4) f[b] = sub(load_lanes(x[1] + at, lanes), f[b]);
        if constexpr (Q == 5) f[b] = sub(load_lanes(x[0] + at, lanes), load_lanes(x[2] + at, lanes));
        if constexpr (Q == 6) f[b] = load_lanes(x[3] + at, lanes);
        if constexpr (kSum) store_lanes(own, f[b], lanes);
      }
      float* const s = sums + i * pitch + k;
      const f32v s1 = add(f[2], f[3]), s2 = sub(s1, f[0]);
      store_lanes(s, s2, lanes);
      store_lanes(s + quarter, s1, lanes);
      store_lanes(s + 2 * quarter, sub(f[1], s2), lanes);
      store_lanes(s + 3 * quarter, sub(f[0], f[2]), lanes);
    };
    std::int64_t k = 0;
    for (; k + kLanes <= quarter; k += kLanes) block(k, kLanes);
    if (rest > 0) block(k, rest);
  }
  if (kSum) return {to, 2 * quarter};
  return {x[Q == 0 ? 0 : Q == 1 ? 1 : 3], apart};
}
SINTER_INLINE StrassenFactor strassen_left(int q, const float* const* x, std::ptrdiff_t apart,
                                           std::int64_t rows, std::int64_t quarter, std::int64_t pitch,
                                           float* to, float* sums) {
  switch (q) {
    case 0: return strassen_left<0>(x, apart, rows, quarter, pitch, to, sums);
    case 1: return strassen_left<1>(x, apart, rows, quarter, pitch, to, sums);
    case 2: return strassen_left<2>(x, apart, rows, quarter, pitch, to, sums);
    case 3: return strassen_left<3>(x, apart, rows, quarter, pitch, to, sums);
    case 4: return strassen_left<4>(x, apart, rows, quarter, pitch, to, sums);
    case 5: return strassen_left<5>(x, apart, rows, quarter, pitch, to, sums);
    default: return strassen_left<6>(x, apart, rows, quarter, pitch, to, sums);
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
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) sum.a[t][o] = load(kept + step.from * plane + (t * OB + o) * kLanes);
  }
}

// Keeps the sums of a product, or makes them those of the quarter of C that it ends.
template <bool Ends, int OB, int T>
SINTER_INLINE void strassen_keep(Tile<OB, T>& sum, float* kept, std::ptrdiff_t plane,
                                 const StrassenStep& step) {
  if (Ends && !step.both()) return;
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      float* const own = kept + (t * OB + o) * kLanes;
      if constexpr (!Ends) {
        store(own + step.to * plane, sum.a[t][o]);
      } else {
        store(own, add(load(own), sum.a[t][o]));
        sum.a[t][o] = add(load(own + plane), sum.a[t][o]);
      }
    }
  }
}

// Rows of a tile that lie in the result: the first one may lie elsewhere, as another part of the result has
// its place. The last vector has Last lanes.
struct StrassenRows {
  float *head, *rows;
  std::ptrdiff_t pitch;
};
SINTER_INLINE float* strassen_row(const StrassenRows& r, int t) {
  return t == 0 ? r.head : r.rows + t * r.pitch;
}
template <int Last, int OB, int T>
SINTER_INLINE void strassen_add(Tile<OB, T>& sum, const StrassenRows& kept) {
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++)
      sum.a[t][o] =
          add(sum.a[t][o], load_lanes(strassen_row(kept, t) + o * kLanes, o == OB - 1 ? Last : kLanes));
  }
}
template <int Last, int OB, int T>
SINTER_INLINE void strassen_keep(const Tile<OB, T>& sum, const StrassenRows& kept) {
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++)
      store_lanes(strassen_row(kept, t) + o * kLanes, sum.a[t][o], o == OB - 1 ? Last : kLanes);
  }
}

// As strassen_start and strassen_keep, for the first level around the second: sums of one of its products,
// which it keeps or which are a quarter's of C. `rows` gives the rows of what it keeps by its number.
template <int Last, class Rows, int OB, int T>
SINTER_INLINE void strassen_whole(Tile<OB, T>& sum, const StrassenStep& step, Rows rows) {
  if (step.both()) {
    const StrassenRows first = rows(0), second = rows(1);
    SINTER_UNROLL
    for (int t = 0; t < T; t++) {
      SINTER_UNROLL
      for (int o = 0; o < OB; o++) {
        const int lanes = o == OB - 1 ? Last : kLanes;
        float* const to = strassen_row(first, t) + o * kLanes;
        store_lanes(to, add(load_lanes(to, lanes), sum.a[t][o]), lanes);
        sum.a[t][o] = add(load_lanes(strassen_row(second, t) + o * kLanes, lanes), sum.a[t][o]);
      }
    }
    return;
  }
  if (step.from >= 0) strassen_add<Last>(sum, rows(step.from));
  if (step.to >= 0) strassen_keep<Last>(sum, rows(step.to));
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_STRASSEN_H_
