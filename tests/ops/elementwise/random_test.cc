// Random operators: stored values of the generator, moments, seeds, types and refusals.
#include "sinter/random.h"

#include <algorithm>

#include "ops/run_node.h"

namespace sinter::node_test {
namespace {

using V = std::vector<int64_t>;

// A node with its own name.
Tensor named(const char* op, const char* name, const Attrs& a, const std::vector<Tensor>& in = {}) {
  std::vector<TensorType> types;
  for (const Tensor& t : in) types.push_back(type_of(t));
  SingleNode n(op, types, {}, a, 1);
  n.node->name = name;
  return evaluate(*n.node, in)[0];
}

TEST(Random, GeneratorIsSplitmix64) {
  // The first numbers of the published generator for seed 1234567.
  const uint64_t want[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u};
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(random_bits(1234567, i), want[i]);
}

TEST(Random, Moments) {
  const V shape = {100, 200};
  const auto mean_and_variance = [](const Tensor& t) {
    double mean = 0, square = 0;
    for (double v : t.reals()) mean += v, square += v * v;
    mean /= static_cast<double>(t.size());
    return std::pair{mean, square / static_cast<double>(t.size()) - mean * mean};
  };
  const Tensor u = run("RandomUniform", {}, {{"shape", shape}, {"low", -1.f}, {"high", 3.f}, {"seed", 5.f}});
  const auto [um, uv] = mean_and_variance(u);
  EXPECT_NEAR(um, 1, .03);
  EXPECT_NEAR(uv, 16.0 / 12, .03);
  for (double v : u.reals()) EXPECT_TRUE(v >= -1 && v <= 3);
  const auto [nm, nv] = mean_and_variance(
      run("RandomNormal", {}, {{"shape", shape}, {"mean", 2.f}, {"scale", 3.f}, {"seed", 5.f}}));
  EXPECT_NEAR(nm, 2, .06);
  EXPECT_NEAR(nv, 9, .3);
}

TEST(Random, SeedsAndNames) {
  const Attrs free = {{"shape", V{8}}}, seeded = {{"shape", V{8}}, {"seed", 1.f}};
  EXPECT_TRUE(named("RandomUniform", "a", free).same_bits(named("RandomUniform", "a", free)));
  EXPECT_FALSE(named("RandomUniform", "a", free).same_bits(named("RandomUniform", "b", free)));
  EXPECT_TRUE(named("RandomUniform", "a", seeded).same_bits(named("RandomUniform", "b", seeded)));
}

TEST(Random, LikeBernoulliMultinomial) {
  EXPECT_EQ(run("RandomNormalLike", {tensor(DType::kF64, {1, 2}, {2, 1})}).dtype(), DType::kF64);
  EXPECT_EQ(run("RandomUniformLike", {ints({1, 2})}, {{"dtype", int64_t{10}}}).dtype(), DType::kF16);
  expect_tensor(run("Bernoulli", {floats({0, 1, 0, 1, kNaN})}), floats({0, 1, 0, 1, 0}));
  expect_tensor(run("Bernoulli", {floats({0, 1})}, {{"dtype", int64_t{9}}}), tensor(DType::kBool, {0, 1}));
  const Tensor certain = floats({-kInf, 0, -kInf, 3, -kInf, -kInf}, {2, 3});
  expect_tensor(run("Multinomial", {certain}, {{"sample_size", int64_t{3}}, {"dtype", int64_t{7}}}),
                ints({1, 1, 1, 0, 0, 0}, {2, 3}));
  const Tensor many =
      run("Multinomial", {floats({0, std::log(3.0)}, {1, 2})}, {{"sample_size", int64_t{4000}}});
  const std::vector<int64_t> drawn = many.integers();
  EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), 1)), 3000, 120);
}

TEST(Random, TypesAndRefusals) {
  EXPECT_EQ(inferred("RandomNormal", {}, {{"shape", V{2, 3}}, {"dtype", int64_t{11}}}), "float64[2,3]");
  EXPECT_EQ(inferred("RandomNormal", {}), "\"node\" (RandomNormal): attribute shape is missing");
  EXPECT_EQ(inferred("RandomNormal", {}, {{"shape", V{-1}}}),
            "\"node\" (RandomNormal): its shape has the extent -1");
  EXPECT_EQ(inferred("RandomNormal", {}, {{"shape", V{1}}, {"dtype", int64_t{7}}}),
            "\"node\" (RandomNormal): its dtype must be a float's");
  EXPECT_EQ(inferred("RandomUniform", {}, {{"shape", V{1}}, {"high", kInf}}),
            "\"node\" (RandomUniform): its high is not finite");
  EXPECT_EQ(inferred("RandomUniformLike", {{DType::kI64, {2}}}),
            "\"node\" (RandomUniformLike): its dtype must be a float's");
  EXPECT_EQ(inferred("Bernoulli", {{DType::kF32, {2}}}, {{"dtype", int64_t{8}}}),
            "\"node\" (Bernoulli): its dtype is not a number's");
  EXPECT_EQ(inferred("Multinomial", {{DType::kF32, {2, 0}}}), "\"node\" (Multinomial): there are no classes");
  EXPECT_EQ(inferred("Multinomial", {{DType::kF32, {2, 3}}}, {{"sample_size", int64_t{-1}}}),
            "\"node\" (Multinomial): its sample_size is -1");
}

}  // namespace
}  // namespace sinter::node_test
