// Winograd's minimal filtering F(MY x MX, RY x RX) on channels-last tensors: MY x MX outputs of an RY x RX
// convolution from NY x NX = (MY + RY - 1) x (MX + RX - 1) inputs by NY x NX products instead of RY RX MY MX.
//
//   Y = At [ (G g Gt) . (Bt d B) ] A     (Lavin and Gray, "Fast Algorithms for Convolutional Neural
//   Networks", 2016)
//
// N is 4, 6 or 8 along each axis, or 1 across a line of taps, and the points depend on it alone, whatever R
// is: 0, 1, -1, infinity for 4; 0, +-r, +-2r, infinity with r = sqrt(1/2) for 6 (a quarter of the error that
// 1 and 2 have); 0, +-1, +-2, +-1/2, infinity for 8.
//
// Along an axis of stride 2 a convolution is the sum of two of stride 1: of the inputs and taps of even
// numbers, and of those of odd ones. Each has positions of its own, together N = 2 M + R - 2; where one has a
// single tap (R = 3), its M inputs are its positions, and all have the same weights.
//
// Elements are floats or halves (simd_half.h). Of halves N = 4 and 6 are of use: a position is at most 4 and
// 26.3 times the largest input.
//
// Weights come transformed; the sums over input channels at each of the NY x NX positions are matrix products
// (mac.h). Here are the two transforms of data.
#ifndef SINTER_WINOGRAD_H_
#define SINTER_WINOGRAD_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/winograd.h"
#endif
#include "sinter/dims.h"
#include "sinter/mac.h"

