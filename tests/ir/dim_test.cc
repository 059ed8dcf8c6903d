// Dim: canonical forms, bounds and evaluation, over a table of expressions.
#include "ir/dim.h"

#include <gtest/gtest.h>

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
