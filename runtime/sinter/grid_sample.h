// Reading an image at positions between its pixels: GridSample (ONNX 20), and AffineGrid, which makes such
// positions.
//
// Positions are normalised: -1 and 1 are the centres of the first and last pixel (align_corners) or their
// outer edges. For a block of positions the taps along every axis are found once; their products are offsets
// and weights that serve all channels. Float images with many channels are turned first where positions are
// many (sinter/grid_lanes.h). NaN reads as no pixel (zeros) or as the first one.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "sinter/half.h"

namespace sinter {

enum class GridPadding { kZeros, kBorder, kReflection };

namespace grid_detail {

inline float real(float v) { return v; }
inline double real(double v) { return v; }
inline float real(half v) { return to_float(v); }
inline float real(bfloat16 v) { return to_float(v); }
inline void put(float& to, double v) { to = static_cast<float>(v); }
inline void put(double& to, double v) { to = v; }
inline void put(half& to, double v) { to = to_half(static_cast<float>(v)); }
inline void put(bfloat16& to, double v) { to = to_bfloat16(static_cast<float>(v)); }

inline double within(double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; }

// v mirrored at lo and hi until it lies between them.
inline double mirrored(double v, double lo, double hi) {
  const double range = hi - lo;
  if (range <= 0.0) return lo;
  const double beyond = v < lo ? lo - v : v > hi ? v - hi : -1.0;
  if (beyond < 0.0) return v;
  const double turns = std::trunc(beyond / range), rest = beyond - turns * range;
  const bool even = std::fmod(turns, 2.0) == 0.0;
  return (v < lo) == even ? lo + rest : hi - rest;
}

// The taps along one axis: 1 (nearest), 2 (linear) or 4 (cubic); those without a pixel are left out.
struct Axis {
  std::int64_t pixel[4];
  double weight[4];
  int count;
};

inline void add_tap(Axis& a, double at, double weight, std::int64_t n, bool align, GridPadding padding) {
  const double last = static_cast<double>(n - 1);
  if (padding == GridPadding::kReflection)
    at = std::trunc(mirrored(at, align ? 0.0 : -0.5, align ? last : last + 0.5));
  if (padding == GridPadding::kZeros && !(at >= 0.0 && at <= last)) return;
  a.pixel[a.count] = static_cast<std::int64_t>(within(at, 0.0, last));
  a.weight[a.count++] = weight;
}

// Where a normalised position lies among n >= 1 pixels; of the grid's precision T (float for the 16-bit
// types).
template <class T>
inline double place(T position, std::int64_t n, bool align) {
  const T length = static_cast<T>(n);
  // Rounded as it stands, whatever -ffp-contract says: the nearest pixel hangs on it.
  const T product = static_cast<T>(static_cast<double>(position + T{1}) * static_cast<double>(length));
  return static_cast<double>(align ? (position + T{1}) / T{2} * (length - T{1}) : (product - T{1}) / T{2});
}

// Of a place v among n pixels.
inline Axis axis_taps(double v, std::int64_t n, int width, bool align, GridPadding padding) {
  Axis a = {{0, 0, 0, 0}, {0.0, 0.0, 0.0, 0.0}, 0};
  if (v != v) {
    if (padding == GridPadding::kZeros) return a;
    v = 0.0;
  }
  v = within(v, -1e15, 1e15);
  if (width == 1) v = std::nearbyint(v);
  const double last = static_cast<double>(n - 1), lo = align ? 0.0 : -0.5, hi = align ? last : last + 0.5;
  if (v < lo || v > hi) {
    if (padding == GridPadding::kBorder) v = within(v, 0.0, last);
    if (padding == GridPadding::kReflection) v = mirrored(v, lo, hi);
  }
  const double first = std::floor(v), f = v - first;
  if (width == 1) {
    add_tap(a, v, 1.0, n, align, padding);
  } else if (width == 2) {
    add_tap(a, first, 1.0 - f, n, align, padding);
    add_tap(a, first + 1.0, f, n, align, padding);
  } else {  // Keys' cubic convolution, a = -0.75
    const double k = -0.75, g = 1.0 - f, p = 1.0 + f, q = 2.0 - f;
    add_tap(a, first - 1.0, ((k * p - 5.0 * k) * p + 8.0 * k) * p - 4.0 * k, n, align, padding);
    add_tap(a, first, ((k + 2.0) * f - (k + 3.0)) * f * f + 1.0, n, align, padding);
    add_tap(a, first + 1.0, ((k + 2.0) * g - (k + 3.0)) * g * g + 1.0, n, align, padding);
    add_tap(a, first + 2.0, ((k * q - 5.0 * k) * q + 8.0 * k) * q - 4.0 * k, n, align, padding);
  }
  return a;
}

constexpr int power(int base, int exponent) { return exponent == 0 ? 1 : base * power(base, exponent - 1); }

// The taps of a block of positions.
template <int Width, int K, class Sum>
struct Block {
  static constexpr int kTaps = power(Width, K), kPositions = kTaps > 8 ? 8 : 32;
  std::int64_t at[kPositions][kTaps];
  Sum weight[kPositions][kTaps];
  int counts[kPositions];

  // `position`: K numbers, the fastest image axis first.
  template <class G>
  void add(int p, const G* position, const std::int64_t (&dims)[K], bool align, GridPadding padding) {
    double v[K];
    // Whether it lies between pixels along all axes, as most do; and whether it touches one.
    bool between = Width == 2, near = true;
    for (int d = 0; d < K; ++d) {
      const double extent = static_cast<double>(dims[d]);
      v[d] = place(real(position[K - 1 - d]), dims[d], align);
      between = between && v[d] >= 0.0 && v[d] < extent - 1.0;
      near = near && v[d] > -1.0 && v[d] < extent;
    }
    if (between)
      add_between(p, v, dims);
    else if (Width == 2 && padding == GridPadding::kZeros && !near)
      counts[p] = 0;
    else
      add_any(p, v, dims, align, padding);
  }

