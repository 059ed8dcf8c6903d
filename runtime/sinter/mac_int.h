// The register tile of quantised products: as mac.h, with int16 operands and int32 sums that wrap.
//
//   acc.a[t][o] += sum over i in [0, k) of x[t * pixel_stride + i] * w[i, o]
//
// Operands are taken in pairs of neighbouring k: x86 multiplies two pairs a lane and adds them in one
// instruction, NEON multiplies and adds four lanes at a time. w is packed pair by pair, [k / 2][OB], each a
// vector of kLanes pairs: on x86 [lane][2], on NEON and in scalar code [2][lane]; an odd last k is paired
// with zero weights. Nothing but the named elements of x is read.
#ifndef SINTER_MAC_INT_H_
#define SINTER_MAC_INT_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/mac_int.h"
#endif

#include "sinter/mac.h"
#include "sinter/narrow.h"

namespace sinter::SINTER_ISA {

template <int OB, int T>
struct IntTile {
  i32v a[T][OB];
};

template <int OB, int T>
SINTER_INLINE void tile_bias(IntTile<OB, T>& acc, const std::int32_t* bias) {
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) {
    const i32v b = bias != nullptr ? load(bias + o * kLanes) : splat_int<i32v>(0);
    SINTER_UNROLL
    for (int t = 0; t < T; t++) acc.a[t][o] = b;
  }
}

namespace detail {
// acc + x0 * w[0] + x1 * w[1] in every lane; w: one packed vector of pairs.
SINTER_INLINE i32v mac_pair(i32v acc, std::int16_t x0, std::int16_t x1, const std::int16_t* w) {
#if defined(SINTER_ISA_X86)
  const std::uint32_t pair =
      static_cast<std::uint16_t>(x0) | (static_cast<std::uint32_t>(static_cast<std::uint16_t>(x1)) << 16);
  const auto both = splat_int<i32v>(static_cast<std::int32_t>(pair));
#if defined(SINTER_ISA_AVX512)
  const __m512i product = _mm512_madd_epi16((__m512i)both, _mm512_loadu_si512(w));
#elif defined(SINTER_ISA_AVX2)
  const __m256i product =
      _mm256_madd_epi16((__m256i)both, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
#else
  const __m128i product = _mm_madd_epi16((__m128i)both, _mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
#endif
  return (i32v)((u32v)acc + (u32v)product);
#elif defined(SINTER_ISA_NEON)
  int32x4_t sum = (int32x4_t)acc;
  sum = vmlal_n_s16(sum, vld1_s16(w), x0);
  return (i32v)vmlal_n_s16(sum, vld1_s16(w + 4), x1);
#else
  const auto product = [](std::int16_t a, std::int16_t b) { return std::int32_t{a} * std::int32_t{b}; };
  return add(add(acc, product(x0, w[0])), product(x1, w[1]));
#endif
}
}  // namespace detail

template <int OB, int T>
SINTER_INLINE void mac(IntTile<OB, T>& acc, const std::int16_t* x, std::ptrdiff_t pixel_stride,
                       const std::int16_t* w, std::ptrdiff_t k) {
  for (; k >= 2; k -= 2) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) {
      const std::int16_t* xt = x + t * pixel_stride;
      SINTER_UNROLL
      for (int o = 0; o < OB; o++)
        acc.a[t][o] = detail::mac_pair(acc.a[t][o], xt[0], xt[1], w + o * 2 * kLanes);
    }
    x += 2;
    w += 2 * OB * kLanes;
  }
  if (k > 0) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) {
      const std::int16_t last = x[t * pixel_stride];
      SINTER_UNROLL
      for (int o = 0; o < OB; o++) acc.a[t][o] = detail::mac_pair(acc.a[t][o], last, 0, w + o * 2 * kLanes);
    }
  }
}

// The first `lanes` (1 to kLanes) of 16-bit integers, widened; the others 0.
SINTER_INLINE i32v load_wide(const std::int16_t* p, int lanes) {
  if (lanes == kLanes) return load_wide(p);
  std::int32_t wide[kLanes] = {};
  for (int i = 0; i < lanes; i++) wide[i] = p[i];
  return load(static_cast<const std::int32_t*>(wide));
}
// acc + x * w in every lane; x and w are numbers of 16 bits.
SINTER_INLINE i32v mac_lanes(i32v acc, i32v x, i32v w) {
#if defined(SINTER_ISA_SCALAR)
  return add(acc, mul(x, w));
#elif defined(SINTER_ISA_X86)
  // A multiplication of pairs of 16 bits is one instruction where one of 32 bits is two or three; the upper
  // half of w is the sign of a small number, and must be 0.
  const i32v low = w & splat_int<i32v>(0xffff);
#if defined(SINTER_ISA_AVX512)
  const __m512i product = _mm512_madd_epi16((__m512i)x, (__m512i)low);
#elif defined(SINTER_ISA_AVX2)
  const __m256i product = _mm256_madd_epi16((__m256i)x, (__m256i)low);
#else
  const __m128i product = _mm_madd_epi16((__m128i)x, (__m128i)low);
#endif
  return (i32v)((u32v)acc + (u32v)product);
#else
  return (i32v)((u32v)acc + (u32v)x * (u32v)w);
#endif
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_MAC_INT_H_
