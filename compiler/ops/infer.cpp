// Shape inference: runs each op's `infer` in order and stores what it finds.
//
// Also data propagation: the contents of small integer tensors are carried as Dims (Value::elements), so that
// exporters' shape arithmetic turns into symbolic shapes. Elementwise ops that give no `infer` of their own
// get theirs from `expr`: the broadcast shape and the expression's type.
#include <algorithm>
#include <unordered_set>

#include "ir/budget.h"
#include "ops/op.h"

namespace sinter {

void infer_by_lowering(Inference&);  // lowering.cpp

std::optional<std::vector<Dim>> Inference::elements(size_t i) const {
  if (!has(i)) return std::nullopt;
  const Fact& f = in[i];
  if (f.data && f.data->size() <= 4096 && (is_integer(f.data->dtype()) || f.data->dtype() == DType::kBool)) {
    const std::vector<int64_t> v = f.data->integers();
    return std::vector<Dim>(v.begin(), v.end());
  }
  if (!f.elements.empty()) return f.elements;
  const Dim size = product(f.type.shape);
  if (size.is(0)) return std::vector<Dim>{};
  return std::nullopt;
}

std::optional<std::vector<int64_t>> Inference::integers(size_t i) const {
  const auto e = elements(i);
  if (!e) return std::nullopt;
  std::vector<int64_t> out;
  for (const Dim& d : *e) {
    if (!d.is_static()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

std::optional<Tensor> known_contents(const Value& v) {
  if (v.data) return *v.data;
  if (v.elements.empty() || !is_static(v.elements) || !is_static(v.type.shape)) return std::nullopt;
  Tensor t(v.type.dtype, static_dims(v.type.shape));
  if (t.size() != static_cast<int64_t>(v.elements.size())) return std::nullopt;
  for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, v.elements[static_cast<size_t>(i)].value());
  return t;
}

int64_t Inference::check_axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    fail(fmt::format("axis {} out of range for {}", axis, in.empty() ? "[]" : text(shape(0))));
  return axis < 0 ? axis + rank : axis;
}
int64_t Inference::axis(const std::string& name, int64_t fallback, int64_t rank) const {
  return check_axis(attributes().integer(name, fallback), rank);
}

Dim Inference::require_equal(const Dim& a, const Dim& b, const std::string& what) {
  if (a == b) return a;
  const Dim d = a - b;
  if (d.lo() > 0 || d.hi() < 0) fail(fmt::format("{}: {} is not {}", what, a.text(), b.text()));
  checks.push_back({a, b, false, fmt::format("{}: {}", label(node), what)});
  if (a.is_static() || b.is_static()) return a.is_static() ? a : b;
  return a.text().size() <= b.text().size() ? a : b;
}

Shape Inference::broadcast(const std::vector<const Shape*>& shapes) {
  size_t rank = 0;
  for (const Shape* s : shapes) rank = std::max(rank, s->size());
  Shape out(rank, Dim(1));
  for (size_t axis = 0; axis < rank; ++axis) {
    Dim& d = out[axis];
    for (const Shape* s : shapes) {
      if (axis + s->size() < rank) continue;
      const Dim& e = (*s)[axis + s->size() - rank];
      if (e == d || e.is(1)) continue;
      if (d.is(1)) {
        d = e;
        continue;
      }
      const Dim difference = d - e;
      const bool never_equal = difference.lo() > 0 || difference.hi() < 0;
      const auto is_never_one = [](const Dim& x) { return x.lo() > 1 || x.hi() < 1; };
      const bool no_ones = is_never_one(d) && is_never_one(e);
      if (never_equal && no_ones) {
        std::string all;
        for (const Shape* x : shapes) all += (all.empty() ? "" : " and ") + text(*x);
        fail("shapes do not broadcast: " + all);
      }
      checks.push_back({d, e, !no_ones, fmt::format("{}: axis {}", label(node), axis)});
      if (no_ones)
        d = d.is_static() ? d : e;
      else if (d.is_static() && d.lo() > 1)
        continue;
      else if (e.is_static() && e.lo() > 1)
        d = e;
      else
        d = max(d, e);
    }
  }
  return out;
}

void Inference::set(size_t i, DType dtype, Shape s) {
  if (i >= out.size()) return;
  out[i].type = {dtype, std::move(s)};
}

Dim Inference::count(const std::string& what, const Dim& at_most) {
  if (at_most.is(0)) return at_most;
  return Dim(symbols.fresh(fmt::format("{}_{}", node.name, what), {0, at_most.hi()},
                           fmt::format("{} of {}", what, label(node)), true));
}

Dim Inference::operand_extent(const std::string& what, int64_t at_most) {
  return Dim(symbols.fresh(fmt::format("{}_{}", node.name, what), {0, at_most},
                           fmt::format("{} of {}", what, label(node)), true, 1, true));
}

void Inference::fail(const std::string& why) const { refuse_node(node, why); }

namespace {

// infer for an op that only gives `expr`.
void infer_elementwise(Inference& x) {
  std::vector<ExprPtr> args;
  std::vector<const Shape*> shapes;
  for (size_t i = 0; i < x.in.size(); ++i) {
    args.push_back(x.has(i) ? Expr::input(static_cast<int>(i), x.dtype(i)) : nullptr);
    if (x.has(i)) shapes.push_back(&x.shape(i));
  }
  const ExprPtr e = x.node.op->expr(x.node, args);
  x.set(0, e->dtype, x.broadcast(shapes));
}

// The arithmetic of data propagation: Dims through the scalar functions that shape computations use.
std::optional<Dim> propagate(const Expr& e, const std::vector<std::optional<Dim>>& operand,
                             const std::optional<Dim>& acc) {
  switch (e.kind) {
    case Expr::Kind::kAccumulator: return acc;
    case Expr::Kind::kOperand: return operand[static_cast<size_t>(e.operand)];
    case Expr::Kind::kConstant: return is_float(e.dtype) ? std::nullopt : std::optional<Dim>(e.integer);
    case Expr::Kind::kCast: {
      const DType from = e.args[0]->dtype;
      if (!is_integer(from) && from != DType::kBool) return std::nullopt;
      std::optional<Dim> v = propagate(*e.args[0], operand, acc);
      if (is_integer(e.dtype) || (v && from == DType::kBool && e.dtype == DType::kBool)) return v;
      if (!v || e.dtype != DType::kBool) return std::nullopt;
      if (v->lo() > 0 || v->hi() < 0) return Dim(1);
      return v->is(0) ? std::optional<Dim>(0) : std::nullopt;
    }
    case Expr::Kind::kCall: break;
  }
  std::vector<Dim> a;
  for (const ExprPtr& x : e.args) {
    const auto v = propagate(*x, operand, acc);
    if (!v) return std::nullopt;
    a.push_back(*v);
  }
  const std::string_view f = e.fn->name;
  const bool all_static = std::all_of(a.begin(), a.end(), [](const Dim& d) { return d.is_static(); });
  if (all_static && e.fn->integer) {
    int64_t v[3] = {};
    for (size_t i = 0; i < a.size(); ++i) v[i] = a[i].value();
    return Dim(e.fn->integer(v));
  }
  if (f == "add") return a[0] + a[1];
  if (f == "sub") return a[0] - a[1];
  if (f == "mul") return a[0] * a[1];
  if (f == "div" && a[1].lo() > 0 && provably_le(0, a[0])) return floordiv(a[0], a[1]);
  if (f == "mod" && a[1].lo() > 0) return mod(a[0], a[1]);
  if (f == "min") return min(a[0], a[1]);
  if (f == "max") return max(a[0], a[1]);
  if (f == "neg") return Dim(0) - a[0];
  if (f == "eq") {
    if (a[0] == a[1]) return Dim(1);
    const Dim d = a[0] - a[1];
    if (d.lo() > 0 || d.hi() < 0) return Dim(0);
  }
  if (f == "lt" || f == "gt" || f == "le" || f == "ge") {
    const Dim d = f == "lt" || f == "le" ? a[1] - a[0] : a[0] - a[1];
    const bool strict = f == "lt" || f == "gt";
    if (d.lo() >= (strict ? 1 : 0)) return Dim(1);
    if (d.hi() < (strict ? 1 : 0)) return Dim(0);
  }
  if (f == "select" && a[0].is_static()) return a[0].is(0) ? a[2] : a[1];
  if (f == "select" && a[1] == a[2]) return a[1];
  return std::nullopt;
}

// Contents of an elementwise node's output, where all inputs' contents are known. `expr`: what the node
// computes, null for its operator's own expression.
void propagate_elementwise(Inference& x, ExprPtr expr) {
  Fact& out = x.out[0];
  const bool integral = is_integer(out.type.dtype) || out.type.dtype == DType::kBool;
  if (!integral || !is_static(out.type.shape)) return;
  const Dim size = product(out.type.shape);
  if (size.value() > Fact::kMaxElements || size.is(0)) return;
  std::vector<std::vector<Dim>> contents;
  std::vector<ExprPtr> args;
  for (size_t i = 0; i < x.in.size(); ++i) {
    args.push_back(x.has(i) ? Expr::input(static_cast<int>(i), x.dtype(i)) : nullptr);
    contents.emplace_back();
    if (!x.has(i)) continue;
    auto e = x.elements(i);
    if (!e) return;
    contents.back() = std::move(*e);
  }
  if (!expr) expr = x.node.op->expr(x.node, args);
  const std::vector<int64_t> dims = static_dims(out.type.shape);
  std::vector<Dim> result;
  for (int64_t k = 0; k < size.value(); ++k) {
    std::vector<std::optional<Dim>> operand(x.in.size());
    for (size_t i = 0; i < x.in.size(); ++i) {
      if (!x.has(i)) continue;
      int64_t at = 0, stride = 1, rest = k;
      for (size_t d = dims.size(), s = x.shape(i).size(); d-- > 0;) {
        const int64_t index = rest % dims[d];
        rest /= dims[d];
        if (s == 0) continue;
        const Dim& own = x.shape(i)[--s];
        if (!own.is_static()) return;
        if (own.value() != 1) at += index * stride;
        stride *= own.value();
      }
      if (at >= static_cast<int64_t>(contents[i].size())) return;
      operand[i] = contents[i][static_cast<size_t>(at)];
    }
    std::optional<Dim> v;
    try {
      v = propagate(*expr, operand, std::nullopt);
    } catch (const Refusal&) {  // beyond 64 bits: no extent, whatever it is
    }
    if (!v) return;
    result.push_back(*v);
  }
  out.elements = std::move(result);
}

void infer_epilogue(Inference& x, const TensorType& anchor) {
  std::vector<const Shape*> shapes{&anchor.shape};
  for (size_t i = x.node.anchor_inputs; i < x.in.size(); ++i) shapes.push_back(&x.shape(i));
  const Shape s = x.broadcast(shapes);
  x.out[0].type = {x.node.epilogue->dtype, s};
  x.out[0].elements.clear();
}

}  // namespace

// Declared in evaluate.cpp as well: inference of one node from Facts.
void infer_facts(Inference& x) {
  const Op& op = *x.node.op;
  const int inputs = static_cast<int>(x.node.epilogue ? x.node.anchor_inputs : x.in.size());
  const int outputs = static_cast<int>(x.node.outputs.size());
  if (inputs < op.min_inputs || (op.max_inputs >= 0 && inputs > op.max_inputs))
    x.fail(fmt::format("{} inputs, but it takes {} to {}", inputs, op.min_inputs, op.max_inputs));
  if (outputs > op.max_outputs && op.max_outputs >= 0)
    x.fail(fmt::format("{} outputs, but it has at most {}", outputs, op.max_outputs));
  for (int i = 0; i < op.min_inputs; ++i)
    if (!x.has(static_cast<size_t>(i))) x.fail(fmt::format("input {} is missing", i));
  try {
    std::vector<Fact> all;
    if (x.node.epilogue) {  // the anchor must not take the epilogue's operands for optional inputs of its own
      all = x.in;
      x.in.resize(x.node.anchor_inputs);
    }
    if (op.infer)
      op.infer(x);
    else if (op.lower)
      infer_by_lowering(x);
    else
      infer_elementwise(x);
    if (x.node.epilogue) {
      x.in = std::move(all);
      infer_epilogue(x, TensorType(x.out[0].type));
    }
    if (x.node.epilogue ? x.node.anchor_inputs == 0 : op.expr != nullptr)
      propagate_elementwise(x, x.node.epilogue);
    propagate_ranges(x);
  } catch (Refusal& r) {  // arithmetic on Dims and attribute getters do not know the node
    for (std::string& p : r.problems)
      if (p.empty() || p[0] != '"') p.insert(0, label(x.node) + ": ");
    throw;
  }
  for (size_t i = 0; i < x.out.size(); ++i) {
    if (!x.out[i].present) continue;
    for (const Dim& d : x.out[i].type.shape) {
      if (d.hi() < 0) x.fail(fmt::format("output {} has the negative extent {}", i, d.text()));
      if (d.lo() == -Interval::kUnbounded)
        x.require_equal(max(d, 0), d, fmt::format("output {} is an extent", i));
    }
    if (x.out[i].type.shape.size() > 12) x.fail("more than 12 axes");
    if (x.out[i].type.dtype == DType::kUndefined) x.fail(fmt::format("output {} has no type", i));
  }
}

Fact fact_of(const Value* v) {
  Fact f;
  if (!v) return f;
  f.present = true;
  f.type = v->type;
  f.data = v->data ? &*v->data : nullptr;
  f.elements = v->elements;
  f.range = v->range;
  return f;
}

void infer(Graph& g, Node& n) {
  spend_inference(Budget::kStepsOfNode);
  Inference x{n, {}, {}, *g.symbols, g.checks};
  for (const Value* v : n.inputs) x.in.push_back(fact_of(v));
  for (const Value* v : n.outputs) {
    x.out.emplace_back();
    x.out.back().present = v != nullptr;
  }
  infer_facts(x);
  for (size_t i = 0; i < n.outputs.size(); ++i)
    if (Value* v = n.outputs[i]) {
      v->type = x.out[i].type;
      v->elements = x.out[i].elements;
      v->range = x.out[i].range;
    }
}

void infer(Graph& g) {
  std::vector<std::string> problems;
  std::unordered_set<const Value*> unknown;
  g.checks.clear();
  for (size_t i = 0; i < g.nodes.size(); ++i) {  // by index: reveal_operands() adds nodes
    Node* n = g.nodes[i].get();
    const bool blocked = std::any_of(n->inputs.begin(), n->inputs.end(),
                                     [&](const Value* v) { return v && unknown.count(v) != 0; });
    if (!blocked) {
      try {
        reveal_operands(g, *n);
        while (g.nodes[i].get() != n) ++i;
        infer(g, *n);
        continue;
      } catch (const OverBudget&) {
        throw;
      } catch (const Refusal& r) {
        problems.insert(problems.end(), r.problems.begin(), r.problems.end());
      }
    }
    for (const Value* v : n->outputs)
      if (v) unknown.insert(v);
  }
  if (!problems.empty()) throw Refusal(std::move(problems));
}

}  // namespace sinter
