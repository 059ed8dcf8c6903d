// SIMD words for AVX2 (x86-64-v3: AVX2, FMA, F16C): 8 lanes of 32 bits, masks as vectors of all-ones or zero
// lanes. Rules of use as in simd_avx512.h; the word list is in simd_common.h.
#ifndef SINTER_SIMD_AVX2_H_
#define SINTER_SIMD_AVX2_H_
#ifdef SINTER_ISA
#error "a translation unit includes exactly one sinter/simd_*.h"
#endif
#define SINTER_ISA avx2
#define SINTER_ISA_X86 1
#define SINTER_ISA_AVX2 1
#define SINTER_ISA_FMA 1
#define SINTER_ISA_REGISTERS 16

#include "sinter/simd_begin.h"

#if defined(__clang__)
#include <immintrin.h>
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt"))), \
                             apply_to = function)
#define SINTER_ISA_POP 1
#else
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#include <immintrin.h>
#endif

namespace sinter::avx2 {

constexpr int kLanes = 8;
typedef float f32v __attribute__((vector_size(32)));
typedef int32_t i32v __attribute__((vector_size(32)));
typedef uint32_t u32v __attribute__((vector_size(32)));
struct m32v {
  f32v v;
};

namespace detail {
SINTER_INLINE __m256 ps(f32v a) { return (__m256)a; }
SINTER_INLINE __m256i si(i32v a) { return (__m256i)a; }
SINTER_INLINE __m256i first_lanes(std::ptrdiff_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
}  // namespace detail

template <class V = f32v>
SINTER_INLINE V load(const float* p) {
  if constexpr (std::is_same_v<V, float>) {
    return *p;
  } else {
    return (f32v)_mm256_loadu_ps(p);
  }
}
template <class V = i32v>
SINTER_INLINE V load(const int32_t* p) {
  if constexpr (std::is_same_v<V, int32_t>) {
    return *p;
  } else {
    return (i32v)_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
}
SINTER_INLINE void store(float* p, f32v v) { _mm256_storeu_ps(p, detail::ps(v)); }
SINTER_INLINE void store(int32_t* p, i32v v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), detail::si(v));
}
template <class V = f32v>
SINTER_INLINE V load_n(const float* p, std::ptrdiff_t n) {
  if constexpr (std::is_same_v<V, float>) {
    return n > 0 ? *p : 0.0f;
  } else {
    return (f32v)_mm256_maskload_ps(p, detail::first_lanes(n));
  }
}
// In up to three pieces: a masked store takes dozens of cycles on several AMD cores.
SINTER_INLINE void store_n(float* p, f32v v, std::ptrdiff_t n) {
  if (n >= 8) {
    _mm256_storeu_ps(p, detail::ps(v));
    return;
  }
  __m128 rest = _mm256_castps256_ps128(detail::ps(v));
  if (n & 4) {
    _mm_storeu_ps(p, rest);
    rest = _mm256_extractf128_ps(detail::ps(v), 1);
    p += 4;
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), rest);
    rest = _mm_movehl_ps(rest, rest);
    p += 2;
  }
  if (n & 1) _mm_store_ss(p, rest);
}
template <class V = f32v, if_words<V> = 0>
SINTER_INLINE V splat(float x) {
  if constexpr (std::is_same_v<V, float>) {
    return x;
  } else {
    return (f32v)_mm256_set1_ps(x);
  }
}
template <class V = i32v, if_words<V> = 0>
SINTER_INLINE V splat_int(int32_t x) {
  if constexpr (std::is_same_v<V, int32_t>) {
    return x;
  } else {
    return (i32v)_mm256_set1_epi32(x);
  }
}

