// Builds a graph of one node and evaluates or infers it: what most tests of operators need.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/op.h"

namespace sinter::node_test {

using Attrs = std::vector<std::pair<std::string, Attribute>>;

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A tensor of any dtype from numbers; rank 1 unless a shape is given.
inline Tensor tensor(DType t, const std::vector<double>& v, std::vector<int64_t> shape = {-1}) {
  if (shape == std::vector<int64_t>{-1}) shape = {static_cast<int64_t>(v.size())};
  Tensor out(t, shape);
  SINTER_CHECK(out.size() == static_cast<int64_t>(v.size()));
  for (int64_t i = 0; i < out.size(); ++i) {
    const double x = v[static_cast<size_t>(i)];
    if (t == DType::kU64)
      out.set_integer(i, static_cast<int64_t>(static_cast<uint64_t>(x)));
    else
      out.set_real(i, x);
  }
  return out;
}
inline Tensor floats(const std::vector<double>& v, std::vector<int64_t> shape = {-1}) {
  return tensor(DType::kF32, v, std::move(shape));
}
inline Tensor ints(const std::vector<double>& v, std::vector<int64_t> shape = {-1}) {
  return tensor(DType::kI64, v, std::move(shape));
}

// The graph of one node. Inputs with data are constants; an undefined dtype is an absent input.
struct SingleNode {
  Graph graph;
  Node* node = nullptr;

  SingleNode(const char* op, const std::vector<TensorType>& types, const std::vector<Tensor>& data,
             const Attrs& attributes, size_t outputs) {
    const Op* o = find_op("", op);
    if (!o) o = find_op("ai.onnx.ml", op);
    SINTER_CHECK(o, "unknown operator");
    std::vector<Value*> in, out;
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i].dtype == DType::kUndefined)
        in.push_back(nullptr);
      else if (i < data.size() && data[i])
        in.push_back(graph.add_constant("c" + std::to_string(i), data[i]));
      else
        in.push_back(graph.add_value("x" + std::to_string(i), types[i]));
    }
    for (size_t i = 0; i < outputs; ++i) out.push_back(graph.add_value("y" + std::to_string(i), {}));
    node = graph.add_node(o, "node", in, out);
    for (const auto& [name, value] : attributes) node->attributes.set(name, value);
  }
};

inline TensorType type_of(const Tensor& t) {
  return t ? TensorType{t.dtype(), Shape(t.shape().begin(), t.shape().end())} : TensorType{};
}
// All outputs of the operator for these inputs (empty Tensor: absent).
inline std::vector<Tensor> run_all(const char* op, const std::vector<Tensor>& in, const Attrs& a = {},
                                   size_t outputs = 1) {
  std::vector<TensorType> types;
  for (const Tensor& t : in) types.push_back(type_of(t));
  const SingleNode n(op, types, {}, a, outputs);
  return evaluate(*n.node, in);
}
inline Tensor run(const char* op, const std::vector<Tensor>& in, const Attrs& a = {}) {
  return run_all(op, in, a)[0];
}
// What inference says of the first output: "float32[N,3]" or the first problem. data[i]: constant inputs.
inline std::string inferred(const char* op, const std::vector<TensorType>& types, const Attrs& a = {},
                            const std::vector<Tensor>& data = {}, size_t outputs = 1) {
  SingleNode n(op, types, data, a, outputs);
  try {
    infer(n.graph, *n.node);
  } catch (const Refusal& r) {
    return r.problems.at(0);
  }
  return text(n.node->outputs[0]->type);
}
inline std::string refusal(const char* op, const std::vector<Tensor>& in, const Attrs& a = {},
                           size_t outputs = 1) {
  try {
    run_all(op, in, a, outputs);
  } catch (const Refusal& r) {
    return r.problems.at(0);
  }
  return "";
}

// Shape, dtype and elements; floats within `tolerance` relative to 1 or to the wanted value, NaN equals NaN.
inline void expect_tensor(const Tensor& got, const Tensor& want, double tolerance = 1e-6,
                          const std::string& what = "") {
  ASSERT_TRUE(static_cast<bool>(got)) << what;
  ASSERT_EQ(name_of(got.dtype()), name_of(want.dtype())) << what;
  ASSERT_EQ(got.shape(), want.shape()) << what;
  for (int64_t i = 0; i < got.size(); ++i) {
    if (!is_float(got.dtype())) {
      EXPECT_EQ(got.integer(i), want.integer(i)) << what << " element " << i;
      continue;
    }
    const double a = got.real(i), b = want.real(i);
    if (std::isnan(b) || std::isinf(b))
      EXPECT_TRUE(std::isnan(b) ? std::isnan(a) : a == b) << what << " element " << i << ": " << a;
    else
      EXPECT_NEAR(a, b, tolerance * std::max(1.0, std::fabs(b))) << what << " element " << i;
  }
}

}  // namespace sinter::node_test
