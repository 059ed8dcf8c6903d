// The register tile of products of bytes for cores without dot products, same sums as dot.h.
//
// ARM (Cortex-A53, A72): sixteen neighbouring k of one channel and one pixel are multiplied by two
// instructions, whose products of 16 bits are added in pairs to four lanes of 32 bits by a third: SMULL,
// SMLAL2, SADALP. Two products of bytes fit in 16 bits unless both weights are -128; for weights that hold
// that, mac_all_bytes, the second half is multiplied and added by itself. The four lanes of a channel are
// summed behind the last k. w is packed sixteen k at a time, [ceil(k / 16)][OB], each a vector of kLanes
// channels times 16 int8: [lane][16]. x must be signed, or its top bit is flipped (detail::kFlip of dot.h).
//
// x86: four neighbouring k at a time, widened to 16 bits; one instruction multiplies and adds two of them in
// a lane. w is packed [ceil(k / 4)][OB], each a vector of 4 * kLanes int8: k 0 and 2 of each lane, then 1 and
// 3. x has either sign.
//
// Behind the last k are zero weights. Nothing but the named elements of x is read.
#ifndef SINTER_MAC_BYTES_H_
#define SINTER_MAC_BYTES_H_

#include "sinter/dot.h"

#if defined(SINTER_ISA_NEON)
namespace sinter::SINTER_ISA {

enum class Lowest { kNone, kSome };  // whether weights hold -128

namespace detail {
// The `count` (1 to 15) bytes at x, anything behind them.
template <class X>
SINTER_INLINE int8x16_t load_first(const X* x, std::ptrdiff_t count) {
  X first[16] = {};
  std::memcpy(first, x, static_cast<std::size_t>(count));
  return load_signed(static_cast<const X*>(first));
}

// sum[t] += x[t] * w, sixteen k. The steps of all pixels stand side by side: none waits for the one before.
template <Lowest L, int T>
SINTER_INLINE void add_sixteen(int32x4_t (&sum)[T], const int8x16_t (&x)[T], int8x16_t w) {
  int16x8_t products[T];
  SINTER_UNROLL
  for (int t = 0; t < T; t++) products[t] = vmull_s8(vget_low_s8(w), vget_low_s8(x[t]));
  if constexpr (L == Lowest::kSome) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) sum[t] = vpadalq_s16(sum[t], products[t]);
    SINTER_UNROLL
    for (int t = 0; t < T; t++) products[t] = vmull_high_s8(w, x[t]);
  } else {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) products[t] = vmlal_high_s8(products[t], w, x[t]);
  }
  SINTER_UNROLL
  for (int t = 0; t < T; t++) sum[t] = vpadalq_s16(sum[t], products[t]);
}

// The products of `G` output vectors from number First.
template <Lowest L, int First, int G, int OB, int T, class X>
SINTER_INLINE void mac_vectors(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride,
                               const std::int8_t* w, std::ptrdiff_t k) {
  constexpr int kChannels = G * kLanes;
  int32x4_t sum[kChannels][T];
  SINTER_UNROLL
  for (int c = 0; c < kChannels; c++) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) sum[c][t] = vdupq_n_s32(0);
  }
  const auto step = [&](const int8x16_t(&sixteen)[T]) __attribute__((always_inline)) {
    SINTER_UNROLL
    for (int c = 0; c < kChannels; c++)
      add_sixteen<L>(sum[c], sixteen, vld1q_s8(w + (First * kLanes + c) * 16));
  };
  int8x16_t sixteen[T];
  for (; k >= 16; k -= 16) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) sixteen[t] = load_signed(x + t * pixel_stride);
    step(sixteen);
    x += 16;
    w += 16 * OB * kLanes;
  }
  if (k > 0) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) sixteen[t] = load_first(x + t * pixel_stride, k);
    step(sixteen);
  }
  SINTER_UNROLL
  for (int g = 0; g < G; g++) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) {
      const int32x4_t low = vpaddq_s32(sum[g * kLanes][t], sum[g * kLanes + 1][t]),
                      high = vpaddq_s32(sum[g * kLanes + 2][t], sum[g * kLanes + 3][t]);
      acc.a[t][First + g] = add(acc.a[t][First + g], (i32v)vpaddq_s32(low, high));
    }
  }
}

// Sixteen sums at a time, which with their operands take the registers.
template <Lowest L, int First, int OB, int T, class X>
SINTER_INLINE void mac_from(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride,
                            const std::int8_t* w, std::ptrdiff_t k) {
  constexpr int kMost = T == 1 ? 4 : T == 2 ? 2 : 1, kG = OB - First < kMost ? OB - First : kMost;
  mac_vectors<L, First, kG>(acc, x, pixel_stride, w, k);
  if constexpr (First + kG < OB) mac_from<L, First + kG>(acc, x, pixel_stride, w, k);
}
}  // namespace detail

