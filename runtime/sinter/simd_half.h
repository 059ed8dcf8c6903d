// Words over halves (IEEE binary16, half.h), eight lanes on every instruction set, named like those of floats
// (simd_common.h): f16v, its mask m16v and its integers i16v. simd_common.h includes this where
// half_arithmetic.h came before.
//
// Each operation rounds once to a half, to nearest, ties to even; subnormals are numbers. Where the
// instruction set has no arithmetic of halves, the words below compute the same bits one lane at a time:
// slow, for tests. NaNs may differ in their payload. Generated code for such targets stores halves and
// computes floats (load(const half*) of widen.h).
//
//   load<f16v>(p) store(p, v)            p: a half*, no alignment needed
//   load_n<f16v>(p, n) store_n(p, v, n)  the first n lanes, 0 <= n <= 8; the others read as 0 / stay
//   untouched load_lanes<f16v>(p, n) store_lanes   the same, 1 <= n <= 8, whole vectors where n is the
//   constant 8 splat<f16v>(x) zero<f16v>()          of a float, rounded; of a half add sub mul div neg abs
//   sqrt fma fnma floor ceil trunc round; lt le gt ge eq ne select mask_and mask_or mask_not any all min max
//   min_nan max_nan              a NaN in either operand is propagated; -0 < +0: as NEON does
//   reciprocal_estimate(x)               8 bits of 1 / x; reciprocal_step(a, b): 2 - a b, rounded once
//   bits(v) half_bits(i)                 i16v: splat_int<i16v> add sub bit_and bit_or shift_left<N>
//                                        shift_right<N>, which wrap around
//   widen_lanes(v) narrow(w)             Wide: the lanes as floats, in order, kFloatVectors vectors of them;
//                                        narrow rounds
//   store(half*, f32v)                   kLanes floats, rounded
//   hsum hmax hmin                       over the lanes, as a float; hsum adds floats
//   transpose(f16v (&)[8])               in place
#ifndef SINTER_SIMD_HALF_H_
#define SINTER_SIMD_HALF_H_
#ifndef SINTER_ISA
#error "include sinter/half_arithmetic.h and a sinter/simd_*.h"
#endif

#include "sinter/half.h"

namespace sinter::SINTER_ISA {

constexpr int kHalfLanes = 8;
constexpr int kFloatVectors = kHalfLanes / kLanes;
static_assert(kFloatVectors >= 1, "a vector of floats is at most one of halves");

struct Wide {
  f32v part[kFloatVectors];
};

}  // namespace sinter::SINTER_ISA

#if defined(SINTER_ISA_NEON)
#include "sinter/simd_neon_half.h"
#else
#include "sinter/simd_any_half.h"
#endif

namespace sinter::SINTER_ISA {

template <>
struct VectorOf<half> {
  using type = f16v;
  static constexpr int kLanesOf = kHalfLanes;
};
template <class V, if_halves<V> = 0>
SINTER_INLINE V zero() {
  return splat<V>(half{0});
}
SINTER_INLINE f16v min_nan(f16v a, f16v b) { return min(a, b); }
SINTER_INLINE f16v max_nan(f16v a, f16v b) { return max(a, b); }
SINTER_INLINE float hsum(f16v v) {
  const Wide w = widen_lanes(v);
  f32v sum = w.part[0];
  SINTER_UNROLL
  for (int i = 1; i < kFloatVectors; i++) sum = add(sum, w.part[i]);
  return hsum(sum);
}
template <class V, if_halves<V> = 0>
SINTER_INLINE V load_lanes(const half* p, int lanes) {
  return lanes == kHalfLanes ? load<V>(p) : load_n<V>(p, lanes);
}
SINTER_INLINE void store_lanes(half* p, f16v v, int lanes) {
  if (lanes == kHalfLanes)
    store(p, v);
  else
    store_n(p, v, lanes);
}
// f(a vector of floats) of each lane, rounded once: for functions that halves are too coarse for inside.
template <class F>
SINTER_INLINE f16v in_floats(f16v x, F f) {
  Wide w = widen_lanes(x);
  SINTER_UNROLL
  for (int i = 0; i < kFloatVectors; i++) w.part[i] = f(w.part[i]);
  return narrow(w);
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_SIMD_HALF_H_
