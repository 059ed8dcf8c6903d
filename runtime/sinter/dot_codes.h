// Products of rows of bytes with weights that are codes of 2, 4 or 8 bits (product_of_codes.h): byte_row()
// makes bytes of a row of floats, each block with a scale of its own, as accuracy level 4 of MatMulNBits
// allows, and a block's sum of products is an integer.
//
// plane_row() makes three bytes of a float, which loses nothing that a sum of floats has.
//
// With an instruction for sums of four products (SDOT, VPDPBUSD) codes may have 8 bits. Without, products of
// codes of at most 4 bits with bytes are summed in 16 bits, as many as can't overflow.
#ifndef SINTER_DOT_CODES_H_
#define SINTER_DOT_CODES_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/dot_codes.h"
#endif
#ifdef SINTER_ISA_SCALAR
#error "sinter/dot_codes.h has no words for one lane"
#endif

#include "sinter/product_of_codes.h"

namespace sinter::SINTER_ISA {

// x[0, k) as bytes at `to`, a block with a scale of its own, zeros behind them up to the end of the last
// block; the scales at `scales`, and at `sums` each block's sum of bytes, times `zero`. Blocks are of 16
// codes or more, in powers of two. What isn't finite makes its block's scale infinite or NaN.
SINTER_INLINE void byte_row(const float* x, std::int64_t k, CodeBlocks blocks, float all_zero,
                            std::int8_t* to, float* sums, float* scales) {
  for (std::int64_t b = 0; b < blocks.count; b++) {
    const std::int64_t end = (b + 1) * blocks.size;
    f32v top = zero();
    for (std::int64_t i = b * blocks.size; i < end; i += kLanes) top = max_nan(top, abs(row_at(x, k, i)));
    const float most = hmax(top), inverse = most > 0.0f ? 127.0f / most : 0.0f;
    i32v sum = splat_int<i32v>(0);
    for (std::int64_t i = b * blocks.size; i < end; i += kLanes) {
      const f32v v = row_at(x, k, i);
      const i32v q = round_to_int(min(max(mul(v, splat(inverse)), splat(-127.0f)), splat(127.0f)));
      sum = add(sum, q);
      store_narrow(to + i, q);
    }
    sums[b] = hsum(to_float(sum)) * all_zero;
    scales[b] = most * (1.0f / 127.0f);
  }
}

namespace detail {
// Four codes in the bytes of each lane: those at `Shift` bits of the bytes of `words`.
template <int Bits, int Shift>
SINTER_INLINE i32v code_bytes(i32v words) {
  if constexpr (Bits == 8) return words;
  constexpr std::uint32_t kMask = ((1u << Bits) - 1) * 0x01010101u;
  const i32v at = Shift == 0 ? words : (i32v)((u32v)words >> Shift);
  return bit_and(at, splat_int<i32v>(static_cast<std::int32_t>(kMask)));
}

// Sums of products of codes with bytes: of at most 32 values of k, then as lanes of 32 bits. NEON multiplies
// bytes with signs: codes of 8 bits are less by 128 there, and so must be the zero point of all blocks that
// byte_row() is told.
#if defined(SINTER_ISA_NEON) && defined(SINTER_DOT_PRODUCTS)
struct ByteSums {
  int32x4_t sum;
};
SINTER_INLINE ByteSums no_products() { return {vdupq_n_s32(0)}; }
template <int Lane>
SINTER_INLINE void add_products(ByteSums& s, i32v codes, int8x16_t x) {
  __asm__("sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(s.sum) : "w"(codes), "w"(x), "i"(Lane));
}
SINTER_INLINE i32v total(const ByteSums& s) { return (i32v)s.sum; }
#elif defined(SINTER_ISA_NEON)
struct ByteSums {
  int16x8_t low, high;
};
SINTER_INLINE ByteSums no_products() { return {vdupq_n_s16(0), vdupq_n_s16(0)}; }
SINTER_INLINE void add_products(ByteSums& s, i32v codes, const std::int8_t* x) {
  const int8x16_t c = (int8x16_t)codes,
                  four = vreinterpretq_s8_s32(vld1q_dup_s32(reinterpret_cast<const std::int32_t*>(x)));
  s.low = vmlal_s8(s.low, vget_low_s8(c), vget_low_s8(four));
  s.high = vmlal_high_s8(s.high, c, four);
}
SINTER_INLINE i32v total(const ByteSums& s) {
  return (i32v)vpaddq_s32(vpaddlq_s16(s.low), vpaddlq_s16(s.high));
}
#elif defined(SINTER_ISA_X86)
SINTER_INLINE i32v four_bytes(const std::int8_t* x) {
  std::int32_t four;
  std::memcpy(&four, x, sizeof four);
  return splat_int<i32v>(four);
}
#if defined(SINTER_DOT_PRODUCTS)
struct ByteSums {
  __m512i sum;
};
SINTER_INLINE ByteSums no_products() { return {_mm512_setzero_si512()}; }
SINTER_INLINE void add_products(ByteSums& s, i32v codes, const std::int8_t* x) {
  s.sum = _mm512_dpbusd_epi32(s.sum, (__m512i)codes, (__m512i)four_bytes(x));
}
SINTER_INLINE i32v total(const ByteSums& s) { return (i32v)s.sum; }
#elif defined(SINTER_ISA_AVX512)
struct ByteSums {
  __m512i sum;
};
SINTER_INLINE ByteSums no_products() { return {_mm512_setzero_si512()}; }
SINTER_INLINE void add_products(ByteSums& s, i32v codes, const std::int8_t* x) {
  s.sum = _mm512_add_epi16(s.sum, _mm512_maddubs_epi16((__m512i)codes, (__m512i)four_bytes(x)));
}
SINTER_INLINE i32v total(const ByteSums& s) { return (i32v)_mm512_madd_epi16(s.sum, _mm512_set1_epi16(1)); }
#elif defined(SINTER_ISA_AVX2)
struct ByteSums {
  __m256i sum;
};
SINTER_INLINE ByteSums no_products() { return {_mm256_setzero_si256()}; }
SINTER_INLINE void add_products(ByteSums& s, i32v codes, const std::int8_t* x) {
  s.sum = _mm256_add_epi16(s.sum, _mm256_maddubs_epi16((__m256i)codes, (__m256i)four_bytes(x)));
}
SINTER_INLINE i32v total(const ByteSums& s) { return (i32v)_mm256_madd_epi16(s.sum, _mm256_set1_epi16(1)); }
#else
struct ByteSums {
  __m128i sum;
};
SINTER_INLINE ByteSums no_products() { return {_mm_setzero_si128()}; }
SINTER_INLINE void add_products(ByteSums& s, i32v codes, const std::int8_t* x) {
  s.sum = _mm_add_epi16(s.sum, _mm_maddubs_epi16((__m128i)codes, (__m128i)four_bytes(x)));
}
SINTER_INLINE i32v total(const ByteSums& s) { return (i32v)_mm_madd_epi16(s.sum, _mm_set1_epi16(1)); }
#endif
#endif

#if defined(SINTER_ISA_NEON) && defined(SINTER_DOT_PRODUCTS)
constexpr float kCodeShift = 128;  // what codes of 8 bits are less by in the products
#else
constexpr float kCodeShift = 0;
#endif

template <int Bits>
SINTER_INLINE i32v signed_words(i32v words) {
  if constexpr (Bits == 8 && kCodeShift > 0)
    return bit_xor(words, splat_int<i32v>(static_cast<std::int32_t>(0x80808080u)));
  else
    return words;
}

// The products of 16 values of k from x on with their words.
template <int Bits, class Row, int OB, int T>
SINTER_INLINE void dot_codes(ByteSums (&sum)[T][OB], const std::int8_t* x, std::ptrdiff_t stride,
                             const std::int32_t* words) {
#if defined(SINTER_DOT_PRODUCTS) && defined(SINTER_ISA_NEON)
  int8x16_t xv[T];
  SINTER_UNROLL
  for (int t = 0; t < T; t++) xv[t] = vld1q_s8(x + t * stride);
#endif
  // Of few rows all words first: on cores in order each would be waited for.
  constexpr int kWords = 16 / kCodes<Bits>;
  constexpr bool kAhead = T <= 2;
  [[maybe_unused]] i32v ahead[kWords][OB];
  if constexpr (kAhead) {
    SINTER_UNROLL
    for (int i = 0; i < kWords; i++) {
      SINTER_UNROLL
      for (int o = 0; o < OB; o++)
        ahead[i][o] = signed_words<Bits>(load_in_turn(words + i * Row::value + o * kLanes));
    }
  }
  const auto four = [&](auto number) __attribute__((always_inline)) {
    constexpr int kWord = number.value * 4 / kCodes<Bits>,
                  kShift = number.value * 4 % kCodes<Bits> / 4 * Bits;
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      i32v word;
      if constexpr (kAhead)
        word = ahead[kWord][o];
      else
        word = signed_words<Bits>(load(words + kWord * Row::value + o * kLanes));
      const i32v codes = code_bytes<Bits, kShift>(word);
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
#if defined(SINTER_DOT_PRODUCTS) && defined(SINTER_ISA_NEON)
        add_products<number.value>(sum[t][o], codes, xv[t]);
#else
        add_products(sum[t][o], codes, x + t * stride + number.value * 4);
#endif
      }
    }
  };
  four(Int<0>()), four(Int<1>()), four(Int<2>()), four(Int<3>());
}
}  // namespace detail

