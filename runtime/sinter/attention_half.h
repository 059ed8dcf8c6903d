// Attention of halves: products of queries, keys and values are of halves, scores and the softmax between
// them are floats, as masks are, so that what is masked stays apart from what is small (attention.h).
#ifndef SINTER_ATTENTION_HALF_H_
#define SINTER_ATTENTION_HALF_H_
#ifndef SINTER_HALF_ARITHMETIC
#error "include sinter/half_arithmetic.h and a sinter/simd_*.h before sinter/attention_half.h"
#endif

#include "sinter/attention.h"
#include "sinter/mac_half.h"

namespace sinter::SINTER_ISA {

typedef f32v ScoreVector;
constexpr const float* kNoMask = nullptr;
SINTER_INLINE ScoreVector all_scores(float x) { return splat(x); }

// A vector of products times `factor`, and what `mask` has there unless it is null, as floats at `to`.
// each(vector) gets them.
template <class Each>
SINTER_INLINE void put_scores(float* to, f16v products, float factor, const float* mask, Each each) {
  const Wide w = widen_lanes(products);
  SINTER_UNROLL
  for (int i = 0; i < kFloatVectors; i++) {
    f32v score = mul(w.part[i], splat(factor));
    if (mask != nullptr) score = add(score, load(mask + i * kLanes));
    store(to + i * kLanes, score);
    each(score);
  }
}
SINTER_INLINE void put_scores(float* to, f16v products, float factor, const float* mask) {
  put_scores(to, products, factor, mask, [](f32v) {});
}
SINTER_INLINE void put_scores(float* to, f16v products, float factor, const float* mask,
                              ScoreVector& greatest) {
  put_scores(to, products, factor, mask, [&](f32v score) { greatest = max(greatest, score); });
}

// to[j] = weights[j] * factor for j < n: shares of one, which no sum of products leaves the range with.
SINTER_INLINE void shares_of(const float* weights, std::ptrdiff_t n, float factor, half* to) {
  const std::ptrdiff_t rest = n % kLanes, whole = n - rest;
  for (std::ptrdiff_t j = 0; j < whole; j += kLanes) store(to + j, mul(load(weights + j), splat(factor)));
  for (std::ptrdiff_t j = 0; j < rest; j++) to[whole + j] = to_half(weights[whole + j] * factor);
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_ATTENTION_HALF_H_
