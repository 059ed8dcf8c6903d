#include "ops/control/bodies.h"

#include <algorithm>
#include <map>
#include <set>

namespace sinter {

bool is_control(const Node& n) { return !n.bodies.empty(); }

LoopForm loop_form(const Node& n) {
  LoopForm f;
  f.scan = n.op->name == std::string_view("Scan");
  f.first = f.scan ? 0 : 2;
  if (n.bodies.size() != 1) refuse_node(n, "it has no body");
  const Graph& body = *n.bodies[0];
  const int64_t captures = n.attributes.integer("captures", 0);
  const int64_t scanned = f.scan ? n.attributes.integer("num_scan_inputs", 0) : 0;
  const int64_t inputs = static_cast<int64_t>(n.inputs.size());
  if (f.scan && scanned < 1) refuse_node(n, "num_scan_inputs must be at least 1");
  const int64_t states = inputs - static_cast<int64_t>(f.first) - captures;
  if (captures < 0 || scanned > inputs || states - scanned < 0)
    refuse_node(n, fmt::format("{} inputs are too few", inputs));
  f.captures = static_cast<size_t>(captures);
  f.scanned = static_cast<size_t>(scanned);
  f.states = static_cast<size_t>(states) - f.scanned;
  if (body.inputs.size() != n.inputs.size())
    refuse_node(n, fmt::format("its body has {} inputs instead of {}", body.inputs.size() - f.captures,
                               n.inputs.size() - f.captures));
  const size_t own = f.body_output(0);
  if (body.outputs.size() < own + f.states)
    refuse_node(n,
                fmt::format("its body has {} outputs, fewer than {}", body.outputs.size(), own + f.states));
  f.results = body.outputs.size() - own - f.states;
  if (n.outputs.size() != f.states + f.results)
    refuse_node(n, fmt::format("{} outputs, but its body makes {}", n.outputs.size(), f.states + f.results));
  for (size_t i = f.first; i < n.inputs.size(); ++i)
    if (!n.inputs[i]) refuse_node(n, fmt::format("input {} is missing", i));
  return f;
}

void close_bodies(Graph& g, Node& node) {
  const bool loop = node.op->name == std::string_view("Loop");
  if (loop && node.inputs.size() < 2) g.set_input(&node, 1, nullptr);
  std::vector<Value*> captured;
  std::vector<std::map<const Value*, Value*>> own(node.bodies.size());
  const auto local = [&](size_t b, Value* v) -> Value* {
    auto found = own[b].find(v);
    if (found != own[b].end()) return found->second;
    Graph& body = *node.bodies[b];
    if (v->data) {
      Value* c = body.add_constant(v->name, *v->data);
      c->origin = v->origin;
      return own[b][v] = c;
    }
    g.set_input(&node, node.inputs.size(), v);
    captured.push_back(v);
    for (size_t k = 0; k < node.bodies.size(); ++k) {
      Value* in = node.bodies[k]->add_value(v->name, v->type);
      in->elements = v->elements;
      in->range = v->range;
      node.bodies[k]->inputs.push_back(in);
      own[k][v] = in;
    }
    return own[b][v];
  };
  for (size_t b = 0; b < node.bodies.size(); ++b) {
    Graph& body = *node.bodies[b];
    std::set<const Value*> mine;
    for (const auto& v : body.values) mine.insert(v.get());
    for (const auto& n : body.nodes)
      for (size_t i = 0; i < n->inputs.size(); ++i)
        if (Value* v = n->inputs[i]; v && !mine.count(v)) {
          Value* in = local(b, v);
          mine.insert(in);
          body.set_input(n.get(), i, in);
        }
    for (Value*& v : body.outputs)
      if (!mine.count(v)) {
        v = local(b, v);
        mine.insert(v);
      }
    for (const auto& [outer, in] : own[b]) mine.insert(in);
  }
  if (!captured.empty() && node.op->name != std::string_view("If"))
    node.attributes.set("captures", static_cast<int64_t>(captured.size()));
}

void inline_branch(Graph& g, Node& node, size_t k) {
  std::unique_ptr<Graph> body = std::move(node.bodies[k]);
  node.bodies.clear();
  for (size_t i = 0; i < body->inputs.size(); ++i)
    if (body->has_uses(body->inputs[i])) {
      // Bodies within the body are closed: all its uses are here.
      for (const auto& n : body->nodes)
        for (size_t j = 0; j < n->inputs.size(); ++j)
          if (n->inputs[j] == body->inputs[i]) body->set_input(n.get(), j, node.inputs[i + 1]);
      std::replace(body->outputs.begin(), body->outputs.end(), body->inputs[i], node.inputs[i + 1]);
    }
  const std::vector<Value*> results = body->outputs;
  const std::vector<Value*> outputs = node.outputs;
  std::set<const Value*> inputs(body->inputs.begin(), body->inputs.end());
  for (auto& v : body->values)
    if (!inputs.count(v.get())) g.values.push_back(std::move(v));
  auto at = std::find_if(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n.get() == &node; });
  for (auto& n : body->nodes) {
    for (auto& inner : n->bodies) inner->parent = &g;
    at = g.nodes.insert(at, std::move(n)) + 1;
  }
  g.checks.insert(g.checks.end(), body->checks.begin(), body->checks.end());
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value* out = outputs[i];
    if (!out) continue;
    node.outputs[i] = nullptr;
    out->producer = nullptr;
    // The output keeps its name and is a copy of the branch's.
    Node* copy = g.add_node(find_op("", "Identity"), node.name, {results[i]}, {out}, &node);
    copy->sources = node.sources;
    infer(g, *copy);
  }
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i]) g.set_input(&node, i, nullptr);
}

