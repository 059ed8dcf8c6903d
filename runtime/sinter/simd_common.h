// The words that read alike on every instruction set, and all words on plain float, so that a loop's scalar
// tail is the same text as its vector body. Included by each simd_*.h as its last part.
//
// The word list; V is f32v or float, I is i32v or int32_t, M is m32v or bool; lanes never interact unless
// said.
//   load<V>(p) store(p, v)           no alignment needed; load(p) alone gives an f32v
//   load_n<V>(p, n) store_n(p, v, n) the first n lanes, 0 <= n <= kLanes; the others read as 0 / stay
//   untouched.
//                                    No memory outside p[0..n) is accessed.
//   splat<V>(x) zero<V>()            one value in all lanes
//   add sub mul div neg abs sqrt     IEEE single, correctly rounded
//   fma(a, b, c) fnma(a, b, c)       a*b + c and c - a*b, rounded once; SSE4.2 has no such instruction:
//   rounded twice
//                                    there, and in simd_scalar.h unless the compiler's base target has one
//   min(a, b) max(a, b)              a NaN in the first operand is propagated. With NaN only in the second,
//   NEON gives
//                                    NaN, the others the first operand; so write the data first, the bound
//                                    second. For operands +0 and -0, NEON orders -0 < +0, the others give the
//                                    first.
//   min_nan max_nan                  a NaN in either operand is propagated (ONNX Min and Max)
//   floor ceil trunc round           to integral values; round takes ties to even
//   lt le gt ge eq ne                comparisons; false with NaN but for ne. select(m, a, b): m ? a : b
//   mask_and mask_or mask_not any all
//   hsum hmax hmin                   over the lanes, by halving; NaN in any lane gives NaN
//   transpose(f32v (&)[kLanes])      a kLanes x kLanes block in place
//   bits(v) float_bits(i)            the same bits as the other type
//   to_int(v) round_to_int(v)        toward zero / to nearest even; for |v| < 2^31. Beyond, and for NaN, x86
//   and
//                                    scalar give INT32_MIN, NEON saturates and takes NaN to 0
//   to_float(i)                      rounded to nearest even
//   load<I> store splat_int<I> add sub mul lt gt eq select; bit_and bit_or bit_xor; shift_left<N>
//   shift_right<N>
//                                    on integers; wrap around; shift_right keeps the sign, 1 <= N <= 31
#ifndef SINTER_SIMD_COMMON_H_
#define SINTER_SIMD_COMMON_H_

