// The scalar functions, one row each: the meaning of every elementwise operator is a tree over these.
//
// `real` computes in double and the caller rounds to the element type, so a row is at least as exact as the
// element type; `integer` wraps as two's complement; division and remainder by zero give 0 rather than a
// trap. The words of the same name in runtime/sinter/scalar.h must agree: tests/ops compares them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/error.h"
#include "ir/expr.h"

namespace sinter {
namespace {

using D = const double*;
using I = const int64_t*;
using U = const uint64_t*;

int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }
uint64_t bits(int64_t v) { return static_cast<uint64_t>(v); }

double nan_max(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b); }
double nan_min(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b); }
double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus(double x) { return nan_max(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
double clamp(double x, double lo, double hi) { return nan_min(nan_max(x, lo), hi); }

// Rounded to float: the quotient's ties are those of float division, as where it is computed in float.
double quotient(double a, double b) {
  return static_cast<double>(static_cast<float>(a) / static_cast<float>(b));
}

uint64_t natural_pow(uint64_t base, uint64_t e) {
  uint64_t r = 1;
  for (; e > 0; e >>= 1, base *= base)
    if (e & 1) r *= base;
  return r;
}
int64_t int_pow(int64_t base, int64_t e) {  // with a negative exponent the quotient 1 / base^-e, truncated
  if (e < 0) return base == 1 ? 1 : base == -1 ? (e % 2 ? -1 : 1) : 0;
  return wrap(natural_pow(bits(base), bits(e)));
}
int64_t int_div(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? wrap(0 - bits(a)) : a / b; }
int64_t int_rem(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
int64_t int_mod(int64_t a, int64_t b) {  // sign of the divisor, as Python's
  const int64_t r = int_rem(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
double real_mod(double a, double b) {  // likewise; a zero has the divisor's sign
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(r, b);
  return (r < 0) != (b < 0) ? r + b : r;
}
// Shifts by a negative count or by 64 and more leave what the sign's extension alone leaves (BitShift 28).
int64_t shift_left(int64_t x, int64_t n) { return bits(n) > 63 ? 0 : wrap(bits(x) << n); }
int64_t shift_right(int64_t x, int64_t n) { return x >> (bits(n) > 63 ? 63 : n); }

const ScalarFn kTable[] = {
    // arithmetic
    {"add", 2, false, true, [](D x) { return x[0] + x[1]; },
     [](I x) { return wrap(bits(x[0]) + bits(x[1])); }, nullptr},
    {"sub", 2, false, true, [](D x) { return x[0] - x[1]; },
     [](I x) { return wrap(bits(x[0]) - bits(x[1])); }, nullptr},
    {"mul", 2, false, true, [](D x) { return x[0] * x[1]; },
     [](I x) { return wrap(bits(x[0]) * bits(x[1])); }, nullptr},
    {"div", 2, false, true, [](D x) { return x[0] / x[1]; }, [](I x) { return int_div(x[0], x[1]); },
     [](U x) { return x[1] == 0 ? uint64_t{0} : x[0] / x[1]; }},
    {"rem", 2, false, false, [](D x) { return std::fmod(x[0], x[1]); },
     [](I x) { return int_rem(x[0], x[1]); }, [](U x) { return x[1] == 0 ? uint64_t{0} : x[0] % x[1]; }},
    {"mod", 2, false, false, [](D x) { return real_mod(x[0], x[1]); },
     [](I x) { return int_mod(x[0], x[1]); }, [](U x) { return x[1] == 0 ? uint64_t{0} : x[0] % x[1]; }},
    {"pow", 2, false, true, [](D x) { return std::pow(x[0], x[1]); }, [](I x) { return int_pow(x[0], x[1]); },
     [](U x) { return natural_pow(x[0], x[1]); }},
    {"min", 2, false, true, [](D x) { return nan_min(x[0], x[1]); }, [](I x) { return std::min(x[0], x[1]); },
     [](U x) { return std::min(x[0], x[1]); }},
    {"max", 2, false, true, [](D x) { return nan_max(x[0], x[1]); }, [](I x) { return std::max(x[0], x[1]); },
     [](U x) { return std::max(x[0], x[1]); }},
    {"neg", 1, false, true, [](D x) { return -x[0]; }, [](I x) { return wrap(0 - bits(x[0])); }, nullptr},
    {"abs", 1, false, true, [](D x) { return std::fabs(x[0]); },
     [](I x) { return x[0] < 0 ? wrap(0 - bits(x[0])) : x[0]; }, [](U x) { return x[0]; }},
    {"sign", 1, false, false, [](D x) { return std::isnan(x[0]) ? x[0] : double((x[0] > 0) - (x[0] < 0)); },
     [](I x) { return int64_t{x[0] > 0} - int64_t{x[0] < 0}; }, [](U x) { return uint64_t{x[0] > 0}; }},
    {"reciprocal", 1, false, true, [](D x) { return 1 / x[0]; }, nullptr, nullptr},
    {"floor", 1, false, true, [](D x) { return std::floor(x[0]); }, nullptr, nullptr},
    {"ceil", 1, false, true, [](D x) { return std::ceil(x[0]); }, nullptr, nullptr},
    {"round", 1, false, true, [](D x) { return std::nearbyint(x[0]); }, nullptr, nullptr},
    {"quantize", 3, false, true, [](D x) { return std::nearbyint(quotient(x[0], x[1])) + x[2]; }, nullptr,
     nullptr},
    {"trunc", 1, false, true, [](D x) { return std::trunc(x[0]); }, nullptr, nullptr},
    {"sqrt", 1, false, true, [](D x) { return std::sqrt(x[0]); }, nullptr, nullptr},
    // transcendental
    {"exp", 1, false, true, [](D x) { return std::exp(x[0]); }, nullptr, nullptr},
    {"log", 1, false, true, [](D x) { return std::log(x[0]); }, nullptr, nullptr},
    {"sin", 1, false, true, [](D x) { return std::sin(x[0]); }, nullptr, nullptr},
    {"cos", 1, false, true, [](D x) { return std::cos(x[0]); }, nullptr, nullptr},
    {"tan", 1, false, false, [](D x) { return std::tan(x[0]); }, nullptr, nullptr},
    {"asin", 1, false, false, [](D x) { return std::asin(x[0]); }, nullptr, nullptr},
    {"acos", 1, false, false, [](D x) { return std::acos(x[0]); }, nullptr, nullptr},
    {"atan", 1, false, false, [](D x) { return std::atan(x[0]); }, nullptr, nullptr},
    {"sinh", 1, false, false, [](D x) { return std::sinh(x[0]); }, nullptr, nullptr},
    {"cosh", 1, false, false, [](D x) { return std::cosh(x[0]); }, nullptr, nullptr},
    {"asinh", 1, false, false, [](D x) { return std::asinh(x[0]); }, nullptr, nullptr},
    {"acosh", 1, false, false, [](D x) { return std::acosh(x[0]); }, nullptr, nullptr},
    {"atanh", 1, false, false, [](D x) { return std::atanh(x[0]); }, nullptr, nullptr},
    {"tanh", 1, false, true, [](D x) { return std::tanh(x[0]); }, nullptr, nullptr},
    {"erf", 1, false, true, [](D x) { return std::erf(x[0]); }, nullptr, nullptr},
    // activations
    {"relu", 1, false, true, [](D x) { return nan_max(x[0], 0); },
     [](I x) { return std::max<int64_t>(x[0], 0); }, [](U x) { return x[0]; }},
    {"clamp", 3, false, true, [](D x) { return clamp(x[0], x[1], x[2]); },
     [](I x) { return std::min(std::max(x[0], x[1]), x[2]); },
     [](U x) { return std::min(std::max(x[0], x[1]), x[2]); }},
    {"leaky_relu", 2, false, true, [](D x) { return x[0] < 0 ? x[0] * x[1] : x[0]; },
     [](I x) { return x[0] < 0 ? wrap(bits(x[0]) * bits(x[1])) : x[0]; }, [](U x) { return x[0]; }},
    {"sigmoid", 1, false, true, [](D x) { return sigmoid(x[0]); }, nullptr, nullptr},
    {"softplus", 1, false, true, [](D x) { return softplus(x[0]); }, nullptr, nullptr},
    {"softsign", 1, false, true, [](D x) { return x[0] / (1 + std::fabs(x[0])); }, nullptr, nullptr},
    {"elu", 2, false, true, [](D x) { return x[0] < 0 ? x[1] * std::expm1(x[0]) : x[0]; }, nullptr, nullptr},
    {"selu", 3, false, true, [](D x) { return x[2] * (x[0] <= 0 ? x[1] * std::expm1(x[0]) : x[0]); }, nullptr,
     nullptr},
    {"celu", 2, false, true,
     [](D x) { return nan_max(x[0], 0) + nan_min(x[1] * std::expm1(x[0] / x[1]), 0); }, nullptr, nullptr},
    {"hard_sigmoid", 3, false, true, [](D x) { return clamp(x[1] * x[0] + x[2], 0, 1); }, nullptr, nullptr},
    {"hard_swish", 1, false, true, [](D x) { return x[0] * clamp(x[0] / 6 + 0.5, 0, 1); }, nullptr, nullptr},
    {"silu", 1, false, true, [](D x) { return x[0] * sigmoid(x[0]); }, nullptr, nullptr},
    {"mish", 1, false, true, [](D x) { return x[0] * std::tanh(softplus(x[0])); }, nullptr, nullptr},
    {"gelu", 1, false, true, [](D x) { return 0.5 * x[0] * std::erfc(-x[0] * M_SQRT1_2); }, nullptr, nullptr},
    {"gelu_tanh", 1, false, true,
     [](D x) { return x[0] * sigmoid(2 * std::sqrt(2 / M_PI) * (x[0] + 0.044715 * x[0] * x[0] * x[0])); },
     nullptr, nullptr},
    {"thresholded_relu", 2, false, false, [](D x) { return x[0] > x[1] ? x[0] : 0; }, nullptr, nullptr},
    {"shrink", 3, false, false,
     [](D x) { return x[0] < -x[2]  ? x[0] + x[1]
                      : x[0] > x[2] ? x[0] - x[1]
                                    : 0; }, nullptr, nullptr},
    // comparisons and logic
    {"eq", 2, true, false, [](D x) { return double(x[0] == x[1]); },
     [](I x) { return int64_t{x[0] == x[1]}; }, nullptr},
    {"lt", 2, true, false, [](D x) { return double(x[0] < x[1]); }, [](I x) { return int64_t{x[0] < x[1]}; },
     [](U x) { return uint64_t{x[0] < x[1]}; }},
    {"le", 2, true, false, [](D x) { return double(x[0] <= x[1]); },
     [](I x) { return int64_t{x[0] <= x[1]}; }, [](U x) { return uint64_t{x[0] <= x[1]}; }},
    {"gt", 2, true, false, [](D x) { return double(x[0] > x[1]); }, [](I x) { return int64_t{x[0] > x[1]}; },
     [](U x) { return uint64_t{x[0] > x[1]}; }},
    {"ge", 2, true, false, [](D x) { return double(x[0] >= x[1]); },
     [](I x) { return int64_t{x[0] >= x[1]}; }, [](U x) { return uint64_t{x[0] >= x[1]}; }},
    {"logical_and", 2, true, false, nullptr, [](I x) { return int64_t{x[0] && x[1]}; }, nullptr},
    {"logical_or", 2, true, false, nullptr, [](I x) { return int64_t{x[0] || x[1]}; }, nullptr},
    {"logical_xor", 2, true, false, nullptr, [](I x) { return int64_t{(x[0] != 0) != (x[1] != 0)}; },
     nullptr},
    {"logical_not", 1, true, false, nullptr, [](I x) { return int64_t{x[0] == 0}; }, nullptr},
    {"is_nan", 1, true, false, [](D x) { return double(std::isnan(x[0])); }, nullptr, nullptr},
    {"is_positive_inf", 1, true, false, [](D x) { return double(std::isinf(x[0]) && x[0] > 0); }, nullptr,
     nullptr},
    {"is_negative_inf", 1, true, false, [](D x) { return double(std::isinf(x[0]) && x[0] < 0); }, nullptr,
     nullptr},
    // select(c, a, b): c is bool; see expr.cpp, which passes it as a 0 or 1 of the other arguments' type
    {"select", 3, false, false, [](D x) { return x[0] != 0 ? x[1] : x[2]; },
     [](I x) { return x[0] != 0 ? x[1] : x[2]; }, nullptr},
    // bits
    {"bit_and", 2, false, false, nullptr, [](I x) { return x[0] & x[1]; }, nullptr},
    {"bit_or", 2, false, false, nullptr, [](I x) { return x[0] | x[1]; }, nullptr},
    {"bit_xor", 2, false, false, nullptr, [](I x) { return x[0] ^ x[1]; }, nullptr},
    {"bit_not", 1, false, false, nullptr, [](I x) { return ~x[0]; }, nullptr},
    {"shift_left", 2, false, false, nullptr, [](I x) { return shift_left(x[0], x[1]); },
     [](U x) { return x[1] > 63 ? 0 : x[0] << x[1]; }},
    {"shift_right", 2, false, false, nullptr, [](I x) { return shift_right(x[0], x[1]); },
     [](U x) { return x[1] > 63 ? 0 : x[0] >> x[1]; }},
};

}  // namespace

const std::vector<ScalarFn>& scalar_fns() {
  static const std::vector<ScalarFn> all(std::begin(kTable), std::end(kTable));
  return all;
}

const ScalarFn* scalar_fn(std::string_view name) {
  for (const ScalarFn& f : kTable)
    if (name == f.name) return &f;
  bug(__FILE__, __LINE__, "no scalar function named " + std::string(name));
}

}  // namespace sinter
