// A graph of one node, for tests of single operators: inferred with symbolic or static input types, evaluated
// with actual tensors, and both compared.
#pragma once
#include <gtest/gtest.h>

#include <random>

#include "ops/op.h"

namespace sinter {

struct OneNode {
  Graph graph;
  Node* node = nullptr;

  // An input without dtype is absent; `constants[i]`, where there is one, makes input i a constant.
  OneNode(const char* op, std::vector<TensorType> inputs, Attributes attributes = {}, size_t outputs = 1,
          std::vector<Tensor> constants = {}) {
    std::vector<Value*> in, out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = "in" + std::to_string(i);
      if (i < constants.size() && constants[i]) {
        in.push_back(graph.add_constant(name, constants[i]));
      } else if (inputs[i].dtype == DType::kUndefined) {
        in.push_back(nullptr);
      } else {
        in.push_back(graph.add_value(name, inputs[i]));
        graph.inputs.push_back(in.back());
      }
    }
    for (size_t i = 0; i < outputs; ++i) {
      out.push_back(graph.add_value("out" + std::to_string(i), {}));
      graph.outputs.push_back(out.back());
    }
    const Op* found = find_op("", op) ? find_op("", op) : find_op("com.microsoft", op);
    SINTER_CHECK(found, "the test names an unknown operator");
    node = graph.add_node(found, "test", in, out);
    node->attributes = std::move(attributes);
  }
  const TensorType& inferred(size_t i = 0) {
    infer(graph);
    return node->outputs[i]->type;
  }
  // The first problem of the Refusal that inference ends in; empty where it does not refuse.
  std::string refusal() {
    try {
      infer(graph);
    } catch (const Refusal& r) {
      return r.problems.at(0);
    }
    return "";
  }
};

inline TensorType type_of(const Tensor& t) { return {t.dtype(), Shape(t.shape().begin(), t.shape().end())}; }

// Evaluates one node on `inputs` (an empty Tensor is an absent input), statically inferred before.
inline std::vector<Tensor> run_node(const char* op, const std::vector<Tensor>& inputs,
                                    const Attributes& attributes = {}, size_t outputs = 1) {
  std::vector<TensorType> types;
  for (const Tensor& t : inputs) types.push_back(t ? type_of(t) : TensorType{});
  OneNode n(op, types, attributes, outputs, inputs);
  return evaluate(*n.node, inputs);
}

// Seeded values in [-1, 1) (floats) or [-9, 9] (integers; unsigned 0 to 9).
inline Tensor random_tensor(DType dtype, std::vector<int64_t> shape, std::mt19937& random) {
  Tensor t(dtype, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) {
    if (is_float(dtype))
      t.set_real(i, static_cast<double>(random() % 2000) / 1000 - 1);
    else
      t.set_integer(i, static_cast<int64_t>(random() % 19) - (is_signed(dtype) ? 9 : 0));
  }
  return t;
}

inline void expect_near(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.real(i), y = b.real(i);
    ASSERT_TRUE(x == y || std::abs(x - y) <= tolerance * (1 + std::abs(y)) || (x != x && y != y))
        << "element " << i << ": " << x << " and " << y;
  }
}

// [N, C, spatial...] as [N, spatial..., C] and back.
inline Tensor to_channels_last(const Tensor& t) {
  std::vector<int64_t> perm{0};
  for (int64_t i = 2; i < t.rank(); ++i) perm.push_back(i);
  perm.push_back(1);
  return t.transposed(perm);
}

inline Attributes attributes_of(std::initializer_list<std::pair<const char*, Attribute>> list) {
  Attributes a;
  for (const auto& [name, value] : list) a.set(name, value);
  return a;
}

}  // namespace sinter
