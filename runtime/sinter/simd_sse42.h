// SIMD words for SSE4.2 (x86-64-v2): 4 lanes of 32 bits, masks as vectors of all-ones or zero lanes, no fused
// multiply-add. Rules of use as in simd_avx512.h; the word list is in simd_common.h.
#ifndef SINTER_SIMD_SSE42_H_
#define SINTER_SIMD_SSE42_H_
#ifdef SINTER_ISA
#error "a translation unit includes exactly one sinter/simd_*.h"
#endif
#define SINTER_ISA sse42
#define SINTER_ISA_X86 1
#define SINTER_ISA_SSE42 1
#define SINTER_ISA_REGISTERS 16

#include "sinter/simd_begin.h"

#if defined(__clang__)
#include <immintrin.h>
#pragma clang attribute push(__attribute__((target("sse4.2,popcnt"))), apply_to = function)
#define SINTER_ISA_POP 1
#else
#pragma GCC target("sse4.2,popcnt")
#include <immintrin.h>
#endif

namespace sinter::sse42 {

constexpr int kLanes = 4;
typedef float f32v __attribute__((vector_size(16)));
typedef int32_t i32v __attribute__((vector_size(16)));
typedef uint32_t u32v __attribute__((vector_size(16)));
struct m32v {
  f32v v;
};

namespace detail {
SINTER_INLINE __m128 ps(f32v a) { return (__m128)a; }
SINTER_INLINE __m128i si(i32v a) { return (__m128i)a; }
SINTER_INLINE __m128 load_2(const float* p) {
  return _mm_loadl_pi(_mm_setzero_ps(), reinterpret_cast<const __m64*>(p));
}
}  // namespace detail

template <class V = f32v>
SINTER_INLINE V load(const float* p) {
  if constexpr (std::is_same_v<V, float>) {
    return *p;
  } else {
    return (f32v)_mm_loadu_ps(p);
  }
}
template <class V = i32v>
SINTER_INLINE V load(const int32_t* p) {
  if constexpr (std::is_same_v<V, int32_t>) {
    return *p;
  } else {
    return (i32v)_mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
}
SINTER_INLINE void store(float* p, f32v v) { _mm_storeu_ps(p, detail::ps(v)); }
SINTER_INLINE void store(int32_t* p, i32v v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), detail::si(v));
}
template <class V = f32v>
SINTER_INLINE V load_n(const float* p, std::ptrdiff_t n) {
  if constexpr (std::is_same_v<V, float>) {
    return n > 0 ? *p : 0.0f;
  } else {
    switch (n) {
      case 0: return (f32v)_mm_setzero_ps();
      case 1: return (f32v)_mm_load_ss(p);
      case 2: return (f32v)detail::load_2(p);
      case 3: return (f32v)_mm_movelh_ps(detail::load_2(p), _mm_load_ss(p + 2));
      default: return (f32v)_mm_loadu_ps(p);
    }
  }
}
SINTER_INLINE void store_n(float* p, f32v v, std::ptrdiff_t n) {
  if (n >= 4) {
    _mm_storeu_ps(p, detail::ps(v));
    return;
  }
  if (n >= 2) _mm_storel_pi(reinterpret_cast<__m64*>(p), detail::ps(v));
  if (n == 3) _mm_store_ss(p + 2, _mm_movehl_ps(detail::ps(v), detail::ps(v)));
  if (n == 1) _mm_store_ss(p, detail::ps(v));
}
template <class V = f32v, if_words<V> = 0>
SINTER_INLINE V splat(float x) {
  if constexpr (std::is_same_v<V, float>) {
    return x;
  } else {
    return (f32v)_mm_set1_ps(x);
  }
}
template <class V = i32v, if_words<V> = 0>
SINTER_INLINE V splat_int(int32_t x) {
  if constexpr (std::is_same_v<V, int32_t>) {
    return x;
  } else {
    return (i32v)_mm_set1_epi32(x);
  }
}

