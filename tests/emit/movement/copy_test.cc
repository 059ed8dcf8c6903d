// Data movement: what only moves, repeats or leaves out elements, bit by bit as the interpreter does it.
#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

const DType kSizes[] = {DType::kU8, DType::kF16, DType::kF32, DType::kI64};
const std::vector<const char*> kTargets = {"avx512", "aarch64", "avx2", "x86-64-v2", "scalar"};

// The batch on the wide and the narrow target, or on more of them.
void check(GeneratedBatch& batch, size_t targets = 2) {
  for (size_t t = 0; t < targets; ++t) {
    const auto results = batch.run(target(kTargets[t]));
    if (!results[0].skipped.empty()) continue;
    expect_good(results, kTargets[t]);
  }
}
void check_clean(GeneratedBatch& batch) {
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
}

Arg ints(const Ints& v) { return constant(Tensor::of(v)); }

TEST(Copy, TransposesOfAllShapesAndSizes) {
  GeneratedBatch batch;
  struct Case {
    Ints shape, perm;
  };
  const Case cases[] = {
      {{2, 3, 5, 7}, {0, 2, 3, 1}},
      {{2, 5, 7, 3}, {0, 3, 1, 2}},
      {{1, 1, 6, 6}, {0, 2, 3, 1}},
      {{16, 16}, {1, 0}},
      {{33, 18}, {1, 0}},
      {{20, 37}, {1, 0}},
      {{15, 5}, {1, 0}},
      {{2, 17, 3, 8}, {0, 2, 1, 3}},
      {{2, 9, 4, 24}, {0, 2, 3, 1}},
      {{3, 4, 5}, {2, 1, 0}},
      {{2, 3, 4, 5, 6}, {4, 0, 3, 1, 2}},
      {{6}, {0}},
      {{2, 40, 6, 6}, {0, 2, 3, 1}},
      {{2, 6, 6, 40}, {0, 3, 1, 2}},
      {{5, 1, 7}, {1, 2, 0}},
      // More than what stays near of what is written, and of what is read.
      {{1, 37, 50, 41}, {0, 2, 3, 1}},
      {{1, 50, 41, 37}, {0, 3, 1, 2}},
  };
  for (DType t : kSizes) {
    Sheet s;
    for (const Case& c : cases)
      s.add("Transpose", {values(t, Shape(c.shape.begin(), c.shape.end()))}, {{"perm", c.perm}});
    s.add("Transpose", {values(t, {})});
    s.into(batch, std::string("transpose_") + std::string(name_of(t)));
  }
  check(batch, 5);
  check_clean(batch);
}

// Two to four rows whose elements take turns, and back: whole vectors, what is left of them, strides between.
TEST(Copy, RowsThatTakeTurns) {
  GeneratedBatch batch;
  for (DType t : {DType::kF32, DType::kI32, DType::kI64}) {
    Sheet s;
    const Dim n = s.symbol("N", 1, 40);
    for (const int64_t k : {2, 3, 4})
      for (const int64_t length : {1, 7, 16, 35, 64}) {
        s.add("Transpose", {values(t, {3, k, length})}, {{"perm", Ints{0, 2, 1}}});
        s.add("Transpose", {values(t, {3, length, k})}, {{"perm", Ints{0, 2, 1}}});
      }
    s.add("Transpose", {values(t, {3, 2, n})}, {{"perm", Ints{0, 2, 1}}});
    s.add("Transpose", {values(t, {n, 3})}, {{"perm", Ints{1, 0}}});
    s.add("Transpose", {values(t, {2, 5, 21})}, {{"perm", Ints{1, 2, 0}}});
    s.add("Transpose", {values(t, {5, 21, 2})}, {{"perm", Ints{2, 0, 1}}});
    s.into(batch, std::string("turns_") + std::string(name_of(t)), {{{"N", 1}}, {{"N", 33}}});
  }
  check(batch, 5);
  check_clean(batch);
}

TEST(Copy, TransposesOfSymbolicShapes) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 1, 20), w = s.symbol("W", 1, 20);
  s.add("Transpose", {floats({n, 3, h, w})}, {{"perm", Ints{0, 2, 3, 1}}});
  s.add("Transpose", {floats({n, h, w, 19})}, {{"perm", Ints{0, 3, 1, 2}}});
  s.add("Transpose", {values(DType::kI32, {h, w})});
  s.add("Transpose", {values(DType::kBool, {n, h, w, 2})}, {{"perm", Ints{0, 2, 1, 3}}});
  s.into(batch, "symbolic", {{{"N", 1}, {"H", 1}, {"W", 1}}, {{"N", 3}, {"H", 20}, {"W", 17}}});
  check(batch);
  check_clean(batch);
}

