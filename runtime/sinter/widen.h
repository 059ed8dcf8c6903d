// Weights that are 16-bit floats, or bytes in steps of their channel, made into the floats that tiles read:
// exactly, whatever mode the processor's denormals are in. Infinities and NaNs are not among them.
#ifndef SINTER_WIDEN_H_
#define SINTER_WIDEN_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/widen.h"
#endif

#include "sinter/half.h"
#include "sinter/narrow.h"

namespace sinter::SINTER_ISA {

SINTER_INLINE f32v load(const half* p) {
#if defined(SINTER_ISA_AVX512)
  return (f32v)_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(SINTER_ISA_AVX2)
  return (f32v)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif defined(SINTER_ISA_NEON)
  return (f32v)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&p->bits)));
#elif defined(SINTER_ISA_SCALAR)
  return to_float(*p);
#else
  const i32v h = load_wide(&p->bits), rest = bit_and(h, splat_int<i32v>(0x7fff));
  const i32v normal = add(shift_left<13>(rest), splat_int<i32v>(112 << 23));
  const i32v denormal = bits(mul(to_float(rest), splat(0x1p-24f)));  // a multiple of 2^-24
  const i32v sign = shift_left<16>(bit_and(h, splat_int<i32v>(0x8000)));
  return float_bits(bit_or(select(lt(rest, splat_int<i32v>(0x400)), denormal, normal), sign));
#endif
}

SINTER_INLINE f32v load(const bfloat16* p) {
#if defined(SINTER_ISA_SCALAR)
  return to_float(*p);
#else
  return float_bits(shift_left<16>(load_wide(&p->bits)));
#endif
}

// to[i] = from[i], i < count, and a vector of zeros behind them; returns `to`.
template <class Half>
SINTER_INLINE const float* widen(const Half* from, std::ptrdiff_t count, float* to) {
  const std::ptrdiff_t rest = count % kLanes, whole = count - rest;
  for (std::ptrdiff_t i = 0; i < whole; i += kLanes) store(to + i, load(from + i));
  for (std::ptrdiff_t i = 0; i < rest; i++) to[whole + i] = to_float(from[whole + i]);
  store(to + count, zero());
  return to;
}

// to[k][channel] = (from[k][channel] + offset[channel]) * scale[channel] for `count` values of k and
// `channels`, and a vector of zeros behind them; returns `to`. A vector may be read behind each of the
// operands.
SINTER_INLINE const float* widen(const std::int8_t* from, std::ptrdiff_t count, std::ptrdiff_t channels,
                                 const float* scale, const float* offset, float* to) {
  for (std::ptrdiff_t k = 0; k < count; k++) {
    // What the last vector has too many is the next value of k's.
    for (std::ptrdiff_t c = 0; c < channels; c += kLanes) {
      const f32v bytes = to_float(load_wide(from + k * channels + c));
      store(to + k * channels + c, mul(add(bytes, load(offset + c)), load(scale + c)));
    }
  }
  store(to + count * channels, zero());
  return to;
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_WIDEN_H_
