// NonMaxSuppression, RoiAlign, MaxRoiPool and DeformConv as generated code against the interpreter.
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

Arg number(float v) { return constant(Tensor::scalar(v)); }
Arg number(int64_t v) { return constant(Tensor::scalar(v)); }
// Boxes and regions inside, outside and nowhere.
void corners(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) {
    const uint32_t r = random() % 40;
    t.set_real(i, r == 0   ? std::numeric_limits<double>::quiet_NaN()
                  : r == 1 ? std::numeric_limits<double>::infinity()
                  : r == 2 ? -1e30
                           : static_cast<double>(random() % 120) / 10 - 2);
  }
}
void regions_of_image_0(Tensor& t, std::mt19937& random) {
  corners(t, random);
  for (int64_t i = 0; i < t.size(); i += 5) t.set_real(i, 0);
}
Fill exactly(const Ints& v) {
  return [v](Tensor& t, std::mt19937&) {
    for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, v[static_cast<size_t>(i) % v.size()]);
  };
}

TEST(DetectionKernels, NonMaxSuppression) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 40);
  s.add("NonMaxSuppression",
        {floats({2, n, 4}, corners), floats({2, 3, n}), number(int64_t{5}), number(.3f)});
  s.into(batch, "two_batches", {{{"N", 0}}, {{"N", 1}}, {{"N", 40}}});
  s.add("NonMaxSuppression",
        {floats({1, 30, 4}, corners), floats({1, 2, 30}), number(int64_t{50}), number(.3f), number(-.5f)},
        {{"center_point_box", int64_t{1}}});
  s.into(batch, "center");
  s.add("NonMaxSuppression", {floats({1, 30, 4}, corners), floats({1, 2, 30}),
                              values(DType::kI64, {1}, exactly({4})), floats({1}), floats({})});
  s.into(batch, "thresholds_from_data");
  s.add("NonMaxSuppression", {floats({1, 30, 4}, corners), floats({1, 2, 30})});
  s.into(batch, "none");
  s.add("NonMaxSuppression",
        {floats({1, 4500, 4}, corners), floats({1, 3, 4500}), number(int64_t{70}), number(.3f)});
  s.into(batch, "blocks");
  check(batch);
}

TEST(DetectionKernels, RoiAlignAndMaxRoiPool) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 9), h = s.symbol("H", 0, 11);
  for (const char* mode : {"avg", "max"})
    for (const char* where : {"half_pixel", "output_half_pixel"})
      for (int64_t ratio : {0, 2})
        s.add("RoiAlign",
              {floats({2, 3, h, 9}), floats({n, 4}, corners), values(DType::kI64, {n}, exactly({0, 1}))},
              {{"mode", std::string(mode)},
               {"coordinate_transformation_mode", std::string(where)},
               {"sampling_ratio", ratio},
               {"output_height", int64_t{3}},
               {"output_width", int64_t{2}},
               {"spatial_scale", .5f}});
  for (DType t : {DType::kF64, DType::kF16, DType::kBF16}) {
    s.add("RoiAlign",
          {values(t, {1, 70, 9, 8}), values(t, {n, 4}, corners), values(DType::kI64, {n}, exactly({0}))});
    s.add("MaxRoiPool", {values(t, {1, 2, 9, 8}), values(t, {n, 5}, regions_of_image_0)},
          {{"pooled_shape", Ints{2, 3}}});
  }
  s.add("RoiAlign", {floats({1, 70, 9, 8}), floats({n, 4}, corners), values(DType::kI64, {n}, exactly({0}))});
  s.epilogue(Expr::call("relu", {Expr::accumulator(DType::kF32)}));
  s.add("MaxRoiPool", {floats({1, 2, h, 8}), floats({n, 5}, regions_of_image_0)},
        {{"pooled_shape", Ints{3, 3}}, {"spatial_scale", .7f}});
  s.into(batch, "regions", {{{"N", 0}, {"H", 1}}, {{"N", 1}, {"H", 0}}, {{"N", 9}, {"H", 11}}});
  check(batch);
}