namespace sinter::SINTER_ISA {

// The integer vector that goes with V.
template <class V>
using int_of = std::conditional_t<std::is_same_v<V, float>, int32_t, i32v>;

// The vector of elements E in memory, float or half, and its lanes.
template <class E>
struct VectorOf {
  using type = f32v;
  static constexpr int kLanesOf = kLanes;
};

#if !defined(SINTER_ISA_SCALAR)
SINTER_INLINE f32v add(f32v a, f32v b) { return a + b; }
SINTER_INLINE f32v sub(f32v a, f32v b) { return a - b; }
SINTER_INLINE f32v mul(f32v a, f32v b) { return a * b; }
SINTER_INLINE f32v div(f32v a, f32v b) { return a / b; }
SINTER_INLINE f32v neg(f32v a) { return -a; }
SINTER_INLINE i32v bits(f32v a) { return (i32v)a; }
SINTER_INLINE f32v float_bits(i32v a) { return (f32v)a; }
// Unsigned inside, as overflow of signed lanes is undefined.
SINTER_INLINE i32v add(i32v a, i32v b) { return (i32v)((u32v)a + (u32v)b); }
SINTER_INLINE i32v sub(i32v a, i32v b) { return (i32v)((u32v)a - (u32v)b); }
SINTER_INLINE i32v mul(i32v a, i32v b) { return (i32v)((u32v)a * (u32v)b); }
SINTER_INLINE i32v bit_and(i32v a, i32v b) { return a & b; }
SINTER_INLINE i32v bit_or(i32v a, i32v b) { return a | b; }
SINTER_INLINE i32v bit_xor(i32v a, i32v b) { return a ^ b; }
template <int N>
SINTER_INLINE i32v shift_left(i32v a) {
  return (i32v)((u32v)a << N);
}
#endif

SINTER_INLINE float add(float a, float b) { return a + b; }
SINTER_INLINE float sub(float a, float b) { return a - b; }
SINTER_INLINE float mul(float a, float b) { return a * b; }
SINTER_INLINE float div(float a, float b) { return a / b; }
SINTER_INLINE float neg(float a) { return -a; }
SINTER_INLINE float abs(float a) { return __builtin_fabsf(a); }
SINTER_INLINE float sqrt(float a) { return __builtin_sqrtf(a); }
#if defined(SINTER_ISA_FMA)
SINTER_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SINTER_INLINE float fnma(float a, float b, float c) { return __builtin_fmaf(-a, b, c); }
#else
SINTER_INLINE float fma(float a, float b, float c) { return a * b + c; }
SINTER_INLINE float fnma(float a, float b, float c) { return c - a * b; }
#endif

#if defined(SINTER_ISA_NEON)
SINTER_INLINE float min(float a, float b) { return vget_lane_f32(vmin_f32(vdup_n_f32(a), vdup_n_f32(b)), 0); }
SINTER_INLINE float max(float a, float b) { return vget_lane_f32(vmax_f32(vdup_n_f32(a), vdup_n_f32(b)), 0); }
#else
SINTER_INLINE float min(float a, float b) { return b < a ? b : a; }
SINTER_INLINE float max(float a, float b) { return b > a ? b : a; }
#endif

#if defined(SINTER_ISA_X86)
// Through the vector instruction: without it -O0 and some flags call the C library.
SINTER_INLINE float floor(float a) { return _mm_cvtss_f32(_mm_floor_ss(_mm_setzero_ps(), _mm_set_ss(a))); }
SINTER_INLINE float ceil(float a) { return _mm_cvtss_f32(_mm_ceil_ss(_mm_setzero_ps(), _mm_set_ss(a))); }
SINTER_INLINE float trunc(float a) {
  return _mm_cvtss_f32(_mm_round_ss(_mm_setzero_ps(), _mm_set_ss(a), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}
SINTER_INLINE float round(float a) {
  return _mm_cvtss_f32(
      _mm_round_ss(_mm_setzero_ps(), _mm_set_ss(a), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
SINTER_INLINE int32_t to_int(float a) { return _mm_cvttss_si32(_mm_set_ss(a)); }
SINTER_INLINE int32_t round_to_int(float a) { return _mm_cvtss_si32(_mm_set_ss(a)); }
#else
SINTER_INLINE float floor(float a) { return __builtin_floorf(a); }
SINTER_INLINE float ceil(float a) { return __builtin_ceilf(a); }
SINTER_INLINE float trunc(float a) { return __builtin_truncf(a); }
SINTER_INLINE float round(float a) { return __builtin_rintf(a); }
#if defined(SINTER_ISA_NEON)
SINTER_INLINE int32_t to_int(float a) { return vcvts_s32_f32(a); }
SINTER_INLINE int32_t round_to_int(float a) { return vcvtns_s32_f32(a); }
#else
SINTER_INLINE int32_t to_int(float a) {
  return a >= -2147483648.0f && a < 2147483648.0f ? static_cast<int32_t>(a) : INT32_MIN;
}
SINTER_INLINE int32_t round_to_int(float a) { return to_int(round(a)); }
#endif
#endif

SINTER_INLINE bool lt(float a, float b) { return a < b; }
SINTER_INLINE bool le(float a, float b) { return a <= b; }
SINTER_INLINE bool gt(float a, float b) { return a > b; }
SINTER_INLINE bool ge(float a, float b) { return a >= b; }
SINTER_INLINE bool eq(float a, float b) { return a == b; }
SINTER_INLINE bool ne(float a, float b) { return a != b; }
SINTER_INLINE bool lt(int32_t a, int32_t b) { return a < b; }
SINTER_INLINE bool gt(int32_t a, int32_t b) { return a > b; }
SINTER_INLINE bool eq(int32_t a, int32_t b) { return a == b; }
SINTER_INLINE float select(bool m, float a, float b) { return m ? a : b; }
SINTER_INLINE int32_t select(bool m, int32_t a, int32_t b) { return m ? a : b; }
SINTER_INLINE bool mask_and(bool a, bool b) { return a && b; }
SINTER_INLINE bool mask_or(bool a, bool b) { return a || b; }
SINTER_INLINE bool mask_not(bool a) { return !a; }
SINTER_INLINE bool any(bool m) { return m; }
SINTER_INLINE bool all(bool m) { return m; }

SINTER_INLINE int32_t bits(float a) {
  int32_t i;
  std::memcpy(&i, &a, sizeof i);
  return i;
}
SINTER_INLINE float float_bits(int32_t i) {
  float a;
  std::memcpy(&a, &i, sizeof a);
  return a;
}
SINTER_INLINE float to_float(int32_t a) { return static_cast<float>(a); }
SINTER_INLINE int32_t add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
SINTER_INLINE int32_t sub(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
SINTER_INLINE int32_t mul(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}
SINTER_INLINE int32_t bit_and(int32_t a, int32_t b) { return a & b; }
SINTER_INLINE int32_t bit_or(int32_t a, int32_t b) { return a | b; }
SINTER_INLINE int32_t bit_xor(int32_t a, int32_t b) { return a ^ b; }
template <int N>
SINTER_INLINE int32_t shift_left(int32_t a) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) << N);
}
template <int N>
SINTER_INLINE int32_t shift_right(int32_t a) {
  return a >> N;
}

SINTER_INLINE void store(float* p, float v) { *p = v; }
SINTER_INLINE void store(int32_t* p, int32_t v) { *p = v; }
SINTER_INLINE void store_n(float* p, float v, std::ptrdiff_t n) {
  if (n > 0) *p = v;
}
template <class V = f32v, if_words<V> = 0>
SINTER_INLINE V zero() {
  return splat<V>(0.0f);
}

#if defined(SINTER_ISA_NEON)
template <class V, if_words<V> = 0>
SINTER_INLINE V min_nan(V a, V b) {
  return min(a, b);
}
template <class V, if_words<V> = 0>
SINTER_INLINE V max_nan(V a, V b) {
  return max(a, b);
}
#else
template <class V, if_words<V> = 0>
SINTER_INLINE V min_nan(V a, V b) {
  return select(ne(b, b), b, min(a, b));
}
template <class V, if_words<V> = 0>
SINTER_INLINE V max_nan(V a, V b) {
  return select(ne(b, b), b, max(a, b));
}
#endif

SINTER_INLINE float hsum(float v) { return v; }
SINTER_INLINE float hmax(float v) { return v; }
SINTER_INLINE float hmin(float v) { return v; }
#if !defined(SINTER_ISA_SCALAR)
SINTER_INLINE float hsum(f32v v) {
  if constexpr (kLanes >= 16) v = v + detail::swap_lanes<8>(v);
  if constexpr (kLanes >= 8) v = v + detail::swap_lanes<4>(v);
  v = v + detail::swap_lanes<2>(v);
  v = v + detail::swap_lanes<1>(v);
  return v[0];
}
SINTER_INLINE float hmax(f32v v) {
  if constexpr (kLanes >= 16) v = max_nan(v, detail::swap_lanes<8>(v));
  if constexpr (kLanes >= 8) v = max_nan(v, detail::swap_lanes<4>(v));
  v = max_nan(v, detail::swap_lanes<2>(v));
  v = max_nan(v, detail::swap_lanes<1>(v));
  return v[0];
}
SINTER_INLINE float hmin(f32v v) {
  if constexpr (kLanes >= 16) v = min_nan(v, detail::swap_lanes<8>(v));
  if constexpr (kLanes >= 8) v = min_nan(v, detail::swap_lanes<4>(v));
  v = min_nan(v, detail::swap_lanes<2>(v));
  v = min_nan(v, detail::swap_lanes<1>(v));
  return v[0];
}
#else
SINTER_INLINE void transpose(f32v (&)[1]) {}
#endif

}  // namespace sinter::SINTER_ISA

#if defined(SINTER_HALF_ARITHMETIC)
#include SINTER_HALF_ARITHMETIC
#endif

namespace sinter::SINTER_ISA {
template <class E>
using vector_of = typename VectorOf<E>::type;
template <class E>
constexpr int lanes_of = VectorOf<E>::kLanesOf;
}  // namespace sinter::SINTER_ISA

#endif  // SINTER_SIMD_COMMON_H_
