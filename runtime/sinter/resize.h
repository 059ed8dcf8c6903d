// Tables for a resized axis: which input elements each output element is made of, and with what weights.
//
// Generated code reads such tables; the compiler writes them where the extents are known, the layer itself
// into scratch where they are not.
#pragma once
#include <cstdint>

#include "sinter/resize_coords.h"

namespace sinter {

enum class ResizeKind : unsigned char { kNearest, kLinear, kCubic };

// Taps of one output element: nearest 1, linear 2, cubic 4.
constexpr int resize_taps(ResizeKind kind) {
  return kind == ResizeKind::kNearest ? 1 : kind == ResizeKind::kLinear ? 2 : 4;
}

// index[out][taps] and weight[out][taps] for all outputs of the axis. An output that takes the extrapolation
// value has index -1 at its first tap.
inline void resize_table(const ResizeAxis& a, ResizeKind kind, ResizeNearest nearest, float coefficient,
                         bool exclude_outside, std::int32_t* index, float* weight) {
  const int taps = resize_taps(kind);
  for (std::int64_t o = 0; o < a.out; ++o) {
    const float source = resize_source(a, o);
    std::int64_t at[4] = {0, 0, 0, 0};
    float w[4] = {1.0f, 0.0f, 0.0f, 0.0f};
    switch (kind) {
      case ResizeKind::kNearest: at[0] = resize_nearest(a, source, nearest); break;
      case ResizeKind::kLinear: resize_linear(a, source, at, w); break;
      case ResizeKind::kCubic: resize_cubic(a, source, coefficient, exclude_outside, at, w); break;
    }
    if (resize_is_outside(a, source)) at[0] = -1;
    for (int t = 0; t < taps; ++t) {
      index[o * taps + t] = static_cast<std::int32_t>(at[t]);
      weight[o * taps + t] = w[t];
    }
  }
}

}  // namespace sinter
