// half and bfloat16: 16-bit floats as storage. Arithmetic happens in float; these convert.
//
// half is IEEE 754 binary16, bfloat16 the upper half of a binary32. Conversions from float round to nearest,
// ties to even; NaN stays NaN (quiet), infinities and subnormals are kept.
#pragma once
#include <cstdint>
#include <cstring>

namespace sinter {

struct half {
  std::uint16_t bits;
};
struct bfloat16 {
  std::uint16_t bits;
};

inline std::uint32_t float_bits(float f) {
  std::uint32_t u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}
inline float float_of_bits(std::uint32_t u) {
  float f;
  std::memcpy(&f, &u, sizeof f);
  return f;
}

inline float to_float(half h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (h.bits >> 10) & 31u, mantissa = h.bits & 1023u;
  if (exponent == 31u)
    return float_of_bits(sign | 0x7f800000u | (mantissa << 13) | (mantissa != 0 ? 0x400000u : 0u));
  if (exponent != 0u) return float_of_bits(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
  return float_of_bits(sign | float_bits(magnitude));
}
inline half to_half(float f) {
  const std::uint32_t u = float_bits(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  std::uint32_t r = 0;
  if (a > 0x7f800000u) {
    r = 0x7e00u;
  } else if (a >= 0x477ff000u) {  // rounds to 65536 or more
    r = 0x7c00u;
  } else if (a >= 0x38800000u) {  // normal
    r = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
  } else {  // subnormal: adding 2^-1 leaves the rounded mantissa in the low bits
    r = float_bits(float_of_bits(a) + 0.5f) - 0x3f000000u;
  }
  return half{static_cast<std::uint16_t>(sign | r)};
}

inline float to_float(bfloat16 b) { return float_of_bits(static_cast<std::uint32_t>(b.bits) << 16); }
inline bfloat16 to_bfloat16(float f) {
  const std::uint32_t u = float_bits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return bfloat16{static_cast<std::uint16_t>((u >> 16) | 0x40u)};
  return bfloat16{static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

}  // namespace sinter
