// A function of bytes as the table of its 256 results.
//
//   look_up_bytes(x, table, n, y)   y[i] = table[x[i]], i < n; y may be x
#ifndef SINTER_BYTE_TABLE_H_
#define SINTER_BYTE_TABLE_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/byte_table.h"
#endif

namespace sinter::SINTER_ISA {

SINTER_INLINE void look_up_bytes(const std::uint8_t* x, const std::uint8_t* table, std::int64_t n,
                                 std::uint8_t* y) {
  std::int64_t i = 0;
#if defined(SINTER_ISA_NEON)
  // Four tables of 64, in registers; a byte that is outside of one gets what the others have found.
  const uint8x16x4_t a = vld1q_u8_x4(table), b = vld1q_u8_x4(table + 64), c = vld1q_u8_x4(table + 128),
                     d = vld1q_u8_x4(table + 192);
  for (; i + 16 <= n; i += 16) {
    const uint8x16_t v = vld1q_u8(x + i), step = vdupq_n_u8(64);
    const uint8x16_t v1 = vsubq_u8(v, step), v2 = vsubq_u8(v1, step), v3 = vsubq_u8(v2, step);
    vst1q_u8(y + i, vqtbx4q_u8(vqtbx4q_u8(vqtbx4q_u8(vqtbl4q_u8(a, v), b, v1), c, v2), d, v3));
  }
#elif defined(SINTER_ISA_AVX2) || defined(SINTER_ISA_AVX512)
  // Sixteen tables of 16: pshufb gives 0 where the highest bit is set, as it is of all bytes outside of one.
  for (; i + 32 <= n; i += 32) {
    __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i)), found = _mm256_setzero_si256();
    for (int k = 0; k < 16; k++) {
      const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k));
      const __m256i at = _mm256_adds_epu8(v, _mm256_set1_epi8(0x70));
      found = _mm256_or_si256(found, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(part), at));
      v = _mm256_sub_epi8(v, _mm256_set1_epi8(16));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), found);
  }
#endif
  for (; i < n; i++) y[i] = table[x[i]];
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_BYTE_TABLE_H_
