// embedding as generated code: tables and addends that broadcast, every norm, lanes that are left over, and
// indices outside.
#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

Fill within(int64_t extent) {
  return [extent](Tensor& t, std::mt19937& random) {
    for (int64_t i = 0; i < t.size(); ++i)
      t.set_integer(i, static_cast<int64_t>(random() % static_cast<uint64_t>(2 * extent)) - extent);
  };
}
Arg indices(Shape shape, int64_t extent, DType t = DType::kI64) {
  return values(t, std::move(shape), within(extent));
}
AttributeList form(int64_t tables, int64_t addends, const std::string& norm) {
  return {{"tables", tables}, {"addends", addends}, {"norm", norm}, {"epsilon", 0.01f}};
}

void add_to(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), length = s.symbol("S", 1, 5);
  const std::string layer = "LayerNormalization", rms = "RMSNormalization";
  for (const int64_t d : {1, 16, 37, 64}) {
    const auto words = [&] { return floats({11, d}); };
    const Arg scale = floats({d}), bias = floats({d});
    s.add("embedding", {words(), indices({n, length}, 11), scale, bias}, form(1, 0, layer));
    s.add("embedding",
          {words(), indices({n, length}, 11), floats({7, d}), indices({1, length}, 7, DType::kI32),
           floats({2, d}), indices({n, length}, 2), scale},
          form(3, 0, layer));
    s.add("embedding", {words(), indices({n, length}, 11), floats({1, length, d}), floats({d}), scale},
          form(1, 2, rms));
    s.add("embedding", {words(), indices({length}, 11), floats({n, 1, d})}, form(1, 1, ""));
    s.add("embedding", {words(), indices({}, 11), scale, bias}, form(1, 0, layer));
  }
  s.into(batch, "embedding", {{{"N", 1}, {"S", 1}}, {{"N", 3}, {"S", 5}}}, {1e-3, 3e-5});
}

TEST(Embedding, AllForms) {
  GeneratedBatch batch;
  add_to(batch);
  for (const char* name : {"avx512", "aarch64", "scalar"}) {
    const auto results = batch.run(target(name));
    if (!results[0].skipped.empty()) continue;
    expect_good(results, name);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
}

TEST(Embedding, RefusesIndicesOutside) {
  GeneratedBatch batch;
  for (const int64_t index : {int64_t{4}, int64_t{-5}, INT64_MIN, INT64_MAX}) {
    Sheet s;
    s.add("embedding", {floats({4, 3}), values(DType::kI64, {2}), floats({3})},
          form(1, 0, "LayerNormalization"));
    std::mt19937 random(1);
    Tensor table(DType::kF32, {4, 3}), scale(DType::kF32, {3});
    random_fill(table, random);
    batch.add("outside" + std::to_string(batch.size()), s.graph().clone(),
              {{{table, Tensor::of(std::vector<int64_t>{-4, index}), scale}, {}, 5}});
  }
  expect_good(batch.run(target("host")), "host");
}

}  // namespace
}  // namespace sinter