template <int OB, int T, class X>
SINTER_INLINE void mac_bytes(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride,
                             const std::int8_t* w, std::ptrdiff_t k) {
  detail::mac_from<Lowest::kNone, 0>(acc, x, pixel_stride, w, k);
}
// As mac_bytes, for weights that may be -128.
template <int OB, int T, class X>
SINTER_INLINE void mac_all_bytes(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride,
                                 const std::int8_t* w, std::ptrdiff_t k) {
  detail::mac_from<Lowest::kSome, 0>(acc, x, pixel_stride, w, k);
}

}  // namespace sinter::SINTER_ISA
#elif defined(SINTER_ISA_X86)
namespace sinter::SINTER_ISA {

namespace detail {
#if defined(SINTER_ISA_AVX512)
SINTER_INLINE i32v load_words(const std::int8_t* p) {
  return (i32v)_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
SINTER_INLINE i32v high_bytes(i32v x) { return (i32v)_mm512_srai_epi16((__m512i)x, 8); }
SINTER_INLINE i32v low_to_high(i32v x) { return (i32v)_mm512_slli_epi16((__m512i)x, 8); }
SINTER_INLINE i32v high_unsigned(i32v x) { return (i32v)_mm512_srli_epi16((__m512i)x, 8); }
SINTER_INLINE i32v sum_of_two(i32v x, i32v w) { return (i32v)_mm512_madd_epi16((__m512i)x, (__m512i)w); }
#elif defined(SINTER_ISA_AVX2)
SINTER_INLINE i32v load_words(const std::int8_t* p) {
  return (i32v)_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
SINTER_INLINE i32v high_bytes(i32v x) { return (i32v)_mm256_srai_epi16((__m256i)x, 8); }
SINTER_INLINE i32v low_to_high(i32v x) { return (i32v)_mm256_slli_epi16((__m256i)x, 8); }
SINTER_INLINE i32v high_unsigned(i32v x) { return (i32v)_mm256_srli_epi16((__m256i)x, 8); }
SINTER_INLINE i32v sum_of_two(i32v x, i32v w) { return (i32v)_mm256_madd_epi16((__m256i)x, (__m256i)w); }
#else
SINTER_INLINE i32v load_words(const std::int8_t* p) {
  return (i32v)_mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
SINTER_INLINE i32v high_bytes(i32v x) { return (i32v)_mm_srai_epi16((__m128i)x, 8); }
SINTER_INLINE i32v low_to_high(i32v x) { return (i32v)_mm_slli_epi16((__m128i)x, 8); }
SINTER_INLINE i32v high_unsigned(i32v x) { return (i32v)_mm_srli_epi16((__m128i)x, 8); }
SINTER_INLINE i32v sum_of_two(i32v x, i32v w) { return (i32v)_mm_madd_epi16((__m128i)x, (__m128i)w); }
#endif

// The `Count` (1 to 4) bytes at x in each lane, zeros behind them. Four by one instruction, by its name: g++
// takes them through general registers, and masks them there for even_bytes.
template <int Count, class X>
SINTER_INLINE i32v load_quad(const X* x) {
#if defined(SINTER_ISA_AVX2) || defined(SINTER_ISA_AVX512)
  if constexpr (Count == 4) {
    struct Four {
      unsigned char byte[4];
    };
    i32v q;
    __asm__("vpbroadcastd %1, %0" : "=v"(q) : "m"(*reinterpret_cast<const Four*>(x)));
    return q;
  }
#endif
  std::int32_t four = 0;
  std::memcpy(&four, x, Count);
  return splat_int<i32v>(four);
}

// Bytes 0 and 2 of each lane, and 1 and 3, as words of the sign of X.
template <class X>
SINTER_INLINE i32v even_bytes(i32v x) {
  return std::is_signed_v<X> ? high_bytes(low_to_high(x)) : x & splat_int<i32v>(0x00ff00ff);
}
template <class X>
SINTER_INLINE i32v odd_bytes(i32v x) {
  return std::is_signed_v<X> ? high_bytes(x) : high_unsigned(x);
}

template <int Count, int OB, int T, class X>
SINTER_INLINE void word_step(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride,
                             const std::int8_t* w) {
  i32v even[OB], odd[OB];
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) {
    even[o] = load_words(w + o * 4 * kLanes);
    odd[o] = load_words(w + o * 4 * kLanes + 2 * kLanes);
  }
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    const i32v q = load_quad<Count>(x + t * pixel_stride), qe = even_bytes<X>(q), qo = odd_bytes<X>(q);
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      u32v sum = (u32v)acc.a[t][o] + (u32v)sum_of_two(qe, even[o]) + (u32v)sum_of_two(qo, odd[o]);
      __asm__(""
              : "+v"(sum));  // g++ would put off the sums of a tile until it has all products, on the stack
      acc.a[t][o] = (i32v)sum;
    }
  }
}
}  // namespace detail

template <int OB, int T, class X>
SINTER_INLINE void mac_bytes(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride,
                             const std::int8_t* w, std::ptrdiff_t k) {
  for (; k >= 4; k -= 4) {
    detail::word_step<4>(acc, x, pixel_stride, w);
    x += 4;
    w += 4 * OB * kLanes;
  }
  if (k == 1) detail::word_step<1>(acc, x, pixel_stride, w);
  if (k == 2) detail::word_step<2>(acc, x, pixel_stride, w);
  if (k == 3) detail::word_step<3>(acc, x, pixel_stride, w);
}

}  // namespace sinter::SINTER_ISA
#endif

#endif  // SINTER_MAC_BYTES_H_
