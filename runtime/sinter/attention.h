// The softmax of attention, taken block by block of keys: a row of scores keeps its greatest one and the sum
// of its weights so far; when a later block raises the maximum, what was summed before is scaled down.
//
// Scores are in units of ln 2, so that a weight is a power of 2: whoever stores them multiplies by kLog2E,
// together with the scale that is there anyway; to masks it is done here.
#ifndef SINTER_ATTENTION_H_
#define SINTER_ATTENTION_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/attention.h"
#endif

#include "sinter/mac.h"
#include "sinter/math.h"

namespace sinter::SINTER_ISA {

constexpr float kLog2E = 1.442695041f;

// A mask's values as scores. Some models write the lowest float for "not this one": it stays finite.
SINTER_INLINE f32v mask_scores(f32v mask) {
  const f32v scaled = mul(mask, splat(kLog2E));
  return select(lt(abs(scaled), splat(__builtin_inff())), scaled, mask);
}

// What joins the scores of every query alike: the mask's n values (null: none), then -inf up to `end`, a
// number of whole vectors.
SINTER_INLINE void shared_mask(const float* mask, std::ptrdiff_t n, std::ptrdiff_t end, float* to) {
  std::ptrdiff_t j = 0;
  for (; j + kLanes <= n; j += kLanes) store(to + j, mask == nullptr ? zero() : mask_scores(load(mask + j)));
  for (std::ptrdiff_t rest = j; rest < end; rest += kLanes) store(to + rest, splat(-__builtin_inff()));
  if (j < n) store_n(to + j, mask == nullptr ? zero() : mask_scores(load_n(mask + j, n - j)), n - j);
}
SINTER_INLINE void shared_mask(const bool* mask, std::ptrdiff_t n, std::ptrdiff_t end, float* to) {
  for (std::ptrdiff_t j = 0; j < end; j++) to[j] = j < n && mask[j] ? 0.0f : -__builtin_inff();
}

// A mask's row joins n scores.
SINTER_INLINE void add_mask(float* scores, const float* mask, std::ptrdiff_t n) {
  std::ptrdiff_t j = 0;
  for (; j + kLanes <= n; j += kLanes) store(scores + j, add(load(scores + j), mask_scores(load(mask + j))));
  if (j < n) store_n(scores + j, add(load_n(scores + j, n - j), mask_scores(load_n(mask + j, n - j))), n - j);
}
SINTER_INLINE void add_mask(float* scores, const bool* mask, std::ptrdiff_t n) {
  for (std::ptrdiff_t j = 0; j < n; j++) scores[j] = mask[j] ? scores[j] : -__builtin_inff();
}

// Scores [0, first) and [last, n rounded up to whole vectors) take no part.
SINTER_INLINE void exclude(float* scores, std::ptrdiff_t n, std::ptrdiff_t first, std::ptrdiff_t last) {
  const float none = -__builtin_inff();
  for (std::ptrdiff_t j = 0; j < first && j < n; j++) scores[j] = none;
  const std::ptrdiff_t end = (n + kLanes - 1) / kLanes * kLanes;
  for (std::ptrdiff_t j = last < 0 ? 0 : last; j < end; j++) scores[j] = none;
}

// The greatest score in each lane, NaNs apart: they make weights of NaN. n is rounded up to whole vectors
// here and below; what lies there must be -inf.
SINTER_INLINE f32v greatest_scores(f32v greatest, const float* scores, std::ptrdiff_t n) {
  for (std::ptrdiff_t j = 0; j < n; j += kLanes) greatest = max(greatest, load(scores + j));
  return greatest;
}

// scores[j] becomes 2^(scores[j] - top). Returns the sum of these.
SINTER_INLINE float weights_of(float* scores, std::ptrdiff_t n, float top) {
  f32v total = zero();
  std::ptrdiff_t j = 0;
  for (; j + 3 * kLanes < n; j += 4 * kLanes) {
    f32v e[4];
    SINTER_UNROLL
    for (int u = 0; u < 4; u++) e[u] = sub(load(scores + j + u * kLanes), splat(top));
    exp2_nonpos(e);
    SINTER_UNROLL
    for (int u = 0; u < 4; u++) store(scores + j + u * kLanes, e[u]), total = add(total, e[u]);
  }
  for (; j < n; j += kLanes) {
    const f32v e = exp2_nonpos(sub(load(scores + j), splat(top)));
    store(scores + j, e);
    total = add(total, e);
  }
  return hsum(total);
}

// A row's state, from block to block. `top` starts at the lowest float, so that a row of nothing but -inf
// sums to 0. `factor` is what the results of earlier blocks are to be multiplied by.
struct SoftmaxRow {
  float top = -3.402823466e+38f, sum = 0.0f, factor = 0.0f;
};
// A block of n scores of each of `rows` rows, `pitch` floats apart, becomes weights and joins their states;
// greatest[t], the greatest score in each lane, is at least state[t].top. A function of its own: the
// constants of the exponential function would take registers from the products around it.
[[gnu::noinline, maybe_unused]] static void join_scores(SoftmaxRow* state, const f32v* greatest,
                                                        std::ptrdiff_t rows, float* scores,
                                                        std::ptrdiff_t pitch, std::ptrdiff_t n) {
  // All maxima first: they are chains of dependent steps, which so run beside one another.
  for (std::ptrdiff_t t = 0; t < rows; t++) {
    const float top = hmax(greatest[t]);
    state[t].factor = exp2_nonpos(sub(state[t].top, top));
    state[t].top = top;
  }
  for (std::ptrdiff_t t = 0; t < rows; t++)
    state[t].sum = fma(state[t].sum, state[t].factor, weights_of(scores + t * pitch, n, state[t].top));
}
// The same where the block is the only one.
[[gnu::noinline, maybe_unused]] static void take_scores(SoftmaxRow* state, const f32v* greatest,
                                                        std::ptrdiff_t rows, float* scores,
                                                        std::ptrdiff_t pitch, std::ptrdiff_t n) {
  for (std::ptrdiff_t t = 0; t < rows; t++) state[t].top = hmax(greatest[t]);
  for (std::ptrdiff_t t = 0; t < rows; t++) state[t].sum = weights_of(scores + t * pitch, n, state[t].top);
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
