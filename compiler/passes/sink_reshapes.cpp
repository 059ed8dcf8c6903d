// sink_reshapes: an elementwise node behind a view of a computed tensor works on that tensor instead, and the
// view comes after it: MatMul, Reshape, Add becomes MatMul, Add, Reshape, and the Add can be fused.
//
// Every other operand must mean the same on the tensor's own shape: a scalar, a constant or tensor that only
// has the trailing axes which both shapes share, or another tensor of the viewed shape (which gets the
// inverse view, at no cost). Views only move down, so that the pass ends.
#include <algorithm>

#include "passes/fuse.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

bool is_view_node(const Node* n) {
  return (is_op(n, "Reshape") || is_op(n, "Flatten") || is_op(n, "Squeeze") || is_op(n, "Unsqueeze")) &&
         n->has_output(0) && n->inputs[0];
}

// Worth having next to its elementwise users.
bool is_computed(const Node* n) {
  return n && (is_op(n, "MatMul") || is_op(n, "Gemm") || is_op(n, "Conv") || is_op(n, "ConvTranspose") ||
               is_fusible(*n));
}

size_t shared_suffix(const Shape& a, const Shape& b) {
  size_t k = 0;
  while (k < a.size() && k < b.size() && a[a.size() - 1 - k] == b[b.size() - 1 - k]) ++k;
  return k;
}

bool only_trailing(const Shape& s, size_t axes) {
  size_t leading = 0;
  while (leading < s.size() && s[leading].is(1)) ++leading;
  return s.size() - leading <= axes;
}

// `v`, a constant or tensor that only_trailing() holds for, without leading 1s that the smaller rank lacks.
Value* trimmed(Graph& g, Value* v, size_t rank) {
  if (v->type.shape.size() <= rank) return v;
  if (!v->data) return nullptr;
  std::vector<int64_t> shape = v->data->shape();
  shape.erase(shape.begin(), shape.end() - static_cast<ptrdiff_t>(rank));
  return g.add_constant(v->name + "/trimmed", v->data->reshaped(shape));
}

// `v`, of shape `viewed`, as a tensor of shape `own`: its source if it is such a view, else a new view.
Value* unviewed(Graph& g, Value* v, const Shape& own, Node* before) {
  if (is_view_node(v->producer) && v->producer->inputs[0]->type.shape == own) return v->producer->inputs[0];
  if (v->data) {
    if (!is_static(own)) return nullptr;
    return g.add_constant(v->name + "/view", v->data->reshaped(static_dims(own)));
  }
  const auto target = reshape_target(v->type.shape, own);
  if (!target) return nullptr;
  Value* y = g.add_value(v->name + "/view", {v->type.dtype, own});
  g.add_node(find_op("", "Reshape"), y->name, {v, constant_integers(g, y->name + "/shape", *target)}, {y},
             before);
  return y;
}

bool sink_below(Graph& g, Node* n) {
  if (!is_fusible(*n) || n->epilogue) return false;
  const auto view = std::find_if(n->inputs.begin(), n->inputs.end(), [&](const Value* v) {
    return v && is_view_node(v->producer) && is_computed(v->producer->inputs[0]->producer) &&
           v->type.shape == n->outputs[0]->type.shape;
  });
  if (view == n->inputs.end()) return false;
  Node* reshape = (*view)->producer;
  Value* x = reshape->inputs[0];
  const Shape own = x->type.shape, viewed = (*view)->type.shape;
  const size_t suffix = shared_suffix(own, viewed);
  for (const Value* v : n->inputs)
    if (v && !only_trailing(v->type.shape, suffix) && !(v->type.shape == viewed)) return false;
  const auto back = reshape_target(own, viewed);
  if (!back || own.empty()) return false;
  std::vector<Value*> inputs;
  for (Value* v : n->inputs) {
    Value* w = !v ? nullptr : v->type.shape == viewed ? unviewed(g, v, own, n) : trimmed(g, v, own.size());
    if (v && !w) return false;
    inputs.push_back(w);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != n->inputs[i]) g.set_input(n, i, inputs[i]);
  Value* y = n->outputs[0];
  Value* inner = g.add_value(y->name + "/unviewed", {y->type.dtype, own});
  n->outputs[0] = inner;
  inner->producer = n;
  y->producer = nullptr;
  g.add_node(find_op("", "Reshape"), y->name, {inner, constant_integers(g, y->name + "/shape", *back)}, {y},
             node_after(g, n));
  return true;
}

}  // namespace

bool sink_reshapes(Graph& g, const PassOptions&) {
  bool changed = false;
  for (Node* n : snapshot(g)) changed |= sink_below(g, n);
  g.erase_unused();
  return changed;
}

}  // namespace sinter
