// RoiAlign (ONNX 22) and MaxRoiPool (ONNX 22): fixed grids of bins over regions of an image [N][C][H][W], and
// RoiAlign with channels last as well.
//
// Regions come with the data: a batch number outside the image ends the call with false; coordinates may be
// anything, what lies outside of the image counts nothing. Sums are of floats (doubles for double).
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "sinter/scalar.h"

namespace sinter {

// What regions are read from and how.
struct RoiGeometry {
  std::int64_t batches, channels, height, width;  // of the image
  std::int64_t rows, columns;                     // bins
  float scale;                                    // image pixels per unit of the regions' coordinates
  bool channels_last = false;                     // the image is [N][H][W][C], and so is what comes out
};

namespace roi_detail {

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// One axis of a bilinear sample: two pixels and the weight of the second. `inside` is false for positions
// that count as 0.
template <class S>
struct Tap {
  std::int64_t low, high;
  S weight;
  bool inside;
};
template <class S>
inline Tap<S> tap(S at, std::int64_t extent) {
  Tap<S> t{0, 0, S{0}, false};
  if (!(at >= S{-1} && at <= static_cast<S>(extent)) || extent == 0) return t;
  t.inside = true;
  if (at <= S{0}) at = S{0};
  t.low = static_cast<std::int64_t>(at);
  if (t.low >= extent - 1) {
    t.low = t.high = extent - 1;
    return t;
  }
  t.high = t.low + 1;
  t.weight = at - static_cast<S>(t.low);
  return t;
}

// The samples of one bin along one axis: sample i lies at start + (i + 0.5) * bin / count. `first` to `last`
// are those that can lie in the image.
template <class S>
struct Samples {
  S start, bin;
  std::int64_t count, first, last;
  S at(std::int64_t i) const { return start + (static_cast<S>(i) + S{0.5f}) * bin / static_cast<S>(count); }
};
template <class S>
inline Samples<S> samples(S start, S bin, std::int64_t ratio, std::int64_t extent) {
  Samples<S> s{start, bin, ratio, 0, 0};
  if (ratio <= 0) {
    const S wanted = std::ceil(bin);
    s.count = !(wanted >= S{0})   ? 0
              : wanted > S{1e15f} ? 1000000000000000
                                  : static_cast<std::int64_t>(wanted);
  }
  s.last = s.count;
  if (s.count < 64) return s;
  // Many samples: those before and behind the image are skipped.
  const double step = static_cast<double>(bin) / static_cast<double>(s.count),
               most = static_cast<double>(s.count);
  if (!(std::fabs(step) < 1e30 && std::fabs(static_cast<double>(start)) < 1e30)) {
    s.last = 0;
    return s;
  }
  if (!(step > 0.0)) return s;
  const double begin = (-1.0 - static_cast<double>(start)) / step - 2.0;
  const double end = (static_cast<double>(extent) - static_cast<double>(start)) / step + 2.0;
  s.first = begin > 0.0 ? static_cast<std::int64_t>(begin < most ? begin : most) : 0;
  s.last = end < most ? static_cast<std::int64_t>(end > 0.0 ? end : 0.0) : s.count;
  return s;
}

// A row of bins over one axis' samples `rows`: `bin` is the width of each, the first begins at `left`.
template <class S>
struct BinRow {
  Samples<S> rows;
  S left, bin;
  std::int64_t ratio;
  bool greatest;

  Samples<S> columns(std::int64_t column, const RoiGeometry& g) const {
    return samples(left + static_cast<S>(column) * bin, bin, ratio, g.width);
  }
  // What the sum of a bin's samples is divided by.
  S divisor(const Samples<S>& columns) const {
    const S all = static_cast<S>(rows.count) * static_cast<S>(columns.count);
    return greatest || !(all > S{1}) ? S{1} : all;
  }
};

// One bin after the other, of all channels: the sum or the greatest of its samples. Channels of the image are
// `plane` elements apart, those of the bin `step`; so many at a time are summed.
struct SumBins {
  template <class T, class S>
  void operator()(const T* image, const RoiGeometry& g, const BinRow<S>& row, T* to) const {
    for (std::int64_t column = 0; column < g.columns; ++column) {
      const Samples<S> columns = row.columns(column, g);
      bin(image, g, row.rows, columns, row.greatest, row.divisor(columns),
          to + column * (g.channels_last ? g.channels : 1));
    }
  }