// As mac_codes(), of rows that byte_row() has made at x + t * stride, their sums and scales of blocks at
// sums and factors + t * block_stride.
template <int Bits, int OB, int T, class Row, class Scale, class Zeros>
SINTER_INLINE void mac_codes(Tile<OB, T>& acc, const std::int8_t* x, std::ptrdiff_t stride, const float* sums,
                             const float* factors, std::ptrdiff_t block_stride, CodeBlocks blocks,
                             const std::int32_t* words, const Scale* scales, Zeros zeros, Row) {
  for (std::int64_t b = 0; b < blocks.count; b++) {
    f32v real[T][OB];
    const auto chunk = [&](auto count, bool first) __attribute__((always_inline)) {
      constexpr int kCount = decltype(count)::value;
      detail::ByteSums part[T][OB];
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
        SINTER_UNROLL
        for (int o = 0; o < OB; o++) part[t][o] = detail::no_products();
      }
      SINTER_UNROLL
      for (int i = 0; i < kCount / 16; i++)
        detail::dot_codes<Bits, Row>(part, x + i * 16, stride, words + i * (16 / kCodes<Bits>)*Row::value);
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
        SINTER_UNROLL
        for (int o = 0; o < OB; o++) {
          const f32v sum = to_float(detail::total(part[t][o]));
          real[t][o] = first ? sum : add(real[t][o], sum);
        }
      }
      words += kCount / kCodes<Bits> * Row::value;
      x += kCount;
    };
    if (blocks.size == 16) {
      chunk(Int<16>(), true);
    } else {
      chunk(Int<32>(), true);
      for (std::int64_t i = 32; i < blocks.size; i += 32) chunk(Int<32>(), false);
    }
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      const f32v scale = load(scales + b * Row::value + o * kLanes);
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
        const float share = sums[t * block_stride + b];
        f32v sum = detail::less_zero<Bits, Row>(real[t][o], zeros, b, o, share);
        if constexpr (Bits == 8 && detail::kCodeShift > 0 && !std::is_same_v<Zeros, OneZero>)
          sum = add(sum, splat(share * detail::kCodeShift));
        acc.a[t][o] = fma(mul(sum, scale), splat(factors[t * block_stride + b]), acc.a[t][o]);
      }
    }
  }
}

