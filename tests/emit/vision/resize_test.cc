// Resize of pictures in planes as generated code against the interpreter: rows are blended first, then
// resized, then finished.
#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

Arg scales(std::vector<float> v) {
  const auto n = static_cast<int64_t>(v.size());
  return constant(Tensor::of(std::move(v), {n}));
}

TEST(ResizeKernel, RowsOfPlanes) {
  GeneratedBatch batch;
  Sheet s;
  const Dim h = s.symbol("H", 2, 9);
  const ExprPtr sum = Expr::accumulator(DType::kF32);
  for (const char* mode : {"linear", "cubic", "nearest"})
    for (const char* places : {"half_pixel", "align_corners", "asymmetric"})
      for (int64_t width : {3, 16, 21}) {
        const AttributeList how = {{"mode", std::string(mode)},
                                   {"coordinate_transformation_mode", std::string(places)}};
        s.add("Resize", {floats({1, 3, 5, width}), absent(), scales({1, 1, 2, 2})}, how);
        s.epilogue(Expr::call("sigmoid", {sum}));
        s.add("Resize", {floats({1, 2, h, width}), absent(), scales({1, 1, 2.5, 1.5})}, how);
      }
  const AttributeList linear = {{"mode", std::string("linear")}};
  s.add("Resize", {floats({2, 3, 17}), absent(), scales({1, 1, 0.6f})}, linear);  // one axis alone
  s.epilogue(Expr::call("relu", {sum}));
  s.add("Resize", {floats({1, 2, 3, 5, 9}), absent(), scales({1, 1, 2, 2, 2})}, linear);
  s.add("Resize", {floats({1, 1, 12, 40}), absent(), scales({1, 1, 0.3f, 0.3f})},
        {{"mode", std::string("cubic")}, {"antialias", int64_t{1}}});
  s.add("Resize", {values(DType::kF16, {1, 3, 6, 16}), absent(), scales({1, 1, 2, 2})}, linear);
  s.into(batch, "resize", {{{"H", 2}}, {{"H", 9}}});
  for (const char* name : {"avx512", "avx2", "aarch64", "scalar"}) {
    const auto results = batch.run(target(name), {.together = 4});
    if (!results[0].skipped.empty()) continue;
    expect_good(results, name);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
}

}  // namespace
}  // namespace sinter
