// Reductions: every fold over rows, columns and both, tails, symbolic extents, every element type.
#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

const char* const kFolds[] = {"ReduceSum",       "ReduceMean",     "ReduceMax", "ReduceMin",
                              "ReduceProd",      "ReduceL1",       "ReduceL2",  "ReduceLogSum",
                              "ReduceLogSumExp", "ReduceSumSquare"};

void positive(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, 0.5 + static_cast<double>(random() % 1000) / 1000);
}
// Infinities and NaN among ordinary numbers, for what must survive a reduction.
void wild(Tensor& t, std::mt19937& random) {
  random_fill(t, random);
  const double special[] = {INFINITY, -INFINITY, NAN};
  for (int64_t i = 0; i < t.size(); ++i)
    if (random() % 40 == 0) t.set_real(i, special[random() % 3]);
}

void add_folds(GeneratedBatch& batch) {
  for (const char* op : kFolds) {
    const Fill fill = op == std::string("ReduceLogSum") ? positive : random_fill;
    Sheet s;
    const Dim n = s.symbol("i", 1, 70);
    const auto reduce = [&](Shape shape, const Ints& axes, int64_t keep) {
      s.add(op, {floats(std::move(shape), fill), constant(Tensor::of(axes))}, {{"keepdims", keep}});
    };
    for (int64_t width : {1, 3, 16, 49, 64, 150}) reduce({3, width}, {1}, 1);  // rows
    for (int64_t width : {2, 5, 16, 35, 131}) reduce({2, 4, width}, {1}, 0);   // columns
    for (int64_t count : {103, 104}) reduce({2, count, 333}, {1}, 0);          // beyond the cache
    reduce({2, 3, 4, 5}, {0, 2}, 1);
    reduce({2, 3, 4, 5}, {1, 3}, 0);
    reduce({2, 3, 4, 5}, {0, 1, 2, 3}, 0);
    reduce({n, 7}, {0}, 1);
    reduce({2, n}, {-1}, 0);
    reduce({2, n, 3, n}, {1, 2}, 0);
    s.into(batch, op, {{{"i", 1}}, {{"i", 70}}, {{"i", 19}}}, {2e-4, 2e-5});
  }
}

TEST(Reduce, FoldsOnAvx512) {
  GeneratedBatch batch;
  add_folds(batch);
  expect_good(batch.run(target("avx512")));
}
TEST(Reduce, FoldsOnAarch64) {
  GeneratedBatch batch;
  add_folds(batch);
  expect_good(batch.run(target("aarch64")));
}
TEST(Reduce, FoldsWithSanitizers) {
  GeneratedBatch batch;
  add_folds(batch);
  expect_good(batch.run(target("avx2"), {.sanitize = true}));
}

void add_special(GeneratedBatch& batch) {
  Sheet s;
  for (const char* op : {"ReduceMax", "ReduceMin", "ReduceSum", "ReduceLogSumExp"}) {
    s.add(op, {floats({30, 75}, wild), constant(Tensor::of(Ints{1}))});
    s.add(op, {floats({30, 75}, wild), constant(Tensor::of(Ints{0}))});
  }
  // Nothing to reduce, and empty sets.
  s.add("ReduceSum", {floats({3, 4}), constant(Tensor::of(Ints{}))}, {{"noop_with_empty_axes", int64_t{1}}});
  s.add("ReduceSumSquare", {floats({3, 4}), constant(Tensor::of(Ints{}))},
        {{"noop_with_empty_axes", int64_t{1}}});
  s.add("ReduceSum", {floats({3, 4})});
  s.add("ReduceMax", {floats({})});
  for (const char* op :
       {"ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceMean", "ReduceLogSumExp"}) {
    s.add(op, {floats({2, 0, 3}), constant(Tensor::of(Ints{1}))});
    s.add(op, {floats({2, 3, 0}), constant(Tensor::of(Ints{2}))});
  }
  s.into(batch, "special");
  Sheet types;
  for (DType t : {DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI64, DType::kU32, DType::kU64})
    for (const char* op : kFolds) {
      const bool logarithm = std::string(op).find("Log") != std::string::npos;
      if (logarithm && !is_float(t)) continue;
      const Fill fill = op == std::string("ReduceLogSum") || is_unsigned(t) ? Fill(positive) : random_fill;
      types.add(op,
                {values(t, {3, 4, 5}, is_unsigned(t) ? random_fill : fill), constant(Tensor::of(Ints{1}))});
      types.add(op, {values(t, {6, 5}, is_unsigned(t) ? random_fill : fill), constant(Tensor::of(Ints{-1}))});
    }
  for (DType t : {DType::kI8, DType::kU8, DType::kBool})
    for (const char* op : {"ReduceMax", "ReduceMin"})
      types.add(op, {values(t, {3, 7}), constant(Tensor::of(Ints{-1}))});
  types.into(batch, "types");
}
TEST(Reduce, SpecialValuesAndTypes) {
  GeneratedBatch batch;
  add_special(batch);
  expect_good(batch.run(target("avx512")), "avx512");
  expect_good(batch.run(target("scalar")), "scalar");
  expect_good(batch.run(target("avx2"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("aarch64")), "aarch64");
}

TEST(Reduce, OtherCompilersAndTargets) {
  GeneratedBatch batch;
  add_folds(batch);
  expect_good(batch.run(target("avx512"), {.clang = true}), "clang");
  expect_good(batch.run(target("x86-64-v2")), "x86-64-v2");
  expect_good(batch.run(target("scalar")), "scalar");
}

}  // namespace
}  // namespace sinter
