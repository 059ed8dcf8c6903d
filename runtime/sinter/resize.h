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

// index[out][taps] and weight[out][taps] for all outputs of the axis; taps beyond resize_taps() stay unused.
// An output that takes the extrapolation value has index -1 at its first tap.
inline void resize_table(const ResizeAxis& a, ResizeKind kind, ResizeNearest nearest, float coefficient,
                         bool exclude_outside, int taps, std::int32_t* index, float* weight) {
  const int used = resize_taps(kind);
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
      index[o * taps + t] = t < used ? static_cast<std::int32_t>(at[t]) : 0;
      weight[o * taps + t] = t < used ? w[t] : 0.0f;
    }
  }
}

// The taps that an antialiased axis, made smaller by no less than `scale`, can need.
inline std::int64_t resize_antialiased_taps(ResizeKind kind, float scale) {
  const float radius = kind == ResizeKind::kCubic ? 2.0f : 1.0f;
  return scale < 1.0f ? static_cast<std::int64_t>(2.0f * radius / scale) + 2 : resize_taps(kind);
}

// As resize_table, with the antialiasing of Resize-18 where the axis becomes smaller: every input below the
// kernel stretched by 1 / scale counts. False where `taps` don't suffice.
inline bool resize_antialiased_table(const ResizeAxis& a, ResizeKind kind, float coefficient,
                                     bool exclude_outside, int taps, std::int32_t* index, float* weight) {
  if (!(a.scale < 1.0f)) {
    if (taps < resize_taps(kind)) return false;
    resize_table(a, kind, ResizeNearest::kFloor, coefficient, exclude_outside, taps, index, weight);
    return true;
  }
  const bool cubic = kind == ResizeKind::kCubic;
  for (std::int64_t o = 0; o < a.out; ++o, index += taps, weight += taps) {
    const ResizeSpan s = resize_span(a, resize_source(a, o), cubic ? 2.0f : 1.0f);
    if (s.count > taps) return false;
    float sum = 0.0f;
    for (int t = 0; t < taps; ++t) {
      const std::int64_t at = s.first + t;
      const bool counts = t < s.count && !(exclude_outside && (at < 0 || at >= a.in));
      weight[t] = counts ? resize_span_weight(s, at, cubic, coefficient) : 0.0f;
      index[t] = static_cast<std::int32_t>(at < 0 ? 0 : at >= a.in ? a.in - 1 : at);
      sum += weight[t];
    }
    for (int t = 0; t < taps; ++t) weight[t] /= sum;
  }
  return true;
}

}  // namespace sinter
