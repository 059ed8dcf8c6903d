// A Sheet: many single nodes side by side in one graph, so that one translation unit tests them all.
//
//   Sheet s;
//   const Dim n = s.symbol("N", 1, 4);
//   s.add("Softmax", {values(DType::kF32, {n, 7})}, {{"axis", int64_t{-1}}});
//   s.into(batch, "softmax", {{{"N", 1}}, {{"N", 3}}});   // one data set for each setting of the symbols
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "emit/generated.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "plan/decision.h"

namespace sinter {

using Fill = std::function<void(Tensor&, std::mt19937&)>;

// Floats in [-2, 2), integers in [-9, 9] (unsigned: [0, 18]).
inline void random_fill(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) {
    if (is_float(t.dtype()))
      t.set_real(i, static_cast<double>(random() % 4000) / 1000 - 2);
    else
      t.set_integer(i, static_cast<int64_t>(random() % 19) - (is_signed(t.dtype()) ? 9 : 0));
  }
}

// An input of a node on a Sheet.
struct Arg {
  TensorType type;  // kUndefined: absent
  Fill fill;
  Tensor constant;
  Value* made = nullptr;  // by another node on the Sheet
};
inline Arg values(DType t, Shape shape, Fill fill = random_fill) { return {{t, std::move(shape)}, fill, {}}; }
inline Arg floats(Shape shape, Fill fill = random_fill) {
  return values(DType::kF32, std::move(shape), fill);
}
inline Arg constant(Tensor t) { return {{t.dtype(), Shape(t.shape().begin(), t.shape().end())}, nullptr, t}; }
inline Arg absent() { return {}; }
inline Arg made(Value* v) { return {v->type, nullptr, {}, v}; }
inline Tensor random_constant(DType t, std::vector<int64_t> shape, unsigned seed = 7) {
  Tensor c(t, std::move(shape));
  std::mt19937 random(seed);
  random_fill(c, random);
  return c;
}

using AttributeList = std::vector<std::pair<std::string, Attribute>>;
using Ints = std::vector<int64_t>;

class Sheet {
 public:
  Sheet() : graph_(std::make_unique<Graph>()) {}

  Dim symbol(const std::string& name, int64_t lo, int64_t hi) {
    return Dim(graph_->symbols->fresh(name, {lo, hi}, "test"));
  }
  // A node of its own; its type is inferred at once. Outputs whose flag in `outputs` is 0 are absent.
  Node* add(const std::string& op, const std::vector<Arg>& args, const AttributeList& attributes = {},
            const std::vector<bool>& outputs = {true}) {
    std::vector<Value*> in, out;
    const std::string name = op + std::to_string(graph_->nodes.size());
    for (const Arg& a : args) {
      if (a.made) {
        in.push_back(a.made);
      } else if (a.constant) {
        in.push_back(graph_->add_constant(name + "_c", a.constant));
      } else if (a.type.dtype == DType::kUndefined) {
        in.push_back(nullptr);
      } else {
        in.push_back(graph_->add_value(name + "_x", a.type));
        graph_->inputs.push_back(in.back());
        fills_.push_back(a.fill);
      }
    }
    for (bool wanted : outputs) out.push_back(wanted ? graph_->add_value(name + "_y", {}) : nullptr);
    const Op* o = find_op("", op);
    if (!o) o = find_op("sinter", op);
    if (!o) o = find_op("com.microsoft", op);
    if (!o) o = find_op("ai.onnx.ml", op);
    SINTER_CHECK(o, "the test names an unknown operator");
    Node* n = graph_->add_node(o, name, in, out);
    for (const auto& [key, value] : attributes) n->attributes.set(key, value);
    infer(*graph_, *n);
    for (Value* v : out)
      if (v) graph_->outputs.push_back(v);
    return n;
  }
  // The last node's result goes through `expr` (leaves: kAccumulator, and kOperand from 0 for `operands`).
  void epilogue(const ExprPtr& expr, const std::vector<Arg>& operands = {}) {
    Node* n = graph_->nodes.back().get();
    const size_t own = n->inputs.size();
    for (const Arg& a : operands) {
      Value* v = a.constant ? graph_->add_constant(n->name + "_o", a.constant)
                            : graph_->add_value(n->name + "_o", a.type);
      if (!a.constant) {
        graph_->inputs.push_back(v);
        fills_.push_back(a.fill);
      }
      graph_->set_input(n, n->inputs.size(), v);
    }
    n->anchor_inputs = own;  // set_input counts all inputs as the anchor's while there is no epilogue
    n->epilogue = rewrite_leaves(expr, [&](const Expr& leaf) -> ExprPtr {
      if (leaf.kind != Expr::Kind::kOperand) return nullptr;
      return Expr::input(leaf.operand + static_cast<int>(n->anchor_inputs), leaf.dtype);
    });
    infer(*graph_, *n);
  }
  // Random inputs for each setting of the symbols.
  std::vector<DataSet> data(const std::vector<std::map<std::string, int64_t>>& settings) const {
    std::vector<DataSet> sets;
    std::mt19937 random(1);
    for (const auto& setting : settings) {
      DataSet d;
      for (size_t i = 0; i < graph_->inputs.size(); ++i) {
        std::vector<int64_t> dims;
        for (const Dim& e : graph_->inputs[i]->type.shape)
          dims.push_back(e.evaluate([&](const Symbol& s) { return setting.at(s.name); }));
        Tensor t(graph_->inputs[i]->type.dtype, dims);
        fills_[i](t, random);
        d.inputs.push_back(std::move(t));
      }
      sets.push_back(std::move(d));
    }
    return sets;
  }
  void into(GeneratedBatch& batch, const std::string& name,
            const std::vector<std::map<std::string, int64_t>>& settings = {{}}, Tolerance tolerance = {}) {
    std::vector<DataSet> sets = data(settings);
    // Operators defined by simpler ones run through the passes; what they mean is said before.
    if (std::any_of(graph_->nodes.begin(), graph_->nodes.end(), [](const auto& n) { return n->op->lower; })) {
      for (DataSet& d : sets) d.expected = evaluate(*graph_, d.inputs);
      run_passes(*graph_, {});
    }
    batch.add(name, std::move(graph_), std::move(sets), tolerance, std::move(decisions));
    decisions = {};
    graph_ = std::make_unique<Graph>();
    fills_.clear();
  }
  Graph& graph() { return *graph_; }
  // What is decided of the nodes before they are planned; the default where a test says nothing.
  Decision& decide(const Node* n) { return decisions.change(*n); }
  Decisions decisions;

 private:
  std::unique_ptr<Graph> graph_;
  std::vector<Fill> fills_;
};

inline const Target& target(const char* name) {
  const Target* t = find_target(name);
  SINTER_CHECK(t, "the test names an unknown target");
  return *t;
}

}  // namespace sinter
