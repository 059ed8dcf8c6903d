#include "ir/graph.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/error.h"
#include "ops/op.h"

namespace sinter {

namespace {
template <class T>
const T* get(const std::map<std::string, Attribute>& map, const std::string& name, const char* kind) {
  auto it = map.find(name);
  if (it == map.end()) return nullptr;
  const T* v = std::get_if<T>(&it->second);
  if (!v) refuse("attribute {} is not {}", sinter::quoted(name), kind);
  return v;
}
void remove_one(std::vector<Node*>& users, const Node* node) {
  auto it = std::find(users.begin(), users.end(), node);
  SINTER_CHECK(it != users.end(), "use lists are out of step");
  users.erase(it);
}
}  // namespace

int64_t Attributes::integer(const std::string& name, int64_t fallback) const {
  const int64_t* v = get<int64_t>(map_, name, "an integer");
  return v ? *v : fallback;
}
float Attributes::real(const std::string& name, float fallback) const {
  const float* v = get<float>(map_, name, "a float");
  return v ? *v : fallback;
}
std::string Attributes::text(const std::string& name, const std::string& fallback) const {
  const std::string* v = get<std::string>(map_, name, "a string");
  return v ? *v : fallback;
}
std::vector<int64_t> Attributes::integers(const std::string& name, std::vector<int64_t> fallback) const {
  const auto* v = get<std::vector<int64_t>>(map_, name, "a list of integers");
  return v ? *v : fallback;
}
std::vector<float> Attributes::reals(const std::string& name, std::vector<float> fallback) const {
  const auto* v = get<std::vector<float>>(map_, name, "a list of floats");
  return v ? *v : fallback;
}
std::vector<std::string> Attributes::texts(const std::string& name) const {
  const auto* v = get<std::vector<std::string>>(map_, name, "a list of strings");
  return v ? *v : std::vector<std::string>{};
}
const Tensor* Attributes::tensor(const std::string& name) const {
  return get<Tensor>(map_, name, "a tensor");
}

Value* Graph::add_value(const std::string& name, TensorType type) {
  std::map<std::string, int>& taken = [this]() -> std::map<std::string, int>& {
    Graph* g = this;
    while (g->parent) g = g->parent;
    return g->taken_;
  }();
  std::string unique = name;
  while (!taken.try_emplace(unique, 1).second) unique = fmt::format("{}_{}", name, taken[name]++);
  values.push_back(std::make_unique<Value>());
  values.back()->name = unique;
  values.back()->type = std::move(type);
  return values.back().get();
}

Value* Graph::add_constant(const std::string& name, Tensor data) {
  TensorType type{data.dtype(), Shape(data.shape().begin(), data.shape().end())};
  Value* v = add_value(name, std::move(type));
  v->data = std::move(data);
  return v;
}

Node* Graph::add_node(const Op* op, const std::string& name, std::vector<Value*> ins,
                      std::vector<Value*> outs, Node* before) {
  auto node = std::make_unique<Node>();
  Node* n = node.get();
  n->op = op;
  n->name = name;
  n->inputs = std::move(ins);
  n->outputs = std::move(outs);
  n->anchor_inputs = n->inputs.size();
  for (Value* v : n->inputs)
    if (v) v->users.push_back(n);
  for (Value* v : n->outputs)
    if (v) {
      SINTER_CHECK(!v->producer, "a value has two producers");
      v->producer = n;
    }
  auto at = nodes.end();
  if (before) at = std::find_if(nodes.begin(), nodes.end(), [&](const auto& p) { return p.get() == before; });
  nodes.insert(at, std::move(node));
  return n;
}

void Graph::set_input(Node* node, size_t i, Value* value) {
  if (i >= node->inputs.size()) node->inputs.resize(i + 1, nullptr);
  if (Value* old = node->inputs[i]) remove_one(old->users, node);
  node->inputs[i] = value;
  if (value) value->users.push_back(node);
  if (!node->epilogue) node->anchor_inputs = node->inputs.size();
}

void Graph::remove_input(Node* node, size_t i) {
  if (Value* old = node->inputs[i]) remove_one(old->users, node);
  node->inputs.erase(node->inputs.begin() + static_cast<std::ptrdiff_t>(i));
  if (!node->epilogue) node->anchor_inputs = node->inputs.size();
}

void Graph::replace_uses(Value* from, Value* to) {
  SINTER_CHECK(from != to);
  for (Node* user : std::vector<Node*>(from->users))
    for (Value*& v : user->inputs)
      if (v == from) {
        v = to;
        remove_one(from->users, user);
        to->users.push_back(user);
      }
  std::replace(outputs.begin(), outputs.end(), from, to);  // bodies are closed: theirs are their own
}

bool Graph::is_output(const Value* v) const {
  return std::find(outputs.begin(), outputs.end(), v) != outputs.end();
}

namespace {
// A node that goes uses nothing any more, nor do those of its bodies.
void forget_uses(const Node& node) {
  for (Value* v : node.inputs)
    if (v) remove_one(v->users, &node);
  for (const auto& body : node.bodies)
    for (const auto& inner : body->nodes)
      for (Value* v : inner->inputs)
        if (v) remove_one(v->users, inner.get());
}
}  // namespace

void Graph::erase(Node* node) {
  forget_uses(*node);
  for (Value* v : node->outputs)
    if (v) {
      SINTER_CHECK(!has_uses(v), "erasing a node whose output is used");
      v->producer = nullptr;
      auto it = std::find_if(values.begin(), values.end(), [&](const auto& p) { return p.get() == v; });
      if (it != values.end()) values.erase(it);
    }
  nodes.erase(std::find_if(nodes.begin(), nodes.end(), [&](const auto& p) { return p.get() == node; }));
}

void Graph::erase_unused() {
  for (const auto& n : nodes)
    for (const auto& b : n->bodies) b->erase_unused();
  std::unordered_set<const Value*> kept(outputs.begin(), outputs.end());
  const auto used = [&](const Value* v) { return !v->users.empty() || kept.count(v) != 0; };
  for (size_t i = nodes.size(); i-- > 0;) {
    Node* n = nodes[i].get();
    if (std::any_of(n->outputs.begin(), n->outputs.end(), [&](Value* v) { return v && used(v); })) continue;
    forget_uses(*n);
    for (Value* v : n->outputs)
      if (v) v->producer = nullptr;
    nodes[i].reset();
  }
  std::erase(nodes, nullptr);
  kept.insert(inputs.begin(), inputs.end());
  std::erase_if(values, [&](const auto& v) { return !v->producer && !used(v.get()); });
}

void Graph::sort() {
  // Kahn's algorithm by hand on positions, stable: among ready nodes the earliest in the old order goes
  // first.
  std::unordered_map<const Node*, size_t> position;
  for (size_t i = 0; i < nodes.size(); ++i) position[nodes[i].get()] = i;
  std::vector<std::vector<size_t>> after(nodes.size());
  std::vector<size_t> waits(nodes.size(), 0);
  std::function<void(const Node&, size_t)> need = [&](const Node& n, size_t user) {
    for (const Value* v : n.inputs)
      if (v && v->producer)
        if (auto it = position.find(v->producer); it != position.end() && it->second != user) {
          after[it->second].push_back(user);
          ++waits[user];
        }
    for (const auto& b : n.bodies) {
      for (const auto& inner : b->nodes) need(*inner, user);
      for (const Value* v : b->outputs)
        if (v->producer)
          if (auto it = position.find(v->producer); it != position.end()) {
            after[it->second].push_back(user);
            ++waits[user];
          }
    }
  };
  for (size_t i = 0; i < nodes.size(); ++i) need(*nodes[i], i);
  std::set<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waits[i] == 0) ready.insert(i);
  std::vector<std::unique_ptr<Node>> sorted;
  while (!ready.empty()) {
    const size_t i = *ready.begin();
    ready.erase(ready.begin());
    for (size_t u : after[i])
      if (--waits[u] == 0) ready.insert(u);
    sorted.push_back(std::move(nodes[i]));
  }
  if (sorted.size() != nodes.size()) {
    std::string who;
    for (const auto& n : nodes)
      if (n && who.empty()) who = label(*n);
    nodes.insert(nodes.end(), std::make_move_iterator(sorted.begin()), std::make_move_iterator(sorted.end()));
    std::erase(nodes, nullptr);
    refuse("the graph has a cycle through {}", who);
  }
  nodes = std::move(sorted);
}

