// Builder: what a pass writes the nodes with that one node is lowered to.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "passes/rewrite.h"

namespace sinter {

// Adds nodes in front of `before`, typed as they are made.
class Builder {
 public:
  Builder(Graph& g, Node* before) : g_(g), before_(before) {}
  Value* operator()(const char* op, std::vector<Value*> inputs,
                    const std::map<std::string, Attribute>& attributes = {}) {
    Value* out = g_.add_value(fmt::format("{}/{}", before_->name, op), {});
    Node* n = g_.add_node(find_op("", op), out->name, std::move(inputs), {out}, before_);
    for (const auto& [name, value] : attributes) n->attributes.set(name, value);
    n->sources = before_->sources;
    infer(g_, *n);
    return out;
  }
  Value* integers(const char* name, const std::vector<int64_t>& v) {
    return constant_integers(g_, fmt::format("{}/{}", before_->name, name), v);
  }
  Value* constant(const char* name, Tensor data) {
    return g_.add_constant(fmt::format("{}/{}", before_->name, name), std::move(data));
  }
  Value* number(float v, DType t) {
    return g_.add_constant(before_->name + "/number", Tensor::scalar(v).converted(t));
  }

 private:
  Graph& g_;
  Node* before_;
};

}  // namespace sinter
