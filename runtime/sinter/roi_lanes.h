// Lanes for RoiAlign with channels last: a bin is a weighted sum of whole pixels, vectors of channels.
#ifndef SINTER_ROI_LANES_H_
#define SINTER_ROI_LANES_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/roi_lanes.h"
#endif

#include "sinter/mac.h"
#include "sinter/roi.h"

namespace sinter::SINTER_ISA {

// What roi_align_rows() computes a row of bins of floats with, for channels last and the mean. A bin's
// samples are a grid, so what is summed is too: some rows of pixels by some columns, each with a weight of
// its own. Those are listed first (so many at a time), the rows once for all bins beside each other; then the
// sums of some vectors of channels stay in registers.
struct RoiLanes {
  void operator()(const float* image, const RoiGeometry& g, const roi_detail::BinRow<float>& row,
                  float* to) const {
    const std::int64_t line = g.width * g.channels;
    std::int64_t behind = row.rows.first;
    const Taps first_rows(row.rows, behind, g.height, line);
    for (std::int64_t column = 0; column < g.columns; ++column, to += g.channels) {
      const Samples columns = row.columns(column, g);
      const float factor = 1.0f / row.divisor(columns);
      bool fresh = true;  // nothing is in the bin yet
      std::int64_t left = columns.first;
      do {
        const Taps across(columns, left, g.width, g.channels);
        const bool last_columns = left >= columns.last;
        std::int64_t down = behind;
        sum(image, first_rows, across, g.channels, fresh,
            last_columns && down >= row.rows.last ? factor : 1.0f, to);
        fresh = false;
        while (down < row.rows.last) {
          const Taps more_rows(row.rows, down, g.height, line);
          sum(image, more_rows, across, g.channels, false,
              last_columns && down >= row.rows.last ? factor : 1.0f, to);
        }
      } while (left < columns.last);
    }
  }

 private:
  using Samples = roi_detail::Samples<float>;

  // The two pixels of each sample along one axis, `step` elements from one pixel to the next: those from
  // sample `i` on, which becomes the one behind them.
  struct Taps {
    static constexpr int kMost = 32;
    std::int64_t at[kMost];
    float weight[kMost];
    int count = 0;

    Taps(const Samples& s, std::int64_t& i, std::int64_t extent, std::int64_t step) {
      for (; i < s.last && count < kMost; ++i) {
        const roi_detail::Tap<float> t = roi_detail::tap(s.at(i), extent);
        if (!t.inside) continue;
        at[count] = t.low * step, weight[count++] = 1.0f - t.weight;
        at[count] = t.high * step, weight[count++] = t.weight;
      }
    }
  };

  // to = (to, unless `fresh`, + the sum of all rows' and columns' pixels) * factor.
  static void sum(const float* image, const Taps& rows, const Taps& columns, std::int64_t channels,
                  bool fresh, float factor, float* to) {
    std::int64_t c = 0;
    for (; c + 4 * kLanes <= channels; c += 4 * kLanes)
      vectors<4>(image + c, rows, columns, fresh, factor, to + c);
    for (; c + kLanes <= channels; c += kLanes) vectors<1>(image + c, rows, columns, fresh, factor, to + c);
    for (; c < channels; ++c) {
      float s = fresh ? 0.0f : to[c];
      for (int i = 0; i < rows.count; ++i)
        for (int j = 0; j < columns.count; ++j)
          s += image[rows.at[i] + columns.at[j] + c] * (rows.weight[i] * columns.weight[j]);
      to[c] = s * factor;
    }
  }
  template <int kVectors>
  static void vectors(const float* image, const Taps& rows, const Taps& columns, bool fresh, float factor,
                      float* to) {
    f32v s[kVectors];
    SINTER_UNROLL
    for (int o = 0; o < kVectors; ++o) s[o] = fresh ? zero() : load(to + o * kLanes);
    for (int i = 0; i < rows.count; ++i) {
      const float* line = image + rows.at[i];
      const float down = rows.weight[i];
      for (int j = 0; j < columns.count; ++j) {
        const f32v w = splat(down * columns.weight[j]);
        SINTER_UNROLL
        for (int o = 0; o < kVectors; ++o) s[o] = fma(load(line + columns.at[j] + o * kLanes), w, s[o]);
      }
    }
    const f32v all = splat(factor);
    SINTER_UNROLL
    for (int o = 0; o < kVectors; ++o) store(to + o * kLanes, mul(s[o], all));
  }
};

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_ROI_LANES_H_
