// math_half.h over all 65,536 halves against the C library in double: the bounds that its comment states.

// clang-format off
#include <gtest/gtest.h>
#include "sinter/half_arithmetic.h"
#include "simd_isa.h"
#include "half_reference.h"
#include "sinter/math_half.h"
// clang-format on

namespace isa = sinter::SINTER_ISA;
using isa::f16v;
using isa::kHalfLanes;
using sinter::half;

namespace {

constexpr double kInf = HUGE_VAL;
constexpr double kSmallestNormal = 0x1p-14;

struct Bound {
  double ulp = 0;            // allowed distance
  double flush = 0;          // results below this size may be off by as much
  double relative_to_x = 0;  // or an error of this times |x|
};

template <class Function, class Reference>
void check(const char* name, Function function, Reference reference, double lo, double hi, Bound bound) {
  double worst = 0, worst_x = 0, worst_relative = 0;
  int failures = 0;
  for (unsigned i = 0; i < 65536; i += kHalfLanes) {
    half x[kHalfLanes], got[kHalfLanes];
    for (unsigned l = 0; l < kHalfLanes; l++) x[l].bits = static_cast<uint16_t>(i + l);
    isa::store(got, function(isa::load<f16v>(x)));
    for (unsigned l = 0; l < kHalfLanes; l++) {
      const double v = value(x[l]), y = value(got[l]);
      if (std::isnan(v)) {
        if (!std::isnan(y) && failures++ < 5) ADD_FAILURE() << name << "(NaN) = " << y;
        continue;
      }
      if (!(v >= lo && v <= hi)) continue;
      const double exact = reference(v), error = std::fabs(y - exact);
      if (std::fabs(exact) < bound.flush && error <= bound.flush) continue;
      if (bound.relative_to_x > 0 && std::isfinite(v)) {
        worst_relative = std::max(worst_relative, error / std::max(std::fabs(v), kSmallestNormal));
        if (error <= bound.relative_to_x * std::max(std::fabs(v), kSmallestNormal)) continue;
      }
      const double u = half_ulps(y, exact);
      if (u > worst) worst = u, worst_x = v;
      if (u > bound.ulp && failures++ < 5)
        ADD_FAILURE() << name << "(" << v << ") = " << y << ", exactly " << exact << ": " << u << " ULP";
    }
  }
  std::printf("%-12s worst %.2f ULP at %.6g; %.2e of x\n", name, worst, worst_x, worst_relative);
}

#define CHECK_MATH(NAME, CALL, REFERENCE, LO, HI, ...)                                         \
  check(                                                                                       \
      NAME, [](f16v x) { return CALL; }, [](double x) -> double { return REFERENCE; }, LO, HI, \
      Bound{__VA_ARGS__})

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

TEST(HalfMath, Exponentials) {
  CHECK_MATH("exp", isa::exp(x), std::exp(x), -kInf, kInf, 2);
  CHECK_MATH("exp_nonpos", isa::exp_nonpos(x), std::exp(x), -kInf, 0.0, 2, kSmallestNormal);
  CHECK_MATH("expm1_nonpos", isa::expm1_nonpos(x), std::expm1(x), -kInf, 0.0, 2);
  CHECK_MATH("reciprocal", isa::reciprocal(x), 1 / x, 0x1p-14, 0x1p14, 1.5);
  CHECK_MATH("reciprocal", isa::reciprocal(x), 1 / x, -0x1p14, -0x1p-14, 1.5);
}
TEST(HalfMath, Sigmoids) {
  CHECK_MATH("tanh", isa::tanh(x), std::tanh(x), -kInf, kInf, 3);
  CHECK_MATH("sigmoid", isa::sigmoid(x), 1 / (1 + std::exp(-x)), -kInf, kInf, 3, kSmallestNormal);
  CHECK_MATH("silu", isa::silu(x), x < -200 ? 0 : x / (1 + std::exp(-x)), -kInf, kInf, 4,
             11 * kSmallestNormal);
}
TEST(HalfMath, Gelu) {
  CHECK_MATH("gelu", isa::gelu(x), std::isinf(x) ? std::max(x, 0.0) : x * normal_cdf(x), -kInf, kInf, 2, 0,
             1.5e-3);
  CHECK_MATH("gelu_tanh", isa::gelu_tanh(x),
             std::isinf(x) ? std::max(x, 0.0)
                           : x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))),
             -kInf, kInf, 2, 0, 1.5e-3);
}
TEST(HalfMath, Elu) {
  CHECK_MATH("elu", isa::elu(x, 0.7f), x < 0 ? std::expm1(x) * 0.7 : x, -kInf, kInf, 4);
  CHECK_MATH("selu", isa::selu(x, 1.67326324f, 1.05070102f),
             1.05070102 * (x < 0 ? std::expm1(x) * 1.67326324 : x), -kInf, kInf, 4);
}
TEST(HalfMath, InFloats) {
  CHECK_MATH("log", isa::log(x), std::log(x), -kInf, kInf, 1);
  CHECK_MATH("erf", isa::erf(x), std::erf(x), -kInf, kInf, 1);
  CHECK_MATH("softplus", isa::softplus(x), x > 40 ? x : std::log1p(std::exp(x)), -kInf, kInf, 1);
  CHECK_MATH("mish", isa::mish(x),
             x < -200 ? 0
             : x > 40 ? x
                      : x * std::tanh(std::log1p(std::exp(x))),
             -kInf, kInf, 1);
  CHECK_MATH("celu", isa::celu(x, 2.0f), x < 0 ? std::expm1(x / 2) * 2 : x, -kInf, kInf, 1);
  CHECK_MATH("sin", isa::sin(x), std::sin(x), -65504.0, 65504.0, 1);
  CHECK_MATH("cos", isa::cos(x), std::cos(x), -65504.0, 65504.0, 1);
  CHECK_MATH("pow", isa::pow(x, isa::splat<f16v>(1.5f)), std::pow(x, 1.5), -kInf, kInf, 1);
}
TEST(HalfMath, PiecewiseLinear) {
  CHECK_MATH("relu", isa::relu(x), std::max(x, 0.0), -kInf, kInf, 0);
  CHECK_MATH("clamp", isa::clamp(x, 0.0f, 6.0f), std::min(std::max(x, 0.0), 6.0), -kInf, kInf, 0);
  CHECK_MATH("leaky_relu", isa::leaky_relu(x, 0.01f), x < 0 ? x * 0.01 : x, -kInf, kInf, 1);
  CHECK_MATH("hard_sigmoid", isa::hard_sigmoid(x, 0.25f, 0.5f), std::min(std::max(x * 0.25 + 0.5, 0.0), 1.0),
             -kInf, kInf, 1);
  CHECK_MATH("hard_swish", isa::hard_swish(x), x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0), -65504.0, kInf,
             3, 0, 1.5e-3);
  CHECK_MATH("softsign", isa::softsign(x), x / (1 + std::fabs(x)), -65504.0, 65504.0, 2);
}

}  // namespace

#include "sinter/simd_end.h"
