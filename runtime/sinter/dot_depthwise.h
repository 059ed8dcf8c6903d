// Depthwise convolution by dot products of bytes (dot.h): the four factors of a product are four taps of one
// channel, one below the other.
//
// A column of the picture is taken for 4 * kLanes channels at once. Up to four of its rows are interleaved,
// so that each 32-bit lane holds one channel's bytes of the four; that is done once for all the outputs whose
// windows the column is part of. Weights are packed the same way: [kernel width][groups of four rows][4
// vectors][lane][4]. The sums of a tile are in the order in which the instruction set interleaves, until
// in_order() is called.
#ifndef SINTER_DOT_DEPTHWISE_H_
#define SINTER_DOT_DEPTHWISE_H_

#include "sinter/dot.h"

namespace sinter::SINTER_ISA {

constexpr int kQuadChannels = 4 * kLanes;

namespace detail {
// One channel's four bytes in each lane, signs flipped as dot products want them.
struct Quads {
  i32v q[4];
};

#if defined(SINTER_ISA_AVX512)
template <class X>
SINTER_INLINE __m512i load_row(const X* p, int channels) {
  if (channels == kQuadChannels) return _mm512_loadu_si512(p);
  return _mm512_maskz_loadu_epi8((__mmask64{1} << channels) - 1, p);
}
template <class X>
SINTER_INLINE Quads interleaved(const X* const (&row)[4], int channels) {
  const __m512i flip = _mm512_set1_epi32(static_cast<int>(kFlip<X>));
  const __m512i r0 = load_row(row[0], channels), r1 = load_row(row[1], channels),
                r2 = load_row(row[2], channels), r3 = load_row(row[3], channels);
  const __m512i a = _mm512_unpacklo_epi8(r0, r1), b = _mm512_unpackhi_epi8(r0, r1),
                c = _mm512_unpacklo_epi8(r2, r3), d = _mm512_unpackhi_epi8(r2, r3);
  return {{(i32v)_mm512_xor_si512(_mm512_unpacklo_epi16(a, c), flip),
           (i32v)_mm512_xor_si512(_mm512_unpackhi_epi16(a, c), flip),
           (i32v)_mm512_xor_si512(_mm512_unpacklo_epi16(b, d), flip),
           (i32v)_mm512_xor_si512(_mm512_unpackhi_epi16(b, d), flip)}};
}
#elif defined(SINTER_ISA_AVX2)
template <class X>
SINTER_INLINE __m256i load_row(const X* p, int channels) {
  // Few channels come as one load: through memory they would wait for the stores.
  if (channels == 16) return _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  if (channels == 8) return _mm256_zextsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  X first[kQuadChannels] = {};
  if (channels != kQuadChannels) {
    std::memcpy(first, p, static_cast<std::size_t>(channels));
    p = first;
  }
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
template <class X>
SINTER_INLINE Quads interleaved(const X* const (&row)[4], int channels) {
  const __m256i flip = _mm256_set1_epi32(static_cast<int>(kFlip<X>));
  const __m256i r0 = load_row(row[0], channels), r1 = load_row(row[1], channels),
                r2 = load_row(row[2], channels), r3 = load_row(row[3], channels);
  const __m256i a = _mm256_unpacklo_epi8(r0, r1), b = _mm256_unpackhi_epi8(r0, r1),
                c = _mm256_unpacklo_epi8(r2, r3), d = _mm256_unpackhi_epi8(r2, r3);
  return {{(i32v)_mm256_xor_si256(_mm256_unpacklo_epi16(a, c), flip),
           (i32v)_mm256_xor_si256(_mm256_unpackhi_epi16(a, c), flip),
           (i32v)_mm256_xor_si256(_mm256_unpacklo_epi16(b, d), flip),
           (i32v)_mm256_xor_si256(_mm256_unpackhi_epi16(b, d), flip)}};
}
#elif defined(SINTER_ISA_NEON)
template <class X>
SINTER_INLINE int8x16_t load_row(const X* p, int channels) {
  if (channels == kQuadChannels) return load_signed(p);
  if (channels == 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, p, 8);
    const uint8x16_t bytes = vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(eight), vcreate_u64(0)));
    return vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(std::is_signed_v<X> ? 0 : 0x80)));
  }
  X first[kQuadChannels] = {};
  std::memcpy(first, p, static_cast<std::size_t>(channels));
  return load_signed(static_cast<const X*>(first));
}
template <class X>
SINTER_INLINE Quads interleaved(const X* const (&row)[4], int channels) {
  const int8x16_t r0 = load_row(row[0], channels), r1 = load_row(row[1], channels),
                  r2 = load_row(row[2], channels), r3 = load_row(row[3], channels);
  const int16x8_t a = vreinterpretq_s16_s8(vzip1q_s8(r0, r1)), b = vreinterpretq_s16_s8(vzip2q_s8(r0, r1)),
                  c = vreinterpretq_s16_s8(vzip1q_s8(r2, r3)), d = vreinterpretq_s16_s8(vzip2q_s8(r2, r3));
  return {{(i32v)vzip1q_s16(a, c), (i32v)vzip2q_s16(a, c), (i32v)vzip1q_s16(b, d), (i32v)vzip2q_s16(b, d)}};
}
#else
template <class X>
SINTER_INLINE Quads interleaved(const X* const (&row)[4], int channels) {
  std::int32_t words[kQuadChannels] = {};
  for (int c = 0; c < channels; c++) {
    std::uint32_t q = 0;
    for (int i = 0; i < 4; i++)
      q |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(row[i][c])) << (8 * i);
    words[c] = static_cast<std::int32_t>(q ^ kFlip<X>);
  }
  Quads r;
  for (int j = 0; j < 4; j++) r.q[j] = load(words + j * kLanes);
  return r;
}
#endif
}  // namespace detail

