// Elementary functions and activations over the SIMD words: exp, log, tanh, erf, sigmoid, softplus, GELU and
// kin.
//
// Each is a template over V = f32v or float; a loop's scalar tail gives the same bits as its vector body,
// since both run the same words in the same order and no product feeds a sum but through fma() (or is exact:
// by a power of 2), so that a compiler which contracts one of them and not the other changes nothing.
// Polynomials are minimax fits (Lawson's reweighting in 40 digits).
//
// Bounds in units in the last place (ULP) of the exact result, over all floats; they hold without fused
// multiply-add too, and tests sweep them. NaN gives NaN. "Flushed" means that a result below the smallest
// normal float may be 0.
//   exp 2 (denormal results within one denormal step)   exp_nonpos 2, exp2_nonpos 3 (x <= 0; flushed)
//   expm1_nonpos 3 (x <= 0)   log 2   log1p_unit 3 (0 <= x <= 1)   tanh 3   erf 4   sigmoid 3 (flushed)
//   softplus 4 (flushed) silu 4 (flushed)   mish 6 (x > -80)   elu, selu, celu 4   gelu, gelu_tanh: |error|
//   <= 3e-7 |x|
#ifndef SINTER_MATH_H_
#define SINTER_MATH_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/math.h"
#endif

namespace sinter::SINTER_ISA {

namespace detail {
// One step of Horner's scheme with a constant.
template <class V>
SINTER_INLINE V horner(V p, V x, float c) {
  return fma(p, x, splat<V>(c));
}
template <class V>
SINTER_INLINE V copy_sign(V magnitude, V sign) {
  using I = int_of<V>;
  const I bit = splat_int<I>(INT32_MIN);
  return float_bits(bit_or(bits(magnitude), bit_and(bits(sign), bit)));
}

// x = n ln 2 + r with |r| <= ln 2 / 2. n is kept as n + bias in the low bits of `biased`: adding 1.5 * 2^23
// shifts a float's fraction out. Valid for |x| < 2^21; NaN stays NaN in r.
constexpr float kShifter = 12582912.0f;
template <class V>
struct Reduced {
  V r;
  V biased;
  V n;
};
template <class V>
SINTER_INLINE Reduced<V> reduce_ln2(V x, int32_t bias) {
  const V shifter = splat<V>(kShifter + static_cast<float>(bias));
  Reduced<V> v;
  v.biased = fma(x, splat<V>(1.442695041f), shifter);
  v.n = sub(v.biased, shifter);
  v.r = fnma(v.n, splat<V>(0x1.62e4p-1f), x);  // ln 2 in two parts: n times the first is exact
  v.r = fnma(v.n, splat<V>(0x1.7f7d1cp-20f), v.r);
  return v;
}
// 2^n from n + 127 in the low bits of a float; n = -127 gives 0.
template <class V>
SINTER_INLINE V power_of_2(V biased) {
  return float_bits(shift_left<23>(bits(biased)));
}
// e^r and e^r - 1 for |r| <= ln 2 / 2 (fits: 3e-9 and 1.4e-8 relative).
template <class V>
SINTER_INLINE V exp_reduced(V r) {
  V p = splat<V>(0.0013814002f);
  p = horner(p, r, 0.008369002f);
  p = horner(p, r, 0.041668415f);
  p = horner(p, r, 0.16666518f);
  p = horner(p, r, 0.49999994f);
  p = horner(p, r, 1.0f);
  return horner(p, r, 1.0f);
}
template <class V>
SINTER_INLINE V expm1_reduced(V r) {
  V p = splat<V>(0.0013882461f);
  p = horner(p, r, 0.008366788f);
  p = horner(p, r, 0.041667208f);
  p = horner(p, r, 0.16666542f);
  p = horner(p, r, 0.49999997f);
  return fma(mul(p, r), r, r);
}
}  // namespace detail

// e^x for any x; beyond 88.72 infinity, denormal results included. The scale 2^n is applied in two halves, as
// n runs from -150 to 128.
template <class V>
SINTER_INLINE V exp(V x) {
  x = max(min(x, splat<V>(89.0f)), splat<V>(-104.0f));
  const auto v = detail::reduce_ln2(x, 254);
  const auto n = bit_and(bits(v.biased), splat_int<int_of<V>>(0x1ff));
  const auto half = shift_right<1>(n);
  const V low = float_bits(shift_left<23>(half)), high = float_bits(shift_left<23>(sub(n, half)));
  return mul(mul(detail::exp_reduced(v.r), low), high);
}

// e^x for x <= 0, the cheaper form that softmax and the activations use; below -87.7 exactly 0.
template <class V>
SINTER_INLINE V exp_nonpos(V x) {
  const auto v = detail::reduce_ln2(max(x, splat<V>(-88.0f)), 127);
  return mul(detail::exp_reduced(v.r), detail::power_of_2(v.biased));
}

// 2^x for x <= 0 (a fit of one ULP), the weights of attention; below -150 exactly 0, at 0 exactly 1. Of N
// vectors step by step, side by side: a chain of steps by itself fills the queues of a processor that looks
// ahead with what has to wait.
template <class V, int N>
SINTER_INLINE void exp2_nonpos(V (&x)[N]) {
  V r[N], p[N];
#if defined(SINTER_ISA_AVX512)
  constexpr float kFit[5] = {0.0018852976f, 0.008973378f, 0.05583593f, 0.2401528f, 0.6931525f};
  SINTER_UNROLL
  for (int i = 0; i < N; i++) r[i] = detail::above_floor(x[i]);
#else
  constexpr float kFit[5] = {0.0013225707f, 0.009671763f, 0.055508915f, 0.24022236f, 0.6931468f};
  const V shifter = splat<V>(detail::kShifter + 127.0f);
  V biased[N];
  SINTER_UNROLL
  for (int i = 0; i < N; i++) x[i] = max(x[i], splat<V>(-127.0f));
  SINTER_UNROLL
  for (int i = 0; i < N; i++) biased[i] = add(x[i], shifter);
  SINTER_UNROLL
  for (int i = 0; i < N; i++) r[i] = sub(x[i], sub(biased[i], shifter));
#endif
  SINTER_UNROLL
  for (int i = 0; i < N; i++) p[i] = detail::horner(splat<V>(kFit[0]), r[i], kFit[1]);
  SINTER_UNROLL
  for (int k = 2; k < 6; k++) {
    SINTER_UNROLL
    for (int i = 0; i < N; i++) p[i] = detail::horner(p[i], r[i], k < 5 ? kFit[k] : 1.0f);
  }
  SINTER_UNROLL
  for (int i = 0; i < N; i++) {
#if defined(SINTER_ISA_AVX512)
    x[i] = detail::times_power_of_2(p[i], x[i]);
#else
    x[i] = mul(p[i], detail::power_of_2(biased[i]));
#endif
  }
}
template <class V>
SINTER_INLINE V exp2_nonpos(V x) {
  V one[1] = {x};
  exp2_nonpos(one);
  return one[0];
}

// e^x - 1 for x <= 0, exact to the last places also near 0.
template <class V>
SINTER_INLINE V expm1_nonpos(V x) {
  const auto v = detail::reduce_ln2(max(x, splat<V>(-40.0f)), 127);
  const V scale = detail::power_of_2(v.biased);
  return fma(detail::expm1_reduced(v.r), scale, sub(scale, splat<V>(1.0f)));
}

// Natural logarithm; of 0 minus infinity, of a negative number NaN. Denormal arguments are exact.
template <class V>
SINTER_INLINE V log(V x) {
  using I = int_of<V>;
  const auto tiny = lt(x, splat<V>(0x1p-126f));
  const V y = select(tiny, mul(x, splat<V>(0x1p23f)), x);
  // y = 2^e * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2)
  const I root_half = splat_int<I>(0x3f3504f3);
  const I offset = sub(bits(y), root_half);
  const V e = sub(to_float(shift_right<23>(offset)), select(tiny, splat<V>(23.0f), zero<V>()));
  const V f = sub(float_bits(add(bit_and(offset, splat_int<I>(0x7fffff)), root_half)), splat<V>(1.0f));
  V p = splat<V>(0.06746435f);
  p = detail::horner(p, f, -0.1167557f);
  p = detail::horner(p, f, 0.11888212f);
  p = detail::horner(p, f, -0.124056056f);
  p = detail::horner(p, f, 0.14219548f);
  p = detail::horner(p, f, -0.16667995f);
  p = detail::horner(p, f, 0.20002119f);
  p = detail::horner(p, f, -0.2500001f);
  p = detail::horner(p, f, 0.33333313f);
  // f - f^2/2 + f^3 p, small parts first; ln 2 in two parts, e times the first is exact
  const V ff = mul(f, f);
  V s = mul(mul(f, p), ff);
  s = fma(e, splat<V>(0x1.7f7d1cp-20f), s);
  s = fnma(ff, splat<V>(0.5f), s);
  V result = fma(e, splat<V>(0x1.62e4p-1f), add(f, s));
  const V inf = splat<V>(__builtin_inff());
  result = select(lt(x, inf), result, x);  // infinity and NaN give themselves
  result = select(eq(x, zero<V>()), neg(inf), result);
  return select(lt(x, zero<V>()), splat<V>(__builtin_nanf("")), result);
}

// log(1 + x) for 0 <= x <= 1, as 2 atanh(x / (x + 2)).
template <class V>
SINTER_INLINE V log1p_unit(V x) {
  const V s = div(x, add(x, splat<V>(2.0f)));
  const V s2 = mul(s, s);
  V p = splat<V>(0.12153431f);
  p = detail::horner(p, s2, 0.10713104f);
  p = detail::horner(p, s2, 0.14308503f);
  p = detail::horner(p, s2, 0.19999437f);
  p = detail::horner(p, s2, 0.33333337f);
  const V d = add(s, s);
  return fma(mul(p, s2), d, d);
}

// tanh|x| = -m / (m + 2) with m = exp(-2|x|) - 1.
template <class V>
SINTER_INLINE V tanh(V x) {
  const V m = expm1_nonpos(mul(abs(x), splat<V>(-2.0f)));
  return detail::copy_sign(abs(div(m, add(m, splat<V>(2.0f)))), x);
}

// Error function: an odd polynomial below 1, another in |x| - 2.2 from there to 3.925, where it rounds to 1.
template <class V>
SINTER_INLINE V erf(V x) {
  const V s = mul(x, x);
  V p = splat<V>(-0.00056314096f);
  p = detail::horner(p, s, 0.004917548f);
  p = detail::horner(p, s, -0.02671131f);
  p = detail::horner(p, s, 0.1128018f);
  p = detail::horner(p, s, -0.37612325f);
  p = detail::horner(p, s, 1.1283791f);
  const V t = min(abs(x), splat<V>(3.925f));
  const V u = sub(t, splat<V>(2.2f));
  V q = splat<V>(-9.055283e-06f);
  q = detail::horner(q, u, 5.369709e-05f);
  q = detail::horner(q, u, -6.192728e-05f);
  q = detail::horner(q, u, -0.00030542474f);
  q = detail::horner(q, u, 0.0011599194f);
  q = detail::horner(q, u, -0.0011487815f);
  q = detail::horner(q, u, -0.0025857429f);
  q = detail::horner(q, u, 0.011507679f);
  q = detail::horner(q, u, -0.021858357f);
  q = detail::horner(q, u, 0.025810411f);
  q = detail::horner(q, u, -0.019628f);
  q = detail::horner(q, u, 0.008922421f);
  q = detail::horner(q, u, 0.99813716f);  // one unit above the fit, so that the end reaches 1
  return select(lt(t, splat<V>(1.0f)), mul(p, x), detail::copy_sign(min(q, splat<V>(1.0f)), x));
}

// 1 / (1 + e^-x), without overflow on either side: z / (1 + z) for x < 0, 1 / (1 + z) above, z = e^-|x|.
template <class V>
SINTER_INLINE V sigmoid(V x) {
  const V one = splat<V>(1.0f);
  const V z = exp_nonpos(neg(abs(x)));
  return div(select(lt(x, zero<V>()), z, one), add(z, one));
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|).
template <class V>
SINTER_INLINE V softplus(V x) {
  return add(max(x, zero<V>()), log1p_unit(exp_nonpos(neg(abs(x)))));
}

template <class V>
SINTER_INLINE V relu(V x) {
  return max(x, zero<V>());
}
// x limited to [lo, hi]; NaN stays NaN.
template <class V>
SINTER_INLINE V clamp(V x, float lo, float hi) {
  return min(max(x, splat<V>(lo)), splat<V>(hi));
}
template <class V>
SINTER_INLINE V leaky_relu(V x, float alpha) {
  return select(lt(x, zero<V>()), mul(x, splat<V>(alpha)), x);
}
// x for x >= 0, else alpha (e^x - 1).
template <class V>
SINTER_INLINE V elu(V x, float alpha) {
  const V below = mul(expm1_nonpos(min(x, zero<V>())), splat<V>(alpha));
  return select(lt(x, zero<V>()), below, x);
}
// gamma x for x > 0, else gamma alpha (e^x - 1): ONNX Selu.
template <class V>
SINTER_INLINE V selu(V x, float alpha, float gamma) {
  return mul(elu(x, alpha), splat<V>(gamma));
}
// max(0, x) + min(0, alpha (e^(x / alpha) - 1)), alpha > 0: ONNX Celu.
template <class V>
SINTER_INLINE V celu(V x, float alpha) {
  const V below = mul(expm1_nonpos(div(min(x, zero<V>()), splat<V>(alpha))), splat<V>(alpha));
  return select(lt(x, zero<V>()), below, x);
}
// alpha x + beta limited to [0, 1].
template <class V>
SINTER_INLINE V hard_sigmoid(V x, float alpha, float beta) {
  return clamp(fma(x, splat<V>(alpha), splat<V>(beta)), 0.0f, 1.0f);
}
// x hard_sigmoid(x, 1/6, 1/2); at minus infinity NaN, as the formula says.
template <class V>
SINTER_INLINE V hard_swish(V x) {
  return mul(x, hard_sigmoid(x, 1.0f / 6.0f, 0.5f));
}
// The factor of x in x * sigmoid(x) and kin is bounded below, where the product has long reached 0: minus
// infinity then gives 0, not NaN.
template <class V>
SINTER_INLINE V silu(V x) {
  return mul(max(x, splat<V>(-104.0f)), sigmoid(x));
}
// x tanh(softplus(x)), with w = e^x: x w (w + 2) / (w (w + 2) + 2).
template <class V>
SINTER_INLINE V mish(V x) {
  const V two = splat<V>(2.0f);
  const V w = exp(min(x, splat<V>(20.0f)));
  const V n = mul(w, add(w, two));
  return mul(max(x, splat<V>(-104.0f)), div(n, add(n, two)));
}
// x (1 + erf(x / sqrt 2)) / 2: the normal distribution's integral from 0 to x is x times a polynomial in x^2,
// which reaches 1/2 at 5.1.
template <class V>
SINTER_INLINE V gelu(V x) {
  const V half = splat<V>(0.5f);
  const V u = sub(min(mul(x, x), splat<V>(26.01f)), splat<V>(13.0f));  // centred: no terms cancel
  // The odd and the even powers apart: half as long a chain.
  const V u2 = mul(u, u);
  V odd = splat<V>(-1.15420916e-18f), even = splat<V>(4.08583647e-17f);
  odd = detail::horner(odd, u2, -5.70296272e-16f);
  even = detail::horner(even, u2, 1.18272616e-14f);
  odd = detail::horner(odd, u2, -3.91872244e-13f);
  even = detail::horner(even, u2, 9.29840926e-12f);
  odd = detail::horner(odd, u2, -1.84577326e-10f);
  even = detail::horner(even, u2, 3.55112184e-09f);
  odd = detail::horner(odd, u2, -6.4918936e-08f);
  even = detail::horner(even, u2, 1.11249608e-06f);
  odd = detail::horner(odd, u2, -1.8303539e-05f);
  even = detail::horner(even, u2, 0.000300509826f);
  odd = detail::horner(odd, u2, -0.00530892052f);
  even = detail::horner(even, u2, 0.138631865f);
  const V p = fma(odd, u, even);
  const V beyond_0 = max(min(mul(p, x), half), neg(half));
  return mul(max(x, splat<V>(-14.0f)), add(beyond_0, half));
}
// x (1 + tanh(u)) / 2 = x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3).
template <class V>
SINTER_INLINE V gelu_tanh(V x) {
  const V x2 = mul(x, x);
  const V slope = fma(x2, splat<V>(0.07135481627f), splat<V>(1.595769122f));
  return mul(max(x, splat<V>(-14.0f)), sigmoid(mul(x, slope)));
}
// x in units of `scale` from `zero`, rounded to an integral value, ties to even.
template <class V>
SINTER_INLINE V quantize(V x, V scale, V zero) {
  return add(round(div(x, scale)), zero);
}
// x / (1 + |x|); at infinity NaN, as the formula says.
template <class V>
SINTER_INLINE V softsign(V x) {
  return div(x, add(abs(x), splat<V>(1.0f)));
}

namespace detail {
// A function of the C library, lane by lane.
template <class F>
SINTER_INLINE float each_lane(F f, float x) {
  return f(x);
}
template <class F>
SINTER_INLINE float each_lane(F f, float x, float y) {
  return f(x, y);
}
#if !defined(SINTER_ISA_SCALAR)
template <class F>
SINTER_INLINE f32v each_lane(F f, f32v x) {
  float a[kLanes];
  store(a, x);
  for (int i = 0; i < kLanes; i++) a[i] = f(a[i]);
  return load(a);
}
template <class F>
SINTER_INLINE f32v each_lane(F f, f32v x, f32v y) {
  float a[kLanes], b[kLanes];
  store(a, x);
  store(b, y);
  for (int i = 0; i < kLanes; i++) a[i] = f(a[i], b[i]);
  return load(a);
}
#endif
}  // namespace detail

template <class V>
SINTER_INLINE V sin(V x) {
  return detail::each_lane([](float a) { return std::sin(a); }, x);
}
template <class V>
SINTER_INLINE V cos(V x) {
  return detail::each_lane([](float a) { return std::cos(a); }, x);
}
template <class V>
SINTER_INLINE V pow(V x, V y) {
  return detail::each_lane([](float a, float b) { return std::pow(a, b); }, x, y);
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_MATH_H_
