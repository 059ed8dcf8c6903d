// squeeze_excite as generated code: both layouts, channels and pixels that leave lanes over, symbolic
// extents, activations and epilogues.
#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

using E = Expr;
const ExprPtr kAcc = E::accumulator(DType::kF32), kIn = E::input(0, DType::kF32);

Arg random_constant(const std::vector<int64_t>& shape, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor t(DType::kF32, shape);
  random_fill(t, random);
  return constant(t);
}

std::vector<Arg> operands(Shape x, int64_t channels, int64_t squeezed, bool biased) {
  return {floats(std::move(x)), random_constant({squeezed, channels}, 1),
          biased ? random_constant({squeezed}, 2) : absent(), random_constant({channels, squeezed}, 3),
          biased ? random_constant({channels}, 4) : absent()};
}

void add_to(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 1, 6);
  const auto acts = [](bool last, const char* squeeze, const char* excite) {
    return AttributeList{
        {"channels_last", int64_t{last}}, {"squeeze", std::string(squeeze)}, {"excite", std::string(excite)}};
  };
  const char* const hard = "hard_sigmoid acc 0x1.555556p-3 0x1p-1";
  for (const int64_t c : {1, 4, 7, 8, 16, 35, 96})
    for (const bool last : {false, true}) {
      const int64_t m = c / 4 + 1;
      s.add("squeeze_excite", operands(last ? Shape{n, h, 7, c} : Shape{n, c, h, 7}, c, m, true),
            acts(last, "relu acc", "sigmoid acc"));
      s.add("squeeze_excite", operands(last ? Shape{2, 17, 19, c} : Shape{2, c, 17, 19}, c, m, false),
            acts(last, "silu acc", hard));
      s.epilogue(E::call("relu", {E::call("add", {kAcc, kIn})}),
                 {floats(last ? Shape{2, 17, 19, c} : Shape{2, c, 17, 19})});
    }
  s.add("squeeze_excite", operands({1, 61, 69, 8}, 8, 2, true),
        acts(true, "relu acc", hard));  // blocks of sums
  s.add("squeeze_excite", operands({2, 5, 7, 21}, 21, 6, true), acts(true, "acc", "sigmoid acc"));
  s.epilogue(E::call("mul", {kAcc, kIn}), {floats({5, 1, 21})});
  s.add("squeeze_excite", operands({2, 21, 5, 7}, 21, 6, true), acts(false, "acc", "sigmoid acc"));
  s.epilogue(E::call("mul", {kAcc, kIn}), {floats({5, 1})});
  s.add("squeeze_excite", operands({2, 9, 300}, 9, 4, true), acts(false, "relu acc", "sigmoid acc"));
  s.add("squeeze_excite", operands({2, 300, 9}, 9, 4, true), acts(true, "relu acc", "sigmoid acc"));
  s.epilogue(E::cast(kAcc, DType::kF64));
  s.into(batch, "squeeze_excite", {{{"N", 1}, {"H", 1}}, {{"N", 3}, {"H", 6}}}, {1e-4, 3e-5});
}

TEST(SqueezeExcite, BothLayouts) {
  GeneratedBatch batch;
  add_to(batch);
  for (const char* name : {"avx512", "avx2", "aarch64", "scalar"}) {
    const auto results = batch.run(target(name));
    if (!results[0].skipped.empty()) continue;
    expect_good(results, name);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
}

}  // namespace
}  // namespace sinter
