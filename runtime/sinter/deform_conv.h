// DeformConv (ONNX 22) in two dimensions: a convolution whose taps are moved by offsets that come with the
// data.
//
// For each output position the taps of all channels are sampled (bilinear; what lies outside counts 0) into
// one column, whose products with the filters are the outputs. Sums are of floats (doubles for double).
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "sinter/scalar.h"

namespace sinter {

struct DeformGeometry {
  std::int64_t batches, channels, height, width;  // of the image
  std::int64_t filters, groups, offset_groups;
  std::int64_t kernel[2], strides[2], dilations[2], pads[2];  // pads: at the beginning
  std::int64_t out[2];
};

namespace deform_detail {

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The four pixels around a position and their weights; those outside have weight 0.
template <class S>
struct Corners {
  std::int64_t at[4];
  S weight[4];
};
template <class S>
inline Corners<S> corners(S y, S x, std::int64_t height, std::int64_t width) {
  Corners<S> c{{0, 0, 0, 0}, {S{0}, S{0}, S{0}, S{0}}};
  if (!(y > S{-1} && y < static_cast<S>(height) && x > S{-1} && x < static_cast<S>(width))) return c;
  const S top = std::floor(y), left = std::floor(x);
  const S fy = y - top, fx = x - left;
  for (int k = 0; k < 4; ++k) {
    const std::int64_t i = static_cast<std::int64_t>(top) + k / 2,
                       j = static_cast<std::int64_t>(left) + k % 2;
    if (i < 0 || i >= height || j < 0 || j >= width) continue;
    c.at[k] = i * width + j;
    c.weight[k] = (k / 2 ? fy : S{1} - fy) * (k % 2 ? fx : S{1} - fx);
  }
  return c;
}

// The column of output position (oy, ox): [channels][kernel].
template <class T, class S>
inline void sample(const T* x, const DeformGeometry& g, const T* offset, const T* mask, std::int64_t oy,
                   std::int64_t ox, S* column) {
  const std::int64_t taps = g.kernel[0] * g.kernel[1], plane = g.out[0] * g.out[1];
  const std::int64_t here = oy * g.out[1] + ox, each = g.channels / g.offset_groups;
  for (std::int64_t o = 0; o < g.offset_groups; ++o)
    for (std::int64_t t = 0; t < taps; ++t) {
      const T* move = offset + ((o * taps + t) * 2) * plane + here;
      const std::int64_t row = oy * g.strides[0] - g.pads[0] + t / g.kernel[1] * g.dilations[0];
      const std::int64_t col = ox * g.strides[1] - g.pads[1] + t % g.kernel[1] * g.dilations[1];
      const auto c = corners(static_cast<S>(row) + cast_to<S>(move[0]),
                             static_cast<S>(col) + cast_to<S>(move[plane]), g.height, g.width);
      const S factor = mask ? cast_to<S>(mask[(o * taps + t) * plane + here]) : S{1};
      for (std::int64_t k = o * each; k < (o + 1) * each; ++k) {
        const T* image = x + k * g.height * g.width;
        S v = S{0};
        for (int i = 0; i < 4; ++i)
          if (c.weight[i] > S{0}) v += c.weight[i] * cast_to<S>(image[c.at[i]]);
        column[k * taps + t] = v * factor;
      }
    }
}

template <class T, class S>
inline S dot(const T* a, const S* b, std::int64_t n) {
  S s[4] = {S{0}, S{0}, S{0}, S{0}};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::int64_t k = 0; k < 4; ++k) s[k] += cast_to<S>(a[i + k]) * b[i + k];
  for (; i < n; ++i) s[0] += cast_to<S>(a[i]) * b[i];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

}  // namespace deform_detail

// x [batches][channels][height][width], w [filters][channels / groups][kernel],
// offset [batches][offset_groups][kernel][2][out] as (y, x), bias [filters] or null and
// mask [batches][offset_groups][kernel][out] or null give y [batches][filters][out]. `column` has
// channels * kernel elements.
template <class T>
inline void deform_conv(const T* x, const T* w, const T* offset, const T* bias, const T* mask,
                        const DeformGeometry& g, deform_detail::Sum<T>* column, T* y) {
  using S = deform_detail::Sum<T>;
  const std::int64_t taps = g.kernel[0] * g.kernel[1], plane = g.out[0] * g.out[1];
  const std::int64_t length = g.channels / g.groups * taps, each = g.filters / g.groups;
  for (std::int64_t b = 0; b < g.batches; ++b) {
    for (std::int64_t p = 0; p < plane; ++p) {
      deform_detail::sample(x, g, offset, mask, p / g.out[1], p % g.out[1], column);
      for (std::int64_t f = 0; f < g.filters; ++f) {
        const S sum = deform_detail::dot(w + f * length, column + f / each * length, length);
        y[f * plane + p] = cast_to<T>(bias ? sum + cast_to<S>(bias[f]) : sum);
      }
    }
    x += g.channels * g.height * g.width;
    offset += g.offset_groups * taps * 2 * plane;
    if (mask) mask += g.offset_groups * taps * plane;
    y += g.filters * plane;
  }
}

}  // namespace sinter
