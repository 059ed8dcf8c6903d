// Trial: one node in a graph of its own, for the tables of movement operators' tests.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/movement/movement.h"

namespace sinter::movement_test {

class Trial {
 public:
  explicit Trial(const char* op, size_t outputs = 1) : op_(op), outputs_(outputs) {}
  Dim symbol(const std::string& name, int64_t lo = 1, int64_t hi = Interval::kUnbounded) {
    return Dim(graph.symbols->fresh(name, {lo, hi}, "test"));
  }
  // Inputs in order: one of unknown contents, a constant, one whose contents are these Dims, or none.
  Trial& input(DType type, Shape shape) {
    inputs_.push_back(graph.add_value(names_.at(inputs_.size()), {type, std::move(shape)}));
    graph.inputs.push_back(inputs_.back());
    return *this;
  }
  Trial& input(Shape shape) { return input(DType::kF32, std::move(shape)); }
  Trial& constant(Tensor t) {
    inputs_.push_back(graph.add_constant(names_.at(inputs_.size()), std::move(t)));
    return *this;
  }
  Trial& ints(const std::vector<int64_t>& values) { return constant(Tensor::of(values)); }
  Trial& dims(std::vector<Dim> values, bool scalar = false) {
    input(DType::kI64, scalar ? Shape{} : Shape{Dim(static_cast<int64_t>(values.size()))});
    inputs_.back()->elements = std::move(values);
    return *this;
  }
  Trial& absent() {
    inputs_.push_back(nullptr);
    return *this;
  }
  Value* input_value(size_t i) const { return inputs_[i]; }
  Trial& set(const std::string& name, Attribute value) {
    attributes_.set(name, std::move(value));
    return *this;
  }

  const Node& node() {
    if (node_) return *node_;
    std::vector<Value*> outs;
    for (size_t i = 0; i < outputs_; ++i) outs.push_back(graph.add_value("y", {}));
    const Op* op = find_op("", op_);
    SINTER_CHECK(op, "no such op");
    node_ = graph.add_node(op, "node", inputs_, outs);
    node_->attributes = attributes_;
    return *node_;
  }
  // "float32[N,4]", with known contents "int64[2]{N,4}"; several outputs by "; "; a refusal without its
  // label.
  std::string inferred() {
    try {
      node();
      infer(graph);
    } catch (const Refusal& r) {
      const std::string prefix = label(*node_) + ": ";
      return r.problems[0].starts_with(prefix) ? r.problems[0].substr(prefix.size()) : r.problems[0];
    }
    std::string s;
    for (const Value* v : node_->outputs) {
      s += (s.empty() ? "" : "; ") + text(v->type);
      if (v->elements.empty()) continue;
      const std::string list = text(Shape(v->elements));
      s += "{" + list.substr(1, list.size() - 2) + "}";
    }
    return s;
  }
  std::string checks() {
    std::string s;
    for (const Check& c : graph.checks) s += (s.empty() ? "" : "; ") + c.a.text() + " == " + c.b.text();
    return s;
  }
  // Results for the constants and, in order, these tensors: "[2,2] 1 2 3 4", outputs by "; ", or the refusal.
  std::string evaluated(std::vector<Tensor> given = {}) {
    std::vector<Tensor> all;
    size_t next = 0;
    for (const Value* v : inputs_) all.push_back(!v ? Tensor() : v->data ? *v->data : given.at(next++));
    try {
      std::string s;
      for (const Tensor& t : evaluate(node(), all)) {
        s += (s.empty() ? "" : "; ") + text(Shape(t.shape().begin(), t.shape().end()));
        for (double v : t.reals()) s += fmt::format(" {}", v);
      }
      return s;
    } catch (const Refusal& r) {
      return r.problems[0];
    }
  }

  Graph graph;

 private:
  std::string op_;
  size_t outputs_;
  std::vector<std::string> names_{"x", "b", "c", "d", "e", "f"};
  std::vector<Value*> inputs_;
  Attributes attributes_;
  Node* node_ = nullptr;
};

// 0, 1, 2, … in a shape.
inline Tensor iota(std::vector<int64_t> shape, DType type = DType::kF32) {
  Tensor t(type, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, i);
  return t;
}
inline Tensor scalar_of(int64_t v, DType type = DType::kI64) {
  Tensor t(type, {});
  t.set_integer(0, v);
  return t;
}
inline Tensor bools(const std::vector<int64_t>& v) { return Tensor::of(v).converted(DType::kBool); }
inline Tensor matrix(const std::vector<int64_t>& values, std::vector<int64_t> shape) {
  return Tensor::of(values).reshaped(std::move(shape));
}

}  // namespace sinter::movement_test
