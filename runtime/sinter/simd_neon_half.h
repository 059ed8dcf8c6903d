// The words of simd_half.h in ARMv8.2's half-precision arithmetic (FEAT_FP16): Cortex-A55, A76, A78AE and
// later. Included by simd_half.h. Halves that are subnormal are numbers here, as FPCR.FZ16 is off.
#ifndef SINTER_SIMD_NEON_HALF_H_
#define SINTER_SIMD_NEON_HALF_H_
#ifndef SINTER_HALF_ARITHMETIC
#error "include sinter/half_arithmetic.h and a sinter/simd_*.h"
#endif

namespace sinter::SINTER_ISA {

typedef float16x8_t f16v;
typedef int16_t i16v __attribute__((vector_size(16)));
struct m16v {
  uint16x8_t v;
};

}  // namespace sinter::SINTER_ISA
namespace sinter {
template <>
inline constexpr bool of_halves<SINTER_ISA::f16v> = true;
template <>
inline constexpr bool of_halves<SINTER_ISA::i16v> = true;
}  // namespace sinter
namespace sinter::SINTER_ISA {

namespace detail {
SINTER_INLINE f16v ph(uint16x8_t a) { return vreinterpretq_f16_u16(a); }
SINTER_INLINE uint16x8_t uh(f16v a) { return vreinterpretq_u16_f16(a); }
// The first 0 to 3 halves at p, zeros behind them.
SINTER_INLINE uint16x4_t few_halves(const half* p, std::ptrdiff_t n) {
  uint16x4_t v = vdup_n_u16(0);
  if (n > 0) v = vld1_lane_u16(&p->bits, v, 0);
  if (n > 1) v = vld1_lane_u16(&p[1].bits, v, 1);
  if (n > 2) v = vld1_lane_u16(&p[2].bits, v, 2);
  return v;
}
SINTER_INLINE void put_few_halves(half* p, uint16x4_t v, std::ptrdiff_t n) {
  if (n > 0) vst1_lane_u16(&p->bits, v, 0);
  if (n > 1) vst1_lane_u16(&p[1].bits, v, 1);
  if (n > 2) vst1_lane_u16(&p[2].bits, v, 2);
}
}  // namespace detail

template <class V, if_halves<V> = 0>
SINTER_INLINE V load(const half* p) {
  return detail::ph(vld1q_u16(&p->bits));
}
SINTER_INLINE void store(half* p, f16v v) { vst1q_u16(&p->bits, detail::uh(v)); }
template <class V, if_halves<V> = 0>
SINTER_INLINE V load_n(const half* p, std::ptrdiff_t n) {
  if (n >= 8) return load<f16v>(p);
  const uint16x4_t low = n >= 4 ? vld1_u16(&p->bits) : detail::few_halves(p, n);
  return detail::ph(vcombine_u16(low, detail::few_halves(n > 4 ? p + 4 : p, n - 4)));
}
SINTER_INLINE void store_n(half* p, f16v v, std::ptrdiff_t n) {
  const uint16x8_t u = detail::uh(v);
  if (n >= 8) return vst1q_u16(&p->bits, u);
  if (n < 4) return detail::put_few_halves(p, vget_low_u16(u), n);
  vst1_u16(&p->bits, vget_low_u16(u));
  if (n > 4) detail::put_few_halves(p + 4, vget_high_u16(u), n - 4);
}
template <class V, if_halves<V> = 0>
SINTER_INLINE V splat(float x) {
  return vdupq_n_f16(static_cast<__fp16>(x));
}
template <class V, if_halves<V> = 0>
SINTER_INLINE V splat(half x) {
  return detail::ph(vdupq_n_u16(x.bits));
}

SINTER_INLINE f16v add(f16v a, f16v b) { return vaddq_f16(a, b); }
SINTER_INLINE f16v sub(f16v a, f16v b) { return vsubq_f16(a, b); }
SINTER_INLINE f16v mul(f16v a, f16v b) { return vmulq_f16(a, b); }
SINTER_INLINE f16v div(f16v a, f16v b) { return vdivq_f16(a, b); }
SINTER_INLINE f16v neg(f16v a) { return vnegq_f16(a); }
SINTER_INLINE f16v abs(f16v a) { return vabsq_f16(a); }
SINTER_INLINE f16v sqrt(f16v a) { return vsqrtq_f16(a); }
SINTER_INLINE f16v fma(f16v a, f16v b, f16v c) { return vfmaq_f16(c, a, b); }
SINTER_INLINE f16v fnma(f16v a, f16v b, f16v c) { return vfmsq_f16(c, a, b); }
SINTER_INLINE f16v min(f16v a, f16v b) { return vminq_f16(a, b); }
SINTER_INLINE f16v max(f16v a, f16v b) { return vmaxq_f16(a, b); }
SINTER_INLINE f16v floor(f16v a) { return vrndmq_f16(a); }
SINTER_INLINE f16v ceil(f16v a) { return vrndpq_f16(a); }
SINTER_INLINE f16v trunc(f16v a) { return vrndq_f16(a); }
SINTER_INLINE f16v round(f16v a) { return vrndnq_f16(a); }
SINTER_INLINE f16v reciprocal_estimate(f16v a) { return vrecpeq_f16(a); }
SINTER_INLINE f16v reciprocal_step(f16v a, f16v b) { return vrecpsq_f16(a, b); }

SINTER_INLINE m16v lt(f16v a, f16v b) { return {vcltq_f16(a, b)}; }
SINTER_INLINE m16v le(f16v a, f16v b) { return {vcleq_f16(a, b)}; }
SINTER_INLINE m16v gt(f16v a, f16v b) { return {vcgtq_f16(a, b)}; }
SINTER_INLINE m16v ge(f16v a, f16v b) { return {vcgeq_f16(a, b)}; }
SINTER_INLINE m16v eq(f16v a, f16v b) { return {vceqq_f16(a, b)}; }
SINTER_INLINE m16v ne(f16v a, f16v b) { return {vmvnq_u16(vceqq_f16(a, b))}; }
SINTER_INLINE f16v select(m16v m, f16v a, f16v b) { return vbslq_f16(m.v, a, b); }
SINTER_INLINE m16v mask_and(m16v a, m16v b) { return {vandq_u16(a.v, b.v)}; }
SINTER_INLINE m16v mask_or(m16v a, m16v b) { return {vorrq_u16(a.v, b.v)}; }
SINTER_INLINE m16v mask_not(m16v a) { return {vmvnq_u16(a.v)}; }
SINTER_INLINE bool any(m16v m) { return vmaxvq_u16(m.v) != 0; }
SINTER_INLINE bool all(m16v m) { return vminvq_u16(m.v) != 0; }

SINTER_INLINE i16v bits(f16v a) { return (i16v)a; }
SINTER_INLINE f16v half_bits(i16v a) { return (f16v)a; }
template <class I, if_halves<I> = 0>
SINTER_INLINE I splat_int(int x) {
  return (i16v)vdupq_n_s16(static_cast<int16_t>(x));
}
SINTER_INLINE i16v add(i16v a, i16v b) { return (i16v)vaddq_s16((int16x8_t)a, (int16x8_t)b); }
SINTER_INLINE i16v sub(i16v a, i16v b) { return (i16v)vsubq_s16((int16x8_t)a, (int16x8_t)b); }
SINTER_INLINE i16v bit_and(i16v a, i16v b) { return a & b; }
SINTER_INLINE i16v bit_or(i16v a, i16v b) { return a | b; }
template <int N>
SINTER_INLINE i16v shift_left(i16v a) {
  return (i16v)vshlq_n_s16((int16x8_t)a, N);
}
template <int N>
SINTER_INLINE i16v shift_right(i16v a) {
  return (i16v)vshrq_n_s16((int16x8_t)a, N);
}

SINTER_INLINE Wide widen_lanes(f16v a) {
  return {{(f32v)vcvt_f32_f16(vget_low_f16(a)), (f32v)vcvt_high_f32_f16(a)}};
}
SINTER_INLINE f16v narrow(const Wide& w) {
  return vcvt_high_f16_f32(vcvt_f16_f32(detail::ps(w.part[0])), detail::ps(w.part[1]));
}
SINTER_INLINE void store(half* p, f32v v) {
  vst1_u16(&p->bits, vreinterpret_u16_f16(vcvt_f16_f32(detail::ps(v))));
}
SINTER_INLINE float hmax(f16v v) { return static_cast<float>(vmaxvq_f16(v)); }
SINTER_INLINE float hmin(f16v v) { return static_cast<float>(vminvq_f16(v)); }

namespace detail {
// Rows a and b of pairs of `Bytes`: their even columns and their odd ones.
template <int Bytes>
SINTER_INLINE void swap_columns(f16v& a, f16v& b) {
  if constexpr (Bytes == 2) {
    const f16v even = vtrn1q_f16(a, b), odd = vtrn2q_f16(a, b);
    a = even, b = odd;
  } else if constexpr (Bytes == 4) {
    const float32x4_t even = vtrn1q_f32((float32x4_t)a, (float32x4_t)b),
                      odd = vtrn2q_f32((float32x4_t)a, (float32x4_t)b);
    a = (f16v)even, b = (f16v)odd;
  } else {
    const float64x2_t even = vtrn1q_f64((float64x2_t)a, (float64x2_t)b),
                      odd = vtrn2q_f64((float64x2_t)a, (float64x2_t)b);
    a = (f16v)even, b = (f16v)odd;
  }
}
}  // namespace detail

SINTER_INLINE void transpose(f16v (&r)[8]) {
  SINTER_UNROLL
  for (int i = 0; i < 8; i += 2) detail::swap_columns<2>(r[i], r[i + 1]);
  SINTER_UNROLL
  for (int i = 0; i < 8; i++)
    if (i % 4 < 2) detail::swap_columns<4>(r[i], r[i + 2]);
  SINTER_UNROLL
  for (int i = 0; i < 4; i++) detail::swap_columns<8>(r[i], r[i + 4]);
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_SIMD_NEON_HALF_H_
