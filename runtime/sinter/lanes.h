// Integers of 8 and 16 bits in lanes of floats, which hold them exactly: how quantised tensors are read,
// computed with and stored a vector at a time.
//
//   load_lanes(p, lanes)       the first `lanes` (1 to kLanes), the others 0: floats, or integers of 32 bits
//   saturated<T>(v)            toward zero and into T's range, NaN to 0: v as a T, still in floats
//   quantized<T>(x, q)         x in units of a scale from a zero point, rounded, ties to even, into T's
//                              range, NaN to 0
//   quantized_number<T>(x, q)  the same of an x that is no NaN
//   store(p, v) store_lanes    lanes that hold values of T
#ifndef SINTER_LANES_H_
#define SINTER_LANES_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/lanes.h"
#endif

#include <limits>

#include "sinter/mac.h"
#include "sinter/narrow.h"

namespace sinter::SINTER_ISA {

template <class T, if_small_integer<T> = 0>
SINTER_INLINE f32v load(const T* p) {
  return to_float(load_wide(p));
}
template <class T, if_small_integer<T> = 0>
SINTER_INLINE f32v load_lanes(const T* p, int lanes) {
  if (lanes == kLanes) return load(p);
  float v[kLanes] = {};
  for (int i = 0; i < lanes; i++) v[i] = static_cast<float>(p[i]);
  return load(static_cast<const float*>(v));
}

SINTER_INLINE i32v load_lanes(const std::int32_t* p, int lanes) {
  if (lanes == kLanes) return load(p);
  std::int32_t v[kLanes] = {};
  for (int i = 0; i < lanes; i++) v[i] = p[i];
  return load(static_cast<const std::int32_t*>(v));
}

template <class T, class V>
SINTER_INLINE V saturated(V v) {
  const V number = select(eq(v, v), v, zero<V>());
  return trunc(min(max(number, splat<V>(static_cast<float>(std::numeric_limits<T>::min()))),
                   splat<V>(static_cast<float>(std::numeric_limits<T>::max()))));
}

// How to quantize by `scale` and `zero` without a division: the quotient by `inverse`, the float nearest to 1
// / scale, is mended by what it leaves. `low` and `high` are beyond the floats that become T's ends. The
// compiler has found that every float gives what the division gives (emit/expr_text.cpp).
struct QuantizeSteps {
  float scale, inverse, zero, low, high;
};
template <class T, class V>
SINTER_INLINE V quantized_number(V x, QuantizeSteps q) {
#if defined(SINTER_ISA_FMA)
  const V near = min(max(x, splat<V>(q.low)), splat<V>(q.high));
  V steps = near;
  if (q.scale != 1.0f) {
    const V quotient = mul(near, splat<V>(q.inverse));
    steps = fma(fnma(quotient, splat<V>(q.scale), near), splat<V>(q.inverse), quotient);
  }
  return q.zero == 0.0f ? round(steps) : add(round(steps), splat<V>(q.zero));
#else  // nothing is mended without fused multiply-add
  return saturated<T>(add(round(div(x, splat<V>(q.scale))), splat<V>(q.zero)));
#endif
}
template <class T, class V>
SINTER_INLINE V quantized(V x, QuantizeSteps q) {
  return select(eq(x, x), quantized_number<T>(x, q), zero<V>());
}

template <class T, if_small_integer<T> = 0>
SINTER_INLINE void store(T* p, f32v v) {
  store_narrow(p, to_int(v));
}

#if defined(SINTER_ISA_NEON)
// What quantized gives, as numbers or, to be stored, without asking for NaN, which NEON's conversion makes 0.
template <class T>
struct QuantizedLanes {
  f32v steps;  // not rounded
  float zero;

  __attribute__((always_inline)) operator f32v() const {
    const f32v whole = round(steps);
    return select(eq(steps, steps), zero == 0.0f ? whole : add(whole, splat(zero)),
                  sinter::SINTER_ISA::zero());
  }
};
// As quantized_number, by instructions that g++ 12 would copy an operand for.
template <class T>
SINTER_INLINE QuantizedLanes<T> quantized(f32v x, QuantizeSteps q) {
  f32v rest = min(max(x, splat(q.low)), splat(q.high));
  if (q.scale == 1.0f) return {rest, q.zero};
  const f32v scale = splat(q.scale), inverse = splat(q.inverse);
  f32v steps = mul(rest, inverse);
  __asm__("fmls %0.4s, %1.4s, %2.4s" : "+w"(rest) : "w"(steps), "w"(scale));
  __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(steps) : "w"(rest), "w"(inverse));
  return {steps, q.zero};
}
template <class T, if_small_integer<T> = 0>
SINTER_INLINE void store(T* p, QuantizedLanes<T> v) {
  if (v.zero == 0.0f)
    store_narrow(p, round_to_int(v.steps));
  else
    store(p, static_cast<f32v>(v));
}
#endif

template <class T, if_small_integer<T> = 0>
SINTER_INLINE void store_lanes(T* p, f32v v, int lanes) {
  if (lanes == kLanes) return store(p, v);
  T all[kLanes];
  store(static_cast<T*>(all), v);
  std::memcpy(p, all, static_cast<std::size_t>(lanes) * sizeof(T));
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_LANES_H_