 private:
  template <class T, class S>
  static void bin(const T* image, const RoiGeometry& g, const Samples<S>& rows, const Samples<S>& columns,
                  bool greatest, S divisor, T* to) {
    constexpr std::int64_t kAtOnce = 64;
    const std::int64_t plane = g.channels_last ? 1 : g.height * g.width,
                       step = g.channels_last ? 1 : g.rows * g.columns;
    for (std::int64_t c = 0; c < g.channels; c += kAtOnce) {
      S sums[kAtOnce] = {};
      const std::int64_t n = g.channels - c < kAtOnce ? g.channels - c : kAtOnce;
      sum(image + c * plane, g, n, plane, rows, columns, greatest, sums);
      for (std::int64_t k = 0; k < n; ++k) to[(c + k) * step] = cast_to<T>(sums[k] / divisor);
    }
  }

  template <class T, class S>
  static void sum(const T* x, const RoiGeometry& g, std::int64_t channels, std::int64_t plane,
                  const Samples<S>& rows, const Samples<S>& columns, bool greatest, S* sums) {
    const std::int64_t pixel = g.channels_last ? g.channels : 1;
    bool first = true;
    for (std::int64_t i = rows.first; i < rows.last; ++i) {
      const Tap<S> v = tap(rows.at(i), g.height);
      for (std::int64_t j = columns.first; j < columns.last; ++j) {
        const Tap<S> h = tap(columns.at(j), g.width);
        const bool inside = v.inside && h.inside;
        if (!inside && !greatest) continue;
        const S w[4] = {(S{1} - v.weight) * (S{1} - h.weight), (S{1} - v.weight) * h.weight,
                        v.weight * (S{1} - h.weight), v.weight * h.weight};
        const std::int64_t at[4] = {(v.low * g.width + h.low) * pixel, (v.low * g.width + h.high) * pixel,
                                    (v.high * g.width + h.low) * pixel, (v.high * g.width + h.high) * pixel};
        for (std::int64_t c = 0; c < channels; ++c) {
          S p[4] = {S{0}, S{0}, S{0}, S{0}};
          if (inside)
            for (int k = 0; k < 4; ++k) p[k] = w[k] * cast_to<S>(x[c * plane + at[k]]);
          if (!greatest) {
            sums[c] += p[0] + p[1] + p[2] + p[3];
            continue;
          }
          for (int k = 0; k < 4; ++k)
            if ((first && k == 0) || p[k] > sums[c]) sums[c] = p[k];
        }
        first = false;
      }
    }
  }
};

struct OwnPlace {
  std::int64_t operator()(std::int64_t region) const { return region; }
};

}  // namespace roi_detail

// Whether the images that `count` regions are of all exist.
inline bool images_exist(const std::int64_t* images, std::int64_t count, std::int64_t batches) {
  for (std::int64_t r = 0; r < count; ++r)
    if (images[r] < 0 || images[r] >= batches) return false;
  return true;
}

// RoiAlign: x [batches][channels][height][width], regions [count][4] of corners (x, y, x, y) and the image
// that each is of give y [count][channels][rows][columns]. Each bin is the mean (or, `greatest`, the greatest
// weighted pixel) of ratio * ratio bilinear samples; ratio 0: as many as the bin has pixels. `half_pixel`:
// coordinates are of pixel corners, not centres. With channels last, y is [count][rows][columns][channels].
// `bins_of`: what computes a row of bins; see roi_lanes.h for another. Computes rows of bins [first, end) of
// the count * g.rows that there are; what region r gives is number place(r) of y. All images exist.
template <class T, class R, class Bins = roi_detail::SumBins, class Place = roi_detail::OwnPlace>
inline void roi_align_rows(const T* x, const RoiGeometry& g, const R* regions, const std::int64_t* images,
                           std::int64_t first, std::int64_t end, std::int64_t ratio, bool half_pixel,
                           bool greatest, T* y, const Bins& bins_of = {}, const Place& place = {}) {
  using S = roi_detail::Sum<T>;
  const S shift = half_pixel ? S{0.5f} : S{0}, scale = static_cast<S>(g.scale);
  for (std::int64_t row = first; row < end; ++row) {
    const std::int64_t r = row / g.rows;
    S corner[4];
    for (int k = 0; k < 4; ++k) corner[k] = cast_to<S>(regions[r * 4 + k]) * scale - shift;
    S width = corner[2] - corner[0], height = corner[3] - corner[1];
    if (!half_pixel) {
      width = width > S{1} ? width : S{1};
      height = height > S{1} ? height : S{1};
    }
    const S bin_y = height / static_cast<S>(g.rows), bin_x = width / static_cast<S>(g.columns);
    const S top = corner[1] + static_cast<S>(row % g.rows) * bin_y;
    const roi_detail::BinRow<S> bins{roi_detail::samples(top, bin_y, ratio, g.height), corner[0], bin_x,
                                     ratio, greatest};
    const T* image = x + images[r] * g.channels * g.height * g.width;
    bins_of(image, g, bins,
            y + place(r) * g.channels * g.rows * g.columns +
                row % g.rows * g.columns * (g.channels_last ? g.channels : 1));
  }
}

// All of it; false where an image does not exist.
template <class T, class R>
inline bool roi_align(const T* x, const RoiGeometry& g, const R* regions, const std::int64_t* images,
                      std::int64_t count, std::int64_t ratio, bool half_pixel, bool greatest, T* y) {
  if (!images_exist(images, count, g.batches)) return false;
  roi_align_rows(x, g, regions, images, 0, count * g.rows, ratio, half_pixel, greatest, y);
  return true;
}

namespace roi_detail {

// round(v) as a pixel number, far ones clamped; NaN is 0.
template <class S>
inline std::int64_t pixel(S v) {
  const S r = std::round(v);
  return r != r ? 0 : r > S{1e9f} ? 1000000000 : r < S{-1e9f} ? -1000000000 : static_cast<std::int64_t>(r);
}
// Where bin `i` of `bins` over `extent` pixels from `begin` on lies, cut to [0, limit].
struct Span {
  std::int64_t first, last;
};
template <class S>
inline Span span(std::int64_t i, std::int64_t bins, std::int64_t begin, std::int64_t extent,
                 std::int64_t limit) {
  const S size = static_cast<S>(extent) / static_cast<S>(bins);
  const std::int64_t a = begin + static_cast<std::int64_t>(std::floor(static_cast<S>(i) * size));
  const std::int64_t b = begin + static_cast<std::int64_t>(std::ceil(static_cast<S>(i + 1) * size));
  return {a < 0 ? 0 : a > limit ? limit : a, b < 0 ? 0 : b > limit ? limit : b};
}

}  // namespace roi_detail

// MaxRoiPool: regions [count][5] of (image, x, y, x, y), both corners included, give
// y [count][channels][rows][columns]: the greatest pixel of each bin, 0 for bins outside of the image.
template <class T>
inline bool max_roi_pool(const T* x, const RoiGeometry& g, const T* regions, std::int64_t count, T* y) {
  using S = roi_detail::Sum<T>;
  for (std::int64_t r = 0; r < count; ++r, regions += 5) {
    const S number = cast_to<S>(regions[0]);
    if (!(number >= S{0} && number < static_cast<S>(g.batches))) return false;
    const std::int64_t image = static_cast<std::int64_t>(number);
    std::int64_t corner[4];
    for (int k = 0; k < 4; ++k)
      corner[k] = roi_detail::pixel(cast_to<S>(regions[k + 1]) * static_cast<S>(g.scale));
    const std::int64_t width = corner[2] - corner[0] + 1, height = corner[3] - corner[1] + 1;
    for (std::int64_t c = 0; c < g.channels; ++c) {
      const T* plane = x + (image * g.channels + c) * g.height * g.width;
      for (std::int64_t bin = 0; bin < g.rows * g.columns; ++bin) {
        const auto v =
            roi_detail::span<S>(bin / g.columns, g.rows, corner[1], height > 1 ? height : 1, g.height);
        const auto h =
            roi_detail::span<S>(bin % g.columns, g.columns, corner[0], width > 1 ? width : 1, g.width);
        S best = S{0};
        bool any = false;
        for (std::int64_t i = v.first; i < v.last; ++i)
          for (std::int64_t j = h.first; j < h.last; ++j) {
            const S p = cast_to<S>(plane[i * g.width + j]);
            if (!any || p > best) best = p;
            any = true;
          }
        *y++ = cast_to<T>(best);
      }
    }
  }
  return true;
}

}  // namespace sinter
