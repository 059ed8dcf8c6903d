// math.h against the C library in double: the ULP bounds that its comment states, over all exponents and
// densely over the interesting range; vector and float give the same bits; special values.

// clang-format off
#include "simd_isa.h"  // first: it chooses the instruction set
#include "sinter/math.h"
#if defined(SINTER_ISA_AVX512)
#include "sinter/attention_beside.h"
#endif
// clang-format on

namespace isa = sinter::SINTER_ISA;
using isa::f32v;
using isa::kLanes;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kSmallestNormal = 0x1p-126;

// Distance of y from the exact result, in units of the last place of a float of that size.
double ulps(float y, double exact) {
  if (std::isnan(exact)) return std::isnan(y) ? 0 : 1e30;
  if (std::isnan(y)) return 1e30;
  if (std::fabs(exact) >= 0x1.ffffffp127) return std::isinf(y) && (y > 0) == (exact > 0) ? 0 : 1e30;
  if (std::isinf(y)) return std::fabs(exact) > 0x1.fffffcp127 ? 1 : 1e30;
  const int exponent = exact == 0 ? -126 : std::max(std::ilogb(exact), -126);
  return std::fabs(static_cast<double>(y) - exact) / std::ldexp(1.0, exponent - 23);
}

// Floats of every exponent and both signs, and evenly spaced ones in [-100, 100], in [lo, hi].
std::vector<float> sweep(float lo, float hi) {
  std::vector<float> x;
  for (uint64_t u = 0; u < (uint64_t{1} << 32); u += SINTER_TEST_STEP) {
    const uint32_t b = static_cast<uint32_t>(u);
    float f;
    std::memcpy(&f, &b, sizeof f);
    if (f >= lo && f <= hi) x.push_back(f);
  }
  const int dense = 4000000 / (SINTER_TEST_STEP / 997 + 1);
  for (int i = -dense; i <= dense; i++) {
    const float f = static_cast<float>(100.0 * i / dense * (i % 3 == 0 ? 0.05 : 1.0));
    if (f >= lo && f <= hi) x.push_back(f);
  }
  while (x.size() % kLanes != 0) x.push_back(lo);
  return x;
}

struct Bound {
  double ulp = 0;            // allowed distance
  double flush = 0;          // results below this size may be off by as much
  double relative_to_x = 0;  // or an error of this times |x|
};

template <class Function, class Reference>
void check(const char* name, Function function, Reference reference, float lo, float hi, Bound bound) {
  const std::vector<float> x = sweep(lo, hi);
  double worst = 0;
  float worst_x = 0;
  int failures = 0;
  for (size_t i = 0; i < x.size(); i += kLanes) {
    float got[kLanes];
    isa::store(got, function(isa::load(&x[i])));
    for (size_t l = 0; l < kLanes; l++) {
      const float v = x[i + l], single = function(v);
      const double exact = reference(static_cast<double>(v));
      ASSERT_EQ(isa::bits(single), isa::bits(got[l])) << name << "(" << v << "): float and vector differ";
      const double error = std::fabs(static_cast<double>(got[l]) - exact);
      if (std::fabs(exact) < bound.flush && error <= bound.flush) continue;
      if (bound.relative_to_x > 0 && error <= bound.relative_to_x * std::fabs(static_cast<double>(v)))
        continue;
      const double u = ulps(got[l], exact);
      if (u > worst) worst = u, worst_x = v;
      if (u > bound.ulp && failures++ < 5) {
        ADD_FAILURE() << name << "(" << v << ") = " << got[l] << ", exactly " << exact << ": " << u << " ULP";
      }
    }
  }
  std::printf("%-14s %9zu values, worst %.2f ULP at %.9g\n", name, x.size(), worst,
              static_cast<double>(worst_x));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  float got[kLanes];
  for (float odd : {nan, isa::float_bits(0x7f800001), isa::float_bits(0x7fc0ffff), isa::float_bits(-1)}) {
    isa::store(got, function(isa::splat(odd)));
    EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[kLanes - 1]) && std::isnan(function(odd))) << name;
  }
}

#define CHECK_MATH(NAME, CALL, REFERENCE, LO, HI, ...)                                         \
  check(                                                                                       \
      NAME, [](auto x) { return CALL; }, [](double x) -> double { return REFERENCE; }, LO, HI, \
      Bound{__VA_ARGS__})

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

