// ai.onnx.ml as generated code against the interpreter.
#include <gtest/gtest.h>

#include <limits>

#include "emit/sheet.h"

namespace sinter {
namespace {

using F = std::vector<float>;
using S = std::vector<std::string>;

void check(GeneratedBatch& batch) {
  for (const char* name : {"avx512", "aarch64"}) {
    const auto results = batch.run(target(name), {.together = 4});
    if (!results[0].skipped.empty()) continue;
    expect_good(results, name);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
}
F noise(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  F v(n);
  for (float& x : v) x = static_cast<float>(random() % 2001) / 1000 - 1;
  return v;
}
void with_nan(Tensor& t, std::mt19937& random) {
  random_fill(t, random);
  for (int64_t i = 0; i < t.size(); i += 7)
    if (is_float(t.dtype())) t.set_real(i, std::numeric_limits<double>::quiet_NaN());
}

// Two full trees of depth 2, all tests; or more than run side by side.
AttributeList trees(const std::string& leaves, const Ints& targets, int64_t count = 2, bool missing = false) {
  Ints tree, node, yes, no, feature, leaf_tree, leaf_node, ids;
  S modes;
  const char* const tests[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                               "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  Ints tracks;
  for (int64_t t = 0; t < count; ++t)
    for (int64_t i = 0; i < 7; ++i) {
      tree.push_back(t), node.push_back(i), feature.push_back(i % 3);
      yes.push_back(i < 3 ? 2 * i + 1 : 0), no.push_back(i < 3 ? 2 * i + 2 : 0);
      modes.push_back(i < 3 ? tests[(t * 3 + i) % 6] : "LEAF");
      tracks.push_back(missing && i < 3 ? (t + i) % 2 : 0);
      if (i < 3) continue;
      leaf_tree.push_back(t), leaf_node.push_back(i), ids.push_back(targets[node.size() % targets.size()]);
    }
  return {{"nodes_treeids", tree},
          {"nodes_nodeids", node},
          {"nodes_featureids", feature},
          {"nodes_modes", modes},
          {"nodes_values", noise(tree.size(), 3)},
          {"nodes_truenodeids", yes},
          {"nodes_falsenodeids", no},
          {leaves + "_treeids", leaf_tree},
          {leaves + "_nodeids", leaf_node},
          {leaves + "_ids", ids},
          {leaves + "_weights", noise(ids.size(), 4)},
          {"nodes_missing_value_tracks_true", tracks}};
}
AttributeList operator+(AttributeList a, const AttributeList& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(MlKernels, TreesLinearModelsAndMachines) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 140);
  for (const char* sum : {"SUM", "MIN", "MAX", "AVERAGE"})
    s.add("TreeEnsembleRegressor", {floats({n, 3}, with_nan)},
          trees("target", {0, 1}) +
              AttributeList{{"n_targets", int64_t{2}}, {"aggregate_function", std::string(sum)}});
  for (const char* post : {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"}) {
    const AttributeList how = {{"post_transform", std::string(post)}};
    s.add("TreeEnsembleClassifier", {floats({n, 3}, with_nan)},
          trees("class", {0, 1, 2}) + AttributeList{{"classlabels_int64s", Ints{4, 5, 9}}} + how,
          {true, true});
    s.add("TreeEnsembleClassifier", {values(DType::kF64, {n, 3})},
          trees("class", {0}) + AttributeList{{"classlabels_int64s", Ints{4, 5}}} + how, {false, true});
    s.add("LinearClassifier", {floats({n, 3})},
          AttributeList{{"coefficients", noise(9, 1)}, {"classlabels_ints", Ints{4, 5, 9}}} + how,
          {true, true});
  }
  // Rows in blocks, in groups and one by one; features in float and double; leaves of several targets.
  for (const DType t : {DType::kF32, DType::kF64, DType::kI64})
    for (const bool missing : {false, true}) {
      s.add("TreeEnsembleRegressor", {values(t, {n, 3}, with_nan)},
            trees("target", {0}, 11, missing) + AttributeList{{"base_values", F{.5f}}});
      s.add("TreeEnsembleClassifier", {values(t, {n, 3}, with_nan)},
            trees("class", {0, 1}, 11, missing) +
                AttributeList{{"classlabels_int64s", Ints{4, 5}}, {"base_values", F{.5f, -.25f}}},
            {true, true});
    }
  s.add("LinearRegressor", {values(DType::kI64, {n, 3})},
        {{"coefficients", noise(6, 1)}, {"intercepts", noise(2, 2)}, {"targets", int64_t{2}}});
  s.into(batch, "trees", {{{"N", 0}}, {{"N", 20}}, {{"N", 139}}});
  for (const char* kernel : {"LINEAR", "POLY", "RBF", "SIGMOID"}) {
    const AttributeList how = {{"kernel_type", std::string(kernel)}, {"kernel_params", F{.3f, .2f, 3}}};
    s.add("SVMRegressor", {floats({6, 3})},
          how + AttributeList{{"support_vectors", noise(12, 1)},
                              {"coefficients", noise(4, 2)},
                              {"rho", F{.1f}},
                              {"n_supports", int64_t{4}}});
    for (bool probability : {false, true}) {
      AttributeList a = how + AttributeList{{"support_vectors", noise(15, 1)},
                                            {"coefficients", noise(10, 2)},
                                            {"rho", noise(3, 3)},
                                            {"vectors_per_class", Ints{2, 1, 2}},
                                            {"classlabels_ints", Ints{4, 5, 9}}};
      if (probability) a = a + AttributeList{{"prob_a", F{-1, -.5f, -2}}, {"prob_b", noise(3, 5)}};
      s.add("SVMClassifier", {floats({6, 3})}, a, {true, true});
    }
  }
  s.into(batch, "machines");
  check(batch);
}

TEST(MlKernels, ScalingAndEncoding) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 0, 9);
  for (DType t : {DType::kF32, DType::kF64, DType::kI32, DType::kI64}) {
    s.add("Scaler", {values(t, {n, 3})}, {{"offset", F{1, 2, 3}}, {"scale", F{.5f}}});
    s.add("Binarizer", {values(t, {n, 3})}, {{"threshold", .5f}});
    for (const char* norm : {"MAX", "L1", "L2"})
      s.add("Normalizer", {values(t, {n, 3})}, {{"norm", std::string(norm)}});
    s.add("Imputer", {values(t, {n, 3}, with_nan)},
          {{"imputed_value_floats", F{7, 8, 9}},
           {"replaced_value_float", std::numeric_limits<float>::quiet_NaN()},
           {"imputed_value_int64s", Ints{7, 8, 9}},
           {"replaced_value_int64", int64_t{2}}});
    s.add("ArrayFeatureExtractor", {values(t, {n, 3}), constant(Tensor::of(Ints{2, 0, 2}))});
  }
  s.add("LabelEncoder", {values(DType::kI64, {n, 3})},
        {{"keys_int64s", Ints{3, -1, 5}}, {"values_floats", F{1, 2, 3}}});
  s.add("LabelEncoder", {floats({n, 3}, with_nan)},
        {{"keys_floats", F{std::numeric_limits<float>::quiet_NaN(), 1}}, {"values_int64s", Ints{1, 2}}});
  s.add("OneHotEncoder", {values(DType::kI64, {n, 3})}, {{"cats_int64s", Ints{1, 2, -3}}});
  s.add("FeatureVectorizer", {floats({n, 3}), values(DType::kI64, {n, 2})},
        {{"inputdimensions", Ints{2, 4}}});
  for (const char* mode : {"TF", "TFIDF"})
    s.add("TfIdfVectorizer", {values(DType::kI32, {n, 12})},
          {{"mode", std::string(mode)},
           {"min_gram_length", int64_t{1}},
           {"max_gram_length", int64_t{2}},
           {"max_skip_count", int64_t{3}},
           {"pool_int64s", Ints{2, 3, 2, 3, 5, 2}},
           {"ngram_counts", Ints{0, 2}},
           {"ngram_indexes", Ints{0, 1, 2, 3}},
           {"weights", F{2, 3, 4, 5}}});
  s.into(batch, "numbers", {{{"N", 0}}, {{"N", 9}}});
  check(batch);
}

TEST(MlKernels, WhatDoesNotExistEndsTheRun) {
  GeneratedBatch batch;
  for (int64_t index : {int64_t{-1}, int64_t{3}, INT64_MAX}) {
    Sheet s;
    s.add("ArrayFeatureExtractor", {floats({2, 3}), values(DType::kI64, {1})});
    batch.add(fmt::format("feature {}", index), s.graph().clone(),
              {{{Tensor(DType::kF32, {2, 3}), Tensor::of(Ints{index})}, {}, 5}});
  }
  Sheet s;
  s.add("OneHotEncoder", {values(DType::kI64, {1})}, {{"cats_int64s", Ints{1}}, {"zeros", int64_t{0}}});
  batch.add("category", s.graph().clone(), {{{Tensor::of(Ints{2})}, {}, 5}});
  expect_good(batch.run(target("host")), "host");
}

}  // namespace
}  // namespace sinter
