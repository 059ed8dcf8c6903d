// compute_in_halves: where a region begins and ends, what is cast and what is not.
#include <gtest/gtest.h>

#include "emit/sheet.h"
#include "passes/passes.h"

namespace sinter {
namespace {

int count(const Graph& g, std::string_view op) {
  return static_cast<int>(
      std::count_if(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n->op->name == op; }));
}

// A product, an activation, a mean, another product: one cast in, one out.
TEST(ComputeInHalves, ARegionIsCastAtItsEndsOnly) {
  Sheet s;
  const Arg x =
      made(s.add("MatMul", {floats({8, 16}), constant(random_constant(DType::kF32, {16, 24}))})->outputs[0]);
  const Arg r = made(s.add("Relu", {x})->outputs[0]);
  const Arg t = made(s.add("Transpose", {r}, {{"perm", Ints{1, 0}}})->outputs[0]);
  s.add("MatMul", {t, constant(random_constant(DType::kF32, {8, 4}))});
  Graph& g = s.graph();
  g.outputs = {g.outputs.back()};
  PassOptions options;
  options.halves = true;
  ASSERT_TRUE(compute_in_halves(g, options));
  g.verify();
  EXPECT_EQ(count(g, "Cast"), 2);
  EXPECT_EQ(g.inputs[0]->type.dtype, DType::kF32);
  EXPECT_EQ(g.outputs[0]->type.dtype, DType::kF32);
  for (const auto& n : g.nodes) {
    const bool computes =
        n->op->name == std::string_view("MatMul") || n->op->name == std::string_view("Relu");
    EXPECT_EQ(n->freedom.halves == Halves::kComputed, computes) << label(*n);
  }
}

// Exponents, constants that no half holds, and integers stay in floats.
TEST(ComputeInHalves, WhatLeavesTheRangeStaysInFloats) {
  const auto halves = [](const ExprPtr& e) {
    Sheet s;
    Node* n = s.add("MatMul", {floats({8, 16}), constant(random_constant(DType::kF32, {16, 24}))});
    s.epilogue(e);
    PassOptions options;
    options.halves = true;
    compute_in_halves(s.graph(), options);
    return n->freedom.halves == Halves::kComputed;
  };
  const ExprPtr x = Expr::accumulator(DType::kF32);
  const auto number = [](double v) { return Expr::constant(v, DType::kF32); };
  EXPECT_TRUE(halves(Expr::call("relu", {x})));
  EXPECT_TRUE(halves(Expr::call("clamp", {x, number(-3.4e38), number(3.4e38)}))) << "bounds may be infinite";
  EXPECT_TRUE(halves(Expr::call("mul", {x, number(0.5)})));
  EXPECT_FALSE(halves(Expr::call("exp", {x})));
  EXPECT_FALSE(halves(Expr::call("add", {x, number(-1e9)})));
  EXPECT_FALSE(halves(Expr::call("add", {x, number(1e-9)})));
  EXPECT_FALSE(halves(Expr::cast(Expr::cast(x, DType::kI32), DType::kF32)));
}

// The first convolution reads floats only where the planner lets it read the planes themselves.
TEST(ComputeInHalves, PlanesStayFloatsWhereTheyAreRead) {
  const auto reads = [](const Ints& perm) {
    Sheet s;
    const Arg x = made(s.add("Transpose", {floats({1, 3, 9, 10})}, {{"perm", perm}})->outputs[0]);
    const Node* n = s.add("Conv", {x, constant(random_constant(DType::kF32, {8, 3, 3, 3}))},
                          {{"channels_last", int64_t{1}}});
    Graph& g = s.graph();
    g.outputs = {g.outputs.back()};
    PassOptions options;
    options.halves = true;
    compute_in_halves(g, options);
    EXPECT_EQ(n->freedom.halves, Halves::kComputed);
    return n->inputs[0]->type.dtype;
  };
  EXPECT_EQ(reads({0, 2, 3, 1}), DType::kF32);
  EXPECT_EQ(reads({0, 3, 2, 1}), DType::kF16) << "rows and columns change places, too: no kernel reads that";
}

// A mask is added to scores that are floats: it may be any number, and one that a layer of halves makes is
// widened.
TEST(ComputeInHalves, MasksStayFloats) {
  for (const bool made_of_halves : {false, true}) {
    Sheet s;
    const auto rows = [&](int64_t count, int64_t width) {
      return made(s.add("MatMul", {floats({Dim(1), Dim(count), Dim(8)}),
                                   constant(random_constant(DType::kF32, {8, width}))})
                      ->outputs[0]);
    };
    std::vector<Arg> args{rows(6, 16), rows(10, 16), rows(10, 16)};
    Tensor lowest(DType::kF32, {6, 10});
    for (int64_t i = 0; i < lowest.size(); i += 3) lowest.set_real(i, -3.4028234663852886e38);
    args.push_back(made_of_halves ? rows(6, 10) : constant(lowest));
    Node* n = s.add("Attention", args, {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}});
    Graph& g = s.graph();
    g.outputs = {g.outputs.back()};
    PassOptions options;
    options.halves = true;
    options.samples = {s.data({{}})[0].inputs};
    ASSERT_TRUE(compute_in_halves(g, options));
    g.verify();
    EXPECT_EQ(n->freedom.halves, Halves::kComputed) << n->freedom.half_error;
    EXPECT_EQ(n->inputs[3]->type.dtype, DType::kF32);
    EXPECT_EQ(n->inputs[0]->type.dtype, DType::kF16);
  }
}

// Two products that nearly cancel: each is exact enough by itself, what is left of them is not. The same
// products added stay halves.
TEST(ComputeInHalves, LayersWhoseErrorsReachAnOutputStayFloats) {
  for (const bool cancel : {false, true}) {
    Sheet s;
    const Arg x = made(s.add("Relu", {floats({8, 16})})->outputs[0]);
    Tensor a = random_constant(DType::kF32, {16, 24}), b = random_constant(DType::kF32, {16, 24});
    for (int64_t i = 0; i < b.size(); ++i) b.set_real(i, a.real(i) * (i % 2 == 0 ? 0.998 : 1.002));
    Node* one = s.add("MatMul", {x, constant(a)});
    Node* other = s.add("MatMul", {x, constant(b)});
    s.add(cancel ? "Sub" : "Add", {made(one->outputs[0]), made(other->outputs[0])});
    Graph& g = s.graph();
    g.outputs = {g.outputs.back()};
    HalfReport report;
    PassOptions options;
    options.halves = true;
    options.half_report = &report;
    options.samples = {s.data({{}})[0].inputs};
    compute_in_halves(g, options);
    g.verify();
    for (const Node* n : {one, other}) {
      EXPECT_LT(n->freedom.half_error, options.half_error);
      EXPECT_EQ(n->freedom.halves == Halves::kComputed, !cancel) << n->freedom.half_error;
      EXPECT_EQ(n->attributes.has("no_halves"), cancel);
    }
    ASSERT_EQ(report.outputs.size(), 1u);
    EXPECT_GE(report.outputs[0], 0);
    EXPECT_LE(report.outputs[0], 1.5 * options.half_error);
  }
}

TEST(ComputeInHalves, NothingWithoutTheOption) {
  Sheet s;
  s.add("MatMul", {floats({8, 16}), constant(random_constant(DType::kF32, {16, 24}))});
  EXPECT_FALSE(compute_in_halves(s.graph(), {}));
  PassOptions exact;
  exact.halves = exact.exact = true;
  EXPECT_FALSE(compute_in_halves(s.graph(), exact));
}

}  // namespace
}  // namespace sinter
