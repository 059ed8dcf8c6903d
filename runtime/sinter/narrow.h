// Integers of 8 and 16 bits, a vector of them at a time, in lanes of 32: T is int8, uint8, int16 or uint16.
//
//   load_wide(p)              kLanes numbers of T
//   store_narrow(p, v)        the low bits of each lane as T
//
// Neither needs alignment or touches more than kLanes elements. The compiler's own conversion of vectors is
// not taken: g++ 12 takes bytes one by one through general registers (33 instructions for 8 lanes, 67 for
// 16).
#ifndef SINTER_NARROW_H_
#define SINTER_NARROW_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/narrow.h"
#endif

#include <cstring>
#include <type_traits>

namespace sinter::SINTER_ISA {

template <class T>
using if_small_integer = std::enable_if_t<std::is_integral_v<T> && sizeof(T) <= 2, int>;

#if defined(SINTER_ISA_SCALAR)
template <class T, if_small_integer<T> = 0>
SINTER_INLINE i32v load_wide(const T* p) {
  return *p;
}
template <class T, if_small_integer<T> = 0>
SINTER_INLINE void store_narrow(T* p, i32v v) {
  *p = static_cast<T>(v);
}

#elif defined(SINTER_ISA_AVX512)
template <class T, if_small_integer<T> = 0>
SINTER_INLINE i32v load_wide(const T* p) {
  if constexpr (sizeof(T) == 1) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return (i32v)(std::is_signed_v<T> ? _mm512_maskz_cvtepi8_epi32(0xffff, v)
                                      : _mm512_maskz_cvtepu8_epi32(0xffff, v));
  } else {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return (i32v)(std::is_signed_v<T> ? _mm512_maskz_cvtepi16_epi32(0xffff, v)
                                      : _mm512_maskz_cvtepu16_epi32(0xffff, v));
  }
}
template <class T, if_small_integer<T> = 0>
SINTER_INLINE void store_narrow(T* p, i32v v) {
  if constexpr (sizeof(T) == 1)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)v));
  else
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)v));
}

#elif defined(SINTER_ISA_AVX2)
template <class T, if_small_integer<T> = 0>
SINTER_INLINE i32v load_wide(const T* p) {
  if constexpr (sizeof(T) == 1) {
    const __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return (i32v)(std::is_signed_v<T> ? _mm256_cvtepi8_epi32(v) : _mm256_cvtepu8_epi32(v));
  } else {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return (i32v)(std::is_signed_v<T> ? _mm256_cvtepi16_epi32(v) : _mm256_cvtepu16_epi32(v));
  }
}
template <class T, if_small_integer<T> = 0>
SINTER_INLINE void store_narrow(T* p, i32v v) {
  // The low parts of the four lanes of each half move to its front.
  if constexpr (sizeof(T) == 1) {
    const __m256i low = _mm256_shuffle_epi8((__m256i)v, _mm256_set1_epi32(0x0c080400));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                     _mm_unpacklo_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
  } else {
    const __m256i low = _mm256_shuffle_epi8((__m256i)v, _mm256_set1_epi64x(0x0d0c090805040100));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_castsi256_si128(_mm256_permute4x64_epi64(low, 0x08)));
  }
}

#elif defined(SINTER_ISA_SSE42)
template <class T, if_small_integer<T> = 0>
SINTER_INLINE i32v load_wide(const T* p) {
  if constexpr (sizeof(T) == 1) {
    std::int32_t four;
    std::memcpy(&four, p, sizeof four);
    const __m128i v = _mm_cvtsi32_si128(four);
    return (i32v)(std::is_signed_v<T> ? _mm_cvtepi8_epi32(v) : _mm_cvtepu8_epi32(v));
  } else {
    const __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return (i32v)(std::is_signed_v<T> ? _mm_cvtepi16_epi32(v) : _mm_cvtepu16_epi32(v));
  }
}
template <class T, if_small_integer<T> = 0>
SINTER_INLINE void store_narrow(T* p, i32v v) {
  if constexpr (sizeof(T) == 1) {
    const std::int32_t four = _mm_cvtsi128_si32(_mm_shuffle_epi8((__m128i)v, _mm_cvtsi32_si128(0x0c080400)));
    std::memcpy(p, &four, sizeof four);
  } else {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                     _mm_shuffle_epi8((__m128i)v, _mm_set1_epi64x(0x0d0c090805040100)));
  }
}

#elif defined(SINTER_ISA_NEON)
template <class T, if_small_integer<T> = 0>
SINTER_INLINE i32v load_wide(const T* p) {
  if constexpr (sizeof(T) == 1) {
    std::uint32_t four;
    std::memcpy(&four, p, sizeof four);
    const uint32x2_t v = vdup_n_u32(four);
    if constexpr (std::is_signed_v<T>)
      return (i32v)vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(v))));
    else
      return (i32v)vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(v))));
  } else if constexpr (std::is_signed_v<T>) {
    return (i32v)vmovl_s16(vld1_s16(p));
  } else {
    return (i32v)vmovl_u16(vld1_u16(p));
  }
}
template <class T, if_small_integer<T> = 0>
SINTER_INLINE void store_narrow(T* p, i32v v) {
  const uint16x4_t half = vmovn_u32((uint32x4_t)v);
  if constexpr (sizeof(T) == 1) {
    const std::uint32_t four = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(half, half))), 0);
    std::memcpy(p, &four, sizeof four);
  } else {
    std::memcpy(p, &half, sizeof half);
  }
}
#endif

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_NARROW_H_