int known_branch(const Node& n) {
  if (n.op->name != std::string_view("If") || n.bodies.size() != 2 || !n.inputs[0]) return -1;
  const Value& c = *n.inputs[0];
  if (c.data) return c.data->size() == 1 && c.data->dtype() == DType::kBool ? c.data->integer(0) == 0 : -1;
  if (c.elements.size() == 1 && c.elements[0].is_static()) return c.elements[0].is(0);
  return -1;
}

bool drop_unused_captures(Graph& g, Node& node) {
  const bool branches = node.bodies.size() == 2;
  size_t first = 1;  // the node's first capture
  if (!branches) {
    const LoopForm f = loop_form(node);
    first = node.inputs.size() - f.captures;
  }
  std::set<const Value*> gone;
  for (size_t i = node.inputs.size(); i-- > first;) {
    const size_t k = branches ? i - 1 : i;
    const bool used = std::any_of(node.bodies.begin(), node.bodies.end(), [&](const auto& b) {
      return k < b->inputs.size() && b->has_uses(b->inputs[k]);
    });
    if (used) continue;
    g.remove_input(&node, i);
    for (const auto& b : node.bodies) {
      if (k >= b->inputs.size()) continue;
      gone.insert(b->inputs[k]);
      b->inputs.erase(b->inputs.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  const bool changed = !gone.empty();
  if (changed)
    for (const auto& b : node.bodies)
      std::erase_if(b->values, [&](const auto& v) { return gone.count(v.get()) != 0; });
  if (!branches && changed) node.attributes.set("captures", static_cast<int64_t>(node.inputs.size() - first));
  return changed;
}

void set_input(Value& v, const Fact& f) {
  v.type = f.type;
  v.elements = f.elements;
  v.range = f.range;
  if (!f.data || f.data->size() > Fact::kMaxElements) return;
  if (!is_integer(f.data->dtype()) && f.data->dtype() != DType::kBool) return;
  const std::vector<int64_t> known = f.data->integers();
  v.elements.assign(known.begin(), known.end());
}

Dim unknown_extent(Interval range, const std::string& id) {
  auto s = std::make_shared<Symbol>();
  s->id = id;
  s->range = range;
  s->from_data = true;
  return Dim(SymbolPtr(std::move(s)));
}

bool known_outside(const Inference& x, const Dim& d) {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  return std::all_of(symbols.begin(), symbols.end(), [&](const SymbolPtr& s) {
    if (!s->from_data) return true;
    const auto has = [&](const Dim& of) {
      std::vector<SymbolPtr> all;
      of.collect_symbols(all);
      return std::find(all.begin(), all.end(), s) != all.end();
    };
    return std::any_of(x.in.begin(), x.in.end(), [&](const Fact& f) {
      return std::any_of(f.type.shape.begin(), f.type.shape.end(), has) ||
             std::any_of(f.elements.begin(), f.elements.end(), has);
    });
  });
}

Dim border(Inference& x, size_t i, size_t axis, const Dim& d, Interval range) {
  if (d.is_static() || known_outside(x, d)) return d;
  if (range.lo == range.hi) return Dim(range.lo);
  const Value* v = x.node.outputs[i];
  const std::string name = fmt::format("{}@{}", v ? v->name : fmt::format("{}/{}", x.node.name, i), axis);
  range.hi = std::min(range.hi, x.symbols.limit(name));
  range.lo = std::max<int64_t>(0, std::min(range.lo, range.hi));
  // Inferred again, the node keeps its symbol as long as nothing about it has changed.
  if (v && axis < v->type.shape.size()) {
    std::vector<SymbolPtr> old;
    v->type.shape[axis].collect_symbols(old);
    if (old.size() == 1 && Dim(old[0]) == v->type.shape[axis] && old[0]->name == name &&
        old[0]->range == range)
      return Dim(old[0]);
  }
  return Dim(
      x.symbols.fresh(name, range, fmt::format("output {} axis {} of {}", i, axis, label(x.node)), true));
}

}  // namespace sinter