TEST(Copy, Slices) {
  GeneratedBatch batch;
  for (DType t : kSizes) {
    Sheet s;
    const Dim n = s.symbol("N", 2, 9);
    s.add("Slice", {values(t, {20, 30}), ints({2, 3}), ints({18, 29})});
    s.add("Slice", {values(t, {20, 30}), ints({-1}), ints({INT64_MIN}), ints({1}), ints({-1})});
    s.add("Slice", {values(t, {20, 30}), ints({19, 1}), ints({0, 100}), ints({0, 1}), ints({-7, 2})});
    s.add("Slice", {values(t, {3, n, 5}), ints({1}), ints({INT64_MAX}), ints({1})});
    s.add("Slice", {values(t, {3, n, 5}), ints({-2}), ints({INT64_MAX}), ints({1})});
    s.add("Slice", {values(t, {3, n, 5}), ints({0}), ints({-1}), ints({1}), ints({2})});
    s.add("Slice",
          {values(t, {n, n}), ints({-1, -1}), ints({INT64_MIN, INT64_MIN}), ints({0, 1}), ints({-1, -2})});
    s.add("Slice", {values(t, {4, 4}), ints({2}), ints({2}), ints({0})});
    s.add("Slice", {values(t, {4, 4}), ints({1}), ints({4}), ints({0}), ints({INT64_MAX})});
    s.into(batch, std::string("slice_") + std::string(name_of(t)), {{{"N", 2}}, {{"N", 9}}});
  }
  check(batch);
  check_clean(batch);
}

// Columns of narrow matrices, one at a time, and columns that become such matrices; any step between.
TEST(Copy, ColumnsOfNarrowMatrices) {
  GeneratedBatch batch;
  for (DType t : kSizes) {
    Sheet s;
    const Dim n = s.symbol("N", 1, 40);
    for (int64_t width = 2; width <= 5; ++width) {
      for (int64_t c = 0; c < width; ++c)
        s.add("Slice", {values(t, {37, width}), ints({c}), ints({c + 1}), ints({1})});
      s.add("Slice", {values(t, {n, width}), ints({1}), ints({2}), ints({1})});
      s.add("Slice", {values(t, {3, n}), ints({0}), ints({INT64_MAX}), ints({1}), ints({width})});
      s.add("Slice", {values(t, {3, 50}), ints({1}), ints({47}), ints({1}), ints({width})});
      for (const Dim& rows : {Dim(33), n})
        s.add("Concat", std::vector<Arg>(static_cast<size_t>(width), values(t, {rows, 1})),
              {{"axis", int64_t{-1}}});
    }
    s.into(batch, std::string("columns_") + std::string(name_of(t)), {{{"N", 1}}, {{"N", 17}}, {{"N", 40}}});
  }
  check(batch);
  check_clean(batch);
}

Fill exactly(const Ints& v) {
  return [v](Tensor& t, std::mt19937&) {
    for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, v[static_cast<size_t>(i)]);
  };
}

TEST(Copy, SlicesByData) {
  GeneratedBatch batch;
  const Ints bounds[][3] = {{{1, 2}, {4, 7}, {1, 2}},         {{-3, 0}, {100, -1}, {1, 3}},
                            {{3, 9}, {0, -100}, {-1, -2}},    {{2, 2}, {2, 1}, {1, 1}},
                            {{0, 0}, {9, 9}, {INT64_MAX, 1}}, {{4, 8}, {-9, -9}, {INT64_MIN, -1}}};
  Sheet s;
  for (const auto& b : bounds) {
    s.add("Slice",
          {floats({5, 9, 3}), values(DType::kI64, {2}, exactly(b[0])),
           values(DType::kI64, {2}, exactly(b[1])), ints({0, 1}), values(DType::kI64, {2}, exactly(b[2]))});
  }
  s.add("Slice", {values(DType::kU8, {5, 9, 3}), values(DType::kI32, {2}, exactly({1, 1})),
                  values(DType::kI32, {2}, exactly({3, 3}))});
  s.into(batch, "slice_data");
  check(batch);
  check_clean(batch);
}

