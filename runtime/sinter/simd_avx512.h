// SIMD words for AVX-512 (x86-64-v4: F, BW, DQ, VL, CD, and FMA): 16 lanes of 32 bits, masks in k registers.
//
// A translation unit includes exactly one simd_*.h, before any code of its own and after all standard
// headers, and ends with "sinter/simd_end.h". This header switches the rest of the unit to its instruction
// set, so no -m flags are needed; everything has internal linkage and lives in a namespace of its own, so
// that units for different instruction sets can share one program. What the words mean is told once, in
// simd_common.h.
#ifndef SINTER_SIMD_AVX512_H_
#define SINTER_SIMD_AVX512_H_
#ifdef SINTER_ISA
#error "a translation unit includes exactly one sinter/simd_*.h"
#endif
#define SINTER_ISA avx512
#define SINTER_ISA_X86 1
#define SINTER_ISA_AVX512 1
#define SINTER_ISA_FMA 1
#define SINTER_ISA_REGISTERS 32

#include "sinter/simd_begin.h"

#if defined(__clang__)
#include <immintrin.h>
#if defined(SINTER_DOT_PRODUCTS)
#define SINTER_ISA_DOTS "avx512vnni,"
#else
#define SINTER_ISA_DOTS ""
#endif
// So that clang assembles what amx.h spells.
#if defined(SINTER_TILE_MATRICES)
#define SINTER_ISA_TILES "amx-tile,amx-bf16,"
#else
#define SINTER_ISA_TILES ""
#endif
#pragma clang attribute push(                                                                        \
    __attribute__((                                                                                  \
        target(SINTER_ISA_DOTS SINTER_ISA_TILES                                                      \
               "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt"))), \
    apply_to = function)
#define SINTER_ISA_POP 1
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#if defined(SINTER_DOT_PRODUCTS)
#pragma GCC target("avx512vnni")
#endif
#include <immintrin.h>
#endif

