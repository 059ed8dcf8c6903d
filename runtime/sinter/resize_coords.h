// Where each element of a resized tensor comes from: the coordinate rules of ONNX Resize-19, one axis at a
// time, without memory. The compiler's interpreter and generated code for dynamic extents call the same
// functions, so they agree in every bit.
//
// Coordinates are float, computed in the order of operations that ONNX Runtime uses, because nearest modes
// decide ties by them. A product that is then added to is rounded by hand: compilers would fuse it.
// Every index returned lies in [0, in); in and out are at least 1.
#pragma once
#include <cmath>
#include <cstdint>

namespace sinter {

enum class ResizeTransform : unsigned char {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize,
  kTfHalfPixelForNn,  // opset 11 only
};
enum class ResizeNearest : unsigned char { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

struct ResizeAxis {
  std::int64_t in, out;  // extents
  float scale;           // > 0; as given, or out / in
  ResizeTransform transform;
  float roi_start, roi_end;  // kTfCropAndResize only
};

namespace resize_detail {
// a * b rounded to float, whatever -ffp-contract says: the double product is exact.
inline float rounded_product(float a, float b) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b));
}
// The index of a whole-numbered float, clamped; NaN gives 0.
inline std::int64_t clamped(float whole, std::int64_t in) {
  if (!(whole > 0.0f)) return 0;
  if (whole >= static_cast<float>(in - 1)) return in - 1;
  return static_cast<std::int64_t>(whole);
}
inline std::int64_t clamped(std::int64_t i, std::int64_t in) { return i < 0 ? 0 : i >= in ? in - 1 : i; }
// floor(v) as an index that may lie outside, but by no more than 64 more than the taps reach.
inline std::int64_t near_index(float v, std::int64_t in) {
  const float f = std::floor(v);
  if (!(f > -1073741824.0f)) return -1073741824;
  if (f >= static_cast<float>(in) + 1073741824.0f) return in + 1073741824;
  return static_cast<std::int64_t>(f);
}
}  // namespace resize_detail

// The coordinate in the input that output `o` shows: x_original of the standard.
inline float resize_source(const ResizeAxis& a, std::int64_t o) {
  const float x = static_cast<float>(o), in = static_cast<float>(a.in), out = static_cast<float>(a.out);
  if (a.scale == 1.0f && a.transform != ResizeTransform::kTfCropAndResize) return x;
  switch (a.transform) {
    case ResizeTransform::kHalfPixel: return (x + 0.5f) / a.scale - 0.5f;
    case ResizeTransform::kHalfPixelSymmetric: {
      const float adjustment = out / (a.scale * in);
      const float offset = resize_detail::rounded_product(in / 2.0f, 1.0f - adjustment);
      return static_cast<float>(static_cast<double>(offset) +
                                (static_cast<double>(x) + 0.5) / static_cast<double>(a.scale) - 0.5);
    }
    case ResizeTransform::kPytorchHalfPixel: return a.out > 1 ? (x + 0.5f) / a.scale - 0.5f : 0.0f;
    case ResizeTransform::kAlignCorners: {
      // The resized length before it is rounded down (ONNX's reference; ONNX Runtime takes the rounded one).
      const float length = resize_detail::rounded_product(in, a.scale);
      const float last = std::fabs(length - out) < 1e-3f ? out - 1.0f : length - 1.0f;
      return a.out > 1 ? x * (in - 1.0f) / last : 0.0f;
    }
    case ResizeTransform::kAsymmetric: return x / a.scale;
    case ResizeTransform::kTfHalfPixelForNn: return (x + 0.5f) / a.scale;
    case ResizeTransform::kTfCropAndResize: break;
  }
  if (a.out == 1)
    return static_cast<float>(0.5 * static_cast<double>(a.roi_start + a.roi_end) *
                              static_cast<double>(in - 1.0f));
  const float begin = resize_detail::rounded_product(a.roi_start, in - 1.0f);
  return begin + x * (a.roi_end - a.roi_start) * (in - 1.0f) / (out - 1.0f);
}