// Parts whose sizes the run decides have counts; sizes that do not fill the axis are refused.
TEST(Copy, SplitsByData) {
  GeneratedBatch batch;
  const Tensor x = random_constant(DType::kF32, {3, 8, 2});
  const auto add = [&](int64_t axis, const Ints& sizes, int status, const std::vector<bool>& wanted) {
    Sheet s;
    s.add("Split", {floats({3, 8, 2}), values(DType::kI64, {static_cast<int64_t>(sizes.size())})},
          {{"axis", axis}}, wanted);
    batch.add(fmt::format("axis {} by {}{}", axis, fmt::join(sizes, ","), wanted[0] ? "" : " but the first"),
              s.graph().clone(), {{{x, Tensor::of(sizes)}, {}, status}});
  };
  for (const Ints& good : {Ints{3, 0, 5}, Ints{8, 0, 0}, Ints{0, 0, 8}, Ints{1, 6, 1}}) {
    add(1, good, 0, {true, true, true});
    add(-2, good, 0, {false, true, true});
  }
  add(0, {2, 1}, 0, {true, true});
  add(-1, {0, 2}, 0, {true, false});
  for (const Ints& bad : {Ints{3, 0, 4}, Ints{3, 3, 3}, Ints{9, -1, 0}, Ints{-1, 8, 1}, Ints{0, 0, 0},
                          Ints{INT64_MAX, 1, INT64_MIN}, Ints{8, INT64_MAX, -INT64_MAX}})
    add(1, bad, 3, {true, true, true});
  for (const char* name : {"avx512", "aarch64"})
    if (const auto results = batch.run(target(name), {.together = 20}); results[0].skipped.empty())
      expect_good(results, name);
  expect_good(batch.run(target("host"), {.sanitize = true, .together = 20}), "sanitizers");
}

TEST(Copy, ExpandTileConcatSplit) {
  GeneratedBatch batch;
  for (DType t : kSizes) {
    Sheet s;
    const Dim n = s.symbol("N", 1, 6), m = s.symbol("M", 1, 7);
    s.add("Expand", {values(t, {3, 1}), ints({2, 1, 37})});
    s.add("Expand", {values(t, {5, 1, 4}), ints({5, 6, 1})});
    s.add("Expand", {values(t, {n, 1}), ints({1, 18})});
    s.add("Expand", {values(t, {n, m}), ints({6, 7})});
    s.add("Expand", {values(t, {}), ints({4, 5})});
    s.add("Tile", {values(t, {3, 4}), ints({2, 3})});
    s.add("Tile", {values(t, {n, 1, 4}), ints({2, 5, 1})});
    s.add("Tile", {values(t, {3, 1}), ints({1, 20})});
    s.add("Tile", {values(t, {3, 2}), ints({0, 2})});
    s.add("Concat", {values(t, {2, 3, 4}), values(t, {2, 5, 4}), values(t, {2, 1, 4})},
          {{"axis", int64_t{1}}});
    s.add("Concat", {values(t, {3, 7}), values(t, {3, 20})}, {{"axis", int64_t{-1}}});
    s.add("Concat", {values(t, {n, 3}), values(t, {m, 3}), values(t, {n, 3})}, {{"axis", int64_t{0}}});
    s.add("Concat", {values(t, {2, n, m}), values(t, {2, n, 5})}, {{"axis", int64_t{2}}});
    s.add("Concat", {values(t, {0, 3}), values(t, {4, 3})}, {{"axis", int64_t{0}}});
    s.add("Split", {values(t, {4, 9, 2}), ints({2, 3, 4})}, {{"axis", int64_t{1}}}, {true, true, true});
    s.add("Split", {values(t, {4, 9, 2}), ints({2, 3, 4})}, {{"axis", int64_t{1}}}, {false, true, true});
    s.add("Split", {values(t, {n * Dim(2), 3})}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{2}}},
          {true, true});
    s.add("Split", {values(t, {7, 3})}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{4}}},
          {true, true, true, true});
    s.into(batch, std::string("parts_") + std::string(name_of(t)),
           {{{"N", 6}, {"M", 7}}, {{"N", 1}, {"M", 1}}});
  }
  check(batch);
  check_clean(batch);
}

