// Layers on halves that are no products: depthwise convolution, average pools, softmax and layer
// normalisation of rows. Sums of more than a kernel's few taps are floats, as are means, exponents and
// denominators; what is read and stored are halves.
#ifndef SINTER_ROWS_HALF_H_
#define SINTER_ROWS_HALF_H_
#ifndef SINTER_HALF_ARITHMETIC
#error "include sinter/half_arithmetic.h and a sinter/simd_*.h before sinter/rows_half.h"
#endif

#include "sinter/dims.h"
#include "sinter/math_half.h"

namespace sinter::SINTER_ISA {

// T neighbouring outputs of a row of a depthwise convolution of KH x KW taps, 8 channels of each: sum[t] +=
// products, in halves, in the order of the taps. x: the first output's first tap; inputs are `row` halves
// apart down and `pixel` along, weights [KH][KW] `tap` halves apart. Rows of taps outside [first, last) are
// left out. An input is loaded once for all outputs of the row that it reaches.
//
// Registers: T sums, KW weights, T * Stride or so inputs. 3x3: T up to 8 of stride 1, 4 of stride 2; 5x5: 4.
template <int KH, int KW, int Stride, int T>
SINTER_INLINE void depthwise_tile(const half* x, std::ptrdiff_t row, std::ptrdiff_t pixel, const half* w,
                                  std::ptrdiff_t tap, int first, int last, int lanes, f16v (&sum)[T]) {
  constexpr int kInputs = (T - 1) * Stride + KW;
  const auto taps = [&](int ky) __attribute__((always_inline)) {
    f16v weight[KW];
    SINTER_UNROLL
    for (int kx = 0; kx < KW; kx++) weight[kx] = load_lanes<f16v>(w + (ky * KW + kx) * tap, lanes);
    SINTER_UNROLL
    for (int i = 0; i < kInputs; i++) {
      const f16v in = load_lanes<f16v>(x + ky * row + i * pixel, lanes);
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
        const int kx = i - t * Stride;
        if (kx >= 0 && kx < KW) sum[t] = fma(in, weight[kx], sum[t]);
      }
    }
  };
  if (first == 0 && last == KH) {
    SINTER_UNROLL
    for (int ky = 0; ky < KH; ky++) taps(ky);
  } else {
    for (int ky = first; ky < last; ky++) taps(ky);
  }
}

// Sums of halves in floats.
SINTER_INLINE Wide wide_zero() {
  Wide w;
  SINTER_UNROLL
  for (int i = 0; i < kFloatVectors; i++) w.part[i] = zero();
  return w;
}
SINTER_INLINE void add_to(Wide& sum, f16v v) {
  const Wide w = widen_lanes(v);
  SINTER_UNROLL
  for (int i = 0; i < kFloatVectors; i++) sum.part[i] = add(sum.part[i], w.part[i]);
}
SINTER_INLINE float hsum(const Wide& w) {
  f32v sum = w.part[0];
  SINTER_UNROLL
  for (int i = 1; i < kFloatVectors; i++) sum = add(sum, w.part[i]);
  return hsum(sum);
}
// f(i, part i) of each vector of floats, rounded.
template <class F>
SINTER_INLINE f16v narrow_of(Wide w, F f) {
  SINTER_UNROLL
  for (int i = 0; i < kFloatVectors; i++) w.part[i] = f(i, w.part[i]);
  return narrow(w);
}

// The means of `lanes` columns of `rows` rows that are `stride` halves apart: an average pool's window, or a
// whole picture.
SINTER_INLINE f16v column_means(const half* x, std::int64_t rows, std::int64_t stride, int lanes) {
  Wide sum = wide_zero();
  for (std::int64_t r = 0; r < rows; r++) add_to(sum, load_lanes<f16v>(x + r * stride, lanes));
  const f32v share = splat(1.0f / static_cast<float>(rows));
  return narrow_of(
      sum, [&](int, f32v v) __attribute__((always_inline)) { return mul(v, share); });
}