namespace sinter::avx512 {

constexpr int kLanes = 16;
// Own vector types: g++ 12 keeps arrays of them in registers, which it doesn't for the may_alias type __m512.
typedef float f32v __attribute__((vector_size(64)));
typedef int32_t i32v __attribute__((vector_size(64)));
typedef uint32_t u32v __attribute__((vector_size(64)));
struct m32v {
  __mmask16 k;
};

namespace detail {
SINTER_INLINE __mmask16 first_lanes(std::ptrdiff_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
SINTER_INLINE __m512 ps(f32v a) { return (__m512)a; }
SINTER_INLINE __m512i si(i32v a) { return (__m512i)a; }
}  // namespace detail

template <class V = f32v>
SINTER_INLINE V load(const float* p) {
  if constexpr (std::is_same_v<V, float>) {
    return *p;
  } else {
    return (f32v)_mm512_loadu_ps(p);
  }
}
template <class V = i32v>
SINTER_INLINE V load(const int32_t* p) {
  if constexpr (std::is_same_v<V, int32_t>) {
    return *p;
  } else {
    return (i32v)_mm512_loadu_si512(p);
  }
}
SINTER_INLINE void store(float* p, f32v v) { _mm512_storeu_ps(p, detail::ps(v)); }
SINTER_INLINE void store(int32_t* p, i32v v) { _mm512_storeu_si512(p, detail::si(v)); }
template <class V = f32v>
SINTER_INLINE V load_n(const float* p, std::ptrdiff_t n) {
  if constexpr (std::is_same_v<V, float>) {
    return n > 0 ? *p : 0.0f;
  } else {
    return (f32v)_mm512_maskz_loadu_ps(detail::first_lanes(n), p);
  }
}
SINTER_INLINE void store_n(float* p, f32v v, std::ptrdiff_t n) {
  _mm512_mask_storeu_ps(p, detail::first_lanes(n), detail::ps(v));
}
template <class V = f32v, if_words<V> = 0>
SINTER_INLINE V splat(float x) {
  if constexpr (std::is_same_v<V, float>) {
    return x;
  } else {
    return (f32v)_mm512_set1_ps(x);
  }
}
template <class V = i32v, if_words<V> = 0>
SINTER_INLINE V splat_int(int32_t x) {
  if constexpr (std::is_same_v<V, int32_t>) {
    return x;
  } else {
    return (i32v)_mm512_set1_epi32(x);
  }
}

SINTER_INLINE f32v fma(f32v a, f32v b, f32v c) {
  return (f32v)_mm512_fmadd_ps(detail::ps(a), detail::ps(b), detail::ps(c));
}
SINTER_INLINE f32v fnma(f32v a, f32v b, f32v c) {
  return (f32v)_mm512_fnmadd_ps(detail::ps(a), detail::ps(b), detail::ps(c));
}
// The maskz forms below name no undefined source register, which g++ 12 would warn about.
SINTER_INLINE f32v min(f32v a, f32v b) {
  return (f32v)_mm512_maskz_min_ps(0xffff, detail::ps(b), detail::ps(a));
}
SINTER_INLINE f32v max(f32v a, f32v b) {
  return (f32v)_mm512_maskz_max_ps(0xffff, detail::ps(b), detail::ps(a));
}
SINTER_INLINE f32v abs(f32v a) { return (f32v)((u32v)a & 0x7fffffffu); }
SINTER_INLINE f32v sqrt(f32v a) { return (f32v)_mm512_maskz_sqrt_ps(0xffff, detail::ps(a)); }
SINTER_INLINE f32v floor(f32v a) {
  return (f32v)_mm512_maskz_roundscale_ps(0xffff, detail::ps(a), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
SINTER_INLINE f32v ceil(f32v a) {
  return (f32v)_mm512_maskz_roundscale_ps(0xffff, detail::ps(a), _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
SINTER_INLINE f32v trunc(f32v a) {
  return (f32v)_mm512_maskz_roundscale_ps(0xffff, detail::ps(a), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
SINTER_INLINE f32v round(f32v a) {
  return (f32v)_mm512_maskz_roundscale_ps(0xffff, detail::ps(a),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

SINTER_INLINE m32v lt(f32v a, f32v b) {
  return {_mm512_cmp_ps_mask(detail::ps(a), detail::ps(b), _CMP_LT_OQ)};
}
SINTER_INLINE m32v le(f32v a, f32v b) {
  return {_mm512_cmp_ps_mask(detail::ps(a), detail::ps(b), _CMP_LE_OQ)};
}
SINTER_INLINE m32v gt(f32v a, f32v b) {
  return {_mm512_cmp_ps_mask(detail::ps(a), detail::ps(b), _CMP_GT_OQ)};
}
SINTER_INLINE m32v ge(f32v a, f32v b) {
  return {_mm512_cmp_ps_mask(detail::ps(a), detail::ps(b), _CMP_GE_OQ)};
}
SINTER_INLINE m32v eq(f32v a, f32v b) {
  return {_mm512_cmp_ps_mask(detail::ps(a), detail::ps(b), _CMP_EQ_OQ)};
}
SINTER_INLINE m32v ne(f32v a, f32v b) {
  return {_mm512_cmp_ps_mask(detail::ps(a), detail::ps(b), _CMP_NEQ_UQ)};
}
SINTER_INLINE m32v lt(i32v a, i32v b) { return {_mm512_cmplt_epi32_mask(detail::si(a), detail::si(b))}; }
SINTER_INLINE m32v gt(i32v a, i32v b) { return {_mm512_cmpgt_epi32_mask(detail::si(a), detail::si(b))}; }
SINTER_INLINE m32v eq(i32v a, i32v b) { return {_mm512_cmpeq_epi32_mask(detail::si(a), detail::si(b))}; }
SINTER_INLINE f32v select(m32v m, f32v a, f32v b) {
  return (f32v)_mm512_mask_blend_ps(m.k, detail::ps(b), detail::ps(a));
}
SINTER_INLINE i32v select(m32v m, i32v a, i32v b) {
  return (i32v)_mm512_mask_blend_epi32(m.k, detail::si(b), detail::si(a));
}
SINTER_INLINE m32v mask_and(m32v a, m32v b) { return {static_cast<__mmask16>(a.k & b.k)}; }
SINTER_INLINE m32v mask_or(m32v a, m32v b) { return {static_cast<__mmask16>(a.k | b.k)}; }
SINTER_INLINE m32v mask_not(m32v a) { return {static_cast<__mmask16>(~a.k)}; }
SINTER_INLINE bool any(m32v m) { return m.k != 0; }
SINTER_INLINE bool all(m32v m) { return m.k == 0xffff; }

SINTER_INLINE i32v to_int(f32v a) { return (i32v)_mm512_maskz_cvttps_epi32(0xffff, detail::ps(a)); }
SINTER_INLINE i32v round_to_int(f32v a) { return (i32v)_mm512_maskz_cvtps_epi32(0xffff, detail::ps(a)); }
SINTER_INLINE f32v to_float(i32v a) { return (f32v)_mm512_maskz_cvtepi32_ps(0xffff, detail::si(a)); }
template <int N>
SINTER_INLINE i32v shift_right(i32v a) {
  return (i32v)_mm512_maskz_srai_epi32(0xffff, detail::si(a), N);
}

namespace detail {
// x - floor(x), 0 for infinities; a * 2^floor(x). Both for exp2_nonpos.
SINTER_INLINE f32v above_floor(f32v x) {
  return (f32v)_mm512_maskz_reduce_ps(0xffff, ps(x), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
SINTER_INLINE f32v times_power_of_2(f32v a, f32v x) {
  return (f32v)_mm512_maskz_scalef_ps(0xffff, ps(a), ps(x));
}
// x less what is whole in it of 32nds; x + y rounded down; table[low five bits of i]. For attention_beside.h.
SINTER_INLINE f32v above_32nd(f32v x) {
  return (f32v)_mm512_maskz_reduce_ps(0xffff, ps(x), 5 << 4 | _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
SINTER_INLINE f32v add_down(f32v x, f32v y) {
  const __mmask16 every = first_lanes(16);
  return (f32v)_mm512_maskz_add_round_ps(every, ps(x), ps(y), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
SINTER_INLINE f32v look_up(const float (&table)[32], i32v i) {
  return (f32v)_mm512_permutex2var_ps(ps(load(table)), si(i), ps(load(table + 16)));
}
SINTER_INLINE float above_floor(float x) {
  return _mm_cvtss_f32(
      _mm_reduce_ss(_mm_set_ss(x), _mm_set_ss(x), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
}
SINTER_INLINE float times_power_of_2(float a, float x) {
  return _mm_cvtss_f32(_mm_scalef_ss(_mm_set_ss(a), _mm_set_ss(x)));
}

// The vector with its lanes in another order: halves swapped, quarters of a half, pairs of a quarter,
// neighbours.
template <int Distance>
SINTER_INLINE f32v swap_lanes(f32v v) {
  if constexpr (Distance == 8) {
    return (f32v)_mm512_maskz_shuffle_f32x4(0xffff, ps(v), ps(v), 0x4e);
  } else if constexpr (Distance == 4) {
    return (f32v)_mm512_maskz_shuffle_f32x4(0xffff, ps(v), ps(v), 0xb1);
  } else if constexpr (Distance == 2) {
    return (f32v)_mm512_maskz_permute_ps(0xffff, ps(v), 0x4e);
  } else {
    return (f32v)_mm512_maskz_permute_ps(0xffff, ps(v), 0xb1);
  }
}

// Turns each 4x4 block of four rows: row r of the result holds column r of every 128-bit quarter.
SINTER_INLINE void transpose_quarters(f32v& a, f32v& b, f32v& c, f32v& d) {
  const __m512 ab_low = _mm512_maskz_unpacklo_ps(0xffff, ps(a), ps(b));
  const __m512 ab_high = _mm512_maskz_unpackhi_ps(0xffff, ps(a), ps(b));
  const __m512 cd_low = _mm512_maskz_unpacklo_ps(0xffff, ps(c), ps(d));
  const __m512 cd_high = _mm512_maskz_unpackhi_ps(0xffff, ps(c), ps(d));
  a = (f32v)_mm512_maskz_shuffle_ps(0xffff, ab_low, cd_low, 0x44);
  b = (f32v)_mm512_maskz_shuffle_ps(0xffff, ab_low, cd_low, 0xee);
  c = (f32v)_mm512_maskz_shuffle_ps(0xffff, ab_high, cd_high, 0x44);
  d = (f32v)_mm512_maskz_shuffle_ps(0xffff, ab_high, cd_high, 0xee);
}
}  // namespace detail

SINTER_INLINE void transpose(f32v (&r)[16]) {
  using detail::ps;
  detail::transpose_quarters(r[0], r[1], r[2], r[3]);
  detail::transpose_quarters(r[4], r[5], r[6], r[7]);
  detail::transpose_quarters(r[8], r[9], r[10], r[11]);
  detail::transpose_quarters(r[12], r[13], r[14], r[15]);
  // Row 4g + i now holds, in quarter q, column 4q + i of rows 4g to 4g + 3: a 4x4 transpose of quarters
  // remains.
  SINTER_UNROLL
  for (int i = 0; i < 4; i++) {
    const __m512 a = ps(r[i]), b = ps(r[4 + i]), c = ps(r[8 + i]), d = ps(r[12 + i]);
    const __m512 ab_even = _mm512_maskz_shuffle_f32x4(0xffff, a, b, 0x88);
    const __m512 ab_odd = _mm512_maskz_shuffle_f32x4(0xffff, a, b, 0xdd);
    const __m512 cd_even = _mm512_maskz_shuffle_f32x4(0xffff, c, d, 0x88);
    const __m512 cd_odd = _mm512_maskz_shuffle_f32x4(0xffff, c, d, 0xdd);
    r[i] = (f32v)_mm512_maskz_shuffle_f32x4(0xffff, ab_even, cd_even, 0x88);
    r[4 + i] = (f32v)_mm512_maskz_shuffle_f32x4(0xffff, ab_odd, cd_odd, 0x88);
    r[8 + i] = (f32v)_mm512_maskz_shuffle_f32x4(0xffff, ab_even, cd_even, 0xdd);
    r[12 + i] = (f32v)_mm512_maskz_shuffle_f32x4(0xffff, ab_odd, cd_odd, 0xdd);
  }
}

}  // namespace sinter::avx512

#include "sinter/simd_common.h"

#endif  // SINTER_SIMD_AVX512_H_
