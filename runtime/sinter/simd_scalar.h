// SIMD words in plain C++, one lane: for any CPU, and the reference for the other instruction sets. Rules of
// use as in simd_avx512.h; the word list is in simd_common.h.
#ifndef SINTER_SIMD_SCALAR_H_
#define SINTER_SIMD_SCALAR_H_
#ifdef SINTER_ISA
#error "a translation unit includes exactly one sinter/simd_*.h"
#endif
#define SINTER_ISA scalar
#define SINTER_ISA_SCALAR 1
#define SINTER_ISA_REGISTERS 16
// A fused multiply-add in software costs a hundred times a product and a sum: only where the base target has
// it.
#if defined(__FMA__) || defined(__aarch64__) || defined(__FP_FAST_FMAF)
#define SINTER_ISA_FMA 1
#endif

#include "sinter/simd_begin.h"

namespace sinter::scalar {

constexpr int kLanes = 1;
using f32v = float;
using i32v = int32_t;
using m32v = bool;

template <class V = f32v>
SINTER_INLINE V load(const float* p) {
  return *p;
}
template <class V = i32v>
SINTER_INLINE V load(const int32_t* p) {
  return *p;
}
template <class V = f32v>
SINTER_INLINE V load_n(const float* p, std::ptrdiff_t n) {
  return n > 0 ? *p : 0.0f;
}
template <class V = f32v, if_words<V> = 0>
SINTER_INLINE V splat(float x) {
  return x;
}
template <class V = i32v, if_words<V> = 0>
SINTER_INLINE V splat_int(int32_t x) {
  return x;
}

}  // namespace sinter::scalar

#include "sinter/simd_common.h"

#endif  // SINTER_SIMD_SCALAR_H_