namespace detail {
// f(offset, lanes) for each vector of a row of n halves.
template <class F>
SINTER_INLINE void each_vector(std::int64_t n, F f) {
  std::int64_t j = 0;
  for (; j + kHalfLanes <= n; j += kHalfLanes) f(j, kHalfLanes);
  if (j < n) f(j, static_cast<int>(n - j));
}
// The lanes at and beyond `lanes` get `other`.
SINTER_INLINE f16v fill_lanes(f16v v, int lanes, float other) {
  if (lanes == kHalfLanes) return v;
  alignas(16) half all[kHalfLanes];
  store(static_cast<half*>(all), splat<f16v>(other));
  store_n(all, v, lanes);
  return load<f16v>(all);
}
}  // namespace detail

// y[n] = softmax of x[n], n >= 1; y may be x. Weights are stored as halves and scaled in a second pass:
// |error| <= 2 ULP or 2^-24.
SINTER_INLINE void softmax_row(const half* x, std::int64_t n, half* y) {
  f16v greatest = splat<f16v>(-__builtin_inff());
  detail::each_vector(
      n, [&](std::int64_t j, int lanes) __attribute__((always_inline)) {
        greatest =
            max(greatest, detail::fill_lanes(load_lanes<f16v>(x + j, lanes), lanes, -__builtin_inff()));
      });
  const f32v top = splat(hmax(greatest));
  f32v total = zero();
  detail::each_vector(
      n, [&](std::int64_t j, int lanes) __attribute__((always_inline)) {
        Wide e = widen_lanes(detail::fill_lanes(load_lanes<f16v>(x + j, lanes), lanes, -__builtin_inff()));
        SINTER_UNROLL
        for (int i = 0; i < kFloatVectors; i++) {
          e.part[i] = exp_nonpos(sub(e.part[i], top));
          total = add(total, e.part[i]);
        }
        store_lanes(y + j, narrow(e), lanes);
      });
  // What lanes beyond the row added is exp_nonpos(-inf), 0.
  const f32v share = splat(1.0f / hsum(total));
  detail::each_vector(
      n, [&](std::int64_t j, int lanes) __attribute__((always_inline)) {
        store_lanes(
            y + j,
            narrow_of(
                widen_lanes(load_lanes<f16v>(y + j, lanes)), [&](int, f32v v) __attribute__((
                                                                 always_inline)) { return mul(v, share); }),
            lanes);
      });
}

// y[n] = (x - mean) / sqrt(variance + epsilon) * scale + shift of a row, n >= 1; shift may be null, y may be
// x. Mean, then the squares of what is left, in floats; rounded once.
SINTER_INLINE void layer_norm_row(const half* x, std::int64_t n, const half* scale, const half* shift,
                                  float epsilon, half* y) {
  Wide sum = wide_zero(), squares = wide_zero();
  detail::each_vector(
      n, [&](std::int64_t j, int lanes)
             __attribute__((always_inline)) { add_to(sum, load_lanes<f16v>(x + j, lanes)); });
  const float mean = hsum(sum) / static_cast<float>(n);
  const f32v m = splat(mean);
  detail::each_vector(
      n, [&](std::int64_t j, int lanes) __attribute__((always_inline)) {
        alignas(16) float inside[kHalfLanes];
        const Wide w = widen_lanes(load_lanes<f16v>(x + j, lanes));
        if (lanes < kHalfLanes)
          for (int l = 0; l < kHalfLanes; l++) inside[l] = l < lanes ? 1.0f : 0.0f;
        SINTER_UNROLL
        for (int i = 0; i < kFloatVectors; i++) {
          f32v d = sub(w.part[i], m);
          if (lanes < kHalfLanes) d = mul(d, load(inside + i * kLanes));
          squares.part[i] = fma(d, d, squares.part[i]);
        }
      });
  const float variance = hsum(squares) / static_cast<float>(n);
  const f32v by = splat(1.0f / __builtin_sqrtf(variance + epsilon));
  detail::each_vector(
      n, [&](std::int64_t j, int lanes) __attribute__((always_inline)) {
        const Wide s = widen_lanes(load_lanes<f16v>(scale + j, lanes));
        const Wide b = shift == nullptr ? wide_zero() : widen_lanes(load_lanes<f16v>(shift + j, lanes));
        store_lanes(y + j,
                    narrow_of(
                        widen_lanes(load_lanes<f16v>(x + j, lanes)),
                        [&](int i, f32v v) __attribute__((always_inline)) {
                          return fma(mul(sub(v, m), by), s.part[i], b.part[i]);
                        }),
                    lanes);
      });
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_ROWS_HALF_H_
