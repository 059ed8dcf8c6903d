// TopK, running sums, Einsum, GridSample, AffineGrid, Col2Im, Det and Reshape to extents of the data, against
// the interpreter.
#include <gtest/gtest.h>

#include <limits>

#include "emit/sheet.h"

namespace sinter {
namespace {

void check(GeneratedBatch& batch) {
  for (const char* name : {"avx512", "aarch64", "scalar"}) {
    const auto results = batch.run(target(name), {.together = 4});
    if (!results[0].skipped.empty()) continue;
    expect_good(results, name);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
}

Arg ints(const Ints& v) { return constant(Tensor::of(v)); }
// Few different values, so that there are ties, and NaN.
void ties(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) {
    const uint32_t r = random() % 8;
    if (is_float(t.dtype()))
      t.set_real(i, r == 7 ? std::numeric_limits<double>::quiet_NaN() : r);
    else
      t.set_integer(i, r);
  }
}
// Positions inside, outside and nowhere.
void positions(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) {
    const uint32_t r = random() % 64;
    t.set_real(i, r == 0   ? std::numeric_limits<double>::quiet_NaN()
                  : r == 1 ? std::numeric_limits<double>::infinity()
                  : r == 2 ? -1e30
                           : static_cast<double>(random() % 3000) / 1000 - 1.5);
  }
}
Fill exactly(const Ints& v) {
  return [v](Tensor& t, std::mt19937&) {
    for (size_t i = 0; i < v.size(); ++i) t.set_integer(static_cast<int64_t>(i), v[i]);
  };
}

TEST(TopKKernel, EveryAxisOutputsAndType) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 9), m = s.symbol("M", 3, 70);
  s.add("TopK", {floats({n, m}, ties), ints({3})}, {}, {true, true});
  s.add("TopK", {floats({m, n, 5}, ties), ints({2})}, {{"axis", int64_t{0}}, {"largest", int64_t{0}}},
        {true, true});
  s.add("TopK", {floats({n, m, 5}, ties), ints({3})}, {{"axis", int64_t{1}}}, {false, true});
  s.add("TopK", {floats({n, m, 5}, ties), ints({3})}, {{"axis", int64_t{1}}}, {true});
  for (DType t : {DType::kF16, DType::kBF16, DType::kF64, DType::kI8, DType::kU16, DType::kI64})
    s.add("TopK", {values(t, {3, m}, ties), ints({3})}, {}, {true, true});
  s.into(batch, "topk", {{{"N", 0}, {"M", 3}}, {{"N", 1}, {"M", 70}}, {{"N", 9}, {"M", 33}}});
  s.add("TopK", {floats({4, 11}, ties), values(DType::kI64, {1}, exactly({7}))}, {}, {true, true});
  s.into(batch, "counted");
  s.add("TopK", {floats({4, 11}, ties), values(DType::kI64, {1}, exactly({0}))}, {}, {true, true});
  s.into(batch, "none");
  // Blocks of 16, of 16 of those and so on, that floats are searched in.
  for (const int64_t largest : {0, 1})
    for (const auto& [count, k] : {std::pair{4200, 300}, {17, 17}, {256, 9}, {257, 257}})
      s.add("TopK", {floats({2, count}, ties), ints({k})}, {{"largest", largest}}, {true, true});
  s.add("TopK", {floats({2, 300, 3}, ties), ints({80})}, {{"axis", int64_t{1}}}, {false, true});
  s.into(batch, "blocks");
  check(batch);
}

TEST(TopKKernel, RefusesCountsOutsideTheAxis) {
  GeneratedBatch batch;
  for (int64_t k : {int64_t{-1}, int64_t{12}, INT64_MIN, INT64_MAX}) {
    Sheet s;
    s.add("TopK", {floats({4, 11}), values(DType::kI64, {1})}, {}, {true, true});
    batch.add(fmt::format("k = {}", k), s.graph().clone(),
              {{{Tensor(DType::kF32, {4, 11}), Tensor::of(Ints{k})}, {}, 3}});
  }
  expect_good(batch.run(target("host")), "host");
}