void Graph::verify() const {
  std::map<const Value*, std::map<const Node*, size_t>> uses;
  std::set<const Value*> known;
  std::function<void(const Graph&)> walk = [&](const Graph& g) {
    for (const Value* v : g.inputs) known.insert(v);
    for (const auto& v : g.values)
      if (v->data) known.insert(v.get());
    for (const auto& n : g.nodes) {
      SINTER_CHECK(n->op, "a node without an operator");
      for (const Value* v : n->inputs)
        if (v) {
          if (!known.count(v)) bug(__FILE__, __LINE__, label(*n) + " uses " + v->name + " before it is made");
          ++uses[v][n.get()];
        }
      for (const auto& b : n->bodies) {
        SINTER_CHECK(b->parent == &g, "a body does not know its graph");
        walk(*b);
      }
      for (const Value* v : n->outputs)
        if (v) {
          SINTER_CHECK(v->producer == n.get(), "a value does not know its producer");
          known.insert(v);
        }
    }
    for (const Value* v : g.outputs) SINTER_CHECK(known.count(v), "a graph output that nobody makes");
  };
  walk(*this);
  std::function<void(const Graph&)> check_users = [&](const Graph& g) {
    for (const auto& v : g.values) {
      std::map<const Node*, size_t> listed;
      for (const Node* u : v->users) ++listed[u];
      if (listed != uses[v.get()]) bug(__FILE__, __LINE__, "the use list of " + v->name + " is out of step");
    }
    for (const auto& n : g.nodes)
      for (const auto& b : n->bodies) check_users(*b);
  };
  check_users(*this);
}

