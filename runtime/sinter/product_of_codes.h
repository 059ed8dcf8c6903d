// Products of floats with weights that are codes of 2, 4 or 8 bits: a weight is (code - zero point) * scale,
// with one scale and one zero point for each block of codes of an output channel.
//
// A panel of OB vectors of channels lies as the words read it: for each `Bits`-th of 32 values of k a word of
// 32 bits of each channel, [block][block / D][channels] with D = 32 / Bits codes a word. Code k of a word is
// at bit position_of<Bits>(k) * Bits: the four bytes of a word, shifted and masked, are four neighbouring k.
// Scales are [block][channels], zero points [block / each][channels] with `each` = 8 / Bits in a byte, or
// numbers of a float type, one each. The last panel has no lanes for channels that there aren't (`Row` says
// how many there are): the words then read a vector's bytes more than the weights have, and what is in such
// lanes only gets to lanes of the sums that nobody stores.
//
// Floats: a code is masked where it lies, which makes it code * 2^(its position), and the factor is in x:
// scaled_row() makes x * 2^-position before all panels. No code is shifted. What the zero point adds to a
// block's sum, zero * (the block's sum of x), is taken off the sum.
// Products with rows of bytes are in dot_codes.h.
#ifndef SINTER_PRODUCT_OF_CODES_H_
#define SINTER_PRODUCT_OF_CODES_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/product_of_codes.h"
#endif

#include <utility>

#include "sinter/half.h"
#include "sinter/mac.h"
#include "sinter/narrow.h"
#include "sinter/widen.h"

namespace sinter::SINTER_ISA {

// Codes of a word of 32 bits.
template <int Bits>
constexpr int kCodes = 32 / Bits;
// Where code k of a word lies, in codes from the lowest bits.
template <int Bits>
constexpr int position_of(int k) {
  return k % 4 * (8 / Bits) + k / 4;
}
// The k of the code at a position.
template <int Bits>
constexpr int code_at(int position) {
  return position % (8 / Bits) * 4 + position / (8 / Bits);
}
// The zero point that all blocks have: it is in the sums of the row already.
struct OneZero {};

// A row that is multiplied by codes: for each block its sum, times the zero point where all have one, and of
// bytes the scale.
struct CodeBlocks {
  std::int64_t count, size;  // blocks, and codes in each
};

namespace detail {
// 2^-(bits below the code) for code k of a word, but for the highest, which is shifted.
template <int Bits>
struct CodeFactors {
  float at[16];
  constexpr CodeFactors() : at() {
    for (int k = 0; k < 16; k++) {
      const int position = position_of<Bits>(k % kCodes<Bits>);
      float factor = 1;
      for (int i = 0; i < position * Bits && position + 1 < kCodes<Bits>; i++) factor *= 0.5f;
      at[k] = factor;
    }
  }
};
template <int Bits>
constexpr CodeFactors<Bits> kCodeFactors{};

// The `Bits` highest bits of each lane.
template <int Bits>
SINTER_INLINE i32v highest(i32v words) {
#if defined(SINTER_ISA_SCALAR)
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(words) >> (32 - Bits));
#else
  return (i32v)((u32v)words >> (32 - Bits));
#endif
}

// Code `Position` of each word times 2^(bits below it); the highest one itself.
template <int Bits, int Position>
SINTER_INLINE f32v code_in_place(i32v words) {
  constexpr std::uint32_t kMask = (1u << Bits) - 1;
  if constexpr (Position + 1 < kCodes<Bits>)
    return to_float(bit_and(words, splat_int<i32v>(static_cast<std::int32_t>(kMask << (Position * Bits)))));
  else
    return to_float(highest<Bits>(words));
}

// The words at p, loaded in the order of the text: cores in order fetch ahead what is read line by line.
SINTER_INLINE i32v load_in_turn(const std::int32_t* p) {
#if defined(SINTER_ISA_NEON) && defined(SINTER_IN_ORDER)
  typedef std::int32_t vector __attribute__((vector_size(16), aligned(4), may_alias));
  i32v v;
  __asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(*reinterpret_cast<const vector*>(p)));
  return v;
#else
  return load(p);
#endif
}

// f(Int<I>()) for each I.
template <class F, int... I>
SINTER_INLINE void each_code(const F& f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>()), ...);
}