// Whether the output takes the extrapolation value.
inline bool resize_is_outside(const ResizeAxis& a, float source) {
  return a.transform == ResizeTransform::kTfCropAndResize &&
         !(source >= 0.0f && source <= static_cast<float>(a.in - 1));
}

inline std::int64_t resize_nearest(const ResizeAxis& a, float source, ResizeNearest mode) {
  const float below = std::floor(source);
  // Ties that rounding has moved by a few units are ties: 14 -> 16 asks for 4 / (16/14) = 3.4999998.
  const bool tie = std::fabs(source - below - 0.5f) <= 1e-6f;
  float whole = below;
  switch (mode) {
    case ResizeNearest::kRoundPreferFloor: whole = tie ? below : std::round(source); break;
    case ResizeNearest::kRoundPreferCeil: whole = tie ? below + 1.0f : std::round(source); break;
    case ResizeNearest::kFloor: break;
    case ResizeNearest::kCeil: whole = std::ceil(source); break;
  }
  return resize_detail::clamped(whole, a.in);
}

// The two neighbours and their weights; coordinates beyond the ends count as the ends.
inline void resize_linear(const ResizeAxis& a, float source, std::int64_t index[2], float weight[2]) {
  const float last = static_cast<float>(a.in - 1);
  const float s = source > 0.0f ? (source < last ? source : last) : 0.0f;
  index[0] = resize_detail::clamped(std::floor(s), a.in);
  index[1] = resize_detail::clamped(index[0] + 1, a.in);
  weight[1] = s - static_cast<float>(index[0]);
  weight[0] = 1.0f - weight[1];
}

// The kernels: triangle and Keys' cubic (a: -0.5 Catmull-Rom, -0.75 as in PyTorch).
inline float resize_triangle(float x) {
  const float d = std::fabs(x);
  return d < 1.0f ? 1.0f - d : 0.0f;
}
inline float resize_keys(float x, float a) {
  const float d = std::fabs(x);
  if (d <= 1.0f) return ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f;
  if (d < 2.0f) return (((d - 5.0f) * d + 8.0f) * d - 4.0f) * a;
  return 0.0f;
}

// The four neighbours of cubic interpolation; those outside count as the end, or not at all.
inline void resize_cubic(const ResizeAxis& a, float source, float coefficient, bool exclude_outside,
                         std::int64_t index[4], float weight[4]) {
  const std::int64_t base = resize_detail::near_index(source, a.in);
  const float fraction = source - static_cast<float>(base);
  float sum = 0.0f;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = base - 1 + i;
    const bool outside = at < 0 || at >= a.in;
    index[i] = resize_detail::clamped(at, a.in);
    weight[i] =
        exclude_outside && outside ? 0.0f : resize_keys(static_cast<float>(i - 1) - fraction, coefficient);
    sum += weight[i];
  }
  if (!exclude_outside || sum == 0.0f) return;
  for (int i = 0; i < 4; ++i) weight[i] /= sum;
}

// Antialiasing: the kernel stretched over the input elements [first, first + count) (which may lie outside:
// clamp them, or leave them out) that one output covers when the axis shrinks. `reach`: 1 linear, 2 cubic.
struct ResizeSpan {
  std::int64_t first, count;
  float source, shrink;  // element j has weight kernel((j - source) * shrink), to be normalised
};
inline ResizeSpan resize_span(const ResizeAxis& a, float source, float reach) {
  const float shrink = a.scale < 1.0f ? a.scale : 1.0f, support = reach / shrink;
  const std::int64_t first = resize_detail::near_index(source - support + 1.0f, a.in);
  const std::int64_t last = resize_detail::near_index(source + support + 1.0f, a.in);
  return {first, last > first ? last - first : 0, source, shrink};
}
inline float resize_span_weight(const ResizeSpan& s, std::int64_t j, bool cubic, float coefficient) {
  const float x = (static_cast<float>(j) - s.source) * s.shrink;
  return cubic ? resize_keys(x, coefficient) : resize_triangle(x);
}

}  // namespace sinter