TEST(DetectionKernels, RoiAlignOfChannelsLastAndIntoRows) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 9), h = s.symbol("H", 0, 11);
  for (const char* mode : {"avg", "max"})
    for (int64_t ratio : {0, 2, 5})
      for (const bool last : {true, false}) {
        const auto image = last ? floats({2, h, 9, 70}) : floats({2, 70, h, 9});
        const auto data = last ? floats({5, 3, 2, 70}) : floats({5, 70, 3, 2});
        const AttributeList a = {{"mode", std::string(mode)},
                                 {"sampling_ratio", ratio},
                                 {"output_height", int64_t{3}},
                                 {"output_width", int64_t{2}},
                                 {"channels_last", int64_t{last}}};
        const auto regions = floats({n, 4}, corners), of = values(DType::kI64, {n}, exactly({0, 1}));
        if (last) s.add("RoiAlign", {image, regions, of}, a);
        s.add("roi_rows", {data, values(DType::kI64, {n}, exactly({4, -5, 2})), image, regions, of}, a);
        AttributeList filled = a;  // rows in any order, and ascending ones
        filled.push_back({"fill", Tensor::scalar(last ? 1.5f : -2.0f)});
        const Dim few = min(n, 4);
        const Arg shape = constant(Tensor::of(last ? Ints{9, 3, 2, 70} : Ints{9, 70, 3, 2}));
        s.add("roi_rows", {shape, values(DType::kI64, {n}, exactly({4, -5, 2})), image, regions, of}, filled);
        s.add("roi_rows",
              {shape, values(DType::kI64, {few}, exactly({1, 4, 5, 7})), image, floats({few, 4}, corners),
               values(DType::kI64, {few}, exactly({0, 1}))},
              filled);
      }
  s.into(batch, "rows", {{{"N", 0}, {"H", 1}}, {{"N", 1}, {"H", 0}}, {{"N", 9}, {"H", 11}}});
  check(batch);
}

// Threads share rows of bins, where no two regions are of one row.
TEST(DetectionKernels, RoiAlignIntoRowsByThreads) {
  GeneratedBatch batch;
  Sheet s;
  for (const Ints& rows : {Ints{0, 1, 3, 4, 5, 8, 9}, Ints{0, 1, 3, 3, 5, 8, 9}, Ints{-9, 0, 2, 3, 4, 5, 6},
                           Ints{2, 3, 4, 5, 6, 7, 8}})
    for (const bool filled : {false, true}) {
      AttributeList a = {{"sampling_ratio", int64_t{2}},
                         {"output_height", int64_t{7}},
                         {"output_width", int64_t{6}},
                         {"channels_last", int64_t{1}}};
      if (filled) a.push_back({"fill", Tensor::scalar(0.5f)});
      s.add("roi_rows",
            {filled ? constant(Tensor::of(Ints{10, 7, 6, 70})) : floats({10, 7, 6, 70}),
             values(DType::kI64, {7}, exactly(rows)), floats({1, 12, 9, 70}), floats({7, 4}, corners),
             values(DType::kI64, {7}, exactly({0}))},
            a);
    }
  s.into(batch, "rows");
  for (const char* name : {"avx512", "aarch64"}) expect_good(batch.run(target(name), {.threads = 3}), name);
}

TEST(DetectionKernels, RefusesImagesThatDoNotExist) {
  GeneratedBatch batch;
  for (int64_t image : {int64_t{-1}, int64_t{2}, INT64_MIN}) {
    Sheet s;
    s.add("RoiAlign", {floats({2, 1, 4, 4}), floats({1, 4}), values(DType::kI64, {1})});
    batch.add(
        fmt::format("align {}", image), s.graph().clone(),
        {{{Tensor(DType::kF32, {2, 1, 4, 4}), Tensor(DType::kF32, {1, 4}), Tensor::of(Ints{image})}, {}, 5}});
    Sheet p;
    p.add("MaxRoiPool", {floats({2, 1, 4, 4}), floats({1, 5})}, {{"pooled_shape", Ints{1, 1}}});
    Tensor region(DType::kF32, {1, 5});
    region.set_real(0, static_cast<double>(image));
    batch.add(fmt::format("pool {}", image), p.graph().clone(),
              {{{Tensor(DType::kF32, {2, 1, 4, 4}), region}, {}, 5}});
  }
  expect_good(batch.run(target("host")), "host");
}

TEST(DetectionKernels, DeformConv) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 2), h = s.symbol("H", 4, 9);
  s.add(
      "DeformConv",
      {floats({n, 4, h, 6}), floats({6, 2, 3, 3}), floats({n, 36, h, 6}), floats({6}), floats({n, 18, h, 6})},
      {{"group", int64_t{2}}, {"offset_group", int64_t{2}}, {"pads", Ints{1, 1, 1, 1}}});
  s.add("DeformConv", {floats({n, 3, h, 6}), floats({5, 3, 2, 2}), floats({n, 8, h - 2, 4})},
        {{"dilations", Ints{2, 2}}});
  s.epilogue(Expr::call("relu", {Expr::accumulator(DType::kF32)}));
  for (DType t : {DType::kF64, DType::kF16, DType::kBF16})
    s.add("DeformConv",
          {values(t, {1, 2, 5, 5}), values(t, {3, 2, 2, 2}), values(t, {1, 8, 2, 2}), absent(),
           values(t, {1, 4, 2, 2})},
          {{"strides", Ints{2, 2}}});
  s.into(batch, "deform", {{{"N", 0}, {"H", 4}}, {{"N", 2}, {"H", 9}}});
  check(batch);
}

}  // namespace
}  // namespace sinter
