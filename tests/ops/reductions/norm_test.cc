// Normalisations and Einsum against plain formulas, in both layouts, with symbolic shapes, and what they
// refuse.
#include <map>
#include <random>

#include "ops/run_node.h"

namespace sinter {
namespace {
using namespace node_test;

Tensor random_tensor(std::vector<int64_t> shape, unsigned seed, DType t = DType::kF32) {
  std::mt19937 random(seed);
  Tensor x(t, std::move(shape));
  for (int64_t i = 0; i < x.size(); ++i) x.set_real(i, static_cast<double>(random() % 2001) / 500 - 2);
  return x;
}
Attrs with(const char* name, int64_t v) { return {{name, v}}; }

// (x - mean) / sqrt(variance + 1e-5) over the elements that `group` gives the same number.
template <class F>
Tensor normalized(const Tensor& x, F group) {
  std::map<int64_t, std::vector<double>> sets;
  for (int64_t i = 0; i < x.size(); ++i) sets[group(i)].push_back(x.real(i));
  Tensor y(x.dtype(), x.shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    const std::vector<double>& s = sets[group(i)];
    double mean = 0, variance = 0;
    for (double v : s) mean += v / static_cast<double>(s.size());
    for (double v : s) variance += (v - mean) * (v - mean) / static_cast<double>(s.size());
    y.set_real(i, (x.real(i) - mean) / std::sqrt(variance + 1e-5));
  }
  return y;
}

TEST(Norm, InstanceGroupAndLayer) {
  const Tensor x = random_tensor({2, 4, 3, 5}, 1);
  const Tensor one = floats({1, 1, 1, 1}), zero = floats({0, 0, 0, 0});
  const auto instance = normalized(x, [](int64_t i) { return i / 15; });
  expect_tensor(run("InstanceNormalization", {x, one, zero}), instance, 1e-5);
  expect_tensor(run("GroupNormalization", {x, one, zero}, with("num_groups", 4)), instance, 1e-5);
  expect_tensor(run("GroupNormalization", {x, one, zero}, with("num_groups", 2)),
                normalized(x, [](int64_t i) { return i / 30; }), 1e-5);
  const auto last =
      run("InstanceNormalization", {x.transposed({0, 2, 3, 1}), one, zero}, with("channels_last", 1));
  expect_tensor(last.transposed({0, 3, 1, 2}), instance, 1e-5);
  const auto y = run_all("LayerNormalization", {x, floats({1, 1, 1, 1, 1})}, {}, 3);
  expect_tensor(y[0], normalized(x, [](int64_t i) { return i / 5; }), 1e-5);
  EXPECT_EQ(y[1].shape(), (std::vector<int64_t>{2, 4, 3, 1}));
  double mean = 0;
  for (int64_t i = 0; i < 5; ++i) mean += x.real(i) / 5;
  EXPECT_NEAR(y[1].real(0), mean, 1e-6);
  expect_tensor(run("LayerNormalization", {x, floats({1}), floats({3}, {1, 1})}, with("axis", 1)),
                run("Add", {normalized(x, [](int64_t i) { return i / 60; }), floats({3})}), 1e-5);
}

TEST(Norm, ScaleAndBiasAreOfTheChannel) {
  const Tensor x = random_tensor({2, 4, 6}, 2), scale = floats({1, 2, 3, 4}), bias = floats({5, 6, 7, 8});
  const Tensor plain =
      run("GroupNormalization", {x, floats({1, 1, 1, 1}), floats({0, 0, 0, 0})}, with("num_groups", 2));
  const Tensor want = run("Add", {run("Mul", {plain, scale.reshaped({4, 1})}), bias.reshaped({4, 1})});
  expect_tensor(run("GroupNormalization", {x, scale, bias}, with("num_groups", 2)), want, 1e-5);
}

TEST(Norm, Batch) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  const Tensor scale = floats({2, 1}), bias = floats({0.5, 0}), mean = floats({1, 3}),
               variance = floats({4, 1});
  const Attrs eps = {{"epsilon", 0.0f}};
  expect_tensor(run("BatchNormalization", {x, scale, bias, mean, variance}, eps),
                floats({0.5, 1.5, 0, 1, 4.5, 5.5, 4, 5}, {2, 2, 2}));
  const auto r = run_all("BatchNormalization", {x, scale, bias, mean, variance},
                         {{"training_mode", int64_t{1}}, {"epsilon", 0.0f}, {"momentum", 0.5f}}, 3);
  const double d = std::sqrt(4.25);
  expect_tensor(
      r[0],
      floats({-5 / d + 0.5, -3 / d + 0.5, -2.5 / d, -1.5 / d, 3 / d + 0.5, 5 / d + 0.5, 1.5 / d, 2.5 / d},
             {2, 2, 2}),
      1e-5);
  expect_tensor(r[1], floats({2.25, 4.25}));
  expect_tensor(r[2], floats({4.125, 2.625}));
  EXPECT_NE(refusal("BatchNormalization", {x, scale, bias, mean, floats({1})}), "");
  EXPECT_NE(refusal("BatchNormalization", {x, scale, bias, mean, variance}, {}, 2), "");
}

TEST(Norm, Relatives) {
  const Tensor x = floats({3, 4, 0, 0}, {2, 2});
  const double r = std::sqrt(12.5 + 1e-5);
  expect_tensor(run("RMSNormalization", {x, floats({1, 2})}), floats({3 / r, 8 / r, 0, 0}, {2, 2}));
  EXPECT_EQ(run("RMSNormalization", {tensor(DType::kF16, {1, 2}), floats({1, 2})}).dtype(), DType::kF32);
  expect_tensor(run("LpNormalization", {x}), floats({0.6, 0.8, 0, 0}, {2, 2}));
  expect_tensor(run("LpNormalization", {x}, {{"p", int64_t{1}}, {"axis", int64_t{0}}}),
                floats({1, 1, 0, 0}, {2, 2}));
  const Tensor m = random_tensor({2, 3, 4, 5}, 5);
  expect_tensor(run("MeanVarianceNormalization", {m}), normalized(m, [](int64_t i) { return i / 20 % 3; }),
                1e-4);
  expect_tensor(run("MeanVarianceNormalization", {m}, {{"axes", std::vector<int64_t>{1, -2}}}),
                normalized(m, [](int64_t i) { return i / 60 * 5 + i % 5; }), 1e-4);
}

TEST(Norm, LocalResponse) {
  const Tensor x = floats({1, 2, 3, 4}, {1, 4, 1});
  const Attrs a = {{"size", int64_t{2}}, {"alpha", 2.0f}, {"beta", 1.0f}, {"bias", 1.0f}};
  // The window of two channels is the channel and the next one.
  const Tensor want = floats({1.0 / (1 + 5), 2.0 / (1 + 13), 3.0 / (1 + 25), 4.0 / (1 + 16)}, {1, 4, 1});
  expect_tensor(run("LRN", {x}, a), want);
  Attrs last = a;
  last.emplace_back("channels_last", int64_t{1});
  expect_tensor(run("LRN", {x.transposed({0, 2, 1})}, last), want.transposed({0, 2, 1}));
  EXPECT_NE(refusal("LRN", {x}), "");
}

TEST(Norm, InferenceAndRefusals) {
  Symbols symbols;
  const Dim n(symbols.fresh("N", {1, 8}, "test"));
  const TensorType x{DType::kF32, {n, 4, n}}, c{DType::kF32, {4}};
  EXPECT_EQ(inferred("InstanceNormalization", {x, c, c}), "float32[N,4,N]");
  EXPECT_EQ(inferred("BatchNormalization", {x, c, c, c, c}), "float32[N,4,N]");
  EXPECT_EQ(inferred("LayerNormalization", {x, {DType::kF32, {n}}}), "float32[N,4,N]");
  const Tensor t = random_tensor({2, 4, 3}, 1), s = floats({1, 1, 1, 1});
  EXPECT_NE(refusal("InstanceNormalization", {t, s, floats({1, 1})}), "");
  EXPECT_NE(refusal("InstanceNormalization", {t, s, tensor(DType::kF64, {1, 1, 1, 1})}), "");
  EXPECT_NE(refusal("GroupNormalization", {t, s, s}, with("num_groups", 3)), "");
  EXPECT_NE(refusal("GroupNormalization", {t, s, s}), "");
  EXPECT_NE(refusal("LayerNormalization", {t, s}), "");
  EXPECT_NE(refusal("LayerNormalization", {t, floats({1})}, with("axis", 3)), "");
  EXPECT_NE(refusal("LayerNormalization", {t, floats({1})}, with("stash_type", 7)), "");
  EXPECT_NE(refusal("LpNormalization", {t}, with("p", 3)), "");
  EXPECT_NE(refusal("MeanVarianceNormalization", {t}), "");
  EXPECT_NE(refusal("MeanVarianceNormalization", {t}, {{"axes", std::vector<int64_t>{1, 1}}}), "");
}

Attrs equation(const char* e) { return {{"equation", std::string(e)}}; }

TEST(Einsum, Values) {
  const Tensor a = floats({1, 2, 3, 4}, {2, 2}), b = floats({5, 6, 7, 8}, {2, 2}), v = floats({1, 10});
  struct Case {
    const char* equation;
    std::vector<Tensor> in;
    Tensor want;
  };
  const Case cases[] = {
      {"ij,jk->ik", {a, b}, floats({19, 22, 43, 50}, {2, 2})},
      {"ij,jk", {a, b}, floats({19, 22, 43, 50}, {2, 2})},
      {"ij , kj -> ki", {a, b}, floats({17, 39, 23, 53}, {2, 2})},
      {"ij->ji", {a}, floats({1, 3, 2, 4}, {2, 2})},
      {"ba", {a}, floats({1, 3, 2, 4}, {2, 2})},
      {"ii->i", {a}, floats({1, 4})},
      {"ii", {a}, floats({5}, {})},
      {"ij->", {a}, floats({10}, {})},
      {"ij->j", {a}, floats({4, 6})},
      {"i,j->ij", {v, v}, floats({1, 10, 10, 100}, {2, 2})},
      {"ij,ij->ij", {a, b}, floats({5, 12, 21, 32}, {2, 2})},
      {"...j,j->...", {a, v}, floats({21, 43})},
      {"...ij,...jk->...ik", {a.reshaped({1, 2, 2}), b}, floats({19, 22, 43, 50}, {1, 2, 2})},
      {"...,...", {a, v}, floats({1, 20, 3, 40}, {2, 2})},
      {"i...->...", {a}, floats({4, 6})},
      {"ij,jk,k->i", {a, b, v}, floats({19 + 220, 43 + 500})},
      {"aB,Bc->ac", {a, b}, floats({19, 22, 43, 50}, {2, 2})},
      {"ij,ij->i", {a, floats({2}, {1, 1})}, floats({6, 14})},
      {"ij,k->i", {a, v}, floats({33, 77})},
      {",->", {floats({2}, {}), floats({3}, {})}, floats({6}, {})},
  };
  for (const Case& c : cases) {
    expect_tensor(run("Einsum", c.in, equation(c.equation)), c.want, 1e-6, c.equation);
    std::vector<Tensor> as_ints, as_halves;
    for (const Tensor& t : c.in) {
      as_ints.push_back(t.converted(DType::kI32));
      as_halves.push_back(t.converted(DType::kF16));
    }
    expect_tensor(run("Einsum", as_ints, equation(c.equation)), c.want.converted(DType::kI32), 0, c.equation);
    expect_tensor(run("Einsum", as_halves, equation(c.equation)), c.want.converted(DType::kF16), 1e-3,
                  c.equation);
  }
}

TEST(Einsum, MatrixProductAgreesWithPlainSums) {
  // float32 goes through the matrix product, float16 of the same values through the plain sums.
  for (const char* e : {"bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "bhqd,bhdk->khbq"}) {
    const std::string s = e;
    std::map<char, int64_t> extent = {{'b', 2}, {'h', 3}, {'q', 4}, {'k', 5}, {'d', 6}};
    const auto shape = [&](size_t from) {
      std::vector<int64_t> v;
      for (size_t i = from; i < from + 4; ++i) v.push_back(extent[s[i]]);
      return v;
    };
    const Tensor a = random_tensor(shape(0), 1, DType::kF16), b = random_tensor(shape(5), 2, DType::kF16);
    const Tensor got = run("Einsum", {a.converted(DType::kF32), b.converted(DType::kF32)}, equation(e));
    expect_tensor(got, run("Einsum", {a, b}, equation(e)).converted(DType::kF32), 5e-3, e);
  }
}

TEST(Einsum, InferenceAndRefusals) {
  Symbols symbols;
  const Dim n(symbols.fresh("N", {1, 8}, "test")), m(symbols.fresh("M", {1, 8}, "test"));
  const auto f = [](Shape s) { return TensorType{DType::kF32, std::move(s)}; };
  EXPECT_EQ(inferred("Einsum", {f({n, m, 3}), f({n, 3, 5})}, equation("bij,bjk->bik")), "float32[N,M,5]");
  EXPECT_EQ(inferred("Einsum", {f({n, m, 3}), f({1, 3})}, equation("...i,...i->...")), "float32[N,M]");
  const Tensor a = floats({1, 2, 3, 4}, {2, 2}), v = floats({1, 2, 3});
  for (const char* e : {"ij,j", "ij,j->i", "i,j->ij", "ij,j,k->i", "ij->i", "ij,j->k", "ij,j->ii", "i1,j->i",
                        "", "ij,j->i.", "..ij,j->i", "ij,j->i->j"})
    EXPECT_NE(refusal("Einsum", {a, v}, equation(e)), "") << e;
  EXPECT_NE(refusal("Einsum", {a, ints({1, 2})}, equation("ij,j")), "");
}

}  // namespace
}  // namespace sinter
