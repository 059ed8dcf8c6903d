// The floating-point types of 4 and 8 bits of ONNX, as storage: computation is in float. One element a byte.
//
// A format has a sign, E exponent bits, M fraction bits and a bias; the types differ in what their topmost
// codes mean: e5m2 has infinities and NaNs as IEEE has; e4m3fn one NaN (all ones) and no infinity; the fnuz
// types one NaN (0x80) and neither infinity nor -0; e2m1 neither infinity nor NaN. e8m0 is a power of two
// without sign, 0xff its NaN. Conversions to float are exact; from float they round to nearest, ties to even
// (e8m0: away from zero), and overflow to infinity, to NaN where there is none, and to the largest value
// where there is neither; a NaN becomes 0 in e2m1. (OFP8 and OCP Microscaling Formats 1.0; ONNX Cast-25.)
#ifndef SINTER_SMALL_FLOAT_H_
#define SINTER_SMALL_FLOAT_H_

#include "sinter/half.h"

namespace sinter {

struct float8e4m3fn {
  uint8_t bits;
};
struct float8e4m3fnuz {
  uint8_t bits;
};
struct float8e5m2 {
  uint8_t bits;
};
struct float8e5m2fnuz {
  uint8_t bits;
};
struct float8e8m0 {
  uint8_t bits;
};
struct float4e2m1 {
  uint8_t bits;
};

namespace small_float {

struct Format {
  uint32_t exponent, fraction;  // bits of each
  uint32_t bias;
  uint32_t largest;   // code of the largest finite value, without sign
  uint32_t overflow;  // code of what is larger; with the sign bit: no sign is added
  uint32_t nan;       // code of NaN; as `overflow`
  bool negative_zero;
};
constexpr Format kE4M3FN = {4, 3, 7, 0x7e, 0x7f, 0x7f, true};
constexpr Format kE4M3FNUZ = {4, 3, 8, 0x7f, 0x80, 0x80, false};
constexpr Format kE5M2 = {5, 2, 15, 0x7b, 0x7c, 0x7f, true};
constexpr Format kE5M2FNUZ = {5, 2, 16, 0x7f, 0x80, 0x80, false};
constexpr Format kE2M1 = {2, 1, 1, 0x7, 0x7, 0x0, true};

inline float decode(const Format& f, uint8_t code) {
  const uint32_t width = f.exponent + f.fraction, sign_bit = uint32_t{1} << width;
  const uint32_t magnitude = code & (sign_bit - 1u);
  const uint32_t sign = (code & sign_bit) != 0 ? 0x80000000u : 0u;
  if (!f.negative_zero && code == 0x80) return half_detail::float_of(0x7fc00000u);
  if (magnitude > f.largest)
    return half_detail::float_of(
        sign | (magnitude == f.overflow && f.overflow != f.nan ? 0x7f800000u : 0x7fc00000u));
  if (magnitude >> f.fraction != 0)
    return half_detail::float_of(sign | ((magnitude << (23u - f.fraction)) + ((127u - f.bias) << 23)));
  // Zero or denormal: a multiple of 2^(1 - bias - fraction).
  const float unit = half_detail::float_of((128u - f.bias - f.fraction) << 23);
  return half_detail::float_of(sign | half_detail::bits_of(static_cast<float>(magnitude) * unit));
}

inline uint8_t encode(const Format& f, float x) {
  const uint32_t u = half_detail::bits_of(x), magnitude = u & 0x7fffffffu, exponent = magnitude >> 23;
  const uint32_t sign = (u >> 31) << (f.exponent + f.fraction);
  uint32_t code = 0;
  if (magnitude > 0x7f800000u) {
    code = f.nan;
  } else if (exponent >= 128u - f.bias) {
    code = half_detail::shift_round(magnitude - ((127u - f.bias) << 23), 23u - f.fraction);
    if (code > f.largest) code = f.overflow;
  } else {
    const uint32_t shift = 151u - f.bias - f.fraction - exponent;  // at least 24 - fraction
    if (shift <= 24u) code = half_detail::shift_round((magnitude & 0x7fffffu) | 0x800000u, shift);
  }
  if (code == 0 && !f.negative_zero) return 0;
  return static_cast<uint8_t>(code > 0x7fu ? code : sign | code);
}

}  // namespace small_float

inline float to_float(float8e4m3fn v) { return small_float::decode(small_float::kE4M3FN, v.bits); }
inline float to_float(float8e4m3fnuz v) { return small_float::decode(small_float::kE4M3FNUZ, v.bits); }
inline float to_float(float8e5m2 v) { return small_float::decode(small_float::kE5M2, v.bits); }
inline float to_float(float8e5m2fnuz v) { return small_float::decode(small_float::kE5M2FNUZ, v.bits); }
inline float to_float(float4e2m1 v) { return small_float::decode(small_float::kE2M1, v.bits); }
inline float to_float(float8e8m0 v) {  // 2^(bits - 127); the smallest is a denormal float
  if (v.bits == 0xff) return half_detail::float_of(0x7fc00000u);
  return half_detail::float_of(v.bits == 0 ? 0x00400000u : static_cast<uint32_t>(v.bits) << 23);
}

// x as a small float of type T.
template <class T>
inline T to_small(float x) = delete;
template <>
inline float8e4m3fn to_small<float8e4m3fn>(float x) {
  return {small_float::encode(small_float::kE4M3FN, x)};
}
template <>
inline float8e4m3fnuz to_small<float8e4m3fnuz>(float x) {
  return {small_float::encode(small_float::kE4M3FNUZ, x)};
}
template <>
inline float8e5m2 to_small<float8e5m2>(float x) {
  return {small_float::encode(small_float::kE5M2, x)};
}
template <>
inline float8e5m2fnuz to_small<float8e5m2fnuz>(float x) {
  return {small_float::encode(small_float::kE5M2FNUZ, x)};
}
template <>
inline float4e2m1 to_small<float4e2m1>(float x) {
  return {small_float::encode(small_float::kE2M1, x)};
}
// The next power of two away from zero, the largest for what is larger, the smallest for 0. The sign is lost.
template <>
inline float8e8m0 to_small<float8e8m0>(float x) {
  const uint32_t magnitude = half_detail::bits_of(x) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {0xff};
  if (magnitude <= 0x00400000u) return {0};
  const uint32_t up = (magnitude + 0x7fffffu) >> 23;
  return {static_cast<uint8_t>(up > 0xfeu ? 0xfeu : up)};
}

}  // namespace sinter

#endif  // SINTER_SMALL_FLOAT_H_