TEST(CumSumKernel, AxesTypesAndDirections) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 150);
  for (int64_t axis : {0, 1, 2})
    for (int64_t how : {0, 1, 2, 3})
      s.add("CumSum", {floats({3, n, 7}), ints({axis})}, {{"exclusive", how & 1}, {"reverse", how >> 1}});
  for (DType t : {DType::kF16, DType::kBF16, DType::kF64, DType::kI32, DType::kU32, DType::kI64, DType::kU64})
    s.add("CumSum", {values(t, {5, n}), ints({0})}, {{"exclusive", int64_t{t == DType::kI32}}});
  s.add("CumProd", {values(DType::kI32, {n, 2}), ints({-2})});
  s.add("CumProd", {floats({n, 2}), ints({1})});
  s.add("CumSum", {floats({4, n}), ints({1})});
  s.epilogue(Expr::call("relu", {Expr::accumulator(DType::kF32)}));
  s.into(batch, "cumsum", {{{"N", 0}}, {{"N", 1}}, {{"N", 150}}});
  check(batch);
}

TEST(EinsumKernel, Equations) {
  const std::vector<std::pair<const char*, std::vector<Shape>>> cases = {
      {"ij,jk->ik", {{5, 37}, {37, 19}}},
      {"bij,bkj->bik", {{2, 5, 37}, {2, 6, 37}}},
      {"ij,jk->ki", {{5, 3}, {3, 19}}},
      {"ij->ji", {{5, 18}}},
      {"ij->", {{5, 18}}},
      {"ii->i", {{21, 21}}},
      {"ii", {{21, 21}}},
      {"iji->j", {{3, 20, 3}}},
      {"i,j->ij", {{17}, {33}}},
      {"i,i,i->", {{33}, {33}, {33}}},
      {"...ij,...jk->...ik", {{3, 1, 4, 5}, {2, 5, 17}}},
      {"...i,...i", {{3, 2, 33}, {1, 33}}},
      {"bhwc,hkc->bhwk", {{2, 3, 4, 24}, {3, 5, 24}}},
      {"b...->...", {{3, 4, 19}}},
      {"abcd,cd,a->bd", {{2, 3, 4, 20}, {4, 20}, {2}}},
  };
  GeneratedBatch batch;
  Sheet s;
  for (const auto& [equation, shapes] : cases)
    for (DType t : {DType::kF32, DType::kF64, DType::kI32}) {
      std::vector<Arg> args;
      for (const Shape& shape : shapes) args.push_back(values(t, shape));
      s.add("Einsum", args, {{"equation", std::string(equation)}});
    }
  s.add("Einsum", {values(DType::kF16, {3, 4}), values(DType::kF16, {4})},
        {{"equation", std::string("ij,j->i")}});
  s.add("Einsum", {floats({3, 40}), floats({40, 20})}, {{"equation", std::string("ij,jk->ik")}});
  s.epilogue(Expr::call("relu", {Expr::accumulator(DType::kF32)}));
  s.into(batch, "einsum", {{}}, {-1, 3e-5});
  const Dim n = s.symbol("N", 1, 40), m = s.symbol("M", 1, 40);
  s.add("Einsum", {floats({n, 7, m}), floats({m, 3})}, {{"equation", std::string("njm,mk->nkj")}});
  s.add("Einsum", {floats({n, m}), floats({n, 7, m})}, {{"equation", std::string("nm,njm->nj")}});
  s.add("Einsum", {floats({n, 20}), floats({m, 20})}, {{"equation", std::string("...i,...i->...")}});
  s.into(batch, "symbolic", {{{"N", 1}, {"M", 40}}, {{"N", 40}, {"M", 1}}, {{"N", 9}, {"M", 9}}}, {-1, 3e-5});
  check(batch);
}