  void add_between(int p, const double (&v)[K], const std::int64_t (&dims)[K]) {
    std::int64_t first = 0, stride[K];
    double share[K][2];
    for (int d = 0; d < K; ++d) {
      const std::int64_t pixel = static_cast<std::int64_t>(v[d]);
      share[d][1] = v[d] - static_cast<double>(pixel);
      share[d][0] = 1.0 - share[d][1];
      first = first * dims[d] + pixel;
    }
    stride[K - 1] = 1;
    for (int d = K - 1; d > 0; --d) stride[d - 1] = stride[d] * dims[d];
    for (int t = 0; t < kTaps; ++t) {
      std::int64_t offset = first;
      double product = 1.0;
      for (int d = 0; d < K; ++d) {
        const int next = t >> (K - 1 - d) & 1;
        offset += next * stride[d];
        product *= share[d][next];
      }
      at[p][t] = offset;
      weight[p][t] = static_cast<Sum>(product);
    }
    counts[p] = kTaps;
  }

  void add_any(int p, const double (&v)[K], const std::int64_t (&dims)[K], bool align, GridPadding padding) {
    std::int64_t offset[kTaps] = {0};
    double product[kTaps] = {1.0};
    int count = 1;
    for (int d = 0; d < K; ++d) {
      const Axis a = axis_taps(v[d], dims[d], Width, align, padding);
      // From the back, so that the products can lie where their factors were.
      for (int i = count - 1; i >= 0; --i) {
        const std::int64_t before = offset[i];
        const double factor = product[i];
        for (int j = a.count - 1; j >= 0; --j) {
          offset[i * a.count + j] = before * dims[d] + a.pixel[j];
          product[i * a.count + j] = factor * a.weight[j];
        }
      }
      count *= a.count;
    }
    for (int t = 0; t < count; ++t) {
      at[p][t] = offset[t];
      weight[p][t] = static_cast<Sum>(product[t]);
    }
    counts[p] = count;
  }

  // Of one plane at `count` positions.
  template <class T>
  void sample(const T* plane, T* y, std::int64_t count) const {
    for (std::int64_t p = 0; p < count; ++p) {
      Sum s{0};
      for (int t = 0; t < counts[p]; ++t) s += weight[p][t] * static_cast<Sum>(real(plane[at[p][t]]));
      put(y[p], static_cast<double>(s));
    }
  }
};

}  // namespace grid_detail

// In place of GridLanes: planes are read where they are.
struct NoGridLanes {};

// One batch: image [channels][dims...], grid [positions][K] (fastest image axis first), y [channels]
// [positions]. K is 1 to 3; Width 1 nearest, 2 linear, 4 cubic; every extent of the image is at least 1.
template <int Width, int K, class T, class G, class Lanes = NoGridLanes>
inline void grid_sample(const T* image, const G* grid, T* y, std::int64_t channels,
                        const std::int64_t (&dims)[K], std::int64_t positions, bool align,
                        GridPadding padding, [[maybe_unused]] const Lanes& lanes = {}) {
  using Block = grid_detail::Block<Width, K, std::conditional_t<std::is_same_v<T, double>, double, float>>;
  std::int64_t pixels = 1;
  for (int d = 0; d < K; ++d) pixels *= dims[d];
  // Else the copy takes longer than it saves.
  [[maybe_unused]] const bool turns = positions * Block::kTaps >= pixels;
  if constexpr (!std::is_same_v<Lanes, NoGridLanes>)
    if (turns) lanes.turn(image, channels, pixels);
  for (std::int64_t first = 0; first < positions; first += Block::kPositions) {
    const std::int64_t left = positions - first, count = left < Block::kPositions ? left : Block::kPositions;
    Block block;
    for (int p = 0; p < count; ++p) block.add(p, grid + (first + p) * K, dims, align, padding);
    if constexpr (!std::is_same_v<Lanes, NoGridLanes>)
      if (turns) {
        lanes.sample(block, channels, count, y + first, positions);
        continue;
      }
    for (std::int64_t c = 0; c < channels; ++c)
      block.sample(image + c * pixels, y + c * positions + first, count);
  }
}

// theta [batch][K][K + 1] and the extents of the image give y [batch][dims...][K]: for each pixel the
// position that the affine map takes its own one to.
template <int K, class T>
inline void affine_grid(const T* theta, T* y, std::int64_t batch, const std::int64_t (&dims)[K], bool align) {
  std::int64_t pixels = 1;
  for (int d = 0; d < K; ++d) pixels *= dims[d];
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t p = 0; p < pixels; ++p) {
      double from[K + 1];
      std::int64_t rest = p;
      for (int d = 0; d < K; ++d) {  // x, then y, then z
        const std::int64_t n = dims[K - 1 - d];
        const double i = static_cast<double>(rest % n), extent = static_cast<double>(n);
        rest /= n;
        from[d] = !align ? (2.0 * i + 1.0) / extent - 1.0 : n > 1 ? 2.0 * i / (extent - 1.0) - 1.0 : 0.0;
      }
      from[K] = 1.0;
      for (int row = 0; row < K; ++row) {
        double sum = 0.0;
        for (int c = 0; c <= K; ++c)
          sum += static_cast<double>(grid_detail::real(theta[(b * K + row) * (K + 1) + c])) * from[c];
        grid_detail::put(y[(b * pixels + p) * K + row], sum);
      }
    }
}

}  // namespace sinter
