// fold_constants: nodes that depend on constants and known shapes only become constants.
//
// One sweep in order. A node's inputs may have become constants since import inferred its types, so that it
// is inferred again before it is looked at: a shape computed by way of floats is known only now. Besides:
// small integer tensors whose symbolic contents turn out to be numbers; Reshape targets, which shape
// arithmetic computes at run time, become constants of 0, -1 and numbers; constants that repeat one number
// become scalars where an elementwise op broadcasts them anyway.
#include <algorithm>
#include <set>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

// A result may be larger than what it is made from (ConstantOfShape, Expand, Tile), but not without limit.
constexpr int64_t kMaxGrowth = int64_t{64} << 20;

void make_constant(Value* v, Tensor data) {
  Node* maker = v->producer;
  std::replace(maker->outputs.begin(), maker->outputs.end(), v, static_cast<Value*>(nullptr));
  v->producer = nullptr;
  v->type = {data.dtype(), Shape(data.shape().begin(), data.shape().end())};
  v->data = std::move(data);
}

bool fits(const Node& n) {
  int64_t in = 0;
  for (const Value* v : n.inputs)
    if (v) in += v->data->bytes();
  double out = 0;
  for (const Value* v : n.outputs)
    if (v) {
      double bytes = static_cast<double>(size_of(v->type.dtype));
      for (const Dim& d : v->type.shape) bytes *= static_cast<double>(d.hi());
      out += bytes;
    }
  return out <= static_cast<double>(std::max(2 * in, kMaxGrowth));
}

// Computes a node of constants. A node that refuses its inputs stays and refuses when the model runs.
bool compute(Node& n) {
  if (n.op->impure || !n.bodies.empty()) return false;
  for (const Value* v : n.inputs)
    if (v && !v->data) return false;
  if (!fits(n)) return false;
  std::vector<Tensor> in, out;
  for (const Value* v : n.inputs) in.push_back(v ? *v->data : Tensor());
  try {
    out = evaluate(n, std::move(in));
  } catch (const Refusal&) {
    return false;
  }
  for (size_t i = 0; i < out.size(); ++i)
    if (n.has_output(i)) make_constant(n.outputs[i], std::move(out[i]));
  return true;
}

// Symbolic contents that are all numbers.
bool use_elements(Node& n) {
  bool changed = false;
  if (!n.bodies.empty()) return false;  // its outputs are its bodies' as well
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    Value* v = n.outputs[i];
    if (!v || v->data) continue;
    std::optional<Tensor> t = known_contents(*v);
    if (!t) continue;
    make_constant(v, std::move(*t));
    changed = true;
  }
  return changed;
}

bool fix_reshape_target(Graph& g, Node& n) {
  if (!is_op(&n, "Reshape") || n.inputs[1]->data || !n.has_output(0)) return false;
  const TensorType before = n.outputs[0]->type;
  const auto target = reshape_target(n.inputs[0]->type.shape, before.shape);
  if (!target) return false;
  Value* old = n.inputs[1];
  const Attributes attributes = n.attributes;
  g.set_input(&n, 1, constant_integers(g, n.name + "/shape", *target));
  n.attributes.erase("allowzero");
  infer(g, n);
  if (n.outputs[0]->type == before) return true;
  g.set_input(&n, 1, old);
  n.attributes = attributes;
  n.outputs[0]->type = before;
  return false;
}

bool shrink_uniform(Graph& g, Node& n) {
  if (!n.op->expr || n.epilogue || n.inputs.size() < 2 || !n.has_output(0)) return false;
  bool changed = false;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const Value* v = n.inputs[i];
    if (!v || !v->data || v->data->size() < 2 || !uniform_of(v)) continue;
    std::vector<const Shape*> rest;
    for (size_t k = 0; k < n.inputs.size(); ++k)
      if (k != i && n.inputs[k]) rest.push_back(&n.inputs[k]->type.shape);
    const auto shape = broadcast_of(g, rest);
    if (!shape || !(*shape == n.outputs[0]->type.shape)) continue;
    Tensor scalar(v->data->dtype(), {});
    std::copy_n(v->data->data(), size_of(scalar.dtype()), scalar.mutable_data());
    g.set_input(&n, i, g.add_constant(v->name + "/scalar", std::move(scalar)));
    changed = true;
  }
  return changed;
}

// What was known of the extents stays known: import takes some from the model's declarations, which inference
// alone can't tell.
void keep_known_extents(Value& v, const TensorType& before) {
  Shape& shape = v.type.shape;
  if (shape.size() != before.shape.size()) return;
  for (size_t a = 0; a < shape.size(); ++a)
    if (before.shape[a].is_static() && !shape[a].is_static()) shape[a] = before.shape[a];
}

}  // namespace

bool fold_constants(Graph& g, const PassOptions&) {
  bool changed = false;
  std::set<const Value*> better;  // known more exactly than when its users were inferred
  for (Node* n : snapshot(g)) {
    const bool stale =
        std::any_of(n->inputs.begin(), n->inputs.end(), [&](const Value* v) { return better.count(v) != 0; });
    std::vector<std::pair<Value*, Value>> before;
    if (stale) {
      for (Value* v : n->outputs)
        if (v) before.emplace_back(v, *v);
      infer(g, *n);
      for (const auto& [v, old] : before) keep_known_extents(*v, old.type);
      for (const auto& [v, old] : before)
        if (!(v->type == old.type) || !(v->elements == old.elements)) better.insert(v);
    }
    const std::vector<Value*> outputs = n->outputs;
    if (compute(*n) || use_elements(*n)) {
      changed = true;
      for (const Value* v : outputs)
        if (v && v->data) better.insert(v);
      continue;
    }
    changed |= fix_reshape_target(g, *n);
    changed |= shrink_uniform(g, *n);
  }
  g.erase_unused();
  return changed;
}

}  // namespace sinter
