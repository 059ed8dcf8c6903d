// GridSample, AffineGrid, Col2Im, Det, TensorScatter.
#include "ops/movement/movement_trial.h"

namespace sinter::movement_test {
namespace {

// One row of four pixels 0 1 2 3 read at a position given in pixels.
std::string sampled(const std::string& mode, const std::string& padding, float pixel, bool align = false) {
  const float x = align ? pixel / 3 * 2 - 1 : (2 * pixel + 1) / 4 - 1;
  Trial t("GridSample");
  t.input({1, 1, 4}).input({1, 1, 1}).set("mode", mode).set("padding_mode", padding);
  t.set("align_corners", int64_t{align});
  return t.evaluated({iota({1, 1, 4}), Tensor::of({x}, {1, 1, 1})});
}
TEST(GridSample, PaddingsByHand) {
  EXPECT_EQ(sampled("linear", "zeros", 1.5f), "[1,1,1] 1.5");
  EXPECT_EQ(sampled("linear", "zeros", 3.5f), "[1,1,1] 1.5");
  EXPECT_EQ(sampled("linear", "zeros", 5.f), "[1,1,1] 0");
  EXPECT_EQ(sampled("linear", "border", 5.f), "[1,1,1] 3");
  EXPECT_EQ(sampled("linear", "border", -2.f), "[1,1,1] 0");
  EXPECT_EQ(sampled("linear", "reflection", 4.5f), "[1,1,1] 2.5");
  EXPECT_EQ(sampled("linear", "reflection", -2.5f), "[1,1,1] 1.5");
  EXPECT_EQ(sampled("linear", "reflection", 11.f), "[1,1,1] 3");  // 4 and 8 are mirrored to 3 and 0
  EXPECT_EQ(sampled("linear", "reflection", 4.5f, true), "[1,1,1] 1.5");
  EXPECT_EQ(sampled("nearest", "zeros", 0.5f), "[1,1,1] 0");  // ties to even
  EXPECT_EQ(sampled("nearest", "zeros", 1.5f), "[1,1,1] 2");
  EXPECT_EQ(sampled("cubic", "border", 1.f), "[1,1,1] 1");
  EXPECT_EQ(sampled("cubic", "border", 1.5f), "[1,1,1] 1.5");
  EXPECT_EQ(sampled("linear", "zeros", NAN), "[1,1,1] 0");
  EXPECT_EQ(sampled("cubic", "reflection", INFINITY).substr(0, 7), "[1,1,1]");
  EXPECT_EQ(sampled("nearest", "border", -INFINITY), "[1,1,1] 0");
}
TEST(GridSample, ShapesAndRefusals) {
  Trial t("GridSample");
  const Dim n = t.symbol("N"), h = t.symbol("H");
  t.input({n, 3, h, 8}).input({n, 5, h, 2});
  EXPECT_EQ(t.inferred(), "float32[N,3,5,H]");
  EXPECT_EQ(Trial("GridSample").input({1, 1, 4, 4}).input({1, 2, 2, 3}).inferred(),
            "coordinates of a position: 3 is not 2");
  EXPECT_EQ(Trial("GridSample").input({1, 1, 4, 4}).input({2, 2, 2, 2}).inferred(),
            "batch of image and grid: 1 is not 2");
  EXPECT_EQ(Trial("GridSample").input({1, 1, 0, 4}).input({1, 2, 2, 2}).inferred(),
            "extent of the image's axis 2: 1 exceeds 0");
  EXPECT_EQ(Trial("GridSample").input({1, 4}).input({1, 1}).inferred(), "an image of shape [1,4]");
  EXPECT_EQ(Trial("GridSample").input({1, 1, 4}).input({1, 1, 1}).set("mode", std::string("area")).inferred(),
            "its mode is \"area\"");
}

TEST(AffineGrid, IdentityAndShift) {
  Trial t("AffineGrid");
  t.input({1, 2, 3}).ints({1, 1, 2, 3}).set("align_corners", int64_t{1});
  const Tensor identity = Tensor::of({1.f, 0.f, 0.f, 0.f, 1.f, 0.5f}, {1, 2, 3});
  EXPECT_EQ(t.evaluated({identity}), "[1,2,3,2] -1 -0.5 0 -0.5 1 -0.5 -1 1.5 0 1.5 1 1.5");
  Trial u("AffineGrid");
  u.input({1, 2, 3}).ints({1, 1, 1, 2});
  EXPECT_EQ(u.evaluated({identity}), "[1,1,2,2] -0.5 0.5 0.5 0.5");
  Trial v("AffineGrid");
  const Dim n = v.symbol("N");
  v.input({n, 3, 4}).dims({n, 1, 4, 5, 6});
  EXPECT_EQ(v.inferred(), "float32[N,4,5,6,3]");
  EXPECT_EQ(Trial("AffineGrid").input({1, 3, 4}).ints({1, 1, 2, 2}).inferred(), "rows of theta: 3 is not 2");
  EXPECT_EQ(Trial("AffineGrid").input({1, 2, 3}).ints({1, 1, 2}).inferred(), "its size has 3 extents");
}

TEST(Col2Im, AddsOverlaps) {
  Trial t("Col2Im");
  t.input({1, 2, 3}).ints({4}).ints({2});
  EXPECT_EQ(t.evaluated({Tensor::of({1.f, 2.f, 3.f, 10.f, 20.f, 30.f}, {1, 2, 3})}), "[1,1,4] 1 12 23 30");
  Trial p("Col2Im");
  p.input(DType::kI32, {1, 2, 2}).ints({2}).ints({2}).set("strides", std::vector<int64_t>{2});
  p.set("pads", std::vector<int64_t>{1, 1});
  EXPECT_EQ(p.evaluated({iota({1, 2, 2}, DType::kI32)}), "[1,1,2] 2 1");
  Trial s("Col2Im");
  const Dim n = s.symbol("N"), h = s.symbol("H", 2);
  s.input({n, 12, (h - 1) * 4}).dims({h, 5}).ints({2, 2});
  EXPECT_EQ(s.inferred(), "float32[N,3,H,5]");
  EXPECT_EQ(s.checks(), "");
  EXPECT_EQ(Trial("Col2Im").input({1, 2, 3}).ints({5}).ints({2}).inferred(), "number of columns: 3 is not 4");
  EXPECT_EQ(Trial("Col2Im").input({1, 3, 3}).ints({4}).ints({2}).inferred(),
            "rows of the columns as whole blocks: 2 is not 3");
  EXPECT_EQ(Trial("Col2Im").input({1, 2, 3}).ints({1}).ints({2}).inferred(),
            "room for the block in axis 0: 0 exceeds -1");
  EXPECT_EQ(Trial("Col2Im").input({1, 2, 3}).ints({4}).ints({0}).inferred(), "block_shape of 0");
}

TEST(Det, Values) {
  const Tensor m = Tensor::of({0.f, 2.f, 3.f, 4.f, 1.f, 2.f, 2.f, 4.f}, {2, 2, 2});
  EXPECT_EQ(Trial("Det").input({2, 2, 2}).evaluated({m}), "[2] -6 0");
  EXPECT_EQ(Trial("Det").input({0, 0}).evaluated({iota({0, 0})}), "[] 1");
  EXPECT_EQ(Trial("Det").input({2, 3}).inferred(), "rows and columns: 2 is not 3");
  EXPECT_EQ(Trial("Det").input({2}).inferred(), "matrices are needed, not [2]");
}

TEST(TensorScatter, WritesRows) {
  auto written = [](const std::string& mode, std::vector<int64_t> at) {
    Trial t("TensorScatter");
    t.input({2, 3, 1}).input({2, 2, 1}).ints(at).set("mode", mode);
    return t.evaluated({iota({2, 3, 1}), Tensor::of({6.f, 7.f, 8.f, 9.f}, {2, 2, 1})});
  };
  EXPECT_EQ(written("linear", {0, 1}), "[2,3,1] 6 7 2 3 8 9");
  EXPECT_EQ(written("circular", {2, 0}), "[2,3,1] 7 1 6 8 9 5");
  EXPECT_EQ(written("linear", {2, 0}), "\"node\" (TensorScatter): 2 rows written from row 2 of 3 on");
  EXPECT_EQ(written("circular", {-1, 0}), "\"node\" (TensorScatter): 2 rows written from row -1 of 3 on");
  EXPECT_EQ(written("linear", {0}), "\"node\" (TensorScatter): number of write_indices: 1 is not 2");
  EXPECT_EQ(Trial("TensorScatter").input({2, 3, 1}).input({2, 4, 1}).inferred(),
            "rows of the updates: 4 exceeds 3");
  EXPECT_EQ(Trial("TensorScatter").input({2, 3}).input({2, 3}).inferred(), "its axis is the batch");
}

}  // namespace
}  // namespace sinter::movement_test
