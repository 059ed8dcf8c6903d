// The softmax of one tile of queries beside the products of the next, where the scores of all keys fit one
// block: powers of two keep the units for additions busy, products those for multiply-adds, and a processor
// that looks some hundred instructions ahead does both at once. A row of scores becomes weights after every
// few values of k. For AVX-512, whose registers hold a tile of sums and the few values that this takes.
#ifndef SINTER_ATTENTION_BESIDE_H_
#define SINTER_ATTENTION_BESIDE_H_
#include "sinter/attention.h"

namespace sinter::SINTER_ISA {

namespace detail {
// The greatest lanes of four vectors, and their sums, in the first four lanes.
SINTER_INLINE f32v hmax_four(f32v a, f32v b, f32v c, f32v d) {
  transpose_quarters(a, b, c, d);
  f32v m = max(max(a, b), max(c, d));
  m = max(m, swap_lanes<8>(m));
  return max(m, swap_lanes<4>(m));
}
SINTER_INLINE f32v hsum_four(f32v a, f32v b, f32v c, f32v d) {
  transpose_quarters(a, b, c, d);
  f32v s = add(add(a, b), add(c, d));
  s = add(s, swap_lanes<8>(s));
  return add(s, swap_lanes<4>(s));
}

// exp2_nonpos (math.h) to 2 ULP in fewer multiply-adds, as these are what products keep busy: 2^x = 2^(whole
// 32nds) * 2^r, the first from a table whose place is in the low bits of x + kShift32, rounded down.
constexpr float kShift32 = 393216.0f;  // 1.5 * 2^18
struct Exp2Table {
  float power[32];            // 2^(i / 32)
  float square, line, shift;  // 2^r = 1 + line * r + square * r^2
};
alignas(64) constexpr Exp2Table kExp2Table = {
    {1.0f,       1.0218972f, 1.0442737f, 1.0671405f, 1.0905077f, 1.1143868f, 1.1387886f, 1.1637249f,
     1.1892071f, 1.2152474f, 1.2418578f, 1.269051f,  1.2968396f, 1.3252367f, 1.3542556f, 1.38391f,
     1.4142135f, 1.4451808f, 1.4768262f, 1.5091645f, 1.5422108f, 1.5759809f, 1.6104903f, 1.6457555f,
     1.6817929f, 1.7186193f, 1.7562522f, 1.7947091f, 1.8340081f, 1.8741677f, 1.9152066f, 1.9571441f},
    0.24265271f,
    0.69312376f,
    kShift32};
SINTER_INLINE f32v exp2_by_table(f32v x, const Exp2Table* table) {
  const f32v r = above_32nd(x);
  const f32v power = look_up(table->power, bits(add_down(x, splat(table->shift))));
  const f32v slope = fma(splat(table->square), r, splat(table->line));
  return times_power_of_2(fma(mul(power, r), slope, power), x);
}
}  // namespace detail

// Scores of `count` queries, at most T, all of them known. `top`: each row's greatest; `sum`: of the weights
// that are made already, by lane.
template <int T>
struct WaitingRows {
  static constexpr int kFours = (T + 3) / 4 * 4;
  float* scores;
  std::ptrdiff_t pitch;
  std::ptrdiff_t count = 0;
  float top[kFours] = {};
  f32v sum[kFours] = {};
};

// Where greatest[t] is the greatest score in each lane, at least the lowest float.
template <int T, int W>
SINTER_INLINE void wait(WaitingRows<W>& waiting, const f32v (&greatest)[T], float* scores) {
  waiting.scores = scores;
  waiting.count = T;
  SINTER_UNROLL
  for (int t = 0; t < T; t += 4) {
    const auto row = [&](int u) { return greatest[t + u < T ? t + u : T - 1]; };
    store_n(waiting.top + t, detail::hmax_four(row(0), row(1), row(2), row(3)), 4);
  }
  SINTER_UNROLL
  for (int t = 0; t < WaitingRows<W>::kFours; t++) waiting.sum[t] = zero();
}

// The sums of all rows.
template <int W>
SINTER_INLINE void sums_of(const WaitingRows<W>& waiting, float (&sums)[WaitingRows<W>::kFours]) {
  const f32v* const s = waiting.sum;
  SINTER_UNROLL
  for (int t = 0; t < WaitingRows<W>::kFours; t += 4)
    store_n(sums + t, detail::hsum_four(s[t], s[t + 1], s[t + 2], s[t + 3]), 4);
}

// OB vectors of row t, from key j on, become weights.
template <int OB, int W>
SINTER_INLINE void weigh(WaitingRows<W>& waiting, std::ptrdiff_t t, std::ptrdiff_t j) {
  float* const row = waiting.scores + t * waiting.pitch + j;
  const detail::Exp2Table* table = &detail::kExp2Table;
  __asm__("" : "+r"(table));  // from memory each time: the registers belong to the product
  f32v sum = waiting.sum[t];
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) {
    const f32v e = detail::exp2_by_table(sub(load(row + o * kLanes), splat(waiting.top[t])), table);
    store(row + o * kLanes, e);
    sum = add(sum, e);
  }
  waiting.sum[t] = sum;
}

// All n of them, with nothing beside: n is rounded up to whole vectors, where -inf must be.
template <int W>
[[gnu::noinline]] void weigh_all(WaitingRows<W>& waiting, std::ptrdiff_t n) {
  for (std::ptrdiff_t t = 0; t < waiting.count; t++)
    for (std::ptrdiff_t j = 0; j < n; j += kLanes) weigh<1>(waiting, t, j);
}

// mac beside which the waiting rows' scores of the OB vectors of keys from j on become weights.
template <int OB, int T, int W>
SINTER_INLINE void mac_beside(Tile<OB, T>& acc, const float* x, std::ptrdiff_t pixel_stride, const float* w,
                              std::ptrdiff_t k, WaitingRows<W>& waiting, std::ptrdiff_t j) {
  constexpr int kStep = 8;
  const std::ptrdiff_t steps = k / kStep;
  std::ptrdiff_t t = 0, due = 0;
  for (std::ptrdiff_t i = 0; i < steps; i++) {
    mac_few<kStep>(acc, x, pixel_stride, w);
    x += kStep;
    w += kStep * OB * kLanes;
    for (due += waiting.count; due >= steps; due -= steps) weigh<OB>(waiting, t++, j);
  }
  mac(acc, x, pixel_stride, w, k % kStep);
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_ATTENTION_BESIDE_H_
