// ai.onnx.ml on numbers: values by hand (those of classifiers agree with ONNX Runtime), types and refusals.
#include "ops/run_node.h"

namespace sinter::node_test {
namespace {

using I = std::vector<int64_t>;
using F = std::vector<float>;
using S = std::vector<std::string>;

TEST(MlScaling, ByHand) {
  const Tensor x = floats({1, -2, 4, 0, 3, 6}, {2, 3});
  expect_tensor(run("Scaler", {x}, {{"offset", F{1, 0, 2}}, {"scale", F{2, 1, .5}}}),
                floats({0, -2, 1, -2, 3, 2}, {2, 3}));
  expect_tensor(run("Scaler", {ints({4, 6})}, {{"offset", F{2}}}), floats({2, 4}));
  expect_tensor(run("Normalizer", {x}, {{"norm", std::string("L1")}}),
                floats({1.0 / 7, -2.0 / 7, 4.0 / 7, 0, 1.0 / 3, 2.0 / 3}, {2, 3}));
  expect_tensor(run("Normalizer", {x}), floats({.25, -.5, 1, 0, .5, 1}, {2, 3}));
  expect_tensor(run("Normalizer", {floats({3, 4, 0, 0}, {2, 2})}, {{"norm", std::string("L2")}}),
                floats({.6, .8, 0, 0}, {2, 2}));
  expect_tensor(run("Binarizer", {x}, {{"threshold", 1.f}}), floats({0, 0, 1, 0, 1, 1}, {2, 3}));
  expect_tensor(run("Imputer", {floats({kNaN, 1, 2, kNaN}, {2, 2})},
                    {{"imputed_value_floats", F{8, 9}}, {"replaced_value_float", kNaN}}),
                floats({8, 1, 2, 9}, {2, 2}));
  expect_tensor(run("Imputer", {ints({0, 1, 2, 0}, {2, 2})}, {{"imputed_value_int64s", I{5}}}),
                ints({5, 1, 2, 5}, {2, 2}));
}

TEST(MlEncoding, ByHand) {
  expect_tensor(run("LabelEncoder", {ints({3, 7, -1})},
                    {{"keys_int64s", I{7, -1}}, {"values_floats", F{.5, 2}}, {"default_float", 9.f}}),
                floats({9, .5, 2}));
  expect_tensor(run("LabelEncoder", {floats({kNaN, -0., 2})},
                    {{"keys_floats", F{kNaN, 0}}, {"values_int64s", I{4, 5}}}),
                ints({4, 5, -1}));
  expect_tensor(run("OneHotEncoder", {ints({2, 9}, {1, 2})}, {{"cats_int64s", I{1, 2}}}),
                floats({0, 1, 0, 0}, {1, 2, 2}));
  expect_tensor(run("ArrayFeatureExtractor", {floats({1, 2, 3, 4, 5, 6}, {2, 3}), ints({2, 0})}),
                floats({3, 1, 6, 4}, {2, 2}));
  expect_tensor(run("ArrayFeatureExtractor", {floats({1, 2, 3}), ints({1})}), floats({2}, {1, 1}));
  expect_tensor(run("FeatureVectorizer", {ints({1, 2}, {2, 1}), floats({3, 4, 5, 6}, {2, 2})},
                    {{"inputdimensions", I{2, 1}}}),
                floats({1, 0, 3, 2, 0, 5}, {2, 3}));
}

TEST(MlLinear, RegressionAndClasses) {
  const Tensor x = floats({1, 2, -1, 0}, {2, 2});
  expect_tensor(run("LinearRegressor", {x},
                    {{"coefficients", F{1, 2, 3, 4}}, {"intercepts", F{.5, 0}}, {"targets", int64_t{2}}}),
                floats({5.5, 11, -.5, -3}, {2, 2}));
  const auto two =
      run_all("LinearClassifier", {x},
              {{"coefficients", F{1, 2}}, {"intercepts", F{-.5}}, {"classlabels_ints", I{3, 8}}}, 2);
  expect_tensor(two[0], ints({8, 3}));
  expect_tensor(two[1], floats({-3.5, 4.5, 2.5, -1.5}, {2, 2}));
  const auto soft = run_all("LinearClassifier", {x},
                            {{"coefficients", F{1, 0, 0, 1, 0, 0}},
                             {"classlabels_ints", I{3, 8, 9}},
                             {"post_transform", std::string("SOFTMAX")}},
                            2);
  expect_tensor(soft[0], ints({8, 8}));
  const double e = std::exp(1.0), all = e + e * e + 1, other = 1 / e + 2;
  expect_tensor(soft[1],
                floats({e / all, e * e / all, 1 / all, 1 / e / other, 1 / other, 1 / other}, {2, 3}));
}

// One tree: x[0] <= 1 ? (x[1] > 0 ? leaf 3 : leaf 4) : leaf 2, weights 1, 2 and 4.
Attrs tree(const char* leaves, const I& targets, F weights = {1, 2, 4}) {
  const std::string p = leaves;
  return {{"nodes_treeids", I{0, 0, 0, 0, 0}},
          {"nodes_nodeids", I{0, 1, 2, 3, 4}},
          {"nodes_featureids", I{0, 1, 0, 0, 0}},
          {"nodes_modes", S{"BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF"}},
          {"nodes_values", F{1, 0, 0, 0, 0}},
          {"nodes_truenodeids", I{1, 3, 0, 0, 0}},
          {"nodes_falsenodeids", I{2, 4, 0, 0, 0}},
          {"nodes_missing_value_tracks_true", I{1, 0, 0, 0, 0}},
          {p + "_treeids", I{0, 0, 0}},
          {p + "_nodeids", I{2, 3, 4}},
          {p + "_ids", targets},
          {p + "_weights", std::move(weights)}};
}
Attrs with(Attrs a, std::initializer_list<std::pair<std::string, Attribute>> more) {
  for (const auto& m : more) {
    std::erase_if(a, [&](const auto& old) { return old.first == m.first; });
    a.push_back(m);
  }
  return a;
}
const std::vector<double> kRows = {2, 0, 1, 1, 1, 0, kNaN, 5, 0, kNaN};

TEST(MlTrees, Regression) {
  const Tensor x = floats(kRows, {5, 2});
  expect_tensor(run("TreeEnsembleRegressor", {x}, with(tree("target", {0, 0, 0}), {{"base_values", F{.5}}})),
                floats({1.5, 2.5, 4.5, 2.5, 4.5}, {5, 1}));
  expect_tensor(
      run("TreeEnsembleRegressor", {x}, with(tree("target", {1, 0, 1}), {{"n_targets", int64_t{2}}})),
      floats({0, 1, 2, 0, 0, 4, 2, 0, 0, 4}, {5, 2}));
}

TEST(MlTrees, Classes) {
  const Tensor x = floats(kRows, {5, 2});
  const auto three = run_all("TreeEnsembleClassifier", {x},
                             with(tree("class", {0, 1, 2}), {{"classlabels_int64s", I{5, 6, 7}}}), 2);
  expect_tensor(three[0], ints({5, 6, 7, 6, 7}));
  expect_tensor(three[1], floats({1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 2, 0, 0, 0, 4}, {5, 3}));
  const auto probability =
      run_all("TreeEnsembleClassifier", {x},
              with(tree("class", {0, 0, 0}, {.25, .5, .75}), {{"classlabels_int64s", I{5, 6}}}), 2);
  expect_tensor(probability[0], ints({5, 5, 6, 5, 6}));
  expect_tensor(probability[1], floats({.75, .25, .5, .5, .25, .75, .5, .5, .25, .75}, {5, 2}));
  const auto distance =
      run_all("TreeEnsembleClassifier", {x},
              with(tree("class", {0, 0, 0}, {-1, 0, 2}),
                   {{"classlabels_int64s", I{5, 6}}, {"post_transform", std::string("LOGISTIC")}}),
              2);
  expect_tensor(distance[0], ints({5, 5, 6, 5, 6}));
  EXPECT_NEAR(distance[1].real(1), 1 / (1 + std::exp(1.0)), 1e-6);
  EXPECT_NEAR(distance[1].real(0), 1 / (1 + std::exp(-1.0)), 1e-6);
}

Attrs ensemble() {  // x[0] in {1, 3} ? leaf 0 : x[1] < 2 ? leaf 1 : leaf 2
  return {{"nodes_featureids", I{0, 1}},
          {"nodes_splits", floats({0, 2})},
          {"nodes_modes", tensor(DType::kU8, {6, 1})},
          {"nodes_truenodeids", I{0, 1}},
          {"nodes_trueleafs", I{1, 1}},
          {"nodes_falsenodeids", I{1, 2}},
          {"nodes_falseleafs", I{0, 1}},
          {"leaf_targetids", I{0, 0, 0}},
          {"leaf_weights", floats({10, 20, 30})},
          {"tree_roots", I{0}},
          {"membership_values", floats({1, 3, kNaN})},
          {"n_targets", int64_t{1}}};
}

TEST(MlTrees, Membership) {
  expect_tensor(run("TreeEnsemble", {floats({1, 9, 3, 9, 2, 1, 2, 2}, {4, 2})}, ensemble()),
                floats({10, 10, 20, 30}, {4, 1}));
}

// 1 is SOFTMAX and 2 LOGISTIC, as specified (ONNX Runtime 1.32.0 takes them the other way round).
TEST(MlTrees, TransformsByNumber) {
  const Attrs two =
      with(ensemble(),
           {{"n_targets", int64_t{2}}, {"leaf_targetids", I{0, 1, 1}}, {"leaf_weights", floats({1, 2, 3})}});
  const Tensor x = floats({1, 9}, {1, 2});
  const double e = std::exp(1.0);
  expect_tensor(run("TreeEnsemble", {x}, with(two, {{"post_transform", int64_t{1}}})),
                floats({e / (e + 1), 1 / (e + 1)}, {1, 2}));
  expect_tensor(run("TreeEnsemble", {x}, with(two, {{"post_transform", int64_t{2}}})),
                floats({e / (e + 1), .5}, {1, 2}));
}

TEST(MlTrees, Refusals) {
  const auto type = [](const Attrs& a, Shape x = {5, 2}) {
    return inferred("TreeEnsembleRegressor", {{DType::kF32, x}}, a);
  };
  const std::string label = "\"node\" (TreeEnsembleRegressor): ";
  const Attrs good = tree("target", {0, 0, 0});
  EXPECT_EQ(type(good), "float32[5,1]");
  EXPECT_EQ(type(with(good, {{"nodes_truenodeids", I{1, 0, 0, 0, 0}}})),
            label + "a tree's node is below itself");
  EXPECT_EQ(type(with(good, {{"nodes_truenodeids", I{1, 9, 0, 0, 0}}})), label + "tree 0 has no node 9");
  EXPECT_EQ(type(with(good, {{"nodes_featureids", I{0, -1, 0, 0, 0}}})),
            label + "its nodes_featureids hold -1");
  EXPECT_EQ(type(with(good, {{"target_ids", I{0, 0, 1}}})), label + "a leaf names the target 1 of 1");
  EXPECT_EQ(type(with(good, {{"nodes_values", F{1}}})), label + "its nodes_values has 1 entries, not 5");
  EXPECT_EQ(type(with(good, {{"nodes_modes", S{"BRANCH_LEQ", "NONE", "LEAF", "LEAF", "LEAF"}}})),
            label + "a node's mode is \"NONE\"");
  EXPECT_EQ(type(with(good, {{"aggregate_function", std::string("MEDIAN")}})),
            label + "its aggregate_function is \"MEDIAN\"");
  EXPECT_NE(type(good, {5, 1}), "float32[5,1]");
  EXPECT_EQ(inferred("TreeEnsembleClassifier", {{DType::kF32, {5, 2}}},
                     with(tree("class", {0, 1, 0}), {{"classlabels_strings", S{"a", "b"}}})),
            "\"node\" (TreeEnsembleClassifier): its classlabels_strings are text, which is not supported");
  EXPECT_EQ(inferred("TreeEnsemble", {{DType::kF32, {5, 2}}},
                     with(ensemble(), {{"membership_values", floats({1, 3})}})),
            "\"node\" (TreeEnsemble): its membership_values end before the nodes that test them");
}

TEST(MlSvm, RegressionAndClasses) {
  const Tensor x = floats({1, 2, 0, -1}, {2, 2});
  const Attrs rbf = {{"kernel_type", std::string("RBF")},
                     {"kernel_params", F{.5, 0, 0}},
                     {"support_vectors", F{1, 2, 0, 0}},
                     {"coefficients", F{2, -1}},
                     {"rho", F{.25}},
                     {"n_supports", int64_t{2}}};
  expect_tensor(run("SVMRegressor", {x}, rbf),
                floats({2 - std::exp(-2.5) + .25, 2 * std::exp(-5.0) - std::exp(-.5) + .25}, {2, 1}));
  expect_tensor(run("SVMRegressor", {x}, with(rbf, {{"one_class", int64_t{1}}})), floats({1, -1}, {2, 1}));
  const Attrs pair = {{"support_vectors", F{1, 2, 0, 0}},
                      {"coefficients", F{2, -1}},
                      {"rho", F{-4}},
                      {"vectors_per_class", I{1, 1}},
                      {"classlabels_ints", I{4, 9}}};
  const auto two = run_all("SVMClassifier", {x}, pair, 2);
  expect_tensor(two[0], ints({4, 9}));
  expect_tensor(two[1], floats({-6, 6, 8, -8}, {2, 2}));
  const auto probability =
      run_all("SVMClassifier", {x}, with(pair, {{"prob_a", F{-1}}, {"prob_b", F{0}}}), 2);
  EXPECT_NEAR(probability[1].real(0), 1 / (1 + std::exp(-6.0)), 1e-3);
  EXPECT_NEAR(probability[1].real(0) + probability[1].real(1), 1, 1e-6);
  EXPECT_EQ(inferred("SVMClassifier", {{DType::kF32, {2, 2}}}, with(pair, {{"rho", F{1, 2}}}), {}, 2),
            "\"node\" (SVMClassifier): its rho has 2 entries, not 1");
  EXPECT_EQ(inferred("SVMRegressor", {{DType::kF32, {2, 3}}}, rbf),
            "\"node\" (SVMRegressor): features: 3 is not 2");
}

TEST(MlTables, Refusals) {
  const auto type = [](const char* op, const Attrs& a, DType t = DType::kF32) {
    return inferred(op, {{t, {4, 3}}}, a);
  };
  EXPECT_EQ(type("Scaler", {{"scale", F{1, 2}}}), "\"node\" (Scaler): entries of scale: 2 is not 3");
  EXPECT_EQ(type("Scaler", {}, DType::kI8), "\"node\" (Scaler): not defined for int8");
  EXPECT_EQ(type("Normalizer", {{"norm", std::string("L3")}}), "\"node\" (Normalizer): its norm is \"L3\"");
  EXPECT_EQ(type("Imputer", {}), "\"node\" (Imputer): its imputed values is empty");
  EXPECT_EQ(type("LabelEncoder", {{"keys_strings", S{"a"}}, {"values_floats", F{1}}}),
            "\"node\" (LabelEncoder): its keys_strings are text, which is not supported");
  EXPECT_EQ(type("LabelEncoder", {{"keys_floats", F{1, 1}}, {"values_floats", F{1, 2}}}),
            "\"node\" (LabelEncoder): a key stands twice");
  EXPECT_EQ(type("LabelEncoder", {{"keys_int64s", I{1}}, {"values_floats", F{1}}}),
            "\"node\" (LabelEncoder): its keys are int64, the input is float32");
  EXPECT_EQ(type("LinearRegressor", {{"coefficients", F{1, 2}}}),
            "\"node\" (LinearRegressor): features: 3 is not 2");
  EXPECT_EQ(refusal("ArrayFeatureExtractor", {floats({1, 2}), ints({2})}),
            "\"node\" (ArrayFeatureExtractor): an index is outside of the features");
  EXPECT_EQ(refusal("OneHotEncoder", {ints({3})}, {{"cats_int64s", I{1}}, {"zeros", int64_t{0}}}),
            "\"node\" (OneHotEncoder): an element is none of its categories, and zeros is 0");
}

}  // namespace
}  // namespace sinter::node_test
