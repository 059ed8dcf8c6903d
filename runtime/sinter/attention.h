// The softmax of attention, taken block by block of keys: a row of scores keeps its greatest one and the sum
// of exp(score - greatest) so far; when a later block raises the maximum, what was summed before is scaled
// down.
#ifndef SINTER_ATTENTION_H_
#define SINTER_ATTENTION_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/attention.h"
#endif

#include "sinter/mac.h"
#include "sinter/math.h"

namespace sinter::SINTER_ISA {

// Scores [0, first) and [last, n rounded up to whole vectors) take no part.
SINTER_INLINE void exclude(float* scores, std::ptrdiff_t n, std::ptrdiff_t first, std::ptrdiff_t last) {
  const float none = -__builtin_inff();
  for (std::ptrdiff_t j = 0; j < first && j < n; j++) scores[j] = none;
  const std::ptrdiff_t end = (n + kLanes - 1) / kLanes * kLanes;
  for (std::ptrdiff_t j = last < 0 ? 0 : last; j < end; j++) scores[j] = none;
}

// scores[j] becomes exp(scores[j] - top), top the greatest of all blocks up to this one, and joins `sum`. top
// starts at the lowest float, so that a row of nothing but -inf sums to 0. Returns the factor for what the
// earlier blocks gave. n is rounded up to whole vectors: what lies there must be -inf.
SINTER_INLINE float join_scores(float* scores, std::ptrdiff_t n, float& top, float& sum) {
  f32v greatest = splat(top);
  for (std::ptrdiff_t j = 0; j < n; j += kLanes) greatest = max_nan(greatest, load(scores + j));
  const float now = hmax(greatest);
  f32v total = zero();
  for (std::ptrdiff_t j = 0; j < n; j += kLanes) {
    const f32v e = exp_nonpos(sub(load(scores + j), splat(now)));
    store(scores + j, e);
    total = add(total, e);
  }
  const float factor = exp_nonpos(sub(top, now));
  sum = fma(sum, factor, hsum(total));
  top = now;
  return factor;
}

// a . b over n elements.
SINTER_INLINE float dot(const float* a, const float* b, std::ptrdiff_t n) {
  f32v s0 = zero(), s1 = zero();
  std::ptrdiff_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    s0 = fma(load(a + i), load(b + i), s0);
    s1 = fma(load(a + i + kLanes), load(b + i + kLanes), s1);
  }
  for (; i + kLanes <= n; i += kLanes) s0 = fma(load(a + i), load(b + i), s0);
  if (i < n) s1 = fma(load_n(a + i, n - i), load_n(b + i, n - i), s1);
  return hsum(add(s0, s1));
}

// sum += weights[j] * rows[j * stride ...] over n rows of OB vectors, the last one of `lanes` lanes.
template <int OB>
SINTER_INLINE void add_rows(Tile<OB, 1>& sum, const float* weights, const float* rows, std::ptrdiff_t stride,
                            std::ptrdiff_t n, int lanes) {
  for (std::ptrdiff_t j = 0; j < n; j++) {
    const f32v weight = splat(weights[j]);
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      const f32v row = load_lanes(rows + j * stride + o * kLanes, o == OB - 1 ? lanes : kLanes);
      sum.a[0][o] = fma(weight, row, sum.a[0][o]);
    }
  }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_ATTENTION_H_
