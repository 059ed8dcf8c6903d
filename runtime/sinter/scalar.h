// scalar: the words of generated scalar code, one for every scalar function an elementwise operator is made
// of.
//
// Element types are float, double, the integers of 8 to 64 bits and bool; half and bfloat16 are computed in
// float by the caller. Floats compute in their own precision. Integers wrap as two's complement; division and
// remainder by zero give 0. bool computes as the integers 0 and 1, and a result other than 0 is true. Nothing
// here has undefined behaviour for any argument. cast_to converts between all of them.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sinter/half.h"

namespace sinter {

template <class T>
using if_number = std::enable_if_t<std::is_arithmetic_v<T>, int>;
template <class T>
using if_float = std::enable_if_t<std::is_floating_point_v<T>, int>;
template <class T>
using if_integer = std::enable_if_t<std::is_integral_v<T>, int>;  // bool too

// The unsigned type in which integers of type T add and multiply without overflow and without promotion to
// int.
template <class T>
using modular = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;

// --- conversions

// v as a T. Floats to integers truncate and saturate, NaN becomes 0; integers to integers wrap; anything to
// bool is v != 0; what becomes a half or bfloat16 is rounded to float first.
template <class T, class F>
inline T cast_to(F v) {
  if constexpr (std::is_same_v<T, F>) {
    return v;
  } else if constexpr (std::is_same_v<F, half> || std::is_same_v<F, bfloat16>) {
    return cast_to<T>(to_float(v));
  } else if constexpr (std::is_same_v<T, half>) {
    return to_half(static_cast<float>(v));
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return to_bfloat16(static_cast<float>(v));
  } else if constexpr (std::is_same_v<T, bool>) {
    return v != F{0};
  } else if constexpr (std::is_floating_point_v<F> && std::is_integral_v<T>) {
    constexpr T lo = std::numeric_limits<T>::min(), hi = std::numeric_limits<T>::max();
    constexpr T middle = hi / 2 + 1;
    constexpr F end = static_cast<F>(middle) * F{2};  // the first value that does not fit
    if (v != v) return T{0};
    return v <= static_cast<F>(lo) ? lo : v >= end ? hi : static_cast<T>(v);
  } else {
    return static_cast<T>(v);
  }
}

// The low `Bits` bits of v as an integer of so many bits, kept in a T: what 4- and 2-bit integers are cast
// to. Floats become std::int32_t first.
template <class T, int Bits, class F>
inline T low_bits(F v) {
  const std::uint32_t top = static_cast<std::uint32_t>(cast_to<std::int32_t>(v)) << (32 - Bits);
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(static_cast<std::int32_t>(top) >> (32 - Bits));
  else
    return static_cast<T>(top >> (32 - Bits));
}

// --- arithmetic

template <class T, if_number<T> = 0>
inline T add(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<modular<T>>(a) + static_cast<modular<T>>(b));
}
template <class T, if_number<T> = 0>
inline T sub(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a - b;
  else
    return static_cast<T>(static_cast<modular<T>>(a) - static_cast<modular<T>>(b));
}
template <class T, if_number<T> = 0>
inline T mul(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a * b;
  else
    return static_cast<T>(static_cast<modular<T>>(a) * static_cast<modular<T>>(b));
}
template <class T, if_number<T> = 0>
inline T neg(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return -x;
  else
    return sub(T{0}, x);
}
template <class T, if_number<T> = 0>
inline T div(T a, T b) {  // integers truncate
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else {
    if (b == T{0}) return T{0};
    if constexpr (std::is_signed_v<T>)
      if (b == T{-1}) return neg(a);
    return static_cast<T>(a / b);
  }
}
template <class T, if_number<T> = 0>
inline T rem(T a, T b) {  // has the sign of a
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == T{0}) return T{0};
    if constexpr (std::is_signed_v<T>)
      if (b == T{-1}) return T{0};
    return static_cast<T>(a % b);
  }
}
template <class T, if_number<T> = 0>
inline T mod(T a, T b) {  // has the sign of b
  const T r = rem(a, b);
  if constexpr (std::is_floating_point_v<T>) {
    if (r == T{0}) return std::copysign(r, b);
    return (r < T{0}) != (b < T{0}) ? r + b : r;
  } else if constexpr (std::is_signed_v<T>) {
    return r != T{0} && (r < T{0}) != (b < T{0}) ? add(r, b) : r;
  } else {
    return r;
  }
}
template <class T, if_number<T> = 0>
inline T pow(T base, T e) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::pow(base, e);
  } else {
    if constexpr (std::is_signed_v<T>)
      if (e < T{0}) return base == T{1} ? T{1} : base != T{-1} ? T{0} : e % 2 != 0 ? T{-1} : T{1};
    modular<T> r = 1, b = static_cast<modular<T>>(base), n = static_cast<modular<T>>(e);
    for (; n > 0; n >>= 1, b *= b)
      if ((n & 1u) != 0) r *= b;
    return static_cast<T>(r);
  }
}
template <class T, if_number<T> = 0>
inline T min(T a, T b) {  // NaN where one of them is
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return a;
    if (b != b) return b;
  }
  return b < a ? b : a;
}
template <class T, if_number<T> = 0>
inline T max(T a, T b) {  // NaN where one of them is
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return a;
    if (b != b) return b;
  }
  return a < b ? b : a;
}
template <class T, if_number<T> = 0>
inline T abs(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(x);
  else if constexpr (std::is_signed_v<T>)
    return x < T{0} ? neg(x) : x;
  else
    return x;
}
template <class T, if_number<T> = 0>
inline T sign(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x ? x : x > T{0} ? T{1} : x < T{0} ? T{-1} : T{0};
  else if constexpr (std::is_signed_v<T>)
    return x > T{0} ? T{1} : x < T{0} ? T{-1} : T{0};
  else
    return x != T{0} ? T{1} : T{0};
}

