// The interpreter: the oracle of the tests and of `sinter verify`, and what folds constants.
//
// Each node is inferred again with the actual inputs, so that inference is checked against what eval makes: a
// difference is a bug of ours.
#include <map>

#include "ir/budget.h"
#include "ops/op.h"
#include "ops/work.h"

namespace sinter {

void infer_facts(Inference&);
void evaluate_by_lowering(Evaluation&);  // lowering.cpp

void Evaluation::fail(const std::string& why) const { refuse_node(node, why); }

namespace {

Fact fact_of(const Tensor& t) {
  Fact f;
  if (!t) return f;
  f.present = true;
  f.type = {t.dtype(), Shape(t.shape().begin(), t.shape().end())};
  f.data = &t;
  return f;
}

void check_result(const Node& n, const Fact& inferred, const Tensor& t, size_t i) {
  if (!inferred.present) return;
  const std::string where = fmt::format("{} output {}", label(n), i);
  if (!t) bug(__FILE__, __LINE__, where + " was not computed");
  if (t.dtype() != inferred.type.dtype)
    bug(__FILE__, __LINE__,
        fmt::format("{}: eval made {}, infer said {}", where, name_of(t.dtype()), text(inferred.type)));
  bool ok = t.shape().size() == inferred.type.shape.size();
  for (size_t d = 0; ok && d < t.shape().size(); ++d) {
    const Interval r = inferred.type.shape[d].bounds();
    ok = t.shape()[d] >= r.lo && t.shape()[d] <= r.hi;
  }
  if (!ok)
    bug(__FILE__, __LINE__,
        fmt::format("{}: eval made {}, infer said {}", where, text(Shape(t.shape().begin(), t.shape().end())),
                    text(inferred.type)));
}

// Takes what the node will cost from the budget in use.
void spend(const Node& n, const std::vector<Tensor>& in, const std::vector<Fact>& out) {
  if (!Budget::in_use()) return;
  std::vector<std::vector<int64_t>> shapes;
  for (const Fact& f : out)
    if (f.present && is_static(f.type.shape)) shapes.push_back(static_dims(f.type.shape));
  try {
    spend_folding(steps_of(n, in, shapes));
  } catch (const OverBudget& r) {
    throw OverBudget(fmt::format("{}: {}", label(n), r.problems[0]));
  }
}

// Nodes with bodies are inferred with the graph alone: inference types the bodies, which all runs share.
std::vector<Tensor> evaluate_bodies(const Node& node, std::vector<Tensor> inputs) {
  Evaluation e{node, std::move(inputs), std::vector<Tensor>(node.outputs.size())};
  node.op->eval(e);
  for (size_t i = 0; i < e.out.size(); ++i) {
    Fact f;
    f.present = node.outputs[i] != nullptr;
    if (f.present) f.type = node.outputs[i]->type;
    for (size_t d = 0; f.present && d < f.type.shape.size() && d < e.out[i].shape().size(); ++d)
      if (e.out[i].shape()[d] > f.type.shape[d].hi())
        e.fail(fmt::format("output {} has {} as extent {}, and at most {} is allowed", i, e.out[i].shape()[d],
                           d, f.type.shape[d].hi()));
    check_result(node, f, e.out[i], i);
  }
  return std::move(e.out);
}

}  // namespace

std::vector<Tensor> evaluate(const Node& node, std::vector<Tensor> inputs, int64_t most_elements) {
  if (!node.bodies.empty()) return evaluate_bodies(node, std::move(inputs));
  const Op& op = *node.op;
  Symbols symbols;
  std::vector<Check> checks;
  // The anchor alone first: its epilogue's operands are not its inputs.
  Node anchor_only;
  const bool fused = node.epilogue != nullptr;
  std::vector<Tensor> anchor_inputs = inputs;
  if (fused) {
    anchor_inputs.resize(node.anchor_inputs);
    anchor_only.op = node.op;
    anchor_only.name = node.name;
    anchor_only.attributes = node.attributes;
    anchor_only.inputs = {node.inputs.begin(),
                          node.inputs.begin() + static_cast<std::ptrdiff_t>(node.anchor_inputs)};
    anchor_only.outputs = node.outputs;
    anchor_only.anchor_inputs = node.anchor_inputs;
  }
  const Node& n = fused ? anchor_only : node;
  std::vector<Tensor> out;
  if (!(fused && node.anchor_inputs == 0)) {
    Inference x{n, {}, {}, symbols, checks};
    for (const Tensor& t : anchor_inputs) x.in.push_back(fact_of(t));
    for (const Value* v : n.outputs) {
      x.out.emplace_back();
      x.out.back().present = v != nullptr;
    }
    infer_facts(x);
    for (const Fact& f : x.out)
      if (f.present && product(f.type.shape).hi() > most_elements)
        refuse_node(n, fmt::format("an output has more than {} elements", most_elements));
    spend(n, anchor_inputs, x.out);
    Evaluation e{n, std::move(anchor_inputs), std::vector<Tensor>(n.outputs.size())};
    for (size_t i = 0; i < e.out.size(); ++i)
      if (x.out[i].present && is_static(x.out[i].type.shape))
        e.out[i] = Tensor(x.out[i].type.dtype, static_dims(x.out[i].type.shape));
    if (op.eval) {
      op.eval(e);
    } else if (op.lower) {
      evaluate_by_lowering(e);
    } else {
      std::vector<ExprPtr> args;
      for (size_t i = 0; i < e.in.size(); ++i)
        args.push_back(e.in[i] ? Expr::input(static_cast<int>(i), e.in[i].dtype()) : nullptr);
      const Tensor t = evaluate(*op.expr(n, args), e.in, nullptr);
      // An expression may drop an operand whose shape still counts in the broadcast (Where with equal
      // branches).
      if (t.shape() == e.out[0].shape())
        e.out[0] = t;
      else
        e.out[0] = evaluate(*Expr::call("select", {Expr::constant_integer(1, DType::kBool),
                                                   Expr::input(0, t.dtype()), Expr::input(1, t.dtype())}),
                            {t, Tensor(t.dtype(), e.out[0].shape())}, nullptr);
    }
    for (size_t i = 0; i < e.out.size(); ++i) check_result(n, x.out[i], e.out[i], i);
    out = std::move(e.out);
  }
  if (fused) {
    const Tensor acc = out.empty() ? Tensor() : out[0];
    Tensor t = evaluate(*node.epilogue, inputs, out.empty() ? nullptr : &acc);
    if (out.empty()) out.resize(1);
    out[0] = std::move(t);
  }
  return out;
}

std::vector<Tensor> evaluate(const Graph& g, const std::vector<Tensor>& inputs, const Trace& trace) {
  if (inputs.size() != g.inputs.size())
    refuse("{} inputs given, the graph has {}", inputs.size(), g.inputs.size());
  std::map<const Value*, Tensor> values;
  std::map<const Value*, size_t> uses;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value* v = g.inputs[i];
    const TensorType& t = v->type;
    bool fits = inputs[i].dtype() == t.dtype && inputs[i].shape().size() == t.shape.size();
    for (size_t d = 0; fits && d < t.shape.size(); ++d) {
      const Interval r = t.shape[d].bounds();
      fits = inputs[i].dim(static_cast<int64_t>(d)) >= r.lo && inputs[i].dim(static_cast<int64_t>(d)) <= r.hi;
    }
    if (!fits) {
      refuse("input {} is {} {}, but the model wants {}", sinter::quoted(v->name), name_of(inputs[i].dtype()),
             text(Shape(inputs[i].shape().begin(), inputs[i].shape().end())), text(t));
    }
    values[v] = inputs[i];
    if (trace) trace(*v, values[v]);
  }
  auto value_of = [&](const Value* v) -> const Tensor& {
    if (v->data) return *v->data;
    auto it = values.find(v);
    SINTER_CHECK(it != values.end(), "a value is used before it is computed");
    return it->second;
  };
  for (const auto& n : g.nodes) {
    std::vector<Tensor> in;
    for (const Value* v : n->inputs) in.push_back(v ? value_of(v) : Tensor());
    std::vector<Tensor> out = evaluate(*n, std::move(in));
    for (size_t i = 0; i < n->outputs.size(); ++i)
      if (const Value* v = n->outputs[i]) {
        if (trace) trace(*v, out[i]);
        values[v] = std::move(out[i]);
      }
    for (const Value* v : n->inputs)  // what nobody needs any more goes
      if (v && !v->data && !g.is_output(v) && ++uses[v] == v->users.size()) values.erase(v);
  }
  std::vector<Tensor> out;
  for (const Value* v : g.outputs) out.push_back(value_of(v));
  return out;
}

}  // namespace sinter
