// Lanes for RoiAlign with channels last: a bin's samples are weighted sums of whole pixels, vectors of
// channels.
#ifndef SINTER_ROI_LANES_H_
#define SINTER_ROI_LANES_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/roi_lanes.h"
#endif

#include "sinter/mac.h"
#include "sinter/roi.h"

namespace sinter::SINTER_ISA {

// What roi_align_rows() computes a bin of floats with, for channels last and the mean. Taps are listed first
// (four for each sample, so many at a time), so that the sums of some vectors of channels stay in registers.
struct RoiLanes {
  using Samples = roi_detail::Samples<float>;
  using Tap = roi_detail::Tap<float>;

  void operator()(const float* image, const RoiGeometry& g, const Samples& rows, const Samples& columns, bool,
                  float divisor, float* to) const {
    Taps taps;
    for (std::int64_t some = columns.first; some < columns.last; some += kColumns) {
      const std::int64_t end = columns.last - some < kColumns ? columns.last : some + kColumns;
      Tap along[kColumns];
      std::int64_t inside = 0;
      for (std::int64_t j = some; j < end; ++j) {
        along[inside] = roi_detail::tap(columns.at(j), g.width);
        inside += along[inside].inside;
      }
      for (std::int64_t i = rows.first; i < rows.last; ++i) {
        const Tap v = roi_detail::tap(rows.at(i), g.height);
        if (!v.inside) continue;
        const float *low = image + v.low * g.width * g.channels,
                    *high = image + v.high * g.width * g.channels;
        for (std::int64_t j = 0; j < inside; ++j) {
          if (taps.count == Taps::kMost) taps.sum(g.channels, 1.0f, to);
          taps.add(low, high, g.channels, v.weight, along[j]);
        }
      }
    }
    taps.sum(g.channels, divisor, to);
  }

 private:
  static constexpr std::int64_t kColumns = 16;

  struct Taps {
    static constexpr int kMost = 64;
    const float* from[kMost];
    float weight[kMost];
    int count = 0;
    bool first = true;  // nothing is in the bin yet

    // A sample between the rows of pixels `low` and `high`.
    void add(const float* low, const float* high, std::int64_t channels, float down, const Tap& h) {
      const float* pixels[4] = {low + h.low * channels, low + h.high * channels, high + h.low * channels,
                                high + h.high * channels};
      const float weights[4] = {(1.0f - down) * (1.0f - h.weight), (1.0f - down) * h.weight,
                                down * (1.0f - h.weight), down * h.weight};
      for (int k = 0; k < 4; ++k) {
        from[count] = pixels[k];
        weight[count++] = weights[k];
      }
    }

    // Adds what is listed to the bin, divides it and forgets the list.
    void sum(std::int64_t channels, float divisor, float* to) {
      std::int64_t c = 0;
      for (; c + 4 * kLanes <= channels; c += 4 * kLanes) vectors<4>(c, divisor, to);
      for (; c + kLanes <= channels; c += kLanes) vectors<1>(c, divisor, to);
      for (; c < channels; ++c) {
        float s = first ? 0.0f : to[c];
        for (int k = 0; k < count; ++k) s += from[k][c] * weight[k];
        to[c] = s / divisor;
      }
      count = 0;
      first = false;
    }
    template <int kVectors>
    void vectors(std::int64_t c, float divisor, float* to) {
      f32v s[kVectors];
      SINTER_UNROLL
      for (int o = 0; o < kVectors; ++o) s[o] = first ? zero() : load(to + c + o * kLanes);
      for (int k = 0; k < count; ++k) {
        const f32v w = splat(weight[k]);
        SINTER_UNROLL
        for (int o = 0; o < kVectors; ++o) s[o] = fma(load(from[k] + c + o * kLanes), w, s[o]);
      }
      const f32v all = splat(divisor);
      SINTER_UNROLL
      for (int o = 0; o < kVectors; ++o) store(to + c + o * kLanes, div(s[o], all));
    }
  };
};

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_ROI_LANES_H_
