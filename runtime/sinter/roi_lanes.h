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

// What roi_align() sums a bin of floats with, for channels last and the mean. Taps are listed first (four for
// each sample, so many at a time), so that the sums of a vector of channels stay in a register.
struct RoiLanes {
  void operator()(const float* x, const RoiGeometry& g, std::int64_t channels,
                  const roi_detail::Samples<float>& rows, const roi_detail::Samples<float>& columns, bool,
                  float* sums) const {
    Taps taps;
    for (std::int64_t c = 0; c < channels; ++c) sums[c] = 0.0f;
    for (std::int64_t i = rows.first; i < rows.last; ++i) {
      const roi_detail::Tap<float> v = roi_detail::tap(rows.at(i), g.height);
      if (!v.inside) continue;
      for (std::int64_t j = columns.first; j < columns.last; ++j) {
        const roi_detail::Tap<float> h = roi_detail::tap(columns.at(j), g.width);
        if (!h.inside) continue;
        const float *low = x + v.low * g.width * g.channels, *high = x + v.high * g.width * g.channels;
        taps.add(low + h.low * g.channels, (1.0f - v.weight) * (1.0f - h.weight));
        taps.add(low + h.high * g.channels, (1.0f - v.weight) * h.weight);
        taps.add(high + h.low * g.channels, v.weight * (1.0f - h.weight));
        taps.add(high + h.high * g.channels, v.weight * h.weight);
        if (taps.count == Taps::kMost) taps.sum(channels, sums);
      }
    }
    taps.sum(channels, sums);
  }

 private:
  struct Taps {
    static constexpr int kMost = 64;
    const float* from[kMost];
    float weight[kMost];
    int count = 0;
    void add(const float* pixel, float w) {
      from[count] = pixel;
      weight[count++] = w;
    }
    // Adds what is listed to the sums and forgets it.
    void sum(std::int64_t channels, float* sums) {
      std::int64_t c = 0;
      for (; c + kLanes <= channels; c += kLanes) {
        f32v s = load(sums + c);
        for (int k = 0; k < count; ++k) s = fma(load(from[k] + c), splat(weight[k]), s);
        store(sums + c, s);
      }
      for (; c < channels; ++c)
        for (int k = 0; k < count; ++k) sums[c] += from[k][c] * weight[k];
      count = 0;
    }
  };
};

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_ROI_LANES_H_
