// A Chain: convolutions on channels-last floats and what stands between them, built node by node.
#pragma once
#include "emit/sheet.h"

namespace sinter {

// A chain of convolutions on channels-last floats.
struct Chain {
  std::unique_ptr<Graph> g = std::make_unique<Graph>();
  unsigned seed = 1;
  Decisions decisions;  // before the nodes are planned

  Value* input(Shape shape) {
    Value* v = g->add_value("x", {DType::kF32, std::move(shape)});
    g->inputs.push_back(v);
    return v;
  }
  Value* node(const char* op, const std::vector<Value*>& in, const AttributeList& attributes) {
    Value* out = g->add_value(op, {});
    Node* n = g->add_node(find_op("", op), op, in, {out});
    for (const auto& [key, value] : attributes) n->attributes.set(key, value);
    infer(*g, *n);
    return out;
  }
  Value* conv(Value* x, int64_t out, int64_t kernel, int64_t stride, int64_t pad, bool depthwise = false) {
    const int64_t in = x->type.shape.back().value();
    Value* w =
        g->add_constant("w", random_constant(DType::kF32, {out, depthwise ? 1 : in, kernel, kernel}, seed++));
    Value* b = g->add_constant("b", random_constant(DType::kF32, {out}, seed++));
    return node("Conv", {x, w, b},
                {{"channels_last", int64_t{1}},
                 {"pads", Ints{pad, pad, pad, pad}},
                 {"strides", Ints{stride, stride}},
                 {"group", depthwise ? in : int64_t{1}}});
  }
  // acc + v, where the last node's result is made.
  void add_residual(Value* v) {
    Node* n = g->nodes.back().get();
    const int own = static_cast<int>(n->inputs.size());
    g->set_input(n, n->inputs.size(), v);
    n->anchor_inputs = static_cast<size_t>(own);
    n->epilogue = Expr::call("add", {Expr::accumulator(DType::kF32), Expr::input(own, DType::kF32)});
    infer(*g, *n);
  }
  Value* resized(Value* x, const char* mode, float times) {
    Value* scales = g->add_constant("scales", Tensor::of(std::vector<float>{1, times, times, 1}, {4}));
    return node("Resize", {x, nullptr, scales}, {{"mode", std::string(mode)}});
  }
  // A convolution by Winograd's filtering wherever it is possible.
  Value* winograd(Value* x, int64_t out, int64_t kernel, int64_t pad) {
    Value* y = conv(x, out, kernel, 1, pad);
    g->nodes.back()->freedom.winograd = decisions.change(*g->nodes.back()).winograd.tile = 7 - kernel;
    return y;
  }
  void into(GeneratedBatch& batch, const std::string& name, Value* result) {
    g->outputs.push_back(result);
    DataSet d;
    std::mt19937 random(5);
    for (const Value* v : g->inputs) {
      std::vector<int64_t> dims;
      for (const Dim& e : v->type.shape) dims.push_back(e.value());
      Tensor t(v->type.dtype, dims);
      random_fill(t, random);
      d.inputs.push_back(std::move(t));
    }
    batch.add(name, std::move(g), {d}, {}, std::move(decisions));
  }
};

inline Shape picture(int64_t h, int64_t w, int64_t c) { return {Dim(1), Dim(h), Dim(w), Dim(c)}; }

}  // namespace sinter