// --- functions of floats only

template <class T, if_float<T> = 0>
inline T reciprocal(T x) {
  return T{1} / x;
}
// x in units of `scale` from `zero`: what QuantizeLinear saturates to integers. Ties go to even.
template <class T, if_float<T> = 0>
inline T quantize(T x, T scale, T zero) {
  return std::nearbyint(x / scale) + zero;
}
template <class T, if_float<T> = 0>
inline T floor(T x) {
  return std::floor(x);
}
template <class T, if_float<T> = 0>
inline T ceil(T x) {
  return std::ceil(x);
}
template <class T, if_float<T> = 0>
inline T round(T x) {  // ties to even
  return std::nearbyint(x);
}
template <class T, if_float<T> = 0>
inline T trunc(T x) {
  return std::trunc(x);
}
template <class T, if_float<T> = 0>
inline T sqrt(T x) {
  return std::sqrt(x);
}
template <class T, if_float<T> = 0>
inline T exp(T x) {
  return std::exp(x);
}
template <class T, if_float<T> = 0>
inline T log(T x) {
  return std::log(x);
}
template <class T, if_float<T> = 0>
inline T sin(T x) {
  return std::sin(x);
}
template <class T, if_float<T> = 0>
inline T cos(T x) {
  return std::cos(x);
}
template <class T, if_float<T> = 0>
inline T tan(T x) {
  return std::tan(x);
}
template <class T, if_float<T> = 0>
inline T asin(T x) {
  return std::asin(x);
}
template <class T, if_float<T> = 0>
inline T acos(T x) {
  return std::acos(x);
}
template <class T, if_float<T> = 0>
inline T atan(T x) {
  return std::atan(x);
}
template <class T, if_float<T> = 0>
inline T sinh(T x) {
  return std::sinh(x);
}
template <class T, if_float<T> = 0>
inline T cosh(T x) {
  return std::cosh(x);
}
template <class T, if_float<T> = 0>
inline T asinh(T x) {
  return std::asinh(x);
}
template <class T, if_float<T> = 0>
inline T acosh(T x) {
  return std::acosh(x);
}
template <class T, if_float<T> = 0>
inline T atanh(T x) {
  return std::atanh(x);
}
template <class T, if_float<T> = 0>
inline T tanh(T x) {
  return std::tanh(x);
}
template <class T, if_float<T> = 0>
inline T erf(T x) {
  return std::erf(x);
}

// --- activations