namespace sinter::SINTER_ISA {

namespace detail {

// Bt d: N values to N positions, in place.
template <class V>
SINTER_INLINE void winograd_forward(V (&)[1]) {}
template <class V>
SINTER_INLINE void winograd_forward(V (&d)[4]) {
  const V a = sub(d[0], d[2]), b = add(d[1], d[2]), c = sub(d[2], d[1]), e = sub(d[3], d[1]);
  d[0] = a, d[1] = b, d[2] = c, d[3] = e;
}
template <class V>
SINTER_INLINE void winograd_forward(V (&d)[6]) {
  const V two = splat<V>(2.0f), half = splat<V>(0.5f), c = splat<V>(2.5f);
  const V r = splat<V>(0.70710678f), r2 = splat<V>(1.41421356f);
  const V even = fnma(two, d[2], d[4]), odd = fnma(two, d[1], d[3]);
  const V even2 = fnma(half, d[2], d[4]), odd2 = fnma(half, d[1], d[3]);
  const V first = fnma(c, d[2], add(d[0], d[4])), last = fnma(c, d[3], add(d[1], d[5]));
  d[0] = first, d[1] = fma(r, odd, even), d[2] = fnma(r, odd, even);
  d[3] = fma(r2, odd2, even2), d[4] = fnma(r2, odd2, even2), d[5] = last;
}
template <class V>
SINTER_INLINE void winograd_forward(V (&d)[8]) {
  const V c17 = splat<V>(4.25f), c21 = splat<V>(5.25f), half = splat<V>(0.5f);
  const V first = fma(c21, sub(d[4], d[2]), sub(d[0], d[6]));
  const V last = fma(c21, sub(d[3], d[5]), sub(d[7], d[1]));
  const V even1 = fnma(c17, d[4], add(d[2], d[6])), odd1 = fnma(c17, d[3], add(d[1], d[5]));
  const V even2 = fnma(splat<V>(1.25f), d[4], fma(splat<V>(0.25f), d[2], d[6]));
  const V odd2 = fma(splat<V>(4.0f), d[5], fnma(splat<V>(5.0f), d[3], d[1]));
  const V even3 = fnma(splat<V>(5.0f), d[4], fma(splat<V>(4.0f), d[2], d[6]));
  const V odd3 = fma(splat<V>(4.0f), d[1], fnma(splat<V>(5.0f), d[3], d[5]));
  d[0] = first, d[1] = add(even1, odd1), d[2] = sub(even1, odd1);
  d[3] = fma(half, odd2, even2), d[4] = fnma(half, odd2, even2);
  d[5] = fma(half, odd3, even3), d[6] = fnma(half, odd3, even3), d[7] = last;
}

// At m: N positions to M values. Value i sums the positions by the i-th power of their points: those of a
// point and its negative are added for even i, subtracted for odd i. The last value has infinity's position
// too.
template <class V>
SINTER_INLINE void winograd_back(const V (&m)[1], V (&y)[1]) {
  y[0] = m[0];
}
template <int M, class V>
SINTER_INLINE void winograd_back(const V (&m)[4], V (&y)[M]) {
  const V a = add(m[1], m[2]), b = sub(m[1], m[2]);
  y[0] = add(m[0], a);
  SINTER_UNROLL
  for (int i = 1; i < M; i++) {
    const V part = i % 2 == 0 ? a : b;
    y[i] = i == M - 1 ? add(part, m[3]) : part;
  }
}
template <int M, class V>
SINTER_INLINE void winograd_back(const V (&m)[6], V (&y)[M]) {
  constexpr float kNear[5] = {1.0f, 0.70710678f, 0.5f, 0.35355339f, 0.25f};
  constexpr float kFar[5] = {1.0f, 1.41421356f, 2.0f, 2.82842712f, 4.0f};
  const V a = add(m[1], m[2]), b = sub(m[1], m[2]), c = add(m[3], m[4]), d = sub(m[3], m[4]);
  y[0] = add(add(m[0], a), c);
  SINTER_UNROLL
  for (int i = 1; i < M; i++) {
    const V near = i % 2 == 0 ? a : b, far = i % 2 == 0 ? c : d, power = splat<V>(kFar[i]);
    y[i] = fma(splat<V>(kNear[i]), near, i == M - 1 ? fma(power, far, m[5]) : mul(power, far));
  }
}
template <int M, class V>
SINTER_INLINE void winograd_back(const V (&m)[8], V (&y)[M]) {
  constexpr float kTwo[7] = {1.0f, 2.0f, 4.0f, 8.0f, 16.0f, 32.0f, 64.0f};
  constexpr float kHalf[7] = {1.0f, 0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f, 0.015625f};
  const V a = add(m[1], m[2]), b = sub(m[1], m[2]), c = add(m[3], m[4]), d = sub(m[3], m[4]);
  const V e = add(m[5], m[6]), f = sub(m[5], m[6]);
  y[0] = add(add(m[0], a), add(c, e));
  SINTER_UNROLL
  for (int i = 1; i < M; i++) {
    const V one = i % 2 == 0 ? a : b, two = i % 2 == 0 ? c : d, half = i % 2 == 0 ? e : f;
    y[i] = fma(splat<V>(kTwo[i]), two, fma(splat<V>(kHalf[i]), half, i == M - 1 ? add(one, m[7]) : one));
  }
}

// An axis of M outputs, a stride of S (1 or 2) and R taps.
template <int M, int R, int S>
struct WinogradAxis {
  static constexpr bool kPhases = S == 2 && R > 1;
  static constexpr int kPositions = (M - 1) * S + R;                    // and inputs
  static constexpr int kEven = kPhases ? M + (R - 1) / 2 : kPositions;  // positions of even inputs and taps
  static constexpr int kOdd = kPositions - kEven;
  static constexpr bool kOneTap = kPhases && R == 3;  // odd inputs have one tap
  static constexpr int kMatrices = kOneTap ? kEven + 1 : kPositions;
  static constexpr int matrix(int position) { return position < kMatrices ? position : kMatrices - 1; }
};

// Bt d along an axis, in place: positions of the even inputs before those of the odd ones.
template <class Axis, class V>
SINTER_INLINE void winograd_forward_along(V (&d)[Axis::kPositions]) {
  if constexpr (!Axis::kPhases) {
    winograd_forward(d);
  } else {
    V even[Axis::kEven], odd[Axis::kOdd];
    SINTER_UNROLL
    for (int i = 0; i < Axis::kEven; i++) even[i] = d[2 * i];
    SINTER_UNROLL
    for (int i = 0; i < Axis::kOdd; i++) odd[i] = d[2 * i + 1];
    winograd_forward(even);
    if constexpr (!Axis::kOneTap) winograd_forward(odd);
    SINTER_UNROLL
    for (int i = 0; i < Axis::kEven; i++) d[i] = even[i];
    SINTER_UNROLL
    for (int i = 0; i < Axis::kOdd; i++) d[Axis::kEven + i] = odd[i];
  }
}

// At m along an axis.
template <class Axis, int M, class V>
SINTER_INLINE void winograd_back_along(const V (&m)[Axis::kPositions], V (&y)[M]) {
  if constexpr (!Axis::kPhases) {
    winograd_back(m, y);
  } else {
    V even[Axis::kEven], odd[Axis::kOdd], of_odd[M];
    SINTER_UNROLL
    for (int i = 0; i < Axis::kEven; i++) even[i] = m[i];
    SINTER_UNROLL
    for (int i = 0; i < Axis::kOdd; i++) odd[i] = m[Axis::kEven + i];
    winograd_back(even, y);
    if constexpr (!Axis::kOneTap) winograd_back(odd, of_odd);
    SINTER_UNROLL
    for (int i = 0; i < M; i++) y[i] = add(y[i], Axis::kOneTap ? odd[i] : of_odd[i]);
  }
}

// Bt d for one column of the picture: rows [first, last) of N are inside, `from` is row 0's element. A row of
// memory is Times rows of the picture, of which row 0 is number `phase`.
template <class Axis, int Times, class E, class V, int N = Axis::kPositions>
SINTER_INLINE void winograd_column(const E* from, std::ptrdiff_t row, int phase, int first, int last,
                                   int lanes, V (&to)[N]) {
  const auto at = [&](int i) __attribute__((always_inline)) {
    return from + (Times == 1 ? i : (phase + i) / Times) * row;
  };
  if (first == 0 && last == N) {
    SINTER_UNROLL
    for (int i = 0; i < N; i++) to[i] = load_lanes<V>(at(i), lanes);
  } else {
    SINTER_UNROLL
    for (int i = 0; i < N; i++) to[i] = i >= first && i < last ? load_lanes<V>(at(i), lanes) : zero<V>();
  }
  winograd_forward_along<Axis>(to);
}

}  // namespace detail

namespace detail {

// What six positions make of a line's weights (g0, sqrt(2) g1, g2), but for the factors of kWinogradScale:
// g0, near + g1, near - g1, far + g1, far - g1, g2 with near = 2 g0 + g2 and far = g0 + 2 g2: sums only, no
// constants in registers. Each function makes one of a line's.
constexpr float kWinogradScale[6] = {1.0f, -1.0f / 3, -1.0f / 3, 1.0f / 6, 1.0f / 6, 1.0f};
template <int J>
SINTER_INLINE f32v winograd_weight(const float* w) {
  const f32v outer = load(J == 5 ? w + 2 * kLanes : w);
  if (J == 0 || J == 5) return outer;
  const f32v other = load(w + 2 * kLanes), even = add(add(outer, other), J <= 2 ? outer : other);
  return J % 2 == 1 ? add(even, load(w + kLanes)) : sub(even, load(w + kLanes));
}

// Column J of winograd_square_sums, over `k` channels of a block.
template <int J, int T>
SINTER_INLINE void winograd_square_column(const float* v, std::ptrdiff_t plane, std::ptrdiff_t pitch,
                                          const float* w, std::ptrdiff_t k, float* to,
                                          std::ptrdiff_t to_plane, std::ptrdiff_t to_pitch, bool first,
                                          bool last, const float* ahead) {
  v += J * plane, to += J * to_plane;
  Tile<T, 6> sum;  // [position][tile]
  tile_bias(sum, static_cast<const float*>(nullptr));
  if (!first) {
    SINTER_UNROLL
    for (int i = 0; i < 6; i++) {
      SINTER_UNROLL
      for (int t = 0; t < T; t++) sum.a[i][t] = load(to + 6 * i * to_plane + t * to_pitch);
    }
  }
  for (std::ptrdiff_t c = 0; c < k; c++) {
    // Nine lines of the cache for the six columns.
    __builtin_prefetch(ahead + J * kLanes, 0, 2);
    if (J < 3) __builtin_prefetch(ahead + (6 + J) * kLanes, 0, 2);
    const auto position = [&](int i, f32v u) __attribute__((always_inline)) {
      SINTER_UNROLL
      for (int t = 0; t < T; t++) sum.a[i][t] = fma(u, splat(v[6 * i * plane + t * pitch]), sum.a[i][t]);
    };
    const f32v g0 = winograd_weight<J>(w), g2 = winograd_weight<J>(w + 6 * kLanes);
    position(0, g0);
    position(5, g2);
    const f32v g1 = winograd_weight<J>(w + 3 * kLanes), both = add(g0, g2);
    const f32v near = add(both, g0), far = add(both, g2);
    position(1, add(near, g1));
    position(2, sub(near, g1));
    position(3, add(far, g1));
    position(4, sub(far, g1));
    v++;
    w += 9 * kLanes;
    ahead += 9 * kLanes;
  }
  SINTER_UNROLL
  for (int i = 0; i < 6; i++) {
    const f32v scale = splat(last ? kWinogradScale[i] * kWinogradScale[J] : 1.0f);
    SINTER_UNROLL
    for (int t = 0; t < T; t++) store(to + 6 * i * to_plane + t * to_pitch, mul(scale, sum.a[i][t]));
  }
}

}  // namespace detail

// The sums of T tiles at 6 x 6 positions, over k channels, from 3 x 3 weights that are transformed when they
// are used: a quarter as many come from memory, and a column of positions at a time has its sums in registers
// while a block of channels' weights and inputs stays in the first-level cache.
// w: [k][row][column][kLanes] of one vector of output channels, of which rows and columns 1 are multiplied by
// sqrt(2). Position (i, j) of tile t, channel c is v[(6 i + j) * Plane + t * Pitch + c]; its sums go to
// to[(6 i + j) * SumPlane + t * SumPitch]. `ahead`: weights that will be read soon; they need not exist. For
// 32 registers and words that multiply by an element of memory: T <= 4. Layers of one shape share it.
template <int T, std::ptrdiff_t Plane, std::ptrdiff_t Pitch, std::ptrdiff_t SumPlane, std::ptrdiff_t SumPitch>
[[gnu::noinline]] static void winograd_square_sums(const float* v, const float* w, std::ptrdiff_t k,
                                                   float* to, const float* ahead) {
  constexpr std::ptrdiff_t kBlock = 48;
  for (std::ptrdiff_t c = 0; c < k; c += kBlock) {
    const std::ptrdiff_t channels = k - c < kBlock ? k - c : kBlock;
    const auto column = [&](auto j) __attribute__((always_inline)) {
      detail::winograd_square_column<j.value, T>(v + c, Plane, Pitch, w + c * 9 * kLanes, channels, to,
                                                 SumPlane, SumPitch, c == 0, c + kBlock >= k,
                                                 ahead + c * 9 * kLanes);
    };
    column(Int<0>()), column(Int<1>()), column(Int<2>());
    column(Int<3>()), column(Int<4>()), column(Int<5>());
  }
}

// The matrix of weights of position k: positions of a single tap share theirs. MY x MX outputs, RY x RX taps,
// strides of SY and SX.
template <int MY, int MX, int RY, int RX, int SY, int SX>
constexpr std::int64_t winograd_matrix(std::int64_t k) {
  using Down = detail::WinogradAxis<MY, RY, SY>;
  using Along = detail::WinogradAxis<MX, RX, SX>;
  const int i = static_cast<int>(k) / Along::kPositions, j = static_cast<int>(k) % Along::kPositions;
  return Down::matrix(i) * Along::kMatrices + Along::matrix(j);
}

// `tiles` neighbouring tiles of one row of tiles, for strides of SY and SX, of a picture
// [height][width][channels]; (top, left) is the corner of the first one's inputs, possibly outside, where all
// is 0. Position k of tile t, channel c goes to v[k * plane + t * pitch + c]; pitch >= channels rounded up to
// whole vectors, the lanes beyond are 0. Each pixel in memory is Times x Times of the picture: x is [height /
// Times][width / Times][channels], and `between` channels of another tensor may lie behind each pixel's.
template <int MY, int MX, int RY, int RX, int SY, int SX, int Times = 1, class E>
[[gnu::noinline]] static void winograd_input(const E* x, std::int64_t height, std::int64_t width,
                                             std::int64_t channels, std::int64_t top, std::int64_t left,
                                             std::int64_t tiles, E* v, std::int64_t plane, std::int64_t pitch,
                                             std::int64_t between = 0) {
  using Down = detail::WinogradAxis<MY, RY, SY>;
  using Along = detail::WinogradAxis<MX, RX, SX>;
  using V = vector_of<E>;
  constexpr int NY = Down::kPositions, NX = Along::kPositions;
  constexpr int kKnown = NX > MX * SX ? NX - MX * SX : 0;  // columns that two tiles share
  const int first = top < 0 ? static_cast<int>(-top) : 0;
  const int last = height - top < NY ? static_cast<int>(height - top) : NY;
  const std::int64_t pixel = channels + between, row = width / Times * pixel, top_row = floor_div(top, Times);
  const int phase = static_cast<int>(top - top_row * Times);
  const auto tile = [&](V(&e)[NX][NY], std::int64_t t, std::int64_t c, int lanes)
      __attribute__((always_inline)) {
    // The first columns are those of the tile before.
    const int known = t > 0 ? kKnown : 0;
    if (known > 0) {
      SINTER_UNROLL
      for (int i = 0; i < NY; i++) {
        SINTER_UNROLL
        for (int j = 0; j < kKnown; j++) e[j][i] = e[MX * SX + j][i];
      }
    }
    for (int j = known; j < NX; j++) {
      const std::int64_t column = left + t * MX * SX + j;
      V d[NY];
      if (column >= 0 && column < width) {
        detail::winograd_column<Down, Times>(x + top_row * row + column / Times * pixel + c, row, phase,
                                             first, last, lanes, d);
      } else {
        SINTER_UNROLL
        for (int i = 0; i < NY; i++) d[i] = zero<V>();
      }
      SINTER_UNROLL
      for (int i = 0; i < NY; i++) e[j][i] = d[i];
    }
    E* to = v + t * pitch + c;
    for (int i = 0; i < NY; i++) {
      V d[NX];
      SINTER_UNROLL
      for (int j = 0; j < NX; j++) d[j] = e[j][i];
      detail::winograd_forward_along<Along>(d);
      SINTER_UNROLL
      for (int j = 0; j < NX; j++) store(to + j * plane, d[j]);
      to += NX * plane;
    }
  };
  // As many vectors at once as a line of the cache holds, so that its parts are used while it is near.
  constexpr int kWide = lanes_of<E>, kElements = static_cast<int>(64 / sizeof(E));
  constexpr int kLine = kWide >= kElements ? 1 : kElements / kWide;
  std::int64_t c = 0;
  for (; c + kLine * kWide <= channels; c += kLine * kWide) {
    V e[kLine][NX][NY];
    for (std::int64_t t = 0; t < tiles; t++)
      for (int u = 0; u < kLine; u++) tile(e[u], t, c + u * kWide, kWide);
  }
  // Counted down: g++ 12 warns of indices that it thinks this loop could reach otherwise.
  for (std::int64_t left = channels - c; left > 0; left -= kWide, c += kWide) {
    V e[NX][NY];
    const int lanes = left < kWide ? static_cast<int>(left) : kWide;
    for (std::int64_t t = 0; t < tiles; t++) tile(e, t, c, lanes);
  }
}

// One vector of output channels of a tile: its sums are m[k * plane] for position k. Calls put(i, j, value)
// for the outputs in the first `rows` rows and `columns` columns of the tile; i is known to the compiler.
template <int MY, int MX, int RY, int RX, int SY, int SX, class E, class Put>
SINTER_INLINE void winograd_output(const E* m, std::int64_t plane, std::int64_t rows, std::int64_t columns,
                                   Put put) {
  using Down = detail::WinogradAxis<MY, RY, SY>;
  using Along = detail::WinogradAxis<MX, RX, SX>;
  using V = vector_of<E>;
  constexpr int NY = Down::kPositions, NX = Along::kPositions;
  V e[MX][NY];
  for (int i = 0; i < NY; i++) {
    V d[NX], y[MX];
    SINTER_UNROLL
    for (int j = 0; j < NX; j++) d[j] = load<V>(m + (i * NX + j) * plane);
    detail::winograd_back_along<Along>(d, y);
    SINTER_UNROLL
    for (int j = 0; j < MX; j++) e[j][i] = y[j];
  }
  for (int j = 0; j < columns; j++) {
    V y[MY];
    detail::winograd_back_along<Down>(e[j], y);
    SINTER_UNROLL
    for (int i = 0; i < MY; i++)
      if (i < rows) put(i, j, y[i]);
  }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_WINOGRAD_H_
