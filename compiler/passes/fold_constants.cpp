// fold_constants: nodes that depend on constants and known shapes only become constants.
//
// One sweep in order. A node's inputs may have become constants since import inferred its types, so that it
// is inferred again before it is looked at: a shape computed by way of floats is known only now. Besides:
// small integer tensors whose symbolic contents turn out to be numbers; Reshape targets, which shape
// arithmetic computes at run time, become constants of 0, -1 and numbers; constants that repeat one number
// become scalars where an elementwise op broadcasts them anyway.
//
// What may be computed at all is the Budget's to say. An operand that nobody reads any more gives its memory
// back at once, so that a chain of foldings holds two tensors at a time.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/budget.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

// A result may be larger than what it is made from (ConstantOfShape, Expand, Tile), but not without limit.
constexpr int64_t kMaxGrowth = int64_t{64} << 20;

// The constants of a whole model by their bytes, which several Values may share.
class Held {
 public:
  explicit Held(const Graph& g) {
    const Graph* root = &g;
    while (root->parent) root = root->parent;
    add_all(*root);
  }
  void add(const Tensor& t) {
    if (t && users_[t.data()]++ == 0) bytes_ += static_cast<double>(t.bytes());
  }
  void remove(const Tensor& t) {
    const auto it = users_.find(t.data());
    if (it == users_.end() || --it->second > 0) return;
    users_.erase(it);
    bytes_ -= static_cast<double>(t.bytes());
  }
  double bytes() const { return bytes_; }

 private:
  void add_all(const Graph& g) {
    for (const auto& v : g.values)
      if (v->data) add(*v->data);
    for (const auto& n : g.nodes)
      for (const auto& b : n->bodies) add_all(*b);
  }

  std::unordered_map<const std::byte*, int> users_;
  double bytes_ = 0;
};

void make_constant(Value* v, Tensor data) {
  Node* maker = v->producer;
  std::replace(maker->outputs.begin(), maker->outputs.end(), v, static_cast<Value*>(nullptr));
  v->producer = nullptr;
  v->type = {data.dtype(), Shape(data.shape().begin(), data.shape().end())};
  v->data = std::move(data);
}

bool fits(const Node& n, const Held& held) {
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
  if (const Budget* budget = Budget::in_use(); budget && !budget->may_hold(held.bytes() + out)) return false;
  return out <= static_cast<double>(std::max(2 * in, kMaxGrowth));
}

// The operands of a node that is a constant now.
void let_go(Graph& g, Node& n, Held& held) {
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    Value* v = n.inputs[i];
    if (!v) continue;
    g.set_input(&n, i, nullptr);
    if (!v->users.empty() || !v->data || g.is_output(v)) continue;
    held.remove(*v->data);
    v->data.reset();
  }
}

// Computes a node of constants. A node that refuses its inputs stays and refuses when the model runs.
bool compute(Graph& g, Node& n, Held& held) {
  if (n.op->impure || !n.bodies.empty()) return false;
  for (const Value* v : n.inputs)
    if (v && !v->data) return false;
  if (!fits(n, held)) return false;
  std::vector<Tensor> in, out;
  for (const Value* v : n.inputs) in.push_back(v ? *v->data : Tensor());
  try {
    out = evaluate(n, std::move(in));
  } catch (const Refusal&) {
    return false;
  }
  for (size_t i = 0; i < out.size(); ++i)
    if (n.has_output(i)) {
      held.add(out[i]);
      make_constant(n.outputs[i], std::move(out[i]));
    }
  let_go(g, n, held);
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
  Held held(g);
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
    if (compute(g, *n, held) || use_elements(*n)) {
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
