#include "ops/lowering.h"

namespace sinter {

Value* Lowering::operator()(std::string_view op, std::vector<Value*> inputs, const AttributeList& attributes,
                            std::string_view domain) {
  const Op* found = find_op(domain, op);
  SINTER_CHECK(found, "lowered to an unknown operator");
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  Value* out = graph_.add_value(fmt::format("{}/{}", node.name, op), {});
  Node* n = graph_.add_node(found, node.name, std::move(inputs), {out}, before_);
  for (const auto& [name, value] : attributes) n->attributes.set(name, value);
  n->sources = node.sources;
  infer(graph_, *n);
  return out;
}

Value* Lowering::constant(Tensor t) { return graph_.add_constant(node.name + "/constant", std::move(t)); }

Value* Lowering::cast(Value* v, DType to) {
  if (v->type.dtype == to) return v;
  return (*this)("Cast", {v}, {{"to", static_cast<int64_t>(onnx_of(to))}});
}

Value* Lowering::reshape(Value* v, const std::vector<int64_t>& target) {
  return (*this)("Reshape", {v, integers(target)});
}

void Lowering::require_equal(const Dim& a, const Dim& b, const std::string& what) {
  Inference x{node, {}, {}, *graph_.symbols, graph_.checks};
  x.require_equal(a, b, what);
}

int64_t Lowering::axis(const std::string& name, int64_t fallback, int64_t rank) const {
  const int64_t a = node.attributes.integer(name, fallback);
  if (a < -rank || a >= rank) fail(fmt::format("axis {} out of range for {} axes", a, rank));
  return a < 0 ? a + rank : a;
}

// --- the meanings of an op that follow from its lowering

namespace {

struct Copy {
  Graph graph;
  Node node;
};

// A graph that holds the node's inputs, and a copy of the node that is not in it.
void start(Copy& c, const Node& n, const std::vector<Fact>& in) {
  c.node.op = n.op;
  c.node.name = n.name;
  c.node.attributes = n.attributes;
  c.node.sources = n.sources;
  c.node.outputs = n.outputs;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].present) {
      c.node.inputs.push_back(nullptr);
      continue;
    }
    const std::string name = fmt::format("in{}", i);
    Value* v = in[i].data ? c.graph.add_constant(name, *in[i].data) : c.graph.add_value(name, in[i].type);
    v->elements = in[i].elements;
    if (!in[i].data) c.graph.inputs.push_back(v);
    c.node.inputs.push_back(v);
  }
  c.node.anchor_inputs = c.node.inputs.size();
}

}  // namespace

void infer_by_lowering(Inference& x) {
  Copy c;
  c.graph.symbols = std::shared_ptr<Symbols>(&x.symbols, [](Symbols*) {});
  start(c, x.node, x.in);
  Lowering l(c.graph, c.node, nullptr);
  x.node.op->lower(l);
  for (size_t i = 0; i < x.out.size(); ++i) {
    if (!x.out[i].present) continue;
    SINTER_CHECK(i < l.results.size() && l.results[i], "an output was not lowered");
    x.out[i].type = l.results[i]->type;
    x.out[i].elements = l.results[i]->elements;
  }
  x.checks.insert(x.checks.end(), c.graph.checks.begin(), c.graph.checks.end());
}

void evaluate_by_lowering(Evaluation& e) {
  Copy c;
  std::vector<Fact> in;
  for (const Tensor& t : e.in) {
    Fact f;
    if (t) {
      f.present = true;
      f.type = {t.dtype(), Shape(t.shape().begin(), t.shape().end())};
      f.data = &t;
    }
    in.push_back(f);
  }
  start(c, e.node, in);
  Lowering l(c.graph, c.node, nullptr);
  e.node.op->lower(l);
  for (Value* v : l.results)
    if (v) c.graph.outputs.push_back(v);
  std::vector<Tensor> out = evaluate(c.graph, {});
  size_t next = 0;
  for (size_t i = 0; i < l.results.size(); ++i)
    if (l.results[i]) e.out[i] = std::move(out[next++]);
}

}  // namespace sinter
