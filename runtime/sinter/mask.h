// Masks: for each pixel of a picture the class with the greatest logit, which are blended of the four
// nearest.
#ifndef SINTER_MASK_H_
#define SINTER_MASK_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/mask.h"
#endif

namespace sinter::SINTER_ISA {

// row[i] = a[i] + (b[i] - a[i]) * weight.
static inline void blend_rows(const float* a, const float* b, float weight, std::int64_t count, float* row) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store(row + i, fma(sub(load(b + i), load(a + i)), splat(weight), load(a + i)));
  for (; i < count; ++i) row[i] = a[i] + (b[i] - a[i]) * weight;
}

// The class of each of `count` columns: between pixel first[i] of the row of logits and the next one, which
// weighs weight[i].
static inline void mask_row(const float* row, const std::int32_t* first, const float* weight,
                            std::int64_t count, std::int64_t classes, std::uint8_t* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float* left = row + first[i] * classes;
    const float* right = weight[i] == 0.0f ? left : left + classes;
    float most = left[0] + (right[0] - left[0]) * weight[i];
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < classes; ++c) {
      const float v = left[c] + (right[c] - left[c]) * weight[i];
      best = v > most ? c : best;
      most = v > most ? v : most;
    }
    to[i] = static_cast<std::uint8_t>(best);
  }
}

// The same of one channel: 1 where it is above the threshold.
static inline void mask_row_above(const float* row, const std::int32_t* first, const float* weight,
                                  std::int64_t count, float threshold, std::uint8_t* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float left = row[first[i]], right = weight[i] == 0.0f ? left : row[first[i] + 1];
    to[i] = left + (right - left) * weight[i] > threshold;
  }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_MASK_H_