TEST(Math, Exp) {
  CHECK_MATH("exp", isa::exp(x), std::exp(x), -kInf, kInf, 2);
  CHECK_MATH("exp_nonpos", isa::exp_nonpos(x), std::exp(x), -kInf, 0.0f, 2, kSmallestNormal);
  CHECK_MATH("exp2_nonpos", isa::exp2_nonpos(x), std::exp2(x), -kInf, 0.0f, 3, kSmallestNormal);
  CHECK_MATH("expm1_nonpos", isa::expm1_nonpos(x), std::expm1(x), -kInf, 0.0f, 3);
}
TEST(Math, Log) {
  CHECK_MATH("log", isa::log(x), std::log(x), -kInf, kInf, 2);
  CHECK_MATH("log1p_unit", isa::log1p_unit(x), std::log1p(x), 0.0f, 1.0f, 3);
}
TEST(Math, Tanh) { CHECK_MATH("tanh", isa::tanh(x), std::tanh(x), -kInf, kInf, 3); }
TEST(Math, Erf) { CHECK_MATH("erf", isa::erf(x), std::erf(x), -kInf, kInf, 4); }
TEST(Math, Sigmoid) {
  CHECK_MATH("sigmoid", isa::sigmoid(x), 1 / (1 + std::exp(-x)), -kInf, kInf, 3, kSmallestNormal);
  CHECK_MATH("softplus", isa::softplus(x), x > 40 ? x : std::log1p(std::exp(x)), -kInf, kInf, 4,
             kSmallestNormal);
}
TEST(Math, Elu) {
  CHECK_MATH("elu", isa::elu(x, 0.7f), x < 0 ? std::expm1(x) * static_cast<double>(0.7f) : x, -kInf, kInf, 4);
  CHECK_MATH(
      "selu", isa::selu(x, 1.67326324f, 1.05070102f),
      static_cast<double>(1.05070102f) * (x < 0 ? std::expm1(x) * static_cast<double>(1.67326324f) : x),
      -kInf, kInf, 4);
  CHECK_MATH("celu", isa::celu(x, 2.0f), x < 0 ? std::expm1(x / 2) * 2 : x, -kInf, kInf, 4);
}
TEST(Math, Silu) {
  CHECK_MATH("silu", isa::silu(x), x < -200 ? 0 : x / (1 + std::exp(-x)), -kInf, kInf, 4,
             104 * kSmallestNormal);
  CHECK_MATH("mish", isa::mish(x), x > 40 ? x : x * std::tanh(std::log1p(std::exp(x))), -80.0f, kInf, 6);
  CHECK_MATH("mish below", isa::mish(x), std::max(x, 0.0), -kInf, -80.0f, 0, 1e-32);
}
TEST(Math, Gelu) {
  CHECK_MATH("gelu", isa::gelu(x), std::isinf(x) ? std::max(x, 0.0) : x * normal_cdf(x), -kInf, kInf, 2, 0,
             3e-7);
  CHECK_MATH("gelu_tanh", isa::gelu_tanh(x),
             std::isinf(x) ? std::max(x, 0.0)
                           : x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))),
             -kInf, kInf, 2, 0, 3e-7);
}
TEST(Math, PiecewiseLinear) {
  CHECK_MATH("relu", isa::relu(x), std::max(x, 0.0), -kInf, kInf, 0);
  CHECK_MATH("clamp", isa::clamp(x, 0.0f, 6.0f), std::min(std::max(x, 0.0), 6.0), -kInf, kInf, 0);
  CHECK_MATH("leaky_relu", isa::leaky_relu(x, 0.01f), x < 0 ? x * static_cast<double>(0.01f) : x, -kInf, kInf,
             1);
  CHECK_MATH("hard_sigmoid", isa::hard_sigmoid(x, 0.25f, 0.5f), std::min(std::max(x * 0.25 + 0.5, 0.0), 1.0),
             -kInf, kInf, 1);
  CHECK_MATH("hard_swish", isa::hard_swish(x), x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0), -1e38f, kInf, 3,
             0, 1e-7);
  CHECK_MATH("softsign", isa::softsign(x), x / (1 + std::fabs(x)), -3e38f, 3e38f, 2);
}
TEST(Math, LaneByLane) {
  CHECK_MATH("sin", isa::sin(x), std::sin(x), -1e5f, 1e5f, 1);
  CHECK_MATH("cos", isa::cos(x), std::cos(x), -1e5f, 1e5f, 1);
  CHECK_MATH("pow", isa::pow(x, isa::splat<decltype(x)>(1.7f)), std::pow(x, static_cast<double>(1.7f)), -kInf,
             kInf, 1);
}

