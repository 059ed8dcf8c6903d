// Text in models: class labels become indices, and nobody needs them where only scores are read.
#include <gtest/gtest.h>

#include "import/onnx.h"
#include "model_text.h"
#include "ops/op.h"

namespace sinter {
namespace {

constexpr const char* kHead = "<ir_version: 8, opset_import: [\"\" : 15, \"ai.onnx.ml\" : 3]> g ";
constexpr const char* kTree = R"(ai.onnx.ml.TreeEnsembleClassifier <class_ids = [0, 1, 0, 1],
  class_nodeids = [1, 1, 2, 2], class_treeids = [0, 0, 0, 0], class_weights = [1.0, 0.0, 0.0, 1.0],
  classlabels_strings = ["no", "yes"], nodes_falsenodeids = [2, 0, 0], nodes_featureids = [0, 0, 0],
  nodes_hitrates = [1.0, 1.0, 1.0], nodes_missing_value_tracks_true = [0, 0, 0],
  nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_nodeids = [0, 1, 2], nodes_treeids = [0, 0, 0],
  nodes_truenodeids = [1, 0, 0], nodes_values = [0.5, 0.0, 0.0], post_transform = "NONE"> (x) )";

// What the first output is for `inputs`, and the names of all outputs.
std::string results(const std::string& graph, const std::vector<Tensor>& inputs) {
  std::string said;
  const std::string refusal = refusal_of([&] {
    const Model m = import_text(kHead + graph);
    const std::vector<Tensor> y = evaluate(*m.graph, inputs);
    said = name_of(y[0].dtype());
    for (int64_t i = 0; i < y[0].size(); ++i) said += fmt::format(" {}", y[0].real(i));
    for (const auto& [output, names] : m.class_names) {
      said += " " + output + ":";
      for (const std::string& n : names) said += n + ",";
    }
  });
  return refusal == "accepted" ? said : refusal;
}
Tensor rows(const std::vector<float>& first) {
  std::vector<float> all;
  for (const float f : first) all.insert(all.end(), {f, 0});
  return Tensor::of(all, {static_cast<int64_t>(first.size()), 2});
}

TEST(Text, LabelsOfTreesAreIndices) {
  const std::string graph = "(float[3,2] x) => ";
  EXPECT_EQ(results(graph + "(string[3] l) { l, p = " + kTree + "}", {rows({0, 1, 0.5f})}),
            "int64 0 1 0 l:no,yes,");
  EXPECT_EQ(results(graph + "(float[3,2] p) { l, p = " + kTree + "}", {rows({0, 1, 0.5f})}),
            "float32 1 0 0 1 1 0");
  EXPECT_EQ(results(graph + "(string[3,1] r) { l, p = " + kTree +
                        " s = Constant<value = int64[2] {3, 1}>() r = Reshape(l, s) }",
                    {rows({0, 1, 0.5f})}),
            "int64 0 1 0 r:no,yes,");
  EXPECT_NE(results(graph + "(float[3] r) { l, p = " + kTree + " r = Cast<to = 1>(l) }", {rows({0, 1, 0})})
                .find("its input is text"),
            std::string::npos);
}

TEST(Text, LabelsOfLinearModels) {
  EXPECT_EQ(results(R"((float[2,2] x) => (string[2] l, float[2,2] p) { l, p = ai.onnx.ml.LinearClassifier
              <classlabels_strings = ["a", "b"], coefficients = [1.0, 0.0, -1.0, 0.0], intercepts = [0.0, 0.0]> (x) })",
                    {rows({2, -2})}),
            "int64 0 1 l:a,b,");
}

// As exporters of nearest neighbours write it: the classes are a constant, and the label is picked from them.
TEST(Text, ConstantsArePicked) {
  EXPECT_EQ(results(R"((int64[3] x) => (string[3] y) <string[2] classes = {"cat", "dog"}> {
              a = ai.onnx.ml.ArrayFeatureExtractor(classes, x)
              s = Constant<value = int64[1] {-1}>() t = Cast<to = 8>(a) y = Reshape(t, s) })",
                    {Tensor::of(std::vector<int64_t>{1, 0, 1})}),
            "int64 1 0 1 y:cat,dog,");
}

TEST(Text, EncodersMapIndices) {
  const std::string to =
      R"(l = ai.onnx.ml.LabelEncoder<keys_int64s = [4, 7], values_strings = ["low", "high"]>(x) )";
  const Tensor x = Tensor::of(std::vector<int64_t>{7, 4, 9});
  EXPECT_EQ(results("(int64[3] x) => (string[3] l) { " + to + "}", {x}), "int64 1 0 2 l:low,high,_Unused,");
  EXPECT_EQ(
      results("(int64[3] x) => (float[3] y) { " + to +
                  R"(y = ai.onnx.ml.LabelEncoder<keys_strings = ["high", "odd"], values_floats = [5.0, 6.0],
                           default_float = 1.5>(l) })",
              {x}),
      "float32 5 1.5 1.5");
  EXPECT_NE(results(R"((int64[3] x) => (int64[3] y) { y = ai.onnx.ml.LabelEncoder<keys_strings = ["a"],
                       values_int64s = [1]>(x) })",
                    {x})
                .find("its keys are text, its input is not"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter
