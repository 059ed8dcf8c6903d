// Discrete Fourier transforms (ONNX DFT 20 and STFT 17) of any length.
//
// Stockham's scheme with the prime factors of the length as radices: n * (sum of the factors) / 2 products,
// so a prime takes n * n / 2. It writes in order, alternating between two buffers. Numbers of an odd radix
// are taken in pairs that mirror each other, whose sum meets the cosines and whose difference the sines.
#pragma once
#include <cmath>
#include <cstdint>

#include "sinter/scalar.h"

namespace sinter {

// R: float or double, the type that a transform is computed in.
template <class R>
struct Complex {
  R re, im;
};

namespace fft_detail {

inline constexpr double kTurn = 6.283185307179586476925286766559;  // 2 pi

// roots[k] = exp(-2 pi i k / n), conjugated for the inverse.
template <class R>
inline void fill_roots(std::int64_t n, bool inverse, Complex<R>* roots) {
  for (std::int64_t k = 0; k < n; ++k) {
    const double angle = kTurn * (static_cast<double>(k) / static_cast<double>(n));
    roots[k] = {static_cast<R>(std::cos(angle)),
                static_cast<R>(inverse ? std::sin(angle) : -std::sin(angle))};
  }
}

inline std::int64_t least_factor(std::int64_t n) {
  for (std::int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

template <class R>
inline Complex<R> times(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// One step: `stride` transforms of length m * p become stride * p of length m. Bin r of the p inputs x,
// `apart` from each other, is turned by k * r / (m * p) of a circle.
template <class R>
inline void step(const Complex<R>* x, std::int64_t n, std::int64_t p, std::int64_t m, std::int64_t stride,
                 const Complex<R>* roots, Complex<R>* y) {
  const std::int64_t apart = stride * m, last = p % 2 == 0 ? p / 2 : 0;
  for (std::int64_t k = 0; k < m; ++k)
    for (std::int64_t r = 0; 2 * r <= p; ++r) {
      const std::int64_t mirror = (p - r) % p;
      const Complex<R> turn = roots[k * r % (m * p) * stride % n],
                       mirror_turn = roots[k * mirror % (m * p) * stride % n];
      for (std::int64_t q = 0; q < stride; ++q) {
        const Complex<R>* from = x + q + stride * k;
        Complex<R> even = from[0], odd{R{0}, R{0}};
        for (std::int64_t j = 1; 2 * j < p; ++j) {
          const Complex<R> a = from[apart * j], b = from[apart * (p - j)], w = roots[j * r % p * (n / p)];
          even.re += w.re * (a.re + b.re);
          even.im += w.re * (a.im + b.im);
          odd.re -= w.im * (a.im - b.im);
          odd.im += w.im * (a.re - b.re);
        }
        if (last != 0) {  // the one in the middle mirrors itself
          const R sign = r % 2 == 0 ? R{1} : R{-1};
          even.re += sign * from[apart * last].re;
          even.im += sign * from[apart * last].im;
        }
        Complex<R>* to = y + q + stride * p * k;
        to[stride * r] = times({even.re + odd.re, even.im + odd.im}, turn);
        if (mirror != r) to[stride * mirror] = times({even.re - odd.re, even.im - odd.im}, mirror_turn);
      }
    }
}

// The transform of the n numbers in `a`; it lies in a or b.
template <class R>
inline const Complex<R>* transform(Complex<R>* a, Complex<R>* b, std::int64_t n, const Complex<R>* roots) {
  for (std::int64_t left = n, stride = 1; left > 1;) {
    const std::int64_t p = least_factor(left), m = left / p;
    step(a, n, p, m, stride, roots, b);
    Complex<R>* t = a;
    a = b;
    b = t;
    left = m;
    stride *= p;
  }
  return a;
}

}  // namespace fft_detail

// Lines of a tensor [outer][in_length][inner][in_parts] that become [outer][out_length][inner][out_parts];
// parts: 1 real, 2 complex. A line is cut or filled with zeros to `length` before it is transformed.
struct DftGeometry {
  std::int64_t outer, inner, in_length, in_parts, length, out_length, out_parts;
  bool inverse;    // divides by `length`
  bool symmetric;  // the input is the first half of a line whose second half mirrors it (conjugated)
};

// Of a tensor with the extents extent[0 .. axes) in front of its parts, transformed along `axis`.
inline DftGeometry dft_geometry(const std::int64_t* extent, std::int64_t axes, std::int64_t axis,
                                std::int64_t in_parts, std::int64_t length, std::int64_t kept,
                                std::int64_t out_parts, bool inverse, bool symmetric) {
  DftGeometry g{1, 1, extent[axis], in_parts, length, kept, out_parts, inverse, symmetric};
  for (std::int64_t a = 0; a < axes; ++a)
    if (a != axis) (a < axis ? g.outer : g.inner) *= extent[a];
  return g;
}

// `work` has 3 * length numbers.
template <class T, class R>
inline void dft(const T* x, const DftGeometry& g, Complex<R>* work, T* y) {
  const std::int64_t n = g.length, given = g.in_length < n ? g.in_length : n;
  Complex<R>*roots = work, *a = work + n, *b = work + 2 * n;
  fft_detail::fill_roots(n, g.inverse, roots);
  const R factor = g.inverse ? static_cast<R>(1.0 / static_cast<double>(n)) : R{1};
  for (std::int64_t line = 0; line < g.outer * g.inner; ++line) {
    const std::int64_t o = line / g.inner, i = line % g.inner;
    for (std::int64_t k = 0; k < n; ++k) {
      const bool mirrored = g.symmetric && k > n / 2;
      const std::int64_t from = mirrored ? n - k : k;
      a[k] = {R{0}, R{0}};
      if (from >= given) continue;
      const T* v = x + ((o * g.in_length + from) * g.inner + i) * g.in_parts;
      a[k].re = cast_to<R>(v[0]);
      if (g.in_parts == 2) a[k].im = mirrored ? -cast_to<R>(v[1]) : cast_to<R>(v[1]);
    }
    const Complex<R>* result = fft_detail::transform(a, b, n, roots);
    for (std::int64_t k = 0; k < g.out_length; ++k) {
      T* to = y + ((o * g.out_length + k) * g.inner + i) * g.out_parts;
      to[0] = cast_to<T>(result[k].re * factor);
      if (g.out_parts == 2) to[1] = cast_to<T>(result[k].im * factor);
    }
  }
}

struct StftGeometry {
  std::int64_t batches, signal, parts;  // the signal: [batches][signal][parts]
  std::int64_t frames, step, length;    // frame f begins at f * step
  std::int64_t bins;                    // kept of each frame
};

// The transforms of frames, each element times `window` [length] (or null): y [batches][frames][bins][2].
// `work` has 3 * length numbers.
template <class T, class R>
inline void stft(const T* x, const T* window, const StftGeometry& g, Complex<R>* work, T* y) {
  const std::int64_t n = g.length;
  Complex<R>*roots = work, *a = work + n, *b = work + 2 * n;
  fft_detail::fill_roots(n, false, roots);
  for (std::int64_t line = 0; line < g.batches * g.frames; ++line) {
    const T* from = x + (line / g.frames * g.signal + line % g.frames * g.step) * g.parts;
    for (std::int64_t k = 0; k < n; ++k) {
      const R w = window ? cast_to<R>(window[k]) : R{1};
      a[k].re = w * cast_to<R>(from[k * g.parts]);
      a[k].im = g.parts == 2 ? w * cast_to<R>(from[k * 2 + 1]) : R{0};
    }
    const Complex<R>* result = fft_detail::transform(a, b, n, roots);
    for (std::int64_t k = 0; k < g.bins; ++k) {
      *y++ = cast_to<T>(result[k].re);
      *y++ = cast_to<T>(result[k].im);
    }
  }
}

// The windows of length n: sum of coefficient[k] * cos(2 pi k i / period), period n, or n - 1 (`symmetric`).
template <class T>
inline void cosine_window(const double (&coefficient)[3], std::int64_t n, bool symmetric, T* y) {
  const double period = static_cast<double>(symmetric ? n - 1 : n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double angle = fft_detail::kTurn * static_cast<double>(i) / period;
    y[i] = cast_to<T>(coefficient[0] + coefficient[1] * std::cos(angle) +
                      coefficient[2] * std::cos(2.0 * angle));
  }
}

// MelWeightMatrix (ONNX 17): y [length / 2 + 1][mels], triangles over the bins of a transform of `length`
// whose corners are evenly spaced between two frequencies on the mel scale. False where a corner has no bin.
template <class T>
inline bool mel_weight_matrix(std::int64_t mels, std::int64_t length, double rate, double lower, double upper,
                              T* y) {
  const std::int64_t bins = length / 2 + 1;
  for (std::int64_t i = 0; i < bins * mels; ++i) y[i] = cast_to<T>(0.0);
  const auto mel = [](double hertz) { return 2595.0 * std::log10(1.0 + hertz / 700.0); };
  const double low = mel(lower), wide = (mel(upper) - low) / static_cast<double>(mels + 2);
  const auto corner = [&](std::int64_t i) -> std::int64_t {
    const double hertz = 700.0 * (std::pow(10.0, (low + wide * static_cast<double>(i)) / 2595.0) - 1.0);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / rate);
    return bin >= 0.0 && bin <= static_cast<double>(bins) ? static_cast<std::int64_t>(bin) : -1;
  };
  for (std::int64_t m = 0; m < mels; ++m) {
    const std::int64_t a = corner(m), b = corner(m + 1), c = corner(m + 2);
    if (a < 0 || b < a || b >= bins || c < b) return false;
    if (a == b) y[b * mels + m] = cast_to<T>(1.0);
    for (std::int64_t k = a; k <= b && a < b; ++k)
      y[k * mels + m] = cast_to<T>(static_cast<double>(k - a) / static_cast<double>(b - a));
    for (std::int64_t k = b; k < c; ++k)
      y[k * mels + m] = cast_to<T>(static_cast<double>(c - k) / static_cast<double>(c - b));
  }
  return true;
}

}  // namespace sinter
