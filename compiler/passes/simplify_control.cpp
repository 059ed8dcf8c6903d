// simplify_control: what is known about If, Loop and Scan moves between the graphs.
//
//  - captures that are constants become constants of the bodies, and what they make known there is folded;
//  - an If whose condition is known becomes the branch that it takes;
//  - a Loop whose condition counts gets a trip count instead;
//  - a carried value that its body passes on unchanged becomes a capture;
//  - outputs and captures that nobody reads go, with all that only they need;
//  - a Scan along other axes than the first gets Transposes around it.
#include <algorithm>
#include <numeric>

#include "ops/control/bodies.h"
#include "ops/control/counted_loop.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

size_t first_capture(const Node& n) {
  return n.op->name == std::string_view("If") ? 1 : n.inputs.size() - loop_form(n).captures;
}
// The body input that shows input i of the node.
size_t body_input(const Node& n, size_t i) { return n.op->name == std::string_view("If") ? i - 1 : i; }

bool share_constants(Node& n) {
  bool changed = false;
  for (size_t i = first_capture(n); i < n.inputs.size(); ++i) {
    if (!n.inputs[i]->data) continue;
    for (const auto& b : n.bodies) {
      if (!b->unreachable.empty()) continue;
      Value* in = b->inputs[body_input(n, i)];
      if (!b->has_uses(in)) continue;
      b->replace_uses(in, b->add_constant(n.inputs[i]->name, *n.inputs[i]->data));
      changed = true;
    }
  }
  return changed;
}

bool is_output(const Graph& g, const Value* v) {
  return std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end();
}

void erase_at(std::vector<Value*>& v, size_t i) { v.erase(v.begin() + static_cast<std::ptrdiff_t>(i)); }

void erase_value(Graph& g, const Value* v) {
  std::erase_if(g.values, [&](const auto& p) { return p.get() == v; });
}

bool drop_output(Graph& g, Node& n, size_t i, size_t body_output) {
  Value* out = n.outputs[i];
  if (out && g.has_uses(out)) return false;
  erase_at(n.outputs, i);
  for (const auto& b : n.bodies)
    if (b->unreachable.empty()) erase_at(b->outputs, body_output);
  if (out) erase_value(g, out);
  return true;
}

void erase_number(Attributes& a, const char* name, size_t i) {
  if (!a.has(name)) return;
  std::vector<int64_t> v = a.integers(name);
  v.erase(v.begin() + static_cast<std::ptrdiff_t>(i));
  a.set(name, v);
}

bool drop_unused_outputs(Graph& g, Node& n) {
  bool changed = false;
  if (n.op->name == std::string_view("If")) {
    for (size_t i = n.outputs.size(); i-- > 0;) changed |= n.outputs.size() > 1 && drop_output(g, n, i, i);
    return changed;
  }
  const LoopForm f = loop_form(n);
  for (size_t r = f.results; r-- > 0;) {
    if (n.outputs.size() < 2 || !drop_output(g, n, f.states + r, f.body_output(f.states + r))) continue;
    erase_number(n.attributes, "scan_output_axes", r);
    erase_number(n.attributes, "scan_output_directions", r);
    changed = true;
  }
  return changed;
}

// State k is what it was at the beginning.
bool free_invariant_states(Graph& g, Node& n) {
  if (n.op->name == std::string_view("If")) return false;
  bool changed = false;
  for (size_t k = loop_form(n).states; k-- > 0;) {
    const LoopForm f = loop_form(n);
    Graph& body = *n.bodies[0];
    Value* in = body.inputs[f.first + k];
    Value* out = n.outputs[k];
    const Value* made = body.outputs[f.body_output(k)];
    while (is_op(made->producer, "Identity")) made = made->producer->inputs[0];
    if (made != in || n.outputs.size() < 2) continue;
    if (out && (is_output(g, out) || !(out->type == n.inputs[f.first + k]->type))) continue;
    Value* initial = n.inputs[f.first + k];
    if (out) g.replace_uses(out, initial);
    erase_at(n.outputs, k);
    if (out) erase_value(g, out);
    erase_at(body.outputs, f.body_output(k));
    erase_at(body.inputs, f.first + k);
    body.inputs.push_back(in);
    g.remove_input(&n, f.first + k);
    g.set_input(&n, n.inputs.size(), initial);
    n.attributes.set("captures", static_cast<int64_t>(f.captures + 1));
    changed = true;
  }
  return changed;
}

// In an iteration the condition holds.
bool fix_condition(Node& n) {
  if (n.op->name != std::string_view("Loop")) return false;
  Graph& body = *n.bodies[0];
  Value* condition = body.inputs[1];
  if (!body.has_uses(condition)) return false;
  Tensor yes(DType::kBool, std::vector<int64_t>(condition->type.shape.size(), 1));
  yes.set_integer(0, 1);
  body.replace_uses(condition, body.add_constant(condition->name, std::move(yes)));
  return true;
}

