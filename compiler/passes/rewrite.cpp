#include "passes/rewrite.h"

#include <algorithm>
#include <numeric>

namespace sinter {

Order::Order(const Graph& g) {
  for (size_t i = 0; i < g.nodes.size(); ++i) at_[g.nodes[i].get()] = i;
}

std::vector<Node*> snapshot(const Graph& g) {
  std::vector<Node*> out;
  out.reserve(g.nodes.size());
  for (const auto& n : g.nodes) out.push_back(n.get());
  return out;
}

bool bypass(Graph& g, Value* y, Value* x) {
  if (y == x || !(y->type == x->type)) return false;
  const auto is_direct_output = [&](const Value* v) {
    return std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end();
  };
  if (!is_direct_output(y)) {
    g.replace_uses(y, x);
    return true;
  }
  Node* maker = x->producer;
  const bool ours =
      maker && std::any_of(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n.get() == maker; });
  if (!ours || x->data || is_direct_output(x)) return false;
  Node* old = y->producer;
  std::replace(old->outputs.begin(), old->outputs.end(), y, static_cast<Value*>(nullptr));
  g.replace_uses(x, y);
  std::replace(maker->outputs.begin(), maker->outputs.end(), x, y);
  y->producer = maker;
  x->producer = nullptr;
  return true;
}

void take_output(Node* to, size_t i, Node* from, size_t j) {
  Value* v = from->outputs[j];
  from->outputs[j] = nullptr;
  if (to->outputs[i]) to->outputs[i]->producer = nullptr;
  to->outputs[i] = v;
  v->producer = to;
}

void infer_as(Graph& g, Node& n, const TensorType& type) {
  infer(g, n);
  SINTER_CHECK(n.outputs[0]->type.shape.size() == type.shape.size(), "a fold changed the rank of a result");
  n.outputs[0]->type = type;
}

void add_sources(Node& to, const Node& from) {
  for (const std::string& s : from.sources)
    if (std::find(to.sources.begin(), to.sources.end(), s) == to.sources.end()) to.sources.push_back(s);
}

namespace {
auto position(Graph& g, const Node* n) {
  return std::find_if(g.nodes.begin(), g.nodes.end(), [&](const auto& p) { return p.get() == n; });
}
}  // namespace

void move_before(Graph& g, Node* n, const Node* before) {
  auto from = position(g, n), to = position(g, before);
  if (from < to)
    std::rotate(from, from + 1, to);
  else
    std::rotate(to, from, from + 1);
}

void move_to_end(Graph& g, Node* n) {
  auto from = position(g, n);
  std::rotate(from, from + 1, g.nodes.end());
}

Node* node_after(const Graph& g, const Node* n) {
  for (size_t i = 0; i + 1 < g.nodes.size(); ++i)
    if (g.nodes[i].get() == n) return g.nodes[i + 1].get();
  return nullptr;
}

Node* fuse_into(Graph& g, const Op* op, Node* last, std::vector<Value*> inputs, Attributes attributes,
                const std::vector<Node*>& parts) {
  Value* y = last->outputs[0];
  last->outputs[0] = nullptr;
  y->producer = nullptr;
  Node* n = g.add_node(op, last->name, std::move(inputs), {y}, last);
  n->attributes = std::move(attributes);
  for (const Node* part : parts) add_sources(*n, *part);
  const TensorType type = y->type;
  infer(g, *n);
  y->type = type;
  return n;
}

Node* only_user(const Graph& g, const Order& order, const Node* n) {
  if (!n->has_output(0) || n->outputs.size() != 1) return nullptr;
  const Value* v = n->outputs[0];
  if (v->users.size() != 1 || g.is_output(v) || !order.has(v->users[0])) return nullptr;
  return v->users[0];
}

bool is_op(const Node* n, std::string_view name) {
  return n && !n->epilogue && n->op->name == name && std::string_view(n->op->domain).empty();
}

Value* constant_integers(Graph& g, const std::string& name, const std::vector<int64_t>& values) {
  return g.add_constant(name, Tensor::of(values));
}

std::optional<std::vector<int64_t>> integers_of(const Value* v) {
  if (!v || !v->data || !(is_integer(v->data->dtype()) || v->data->dtype() == DType::kBool))
    return std::nullopt;
  return v->data->integers();
}

std::optional<double> uniform_of(const Value* v) {
  if (!v || !v->data || !v->data->is_uniform()) return std::nullopt;
  const DType t = v->data->dtype();
  if (!is_float(t) && !is_integer(t)) return std::nullopt;
  return v->data->real(0);
}

bool same_extent(const Graph& g, const Dim& a, const Dim& b) {
  if (a == b) return true;
  return std::any_of(g.checks.begin(), g.checks.end(), [&](const Check& c) {
    return !c.or_one && ((c.a == a && c.b == b) || (c.a == b && c.b == a));
  });
}

bool same_shape(const Graph& g, const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Dim& x, const Dim& y) { return same_extent(g, x, y); });
}

std::optional<Shape> broadcast_of(const Graph& g, const std::vector<const Shape*>& shapes) {
  size_t rank = 0;
  for (const Shape* s : shapes) rank = std::max(rank, s->size());
  Shape out(rank, Dim(1));
  for (const Shape* s : shapes)
    for (size_t i = 0; i < s->size(); ++i) {
      const Dim& e = (*s)[i];
      Dim& d = out[rank - s->size() + i];
      if (e.is(1)) continue;
      if (d.is(1))
        d = e;
      else if (!same_extent(g, d, e))
        return std::nullopt;
    }
  return out;
}

std::optional<std::vector<int64_t>> reshape_target(const Shape& from, const Shape& to) {
  std::vector<int64_t> target;
  bool inferred = false;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].is_static() && to[i].value() > 0)
      target.push_back(to[i].value());
    else if (i < from.size() && from[i] == to[i])
      target.push_back(0);
    else if (!inferred && !to[i].is_static() && to[i].lo() > 0)
      target.push_back(-1), inferred = true;
    else
      return std::nullopt;
  }
  return target;
}

std::vector<int64_t> composed_perm(const Value& v, const std::vector<int64_t>& perm) {
  if (v.origin.empty()) return {};
  std::vector<int64_t> out = perm;
  if (!v.perm.empty())
    for (int64_t& p : out) p = v.perm[static_cast<size_t>(p)];
  return is_identity(out) ? std::vector<int64_t>{} : out;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) out[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return out;
}

bool is_identity(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

std::vector<int64_t> transpose_perm(const Node& n) {
  std::vector<int64_t> reversed(n.inputs[0]->type.shape.size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  std::vector<int64_t> perm = n.attributes.integers("perm", reversed);
  for (int64_t& p : perm)
    if (p < 0) p += static_cast<int64_t>(perm.size());
  return perm;
}

bool is_view(const std::vector<int64_t>& perm, const Shape& from) {
  int64_t last = -1;
  for (int64_t p : perm) {
    if (from[static_cast<size_t>(p)].is(1)) continue;
    if (p < last) return false;
    last = p;
  }
  return true;
}

Shape permuted(const Shape& s, const std::vector<int64_t>& perm) {
  Shape out;
  for (int64_t p : perm) out.push_back(s[static_cast<size_t>(p)]);
  return out;
}

}  // namespace sinter