template <class T, if_number<T> = 0>
inline T relu(T x) {
  return max(x, T{0});
}
template <class T, if_number<T> = 0>
inline T clamp(T x, T lo, T hi) {  // hi where lo > hi
  return min(max(x, lo), hi);
}
template <class T, if_number<T> = 0>
inline T leaky_relu(T x, T slope) {
  if constexpr (std::is_signed_v<T>)
    return x < T{0} ? mul(x, slope) : x;
  else
    return static_cast<void>(slope), x;
}
template <class T, if_float<T> = 0>
inline T sigmoid(T x) {  // the exponential never overflows
  const T e = std::exp(-std::fabs(x));
  return (x < T{0} ? e : T{1}) / (T{1} + e);
}
template <class T, if_float<T> = 0>
inline T softplus(T x) {
  return max(x, T{0}) + std::log1p(std::exp(-std::fabs(x)));
}
template <class T, if_float<T> = 0>
inline T softsign(T x) {
  return x / (T{1} + std::fabs(x));
}
template <class T, if_float<T> = 0>
inline T elu(T x, T alpha) {
  return x < T{0} ? alpha * std::expm1(x) : x;
}
template <class T, if_float<T> = 0>
inline T selu(T x, T alpha, T gamma) {
  return gamma * (x <= T{0} ? alpha * std::expm1(x) : x);
}
template <class T, if_float<T> = 0>
inline T celu(T x, T alpha) {
  return max(x, T{0}) + min(alpha * std::expm1(x / alpha), T{0});
}
template <class T, if_float<T> = 0>
inline T hard_sigmoid(T x, T alpha, T beta) {
  return clamp(alpha * x + beta, T{0}, T{1});
}
template <class T, if_float<T> = 0>
inline T hard_swish(T x) {
  return x * clamp(x / T{6} + T(0.5), T{0}, T{1});
}
template <class T, if_float<T> = 0>
inline T silu(T x) {
  return x * sigmoid(x);
}
template <class T, if_float<T> = 0>
inline T mish(T x) {
  return x * std::tanh(softplus(x));
}
template <class T, if_float<T> = 0>
inline T gelu(T x) {  // erfc instead of 1 + erf: nothing cancels for negative x
  return T(0.5) * x * std::erfc(-x * T(0.70710678118654752440));
}
template <class T, if_float<T> = 0>
inline T gelu_tanh(T x) {  // (1 + tanh u) / 2 = sigmoid(2 u), in which nothing cancels
  return x * sigmoid(T(1.59576912160573071176) * (x + T(0.044715) * x * x * x));
}
template <class T, if_float<T> = 0>
inline T thresholded_relu(T x, T alpha) {
  return x > alpha ? x : T{0};
}
template <class T, if_float<T> = 0>
inline T shrink(T x, T bias, T lambd) {
  return x < -lambd ? x + bias : x > lambd ? x - bias : T{0};
}

// --- comparisons and logic

template <class T, if_number<T> = 0>
inline bool eq(T a, T b) {
  return a == b;
}
template <class T, if_number<T> = 0>
inline bool lt(T a, T b) {
  return a < b;
}
template <class T, if_number<T> = 0>
inline bool le(T a, T b) {
  return a <= b;
}
template <class T, if_number<T> = 0>
inline bool gt(T a, T b) {
  return a > b;
}
template <class T, if_number<T> = 0>
inline bool ge(T a, T b) {
  return a >= b;
}
template <class T, if_integer<T> = 0>
inline bool logical_and(T a, T b) {
  return a != T{0} && b != T{0};
}
template <class T, if_integer<T> = 0>
inline bool logical_or(T a, T b) {
  return a != T{0} || b != T{0};
}
template <class T, if_integer<T> = 0>
inline bool logical_xor(T a, T b) {
  return (a != T{0}) != (b != T{0});
}
template <class T, if_integer<T> = 0>
inline bool logical_not(T a) {
  return a == T{0};
}
template <class T, if_float<T> = 0>
inline bool is_nan(T x) {
  return x != x;
}
template <class T, if_float<T> = 0>
inline bool is_positive_inf(T x) {
  return x == std::numeric_limits<T>::infinity();
}
template <class T, if_float<T> = 0>
inline bool is_negative_inf(T x) {
  return x == -std::numeric_limits<T>::infinity();
}
template <class T, if_number<T> = 0>
inline T select(bool condition, T a, T b) {
  return condition ? a : b;
}

// --- bits

template <class T, if_integer<T> = 0>
inline T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T, if_integer<T> = 0>
inline T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T, if_integer<T> = 0>
inline T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <class T, if_integer<T> = 0>
inline T bit_not(T x) {
  return static_cast<T>(static_cast<modular<T>>(x) ^ std::numeric_limits<modular<T>>::max());
}
// A count below zero or of all bits and more shifts everything out: what the sign's extension leaves stays.
template <class T, if_integer<T> = 0>
inline T shift_left(T x, T count) {
  const std::uint64_t n = static_cast<std::uint64_t>(count);
  return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<modular<T>>(x) << n);
}
template <class T, if_integer<T> = 0>
inline T shift_right(T x, T count) {
  const std::uint64_t n = static_cast<std::uint64_t>(count);
  if (n >= 8 * sizeof(T)) return static_cast<T>(x < T{0} ? -1 : 0);
  return static_cast<T>(x >> n);
}

}  // namespace sinter
