// Reductions, ArgMax, TopK, running sums and Softmax: values, empty sets, types, symbolic shapes, contents of
// small integer tensors, refusals.
#include <numeric>
#include <random>

#include "ops/run_node.h"
#include "sinter/topk.h"

namespace sinter {
namespace {
using namespace node_test;

const Attrs kDrop = {{"keepdims", int64_t{0}}};
Attrs with(const char* name, int64_t v) { return {{name, v}}; }

TEST(Reduce, Values) {
  const Tensor x = floats({1, -2, 3, -4, 5, -6}, {2, 3});
  struct Case {
    const char* op;
    std::vector<double> rows, all;
  };
  const Case cases[] = {
      {"ReduceSum", {2, -5}, {-3}},
      {"ReduceMean", {2.0 / 3, -5.0 / 3}, {-0.5}},
      {"ReduceMax", {3, 5}, {5}},
      {"ReduceMin", {-2, -6}, {-6}},
      {"ReduceProd", {-6, 120}, {-720}},
      {"ReduceL1", {6, 15}, {21}},
      {"ReduceL2", {std::sqrt(14.0), std::sqrt(77.0)}, {std::sqrt(91.0)}},
      {"ReduceLogSum", {std::log(2.0), NAN}, {NAN}},
      {"ReduceLogSumExp",
       {std::log(std::exp(1) + std::exp(-2) + std::exp(3)),
        std::log(std::exp(-4) + std::exp(5) + std::exp(-6))},
       {std::log(std::exp(1) + std::exp(-2) + std::exp(3) + std::exp(-4) + std::exp(5) + std::exp(-6))}},
      {"ReduceSumSquare", {14, 77}, {91}},
  };
  for (const Case& c : cases) {
    expect_tensor(run(c.op, {x, ints({1})}), floats(c.rows, {2, 1}), 1e-6, c.op);
    expect_tensor(run(c.op, {x, ints({-1})}, kDrop), floats(c.rows, {2}), 1e-6, c.op);
    expect_tensor(run(c.op, {x}), floats(c.all, {1, 1}), 1e-6, c.op);
    expect_tensor(run(c.op, {x}, kDrop), floats(c.all, {}), 1e-6, c.op);
    expect_tensor(run(c.op, {x, ints({}, {0})}), floats(c.all, {1, 1}), 1e-6, c.op);
  }
}

TEST(Reduce, AnyAxesAgainstIndexArithmetic) {
  const std::vector<int64_t> shape = {2, 3, 1, 4, 5};
  Tensor x(DType::kF32, shape);
  for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(i * 7 % 11);
  const std::vector<int64_t> strides = row_major_strides(shape);
  for (int mask = 1; mask < 32; ++mask) {
    std::vector<double> axes;
    std::vector<int64_t> kept = shape;
    for (size_t d = 0; d < 5; ++d)
      if (mask >> d & 1) axes.push_back(static_cast<double>(d)), kept[d] = 1;
    Tensor want(DType::kF32, kept);
    const std::vector<int64_t> to = row_major_strides(kept);
    for (int64_t i = 0; i < x.size(); ++i) {
      int64_t at = 0;
      for (size_t d = 0; d < 5; ++d) at += i / strides[d] % shape[d] % kept[d] * to[d];
      want.as<float>()[at] += x.as<float>()[i];
    }
    expect_tensor(run("ReduceSum", {x, ints(axes)}), want, 0, std::to_string(mask));
  }
}

TEST(Reduce, EmptySets) {
  const Tensor none(DType::kF32, {2, 0});
  const std::pair<const char*, double> cases[] = {{"ReduceSum", 0},
                                                  {"ReduceMean", NAN},
                                                  {"ReduceMax", -INFINITY},
                                                  {"ReduceMin", INFINITY},
                                                  {"ReduceProd", 1},
                                                  {"ReduceL1", 0},
                                                  {"ReduceL2", 0},
                                                  {"ReduceSumSquare", 0},
                                                  {"ReduceLogSum", -INFINITY},
                                                  {"ReduceLogSumExp", -INFINITY}};
  for (const auto& [op, want] : cases)
    expect_tensor(run(op, {none, ints({1})}), floats({want, want}, {2, 1}), 0, op);
  expect_tensor(run("ReduceMax", {Tensor(DType::kI32, {0})}, kDrop),
                tensor(DType::kI32, {-2147483648.0}, {}));
  expect_tensor(run("ReduceMin", {Tensor(DType::kU8, {0})}, kDrop), tensor(DType::kU8, {255}, {}));
  expect_tensor(run("ReduceMin", {Tensor(DType::kBool, {0})}, kDrop), tensor(DType::kBool, {1}, {}));
  expect_tensor(run("ReduceMean", {Tensor(DType::kI64, {0})}, kDrop), ints({0}, {}));
}

TEST(Reduce, TypesAndSpecialValues) {
  expect_tensor(run("ReduceMean", {ints({-3, -4})}, kDrop), ints({-3}, {}));
  expect_tensor(run("ReduceL2", {tensor(DType::kI32, {3, 4})}, kDrop), tensor(DType::kI32, {5}, {}));
  expect_tensor(run("ReduceMax", {tensor(DType::kBool, {0, 1})}, kDrop), tensor(DType::kBool, {1}, {}));
  expect_tensor(run("ReduceMax", {floats({1, NAN, 3})}, kDrop), floats({NAN}, {}));
  expect_tensor(run("ReduceSum", {tensor(DType::kF16, {1000, 1, 0.5})}, kDrop),
                tensor(DType::kF16, {1001.5}, {}));
  expect_tensor(run("ReduceSum", {tensor(DType::kU32, {4294967295.0, 2})}, kDrop),
                tensor(DType::kU32, {1}, {}));
  expect_tensor(run("ReduceLogSumExp", {floats({1000, 1000})}, kDrop), floats({1000 + std::log(2.0)}, {}));
  expect_tensor(run("ReduceLogSumExp", {floats({-INFINITY, -INFINITY})}, kDrop), floats({-INFINITY}, {}));
  expect_tensor(run("ReduceLogSumExp", {floats({INFINITY, 1})}, kDrop), floats({INFINITY}, {}));
  expect_tensor(run("ReduceSumSquare", {floats({2, 3})}, with("noop_with_empty_axes", 1)), floats({4, 9}));
  expect_tensor(run("ReduceSum", {floats({2}, {})}), floats({2}, {}));
}

TEST(Reduce, InferenceAndRefusals) {
  Symbols symbols;
  const Dim n(symbols.fresh("N", {1, 8}, "test"));
  const TensorType x{DType::kF32, {n, 3, 4}}, axes{DType::kI64, {1}};
  EXPECT_EQ(inferred("ReduceSum", {x, axes}, {}, {Tensor(), ints({1})}), "float32[N,1,4]");
  EXPECT_EQ(inferred("ReduceSum", {x, axes}, kDrop, {Tensor(), ints({-1})}), "float32[N,3]");
  EXPECT_EQ(inferred("ReduceSum", {x, {DType::kI64, {3}}}, kDrop), "float32[]");
  EXPECT_EQ(inferred("ReduceSum", {{DType::kF32, {1, 1}}, axes}), "float32[1,1]");
  // Axes that the run tells: any may be reduced.
  EXPECT_EQ(inferred("ReduceSum", {x, axes}), "float32[node_axis0,node_axis1,node_axis2]");
  EXPECT_EQ(inferred("ReduceSum", {x, axes}, kDrop), "float32[node_axis0,node_axis1]");
  const Tensor two = floats({1, 2});
  EXPECT_NE(refusal("ReduceSum", {two, ints({1})}), "");
  EXPECT_NE(refusal("ReduceSum", {two, ints({0, -1})}), "");
  EXPECT_NE(refusal("ReduceSum", {two, floats({0})}), "");
  EXPECT_NE(refusal("ReduceSum", {tensor(DType::kI8, {1})}), "");
  EXPECT_NE(refusal("ReduceLogSum", {ints({1})}), "");
  EXPECT_NE(refusal("ReduceMax", {tensor(DType::kI16, {1})}), "");
}

TEST(Reduce, CarriesContents) {
  Symbols symbols;
  const Dim n(symbols.fresh("N", {1, 8}, "test"));
  const std::pair<const char*, Dim> cases[] = {
      {"ReduceProd", n * 6}, {"ReduceSum", n + 5}, {"ReduceMax", max(n, 3)}, {"ReduceMin", min(n, 2)}};
  for (const auto& [op, want] : cases) {
    SingleNode g(op, {{DType::kI64, {3}}}, {}, kDrop, 1);
    g.node->inputs[0]->elements = {n, 2, 3};
    infer(g.graph, *g.node);
    ASSERT_EQ(g.node->outputs[0]->elements.size(), 1u) << op;
    EXPECT_EQ(g.node->outputs[0]->elements[0], want) << op;
  }
}

TEST(ArgReduce, Values) {
  const Tensor x = floats({2, 7, 7, 1, 1, 5}, {2, 3});
  expect_tensor(run("ArgMax", {x}, with("axis", 1)), ints({1, 2}, {2, 1}));
  expect_tensor(run("ArgMin", {x}, with("axis", 1)), ints({0, 0}, {2, 1}));
  expect_tensor(run("ArgMax", {x},
                    {{"axis", int64_t{-1}}, {"keepdims", int64_t{0}}, {"select_last_index", int64_t{1}}}),
                ints({2, 2}));
  expect_tensor(run("ArgMax", {x}, kDrop), ints({0, 0, 0}));
  expect_tensor(run("ArgMax", {tensor(DType::kU64, {1, 18446744073709549568.0})}), ints({1}));
  EXPECT_NE(refusal("ArgMax", {Tensor(DType::kF32, {0})}), "");
  EXPECT_NE(refusal("ArgMax", {x}, with("axis", 2)), "");
  EXPECT_NE(refusal("ArgMax", {floats({1}, {})}), "");
  EXPECT_NE(refusal("ArgMax", {tensor(DType::kBool, {1})}), "");
}

TEST(TopK, Values) {
  const auto both = [](const Tensor& x, double k, const Attrs& a = {}) {
    return run_all("TopK", {x, ints({k})}, a, 2);
  };
  auto r = both(floats({1, 9, 3, 9, 5, 2}, {2, 3}), 2);
  expect_tensor(r[0], floats({9, 3, 9, 5}, {2, 2}));
  expect_tensor(r[1], ints({1, 2, 0, 1}, {2, 2}));
  r = both(floats({1, 9, 3, 9, 5, 2}, {2, 3}), 1, {{"axis", int64_t{0}}, {"largest", int64_t{0}}});
  expect_tensor(r[0], floats({1, 5, 2}, {1, 3}));
  expect_tensor(r[1], ints({0, 1, 1}, {1, 3}));
  r = both(floats({4, NAN, 4, 7}), 3);
  expect_tensor(r[0], floats({NAN, 7, 4}));
  expect_tensor(r[1], ints({1, 3, 0}));
  r = both(floats({4, NAN, 4, 7}), 4, with("largest", 0));
  expect_tensor(r[1], ints({0, 2, 3, 1}));
  expect_tensor(both(ints({1, 2}), 0)[0], ints({}, {0}));
  EXPECT_NE(refusal("TopK", {ints({1, 2}), ints({3})}), "");
  EXPECT_NE(refusal("TopK", {ints({1, 2}), ints({-1})}), "");
  EXPECT_NE(refusal("TopK", {ints({1, 2}), ints({1, 1})}), "");
}

TEST(TopK, AgreesWithSorting) {
  std::mt19937 random(3);
  for (int64_t n : {1, 2, 17, 100})
    for (int64_t k : {int64_t{1}, n / 2, n})
      for (bool largest : {false, true}) {
        std::vector<float> x(static_cast<size_t>(n));
        for (float& v : x) v = static_cast<float>(random() % 20);
        std::vector<int64_t> order(x.size()), got(x.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          const float p = x[static_cast<size_t>(a)], q = x[static_cast<size_t>(b)];
          return largest ? p > q : p < q;
        });
        std::vector<float> values(x.size());
        topk(x.data(), n, 1, k, largest, values.data(), got.data(), 1);
        for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
          EXPECT_EQ(got[i], order[i]) << n << " " << k;
          EXPECT_EQ(values[i], x[static_cast<size_t>(order[i])]);
        }
      }
}

