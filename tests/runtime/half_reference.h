// What the tests of halves compare with: every half, and a double rounded to one by arithmetic alone.
#ifndef SINTER_TESTS_RUNTIME_HALF_REFERENCE_H_
#define SINTER_TESTS_RUNTIME_HALF_REFERENCE_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "sinter/half.h"

// The step between neighbouring halves of x's size: 2^-24 at the smallest.
inline double half_step(double x) {
  const int exponent = x == 0 ? -14 : std::max(std::ilogb(x), -14);
  return std::ldexp(1.0, exponent - 10);
}

// The half nearest to x, ties to even, as a double; beyond 65,504 and half a step infinity.
inline double nearest_half(double x) {
  if (std::isnan(x) || std::isinf(x)) return x;
  if (std::fabs(x) >= 65520.0) return std::copysign(std::numeric_limits<double>::infinity(), x);
  const double step = half_step(x);
  return std::copysign(std::nearbyint(x / step) * step, x);
}

inline double value(sinter::half h) {
  const int exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
  const double sign = (h.bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

inline bool same_value(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// Distance of y from the exact result in steps of halves of that size; beyond the largest half infinity is
// right.
inline double half_ulps(double y, double exact) {
  if (std::isnan(exact)) return std::isnan(y) ? 0 : 1e30;
  if (std::isnan(y)) return 1e30;
  if (std::fabs(exact) >= 65520.0) return std::isinf(y) && (y > 0) == (exact > 0) ? 0 : 1e30;
  if (std::isinf(y)) return std::fabs(exact) > 65472.0 && (y > 0) == (exact > 0) ? 1 : 1e30;
  return std::fabs(y - exact) / half_step(exact);
}

#endif  // SINTER_TESTS_RUNTIME_HALF_REFERENCE_H_
