// How an epilogue grows: by the smallest closed region at a time.
//
// A region behind a value v is closed if every use of v, and of every value made inside but the last, is by a
// node inside. Walking the users in order, it is found as soon as no use is open: one Relu, or the Sigmoid
// and the Mul of a SiLU. Every value inside has v's shape, so nothing is computed twice; everything a region
// reads besides v is made before its last node, to whose place the anchor moves.
#include "passes/fuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "passes/passes.h"

namespace sinter {
namespace {

const Op* elementwise_op() { return find_op("sinter", "elementwise"); }

bool has_expr_type(const Value* v) { return is_number(v->type.dtype); }

// The expression being grown and the tensors it reads.
struct Fusion {
  size_t base;               // index of the first operand among the node's inputs
  bool fold_scalars = true;  // a constant of one element becomes a constant of the expression
  std::vector<Value*> operands = {};
  std::map<const Value*, ExprPtr> inside = {};  // values computed by the expression

  ExprPtr leaf(Value* v) {
    if (auto it = inside.find(v); it != inside.end()) return it->second;
    if (fold_scalars && v->data && v->data->size() == 1 && !is_small_float(v->type.dtype))
      return is_float(v->type.dtype) ? Expr::constant(v->data->real(0), v->type.dtype)
                                     : Expr::constant_integer(v->data->integer(0), v->type.dtype);
    auto at = std::find(operands.begin(), operands.end(), v);
    const int index = static_cast<int>(base) + static_cast<int>(at - operands.begin());
    if (at == operands.end()) operands.push_back(v);
    return Expr::input(index, v->type.dtype);
  }

  ExprPtr of(const Node& n) {
    std::vector<ExprPtr> args;
    for (Value* v : n.inputs) args.push_back(v ? leaf(v) : nullptr);
    if (!n.epilogue) return n.op->expr(n, args);
    std::map<const Expr*, ExprPtr> done;
    return substituted(n.epilogue, args, done);
  }

  // Operands replaced by `args`; what is shared stays shared.
  static ExprPtr substituted(const ExprPtr& e, const std::vector<ExprPtr>& args,
                             std::map<const Expr*, ExprPtr>& done) {
    if (e->kind == Expr::Kind::kOperand) return args[static_cast<size_t>(e->operand)];
    if (e->args.empty()) return e;
    if (auto it = done.find(e.get()); it != done.end()) return it->second;
    std::vector<ExprPtr> inner;
    for (const ExprPtr& a : e->args) inner.push_back(substituted(a, args, done));
    const ExprPtr r = e->kind == Expr::Kind::kCast ? Expr::cast(inner[0], e->dtype)
                                                   : Expr::call(e->fn->name, std::move(inner));
    return done[e.get()] = r;
  }

  std::optional<Shape> shape(const Graph& g, const Shape* accumulator) const {
    std::vector<const Shape*> shapes;
    if (accumulator) shapes.push_back(accumulator);
    for (const Value* v : operands) shapes.push_back(&v->type.shape);
    return broadcast_of(g, shapes);
  }
};

bool is_call(const Expr& e, std::initializer_list<std::string_view> names) {
  return e.kind == Expr::Kind::kCall && std::find(names.begin(), names.end(), e.fn->name) != names.end();
}

// float32 all through, with functions that have a vector form; comparisons only as the condition of a select.
bool runs_in_vectors(const Expr& e) {
  if (e.dtype != DType::kF32) return false;
  if (e.kind == Expr::Kind::kCast) {  // floats rounded to small integers stay in lanes of floats
    const Expr& q = *e.args[0];
    return q.kind == Expr::Kind::kCast && (q.dtype == DType::kI8 || q.dtype == DType::kU8) &&
           runs_in_vectors(*q.args[0]);
  }
  if (e.kind != Expr::Kind::kCall) return true;
  size_t first = 0;
  if (is_call(e, {"select"})) {
    const Expr& c = *e.args[first++];
    if (!is_call(c, {"lt", "le", "gt", "ge", "eq"})) return false;
    if (!runs_in_vectors(*c.args[0]) || !runs_in_vectors(*c.args[1])) return false;
  } else if (!e.fn->vector) {
    return false;
  }
  const bool parameters = is_call(e, {"elu", "selu", "celu", "hard_sigmoid"});
  for (size_t i = first; i < e.args.size(); ++i)
    if (!runs_in_vectors(*e.args[i]) || (parameters && i > 0 && e.args[i]->kind != Expr::Kind::kConstant))
      return false;
  return true;
}

// Calls a function that takes many times longer outside of vectors.
bool is_heavy(const Expr& e) {
  if (is_call(e, {"exp", "log", "tanh", "erf", "sigmoid", "softplus", "elu", "selu", "celu", "silu", "mish",
                  "gelu", "gelu_tanh"}))
    return true;
  return std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return is_heavy(*a); });
}

// The smallest closed region behind v, in order; empty where there is none.
std::vector<Node*> closed_region(const Graph& g, const Order& order, const Value* v) {
  constexpr size_t kMost = 24;
  const Shape& shape = v->type.shape;
  std::set<std::pair<size_t, Node*>> open;
  std::vector<Node*> region;
  const auto add_users = [&](const Value* x) {
    if (g.is_output(x)) return false;
    for (Node* u : x->users) {
      if (!order.has(u)) return false;
      open.insert({order.of(u), u});
    }
    return true;
  };
  if (!add_users(v)) return {};
  while (!open.empty() && region.size() < kMost) {
    Node* n = open.begin()->second;
    open.erase(open.begin());
    if (!is_fusible(*n) || !same_shape(g, n->outputs[0]->type.shape, shape)) return {};
    region.push_back(n);
    if (open.empty()) return region;
    if (!add_users(n->outputs[0])) return {};
  }
  return {};
}