#if defined(SINTER_ISA_NEON)
// Floats as three bytes each: x = (65536 a + 256 b + c) * factor, with the block's largest one at 127 in all
// three, so that a block's sum errs as a sum of floats does; on NEON three products of bytes cost less than
// codes that become floats. `to`: planes of a, b and c, `plane` bytes apart; `sums`: each block's sum of x,
// times `all_zero`; blocks are of whole 16 codes.
SINTER_INLINE void plane_row(const float* x, std::int64_t k, CodeBlocks blocks, float all_zero,
                             std::int8_t* to, std::ptrdiff_t plane, float* sums, float* factors) {
  constexpr float kMost = 8355711.0f;  // 127 * (65536 + 256 + 1)
  for (std::int64_t b = 0; b < blocks.count; b++) {
    const std::int64_t end = (b + 1) * blocks.size;
    f32v top = zero(), sum = zero();
    for (std::int64_t i = b * blocks.size; i < end; i += kLanes) {
      const f32v v = row_at(x, k, i);
      top = max_nan(top, abs(v));
      sum = add(sum, v);
    }
    const float most = hmax(top), inverse = most > 0.0f ? kMost / most : 0.0f;
    for (std::int64_t i = b * blocks.size; i < end; i += kLanes) {
      const i32v whole =
          round_to_int(min(max(mul(row_at(x, k, i), splat(inverse)), splat(-kMost)), splat(kMost)));
      const i32v c = shift_right<24>(shift_left<24>(whole)), ab = shift_right<8>(sub(whole, c)),
                 b_byte = shift_right<24>(shift_left<24>(ab)), a = shift_right<8>(sub(ab, b_byte));
      store_narrow(to + i, a);
      store_narrow(to + plane + i, b_byte);
      store_narrow(to + 2 * plane + i, c);
    }
    sums[b] = hsum(sum) * all_zero;
    factors[b] = most * (1.0f / kMost);
  }
}

