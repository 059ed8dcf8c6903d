// The harness itself: it passes what is right and catches what is wrong.
#include "emit/generated.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "emit/sheet.h"

namespace sinter {
namespace {

Sheet relu_sheet() {
  Sheet s;
  const Dim n = s.symbol("N", 1, 5);
  s.add("Relu", {floats({n, 13})});
  s.add("Add", {floats({3, 5, 17}), floats({5, 1})});
  return s;
}

TEST(Generated, RunsOnEveryTarget) {
  GeneratedBatch batch;
  relu_sheet().into(batch, "relu", {{{"N", 1}}, {{"N", 5}}});
  for (const char* name : {"avx512", "avx2", "x86-64-v2", "scalar", "aarch64", "cortex-a55"}) {
    for (const Result& r : batch.run(target(name))) {
      if (!r.skipped.empty()) continue;
      EXPECT_EQ(r.refused + r.error, "") << name;
    }
  }
}

TEST(Generated, SanitizersAndClang) {
  GeneratedBatch batch;
  relu_sheet().into(batch, "relu", {{{"N", 2}}});
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
}

TEST(Generated, CatchesWrongValuesStatusAndRefusals) {
  GeneratedBatch batch;
  Sheet s;
  s.add("Relu", {floats({4})});
  Tensor x = Tensor::of(std::vector<float>{-1, 2, 3, 4}, {4}), y = x;
  batch.add("values", s.graph().clone(), {{{x}, {y}}});
  batch.add("status", s.graph().clone(), {{{x}, {}, 5}});
  Sheet text;
  Value* v = text.graph().add_value("x", {DType::kString, {Dim(2)}});
  Value* w = text.graph().add_value("y", {DType::kString, {Dim(2)}});
  text.graph().inputs = {v};
  text.graph().outputs = {w};
  text.graph().add_node(find_op("", "Identity"), "id", {v}, {w});
  batch.add("refused", text.graph().clone(), {{{}, {Tensor(DType::kF32, {1})}}});
  const auto r = batch.run(target("host"));
  EXPECT_NE(r[0].error.find("element 0 of 4 is 0 instead of -1"), std::string::npos) << r[0].error;
  EXPECT_NE(r[1].error.find("status 0 instead of 5"), std::string::npos) << r[1].error;
  EXPECT_NE(r[2].refused, "");
}

TEST(Generated, FindsForbiddenSymbolsAndLargeFrames) {
  namespace fs = std::filesystem;
  std::string name = (fs::temp_directory_path() / "sinter_symbols_XXXXXX").string();
  ASSERT_TRUE(mkdtemp(name.data()));
  const std::string stem = name + "/a";
  auto compile = [&](const char* code) {
    std::ofstream(stem + ".cpp") << code;
    return std::system(fmt::format("g++ -O1 -fstack-usage -c {0}.cpp -o {0}.o", stem).c_str()) == 0;
  };
  ASSERT_TRUE(compile("int counter; int next() { return ++counter; }"));
  EXPECT_EQ(forbidden_symbol(stem + ".o", target("scalar")), "mutable data counter");
  ASSERT_TRUE(compile("#include <cstdlib>\nvoid* f(unsigned long n) { return std::malloc(n); }"));
  EXPECT_EQ(forbidden_symbol(stem + ".o", target("scalar")), "calls malloc");
  ASSERT_TRUE(compile("void g(char*); void f() { char big[50000]; g(big); }"));
  EXPECT_EQ(forbidden_symbol(stem + ".o", target("scalar")), "");
  EXPECT_GE(greatest_frame(stem + ".su"), 50000);
  fs::remove_all(name);
}

}  // namespace
}  // namespace sinter