// They read nothing any more; Graph::erase_unused() takes them away at the end of the pass, all at once.
void let_go(Graph& g, Order& order, const std::vector<Node*>& nodes) {
  for (Node* n : nodes) {
    order.remove(n);
    for (size_t i = n->inputs.size(); i-- > 0;) g.remove_input(n, i);
  }
}

void set_operands(Graph& g, Node* n, const Fusion& f) {
  while (n->inputs.size() > f.base) g.remove_input(n, n->inputs.size() - 1);
  for (size_t i = 0; i < f.operands.size(); ++i) g.set_input(n, f.base + i, f.operands[i]);
  n->anchor_inputs = f.base;
}

}  // namespace

bool is_fusible(const Node& n) {
  const bool kind = n.epilogue ? n.op == elementwise_op() : n.op->expr != nullptr;
  if (!kind || !n.bodies.empty() || n.op->impure || n.outputs.size() != 1 || !n.outputs[0]) return false;
  return has_expr_type(n.outputs[0]) &&
         std::all_of(n.inputs.begin(), n.inputs.end(), [](const Value* v) { return !v || has_expr_type(v); });
}

bool make_elementwise(Graph& g, Node* n) {
  const TensorType type = n->outputs[0]->type;
  Fusion f{.base = 0};
  ExprPtr e = f.of(*n);
  auto shape = f.shape(g, nullptr);
  if (!shape || !same_shape(g, *shape, type.shape)) {  // a constant [1,1,..] may count in the shape
    f = {.base = 0, .fold_scalars = false};
    e = f.of(*n);
    shape = f.shape(g, nullptr);
  }
  if (!shape || !same_shape(g, *shape, type.shape)) return false;
  set_operands(g, n, f);
  n->epilogue = e;
  n->op = elementwise_op();
  n->attributes = {};
  const std::vector<Dim> elements = n->outputs[0]->elements;
  infer(g, *n);
  n->outputs[0]->type = type;
  n->outputs[0]->elements = elements;
  return true;
}

bool grow_epilogue(Graph& g, Order& order, Node* anchor, const FusionLimits& limits, bool exact) {
  const bool pure = anchor->op == elementwise_op();
  const Shape anchor_shape = anchor->outputs[0]->type.shape;
  Fusion f{.base = pure ? 0 : anchor->epilogue ? anchor->anchor_inputs : anchor->inputs.size()};
  for (size_t i = f.base; i < anchor->inputs.size(); ++i) f.operands.push_back(anchor->inputs[i]);
  ExprPtr expr = anchor->epilogue ? anchor->epilogue : Expr::accumulator(anchor->outputs[0]->type.dtype);
  std::vector<Node*> swallowed;
  // Behind what is committed: nodes whose result is no vector of floats, as the integers between
  // QuantizeLinear and DequantizeLinear; they are swallowed if floats come again.
  Fusion ahead = f;
  ExprPtr ahead_expr = expr;
  std::vector<Node*> ahead_nodes;
  for (Value* v = anchor->outputs[0];;) {
    const std::vector<Node*> region = closed_region(g, order, v);
    if (region.empty()) break;
    Fusion next = ahead;
    next.inside = {{v, ahead_expr}};
    ExprPtr e;
    for (const Node* n : region) {
      e = simplified(next.of(*n), exact);
      next.inside[n->outputs[0]] = e;
    }
    const auto shape = next.shape(g, pure ? nullptr : &anchor_shape);
    if (next.operands.size() > limits.operands || node_count(*e) > limits.expr_nodes) break;
    if (!shape || !same_shape(g, *shape, anchor_shape)) break;
    const bool leaves_vectors = !runs_in_vectors(*e) && runs_in_vectors(*expr);
    ahead = next;
    ahead_expr = e;
    ahead_nodes.insert(ahead_nodes.end(), region.begin(), region.end());
    v = region.back()->outputs[0];
    if (leaves_vectors && (limits.vectors_only || is_heavy(*expr))) continue;
    expr = e;
    f.operands = next.operands;
    swallowed.insert(swallowed.end(), ahead_nodes.begin(), ahead_nodes.end());
    ahead_nodes.clear();
  }
  if (swallowed.empty()) return false;
  Node* last = swallowed.back();
  for (const Node* n : swallowed) add_sources(*anchor, *n);
  const TensorType type = last->outputs[0]->type;
  const std::vector<Dim> elements = last->outputs[0]->elements;
  Value* inner = anchor->outputs[0];
  take_output(anchor, 0, last, 0);
  set_operands(g, anchor, f);
  anchor->epilogue = expr;
  move_before(g, anchor, last);
  order.set(anchor, order.of(last));
  let_go(g, order, swallowed);
  SINTER_CHECK(inner->users.empty(), "a fused value is still used");
  infer(g, *anchor);
  anchor->outputs[0]->type = type;  // extents as the rest of the graph spells them
  anchor->outputs[0]->elements = elements;
  return true;
}

}  // namespace sinter
