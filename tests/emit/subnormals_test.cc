// Subnormal floats: zero for layers that multiply, on x86-64; numbers for all others, and with --exact.
#include <gtest/gtest.h>

#include <cmath>

#include "emit/sheet.h"
#include "passes/passes.h"

namespace sinter {
namespace {

constexpr int64_t kRows = 160, kWidth = 256;
const double kTiny = std::ldexp(1, -130);  // subnormal

Tensor filled(double value, std::vector<int64_t> shape) {
  Tensor t(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.as<float>()[i] = static_cast<float>(value);
  return t;
}

// x (ones) and t (tiny): products of x with tiny weights, quotients by t, such products and quotients again.
// On two threads all of them are parts.
struct Net {
  std::unique_ptr<Graph> g = std::make_unique<Graph>();
  Value *x = input("x"), *t = input("t");

  Value* input(const char* name) {
    g->inputs.push_back(g->add_value(name, {DType::kF32, {Dim(kRows), Dim(kWidth)}}));
    return g->inputs.back();
  }
  Value* node(const char* op, const std::vector<Value*>& in) {
    // Called like the variable that holds the caller's mode.
    Node* n = g->add_node(find_op("", op), "floats", in, {g->add_value("floats", {})});
    infer(*g, *n);
    g->outputs.push_back(n->outputs[0]);
    return n->outputs[0];
  }
  Value* product(Value* of) {
    return node("MatMul", {of, g->add_constant("w", filled(kTiny, {kWidth, kWidth}))});
  }
  Value* quotient(Value* of) { return node("Div", {of, t}); }

  Net() {
    for (int i = 0; i < 2; ++i) {
      product(x);
      quotient(x);
    }
  }
};

void run(const char* target, bool exact, BuildOptions options = {}) {
  const Target& t = *find_target(target);
  Net net;
  PassOptions passes;
  passes.exact = exact;
  EXPECT_EQ(allow_flush(*net.g, passes), !exact);
  const bool zeros = !exact && !t.aarch64;
  const Tensor product = filled(zeros ? 0 : kTiny * kWidth, {kRows, kWidth}),
               quotient = filled(1 / kTiny, {kRows, kWidth});
  GeneratedBatch batch;
  batch.add("subnormals", std::move(net.g),
            {{{filled(1, {kRows, kWidth}), filled(kTiny, {kRows, kWidth})},
              {product, quotient, product, quotient}}},
            {0, 0});
  expect_good(batch.run(t, options));
}

TEST(Subnormals, ScalarTarget) { run("scalar", false); }
TEST(Subnormals, Avx2Target) { run("avx2", false); }
TEST(Subnormals, Avx512Target) { run("avx512", false); }
TEST(Subnormals, Clang) {
  BuildOptions o;
  o.clang = true;
  run("avx2", false, o);
}
TEST(Subnormals, Optimised) {
  BuildOptions o;
  o.flags = "-O2";
  run("avx2", false, o);
}
TEST(Subnormals, CortexA72Target) { run("cortex-a72", false); }
TEST(Subnormals, Exact) { run("avx2", true); }
TEST(Subnormals, TwoThreads) {
  BuildOptions o;
  o.threads = 2;
  run("avx2", false, o);
  run("avx2", true, o);
}

}  // namespace
}  // namespace sinter
