// dims: arithmetic on extents, for the expressions of shapes that are known only at run time.
//
// Everything is defined for all arguments: division by zero gives 0, and the one quotient that does not fit
// (the least integer by -1) wraps.
#pragma once
#include <cstdint>

namespace sinter {

// The quotient a / b rounded towards minus infinity; 0 where b is 0.
inline constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<std::int64_t>(0u - static_cast<std::uint64_t>(a));
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
// The quotient a / b rounded towards plus infinity; 0 where b is 0.
inline constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<std::int64_t>(0u - static_cast<std::uint64_t>(a));
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) == (b < 0) ? q + 1 : q;
}
// a - floor_div(a, b) * b: has the sign of b; 0 where b is 0.
inline constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
inline constexpr std::int64_t min_of(std::int64_t a, std::int64_t b) { return b < a ? b : a; }
inline constexpr std::int64_t max_of(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
// The product of an extent and a scale, rounded to float and then towards zero: what Resize makes of an
// extent. What leaves 64 bits is the greatest integer.
inline constexpr std::int64_t scaled_extent(std::int64_t n, float scale) {
  const float product = static_cast<float>(n) * scale;
  return product > -0x1p63f && product < 0x1p63f ? static_cast<std::int64_t>(product) : INT64_MAX;
}
// a * b for a, b >= 0; the greatest integer where it does not fit.
inline constexpr std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

}  // namespace sinter