std::unique_ptr<Graph> Graph::clone() const {
  std::map<const Value*, Value*> to;
  std::function<std::unique_ptr<Graph>(const Graph&, Graph*)> copy = [&](const Graph& g, Graph* parent) {
    auto out = std::make_unique<Graph>();
    out->parent = parent;
    out->name = g.name;
    out->unreachable = g.unreachable;
    out->symbols = g.symbols;
    out->checks = g.checks;
    out->element_checks = g.element_checks;
    out->taken_ = g.taken_;
    for (const auto& v : g.values) {
      auto c = std::make_unique<Value>(*v);
      c->producer = nullptr;
      c->users.clear();
      to[v.get()] = c.get();
      out->values.push_back(std::move(c));
    }
    auto mapped = [&](Value* v) { return v ? (to.count(v) ? to[v] : v) : nullptr; };
    for (Value* v : g.inputs) out->inputs.push_back(mapped(v));
    for (const auto& n : g.nodes) {
      std::vector<Value*> ins, outs;
      for (Value* v : n->inputs) ins.push_back(mapped(v));
      for (Value* v : n->outputs) outs.push_back(mapped(v));
      Node* c = out->add_node(n->op, n->name, std::move(ins), std::move(outs));
      c->attributes = n->attributes;
      c->freedom = n->freedom;
      c->epilogue = n->epilogue;
      c->anchor_inputs = n->anchor_inputs;
      c->sources = n->sources;
      for (const auto& b : n->bodies) c->bodies.push_back(copy(*b, out.get()));
    }
    for (Value* v : g.outputs) out->outputs.push_back(mapped(v));
    return out;
  };
  return copy(*this, nullptr);
}

