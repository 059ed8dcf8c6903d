// Discrete Fourier transforms (ONNX DFT 20 and STFT 17) of any length.
//
// Stockham's scheme with fours and the prime factors of the length as radices. It writes in order,
// alternating between two buffers. Numbers of an odd radix are taken in pairs that mirror each other, whose
// sum meets the cosines and whose difference the sines; a radix p takes n * p / 2 products. Where large
// primes would take longer than that, the transform becomes a convolution with a chirp (Bluestein), by
// transforms of a length that has small factors only. A real line of an even length is a complex one of half
// of it.
//
// What depends on the length alone is in tables, that come with the model or are made first.
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

// The next radix of a transform of n > 1 numbers.
inline std::int64_t radix(std::int64_t n) {
  if (n % 4 == 0) return 4;
  for (std::int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

// The length of the transforms that convolve n numbers with a chirp: at least 2 n - 1, a power of two or
// three times one.
inline std::int64_t chirp_length(std::int64_t n) {
  std::int64_t two = 1, three = 3;
  while (two < 2 * n - 1) two *= 2;
  while (three < 2 * n - 1) three *= 2;
  return three < two ? three : two;
}

template <class R>
inline Complex<R> times(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// One step: `stride` transforms of length m * p become stride * p of length m. Bin r of the p inputs x,
// `apart` from each other, is turned by k * r / (m * p) of a circle.
template <class R>
inline void odd_step(const Complex<R>* x, std::int64_t n, std::int64_t p, std::int64_t m, std::int64_t stride,
                     const Complex<R>* roots, Complex<R>* y) {
  const std::int64_t apart = stride * m;
  for (std::int64_t k = 0; k < m; ++k)
    for (std::int64_t r = 0; 2 * r < p; ++r) {
      const std::int64_t mirror = (p - r) % p;
      const Complex<R> turn = roots[k * r % (m * p) * stride % n],
                       mirror_turn = roots[k * mirror % (m * p) * stride % n];
      for (std::int64_t q = 0; q < stride; ++q) {
        const Complex<R>* from = x + q + stride * k;
        Complex<R> even = from[0], odd{R{0}, R{0}};
        for (std::int64_t j = 1, at = r; 2 * j < p; ++j) {
          const Complex<R> a = from[apart * j], b = from[apart * (p - j)], w = roots[at * (n / p)];
          even.re += w.re * (a.re + b.re);
          even.im += w.re * (a.im + b.im);
          odd.re -= w.im * (a.im - b.im);
          odd.im += w.im * (a.re - b.re);
          at = at + r < p ? at + r : at + r - p;
        }
        Complex<R>* to = y + q + stride * p * k;
        to[stride * r] = times({even.re + odd.re, even.im + odd.im}, turn);
        if (mirror != r) to[stride * mirror] = times({even.re - odd.re, even.im - odd.im}, mirror_turn);
      }
    }
}

template <class R>
inline void step_of_two(const Complex<R>* x, std::int64_t m, std::int64_t stride, const Complex<R>* roots,
                        Complex<R>* y) {
  for (std::int64_t k = 0; k < m; ++k)
    for (std::int64_t q = 0; q < stride; ++q) {
      const Complex<R> a = x[q + stride * k], b = x[q + stride * (k + m)];
      Complex<R>* to = y + q + stride * 2 * k;
      to[0] = {a.re + b.re, a.im + b.im};
      to[stride] = times({a.re - b.re, a.im - b.im}, roots[k * stride]);
    }
}

// `side`: a quarter of a circle turns (re, im) to (im, -re) times it.
template <class R>
inline void step_of_four(const Complex<R>* x, std::int64_t m, std::int64_t stride, const Complex<R>* roots,
                         R side, Complex<R>* y) {
  const std::int64_t apart = stride * m;
  for (std::int64_t k = 0; k < m; ++k) {
    const Complex<R> one = roots[k * stride], two = roots[2 * k * stride], three = roots[3 * k * stride];
    const Complex<R>* from = x + stride * k;
    Complex<R>* to = y + stride * 4 * k;
    for (std::int64_t q = 0; q < stride; ++q, ++from, ++to) {
      const Complex<R> a = from[0], b = from[apart], c = from[2 * apart], d = from[3 * apart];
      const Complex<R> sum{a.re + c.re, a.im + c.im}, rest{a.re - c.re, a.im - c.im};
      const Complex<R> others{b.re + d.re, b.im + d.im}, turned{side * (b.im - d.im), side * (d.re - b.re)};
      to[0] = {sum.re + others.re, sum.im + others.im};
      to[stride] = times({rest.re + turned.re, rest.im + turned.im}, one);
      to[2 * stride] = times({sum.re - others.re, sum.im - others.im}, two);
      to[3 * stride] = times({rest.re - turned.re, rest.im - turned.im}, three);
    }
  }
}

// The transform of the n numbers in `a`; it lies in a or b.
template <class R>
inline Complex<R>* transform(Complex<R>* a, Complex<R>* b, std::int64_t n, const Complex<R>* roots,
                             bool inverse) {
  for (std::int64_t left = n, stride = 1; left > 1;) {
    const std::int64_t p = radix(left), m = left / p;
    if (p == 4)
      step_of_four(a, m, stride, roots, inverse ? R{-1} : R{1}, b);
    else if (p == 2)
      step_of_two(a, m, stride, roots, b);
    else
      odd_step(a, n, p, m, stride, roots, b);
    Complex<R>* t = a;
    a = b;
    b = t;
    left = m;
    stride *= p;
  }
  return a;
}

}  // namespace fft_detail

// How the lines of one length are transformed.
struct FftShape {
  std::int64_t length;
  std::int64_t points;  // of the complex transform: half of the length of a real line that is even
  std::int64_t padded;  // of the transforms behind a chirp; 0: there is none
  bool inverse;

  bool halves() const { return points != length; }
  std::int64_t side() const { return padded != 0 ? padded : points; }
  // Numbers: roots, chirp and its transform, what turns halves; and two buffers.
  std::int64_t tables() const {
    return side() + (padded != 0 ? points + padded : 0) + (halves() ? points : 0);
  }
  std::int64_t work() const { return 2 * side(); }
};

inline FftShape fft_shape(std::int64_t length, bool real, bool inverse) {
  FftShape s{length, real && length % 2 == 0 ? length / 2 : length, 0, inverse};
  std::int64_t factors = 0, others = 0;
  for (std::int64_t left = s.points; left > 1;) {
    const std::int64_t p = fft_detail::radix(left);
    (p > 5 ? factors : others) += p;
    left /= p;
  }
  // A product of an odd radix, against what a number of the longer transforms takes, twice, on its way.
  const std::int64_t padded = fft_detail::chirp_length(s.points);
  std::int64_t steps = 2;
  for (std::int64_t left = padded; left > 1; left /= fft_detail::radix(left)) ++steps;
  if (factors > 64 && s.points * (factors + others) > 4 * padded * steps) s.padded = padded;
  return s;
}
// No shape of a line up to `length` takes more.
inline std::int64_t fft_most_tables(std::int64_t length) {
  return 2 * length + 2 * fft_detail::chirp_length(length);
}
inline std::int64_t fft_most_work(std::int64_t length) { return 2 * fft_detail::chirp_length(length); }

// Fills s.tables() numbers.
template <class R>
inline void fft_tables(const FftShape& s, Complex<R>* work, Complex<R>* tables) {
  const std::int64_t n = s.points, m = s.side();
  fft_detail::fill_roots(m, s.padded == 0 && s.inverse, tables);
  if (s.halves()) {  // the first half of the whole length's roots
    Complex<R>* turns = tables + s.tables() - n;
    for (std::int64_t k = 0; k < n; ++k) {
      const double angle = fft_detail::kTurn * (static_cast<double>(k) / static_cast<double>(s.length));
      turns[k] = {static_cast<R>(std::cos(angle)),
                  static_cast<R>(s.inverse ? std::sin(angle) : -std::sin(angle))};
    }
  }
  if (s.padded == 0) return;
  Complex<R>* chirp = tables + m;
  for (std::int64_t k = 0, square = 0; k < n; ++k) {  // exp(-i pi k k / n), by k k modulo 2 n
    const double angle = fft_detail::kTurn / 2 * (static_cast<double>(square) / static_cast<double>(n));
    square = (square + 2 * k + 1) % (2 * n);
    chirp[k] = {static_cast<R>(std::cos(angle)),
                static_cast<R>(s.inverse ? std::sin(angle) : -std::sin(angle))};
  }
  for (std::int64_t k = 0; k < m; ++k) {
    const std::int64_t at = k < n ? k : m - k;
    work[k] = at < n ? Complex<R>{chirp[at].re, -chirp[at].im} : Complex<R>{R{0}, R{0}};
  }
  const Complex<R>* spectrum = fft_detail::transform(work, work + m, m, tables, false);
  for (std::int64_t k = 0; k < m; ++k) {
    const R scale = static_cast<R>(1.0 / static_cast<double>(m));
    tables[m + n + k] = {spectrum[k].re * scale, spectrum[k].im * scale};
  }
}

namespace fft_detail {

// The transform of s.points numbers in `work`, by a convolution where there is a chirp.
template <class R>
inline const Complex<R>* points(const FftShape& s, const Complex<R>* tables, Complex<R>* work) {
  const std::int64_t n = s.points, m = s.side();
  if (s.padded == 0) return transform(work, work + m, m, tables, s.inverse);
  const Complex<R>*chirp = tables + m, *spectrum = chirp + n;
  for (std::int64_t k = 0; k < n; ++k) work[k] = times(work[k], chirp[k]);
  for (std::int64_t k = n; k < m; ++k) work[k] = {R{0}, R{0}};
  Complex<R>* product = transform(work, work + m, m, tables, false);
  // The way back is the way forth of conjugates.
  for (std::int64_t k = 0; k < m; ++k) {
    const Complex<R> v = times(product[k], spectrum[k]);
    product[k] = {v.re, -v.im};
  }
  Complex<R>* back = transform(product, product == work ? work + m : work, m, tables, false);
  for (std::int64_t k = 0; k < n; ++k) back[k] = times({back[k].re, -back[k].im}, chirp[k]);
  return back;
}

// Bin k of a real line whose even elements were the real and whose odd ones the imaginary parts of z.
template <class R>
inline Complex<R> bin_of_halves(const FftShape& s, const Complex<R>* turns, const Complex<R>* z,
                                std::int64_t k) {
  const std::int64_t h = s.points, at = k < h ? k : k - h;
  const Complex<R> a = z[at], b = z[at == 0 ? 0 : h - at], w = turns[at];
  const Complex<R> even{(a.re + b.re) / R{2}, (a.im - b.im) / R{2}};
  const Complex<R> odd = times({(a.im + b.im) / R{2}, (b.re - a.re) / R{2}}, w);
  return k < h ? Complex<R>{even.re + odd.re, even.im + odd.im}
               : Complex<R>{even.re - odd.re, even.im - odd.im};
}

// One line: element(k) for k < length (a Complex<R>, of which halves take the real part), store(k,
// Complex<R>) for k < bins.
template <class R, class Element, class Store>
inline void line(const FftShape& s, const Complex<R>* tables, Complex<R>* work, std::int64_t bins,
                 Element element, Store store) {
  if (!s.halves()) {
    for (std::int64_t k = 0; k < s.points; ++k) work[k] = element(k);
    const Complex<R>* result = points(s, tables, work);
    for (std::int64_t k = 0; k < bins; ++k) store(k, result[k]);
    return;
  }
  for (std::int64_t k = 0; k < s.points; ++k) work[k] = {element(2 * k).re, element(2 * k + 1).re};
  const Complex<R>*z = points(s, tables, work), *turns = tables + s.tables() - s.points;
  for (std::int64_t k = 0; k < bins; ++k) store(k, bin_of_halves(s, turns, z, k));
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

inline FftShape dft_shape(const DftGeometry& g) {
  return fft_shape(g.length, g.in_parts == 1 && !g.symmetric, g.inverse);
}

// `shape` is dft_shape(g).
template <class T, class R>
inline void dft(const T* x, const DftGeometry& g, const FftShape& shape, const Complex<R>* tables,
                Complex<R>* work, T* y) {
  const std::int64_t n = g.length, given = g.in_length < n ? g.in_length : n;
  const R factor = g.inverse ? static_cast<R>(1.0 / static_cast<double>(n)) : R{1};
  for (std::int64_t line = 0; line < g.outer * g.inner; ++line) {
    const std::int64_t o = line / g.inner, i = line % g.inner;
    const auto element = [&](std::int64_t k) -> Complex<R> {
      const bool mirrored = g.symmetric && k > n / 2;
      const std::int64_t from = mirrored ? n - k : k;
      if (from >= given) return {R{0}, R{0}};
      const T* v = x + ((o * g.in_length + from) * g.inner + i) * g.in_parts;
      if (g.in_parts == 1) return {cast_to<R>(v[0]), R{0}};
      return {cast_to<R>(v[0]), mirrored ? -cast_to<R>(v[1]) : cast_to<R>(v[1])};
    };
    fft_detail::line(shape, tables, work, g.out_length, element, [&](std::int64_t k, Complex<R> v) {
      T* to = y + ((o * g.out_length + k) * g.inner + i) * g.out_parts;
      to[0] = cast_to<T>(v.re * factor);
      if (g.out_parts == 2) to[1] = cast_to<T>(v.im * factor);
    });
  }
}

struct StftGeometry {
  std::int64_t batches, signal, parts;  // the signal: [batches][signal][parts]
  std::int64_t frames, step, length;    // frame f begins at f * step
  std::int64_t bins;                    // kept of each frame
};

inline FftShape stft_shape(const StftGeometry& g) { return fft_shape(g.length, g.parts == 1, false); }

// The transforms of frames, each element times `window` [length] (or null): y [batches][frames][bins][2].
// `shape` is stft_shape(g).
template <class T, class R>
inline void stft(const T* x, const T* window, const StftGeometry& g, const FftShape& shape,
                 const Complex<R>* tables, Complex<R>* work, T* y) {
  for (std::int64_t line = 0; line < g.batches * g.frames; ++line) {
    const T* from = x + (line / g.frames * g.signal + line % g.frames * g.step) * g.parts;
    const auto element = [&](std::int64_t k) -> Complex<R> {
      const R w = window ? cast_to<R>(window[k]) : R{1};
      return {w * cast_to<R>(from[k * g.parts]), g.parts == 2 ? w * cast_to<R>(from[k * 2 + 1]) : R{0}};
    };
    fft_detail::line(shape, tables, work, g.bins, element, [&](std::int64_t, Complex<R> v) {
      *y++ = cast_to<T>(v.re);
      *y++ = cast_to<T>(v.im);
    });
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
