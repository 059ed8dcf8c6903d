// Dim: canonical forms, bounds and evaluation, over a table of expressions.
#include "ir/dim.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/error.h"

namespace sinter {
namespace {

struct DimTest : testing::Test {
  Symbols symbols;
  Dim n{symbols.fresh("N", {1, 8}, "test")};
  Dim h{symbols.fresh("H", {32, 640}, "test")};
  Dim k{symbols.fresh("K", {0, Interval::kUnbounded}, "test")};
};

TEST_F(DimTest, EqualHoweverItWasBuilt) {
  EXPECT_EQ(n + n, n * 2);
  EXPECT_EQ((n + 1) * (n - 1), n * n - 1);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_EQ(floordiv(n * 4 + 6, 2), n * 2 + 3);
  EXPECT_EQ(exact_div(n * h * 3, h), n * 3);
  EXPECT_EQ(exact_div((n + 1) * (h + 2), h + 2), n + 1);
  EXPECT_EQ(min(n, 9), n);
  EXPECT_EQ(max(n, 0), n);
  EXPECT_EQ(min(n, k), min(k, n));
  EXPECT_FALSE(n == h);
}

TEST_F(DimTest, Text) {
  EXPECT_EQ((n * 2 + 1).text(), "2*N+1");
  EXPECT_EQ(min(n, 4).text(), "min(4,N)");
  EXPECT_EQ((Dim(0) - n).text(), "-N");
  EXPECT_EQ(text(Shape{n, 3, h}), "[N,3,H]");
}

TEST_F(DimTest, Bounds) {
  EXPECT_EQ((n * h).bounds(), (Interval{32, 5120}));
  EXPECT_EQ((n - h).bounds(), (Interval{-639, -24}));
  EXPECT_EQ(floordiv(h - 1, 2).bounds(), (Interval{15, 319}));
  EXPECT_EQ(min(k, 100).bounds(), (Interval{0, 100}));
  EXPECT_FALSE((k + 1).bounds().bounded());
}

// Inequalities that intervals alone don't show: what a centred crop of a padded axis needs.
TEST_F(DimTest, ProvesByCasesAndFloors) {
  const Dim padded = max(k, 20), first = floordiv(padded - k, 2);
  EXPECT_TRUE(provably_le(0, padded - k));
  EXPECT_TRUE(provably_le(0, first));
  EXPECT_TRUE(provably_le(first + k, padded));
  EXPECT_TRUE(provably_le(floordiv(k, 3) + floordiv(k, 3), k));
  EXPECT_FALSE(provably_le(first + k + 1, padded));  // k = 20
  EXPECT_FALSE(provably_le(padded, k));
  EXPECT_FALSE(provably_le(ceildiv(k, 2) + ceildiv(k, 2), k));  // k = 1
  EXPECT_FALSE(provably_le(min(k, h), n));
}

// What is called proved must hold wherever it is tried.
TEST_F(DimTest, ProofsHoldForAllSmallNumbers) {
  const std::vector<Dim> parts = {k,
                                  n,
                                  Dim(5),
                                  max(k, n),
                                  min(k, 7),
                                  k + n,
                                  n * 2 - k,
                                  max(k - n, 0),
                                  floordiv(k, 2),
                                  ceildiv(k + n, 3),
                                  mod(k, 4),
                                  h - k,
                                  floordiv(max(k, 6) - n, 2)};
  int proved = 0;
  for (const Dim& a : parts)
    for (const Dim& b : parts) {
      if (!provably_le(a, b)) continue;
      ++proved;
      for (int64_t nv = 1; nv <= 8; ++nv)
        for (int64_t kv = 0; kv <= 20; ++kv)
          for (const int64_t hv : {32, 33, 640}) {
            const auto value = [&](const Symbol& s) { return s.name == "N" ? nv : s.name == "K" ? kv : hv; };
            ASSERT_LE(a.evaluate(value), b.evaluate(value)) << a.text() << " <= " << b.text();
          }
    }
  EXPECT_GE(proved, 28);
}

// Floors of floors have one form, so that equal extents are seen as equal.
TEST_F(DimTest, NestedFloorsAreOne) {
  EXPECT_EQ(floordiv(floordiv(h + 1, 2) + 3, 5), floordiv(h + 7, 10));
  EXPECT_EQ(floordiv(floordiv(floordiv(h - 127, 64) + 2, 3) - 1, 2), floordiv(h - 191, 384));
  EXPECT_EQ(ceildiv(ceildiv(h, 2), 2), ceildiv(h, 4));
  EXPECT_EQ(ceildiv(floordiv(h, 3), 2), floordiv(h + 3, 6));
  EXPECT_EQ(floordiv(floordiv(h, 4) + k, 2), floordiv(h + k * 4, 8));
  EXPECT_EQ(floordiv(Dim(7) - floordiv(h, 2), 3), floordiv(Dim(15) - h, 6));  // the ceiling of -h/2
  EXPECT_EQ(floordiv(h * 6 + 5, 4), floordiv(h * 3 + 2, 2));
  EXPECT_EQ(floordiv(floordiv(h, 3) * 2 + 1, 4), floordiv(h, 6));
  // As two exporters write a strided convolution behind another.
  EXPECT_EQ(floordiv(floordiv(h - 3, 2) - 2, 2) + 1, floordiv(floordiv(h - 1, 2) - 3, 2) + 1);
  // A divisor that leaves what numbers hold stays nested.
  const Dim far = floordiv(floordiv(k, int64_t{1} << 40), int64_t{1} << 40);
  EXPECT_EQ(far.evaluate([](const Symbol&) { return int64_t{1} << 62; }), 0);
}

TEST_F(DimTest, EveryFormOfANestMeansTheSame) {
  std::mt19937 random(7);
  const auto from = [&](int lo, int hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  const auto floor = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); };
  int joined = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Dim d = h * from(-3, 3) + n * from(-2, 2) + from(-20, 20);
    std::vector<int64_t> steps;
    for (int step = 0; step < 4; ++step) {
      steps.push_back(from(1, 12));  // divisor, then factor, then summands
      steps.push_back(from(0, 3) == 0 ? from(-3, 3) : from(0, 1) == 0 ? -1 : 1);
      steps.push_back(from(-2, 2));
      steps.push_back(from(-9, 9));
    }
    const Dim first = d;
    for (size_t i = 0; i < steps.size(); i += 4)
      d = floordiv(d, steps[i]) * steps[i + 1] + n * steps[i + 2] + steps[i + 3];
    joined += d.text().find("floordiv") == d.text().rfind("floordiv");
    for (const int64_t nv : {1, 2, 7, 8})
      for (const int64_t hv : {32, 33, 47, 64, 101, 639, 640}) {
        const auto value = [&](const Symbol& s) { return s.name == "N" ? nv : hv; };
        int64_t want = first.evaluate(value);
        for (size_t i = 0; i < steps.size(); i += 4)
          want = floor(want, steps[i]) * steps[i + 1] + nv * steps[i + 2] + steps[i + 3];
        ASSERT_EQ(d.evaluate(value), want) << d.text() << " N=" << nv << " H=" << hv;
        ASSERT_LE(d.lo(), want) << d.text();
        ASSERT_GE(d.hi(), want) << d.text();
      }
  }
  EXPECT_GE(joined, 200);
}