// The trips that its condition allows become the trip count of a Loop that has none or a known one.
bool count_trips(Graph& g, Node& n) {
  if (n.op->name != std::string_view("Loop")) return false;
  const Value* given = n.inputs[0];
  if (given && (!given->data || given->data->size() != 1)) return false;
  const std::optional<int64_t> counted = counted_trips(n);
  if (!counted) return false;
  const int64_t trips = given ? std::min(given->data->integer(0), *counted) : *counted;
  g.set_input(&n, 0, g.add_constant(n.name + "/trips", Tensor::scalar(trips)));
  g.set_input(&n, 1, nullptr);
  Graph& body = *n.bodies[0];
  Tensor yes(DType::kBool, std::vector<int64_t>(body.outputs[0]->type.shape.size(), 1));
  yes.set_integer(0, 1);
  body.outputs[0] = body.add_constant(body.outputs[0]->name + "_holds", std::move(yes));
  return true;
}

Value* transposed(Graph& g, Node& n, Value* x, const std::vector<int64_t>& perm, Node* before) {
  Value* y = g.add_value(x->name + "_rows", {});
  y->origin = x->origin;
  y->perm = composed_perm(*x, perm);
  Node* t = g.add_node(find_op("", "Transpose"), n.name + "/transpose", {x}, {y}, before);
  t->attributes.set("perm", perm);
  infer(g, *t);
  return y;
}

std::vector<int64_t> to_front(size_t rank, size_t axis) {
  std::vector<int64_t> perm{static_cast<int64_t>(axis)};
  for (size_t d = 0; d < rank; ++d)
    if (d != axis) perm.push_back(static_cast<int64_t>(d));
  return perm;
}

bool front_axes(Graph& g, Node& n) {
  if (n.op->name != std::string_view("Scan")) return false;
  const LoopForm f = loop_form(n);
  bool changed = false;
  std::vector<int64_t> in = n.attributes.integers("scan_input_axes", std::vector<int64_t>(f.scanned, 0));
  std::vector<int64_t> out = n.attributes.integers("scan_output_axes", std::vector<int64_t>(f.results, 0));
  for (size_t i = 0; i < in.size(); ++i) {
    Value* x = n.inputs[f.states + i];
    const size_t rank = x->type.shape.size();
    const size_t axis = static_cast<size_t>(in[i] < 0 ? in[i] + static_cast<int64_t>(rank) : in[i]);
    changed |= in[i] != 0;
    in[i] = 0;
    if (axis == 0) continue;
    g.set_input(&n, f.states + i, transposed(g, n, x, to_front(rank, axis), &n));
    changed = true;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    Value* y = n.outputs[f.states + i];
    if (!y) continue;
    const size_t rank = y->type.shape.size();
    const size_t axis = static_cast<size_t>(out[i] < 0 ? out[i] + static_cast<int64_t>(rank) : out[i]);
    changed |= out[i] != 0;
    out[i] = 0;
    if (axis == 0) continue;
    const std::vector<int64_t> perm = to_front(rank, axis);
    Value* rows = g.add_value(y->name + "_rows", {y->type.dtype, permuted(y->type.shape, perm)});
    rows->origin = y->origin;
    rows->perm = composed_perm(*y, perm);
    n.outputs[f.states + i] = rows;
    rows->producer = &n;
    y->producer = nullptr;
    Node* t = g.add_node(find_op("", "Transpose"), n.name + "/transpose", {rows}, {y}, node_after(g, &n));
    t->attributes.set("perm", inverse(perm));
    changed = true;
  }
  if (changed) {
    n.attributes.set("scan_input_axes", in);
    n.attributes.set("scan_output_axes", out);
  }
  return changed;
}

bool simplify(Graph& g, const PassOptions& options) {
  bool changed = false;
  for (Node* n : snapshot(g)) {
    if (n->bodies.empty()) continue;
    for (const auto& b : n->bodies)
      if (b->unreachable.empty()) simplify_control(*b, options);
    if (const int k = known_branch(*n); k >= 0 && n->bodies[static_cast<size_t>(k)]->unreachable.empty()) {
      inline_branch(g, *n, static_cast<size_t>(k));
      changed = true;
      continue;
    }
    const bool shared = share_constants(*n), fixed = fix_condition(*n);
    if (shared || fixed)
      for (const auto& b : n->bodies) fold_constants(*b, options);
    changed |= shared || fixed;
    changed |= count_trips(g, *n);
    changed |= free_invariant_states(g, *n);
    changed |= drop_unused_outputs(g, *n);
    for (const auto& b : n->bodies) b->erase_unused();
    changed |= drop_unused_captures(g, *n);
    changed |= front_axes(g, *n);
  }
  g.erase_unused();
  return changed;
}

}  // namespace

bool simplify_control(Graph& g, const PassOptions& options) {
  bool changed = false;
  while (simplify(g, options)) {
    changed = true;
    fold_constants(g, options);
  }
  return changed;
}

}  // namespace sinter
