// Random operators as generated code: the same numbers as the interpreter's.
#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

TEST(RandomKernels, GiveTheInterpretersNumbers) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 30);
  for (int64_t type : {1, 10, 11, 16}) {
    s.add("RandomUniform", {}, {{"shape", Ints{3, 5}}, {"dtype", type}, {"low", -2.f}});
    s.add("RandomNormal", {}, {{"shape", Ints{40}}, {"dtype", type}, {"scale", 1e-3f}, {"seed", 3.5f}});
  }
  s.add("RandomUniformLike", {floats({n, 3})});
  s.add("RandomNormalLike", {values(DType::kI32, {n})}, {{"dtype", int64_t{1}}});
  for (int64_t type : {1, 7, 9}) s.add("Bernoulli", {floats({n, 2})}, {{"dtype", type}});
  s.add("Multinomial", {floats({n, 4})}, {{"sample_size", int64_t{9}}});
  s.add("Multinomial", {values(DType::kF16, {n, 1})}, {{"dtype", int64_t{7}}});
  s.into(batch, "random", {{{"N", 0}}, {{"N", 30}}});
  for (const char* name : {"avx512", "aarch64"}) {
    const auto results = batch.run(target(name));
    if (results[0].skipped.empty()) expect_good(results, name);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
}

}  // namespace
}  // namespace sinter
