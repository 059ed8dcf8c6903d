// SIMD words for ARMv8-A's Advanced SIMD (AArch64): 4 lanes of 32 bits. Every AArch64 compiler has it on, so
// nothing is switched but dot products (dot_products.h) and arithmetic of halves (half_arithmetic.h). Rules
// of use as in simd_avx512.h; the word list is in simd_common.h.
#ifndef SINTER_SIMD_NEON_H_
#define SINTER_SIMD_NEON_H_
#ifdef SINTER_ISA
#error "a translation unit includes exactly one sinter/simd_*.h"
#endif
#define SINTER_ISA neon
#define SINTER_ISA_NEON 1
#define SINTER_ISA_FMA 1
#define SINTER_ISA_REGISTERS 32

// What the unit asks for and the compiler's flags don't have.
#if defined(SINTER_HALF_ARITHMETIC) && !defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#if defined(__clang__) && __clang_major__ < 16
#error "this clang's arm_neon.h has no halves but with -march=armv8.2-a+fp16"
#elif defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod,fullfp16"))), apply_to = function)
#define SINTER_ISA_POP 1
#elif defined(SINTER_DOT_PRODUCTS)
#pragma GCC target("arch=armv8.2-a+dotprod+fp16")
#else
#pragma GCC target("arch=armv8.2-a+fp16")
#endif
#elif defined(SINTER_DOT_PRODUCTS) && !defined(__ARM_FEATURE_DOTPROD)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#define SINTER_ISA_POP 1
#else
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
#endif
#include <arm_neon.h>

// g++ schedules before it allocates registers, which makes the tiles of mac.h that just fit spill: a 3x7 tile
// ran at 47 % of the FMA peak on a modelled Cortex-A53 with that pass and at 62 % without it (4x5 53 and 62
// %, 2x10 55 and 59 %); on a Cortex-A76 the difference is below 4 % either way. For cores in order see
// in_order.h.
#if !defined(__clang__) && !defined(SINTER_IN_ORDER)
#pragma GCC optimize("no-schedule-insns")
#endif

#include "sinter/simd_begin.h"

