// The functions of math.h on vectors of halves, by overload: exp, tanh, sigmoid, SiLU, GELU and kin. Where a
// half's eleven digits are enough inside, a function is computed in halves, eight lanes at a time, at half
// the cost and less; else in two or more vectors of floats (in_floats), rounded once.
//
// Bounds in units in the last place (ULP) of a half, over all 65,536 halves; tests try them all. NaN gives
// NaN. "Flushed" means that a result below the smallest normal half, 6.1e-5, may be 0. The bits are the same
// on all instruction sets.
//   in halves   exp 2   exp_nonpos 2 (x <= 0; flushed)   expm1_nonpos 2 (x <= 0)   tanh 3   sigmoid 3
//   (flushed)
//               silu 4 (flushed)   elu, selu 4   gelu, gelu_tanh: |error| <= 1.5e-3 |x|
//               reciprocal 1.5 (2^-14 <= |x| <= 2^14)
//   in floats   log, erf, softplus, mish, celu, sin, cos, pow 1
// relu, clamp, leaky_relu, hard_sigmoid, hard_swish (|error| <= 1.5e-3 |x|) and softsign are those of
// math.h; sqrt and div are words, rightly rounded, but a division of eight halves takes as long as two of
// four floats.
#ifndef SINTER_MATH_HALF_H_
#define SINTER_MATH_HALF_H_
#ifndef SINTER_HALF_ARITHMETIC
#error "include sinter/half_arithmetic.h and a sinter/simd_*.h before sinter/math_half.h"
#endif

#include "sinter/math.h"
#include "sinter/simd_half.h"

