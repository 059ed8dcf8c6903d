// Lowering: what an Op that is defined by simpler operators (Op::lower) writes them with.
//
// The same function gives the operator all its meanings: inference and evaluation lower a copy of the node
// into a graph of its own (infer.cpp, evaluate.cpp), and pass lower_ops replaces the node in the model's
// graph. Every node that is added is inferred at once, so that the types and shapes of its result can be
// asked; what it refuses is refused in the name of the lowered node.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ops/op.h"

namespace sinter {

class Lowering {
 public:
  using AttributeList = std::map<std::string, Attribute>;
  // Nodes are put before `before` (null: at the end of `graph`).
  Lowering(Graph& graph, const Node& node, Node* before) : node(node), graph_(graph), before_(before) {
    results.resize(node.outputs.size(), nullptr);
  }

  const Node& node;
  std::vector<Value*> results;  // the values that stand for the node's outputs; null: not wanted

  bool has(size_t i) const { return node.input(i) != nullptr; }
  Value* in(size_t i) const { return i < node.inputs.size() ? node.inputs[i] : nullptr; }
  const Attributes& attributes() const { return node.attributes; }
  bool wants(size_t i) const { return node.has_output(i); }

  // The first output of a new node of ONNX's own operator, or of ours (domain "sinter").
  Value* operator()(std::string_view op, std::vector<Value*> inputs, const AttributeList& attributes = {},
                    std::string_view domain = "");
  Value* ours(std::string_view op, std::vector<Value*> inputs, const AttributeList& attributes = {}) {
    return (*this)(op, std::move(inputs), attributes, "sinter");
  }
  Value* constant(Tensor t);
  Value* integers(const std::vector<int64_t>& v) { return constant(Tensor::of(v)); }
  Value* number(float v) { return constant(Tensor::scalar(v)); }
  Value* cast(Value* v, DType to);                               // v itself where it has the type already
  Value* reshape(Value* v, const std::vector<int64_t>& target);  // ONNX's 0 and -1

  [[noreturn]] void fail(const std::string& why) const { refuse_node(node, why); }
  void require(bool condition, const std::string& why) const {
    if (!condition) fail(why);
  }
  // As Inference::require_equal.
  void require_equal(const Dim& a, const Dim& b, const std::string& what);
  int64_t axis(const std::string& name, int64_t fallback, int64_t rank) const;

 private:
  Graph& graph_;
  Node* before_;
};

inline DType dtype_of(const Value* v) { return v->type.dtype; }
inline const Shape& shape_of(const Value* v) { return v->type.shape; }
inline int64_t rank_of(const Value* v) { return static_cast<int64_t>(v->type.shape.size()); }

}  // namespace sinter
