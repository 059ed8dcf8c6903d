// Softmax, LogSoftmax and Hardmax: rows, columns, tails, symbolic extents, epilogues, every float type.
#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

using E = Expr;

void large(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, static_cast<double>(random() % 400) - 200);
}
// Rows of minus infinity, NaN, and masked elements.
void masked(Tensor& t, std::mt19937& random) {
  random_fill(t, random);
  for (int64_t i = 0; i < t.size(); ++i)
    if (random() % 3 == 0) t.set_real(i, -INFINITY);
  if (t.size() > 40) t.set_real(40, NAN);
}

void add_sheets(GeneratedBatch& batch) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    Sheet s;
    const Dim n = s.symbol("N", 1, 67);
    const auto add = [&](Shape shape, int64_t axis, const Fill& fill = random_fill) {
      s.add(op, {floats(std::move(shape), fill)}, {{"axis", axis}});
    };
    for (int64_t width : {1, 3, 8, 16, 31, 64, 133}) add({3, width}, -1);
    for (int64_t width : {1, 5, 16, 47}) add({2, 6, width}, 1);
    for (int64_t width : {1, 2, 3, 8, 9}) add({37, width}, -1);  // short rows
    add({37, 2}, -1, large);
    add({53, 5}, -1, masked);
    add({n, 5}, 1);
    add({n, 5}, 0);
    add({2, n}, 1);
    add({2, 3, n}, 1);
    add({4, 50}, -1, large);
    add({50, 4}, 0, large);
    add({4, 20}, -1, masked);
    add({7, 33}, 0, masked);
    // Epilogues: a row of weights, a whole tensor, one number, an activation of a constant.
    const ExprPtr acc = E::accumulator(DType::kF32), in = E::input(0, DType::kF32);
    add({2, 3, 21}, -1);
    s.epilogue(E::call("mul", {acc, in}), {floats({21})});
    add({2, 3, 21}, -1);
    s.epilogue(E::call("relu", {E::call("add", {acc, in})}), {floats({2, 1, 21})});
    add({2, 3, 21}, 1);
    s.epilogue(E::call("mul", {acc, in}), {floats({2, 3, 21})});
    add({2, 3, 21}, 1);
    s.epilogue(E::call("sub", {in, acc}), {floats({3, 1})});
    add({n, 21}, 1);
    s.epilogue(E::call("mul", {acc, in}), {floats({n, 1})});
    add({37, 2}, -1);
    s.epilogue(E::call("relu", {E::call("sub", {acc, E::constant(0.25, DType::kF32)})}));
    add({37, 2}, -1);
    s.epilogue(E::call("mul", {acc, in}), {floats({37, 1})});
    add({n, 3}, -1);
    s.into(batch, op, {{{"N", 1}}, {{"N", 67}}, {{"N", 32}}});
  }
  Sheet s;
  for (DType t : {DType::kF64, DType::kF16, DType::kBF16, DType::kF32}) {
    for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
      if (t == DType::kF32 && op != std::string("Hardmax")) continue;
      s.add(op, {values(t, {3, 9})}, {{"axis", int64_t{1}}});
      s.add(op, {values(t, {3, 4, 5})}, {{"axis", int64_t{-2}}});
      s.epilogue(E::call("add", {E::accumulator(t), E::input(0, t)}), {values(t, {4, 1})});
    }
  }
  s.add("Softmax", {floats({0, 4})});
  s.into(batch, "types");
}

TEST(Softmax, Avx512) {
  GeneratedBatch batch;
  add_sheets(batch);
  expect_good(batch.run(target("avx512")));
}
TEST(Softmax, Aarch64) {
  GeneratedBatch batch;
  add_sheets(batch);
  expect_good(batch.run(target("aarch64")));
}
TEST(Softmax, Avx2WithSanitizers) {
  GeneratedBatch batch;
  add_sheets(batch);
  expect_good(batch.run(target("avx2"), {.sanitize = true}));
}
TEST(Softmax, OtherCompilersAndTargets) {
  GeneratedBatch batch;
  add_sheets(batch);
  expect_good(batch.run(target("avx512"), {.clang = true}), "clang");
  expect_good(batch.run(target("x86-64-v2")), "x86-64-v2");
  expect_good(batch.run(target("scalar")), "scalar");
}

}  // namespace
}  // namespace sinter
