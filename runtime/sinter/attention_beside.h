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
  const float* constants = detail::kExp2Constants;
  __asm__("" : "+r"(constants));  // from memory each time: the registers belong to the product
  f32v sum = waiting.sum[t];
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) {
    const f32v e = detail::exp2_from(sub(load(row + o * kLanes), splat(waiting.top[t])), constants);
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
