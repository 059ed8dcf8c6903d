// The 16-bit floating-point types of ONNX, float16 (IEEE binary16) and bfloat16, as storage: computation is
// in float. Portable C++ for compiler and runtime alike. Conversions to float are exact; from float they
// round to nearest, ties to even, overflow to infinity, keep denormals, and a NaN stays a (quiet) NaN with
// its sign.
#ifndef SINTER_HALF_H_
#define SINTER_HALF_H_

#include <cstdint>
#include <cstring>

namespace sinter {

struct half {
  uint16_t bits;
  operator float() const;  // exact
  half& operator=(float);  // rounded
};
struct bfloat16 {
  uint16_t bits;
};
static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2);

namespace half_detail {
inline uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, sizeof u);
  return u;
}
inline float float_of(uint32_t u) {
  float x;
  std::memcpy(&x, &u, sizeof x);
  return x;
}
// u / 2^shift rounded to nearest, ties to even; 1 <= shift <= 31.
inline uint32_t shift_round(uint32_t u, uint32_t shift) {
  const uint32_t odd = (u >> shift) & 1u;
  return (u + (1u << (shift - 1u)) - 1u + odd) >> shift;
}
}  // namespace half_detail

inline float to_float(half h) {
  const uint32_t sign = (h.bits & 0x8000u) << 16;
  const uint32_t rest = h.bits & 0x7fffu;
  if (rest >= 0x7c00u) return half_detail::float_of(sign | 0x7f800000u | (rest << 13));
  if (rest >= 0x0400u) return half_detail::float_of(sign | ((rest << 13) + (112u << 23)));
  const float magnitude = static_cast<float>(rest) * 0x1p-24f;  // zero or denormal: a multiple of 2^-24
  return half_detail::float_of(sign | half_detail::bits_of(magnitude));
}

inline half to_half(float x) {
  const uint32_t u = half_detail::bits_of(x);
  const uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  uint32_t h;
  if (magnitude > 0x7f800000u) {
    h = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 2^16 and above
    h = 0x7c00u;
  } else if (magnitude >=
             0x38800000u) {  // 2^-14: normal; a carry out of the fraction is right, up to infinity
    h = half_detail::shift_round(magnitude - (112u << 23), 13);
  } else if (magnitude >= 0x33000000u) {  // 2^-25: denormal, the fraction as a multiple of 2^-24
    h = half_detail::shift_round((magnitude & 0x7fffffu) | 0x800000u, 126u - (magnitude >> 23));
  } else {
    h = 0;
  }
  return {static_cast<uint16_t>(sign | h)};
}

inline half::operator float() const { return to_float(*this); }
inline half& half::operator=(float x) { return *this = to_half(x); }

inline float to_float(bfloat16 b) { return half_detail::float_of(static_cast<uint32_t>(b.bits) << 16); }

inline bfloat16 to_bfloat16(float x) {
  const uint32_t u = half_detail::bits_of(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((u >> 16) | 0x40u)};
  return {static_cast<uint16_t>(half_detail::shift_round(u, 16))};
}

}  // namespace sinter

#endif  // SINTER_HALF_H_