namespace sinter::neon {

constexpr int kLanes = 4;
typedef float f32v __attribute__((vector_size(16)));
typedef int32_t i32v __attribute__((vector_size(16)));
typedef uint32_t u32v __attribute__((vector_size(16)));
struct m32v {
  uint32x4_t v;
};

namespace detail {
SINTER_INLINE float32x4_t ps(f32v a) { return (float32x4_t)a; }
SINTER_INLINE int32x4_t si(i32v a) { return (int32x4_t)a; }
}  // namespace detail

template <class V = f32v>
SINTER_INLINE V load(const float* p) {
  if constexpr (std::is_same_v<V, float>) {
    return *p;
  } else {
    return (f32v)vld1q_f32(p);
  }
}
template <class V = i32v>
SINTER_INLINE V load(const int32_t* p) {
  if constexpr (std::is_same_v<V, int32_t>) {
    return *p;
  } else {
    return (i32v)vld1q_s32(p);
  }
}
SINTER_INLINE void store(float* p, f32v v) { vst1q_f32(p, detail::ps(v)); }
SINTER_INLINE void store(int32_t* p, i32v v) { vst1q_s32(p, detail::si(v)); }
template <class V = f32v>
SINTER_INLINE V load_n(const float* p, std::ptrdiff_t n) {
  if constexpr (std::is_same_v<V, float>) {
    return n > 0 ? *p : 0.0f;
  } else {
    const float32x2_t none = vdup_n_f32(0.0f);
    switch (n) {
      case 0: return (f32v)vcombine_f32(none, none);
      case 1: return (f32v)vcombine_f32(vld1_lane_f32(p, none, 0), none);
      case 2: return (f32v)vcombine_f32(vld1_f32(p), none);
      case 3: return (f32v)vcombine_f32(vld1_f32(p), vld1_lane_f32(p + 2, none, 0));
      default: return (f32v)vld1q_f32(p);
    }
  }
}
SINTER_INLINE void store_n(float* p, f32v v, std::ptrdiff_t n) {
  if (n >= 4) {
    vst1q_f32(p, detail::ps(v));
    return;
  }
  if (n >= 2) vst1_f32(p, vget_low_f32(detail::ps(v)));
  if (n == 3) vst1q_lane_f32(p + 2, detail::ps(v), 2);
  if (n == 1) vst1q_lane_f32(p, detail::ps(v), 0);
}
template <class V = f32v, if_words<V> = 0>
SINTER_INLINE V splat(float x) {
  if constexpr (std::is_same_v<V, float>) {
    return x;
  } else {
    return (f32v)vdupq_n_f32(x);
  }
}
template <class V = i32v, if_words<V> = 0>
SINTER_INLINE V splat_int(int32_t x) {
  if constexpr (std::is_same_v<V, int32_t>) {
    return x;
  } else {
    return (i32v)vdupq_n_s32(x);
  }
}

SINTER_INLINE f32v fma(f32v a, f32v b, f32v c) {
  return (f32v)vfmaq_f32(detail::ps(c), detail::ps(a), detail::ps(b));
}
SINTER_INLINE f32v fnma(f32v a, f32v b, f32v c) {
  return (f32v)vfmsq_f32(detail::ps(c), detail::ps(a), detail::ps(b));
}
SINTER_INLINE f32v min(f32v a, f32v b) { return (f32v)vminq_f32(detail::ps(a), detail::ps(b)); }
SINTER_INLINE f32v max(f32v a, f32v b) { return (f32v)vmaxq_f32(detail::ps(a), detail::ps(b)); }
SINTER_INLINE f32v abs(f32v a) { return (f32v)vabsq_f32(detail::ps(a)); }
SINTER_INLINE f32v sqrt(f32v a) { return (f32v)vsqrtq_f32(detail::ps(a)); }
SINTER_INLINE f32v floor(f32v a) { return (f32v)vrndmq_f32(detail::ps(a)); }
SINTER_INLINE f32v ceil(f32v a) { return (f32v)vrndpq_f32(detail::ps(a)); }
SINTER_INLINE f32v trunc(f32v a) { return (f32v)vrndq_f32(detail::ps(a)); }
SINTER_INLINE f32v round(f32v a) { return (f32v)vrndnq_f32(detail::ps(a)); }

SINTER_INLINE m32v lt(f32v a, f32v b) { return {vcltq_f32(detail::ps(a), detail::ps(b))}; }
SINTER_INLINE m32v le(f32v a, f32v b) { return {vcleq_f32(detail::ps(a), detail::ps(b))}; }
SINTER_INLINE m32v gt(f32v a, f32v b) { return {vcgtq_f32(detail::ps(a), detail::ps(b))}; }
SINTER_INLINE m32v ge(f32v a, f32v b) { return {vcgeq_f32(detail::ps(a), detail::ps(b))}; }
SINTER_INLINE m32v eq(f32v a, f32v b) { return {vceqq_f32(detail::ps(a), detail::ps(b))}; }
SINTER_INLINE m32v ne(f32v a, f32v b) { return {vmvnq_u32(vceqq_f32(detail::ps(a), detail::ps(b)))}; }
SINTER_INLINE m32v lt(i32v a, i32v b) { return {vcltq_s32(detail::si(a), detail::si(b))}; }
SINTER_INLINE m32v gt(i32v a, i32v b) { return {vcgtq_s32(detail::si(a), detail::si(b))}; }
SINTER_INLINE m32v eq(i32v a, i32v b) { return {vceqq_s32(detail::si(a), detail::si(b))}; }
SINTER_INLINE f32v select(m32v m, f32v a, f32v b) {
  return (f32v)vbslq_f32(m.v, detail::ps(a), detail::ps(b));
}
SINTER_INLINE i32v select(m32v m, i32v a, i32v b) {
  return (i32v)vbslq_s32(m.v, detail::si(a), detail::si(b));
}
SINTER_INLINE m32v mask_and(m32v a, m32v b) { return {vandq_u32(a.v, b.v)}; }
SINTER_INLINE m32v mask_or(m32v a, m32v b) { return {vorrq_u32(a.v, b.v)}; }
SINTER_INLINE m32v mask_not(m32v a) { return {vmvnq_u32(a.v)}; }
SINTER_INLINE bool any(m32v m) { return vmaxvq_u32(m.v) != 0; }
SINTER_INLINE bool all(m32v m) { return vminvq_u32(m.v) != 0; }

SINTER_INLINE i32v to_int(f32v a) { return (i32v)vcvtq_s32_f32(detail::ps(a)); }
SINTER_INLINE i32v round_to_int(f32v a) { return (i32v)vcvtnq_s32_f32(detail::ps(a)); }
SINTER_INLINE f32v to_float(i32v a) { return (f32v)vcvtq_f32_s32(detail::si(a)); }
template <int N>
SINTER_INLINE i32v shift_right(i32v a) {
  return (i32v)vshrq_n_s32(detail::si(a), N);
}

namespace detail {
template <int Distance>
SINTER_INLINE f32v swap_lanes(f32v v) {
  if constexpr (Distance == 2) {
    return (f32v)vextq_f32(ps(v), ps(v), 2);
  } else {
    return (f32v)vrev64q_f32(ps(v));
  }
}
}  // namespace detail

SINTER_INLINE void transpose(f32v (&r)[4]) {
  using detail::ps;
  const float32x4_t ab_even = vtrn1q_f32(ps(r[0]), ps(r[1])), ab_odd = vtrn2q_f32(ps(r[0]), ps(r[1]));
  const float32x4_t cd_even = vtrn1q_f32(ps(r[2]), ps(r[3])), cd_odd = vtrn2q_f32(ps(r[2]), ps(r[3]));
  r[0] = (f32v)vcombine_f32(vget_low_f32(ab_even), vget_low_f32(cd_even));
  r[1] = (f32v)vcombine_f32(vget_low_f32(ab_odd), vget_low_f32(cd_odd));
  r[2] = (f32v)vcombine_f32(vget_high_f32(ab_even), vget_high_f32(cd_even));
  r[3] = (f32v)vcombine_f32(vget_high_f32(ab_odd), vget_high_f32(cd_odd));
}

}  // namespace sinter::neon

#include "sinter/simd_common.h"

#endif  // SINTER_SIMD_NEON_H_