// What Resize makes of an extent: the product is rounded to float first.
TEST_F(DimTest, ScalesAsFloatsDo) {
  for (const float scale : {1.3f, 0.1f, 0.703125f, 300.0f, 1 / 3.0f, 1.0f}) {
    const Dim d = scaled_extent(h, scale);
    for (int64_t v = 32; v <= 640; ++v) {
      const auto want = static_cast<int64_t>(static_cast<float>(v) * scale);
      ASSERT_EQ(d.evaluate([&](const Symbol&) { return v; }), want) << scale << " " << v;
      ASSERT_TRUE(d.lo() <= want && want <= d.hi());
      ASSERT_EQ(d.substitute([&](const SymbolPtr&) { return Dim(v); }), Dim(want));
    }
  }
  EXPECT_EQ(scaled_extent(h, 1.3f), scaled_extent(h, 1.3f));
  EXPECT_FALSE(scaled_extent(h, 1.3f) == scaled_extent(h, 1.4f));
  EXPECT_EQ(scaled_extent(h, 1.3f).bounds(), (Interval{41, 832}));
  EXPECT_EQ(scaled_extent(n, 0.01f), Dim(0));
  EXPECT_EQ(scaled_extent(n, 300.0f).cpp([](const Symbol& s) { return s.id; }),
            "sinter::scaled_extent(N, 300.0f)");
  EXPECT_TRUE(provably_le(scaled_extent(n, 2.5f), Dim(20)));
  EXPECT_FALSE(scaled_extent(k, 2.5f).bounds().bounded());
  EXPECT_THROW(scaled_extent(Dim(int64_t{1} << 60), 300.0f), Refusal);
}

TEST_F(DimTest, EvaluatesAndRefusesOverflow) {
  const auto value = [](const Symbol& s) { return s.name == "N" ? int64_t{3} : int64_t{65}; };
  EXPECT_EQ((floordiv(h - 1, 2) * n + 5).evaluate(value), 101);
  EXPECT_EQ(mod(h, 8).evaluate(value), 1);
  EXPECT_THROW(Dim(int64_t{1} << 62) * Dim(4), Refusal);
  EXPECT_THROW(floordiv(n, 0), Refusal);
}

TEST_F(DimTest, NamesCannotForgeExpressions) {
  const Dim forged(symbols.fresh("N*H", {1, 8}, "test"));
  EXPECT_FALSE(forged == n * h);
  const Dim twice(symbols.fresh("N", {1, 8}, "test"));
  EXPECT_FALSE(twice == n);
}

}  // namespace
}  // namespace sinter
