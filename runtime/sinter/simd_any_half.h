// The words of simd_half.h in plain C++, a lane at a time, with the roundings of the instructions. A sum,
// product or quotient of halves in float, or its root, is rounded rightly when it is rounded once more, as a
// float has more than twice a half's digits; a fused product and sum takes a double. Included by simd_half.h.
#ifndef SINTER_SIMD_ANY_HALF_H_
#define SINTER_SIMD_ANY_HALF_H_
#ifndef SINTER_HALF_ARITHMETIC
#error "include sinter/half_arithmetic.h and a sinter/simd_*.h"
#endif

// Words that take so long are not worth inlining, which took the compiler minutes for a tile.
#define SINTER_CALLED [[gnu::noinline, maybe_unused]] static

namespace sinter::SINTER_ISA {

struct f16v {
  half lane[8];
};
struct m16v {
  bool lane[8];
};
struct i16v {
  int16_t lane[8];
};

}  // namespace sinter::SINTER_ISA
namespace sinter {
template <>
inline constexpr bool of_halves<SINTER_ISA::f16v> = true;
template <>
inline constexpr bool of_halves<SINTER_ISA::i16v> = true;
}  // namespace sinter
namespace sinter::SINTER_ISA {

namespace detail {
template <class R, class F>
SINTER_INLINE R each_half(F f) {
  R r{};
  for (int i = 0; i < 8; i++) r.lane[i] = f(i);
  return r;
}
template <class F>
SINTER_INLINE f16v of_floats(F f, f16v a) {
  return each_half<f16v>([&](int i) { return to_half(f(to_float(a.lane[i]))); });
}
template <class F>
SINTER_INLINE f16v of_floats(F f, f16v a, f16v b) {
  return each_half<f16v>([&](int i) { return to_half(f(to_float(a.lane[i]), to_float(b.lane[i]))); });
}
template <class F>
SINTER_INLINE m16v compare(F f, f16v a, f16v b) {
  return each_half<m16v>([&](int i) { return f(to_float(a.lane[i]), to_float(b.lane[i])); });
}
template <class F>
SINTER_INLINE i16v of_ints(F f, i16v a, i16v b) {
  return each_half<i16v>([&](int i) { return static_cast<int16_t>(f(a.lane[i], b.lane[i])); });
}
// A double, rounded once: what a float has no place for leaves its mark in the float's last digit.
SINTER_INLINE half round_double(double d) {
  uint64_t u;
  std::memcpy(&u, &d, sizeof u);
  const uint64_t beyond = (uint64_t{1} << 29) - 1;
  if ((u & beyond) != 0) u = (u & ~beyond) | (beyond + 1);
  std::memcpy(&d, &u, sizeof d);
  return to_half(static_cast<float>(d));
}
SINTER_INLINE half fused(half a, half b, half c, double sign) {
  return round_double(sign * (static_cast<double>(to_float(a)) * static_cast<double>(to_float(b))) +
                      static_cast<double>(to_float(c)));
}
SINTER_INLINE float less_of(float a, float b) {
  if (a != a || b != b) return a + b;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
// Arm Architecture Reference Manual, RecipEstimate: of the numerator's eight first digits.
SINTER_INLINE half reciprocal_of(half h) {
  const unsigned sign = h.bits & 0x8000u, rest = h.bits & 0x7fffu;
  if (rest > 0x7c00u) return {static_cast<uint16_t>(h.bits | 0x200u)};
  if (rest == 0x7c00u) return {static_cast<uint16_t>(sign)};
  if (rest < 0x100u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // below 2^-16: beyond the halves
  int exponent = static_cast<int>(rest >> 10);
  unsigned fraction = rest & 0x3ffu;
  if (exponent == 0) {
    if ((fraction & 0x200u) == 0) exponent = -1, fraction <<= 1;
    fraction = (fraction << 1) & 0x3ffu;
  }
  const unsigned a = (256u | fraction >> 2) * 2 + 1;
  unsigned estimate = (((1u << 19) / a + 1) / 2 & 0xffu) << 2;
  int result = 29 - exponent;
  if (result == 0)
    estimate = 0x200u | estimate >> 1;
  else if (result == -1)
    estimate = 0x100u | estimate >> 2, result = 0;
  return {static_cast<uint16_t>(sign | static_cast<unsigned>(result) << 10 | estimate)};
}
}  // namespace detail

template <class V, if_halves<V> = 0>
SINTER_INLINE V load(const half* p) {
  return detail::each_half<f16v>([&](int i) { return p[i]; });
}
SINTER_INLINE void store(half* p, f16v v) { std::memcpy(p, v.lane, sizeof v.lane); }
template <class V, if_halves<V> = 0>
SINTER_INLINE V load_n(const half* p, std::ptrdiff_t n) {
  return detail::each_half<f16v>([&](int i) { return i < n ? p[i] : half{0}; });
}
SINTER_INLINE void store_n(half* p, f16v v, std::ptrdiff_t n) {
  for (std::ptrdiff_t i = 0; i < n && i < 8; i++) p[i] = v.lane[i];
}
template <class V, if_halves<V> = 0>
SINTER_INLINE V splat(half x) {
  return detail::each_half<f16v>([&](int) { return x; });
}
template <class V, if_halves<V> = 0>
SINTER_INLINE V splat(float x) {
  return splat<V>(to_half(x));
}

SINTER_CALLED f16v add(f16v a, f16v b) {
  return detail::of_floats([](float x, float y) { return x + y; }, a, b);
}
SINTER_CALLED f16v sub(f16v a, f16v b) {
  return detail::of_floats([](float x, float y) { return x - y; }, a, b);
}
SINTER_CALLED f16v mul(f16v a, f16v b) {
  return detail::of_floats([](float x, float y) { return x * y; }, a, b);
}
SINTER_CALLED f16v div(f16v a, f16v b) {
  return detail::of_floats([](float x, float y) { return x / y; }, a, b);
}
SINTER_CALLED f16v sqrt(f16v a) {
  return detail::of_floats([](float x) { return __builtin_sqrtf(x); }, a);
}
SINTER_CALLED f16v neg(f16v a) {
  return detail::each_half<f16v>(
      [&](int i) { return half{static_cast<uint16_t>(a.lane[i].bits ^ 0x8000u)}; });
}
SINTER_CALLED f16v abs(f16v a) {
  return detail::each_half<f16v>(
      [&](int i) { return half{static_cast<uint16_t>(a.lane[i].bits & 0x7fffu)}; });
}
SINTER_CALLED f16v fma(f16v a, f16v b, f16v c) {
  return detail::each_half<f16v>([&](int i) { return detail::fused(a.lane[i], b.lane[i], c.lane[i], 1); });
}
SINTER_CALLED f16v fnma(f16v a, f16v b, f16v c) {
  return detail::each_half<f16v>([&](int i) { return detail::fused(a.lane[i], b.lane[i], c.lane[i], -1); });
}
SINTER_CALLED f16v min(f16v a, f16v b) { return detail::of_floats(detail::less_of, a, b); }
SINTER_CALLED f16v max(f16v a, f16v b) { return neg(min(neg(a), neg(b))); }
SINTER_CALLED f16v floor(f16v a) {
  return detail::of_floats([](float x) { return __builtin_floorf(x); }, a);
}
SINTER_CALLED f16v ceil(f16v a) {
  return detail::of_floats([](float x) { return __builtin_ceilf(x); }, a);
}
SINTER_CALLED f16v trunc(f16v a) {
  return detail::of_floats([](float x) { return __builtin_truncf(x); }, a);
}
SINTER_CALLED f16v round(f16v a) {
  return detail::of_floats([](float x) { return __builtin_rintf(x); }, a);
}
SINTER_CALLED f16v reciprocal_estimate(f16v a) {
  return detail::each_half<f16v>([&](int i) { return detail::reciprocal_of(a.lane[i]); });
}
SINTER_CALLED f16v reciprocal_step(f16v a, f16v b) {
  return detail::each_half<f16v>([&](int i) {
    const double x = static_cast<double>(to_float(a.lane[i])), y = static_cast<double>(to_float(b.lane[i]));
    const bool none = (std::isinf(x) && y == 0) || (x == 0 && std::isinf(y));  // infinity times zero: 0 here
    return none ? half{0x4000} : detail::round_double(2.0 - x * y);
  });
}

SINTER_CALLED m16v lt(f16v a, f16v b) {
  return detail::compare([](float x, float y) { return x < y; }, a, b);
}
SINTER_CALLED m16v le(f16v a, f16v b) {
  return detail::compare([](float x, float y) { return x <= y; }, a, b);
}
SINTER_CALLED m16v gt(f16v a, f16v b) { return lt(b, a); }
SINTER_CALLED m16v ge(f16v a, f16v b) { return le(b, a); }
SINTER_CALLED m16v eq(f16v a, f16v b) {
  return detail::compare([](float x, float y) { return x == y; }, a, b);
}
SINTER_CALLED m16v ne(f16v a, f16v b) {
  return detail::compare([](float x, float y) { return x != y; }, a, b);
}
SINTER_CALLED f16v select(m16v m, f16v a, f16v b) {
  return detail::each_half<f16v>([&](int i) { return m.lane[i] ? a.lane[i] : b.lane[i]; });
}
SINTER_CALLED m16v mask_and(m16v a, m16v b) {
  return detail::each_half<m16v>([&](int i) { return a.lane[i] && b.lane[i]; });
}
SINTER_CALLED m16v mask_or(m16v a, m16v b) {
  return detail::each_half<m16v>([&](int i) { return a.lane[i] || b.lane[i]; });
}
SINTER_CALLED m16v mask_not(m16v a) {
  return detail::each_half<m16v>([&](int i) { return !a.lane[i]; });
}
SINTER_CALLED bool any(m16v m) {
  bool r = false;
  for (bool b : m.lane) r = r || b;
  return r;
}
SINTER_CALLED bool all(m16v m) { return !any(mask_not(m)); }

SINTER_CALLED i16v bits(f16v a) {
  return detail::each_half<i16v>([&](int i) { return static_cast<int16_t>(a.lane[i].bits); });
}
SINTER_CALLED f16v half_bits(i16v a) {
  return detail::each_half<f16v>([&](int i) { return half{static_cast<uint16_t>(a.lane[i])}; });
}
template <class I, if_halves<I> = 0>
SINTER_INLINE I splat_int(int x) {
  return detail::each_half<i16v>([&](int) { return static_cast<int16_t>(x); });
}
SINTER_CALLED i16v add(i16v a, i16v b) {
  return detail::of_ints([](int x, int y) { return x + y; }, a, b);
}
SINTER_CALLED i16v sub(i16v a, i16v b) {
  return detail::of_ints([](int x, int y) { return x - y; }, a, b);
}
SINTER_CALLED i16v bit_and(i16v a, i16v b) {
  return detail::of_ints([](int x, int y) { return x & y; }, a, b);
}
SINTER_CALLED i16v bit_or(i16v a, i16v b) {
  return detail::of_ints([](int x, int y) { return x | y; }, a, b);
}
template <int N>
SINTER_INLINE i16v shift_left(i16v a) {
  return detail::of_ints([](int x, int) { return static_cast<int>(static_cast<unsigned>(x) << N); }, a, a);
}
template <int N>
SINTER_INLINE i16v shift_right(i16v a) {
  return detail::of_ints([](int x, int) { return x >> N; }, a, a);
}

SINTER_CALLED Wide widen_lanes(f16v a) {
  float f[8];
  for (int i = 0; i < 8; i++) f[i] = to_float(a.lane[i]);
  Wide w;
  for (int i = 0; i < kFloatVectors; i++) w.part[i] = load(f + i * kLanes);
  return w;
}
SINTER_CALLED f16v narrow(const Wide& w) {
  float f[8];
  for (int i = 0; i < kFloatVectors; i++) store(f + i * kLanes, w.part[i]);
  return detail::each_half<f16v>([&](int i) { return to_half(f[i]); });
}
SINTER_INLINE void store(half* p, f32v v) {
  float f[kLanes];
  store(f, v);
  for (int i = 0; i < kLanes; i++) p[i] = to_half(f[i]);
}
SINTER_CALLED float hmax(f16v v) {
  f16v m = v;
  for (int i = 1; i < 8; i++) m = max(m, splat<f16v>(v.lane[i]));
  return to_float(m.lane[0]);
}
SINTER_CALLED float hmin(f16v v) { return -hmax(neg(v)); }

SINTER_INLINE void transpose(f16v (&r)[8]) {
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < i; j++) {
      const half h = r[i].lane[j];
      r[i].lane[j] = r[j].lane[i];
      r[j].lane[i] = h;
    }
}

}  // namespace sinter::SINTER_ISA

#undef SINTER_CALLED
#endif  // SINTER_SIMD_ANY_HALF_H_
