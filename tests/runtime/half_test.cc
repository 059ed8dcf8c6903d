// float16 and bfloat16: all 65,536 values there and back, and rounding against a slow exact reference.
#include "sinter/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sinter {
namespace {

TEST(Half, EveryValueIsExactAndReturns) {
  for (uint32_t b = 0; b < 65536; b++) {
    const half h = {static_cast<uint16_t>(b)};
    const float x = to_float(h);
    const int exponent = static_cast<int>(b >> 10 & 31), fraction = static_cast<int>(b & 1023);
    const double sign = (b & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(x), fraction != 0);
      EXPECT_EQ(std::isinf(x), fraction == 0);
      EXPECT_EQ(std::signbit(x), sign < 0);
      EXPECT_EQ(to_half(x).bits, fraction == 0 ? b : (b | 0x200u));
      continue;
    }
    const double want =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    EXPECT_EQ(static_cast<double>(x), sign * want) << b;
    EXPECT_EQ(std::signbit(x), sign < 0) << b;
    EXPECT_EQ(to_half(x).bits, b);
  }
}

// The half nearest to x >= 0, ties to even, 2^16 standing for infinity: from the neighbours below and above.
uint16_t nearest_half(double x) {
  uint16_t below = 0, above = 0x7c00;
  auto value = [](uint16_t b) { return b == 0x7c00 ? 65536.0 : static_cast<double>(to_float(half{b})); };
  while (above - below > 1) {
    const uint16_t middle = static_cast<uint16_t>((below + above) / 2);
    (value(middle) <= x ? below : above) = middle;
  }
  const double down = x - value(below), up = value(above) - x;
  if (down == up) return below % 2 == 0 ? below : above;
  return down < up ? below : above;
}

TEST(Half, RoundsToNearestEven) {
  for (uint64_t u = 0; u < 0x7f800000; u += 10007) {
    const uint32_t b = static_cast<uint32_t>(u);
    float x;
    std::memcpy(&x, &b, sizeof x);
    ASSERT_EQ(to_half(x).bits, nearest_half(static_cast<double>(x))) << x;
    ASSERT_EQ(to_half(-x).bits, nearest_half(static_cast<double>(x)) | 0x8000) << x;
  }
  // Exactly between two neighbours, and one float on either side.
  for (uint16_t h = 0; h < 0x7c00; h++) {
    const double next =
        h + 1 == 0x7c00 ? 65536.0 : static_cast<double>(to_float(half{static_cast<uint16_t>(h + 1)}));
    const float tie = static_cast<float>((static_cast<double>(to_float(half{h})) + next) / 2);
    for (float x : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 1e9f)}) {
      ASSERT_EQ(to_half(x).bits, nearest_half(static_cast<double>(x))) << x;
    }
  }
  EXPECT_EQ(to_half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_half(3e38f).bits, 0x7c00);
  EXPECT_EQ(to_half(0x1p-25f).bits, 0);
  EXPECT_EQ(to_half(0x1.000002p-25f).bits, 1);
}

TEST(Bfloat16, EveryValueReturnsAndRoundsToNearestEven) {
  for (uint32_t b = 0; b < 65536; b++) {
    const float x = to_float(bfloat16{static_cast<uint16_t>(b)});
    EXPECT_EQ(to_bfloat16(x).bits, std::isnan(x) ? (b | 0x40u) : b);
    if (std::isnan(x) || std::isinf(x)) continue;
    auto with_low_bits = [&](uint32_t low) {
      const uint32_t u = b << 16 | low;
      float y;
      std::memcpy(&y, &u, sizeof y);
      return to_bfloat16(y).bits;
    };
    EXPECT_EQ(with_low_bits(0x7fff), b);
    EXPECT_EQ(with_low_bits(0x8000), b + b % 2);
    EXPECT_EQ(with_low_bits(0x8001), b + 1);
  }
  const uint32_t signalling = 0x7f800001;
  float x;
  std::memcpy(&x, &signalling, sizeof x);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(x))));
  EXPECT_TRUE(std::isnan(to_float(to_half(x))));
}

}  // namespace
}  // namespace sinter