TEST(GridSampleKernel, ModesPaddingsAndRanks) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 3), h = s.symbol("H", 1, 9);
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (int64_t align : {0, 1})
        s.add(
            "GridSample", {floats({n, 3, h, 7}), floats({n, 4, 5, 2}, positions)},
            {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}, {"align_corners", align}});
  for (const int64_t channels : {8, 21, 70}) {  // turned first, or not, where positions are few
    s.add("GridSample", {floats({n, channels, h, 7}), floats({n, 9, 5, 2}, positions)});
    s.add("GridSample", {floats({n, channels, 19, 17}), floats({n, 3, 2, 2}, positions)});
  }
  s.add("GridSample", {floats({2, 1, 9}), floats({2, h, 1}, positions)});
  s.add("GridSample", {floats({2, 2, 3, h, 5}), floats({2, 2, 2, 3, 3}, positions)},
        {{"mode", std::string("cubic")}});
  s.add("GridSample", {values(DType::kF64, {2, 2, 3, 5}), floats({2, 2, 3, 2}, positions)});
  s.add("GridSample", {values(DType::kF16, {2, 2, 3, 5}), values(DType::kF64, {2, 2, 3, 2}, positions)});
  s.add("AffineGrid", {floats({n, 2, 3}), constant(Tensor::of(Ints{2, 3, 5, 7}))});
  s.into(batch, "grid_sample", {{{"N", 2}, {"H", 1}}, {{"N", 2}, {"H", 9}}});
  for (int64_t align : {0, 1}) {
    s.add("AffineGrid", {floats({2, 2, 3}), constant(Tensor::of(Ints{2, 3, 5, 1}))},
          {{"align_corners", align}});
    s.add("AffineGrid", {values(DType::kF64, {1, 3, 4}), constant(Tensor::of(Ints{1, 3, 2, 3, 4}))},
          {{"align_corners", align}});
  }
  s.into(batch, "affine_grid");
  check(batch);
}

TEST(Col2ImKernel, Windows) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 3);
  s.add("Col2Im", {floats({n, 2 * 6, 20}), ints({5, 7}), ints({2, 3})});
  s.add("Col2Im", {floats({n, 9, 9}), ints({5, 5}), ints({3, 3})},
        {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  s.add("Col2Im", {values(DType::kF16, {2, 4, 12}), ints({5, 5}), ints({2, 2})},
        {{"dilations", Ints{1, 2}}, {"pads", Ints{0, 0, 0, 0}}});
  s.add("Col2Im", {values(DType::kI8, {1, 3 * 2, 8}), ints({10}), ints({3})});
  s.into(batch, "col2im", {{{"N", 0}}, {{"N", 3}}});
  check(batch);
}

TEST(DetKernel, Matrices) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 6);
  s.add("Det", {floats({n, 4, 4})});
  s.add("Det", {values(DType::kF64, {2, n, n})});
  s.add("Det", {values(DType::kF16, {1, 1})});
  s.add("Det", {floats({3, 3}, [](Tensor& t, std::mt19937&) {
          for (int64_t i = 0; i < 9; ++i) t.set_real(i, static_cast<double>(i % 3));
        })});
  s.into(batch, "det", {{{"N", 0}}, {{"N", 1}}, {{"N", 6}}});
  check(batch);
}

TEST(ReshapeKernel, ExtentsFromTheData) {
  GeneratedBatch batch;
  const Tensor x = random_constant(DType::kF32, {2, 3, 4});
  auto add = [&](const Ints& target, int status, int64_t allow_zero = 0) {
    Sheet s;
    s.add("Reshape", {floats({2, 3, 4}), values(DType::kI64, {static_cast<int64_t>(target.size())})},
          {{"allowzero", allow_zero}});
    batch.add(fmt::format("to {}", fmt::join(target, ",")), s.graph().clone(),
              {{{x, Tensor::of(target)}, {}, status}});
  };
  for (const Ints& good :
       {Ints{6, 4}, Ints{-1, 2}, Ints{0, -1}, Ints{2, 0, 4}, Ints{24, 1, 1, 1}, Ints{-1}, Ints{24}})
    add(good, 0);
  for (const Ints& bad : {Ints{5, 5}, Ints{-1, -1}, Ints{-2, 12}, Ints{0, 7}, Ints{5, -1}, Ints{2, 3, 4, 0},
                          Ints{INT64_MAX, INT64_MAX}, Ints{int64_t{1} << 32, int64_t{1} << 32}, Ints{7}})
    add(bad, 3);
  add({0, -1}, 3, 1);
  expect_good(batch.run(target("host"), {.together = 20}), "host");
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
}

}  // namespace
}  // namespace sinter
