// Floats that are stored as float16: the words of simd_common.h and mac.h for pointers to halves, and whole
// runs. Rounded to nearest, ties to even; subnormal halves are numbers whatever mode the processor is in. No
// alignment needed.
//
//   load(p) load_n(p, n) load_lanes(p, n)      kLanes halves, or the first n, as floats; others read as 0
//   store(p, v) store_n(p, v, n) store_lanes   floats as halves
//   convert(from, count, to)                   runs that don't overlap
#ifndef SINTER_CONVERT_H_
#define SINTER_CONVERT_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/convert.h"
#endif

#include "sinter/widen.h"

namespace sinter::SINTER_ISA {

#ifndef SINTER_HALF_ARITHMETIC
SINTER_INLINE void store(half* p, f32v v) {
#if defined(SINTER_ISA_NEON)
  vst1_u16(&p->bits, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v)));
#elif defined(SINTER_ISA_AVX512)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_maskz_cvtps_ph(0xffff, (__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(SINTER_ISA_AVX2)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
  float f[kLanes];
  store(f, v);
  for (int i = 0; i < kLanes; i++) p[i] = to_half(f[i]);
#endif
}
#endif

SINTER_INLINE f32v load_n(const half* p, std::ptrdiff_t n) {
  half all[kLanes] = {};
  std::memcpy(all, p, static_cast<std::size_t>(n < kLanes ? n : kLanes) * sizeof(half));
  return load(static_cast<const half*>(all));
}
SINTER_INLINE void store_n(half* p, f32v v, std::ptrdiff_t n) {
  half all[kLanes];
  store(static_cast<half*>(all), v);
  std::memcpy(p, all, static_cast<std::size_t>(n < kLanes ? n : kLanes) * sizeof(half));
}
SINTER_INLINE f32v load_lanes(const half* p, int lanes) {
  return lanes == kLanes ? load(p) : load_n(p, lanes);
}
SINTER_INLINE void store_lanes(half* p, f32v v, int lanes) {
  if (lanes == kLanes)
    store(p, v);
  else
    store_n(p, v, lanes);
}

// to[i] = from[i], i < count.
SINTER_INLINE void convert(const half* from, std::ptrdiff_t count, float* to) {
  const std::ptrdiff_t rest = count % kLanes, whole = count - rest;
  for (std::ptrdiff_t i = 0; i < whole; i += kLanes) store(to + i, load(from + i));
  for (std::ptrdiff_t i = 0; i < rest; i++) to[whole + i] = to_float(from[whole + i]);
}
SINTER_INLINE void convert(const float* from, std::ptrdiff_t count, half* to) {
  const std::ptrdiff_t rest = count % kLanes, whole = count - rest;
  for (std::ptrdiff_t i = 0; i < whole; i += kLanes) store(to + i, load(from + i));
  for (std::ptrdiff_t i = 0; i < rest; i++) to[whole + i] = to_half(from[whole + i]);
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_CONVERT_H_