TEST(TopK, InfersComputedK) {
  Symbols symbols;
  const Dim n(symbols.fresh("N", {1, 500}, "test"));
  const TensorType x{DType::kF32, {2, n}}, k{DType::kI64, {1}};
  EXPECT_EQ(inferred("TopK", {x, k}, {}, {Tensor(), ints({1})}), "float32[2,1]");
  SingleNode g("TopK", {x, k}, {}, {}, 2);
  g.node->inputs[1]->elements = {min(n, 100)};
  infer(g.graph, *g.node);
  EXPECT_EQ(g.node->outputs[0]->type.shape[1], min(n, 100));
  SingleNode open("TopK", {x, k}, {}, {}, 2);
  infer(open.graph, *open.node);
  EXPECT_EQ(open.node->outputs[1]->type.shape[1].bounds(), (Interval{0, 500}));
  EXPECT_EQ(open.node->outputs[0]->type.shape, open.node->outputs[1]->type.shape);
}

TEST(Scan, RunningSumsAndProducts) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3}), axis = ints({1}, {});
  expect_tensor(run("CumSum", {x, axis}), floats({1, 3, 6, 4, 9, 15}, {2, 3}));
  expect_tensor(run("CumSum", {x, ints({0})}), floats({1, 2, 3, 5, 7, 9}, {2, 3}));
  expect_tensor(run("CumSum", {x, axis}, with("exclusive", 1)), floats({0, 1, 3, 0, 4, 9}, {2, 3}));
  expect_tensor(run("CumSum", {x, axis}, with("reverse", 1)), floats({6, 5, 3, 15, 11, 6}, {2, 3}));
  expect_tensor(run("CumSum", {x, axis}, {{"reverse", int64_t{1}}, {"exclusive", int64_t{1}}}),
                floats({5, 3, 0, 11, 6, 0}, {2, 3}));
  expect_tensor(run("CumProd", {ints({2, 3, 4}), ints({0}, {})}), ints({2, 6, 24}));
  expect_tensor(run("CumProd", {ints({2, 3, 4}), ints({0}, {})}, with("exclusive", 1)), ints({1, 2, 6}));
  expect_tensor(run("CumSum", {Tensor(DType::kF32, {2, 0}), axis}), Tensor(DType::kF32, {2, 0}));
  EXPECT_NE(refusal("CumSum", {x, ints({2}, {})}), "");
  EXPECT_NE(refusal("CumSum", {x, floats({0}, {})}), "");
  EXPECT_NE(refusal("CumSum", {tensor(DType::kI8, {1}), ints({0}, {})}), "");
}

TEST(Softmax, Values) {
  const Tensor x = floats({1, 2, 3, 1000, 1000, -INFINITY}, {2, 3});
  const double s = std::exp(-2) + std::exp(-1) + 1;
  expect_tensor(run("Softmax", {x}),
                floats({std::exp(-2) / s, std::exp(-1) / s, 1 / s, 0.5, 0.5, 0}, {2, 3}));
  expect_tensor(run("LogSoftmax", {x}), floats({-2 - std::log(s), -1 - std::log(s), -std::log(s),
                                                -std::log(2.0), -std::log(2.0), -INFINITY},
                                               {2, 3}));
  expect_tensor(run("Hardmax", {x}), floats({0, 0, 1, 1, 0, 0}, {2, 3}));
  expect_tensor(run("Softmax", {floats({0, 1, 0, 1}, {2, 2})}, with("axis", 0)),
                floats({0.5, 0.5, 0.5, 0.5}, {2, 2}));
  expect_tensor(run("Softmax", {floats({NAN, 1})}), floats({NAN, NAN}));
  EXPECT_NE(refusal("Softmax", {ints({1})}), "");
  EXPECT_NE(refusal("Softmax", {x}, with("axis", 2)), "");
}

}  // namespace
}  // namespace sinter