// A row of a picture of bytes, pixels `pixel` bytes apart; or one byte value for all pixels and channels.
template <class X>
struct RowOfBytes {
  const X* at;
  std::ptrdiff_t pixel, channel;
};
template <class X>
SINTER_INLINE RowOfBytes<X> row_in(const X* at, std::ptrdiff_t pixel) {
  return {at, pixel, 1};
}
// `blank`: kQuadChannels equal bytes.
template <class X>
SINTER_INLINE RowOfBytes<X> blank_row(const X* blank) {
  return {blank, 0, 0};
}

// Where the columns of those rows begin at pixel `ix` and channel `c`, and how far they are apart; `blank`:
// not null where there are none.
template <class X, int Rows>
struct DepthwiseColumns {
  const X* row[Rows];
  std::ptrdiff_t step[Rows];

  [[gnu::always_inline]] inline DepthwiseColumns(const RowOfBytes<X> (&rows)[Rows], std::int64_t ix,
                                                 std::int64_t c, const X* blank) {
    SINTER_UNROLL
    for (int i = 0; i < Rows; i++) {
      row[i] = blank != nullptr ? blank : rows[i].at + ix * rows[i].pixel + c * rows[i].channel;
      step[i] = blank != nullptr ? 0 : rows[i].pixel;
    }
  }
};

// acc.a[t] += the taps of the pixels that begin at row[i] + t * Stride * step[i], of which there are K,
// Dilation apart along the row; `Groups` times four rows, each for the first `channels` channels.
template <int K, int Stride, int Dilation, int Groups, int T, class X>
SINTER_INLINE void mac_depthwise(IntTile<4, T>& acc, const X* const (&row)[4 * Groups],
                                 const std::ptrdiff_t (&step)[4 * Groups], const std::int8_t* w,
                                 int channels) {
  constexpr int kColumns = (T - 1) * Stride + (K - 1) * Dilation + 1;
  SINTER_UNROLL
  for (int g = 0; g < Groups; g++) {
    const X* at[4] = {row[4 * g], row[4 * g + 1], row[4 * g + 2], row[4 * g + 3]};
    SINTER_UNROLL
    for (int column = 0; column < kColumns; column++) {
      bool wanted = false;
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
        const int tap = column - t * Stride;
        wanted = wanted || (tap >= 0 && tap % Dilation == 0 && tap / Dilation < K);
      }
      if (wanted) {
        const detail::Quads x = detail::interleaved(at, channels);
        SINTER_UNROLL
        for (int t = 0; t < T; t++) {
          const int tap = column - t * Stride;
          if (tap < 0 || tap % Dilation != 0 || tap / Dilation >= K) continue;
          SINTER_UNROLL
          for (int j = 0; j < 4; j++)
            acc.a[t][j] = detail::dot_lanes(acc.a[t][j], x.q[j],
                                            w + ((tap / Dilation * Groups + g) * 4 + j) * kQuadChannels);
        }
      }
      SINTER_UNROLL
      for (int i = 0; i < 4; i++) at[i] += step[4 * g + i];
    }
  }
}

// The sums of each pixel by channels: vector o holds those from o * kLanes.
template <int T>
SINTER_INLINE void in_order(IntTile<4, T>& acc) {
#if defined(SINTER_ISA_AVX512)
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    const __m512i a = (__m512i)acc.a[t][0], b = (__m512i)acc.a[t][1], c = (__m512i)acc.a[t][2],
                  d = (__m512i)acc.a[t][3];
    const __m512i ab_low = _mm512_maskz_shuffle_i32x4(0xffff, a, b, 0x44),
                  ab_high = _mm512_maskz_shuffle_i32x4(0xffff, a, b, 0xee),
                  cd_low = _mm512_maskz_shuffle_i32x4(0xffff, c, d, 0x44),
                  cd_high = _mm512_maskz_shuffle_i32x4(0xffff, c, d, 0xee);
    acc.a[t][0] = (i32v)_mm512_maskz_shuffle_i32x4(0xffff, ab_low, cd_low, 0x88);
    acc.a[t][1] = (i32v)_mm512_maskz_shuffle_i32x4(0xffff, ab_low, cd_low, 0xdd);
    acc.a[t][2] = (i32v)_mm512_maskz_shuffle_i32x4(0xffff, ab_high, cd_high, 0x88);
    acc.a[t][3] = (i32v)_mm512_maskz_shuffle_i32x4(0xffff, ab_high, cd_high, 0xdd);
  }
#elif defined(SINTER_ISA_AVX2)
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    const __m256i a = (__m256i)acc.a[t][0], b = (__m256i)acc.a[t][1], c = (__m256i)acc.a[t][2],
                  d = (__m256i)acc.a[t][3];
    acc.a[t][0] = (i32v)_mm256_permute2x128_si256(a, b, 0x20);
    acc.a[t][1] = (i32v)_mm256_permute2x128_si256(c, d, 0x20);
    acc.a[t][2] = (i32v)_mm256_permute2x128_si256(a, b, 0x31);
    acc.a[t][3] = (i32v)_mm256_permute2x128_si256(c, d, 0x31);
  }
#else
  (void)acc;
#endif
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_DOT_DEPTHWISE_H_
