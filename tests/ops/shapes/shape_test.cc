// Shape, Size, Reshape, Flatten, Squeeze, Unsqueeze, Expand, Transpose, Tile: static and symbolic shapes,
// contents, refusals, values.
#include "ops/movement/movement_trial.h"

namespace sinter::movement_test {
namespace {

TEST(Shape, ExtentsBecomeContents) {
  Trial t("Shape");
  t.input({t.symbol("N"), 3, t.symbol("H")});
  EXPECT_EQ(t.inferred(), "int64[3]{N,3,H}");
  EXPECT_EQ(Trial("Shape").input({2, 3, 4}).set("start", int64_t{-2}).inferred(), "int64[2]{3,4}");
  EXPECT_EQ(Trial("Shape").input({2, 3, 4}).set("end", int64_t{-1}).inferred(), "int64[2]{2,3}");
  EXPECT_EQ(Trial("Shape").input({2, 3}).set("start", int64_t{9}).inferred(), "int64[0]");
  EXPECT_EQ(Trial("Shape").input({2, 3}).set("start", int64_t{1}).evaluated({iota({2, 3})}), "[1] 3");
}

TEST(Size, IsTheProduct) {
  Trial t("Size");
  t.input({t.symbol("N"), 3});
  EXPECT_EQ(t.inferred(), "int64[]{3*N}");
  EXPECT_EQ(Trial("Size").input({2, 0}).evaluated({iota({2, 0})}), "[] 0");
}

struct ReshapeCase {
  Shape in, wanted;
  int64_t allow_zero;
  std::string expected;
};
TEST(Reshape, StaticAndSymbolic) {
  Symbols symbols;
  const Dim n(symbols.fresh("N", {1, 8}, "test")), s(symbols.fresh("S", {1, 512}, "test"));
  const ReshapeCase table[] = {
      {{2, 3, 4}, {4, 6}, 0, "float32[4,6]"},
      {{2, 3, 4}, {0, -1}, 0, "float32[2,12]"},
      {{2, 3, 4}, {}, 0, "[2,3,4] reshaped to []: 24 is not 1"},
      {{1, 1}, {}, 0, "float32[]"},
      {{n, 3, 4}, {0, -1}, 0, "float32[N,12]"},
      {{n, 3, 4}, {-1, 12}, 0, "float32[N,12]"},
      {{n, 3, 4}, {n, 2, -1}, 0, "float32[N,2,6]"},
      {{n, s, 768}, {n, s, 12, 64}, 0, "float32[N,S,12,64]"},
      {{n, s, 768}, {0, 0, 12, -1}, 0, "float32[N,S,12,64]"},
      {{n, 12, s, s}, {n * 12, s, s}, 0, "float32[12*N,S,S]"},
      {{n, 12, s, s}, {-1, s, s}, 0, "float32[12*N,S,S]"},
      {{n * s, 64}, {-1, s, 64}, 0, "float32[N,S,64]"},
      {{0, 3}, {0, -1}, 0, "float32[0,3]"},
      {{0, 3}, {3, 0}, 1, "float32[3,0]"},
      {{0, 3}, {0, -1}, 1, "its shape has both 0 and -1"},
      {{2, 3}, {0, 0, 0}, 0, "extent 2 of its shape copies an axis that [2,3] lacks"},
      {{2, 3}, {-1, -1}, 0, "more than one extent of its shape is -1"},
      {{2, 3}, {-2, 3}, 0, "extent 0 of its shape is -2"},
      {{2, 3}, {4, -1}, 0, "[2,3] reshaped to [4,-1]: 6 is not 4"},
      {{0, 3}, {5, 0, -1}, 1, "its shape has both 0 and -1"},
  };
  for (const ReshapeCase& c : table) {
    Trial t("Reshape");
    t.input(c.in).dims(c.wanted).set("allowzero", c.allow_zero);
    EXPECT_EQ(t.inferred(), c.expected) << text(c.in) << " to " << text(c.wanted);
    EXPECT_EQ(t.checks(), "");
  }
}
TEST(Reshape, WhatIsNotProvedIsChecked) {
  Trial t("Reshape");
  const Dim n = t.symbol("N");
  t.input({n}).ints({-1, 3});
  EXPECT_EQ(t.inferred(), "float32[floordiv(N,3),3]");
  EXPECT_EQ(t.checks(), "N == 3*floordiv(N,3)");
}
TEST(Reshape, UnknownShape) {
  Trial t("Reshape");
  t.input({4, 6}).input(DType::kI64, {2});
  EXPECT_EQ(t.inferred(), "float32[node_extent0,node_extent1]");
  EXPECT_EQ(t.graph.symbols->find("node_extent0")->range, (Interval{0, 24}));
  EXPECT_EQ(Trial("Reshape").input({4, 6}).input(DType::kI64, {1}).inferred(), "float32[24]");
  Trial u("Reshape");
  u.input({4, 6}).input(DType::kI64, {u.symbol("R")});
  EXPECT_EQ(u.inferred(), "the number of its shape is only known at run time");
}
TEST(Reshape, ContentsPass) {
  Trial t("Reshape");
  t.dims({t.symbol("N"), 4}).ints({1, 2});
  EXPECT_EQ(t.inferred(), "int64[1,2]{N,4}");
}

TEST(Flatten, Axis) {
  Trial t("Flatten");
  t.input({t.symbol("N"), 3, 4});
  EXPECT_EQ(t.inferred(), "float32[N,12]");
  EXPECT_EQ(Trial("Flatten").input({2, 3, 4}).set("axis", int64_t{0}).inferred(), "float32[1,24]");
  EXPECT_EQ(Trial("Flatten").input({2, 3, 4}).set("axis", int64_t{-1}).inferred(), "float32[6,4]");
  EXPECT_EQ(Trial("Flatten").input({2, 3}).set("axis", int64_t{3}).inferred(),
            "axis 3 out of range for [2,3]");
}

TEST(Squeeze, Axes) {
  EXPECT_EQ(Trial("Squeeze").input({1, 3, 1}).inferred(), "float32[3]");
  EXPECT_EQ(Trial("Squeeze").input({1, 3, 1}).ints({-1}).inferred(), "float32[1,3]");
  EXPECT_EQ(Trial("Squeeze").input({2, 3}).ints({0}).inferred(), "squeezed axis 0: 2 is not 1");
  EXPECT_EQ(Trial("Squeeze").input({1, 3}).ints({2}).inferred(), "axis 2 out of range for 2 axes");
  EXPECT_EQ(Trial("Squeeze").input({1, 3}).ints({0, -2}).inferred(), "axis 0 is given twice");
  EXPECT_EQ(Trial("Squeeze").input({1, 3}).input(DType::kI64, {1}).inferred(), "float32[node_extent0]");
  Trial t("Squeeze");
  t.dims({t.symbol("N")}).ints({0});
  EXPECT_EQ(t.inferred(), "int64[]{N}");
  Trial u("Squeeze");
  u.input({u.symbol("N"), 1});
  EXPECT_EQ(u.inferred(), "float32[N]");
  EXPECT_EQ(u.checks(), "max(2,N) == N");
}

TEST(Unsqueeze, Axes) {
  EXPECT_EQ(Trial("Unsqueeze").input({3, 4}).ints({0, -1}).inferred(), "float32[1,3,4,1]");
  EXPECT_EQ(Trial("Unsqueeze").input({3, 4}).ints({3, 1}).inferred(), "float32[3,1,4,1]");
  EXPECT_EQ(Trial("Unsqueeze").input({3}).ints({0, 0}).inferred(), "axis 0 is given twice");
  EXPECT_EQ(Trial("Unsqueeze").input({3}).ints({2}).inferred(), "axis 2 out of range for 2 axes");
  Trial t("Unsqueeze");
  t.dims({t.symbol("N")}, true).ints({0});
  EXPECT_EQ(t.inferred(), "int64[1]{N}");
}

TEST(Expand, Broadcasts) {
  Trial t("Expand");
  const Dim n = t.symbol("N");
  t.input({3, 1}).dims({n, 1, 4});
  EXPECT_EQ(t.inferred(), "float32[N,3,4]");
  EXPECT_EQ(Trial("Expand").input({3, 2}).ints({4}).inferred(), "shapes do not broadcast: [3,2] and [4]");
  EXPECT_EQ(Trial("Expand").input({3}).ints({-1}).inferred(), "its shape has the negative extent -1");
  EXPECT_EQ(Trial("Expand").input({3}).input(DType::kI64, {2}).inferred(),
            "its shape is only known at run time: give it with --const \"b\"=..., or bound it with --dim "
            "\"b<=MAX\"");
  EXPECT_EQ(Trial("Expand").input({3}).input(DType::kF32, {2}).inferred(),
            "shape of type float32: integers are needed");
  EXPECT_EQ(Trial("Expand").input({2, 1}).ints({2, 1, 3}).evaluated({iota({2, 1})}),
            "[2,2,3] 0 0 0 1 1 1 0 0 0 1 1 1");
  Trial u("Expand");
  u.dims({u.symbol("M")}).ints({3});
  EXPECT_EQ(u.inferred(), "int64[3]{M,M,M}");
}

TEST(Transpose, Permutes) {
  Trial t("Transpose");
  t.input({t.symbol("N"), 3, 4}).set("perm", std::vector<int64_t>{0, 2, 1});
  EXPECT_EQ(t.inferred(), "float32[N,4,3]");
  EXPECT_EQ(Trial("Transpose").input({2, 3}).evaluated({iota({2, 3})}), "[3,2] 0 3 1 4 2 5");
  EXPECT_EQ(Trial("Transpose").input({}).evaluated({iota({})}), "[] 0");
  EXPECT_EQ(Trial("Transpose").input({0, 3}).evaluated({iota({0, 3})}), "[3,0]");
  for (const std::vector<int64_t>& bad : {std::vector<int64_t>{0}, {0, 0}, {0, 2}, {-1, 0}})
    EXPECT_EQ(Trial("Transpose").input({2, 3}).set("perm", bad).inferred(),
              "perm is no permutation of the axes of [2,3]");
  // Every permutation of four axes against the plain definition.
  std::vector<int64_t> perm{0, 1, 2, 3};
  const Tensor in = iota({2, 3, 4, 5}, DType::kI16);
  do {
    Trial p("Transpose");
    p.input(DType::kI16, {2, 3, 4, 5}).set("perm", perm);
    EXPECT_TRUE(evaluate(p.node(), {in})[0].same_bits(in.transposed(perm)));
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Tile, Repeats) {
  Trial t("Tile");
  t.input({t.symbol("N"), 3}).dims({2, t.symbol("R")});
  EXPECT_EQ(t.inferred(), "float32[2*N,3*R]");
  EXPECT_EQ(Trial("Tile").input({1, 2}).ints({2, 2}).evaluated({iota({1, 2})}), "[2,4] 0 1 0 1 0 1 0 1");
  EXPECT_EQ(Trial("Tile").input({2}).ints({0}).evaluated({iota({2})}), "[0]");
  EXPECT_EQ(Trial("Tile").input({2}).ints({-1}).inferred(), "axis 0 is repeated -1 times");
  EXPECT_EQ(Trial("Tile").input({2}).ints({1, 1}).inferred(), "2 repeats for [2]");
  EXPECT_EQ(Trial("Tile").input({2}).input(DType::kI64, {1}).inferred(),
            "its repeats are only known at run time: give them with --const \"b\"=..., or bound them with "
            "--dim \"b<=MAX\"");
  Trial u("Tile");
  u.dims({u.symbol("M"), 4}).ints({2});
  EXPECT_EQ(u.inferred(), "int64[4]{M,4,M,4}");
}

}  // namespace
}  // namespace sinter::movement_test