SINTER_INLINE f32v fma(f32v a, f32v b, f32v c) {
  return (f32v)_mm256_fmadd_ps(detail::ps(a), detail::ps(b), detail::ps(c));
}
SINTER_INLINE f32v fnma(f32v a, f32v b, f32v c) {
  return (f32v)_mm256_fnmadd_ps(detail::ps(a), detail::ps(b), detail::ps(c));
}
SINTER_INLINE f32v min(f32v a, f32v b) { return (f32v)_mm256_min_ps(detail::ps(b), detail::ps(a)); }
SINTER_INLINE f32v max(f32v a, f32v b) { return (f32v)_mm256_max_ps(detail::ps(b), detail::ps(a)); }
SINTER_INLINE f32v abs(f32v a) { return (f32v)((u32v)a & 0x7fffffffu); }
SINTER_INLINE f32v sqrt(f32v a) { return (f32v)_mm256_sqrt_ps(detail::ps(a)); }
SINTER_INLINE f32v floor(f32v a) { return (f32v)_mm256_floor_ps(detail::ps(a)); }
SINTER_INLINE f32v ceil(f32v a) { return (f32v)_mm256_ceil_ps(detail::ps(a)); }
SINTER_INLINE f32v trunc(f32v a) {
  return (f32v)_mm256_round_ps(detail::ps(a), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
SINTER_INLINE f32v round(f32v a) {
  return (f32v)_mm256_round_ps(detail::ps(a), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

SINTER_INLINE m32v lt(f32v a, f32v b) {
  return {(f32v)_mm256_cmp_ps(detail::ps(a), detail::ps(b), _CMP_LT_OQ)};
}
SINTER_INLINE m32v le(f32v a, f32v b) {
  return {(f32v)_mm256_cmp_ps(detail::ps(a), detail::ps(b), _CMP_LE_OQ)};
}
SINTER_INLINE m32v gt(f32v a, f32v b) {
  return {(f32v)_mm256_cmp_ps(detail::ps(a), detail::ps(b), _CMP_GT_OQ)};
}
SINTER_INLINE m32v ge(f32v a, f32v b) {
  return {(f32v)_mm256_cmp_ps(detail::ps(a), detail::ps(b), _CMP_GE_OQ)};
}
SINTER_INLINE m32v eq(f32v a, f32v b) {
  return {(f32v)_mm256_cmp_ps(detail::ps(a), detail::ps(b), _CMP_EQ_OQ)};
}
SINTER_INLINE m32v ne(f32v a, f32v b) {
  return {(f32v)_mm256_cmp_ps(detail::ps(a), detail::ps(b), _CMP_NEQ_UQ)};
}
SINTER_INLINE m32v lt(i32v a, i32v b) { return {(f32v)_mm256_cmpgt_epi32(detail::si(b), detail::si(a))}; }
SINTER_INLINE m32v gt(i32v a, i32v b) { return {(f32v)_mm256_cmpgt_epi32(detail::si(a), detail::si(b))}; }
SINTER_INLINE m32v eq(i32v a, i32v b) { return {(f32v)_mm256_cmpeq_epi32(detail::si(a), detail::si(b))}; }
SINTER_INLINE f32v select(m32v m, f32v a, f32v b) {
  return (f32v)_mm256_blendv_ps(detail::ps(b), detail::ps(a), detail::ps(m.v));
}
SINTER_INLINE i32v select(m32v m, i32v a, i32v b) { return (i32v)select(m, (f32v)a, (f32v)b); }
SINTER_INLINE m32v mask_and(m32v a, m32v b) { return {(f32v)((i32v)a.v & (i32v)b.v)}; }
SINTER_INLINE m32v mask_or(m32v a, m32v b) { return {(f32v)((i32v)a.v | (i32v)b.v)}; }
SINTER_INLINE m32v mask_not(m32v a) { return {(f32v)(~(i32v)a.v)}; }
SINTER_INLINE bool any(m32v m) { return _mm256_movemask_ps(detail::ps(m.v)) != 0; }
SINTER_INLINE bool all(m32v m) { return _mm256_movemask_ps(detail::ps(m.v)) == 0xff; }

SINTER_INLINE i32v to_int(f32v a) { return (i32v)_mm256_cvttps_epi32(detail::ps(a)); }
SINTER_INLINE i32v round_to_int(f32v a) { return (i32v)_mm256_cvtps_epi32(detail::ps(a)); }
SINTER_INLINE f32v to_float(i32v a) { return (f32v)_mm256_cvtepi32_ps(detail::si(a)); }
template <int N>
SINTER_INLINE i32v shift_right(i32v a) {
  return (i32v)_mm256_srai_epi32(detail::si(a), N);
}

namespace detail {
template <int Distance>
SINTER_INLINE f32v swap_lanes(f32v v) {
  if constexpr (Distance == 4) {
    return (f32v)_mm256_permute2f128_ps(ps(v), ps(v), 1);
  } else if constexpr (Distance == 2) {
    return (f32v)_mm256_permute_ps(ps(v), 0x4e);
  } else {
    return (f32v)_mm256_permute_ps(ps(v), 0xb1);
  }
}
// Turns each 4x4 block of four rows: row r of the result holds column r of either half.
SINTER_INLINE void transpose_halves(f32v& a, f32v& b, f32v& c, f32v& d) {
  const __m256 ab_low = _mm256_unpacklo_ps(ps(a), ps(b)), ab_high = _mm256_unpackhi_ps(ps(a), ps(b));
  const __m256 cd_low = _mm256_unpacklo_ps(ps(c), ps(d)), cd_high = _mm256_unpackhi_ps(ps(c), ps(d));
  a = (f32v)_mm256_shuffle_ps(ab_low, cd_low, 0x44);
  b = (f32v)_mm256_shuffle_ps(ab_low, cd_low, 0xee);
  c = (f32v)_mm256_shuffle_ps(ab_high, cd_high, 0x44);
  d = (f32v)_mm256_shuffle_ps(ab_high, cd_high, 0xee);
}
}  // namespace detail

SINTER_INLINE void transpose(f32v (&r)[8]) {
  detail::transpose_halves(r[0], r[1], r[2], r[3]);
  detail::transpose_halves(r[4], r[5], r[6], r[7]);
  SINTER_UNROLL
  for (int i = 0; i < 4; i++) {
    const __m256 top = detail::ps(r[i]), bottom = detail::ps(r[4 + i]);
    r[i] = (f32v)_mm256_permute2f128_ps(top, bottom, 0x20);
    r[4 + i] = (f32v)_mm256_permute2f128_ps(top, bottom, 0x31);
  }
}

}  // namespace sinter::avx2

#include "sinter/simd_common.h"

#endif  // SINTER_SIMD_AVX2_H_
