// ai.onnx.ml: what infer, eval and the kernels read from a node's attributes, checked once.
#pragma once
#include <vector>

#include "ops/op.h"
#include "sinter/svm.h"
#include "sinter/trees.h"

namespace sinter {

inline constexpr const char* kMl = "ai.onnx.ml";

// [rows, features] of an input of one or two axes: one axis is one row.
struct Matrix {
  Dim rows = 1, features;
};
Matrix matrix_of(const Shape&);

// Floats of attribute `name`, else of the tensor `name`_as_tensor; empty where there is neither.
std::vector<double> reals_of(const Attributes&, const std::string& name);
std::vector<float> floats_of(const Attributes&, const std::string& name, std::vector<float> fallback = {});
MlPost post_of(const Attributes&);  // attribute post_transform, as text; refuses others

// The trees of TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier, as the model has them. Every
// child exists, no node is below itself, every target is one, every feature is >= 0.
enum class TreeTest : int32_t { kLeaf, kAtMost, kLess, kAtLeast, kGreater, kEqual, kUnequal };
struct ModelTreeNode {
  double value = 0;
  TreeTest test = TreeTest::kLeaf;
  int32_t feature = 0;
  int32_t yes = 0, no = 0;      // nodes; of a leaf: its first weight and how many it has
  bool missing_is_yes = false;  // NaN passes whatever the test
};
struct ForestTables {
  std::vector<ModelTreeNode> nodes;
  std::vector<TreeWeight<double>> weights;
  std::vector<int32_t> roots;
  std::vector<double> base;           // empty or one a target
  int64_t targets = 0, features = 0;  // features: one more than the greatest that a node asks for
  TreeSum sum = TreeSum::kSum;
  MlPost post = MlPost::kNone;
  // Classifiers.
  std::vector<int64_t> labels;
  int64_t bases = 0;  // how many base values the model has
  bool binary = false, probability = false;
  TreeClasses classes() const { return {labels.data(), targets, bases, post, binary, probability}; }
};
// Features, thresholds and weights of float64 inputs are doubles, of others floats, as in ONNX Runtime.
inline bool trees_in_double(DType input) { return input == DType::kF64; }
ForestTables forest_of(const Node&);

// LabelEncoder: keys ascending (NaN last), their values, what others become.
struct EncoderTables {
  Tensor keys, values, other;
};
EncoderTables encoder_of(const Node&);

MlNorm norm_of(const Attributes&);  // Normalizer's attribute norm; refuses others

// Imputer: what is replaced (one element) and by what, of the input's type.
struct ImputerTables {
  Tensor replaced, values;
};
ImputerTables imputed_of(const Node&, DType);

struct LinearTables {
  std::vector<float> coefficients, intercepts;
  int64_t targets = 1, features = 0;
  std::vector<int64_t> classes;
  MlPost post = MlPost::kNone;
};
LinearTables linear_of(const Node&);

// SVMRegressor and SVMClassifier.
struct SvmTables {
  SvmShape shape;
  std::vector<float> vectors, coefficients, rho, prob_a, prob_b;
  std::vector<int64_t> per_class, classes;
};
SvmTables svm_of(const Node&);

}  // namespace sinter