std::string text(const TensorType& t) { return std::string(name_of(t.dtype)) + text(t.shape); }
std::string label(const Node& n) {
  return fmt::format("{} ({})", sinter::quoted(n.name), n.op ? n.op->name : "?");
}
void refuse_node(const Node& n, const std::string& why) { refuse("{}: {}", label(n), why); }

namespace {
std::string attribute_text(const Attribute& a) {
  struct Visitor {
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(float v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return sinter::quoted(v, 40); }
    std::string operator()(const Tensor& t) const {
      return fmt::format("{}{}", name_of(t.dtype()), fmt::format("[{}]", t.size()));
    }
    std::string operator()(const std::vector<int64_t>& v) const {
      std::string s;
      for (int64_t x : v) s += (s.empty() ? "" : ",") + std::to_string(x);
      return "[" + s + "]";
    }
    std::string operator()(const std::vector<float>& v) const {
      std::string s;
      for (float x : v) s += (s.empty() ? "" : ",") + fmt::format("{}", x);
      return "[" + s + "]";
    }
    std::string operator()(const std::vector<std::string>& v) const {
      return fmt::format("{} strings", v.size());
    }
  };
  return std::visit(Visitor{}, a);
}

std::map<std::string, std::string> freedoms(const Freedom& f) {
  std::map<std::string, std::string> all;
  if (f.winograd > 0) all["winograd"] = std::to_string(f.winograd);
  if (f.strassen) all["strassen"] = "1";
  if (f.tile_matrices) all["tile_matrices"] = "1";
  if (f.halves != Halves::kNone) all["halves"] = f.halves == Halves::kStored ? "stored" : "computed";
  if (f.subnormals != Subnormals::kNumbers) all["flush"] = std::to_string(static_cast<int>(f.subnormals));
  return all;
}
}  // namespace

std::string text(const Node& n) {
  std::string s;
  for (const Value* v : n.outputs)
    s += (s.empty() ? "" : ", ") + (v ? sinter::quoted(v->name) + " " + text(v->type) : std::string("_"));
  s += fmt::format(" = {}", n.op->name);
  std::map<std::string, std::string> all = freedoms(n.freedom);
  for (const auto& [k, v] : n.attributes.all()) all[k] = attribute_text(v);
  std::string attributes;
  for (const auto& [k, v] : all) attributes += (attributes.empty() ? "" : ", ") + k + "=" + v;
  if (!attributes.empty()) s += "<" + attributes + ">";
  s += "(";
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (i) s += i == n.anchor_inputs && n.epilogue ? " | " : ", ";
    s += n.inputs[i] ? sinter::quoted(n.inputs[i]->name) : "_";
  }
  s += ")";
  if (n.epilogue) s += " -> " + text(*n.epilogue);
  return s;
}

std::string text(const Graph& g) {
  std::string s = "graph " + sinter::quoted(g.name) + "\n";
  if (!g.unreachable.empty()) s += "  unreachable: " + g.unreachable + "\n";
  for (const Value* v : g.inputs) s += "  input " + sinter::quoted(v->name) + " " + text(v->type) + "\n";
  for (const auto& v : g.values)
    if (v->data) s += "  constant " + sinter::quoted(v->name) + " " + text(v->type) + "\n";
  for (const auto& n : g.nodes) {
    s += "  " + text(*n) + "\n";
    for (const auto& b : n->bodies) {
      std::string inner = text(*b);
      for (size_t at = 0; at < inner.size(); at = inner.find('\n', at) + 1) inner.insert(at, "    "), at += 4;
      s += inner;
    }
  }
  for (const Check& c : g.checks)
    s += fmt::format("  check {} == {}{}: {}\n", c.a.text(), c.b.text(), c.or_one ? " or 1" : "", c.why);
  for (const Value* v : g.outputs) s += "  output " + sinter::quoted(v->name) + " " + text(v->type) + "\n";
  return s;
}

}  // namespace sinter