namespace sinter::SINTER_ISA {

namespace detail {
// x = n ln 2 + r with |r| <= ln 2 / 2, as reduce_ln2 of math.h: adding 1.5 * 2^10 shifts a half's fraction
// out, so n + bias is in the low bits of `biased`. |n + bias| < 256.
struct HalfReduced {
  f16v r, biased;
};
SINTER_INLINE HalfReduced reduce_ln2(f16v x, int bias) {
  const f16v shifter = splat<f16v>(static_cast<float>(1536 + bias));
  HalfReduced v;
  v.biased = fma(x, splat<f16v>(1.442695041f), shifter);
  const f16v n = sub(v.biased, shifter);
  v.r = fnma(n, splat<f16v>(0.6875f), x);  // ln 2 in two parts: n times the first is exact
  v.r = fnma(n, splat<f16v>(0.0056471806f), v.r);
  return v;
}
// (e^r - 1) / r - 1 over r, for |r| <= ln 2 / 2.
SINTER_INLINE f16v exp_tail(f16v r) {
  f16v p = splat<f16v>(0.04185f);
  p = fma(p, r, splat<f16v>(0.16687f));
  return fma(p, r, splat<f16v>(0.5f));
}
SINTER_INLINE f16v exp_reduced(f16v r) {
  const f16v one = splat<f16v>(1.0f);
  return fma(fma(exp_tail(r), r, one), r, one);
}
// 2^n of n + 15 in the low bits of a half; n = -15 gives 0.
SINTER_INLINE f16v half_power_of_2(i16v n) { return half_bits(shift_left<10>(n)); }
SINTER_INLINE f16v copy_sign(f16v magnitude, f16v sign) {
  return half_bits(bit_or(bits(magnitude), bit_and(bits(sign), splat_int<i16v>(-0x8000))));
}
}  // namespace detail

// 1 / x without the division: eight digits, doubled by a step of Newton's. For x whose
// inverse and itself are normal halves.
SINTER_INLINE f16v reciprocal(f16v x) {
  const f16v near = reciprocal_estimate(x);
  return mul(near, reciprocal_step(near, x));
}

// e^x for any x; above 11.09 infinity, subnormal results included: the scale is applied in two halves.
SINTER_INLINE f16v exp(f16v x) {
  x = max(min(x, splat<f16v>(11.5f)), splat<f16v>(-18.0f));
  const detail::HalfReduced v = detail::reduce_ln2(x, 30);
  const i16v n = sub(bits(v.biased), bits(splat<f16v>(1536.0f)));
  const i16v low = shift_right<1>(n);
  return mul(mul(detail::exp_reduced(v.r), detail::half_power_of_2(low)),
             detail::half_power_of_2(sub(n, low)));
}

// e^x for x <= 0, what softmax and the activations use; below -10.1 exactly 0.
SINTER_INLINE f16v exp_nonpos(f16v x) {
  const detail::HalfReduced v = detail::reduce_ln2(max(x, splat<f16v>(-10.4f)), 15);
  return mul(detail::exp_reduced(v.r), detail::half_power_of_2(bits(v.biased)));
}

// e^x - 1 for x <= 0, exact to the last places also near 0.
SINTER_INLINE f16v expm1_nonpos(f16v x) {
  const detail::HalfReduced v = detail::reduce_ln2(max(x, splat<f16v>(-9.0f)), 15);
  const f16v scale = detail::half_power_of_2(bits(v.biased));
  const f16v of_r = fma(mul(detail::exp_tail(v.r), v.r), v.r, v.r);
  return fma(of_r, scale, sub(scale, splat<f16v>(1.0f)));
}

SINTER_INLINE f16v tanh(f16v x) {
  // Beyond 4.5 it rounds to 1; twice that stays finite.
  const f16v m = expm1_nonpos(mul(min(abs(x), splat<f16v>(4.5f)), splat<f16v>(-2.0f)));
  return detail::copy_sign(mul(abs(m), reciprocal(add(m, splat<f16v>(2.0f)))), x);
}

SINTER_INLINE f16v sigmoid(f16v x) {
  const f16v one = splat<f16v>(1.0f);
  const f16v z = exp_nonpos(neg(abs(x)));
  return mul(select(lt(x, zero<f16v>()), z, one), reciprocal(add(z, one)));
}

// The factor of x is bounded below, where the product has long reached 0: minus infinity gives 0, not NaN.
SINTER_INLINE f16v silu(f16v x) { return mul(max(x, splat<f16v>(-20.0f)), sigmoid(x)); }

// x times the normal distribution's integral, as the sigmoid of x times a polynomial in x^2, a fit of that
// integral's logit between -5.5 and 5.5.
SINTER_INLINE f16v gelu(f16v x) {
  const f16v bounded = max(min(x, splat<f16v>(5.5f)), splat<f16v>(-5.5f));
  const f16v x2 = mul(bounded, bounded);
  f16v p = splat<f16v>(-0.000631898f);
  p = fma(p, x2, splat<f16v>(0.0735975f));
  p = fma(p, x2, splat<f16v>(1.59544f));
  return mul(max(x, splat<f16v>(-5.5f)), sigmoid(mul(bounded, p)));
}
// x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3).
SINTER_INLINE f16v gelu_tanh(f16v x) {
  const f16v bounded = max(min(x, splat<f16v>(6.0f)), splat<f16v>(-6.0f));
  const f16v slope = fma(mul(bounded, bounded), splat<f16v>(0.07135481627f), splat<f16v>(1.595769122f));
  return mul(max(x, splat<f16v>(-6.0f)), sigmoid(mul(bounded, slope)));
}

SINTER_INLINE f16v elu(f16v x, float alpha) {
  const f16v below = mul(expm1_nonpos(min(x, zero<f16v>())), splat<f16v>(alpha));
  return select(lt(x, zero<f16v>()), below, x);
}
SINTER_INLINE f16v selu(f16v x, float alpha, float gamma) { return mul(elu(x, alpha), splat<f16v>(gamma)); }

#define SINTER_IN_FLOATS(NAME)                                             \
  SINTER_INLINE f16v NAME(f16v x) {                                        \
    return in_floats(                                                      \
        x, [](auto v) __attribute__((always_inline)) { return NAME(v); }); \
  }
SINTER_IN_FLOATS(log)
SINTER_IN_FLOATS(erf)
SINTER_IN_FLOATS(softplus)
SINTER_IN_FLOATS(mish)
SINTER_IN_FLOATS(sin)
SINTER_IN_FLOATS(cos)
#undef SINTER_IN_FLOATS
SINTER_INLINE f16v celu(f16v x, float alpha) {
  return in_floats(
      x, [&](f32v v) __attribute__((always_inline)) { return celu(v, alpha); });
}
SINTER_INLINE f16v pow(f16v x, f16v y) {
  const Wide exponents = widen_lanes(y);
  Wide w = widen_lanes(x);
  SINTER_UNROLL
  for (int i = 0; i < kFloatVectors; i++) w.part[i] = pow(w.part[i], exponents.part[i]);
  return narrow(w);
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_MATH_HALF_H_
