// Every word of simd_half.h against doubles rounded once: all halves for words of one operand, triples of
// chosen ones and seeded random ones for the others; tails never touch what is not theirs.

// clang-format off
#include <gtest/gtest.h>
#include "sinter/half_arithmetic.h"
#include "simd_isa.h"
#include "half_reference.h"
// clang-format on

namespace isa = sinter::SINTER_ISA;
using isa::f16v;
using isa::kHalfLanes;
using sinter::half;

namespace {

std::vector<half> all_halves() {
  std::vector<half> h(65536);
  for (size_t i = 0; i < h.size(); i++) h[i].bits = static_cast<uint16_t>(i);
  return h;
}

template <class Word, class Want>
void check_one(const char* name, Word word, Want want) {
  const std::vector<half> x = all_halves();
  int failures = 0;
  for (size_t i = 0; i < x.size() && failures < 5; i += kHalfLanes) {
    half got[kHalfLanes];
    isa::store(got, word(isa::load<f16v>(&x[i])));
    for (size_t l = 0; l < kHalfLanes; l++)
      if (!same_value(value(got[l]), want(value(x[i + l])))) {
        ADD_FAILURE() << name << "(" << value(x[i + l]) << ") = " << value(got[l]) << ", not "
                      << want(value(x[i + l]));
        failures++;
      }
  }
}
#define CHECK_ONE(WORD, WANT) \
  check_one(                  \
      #WORD, [](f16v a) { return WORD; }, [](double a) -> double { return WANT; })

TEST(HalfWords, OfOne) {
  CHECK_ONE(isa::neg(a), -a);
  CHECK_ONE(isa::abs(a), std::fabs(a));
  CHECK_ONE(isa::sqrt(a), nearest_half(std::sqrt(a)));
  CHECK_ONE(isa::floor(a), std::floor(a));
  CHECK_ONE(isa::ceil(a), std::ceil(a));
  CHECK_ONE(isa::trunc(a), std::trunc(a));
  CHECK_ONE(isa::round(a), std::nearbyint(a));
  CHECK_ONE(isa::half_bits(isa::bits(a)), a);
  CHECK_ONE(isa::narrow(isa::widen_lanes(a)), a);
  CHECK_ONE(isa::in_floats(a, [](auto v) { return isa::mul(v, isa::splat(3.0f)); }), nearest_half(3 * a));
}

// 1 / x to 8 bits; what it is exactly is the architecture's, bit by bit the same here and in the instruction:
// these were computed by hand from its pseudocode.
TEST(HalfWords, ReciprocalEstimate) {
  const std::vector<half> x = all_halves();
  for (size_t i = 0; i < x.size(); i += kHalfLanes) {
    half got[kHalfLanes];
    isa::store(got, isa::reciprocal_estimate(isa::load<f16v>(&x[i])));
    for (size_t l = 0; l < kHalfLanes; l++) {
      const double v = value(x[i + l]), r = value(got[l]);
      if (std::fabs(v) < 0x1p-16)
        ASSERT_TRUE(std::isinf(r) && std::signbit(r) == std::signbit(v)) << v;
      else if (std::isnan(v) || std::isinf(v))
        ASSERT_TRUE(std::isnan(v) ? std::isnan(r) : r == 0 && std::signbit(r) == std::signbit(v)) << v;
      else
        ASSERT_LE(std::fabs(r * v - 1), 1.0 / 256 + std::fabs(v) * 0x1p-25) << v;
    }
  }
  half one[kHalfLanes];
  isa::store(one, isa::reciprocal_estimate(isa::splat<f16v>(1.0f)));
  EXPECT_EQ(one[0].bits, 0x3bfc);  // 511 / 512: of a = 513, (2^19 / 513 + 1) / 2 = 511
  isa::store(one, isa::reciprocal_estimate(isa::splat<f16v>(3.0f)));
  EXPECT_EQ(one[0].bits, 0x3554);  // of a = 769: 341 / 1024
  isa::store(one, isa::reciprocal_estimate(isa::splat<f16v>(49152.0f)));
  EXPECT_EQ(one[0].bits, 0x0155);  // the same fraction, subnormal: 341 * 2^-24
}

const double kChosen[] = {0.0,      -0.0,    1.0,     -1.0,       0.5,      1.5,       -2.5,        0x1p-24,
                          -0x1p-24, 0x1p-14, 1023.0,  2049.0,     3e-5,     -7e-6,     65504.0,     -65504.0,
                          40000.0,  0.1,     -1234.5, 0x1.ffcp-1, HUGE_VAL, -HUGE_VAL, std::nan("")};

template <class Word, class Want>
void check_three(const char* name, Word word, Want want) {
  std::vector<half> a, b, c;
  for (double x : kChosen)
    for (double y : kChosen)
      for (double z : kChosen) {
        a.push_back(sinter::to_half(static_cast<float>(x)));
        b.push_back(sinter::to_half(static_cast<float>(y)));
        c.push_back(sinter::to_half(static_cast<float>(z)));
      }
  std::mt19937 random(1);
  while (a.size() < 200000 || a.size() % kHalfLanes != 0) {
    a.push_back({static_cast<uint16_t>(random())});
    b.push_back({static_cast<uint16_t>(random())});
    // Now and then what cancels the product, or nearly.
    const half close = sinter::to_half(static_cast<float>(-value(a.back()) * value(b.back())));
    c.push_back({static_cast<uint16_t>(random() % 2 == 0 ? random() : close.bits + random() % 3)});
  }
  int failures = 0;
  for (size_t i = 0; i < a.size() && failures < 5; i += kHalfLanes) {
    half got[kHalfLanes];
    isa::store(got, word(isa::load<f16v>(&a[i]), isa::load<f16v>(&b[i]), isa::load<f16v>(&c[i])));
    for (size_t l = 0; l < kHalfLanes; l++) {
      const double x = value(a[i + l]), y = value(b[i + l]), z = value(c[i + l]), expected = want(x, y, z);
      if (!same_value(value(got[l]), expected)) {
        ADD_FAILURE() << name << "(" << x << ", " << y << ", " << z << ") = " << value(got[l]) << ", not "
                      << expected;
        failures++;
      }
    }
  }
}
#define CHECK_THREE(WORD, WANT)                                                      \
  check_three(                                                                       \
      #WORD, [](f16v a, f16v b, f16v c) { return (void)a, (void)b, (void)c, WORD; }, \
      [](double a, double b, double c) -> double { return (void)a, (void)b, (void)c, WANT; })

double less_of(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}

TEST(HalfWords, Arithmetic) {
  CHECK_THREE(isa::add(a, b), nearest_half(a + b));
  CHECK_THREE(isa::sub(a, b), nearest_half(a - b));
  CHECK_THREE(isa::mul(a, b), nearest_half(a * b));
  CHECK_THREE(isa::div(a, b), nearest_half(a / b));
  CHECK_THREE(isa::fma(a, b, c), nearest_half(a * b + c));
  CHECK_THREE(isa::fnma(a, b, c), nearest_half(c - a * b));
  CHECK_THREE(isa::min(a, b), less_of(a, b));
  CHECK_THREE(isa::max(a, b), -less_of(-a, -b));
  CHECK_THREE(isa::min_nan(a, b), less_of(a, b));
  CHECK_THREE(isa::max_nan(a, b), -less_of(-a, -b));
  CHECK_THREE(isa::reciprocal_step(a, b),
              (std::isinf(a) && b == 0) || (std::isinf(b) && a == 0) ? 2.0 : nearest_half(2 - a * b));
}

TEST(HalfWords, Compare) {
  CHECK_THREE(isa::select(isa::lt(a, b), b, c), a < b ? b : c);
  CHECK_THREE(isa::select(isa::le(a, b), b, c), a <= b ? b : c);
  CHECK_THREE(isa::select(isa::gt(a, b), b, c), a > b ? b : c);
  CHECK_THREE(isa::select(isa::ge(a, b), b, c), a >= b ? b : c);
  CHECK_THREE(isa::select(isa::eq(a, b), b, c), a == b ? b : c);
  CHECK_THREE(isa::select(isa::ne(a, b), b, c), a != b ? b : c);
  CHECK_THREE(isa::select(isa::mask_and(isa::lt(a, b), isa::lt(b, c)), a, c), a < b && b < c ? a : c);
  CHECK_THREE(isa::select(isa::mask_or(isa::lt(a, b), isa::lt(b, c)), a, c), a < b || b < c ? a : c);
  CHECK_THREE(isa::select(isa::mask_not(isa::lt(a, b)), a, c), a < b ? c : a);
  for (int at = 0; at < kHalfLanes; at++) {
    half x[kHalfLanes] = {};
    x[at].bits = 0x3c00;
    const isa::m16v one = isa::gt(isa::load<f16v>(x), isa::zero<f16v>());
    EXPECT_TRUE(isa::any(one));
    EXPECT_FALSE(isa::all(one));
    EXPECT_TRUE(isa::any(isa::mask_not(one)));
  }
  EXPECT_TRUE(isa::all(isa::eq(isa::zero<f16v>(), isa::zero<f16v>())));
  EXPECT_FALSE(isa::any(isa::ne(isa::zero<f16v>(), isa::zero<f16v>())));
}

TEST(HalfWords, Integers) {
  using isa::i16v;
  const auto lane = [](i16v v, int l) {
    half h[kHalfLanes];
    isa::store(h, isa::half_bits(v));
    return static_cast<int16_t>(h[l].bits);
  };
  std::mt19937 random(2);
  for (int i = 0; i < 2000; i++) {
    half x[kHalfLanes], y[kHalfLanes];
    for (int l = 0; l < kHalfLanes; l++)
      x[l].bits = static_cast<uint16_t>(random()), y[l].bits = static_cast<uint16_t>(random());
    const i16v a = isa::bits(isa::load<f16v>(x)), b = isa::bits(isa::load<f16v>(y));
    for (int l = 0; l < kHalfLanes; l++) {
      const auto p = static_cast<int16_t>(x[l].bits), q = static_cast<int16_t>(y[l].bits);
      ASSERT_EQ(lane(isa::add(a, b), l), static_cast<int16_t>(p + q));
      ASSERT_EQ(lane(isa::sub(a, b), l), static_cast<int16_t>(p - q));
      ASSERT_EQ(lane(isa::bit_and(a, b), l), static_cast<int16_t>(p & q));
      ASSERT_EQ(lane(isa::bit_or(a, b), l), static_cast<int16_t>(p | q));
      ASSERT_EQ(lane(isa::shift_left<10>(a), l), static_cast<int16_t>(static_cast<unsigned>(p) << 10));
      ASSERT_EQ(lane(isa::shift_right<3>(a), l), static_cast<int16_t>(p >> 3));
      ASSERT_EQ(lane(isa::splat_int<i16v>(p), l), p);
    }
  }
}

TEST(HalfWords, Splat) {
  for (float f : {0.0f, -0.0f, 1.0f, 0.1f, 65503.0f, 65519.9f, 65520.0f, -1e9f, 1e-5f, 2.9e-8f, 3e-8f}) {
    half h[kHalfLanes];
    isa::store(h, isa::splat<f16v>(f));
    for (half x : h) EXPECT_TRUE(same_value(value(x), nearest_half(static_cast<double>(f)))) << f;
  }
  half h[kHalfLanes];
  isa::store(h, isa::splat<f16v>(half{0x1234}));
  for (half x : h) EXPECT_EQ(x.bits, 0x1234);
}

// Memory of just the length named: AddressSanitizer finds a touch beyond it, and what lies behind stays.
TEST(HalfWords, Tails) {
  for (int n = 0; n <= kHalfLanes; n++) {
    std::vector<half> from(static_cast<size_t>(n)), to(static_cast<size_t>(n)), more(16, half{0x7777});
    for (int i = 0; i < n; i++) from[static_cast<size_t>(i)].bits = static_cast<uint16_t>(0x3c00 + i);
    const f16v v = isa::load_n<f16v>(from.data(), n);
    isa::store_n(to.data(), v, n);
    isa::store_n(more.data() + 1, v, n);
    half lanes[kHalfLanes];
    isa::store(lanes, v);
    for (int i = 0; i < kHalfLanes; i++) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(lanes[i].bits, i < n ? from[at].bits : 0) << n << " lane " << i;
      if (i < n) {
        EXPECT_EQ(to[at].bits, from[at].bits);
      }
      EXPECT_EQ(more[at + 1].bits, i < n ? from[at].bits : 0x7777) << n << " lane " << i;
    }
    EXPECT_EQ(more[0].bits, 0x7777);
    if (n == 0) continue;
    isa::store_lanes(to.data(), isa::load_lanes<f16v>(from.data(), n), n);
    EXPECT_EQ(to.back().bits, from.back().bits);
  }
}

TEST(HalfWords, Floats) {
  // Sums are floats: of 65504 and 1/64 nothing is lost, nor does 8 * 65504 overflow.
  half h[kHalfLanes] = {{0x7bff}, {0x2400}, {0x7bff}, {0x7bff}, {0x7bff}, {0x7bff}, {0x7bff}, {0x7bff}};
  EXPECT_EQ(isa::hsum(isa::load<f16v>(h)), 7 * 65504.0f + 0x1p-6f);
  for (int at = 0; at < kHalfLanes; at++) {
    half x[kHalfLanes];
    for (int l = 0; l < kHalfLanes; l++) x[l].bits = static_cast<uint16_t>(0x3c00 + (l + at) % kHalfLanes);
    EXPECT_EQ(isa::hmax(isa::load<f16v>(x)), 1 + 7.0f / 1024);
    EXPECT_EQ(isa::hmin(isa::load<f16v>(x)), 1.0f);
    x[at].bits = 0x7e00;
    EXPECT_TRUE(std::isnan(isa::hmax(isa::load<f16v>(x))) && std::isnan(isa::hmin(isa::load<f16v>(x))));
    EXPECT_TRUE(std::isnan(isa::hsum(isa::load<f16v>(x))));
  }
  // Floats are rounded to halves when they are stored, a vector or two of them at a time.
  std::mt19937 random(3);
  for (int i = 0; i < 20000; i++) {
    float f[kHalfLanes];
    for (float& x : f)
      x = std::ldexp(static_cast<float>(static_cast<int>(random() % 20001) - 10000),
                     static_cast<int>(random() % 34) - 28);
    half to[kHalfLanes], pair[kHalfLanes];
    isa::Wide w;
    for (int v = 0; v < isa::kFloatVectors; v++) {
      w.part[v] = isa::load(f + v * isa::kLanes);
      isa::store(to + v * isa::kLanes, w.part[v]);
    }
    isa::store(pair, isa::narrow(w));
    for (int l = 0; l < kHalfLanes; l++) {
      ASSERT_TRUE(same_value(value(to[l]), nearest_half(static_cast<double>(f[l])))) << f[l];
      ASSERT_EQ(to[l].bits, pair[l].bits);
    }
  }
}

TEST(HalfWords, Transpose) {
  f16v r[kHalfLanes];
  for (int i = 0; i < kHalfLanes; i++) {
    half h[kHalfLanes];
    for (int j = 0; j < kHalfLanes; j++) h[j].bits = static_cast<uint16_t>(16 * i + j);
    r[i] = isa::load<f16v>(h);
  }
  isa::transpose(r);
  for (int i = 0; i < kHalfLanes; i++) {
    half h[kHalfLanes];
    isa::store(h, r[i]);
    for (int j = 0; j < kHalfLanes; j++) EXPECT_EQ(h[j].bits, 16 * j + i);
  }
}

}  // namespace

#include "sinter/simd_end.h"
