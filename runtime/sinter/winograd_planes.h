// Winograd's filtering along the rows of a picture whose channels are planes: for convolutions of few
// channels, whose sums are too short to be transformed along both axes (winograd.h).
//
// F(M, R), N = M + R - 1, along each row; the rows of the kernel and the channels are what the products at
// each of the N positions sum over. Along a row of stride 2, pairs of pixels are taken for one of twice the
// channels: R is half of the taps, rounded up, and the missing tap's weight is 0.
#ifndef SINTER_WINOGRAD_PLANES_H_
#define SINTER_WINOGRAD_PLANES_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/winograd_planes.h"
#endif
#include "sinter/winograd.h"

namespace sinter::SINTER_ISA {

namespace detail {

// Pixels as columns: to[q * pitch + i] = the pixel at left + q * S + i of the row of `width`, q < count, i <
// S; 0 where that lies outside.
template <int S>
SINTER_INLINE void pixels_to_columns(const float* row, std::int64_t width, std::int64_t left,
                                     std::int64_t count, float* to, std::int64_t pitch) {
  const std::int64_t begin = min_of(left < 0 ? (S - 1 - left) / S : 0, count);
  const std::int64_t end = max_of(begin, min_of(floor_div(width - left, S), count));
  const auto edges = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t q = first; q < last; q++)
      for (std::int64_t i = 0; i < S; i++) {
        const std::int64_t at = left + q * S + i;
        to[q * pitch + i] = at >= 0 && at < width ? row[at] : 0.0f;
      }
  };
  edges(0, begin);
  const float* from = row + (left + begin * S);
  for (std::int64_t q = begin; q < end; q++, from += S) std::memcpy(to + q * pitch, from, S * sizeof(float));
  edges(end, count);
}

}  // namespace detail

// The inputs of `tiles` tiles of M outputs each, of N positions, for a stride along the row of S (1 or 2), at
// `rows` rows of the picture [channels][height][width]. The first tile's inputs begin at (top, left),
// possibly outside, where all is 0. Position k of tile t, row r, channel c, phase i (of S) goes to v[k *
// plane + t * pitch + (r * channels + c) * S + i]; pitch >= rows * channels * S, a whole number of vectors.
// `columns`: scratch of [(tiles - 1) * M + N][pitch] floats. Of halves v, what is transformed are floats.
template <int N, int M, int S, class E>
[[gnu::noinline]] static void winograd_planes(const float* x, std::int64_t height, std::int64_t width,
                                              std::int64_t channels, std::int64_t top, std::int64_t left,
                                              std::int64_t rows, std::int64_t tiles, float* columns, E* v,
                                              std::int64_t plane, std::int64_t pitch) {
  const std::int64_t count = (tiles - 1) * M + N, floats = rows * channels * S;
  for (std::int64_t r = 0; r < rows; r++)
    for (std::int64_t c = 0; c < channels; c++) {
      const bool inside = top + r >= 0 && top + r < height;
      detail::pixels_to_columns<S>(inside ? x + (c * height + top + r) * width : x, inside ? width : 0, left,
                                   count, columns + (r * channels + c) * S, pitch);
    }
  for (std::int64_t t = 0; t < tiles; t++)
    for (std::int64_t i = 0; i < floats; i += kLanes) {
      const float* const from = columns + t * M * pitch + i;
      E* const to = v + t * pitch + i;
      f32v d[N];
      SINTER_UNROLL
      for (int k = 0; k < N; k++) d[k] = load(from + k * pitch);
      detail::winograd_forward(d);
      SINTER_UNROLL
      for (int k = 0; k < N; k++) store(to + k * plane, d[k]);
    }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_WINOGRAD_PLANES_H_