TEST(Copy, DepthAndSpaceInBothLayouts) {
  GeneratedBatch batch;
  for (DType t : {DType::kF32, DType::kU8}) {
    Sheet s;
    const Dim n = s.symbol("N", 1, 2), h = s.symbol("H", 1, 5);
    for (const int64_t last : {0, 1})
      for (const int64_t b : {1, 2, 3}) {
        AttributeList block = {{"blocksize", b}, {"channels_last", last}};
        AttributeList crd = block;
        crd.push_back({"mode", std::string("CRD")});
        const Dim c(2 * b * b);
        const Shape deep = last ? Shape{n, h, 7, c} : Shape{n, c, h, 7};
        const Shape wide = last ? Shape{n, h * Dim(b), 5 * b, 3} : Shape{n, 3, h * Dim(b), 5 * b};
        s.add("DepthToSpace", {values(t, deep)}, block);
        s.add("DepthToSpace", {values(t, deep)}, crd);
        s.add("SpaceToDepth", {values(t, wide)}, block);
        s.add("SpaceToDepth", {values(t, wide)}, crd);
        if (!last) continue;
        block.push_back({"wide_planes", int64_t{1}});
        crd.push_back({"wide_planes", int64_t{1}});
        const Shape planes{n, 3, h * Dim(b), 5 * b};
        s.add("DepthToSpace", {values(t, deep)}, block);
        s.add("DepthToSpace", {values(t, deep)}, crd);
        s.add("SpaceToDepth", {values(t, planes)}, block);
        s.add("SpaceToDepth", {values(t, planes)}, crd);
      }
    s.into(batch, std::string("blocks_") + std::string(name_of(t)),
           {{{"N", 1}, {"H", 1}}, {{"N", 2}, {"H", 5}}});
  }
  check(batch);
}

TEST(Copy, PadsInAllModes) {
  GeneratedBatch batch;
  for (DType t : kSizes) {
    Sheet s;
    const Dim n = s.symbol("N", 3, 9);
    const Arg seven = constant(random_constant(t, {}, 3));
    for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
      const AttributeList a = {{"mode", std::string(mode)}};
      s.add("Pad", {values(t, {2, 3, 5, 7}), ints({0, 0, 2, 3, 0, 0, 1, 4})}, a);
      s.add("Pad", {values(t, {2, 3, 5, 7}), ints({1, 0, 0, 0, 0, 2, 0, 0}), seven}, a);
      s.add("Pad", {values(t, {5, 6, 7}), ints({-1, 2, -2, 3, -1, 0}), seven}, a);
      s.add("Pad", {values(t, {n, 4, n}), ints({1, 0, -1, 2, 1, 3}), seven}, a);
      s.add("Pad", {values(t, {n, 4}), ints({2, -1}), absent(), ints({0})}, a);
      s.add("Pad", {values(t, {1, 4}), ints({2, 1}), absent(), ints({0})}, a);
      // The last rows go and nothing is added: the rows that stay are no run of the input.
      s.add("Pad", {values(t, {2, 4, 6}), ints({0, 0, 0, 0, 2, -1})}, a);
      s.add("Pad", {values(t, {3, 4}), ints({0, 0, 0, -1})}, a);
      s.add("Pad", {values(t, {6}), ints({11, 13})}, a);
      s.add("Pad", {values(t, {3, 4}), ints({0, 0, 0, 0})}, a);
    }
    s.add("Pad", {values(t, {3, 4}), ints({1, 1, 1, 1}), values(t, {})});
    s.add("Pad", {values(t, {}), ints({})});
    s.add("CenterCropPad", {values(t, {5, 8, 3}), ints({8, 5})}, {{"axes", Ints{0, 1}}});
    s.add("CenterCropPad", {values(t, {n, 6}), ints({6, 9})});
    s.add("CenterCropPad", {values(t, {4, 6}), ints({4, 5})});
    s.into(batch, std::string("pad_") + std::string(name_of(t)), {{{"N", 3}}, {{"N", 9}}});
  }
  check(batch);
  check_clean(batch);
}

TEST(Copy, DropoutAndIdentity) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 3);
  s.add("Dropout", {floats({n, 7})}, {}, {true, true});
  s.add("Dropout", {floats({3, 7})}, {}, {false, true});
  s.add("Dropout", {floats({3, 7})});
  s.into(batch, "dropout", {{{"N", 0}}, {{"N", 3}}});
  check(batch);
}

TEST(Copy, EpilogueAfterAMove) {
  GeneratedBatch batch;
  Sheet s;
  const ExprPtr relu =
      Expr::call("relu", {Expr::call("add", {Expr::accumulator(DType::kF32), Expr::input(0, DType::kF32)})});
  s.add("Transpose", {floats({2, 19, 3, 5})}, {{"perm", Ints{0, 2, 3, 1}}});
  s.epilogue(relu, {floats({19})});
  s.add("Slice", {floats({6, 40}), ints({1, 2}), ints({6, 36})});
  s.epilogue(relu, {floats({5, 1})});
  s.into(batch, "epilogue");
  check(batch);
}

}  // namespace
}  // namespace sinter
