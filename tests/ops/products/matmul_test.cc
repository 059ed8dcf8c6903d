// MatMul and Gemm against triple loops; DepthToSpace and SpaceToDepth against their formulas.
#include "ops/one_node.h"

namespace sinter {
namespace {

using Ints = std::vector<int64_t>;

TEST(MatMul, FollowsNumpy) {
  struct Case {
    Ints a, b, y;
  };
  const Case table[] = {
      {{3, 4}, {4, 5}, {3, 5}},
      {{4}, {4, 5}, {5}},
      {{3, 4}, {4}, {3}},
      {{4}, {4}, {}},
      {{2, 3, 4}, {4, 5}, {2, 3, 5}},
      {{3, 4}, {2, 4, 5}, {2, 3, 5}},
      {{2, 1, 3, 4}, {3, 4, 2}, {2, 3, 3, 2}},
      {{2, 3, 4}, {4}, {2, 3}},
      {{4}, {2, 4, 5}, {2, 5}},
      {{1, 3, 4}, {2, 4, 5}, {2, 3, 5}},
      {{3, 0}, {0, 2}, {3, 2}},
      {{0, 3}, {3, 2}, {0, 2}},
  };
  for (const Case& c : table)
    for (const DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kU64}) {
      SCOPED_TRACE(text(Shape(c.a.begin(), c.a.end())) + text(Shape(c.b.begin(), c.b.end())));
      std::mt19937 random(17);
      const Tensor a = random_tensor(t, c.a, random), b = random_tensor(t, c.b, random);
      const Tensor y = run_node("MatMul", {a, b})[0];
      ASSERT_EQ(y.shape(), c.y);
      const int64_t k = c.a.back(), n = c.b.size() == 1 ? 1 : c.b.back(),
                    m = c.a.size() == 1 ? 1 : c.a[c.a.size() - 2];
      Tensor want(t, c.y);
      const int64_t batches = n * m == 0 ? 0 : want.size() / (n * m);
      const int64_t count_a = m * k == 0 ? 1 : a.size() / (m * k),
                    count_b = k * n == 0 ? 1 : b.size() / (k * n);
      for (int64_t i = 0; i < want.size(); ++i) {
        const int64_t batch = i / (n * m);
        // The batches of the table: a's repeat slower (2,1) or either is single.
        const int64_t ia = count_a == batches ? batch : count_a == 1 ? 0 : batch / (batches / count_a);
        const int64_t ib = batch % count_b;
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += a.real((ia * m + i / n % m) * k + l) * b.real((ib * k + l) * n + i % n);
        want.set_real(i, sum);
      }
      expect_near(y, want, t == DType::kBF16 ? 2e-2 : t == DType::kF16 ? 2e-3 : 1e-5);
    }
}

TEST(MatMul, IntegersWrap) {
  Tensor a(DType::kI32, {1, 2}), b(DType::kI32, {2, 1});
  for (int64_t i = 0; i < 2; ++i) a.set_integer(i, INT32_MAX), b.set_integer(i, 2);
  EXPECT_EQ(run_node("MatMul", {a, b})[0].integer(0), -4);
}

TEST(MatMul, InfersAndRefuses) {
  OneNode n("MatMul", {{DType::kF32, {2, 3, 4}}, {DType::kF32, {4, 5}}});
  n.graph.inputs[0]->type.shape[1] = Dim(n.graph.symbols->fresh("S", {1, 64}, "test"));
  EXPECT_EQ(text(n.inferred()), "float32[2,S,5]");
  const std::pair<std::pair<Shape, Shape>, const char*> bad[] = {
      {{{3, 4}, {5, 4}}, "inner extents"},
      {{{}, {4}}, "scalar"},
      {{{2, 3, 4}, {3, 4, 5}}, "do not broadcast"},
  };
  for (const auto& [shapes, why] : bad) {
    OneNode b("MatMul", {{DType::kF32, shapes.first}, {DType::kF32, shapes.second}});
    EXPECT_NE(b.refusal().find(why), std::string::npos) << b.refusal();
  }
  OneNode types("MatMul", {{DType::kF32, {2, 2}}, {DType::kF64, {2, 2}}});
  EXPECT_NE(types.refusal().find("types float32 and float64"), std::string::npos);
  OneNode i8("MatMul", {{DType::kI8, {2, 2}}, {DType::kI8, {2, 2}}});
  EXPECT_NE(i8.refusal().find("not for int8"), std::string::npos);
}

TEST(Gemm, MatchesItsFormula) {
  for (int64_t ta = 0; ta < 2; ++ta)
    for (int64_t tb = 0; tb < 2; ++tb)
      for (const Ints& c : {Ints{3, 5}, Ints{1, 5}, Ints{3, 1}, Ints{5}, Ints{1}, Ints{}, Ints{-1}})
        for (const DType t : {DType::kF32, DType::kF16, DType::kI64}) {
          std::mt19937 random(23);
          const bool has_c = c != Ints{-1};
          const Tensor a = random_tensor(t, ta ? Ints{4, 3} : Ints{3, 4}, random);
          const Tensor b = random_tensor(t, tb ? Ints{5, 4} : Ints{4, 5}, random);
          const Tensor cc = has_c ? random_tensor(t, c, random) : Tensor();
          const float alpha = t == DType::kI64 ? -3.0f : 0.5f, beta = t == DType::kI64 ? 2.0f : 1.5f;
          const Tensor y =
              run_node("Gemm", {a, b, cc},
                       attributes_of({{"transA", ta}, {"transB", tb}, {"alpha", alpha}, {"beta", beta}}))[0];
          ASSERT_EQ(y.shape(), (Ints{3, 5}));
          Tensor want(t, {3, 5});
          for (int64_t i = 0; i < 3; ++i)
            for (int64_t j = 0; j < 5; ++j) {
              double sum = 0;
              for (int64_t k = 0; k < 4; ++k)
                sum += a.real(ta ? k * 3 + i : i * 4 + k) * b.real(tb ? j * 4 + k : k * 5 + j);
              const int64_t at = !has_c || cc.size() == 1 ? 0
                                 : cc.size() == 15        ? i * 5 + j
                                 : cc.size() == 5         ? j
                                                          : i;
              want.set_real(i * 5 + j, alpha * sum + (has_c ? beta * cc.real(at) : 0));
            }
          expect_near(y, want, t == DType::kF16 ? 4e-3 : 1e-5);
        }
}

TEST(Gemm, Refuses) {
  const std::pair<std::vector<Shape>, const char*> bad[] = {
      {{{2, 3}, {4, 5}}, "inner extents"},
      {{{2, 3, 4}, {4, 5}}, "not both matrices"},
      {{{2, 3}, {3, 5}, {4}}, "does not broadcast"},
      {{{2, 3}, {3, 5}, {1, 2, 5}}, "more than two axes"},
      {{{1, 3}, {3, 5}, {2, 5}}, "does not broadcast"},
  };
  for (const auto& [shapes, why] : bad) {
    std::vector<TensorType> types;
    for (const Shape& s : shapes) types.push_back({DType::kF32, s});
    OneNode n("Gemm", types);
    EXPECT_NE(n.refusal().find(why), std::string::npos) << why << " / " << n.refusal();
  }
  OneNode n("Gemm", {{DType::kI32, {2, 3}}, {DType::kI32, {3, 5}}}, attributes_of({{"alpha", 0.5f}}));
  EXPECT_NE(n.refusal().find("alpha is 0.5 for integers"), std::string::npos);
}

TEST(SpaceDepth, MovesBlocks) {
  std::mt19937 random(29);
  const Tensor x = random_tensor(DType::kI16, {2, 12, 3, 2}, random);
  for (const char* mode : {"DCR", "CRD"}) {
    Attributes a = attributes_of({{"blocksize", int64_t{2}}, {"mode", std::string(mode)}});
    const Tensor y = run_node("DepthToSpace", {x}, a)[0];
    ASSERT_EQ(y.shape(), (Ints{2, 3, 6, 4}));
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t w = i % 4, h = i / 4 % 6, c = i / 24 % 3, n = i / 72, by = h % 2, bx = w % 2;
      const int64_t channel = mode[0] == 'D' ? (by * 2 + bx) * 3 + c : (c * 2 + by) * 2 + bx;
      ASSERT_EQ(y.integer(i), x.integer(((n * 12 + channel) * 3 + h / 2) * 2 + w / 2));
    }
    if (mode[0] == 'D') {
      EXPECT_TRUE(run_node("SpaceToDepth", {y}, attributes_of({{"blocksize", int64_t{2}}}))[0].same_bits(x));
    }
    a.set("channels_last", int64_t{1});
    EXPECT_TRUE(run_node("DepthToSpace", {to_channels_last(x)}, a)[0].same_bits(to_channels_last(y)));
  }
  OneNode bad("DepthToSpace", {{DType::kF32, {1, 6, 2, 2}}}, attributes_of({{"blocksize", int64_t{2}}}));
  EXPECT_NE(bad.refusal().find("channels 6 modulo 4"), std::string::npos);
  OneNode zero("SpaceToDepth", {{DType::kF32, {1, 6, 2, 2}}}, attributes_of({{"blocksize", int64_t{0}}}));
  EXPECT_NE(zero.refusal().find("blocksize is 0"), std::string::npos);
  OneNode odd("SpaceToDepth", {{DType::kF32, {1, 6, 2, 2}}}, attributes_of({{"blocksize", int64_t{2}}}));
  odd.graph.inputs[0]->type.shape[2] = Dim(odd.graph.symbols->fresh("H", {1, 64}, "test"));
  EXPECT_EQ(text(odd.inferred()), "float32[1,24,floordiv(H,2),1]");
  EXPECT_EQ(odd.graph.checks.size(), 1u);
}

}  // namespace
}  // namespace sinter
