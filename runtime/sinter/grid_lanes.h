// Lanes for GridSample of planes of floats: the image is turned, so that a pixel's channels lie side by side
// and a tap is whole vectors; the results of a block of positions are turned back.
#ifndef SINTER_GRID_LANES_H_
#define SINTER_GRID_LANES_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/grid_lanes.h"
#endif

#include "sinter/copy.h"
#include "sinter/grid_sample.h"

namespace sinter::SINTER_ISA {

struct GridLanes {
  float* turned;   // channels * pixels
  float* results;  // kPositions * channels

  static constexpr std::int64_t kPositions = 32;  // no block has more
  // Turned at a time: planes are often a power of two apart, all in a few places of the cache.
  static constexpr std::int64_t kPixels = 64, kPlanes = kLanes < 8 ? 8 : kLanes;

  void turn(const float* image, std::int64_t channels, std::int64_t pixels) const {
    for (std::int64_t p = 0; p < pixels; p += kPixels)
      for (std::int64_t c = 0; c < channels; c += kPlanes)
        sinter::transpose(turned + p * channels + c, channels, image + c * pixels + p, pixels,
                          pixels - p < kPixels ? pixels - p : kPixels,
                          channels - c < kPlanes ? channels - c : kPlanes);
  }

  // y[c * apart + p] of the block's first `count` positions p.
  template <class Block>
  void sample(const Block& block, std::int64_t channels, std::int64_t count, float* y,
              std::int64_t apart) const {
    static_assert(Block::kPositions <= kPositions);
    for (std::int64_t p = 0; p < count; ++p) {
      const auto& at = block.at[p];
      const auto& weight = block.weight[p];
      const int taps = block.counts[p];
      float* const to = results + p * channels;
      std::int64_t c = 0;
      for (; c + 4 * kLanes <= channels; c += 4 * kLanes) sum<4>(at, weight, taps, channels, c, to);
      for (; c + kLanes <= channels; c += kLanes) sum<1>(at, weight, taps, channels, c, to);
      for (; c < channels; ++c) {
        float s = 0.0f;
        for (int t = 0; t < taps; ++t) s += weight[t] * turned[at[t] * channels + c];
        to[c] = s;
      }
    }
    sinter::transpose(y, apart, results, channels, channels, count);
  }

 private:
  // Vectors of channels from c on.
  template <int Vectors>
  [[gnu::always_inline]] inline void sum(const std::int64_t* at, const float* weight, int taps,
                                         std::int64_t channels, std::int64_t c, float* to) const {
    f32v sums[Vectors];
    SINTER_UNROLL
    for (int v = 0; v < Vectors; ++v) sums[v] = splat(0.0f);
    for (int t = 0; t < taps; ++t) {
      const float* const pixel = turned + at[t] * channels + c;
      const f32v w = splat(weight[t]);
      SINTER_UNROLL
      for (int v = 0; v < Vectors; ++v) sums[v] = fma(load(pixel + v * kLanes), w, sums[v]);
    }
    SINTER_UNROLL
    for (int v = 0; v < Vectors; ++v) store(to + c + v * kLanes, sums[v]);
  }
};

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_GRID_LANES_H_