// sum - zero * share for the channels of vector o.
template <int Bits, class Row>
SINTER_INLINE f32v less_zero(f32v sum, OneZero, std::int64_t, int, float share) {
  return sub(sum, splat(share));
}
template <int Bits, class Row>
SINTER_INLINE f32v less_zero(f32v sum, const std::uint8_t* zeros, std::int64_t b, int o, float share) {
  constexpr int kEach = 8 / Bits, kMask = (1 << Bits) - 1;
  const int shift = static_cast<int>(b % kEach) * Bits;
  const i32v packed = load_wide(zeros + b / kEach * Row::value + o * kLanes);
  const f32v zero = to_float(bit_and(packed, splat_int<i32v>(kMask << shift)));
  return fnma(zero, splat(share / static_cast<float>(1 << shift)), sum);
}
template <int Bits, class Row, class Float>
SINTER_INLINE f32v less_zero(f32v sum, const Float* zeros, std::int64_t b, int o, float share) {
  return fnma(load(zeros + b * Row::value + o * kLanes), splat(share), sum);
}
}  // namespace detail

// The vector of x[0, k) from i on; zeros behind its end.
SINTER_INLINE f32v row_at(const float* x, std::int64_t k, std::int64_t i) {
  const std::int64_t rest = k - i;
  return rest >= kLanes ? load(x + i) : load_n(x + i, rest > 0 ? rest : 0);
}

// x[0, k) as the factors of codes in their places, at `to`, zeros behind them up to the end of the last block
// and a vector more; and each block's sum, times `zero`, at `sums`.
template <int Bits>
SINTER_INLINE void scaled_row(const float* x, std::int64_t k, CodeBlocks blocks, float all_zero, float* to,
                              float* sums) {
  for (std::int64_t b = 0; b < blocks.count; b++) {
    f32v sum = zero();
    for (std::int64_t i = b * blocks.size; i < (b + 1) * blocks.size; i += kLanes) {
      const f32v v = row_at(x, k, i);
      sum = add(sum, v);
      store(to + i, mul(v, load(&detail::kCodeFactors<Bits>.at[i % kCodes<Bits>])));
    }
    sums[b] = hsum(sum) * all_zero;
  }
}

namespace detail {
#if defined(SINTER_ISA_NEON)
template <int I>
SINTER_INLINE f32v fma_code(f32v code, const float32x4_t (&x)[4], f32v sum) {
  return (f32v)vfmaq_laneq_f32((float32x4_t)sum, (float32x4_t)code, x[I / 4], I % 4);
}
#endif

// The D codes of OB words, times T rows of x.
template <int Bits, int Chains, int OB, int T, int... Position>
SINTER_INLINE void mac_words(f32v (&part)[T][OB][Chains], const i32v (&words)[OB], const float* x,
                             std::ptrdiff_t stride, std::integer_sequence<int, Position...>) {
#if defined(SINTER_ISA_NEON)
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    float32x4_t xv[4];
    SINTER_UNROLL
    for (int i = 0; i < kCodes<Bits> / 4; i++) xv[i] = vld1q_f32(x + t * stride + i * 4);
    SINTER_UNROLL
    for (int o = 0; o < OB; o++)
      ((part[t][o][Position % Chains] = fma_code<code_at<Bits>(Position)>(
            code_in_place<Bits, Position>(words[o]), xv, part[t][o][Position % Chains])),
       ...);
  }
#else
  const auto one = [&](auto position) __attribute__((always_inline)) {
    constexpr int kPosition = decltype(position)::value;
    f32v code[OB];
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) code[o] = code_in_place<Bits, kPosition>(words[o]);
    SINTER_UNROLL
    for (int t = 0; t < T; t++) {
      const f32v xv = splat(x[t * stride + code_at<Bits>(kPosition)]);
      SINTER_UNROLL
      for (int o = 0; o < OB; o++)
        part[t][o][kPosition % Chains] = fma(code[o], xv, part[t][o][kPosition % Chains]);
    }
  };
  (one(std::integral_constant<int, Position>()), ...);
#endif
}
}  // namespace detail

// acc.a[t][o] += the products of row t, which scaled_row() has made at x + t * stride, with its sums at
// sums + t * sum_stride, and the panel's weights.
template <int Bits, int OB, int T, class Row, class Scale, class Zeros>
SINTER_INLINE void mac_codes(Tile<OB, T>& acc, const float* x, std::ptrdiff_t stride, const float* sums,
                             std::ptrdiff_t sum_stride, CodeBlocks blocks, const std::int32_t* words,
                             const Scale* scales, Zeros zeros, Row) {
  constexpr int kChains = OB * T >= 4 ? 1 : OB * T >= 2 ? 2 : 4;
  for (std::int64_t b = 0; b < blocks.count; b++) {
    f32v part[T][OB][kChains];
    SINTER_UNROLL
    for (int t = 0; t < T; t++) {
      SINTER_UNROLL
      for (int o = 0; o < OB; o++) {
        SINTER_UNROLL
        for (int c = 0; c < kChains; c++) part[t][o][c] = zero();
      }
    }
    for (std::int64_t i = 0; i < blocks.size; i += kCodes<Bits>) {
      i32v w[OB];
      SINTER_UNROLL
      for (int o = 0; o < OB; o++) w[o] = detail::load_in_turn(words + o * kLanes);
      detail::mac_words<Bits, kChains>(part, w, x, stride, std::make_integer_sequence<int, kCodes<Bits>>());
      words += Row::value;
      x += kCodes<Bits>;
    }
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      const f32v scale = load(scales + b * Row::value + o * kLanes);
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
        f32v sum = part[t][o][0];
        SINTER_UNROLL
        for (int c = 1; c < kChains; c++) sum = add(sum, part[t][o][c]);
        sum = detail::less_zero<Bits, Row>(sum, zeros, b, o, sums[t * sum_stride + b]);
        acc.a[t][o] = fma(sum, scale, acc.a[t][o]);
      }
    }
  }
}

