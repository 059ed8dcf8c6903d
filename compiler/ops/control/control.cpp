// If, Loop and Scan: operators whose bodies are graphs. Loop and Scan are in control_loop.cpp.
//
// Inference types the bodies: a body's inputs get the node's facts, the body is inferred as a graph, and what
// it makes is seen from outside by way of border(). An If whose condition is known has one branch only. A
// branch whose types contradict each other (an exporter's branch for another rank) cannot run on any input
// that the other one takes: it is marked unreachable, and to take it is an error of the run. Where both
// branches are well typed, but of different ranks, and shapes alone choose (a squeeze of an axis that is 1 or
// isn't), the first one is meant: the other is unreachable as well. Where a count of data chooses (whether
// any box is left), both are meant, and such an If is refused.
#include <algorithm>

#include "ir/budget.h"
#include "ops/control/bodies.h"
#include "ops/control/control_loop.h"

namespace sinter {
namespace {

void infer_branch(Inference& x, Graph& body) {
  if (body.inputs.size() + 1 != x.in.size()) x.fail("a branch has no inputs");
  if (body.outputs.size() != x.out.size())
    x.fail(fmt::format("{} outputs, but a branch has {}", x.out.size(), body.outputs.size()));
  for (size_t i = 0; i < body.inputs.size(); ++i) set_input(*body.inputs[i], x.in[i + 1]);
  infer(body);
}

// A limit of ours, not a contradiction.
bool is_limit(const Refusal& r) {
  for (const std::string& p : r.problems)
    if (p.find("support") != std::string::npos || p.find("overflow") != std::string::npos) return true;
  return false;
}

bool same_elements(const Inference& x, const Value& a, const Value& b) {
  if (a.elements.empty() || !(a.elements == b.elements)) return false;
  for (const Dim& d : a.elements)
    if (!known_outside(x, d)) return false;
  return true;
}

// What the outputs of both branches have in common.
void unify(Inference& x, size_t i, const Value& a, const Value& b) {
  const TensorType &s = a.type, &t = b.type;
  if (s.dtype != t.dtype || s.shape.size() != t.shape.size())
    x.fail(
        fmt::format("output {} is {} in one branch and {} in the other, which is not supported; fix the "
                    "condition with --const or --dim if it depends on them",
                    i, text(s), text(t)));
  x.out[i].type.dtype = s.dtype;
  x.out[i].type.shape.clear();
  for (size_t axis = 0; axis < s.shape.size(); ++axis) {
    const Dim &d = s.shape[axis], &e = t.shape[axis];
    if (d == e && known_outside(x, d)) {
      x.out[i].type.shape.push_back(d);
      continue;
    }
    const Interval range{std::min(d.lo(), e.lo()), std::max(d.hi(), e.hi())};
    // A symbol whatever the dims are: which of them it is only the run knows.
    const Dim inner = unknown_extent(range);
    x.out[i].type.shape.push_back(border(x, i, axis, inner, range));
  }
  if (a.range && b.range)
    x.out[i].range = Range{std::min(a.range->lo, b.range->lo), std::max(a.range->hi, b.range->hi)};
  if (&a == &b || same_elements(x, a, b)) {
    bool outside = true;
    for (const Dim& d : a.elements) outside = outside && known_outside(x, d);
    if (outside) x.out[i].elements = a.elements;
  }
}

// An extent that the data decide, as the number of boxes that are left.
bool counts_data(const Dim& d) {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(),
                     [](const SymbolPtr& s) { return s->from_data && !s->learnable; });
}

// Whether the value is computed of extents alone, which are not counts of data.
bool of_shapes(const Value* v, int depth = 0) {
  if (v->data) return true;
  const Node* n = v->producer;
  if (!n || depth > 16 || n->op->domain[0] != '\0') return false;
  for (const char* op : {"Shape", "Size"})
    if (n->op->name == std::string_view(op)) {
      const Shape& s = n->inputs[0]->type.shape;
      return std::none_of(s.begin(), s.end(), counts_data);
    }
  static constexpr std::string_view kSteps[] = {
      "And",      "Cast",    "Concat",      "Equal",    "Gather", "Greater", "GreaterOrEqual",
      "Identity", "Less",    "LessOrEqual", "Mod",      "Not",    "Or",      "Reshape",
      "Slice",    "Squeeze", "Sub",         "Unsqueeze"};
  if (std::find(std::begin(kSteps), std::end(kSteps), n->op->name) == std::end(kSteps)) return false;
  return std::all_of(n->inputs.begin(), n->inputs.end(),
                     [&](const Value* in) { return !in || of_shapes(in, depth + 1); });
}

bool same_ranks(const Inference& x, const Graph& a, const Graph& b) {
  for (size_t i = 0; i < x.out.size(); ++i)
    if (x.out[i].present && a.outputs[i]->type.shape.size() != b.outputs[i]->type.shape.size()) return false;
  return true;
}

void infer_if(Inference& x) {
  const Node& n = x.node;
  x.require(n.bodies.size() == 2, "it has no two branches");
  x.require(x.dtype(0) == DType::kBool, "its condition is not bool");
  x.require_equal(product(x.shape(0)), Dim(1), "elements of the condition");
  const int known = known_branch(n);
  std::vector<const Graph*> live;
  std::optional<Refusal> contradiction;
  for (int k = 0; k < 2; ++k) {
    Graph& body = *n.bodies[static_cast<size_t>(k)];
    if (known >= 0 && known != k) continue;
    if (!body.unreachable.empty() && body.outputs.empty()) continue;  // emptied: nothing to infer any more
    body.unreachable.clear();
    try {
      infer_branch(x, body);
      live.push_back(&body);
    } catch (const OverBudget&) {
      throw;
    } catch (const Refusal& r) {
      if (known >= 0 || is_limit(r)) throw;
      body.unreachable = r.problems.empty() ? "it contradicts itself" : r.problems[0];
      contradiction = r;
    }
  }
  if (live.empty()) {
    for (const auto& b : n.bodies) b->unreachable.clear();
    if (contradiction) throw *contradiction;
    x.fail("neither branch can run");
  }
  if (live.size() == 2 && !same_ranks(x, *live[0], *live[1]) && of_shapes(n.inputs[0])) {
    n.bodies[1]->unreachable = "its results have other ranks than those of the branch that is meant";
    live.pop_back();
  }
  for (size_t i = 0; i < x.out.size(); ++i)
    if (x.out[i].present) unify(x, i, *live.front()->outputs[i], *live.back()->outputs[i]);
}

void eval_if(Evaluation& e) {
  if (e.in[0].size() != 1) e.fail("its condition is not one element");
  const Graph& body = *e.node.bodies[e.in[0].integer(0) != 0 ? 0 : 1];
  if (!body.unreachable.empty()) e.fail("the branch cannot run: " + body.unreachable);
  e.out = evaluate(body, std::vector<Tensor>(e.in.begin() + 1, e.in.end()));
}

}  // namespace

const std::vector<Op>& ops_control() {
  static const std::vector<Op> table = {
      {.name = "If",
       .max_inputs = -1,
       .min_outputs = 0,
       .max_outputs = -1,
       .infer = infer_if,
       .eval = eval_if,
       .note = "branches that give tensors of equal rank"},
      {.name = "Loop",
       .min_inputs = 0,
       .max_inputs = -1,
       .min_outputs = 0,
       .max_outputs = -1,
       .infer = infer_loop,
       .eval = eval_loop,
       .note = "with bounds for what it makes: from its trip count or --dim VALUE@AXIS<=MAX"},
      {.name = "Scan",
       .max_inputs = -1,
       .min_outputs = 0,
       .max_outputs = -1,
       .infer = infer_scan,
       .eval = eval_scan},
  };
  return table;
}

}  // namespace sinter
