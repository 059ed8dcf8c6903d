// Winograd's minimal filtering F(M x M, 3 x 3), M = 2, 4 or 6, on channels-last tensors: M x M outputs of a 3
// x 3 convolution from N x N = (M + 2) x (M + 2) inputs by N x N products instead of 9 M M.
//
//   Y = At [ (G g Gt) . (Bt d B) ] A     (Lavin and Gray, "Fast Algorithms for Convolutional Neural
//   Networks", 2016)
//
// The points are 0, 1, -1, infinity for M = 2; 0, +-r, +-2r, infinity with r = sqrt(1/2) for M = 4 (a quarter
// of the error that 1 and 2 have); 0, +-1, +-2, +-1/2, infinity for M = 6. Weights come transformed; the sums
// over input channels at each of the N x N positions are matrix products (mac.h). Here are the two transforms
// of data.
#ifndef SINTER_WINOGRAD_H_
#define SINTER_WINOGRAD_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/winograd.h"
#endif
#include "sinter/mac.h"

namespace sinter::SINTER_ISA {

namespace detail {

// Bt d: N values to N positions, in place.
SINTER_INLINE void winograd_forward(f32v (&d)[4]) {
  const f32v a = sub(d[0], d[2]), b = add(d[1], d[2]), c = sub(d[2], d[1]), e = sub(d[3], d[1]);
  d[0] = a, d[1] = b, d[2] = c, d[3] = e;
}
SINTER_INLINE void winograd_forward(f32v (&d)[6]) {
  const f32v two = splat(2.0f), half = splat(0.5f), c = splat(2.5f);
  const f32v r = splat(0.70710678f), r2 = splat(1.41421356f);
  const f32v even = fnma(two, d[2], d[4]), odd = fnma(two, d[1], d[3]);
  const f32v even2 = fnma(half, d[2], d[4]), odd2 = fnma(half, d[1], d[3]);
  const f32v first = fnma(c, d[2], add(d[0], d[4])), last = fnma(c, d[3], add(d[1], d[5]));
  d[0] = first, d[1] = fma(r, odd, even), d[2] = fnma(r, odd, even);
  d[3] = fma(r2, odd2, even2), d[4] = fnma(r2, odd2, even2), d[5] = last;
}
SINTER_INLINE void winograd_forward(f32v (&d)[8]) {
  const f32v c17 = splat(4.25f), c21 = splat(5.25f), half = splat(0.5f);
  const f32v first = fma(c21, sub(d[4], d[2]), sub(d[0], d[6]));
  const f32v last = fma(c21, sub(d[3], d[5]), sub(d[7], d[1]));
  const f32v even1 = fnma(c17, d[4], add(d[2], d[6])), odd1 = fnma(c17, d[3], add(d[1], d[5]));
  const f32v even2 = fnma(splat(1.25f), d[4], fma(splat(0.25f), d[2], d[6]));
  const f32v odd2 = fma(splat(4.0f), d[5], fnma(splat(5.0f), d[3], d[1]));
  const f32v even3 = fnma(splat(5.0f), d[4], fma(splat(4.0f), d[2], d[6]));
  const f32v odd3 = fma(splat(4.0f), d[1], fnma(splat(5.0f), d[3], d[5]));
  d[0] = first, d[1] = add(even1, odd1), d[2] = sub(even1, odd1);
  d[3] = fma(half, odd2, even2), d[4] = fnma(half, odd2, even2);
  d[5] = fma(half, odd3, even3), d[6] = fnma(half, odd3, even3), d[7] = last;
}

// At m: N positions to M values.
SINTER_INLINE void winograd_back(const f32v (&m)[4], f32v (&y)[2]) {
  y[0] = add(m[0], add(m[1], m[2]));
  y[1] = add(sub(m[1], m[2]), m[3]);
}
SINTER_INLINE void winograd_back(const f32v (&m)[6], f32v (&y)[4]) {
  const f32v a = add(m[1], m[2]), b = sub(m[1], m[2]), c = add(m[3], m[4]), d = sub(m[3], m[4]);
  y[0] = add(add(m[0], a), c);
  y[1] = fma(splat(0.70710678f), b, mul(splat(1.41421356f), d));
  y[2] = fma(splat(0.5f), a, add(c, c));
  y[3] = fma(splat(0.35355339f), b, fma(splat(2.82842712f), d, m[5]));
}
SINTER_INLINE void winograd_back(const f32v (&m)[8], f32v (&y)[6]) {
  const f32v a = add(m[1], m[2]), b = sub(m[1], m[2]), c = add(m[3], m[4]), d = sub(m[3], m[4]);
  const f32v e = add(m[5], m[6]), f = sub(m[5], m[6]);
  y[0] = add(add(m[0], a), add(c, e));
  y[1] = fma(splat(2.0f), d, fma(splat(0.5f), f, b));
  y[2] = fma(splat(4.0f), c, fma(splat(0.25f), e, a));
  y[3] = fma(splat(8.0f), d, fma(splat(0.125f), f, b));
  y[4] = fma(splat(16.0f), c, fma(splat(0.0625f), e, a));
  y[5] = fma(splat(32.0f), d, fma(splat(0.03125f), f, add(b, m[7])));
}

// Bt d for one column of the picture: rows [first, last) of N are inside, `from` is row 0's element.
template <int N>
SINTER_INLINE void winograd_column(const float* from, std::ptrdiff_t row, int first, int last, int lanes,
                                   f32v (&to)[N]) {
  if (first == 0 && last == N) {
    SINTER_UNROLL
    for (int i = 0; i < N; i++) to[i] = load_lanes(from + i * row, lanes);
  } else {
    SINTER_UNROLL
    for (int i = 0; i < N; i++) to[i] = i >= first && i < last ? load_lanes(from + i * row, lanes) : zero();
  }
  winograd_forward(to);
}

}  // namespace detail

// `tiles` neighbouring tiles of one row of tiles of a picture [height][width][channels]; (top, left) is the
// corner of the first one's inputs, possibly outside, where all is 0. Position k of tile t, channel c goes to
// v[k * plane + t * pitch + c]; pitch >= channels rounded up to whole vectors, the lanes beyond are 0.
template <int M>
[[gnu::noinline]] static void winograd_input(const float* x, std::int64_t height, std::int64_t width,
                                             std::int64_t channels, std::int64_t top, std::int64_t left,
                                             std::int64_t tiles, float* v, std::int64_t plane,
                                             std::int64_t pitch) {
  constexpr int N = M + 2;
  const int first = top < 0 ? static_cast<int>(-top) : 0;
  const int last = height - top < N ? static_cast<int>(height - top) : N;
  const float* const corner = x + (top * width + left) * channels;
  const auto tile = [&](f32v(&e)[N][N], std::int64_t t, std::int64_t c, int lanes)
      __attribute__((always_inline)) {
    // Two columns are those of the tile before.
    const int known = t > 0 ? 2 : 0;
    if (known > 0) {
      SINTER_UNROLL
      for (int i = 0; i < N; i++) e[0][i] = e[M][i], e[1][i] = e[M + 1][i];
    }
    for (int j = known; j < N; j++) {
      const std::int64_t column = left + t * M + j;
      f32v d[N];
      if (column >= 0 && column < width) {
        detail::winograd_column<N>(corner + (t * M + j) * channels + c, width * channels, first, last, lanes,
                                   d);
      } else {
        SINTER_UNROLL
        for (int i = 0; i < N; i++) d[i] = zero();
      }
      SINTER_UNROLL
      for (int i = 0; i < N; i++) e[j][i] = d[i];
    }
    float* to = v + t * pitch + c;
    for (int i = 0; i < N; i++) {
      f32v d[N];
      SINTER_UNROLL
      for (int j = 0; j < N; j++) d[j] = e[j][i];
      detail::winograd_forward(d);
      SINTER_UNROLL
      for (int j = 0; j < N; j++) store(to + j * plane, d[j]);
      to += N * plane;
    }
  };
  // As many vectors at once as a line of the cache holds, so that its parts are used while it is near.
  constexpr int kLine = kLanes >= 16 ? 1 : 16 / kLanes;
  std::int64_t c = 0;
  for (; c + kLine * kLanes <= channels; c += kLine * kLanes) {
    f32v e[kLine][N][N];
    for (std::int64_t t = 0; t < tiles; t++)
      for (int u = 0; u < kLine; u++) tile(e[u], t, c + u * kLanes, kLanes);
  }
  for (; c < channels; c += kLanes) {
    f32v e[N][N];
    const int lanes = channels - c < kLanes ? static_cast<int>(channels - c) : kLanes;
    for (std::int64_t t = 0; t < tiles; t++) tile(e, t, c, lanes);
  }
}

// One vector of output channels of a tile: its sums are m[k * plane] for position k. Calls put(i, j, value)
// for the outputs in the first `rows` rows and `columns` columns of the tile; i is known to the compiler.
template <int M, class Put>
SINTER_INLINE void winograd_output(const float* m, std::int64_t plane, std::int64_t rows,
                                   std::int64_t columns, Put put) {
  constexpr int N = M + 2;
  f32v e[M][N];
  for (int i = 0; i < N; i++) {
    f32v d[N], y[M];
    SINTER_UNROLL
    for (int j = 0; j < N; j++) d[j] = load(m + (i * N + j) * plane);
    detail::winograd_back(d, y);
    SINTER_UNROLL
    for (int j = 0; j < M; j++) e[j][i] = y[j];
  }
  for (int j = 0; j < columns; j++) {
    f32v y[M];
    detail::winograd_back(e[j], y);
    SINTER_UNROLL
    for (int i = 0; i < M; i++)
      if (i < rows) put(i, j, y[i]);
  }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_WINOGRAD_H_