// A panel's weights as floats, [k][OB][kLanes], for the tiles of mac.h.
template <int Bits, int OB, class Row, class Scale, class Zeros>
SINTER_INLINE void decode_panel(std::int64_t k, CodeBlocks blocks, float all_zero, const std::int32_t* words,
                                const Scale* scales, Zeros zeros, float* to, Row) {
  for (std::int64_t b = 0; b < blocks.count; b++) {
    f32v scale[OB], offset[OB];
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      scale[o] = load(scales + b * Row::value + o * kLanes);
      const f32v none = zero();
      offset[o] = mul(
          detail::less_zero<Bits, Row>(none, zeros, b, o, std::is_same_v<Zeros, OneZero> ? all_zero : 1.0f),
          scale[o]);
    }
    for (std::int64_t i = b * blocks.size; i < (b + 1) * blocks.size && i < k; i += kCodes<Bits>) {
      i32v w[OB];
      SINTER_UNROLL
      for (int o = 0; o < OB; o++) w[o] = load(words + o * kLanes);
      const auto one = [&](auto position) __attribute__((always_inline)) {
        constexpr int kCode = code_at<Bits>(decltype(position)::value);
        if (i + kCode >= k) return;
        const float factor = detail::kCodeFactors<Bits>.at[kCode];
        SINTER_UNROLL
        for (int o = 0; o < OB; o++) {
          const f32v code = detail::code_in_place<Bits, decltype(position)::value>(w[o]);
          store(to + ((i + kCode) * OB + o) * kLanes, fma(code, mul(scale[o], splat(factor)), offset[o]));
        }
      };
      detail::each_code(one, std::make_integer_sequence<int, kCodes<Bits>>());
      words += Row::value;
    }
  }
}

namespace detail {
template <int Bits>
SINTER_INLINE float zero_of(OneZero, std::ptrdiff_t, std::int64_t, float all) {
  return all;
}
template <int Bits>
SINTER_INLINE float zero_of(const std::uint8_t* zeros, std::ptrdiff_t channels, std::int64_t b, float) {
  constexpr int kEach = 8 / Bits;
  return static_cast<float>((zeros[b / kEach * channels] >> (b % kEach * Bits)) & ((1 << Bits) - 1));
}
SINTER_INLINE float number(float x) { return x; }
SINTER_INLINE float number(half x) { return to_float(x); }
SINTER_INLINE float number(bfloat16 x) { return to_float(x); }
template <int Bits, class Float>
SINTER_INLINE float zero_of(const Float* zeros, std::ptrdiff_t channels, std::int64_t b, float) {
  return number(zeros[b * channels]);
}
}  // namespace detail

// One channel's k weights as floats at `to`, of a panel of so many channels: all pointers are at the
// channel's own first ones.
template <int Bits, class Scale, class Zeros>
SINTER_INLINE void decode_channel(std::int64_t k, CodeBlocks blocks, float all_zero, std::ptrdiff_t channels,
                                  const std::int32_t* words, const Scale* scales, Zeros zeros, float* to) {
  for (std::int64_t b = 0; b < blocks.count; b++) {
    const float scale = detail::number(scales[b * channels]),
                zero = detail::zero_of<Bits>(zeros, channels, b, all_zero);
    const std::int64_t first = b * blocks.size, end = first + blocks.size < k ? first + blocks.size : k;
    for (std::int64_t i = first; i < end; i += kCodes<Bits>) {
      const auto word = static_cast<std::uint32_t>(words[i / kCodes<Bits> * channels]);
      SINTER_UNROLL
      for (int c = 0; c < kCodes<Bits>; c++) {
        const auto code = (word >> (position_of<Bits>(c) * Bits)) & ((1u << Bits) - 1);
        if (i + c < end) to[i + c] = (static_cast<float>(code) - zero) * scale;
      }
    }
  }
}
}  // namespace sinter::SINTER_ISA

#endif  // SINTER_PRODUCT_OF_CODES_H_