#if defined(SINTER_ISA_AVX512)
// What attention_beside.h has in place of exp2_nonpos; of vectors only.
f32v exp2_by_table(f32v x) { return isa::detail::exp2_by_table(x, &isa::detail::kExp2Table); }
float exp2_by_table(float x) {
  float lanes[kLanes];
  isa::store(lanes, exp2_by_table(isa::splat(x)));
  return lanes[0];
}
TEST(Math, Exp2ByTable) {
  CHECK_MATH("exp2_by_table", exp2_by_table(x), std::exp2(x), -126.0f, 0.0f, 2);
  CHECK_MATH("below -126", exp2_by_table(x), std::exp2(x), -kInf, -126.0f, 2, kSmallestNormal);
  EXPECT_EQ(exp2_by_table(-kInf), 0.0f);
  EXPECT_EQ(exp2_by_table(-200.0f), 0.0f);
  for (int whole = 0; whole <= 126; whole++) {
    EXPECT_EQ(exp2_by_table(static_cast<float>(-whole)), std::ldexp(1.0f, -whole)) << -whole;
  }
  EXPECT_EQ(exp2_by_table(-0.0f), 1.0f);
}
#endif

struct Special {
  const char* name;
  float got, want;
};
TEST(Math, SpecialValues) {
  const Special table[] = {
      {"exp(-inf)", isa::exp(-kInf), 0},
      {"exp(inf)", isa::exp(kInf), kInf},
      {"exp(88.72284)", isa::exp(88.72284f), kInf},
      {"exp(0)", isa::exp(0.0f), 1},
      {"exp(-0)", isa::exp(-0.0f), 1},
      {"exp_nonpos(-inf)", isa::exp_nonpos(-kInf), 0},
      {"exp_nonpos(0)", isa::exp_nonpos(0.0f), 1},
      {"exp2_nonpos(-inf)", isa::exp2_nonpos(-kInf), 0},
      {"exp2_nonpos(0)", isa::exp2_nonpos(0.0f), 1},
      {"exp2_nonpos(-3)", isa::exp2_nonpos(-3.0f), 0.125f},
      {"expm1_nonpos(-inf)", isa::expm1_nonpos(-kInf), -1},
      {"log(0)", isa::log(0.0f), -kInf},
      {"log(-0)", isa::log(-0.0f), -kInf},
      {"log(inf)", isa::log(kInf), kInf},
      {"log(1)", isa::log(1.0f), 0},
      {"tanh(inf)", isa::tanh(kInf), 1},
      {"tanh(-inf)", isa::tanh(-kInf), -1},
      {"tanh(-0)", isa::tanh(-0.0f), -0.0f},
      {"erf(inf)", isa::erf(kInf), 1},
      {"erf(-inf)", isa::erf(-kInf), -1},
      {"erf(-0)", isa::erf(-0.0f), -0.0f},
      {"sigmoid(-inf)", isa::sigmoid(-kInf), 0},
      {"sigmoid(inf)", isa::sigmoid(kInf), 1},
      {"sigmoid(0)", isa::sigmoid(0.0f), 0.5f},
      {"softplus(inf)", isa::softplus(kInf), kInf},
      {"softplus(-inf)", isa::softplus(-kInf), 0},
      {"silu(-inf)", isa::silu(-kInf), -0.0f},
      {"silu(inf)", isa::silu(kInf), kInf},
      {"mish(inf)", isa::mish(kInf), kInf},
      {"gelu(inf)", isa::gelu(kInf), kInf},
      {"gelu_tanh(inf)", isa::gelu_tanh(kInf), kInf},
      {"elu(-0)", isa::elu(-0.0f, 1.0f), -0.0f},
      {"relu(-inf)", isa::relu(-kInf), 0},
  };
  for (const Special& s : table) {
    EXPECT_EQ(s.got, s.want) << s.name;
    EXPECT_EQ(std::signbit(s.got), std::signbit(s.want)) << s.name;
  }
  EXPECT_TRUE(std::isnan(isa::log(-1.0f)));
  EXPECT_TRUE(std::isnan(isa::log(-kInf)));
}

}  // namespace

#include "sinter/simd_end.h"