SINTER_INLINE f32v fma(f32v a, f32v b, f32v c) {
  f32v sum = a * b + c;
  __asm__("" : "+x"(sum));  // g++ would put off the sums of a tile until it has all products, on the stack
  return sum;
}
SINTER_INLINE f32v fnma(f32v a, f32v b, f32v c) { return c - a * b; }
SINTER_INLINE f32v min(f32v a, f32v b) { return (f32v)_mm_min_ps(detail::ps(b), detail::ps(a)); }
SINTER_INLINE f32v max(f32v a, f32v b) { return (f32v)_mm_max_ps(detail::ps(b), detail::ps(a)); }
SINTER_INLINE f32v abs(f32v a) { return (f32v)((u32v)a & 0x7fffffffu); }
SINTER_INLINE f32v sqrt(f32v a) { return (f32v)_mm_sqrt_ps(detail::ps(a)); }
SINTER_INLINE f32v floor(f32v a) { return (f32v)_mm_floor_ps(detail::ps(a)); }
SINTER_INLINE f32v ceil(f32v a) { return (f32v)_mm_ceil_ps(detail::ps(a)); }
SINTER_INLINE f32v trunc(f32v a) {
  return (f32v)_mm_round_ps(detail::ps(a), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
SINTER_INLINE f32v round(f32v a) {
  return (f32v)_mm_round_ps(detail::ps(a), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

SINTER_INLINE m32v lt(f32v a, f32v b) { return {(f32v)_mm_cmplt_ps(detail::ps(a), detail::ps(b))}; }
SINTER_INLINE m32v le(f32v a, f32v b) { return {(f32v)_mm_cmple_ps(detail::ps(a), detail::ps(b))}; }
SINTER_INLINE m32v gt(f32v a, f32v b) { return {(f32v)_mm_cmplt_ps(detail::ps(b), detail::ps(a))}; }
SINTER_INLINE m32v ge(f32v a, f32v b) { return {(f32v)_mm_cmple_ps(detail::ps(b), detail::ps(a))}; }
SINTER_INLINE m32v eq(f32v a, f32v b) { return {(f32v)_mm_cmpeq_ps(detail::ps(a), detail::ps(b))}; }
SINTER_INLINE m32v ne(f32v a, f32v b) { return {(f32v)_mm_cmpneq_ps(detail::ps(a), detail::ps(b))}; }
SINTER_INLINE m32v lt(i32v a, i32v b) { return {(f32v)_mm_cmplt_epi32(detail::si(a), detail::si(b))}; }
SINTER_INLINE m32v gt(i32v a, i32v b) { return {(f32v)_mm_cmpgt_epi32(detail::si(a), detail::si(b))}; }
SINTER_INLINE m32v eq(i32v a, i32v b) { return {(f32v)_mm_cmpeq_epi32(detail::si(a), detail::si(b))}; }
SINTER_INLINE f32v select(m32v m, f32v a, f32v b) {
  return (f32v)_mm_blendv_ps(detail::ps(b), detail::ps(a), detail::ps(m.v));
}
SINTER_INLINE i32v select(m32v m, i32v a, i32v b) { return (i32v)select(m, (f32v)a, (f32v)b); }
SINTER_INLINE m32v mask_and(m32v a, m32v b) { return {(f32v)((i32v)a.v & (i32v)b.v)}; }
SINTER_INLINE m32v mask_or(m32v a, m32v b) { return {(f32v)((i32v)a.v | (i32v)b.v)}; }
SINTER_INLINE m32v mask_not(m32v a) { return {(f32v)(~(i32v)a.v)}; }
SINTER_INLINE bool any(m32v m) { return _mm_movemask_ps(detail::ps(m.v)) != 0; }
SINTER_INLINE bool all(m32v m) { return _mm_movemask_ps(detail::ps(m.v)) == 0xf; }

SINTER_INLINE i32v to_int(f32v a) { return (i32v)_mm_cvttps_epi32(detail::ps(a)); }
SINTER_INLINE i32v round_to_int(f32v a) { return (i32v)_mm_cvtps_epi32(detail::ps(a)); }
SINTER_INLINE f32v to_float(i32v a) { return (f32v)_mm_cvtepi32_ps(detail::si(a)); }
template <int N>
SINTER_INLINE i32v shift_right(i32v a) {
  return (i32v)_mm_srai_epi32(detail::si(a), N);
}

namespace detail {
template <int Distance>
SINTER_INLINE f32v swap_lanes(f32v v) {
  if constexpr (Distance == 2) {
    return (f32v)_mm_movehl_ps(ps(v), ps(v));
  } else {
    return (f32v)_mm_shuffle_ps(ps(v), ps(v), 0xb1);
  }
}
}  // namespace detail

SINTER_INLINE void transpose(f32v (&r)[4]) {
  using detail::ps;
  const __m128 ab_low = _mm_unpacklo_ps(ps(r[0]), ps(r[1])), ab_high = _mm_unpackhi_ps(ps(r[0]), ps(r[1]));
  const __m128 cd_low = _mm_unpacklo_ps(ps(r[2]), ps(r[3])), cd_high = _mm_unpackhi_ps(ps(r[2]), ps(r[3]));
  r[0] = (f32v)_mm_movelh_ps(ab_low, cd_low);
  r[1] = (f32v)_mm_movehl_ps(cd_low, ab_low);
  r[2] = (f32v)_mm_movelh_ps(ab_high, cd_high);
  r[3] = (f32v)_mm_movehl_ps(cd_high, ab_high);
}

}  // namespace sinter::sse42

#include "sinter/simd_common.h"

#endif  // SINTER_SIMD_SSE42_H_