namespace detail {
struct PlaneSums {
  ByteSums a, b, c;
};

// The products of 16 values of k from x on, of each plane, with their words.
template <int Bits, class Row, int OB, int T>
SINTER_INLINE void dot_planes(PlaneSums (&sum)[T][OB], const std::int8_t* x, std::ptrdiff_t stride,
                              std::ptrdiff_t plane, const std::int32_t* words) {
  constexpr int kWords = 16 / kCodes<Bits>;
#if defined(SINTER_DOT_PRODUCTS)
  int8x16_t xv[T][3];
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int p = 0; p < 3; p++) xv[t][p] = vld1q_s8(x + t * stride + p * plane);
  }
#endif
  i32v word[kWords][OB];
  SINTER_UNROLL
  for (int i = 0; i < kWords; i++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++)
      word[i][o] = signed_words<Bits>(load_in_turn(words + i * Row::value + o * kLanes));
  }
  const auto four = [&](auto number) __attribute__((always_inline)) {
    constexpr int kWord = number.value * 4 / kCodes<Bits>,
                  kShift = number.value * 4 % kCodes<Bits> / 4 * Bits;
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      const i32v codes = code_bytes<Bits, kShift>(word[kWord][o]);
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
#if defined(SINTER_DOT_PRODUCTS)
        add_products<number.value>(sum[t][o].a, codes, xv[t][0]);
        add_products<number.value>(sum[t][o].b, codes, xv[t][1]);
        add_products<number.value>(sum[t][o].c, codes, xv[t][2]);
#else
        const std::int8_t* const from = x + t * stride + number.value * 4;
        add_products(sum[t][o].a, codes, from);
        add_products(sum[t][o].b, codes, from + plane);
        add_products(sum[t][o].c, codes, from + 2 * plane);
#endif
      }
    }
  };
  four(Int<0>()), four(Int<1>()), four(Int<2>()), four(Int<3>());
}
}  // namespace detail

// As mac_codes(), of rows that plane_row() has made.
template <int Bits, int OB, int T, class Row, class Scale, class Zeros>
SINTER_INLINE void mac_planes(Tile<OB, T>& acc, const std::int8_t* x, std::ptrdiff_t stride,
                              std::ptrdiff_t plane, const float* sums, const float* factors,
                              std::ptrdiff_t block_stride, CodeBlocks blocks, const std::int32_t* words,
                              const Scale* scales, Zeros zeros, Row) {
#if defined(SINTER_DOT_PRODUCTS)
  constexpr std::int64_t kAtOnce = 256;  // 256 times what these sum up to fits in 32 bits
#else
  constexpr std::int64_t kAtOnce = 32;
#endif
  for (std::int64_t b = 0; b < blocks.count; b++) {
    f32v real[T][OB];
    SINTER_UNROLL
    for (int t = 0; t < T; t++) {
      SINTER_UNROLL
      for (int o = 0; o < OB; o++) real[t][o] = zero();
    }
    for (std::int64_t left = blocks.size; left > 0; left -= kAtOnce) {
      detail::PlaneSums part[T][OB];
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
        SINTER_UNROLL
        for (int o = 0; o < OB; o++)
          part[t][o] = {detail::no_products(), detail::no_products(), detail::no_products()};
      }
      for (std::int64_t i = 0; i < (left < kAtOnce ? left : kAtOnce); i += 16) {
        detail::dot_planes<Bits, Row>(part, x, stride, plane, words);
        words += 16 / kCodes<Bits> * Row::value;
        x += 16;
      }
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
        SINTER_UNROLL
        for (int o = 0; o < OB; o++) {
          const i32v high = add(shift_left<8>(detail::total(part[t][o].a)), detail::total(part[t][o].b));
          real[t][o] =
              add(real[t][o], fma(to_float(high), splat(256.0f), to_float(detail::total(part[t][o].c))));
        }
      }
    }
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      const f32v scale = load(scales + b * Row::value + o * kLanes);
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
        const float share = sums[t * block_stride + b];
        f32v sum = mul(real[t][o], splat(factors[t * block_stride + b]));
        sum = detail::less_zero<Bits, Row>(sum, zeros, b, o, share);
        if constexpr (Bits == 8 && !std::is_same_v<Zeros, OneZero>)
          sum = add(sum, splat(share * detail::kCodeShift));
        acc.a[t][o] = fma(sum, scale, acc.a[t][o]);
      }
    }
  }
}
#endif

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_DOT_CODES_H_
