// merge_common: of nodes that compute the same from the same inputs, one stays; equal constants become one.
//
// Nodes are compared by operator, inputs, attributes and which outputs they have. Nodes with bodies and
// random ones are left alone. Dead nodes go as well.
#include <map>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

bool equal(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  if (const Tensor* t = std::get_if<Tensor>(&a)) return t->same_bits(std::get<Tensor>(b));
  if (const float* f = std::get_if<float>(&a)) return *f == std::get<float>(b);
  if (const auto* v = std::get_if<std::vector<float>>(&a)) return *v == std::get<std::vector<float>>(b);
  if (const auto* v = std::get_if<int64_t>(&a)) return *v == std::get<int64_t>(b);
  if (const auto* v = std::get_if<std::string>(&a)) return *v == std::get<std::string>(b);
  if (const auto* v = std::get_if<std::vector<int64_t>>(&a)) return *v == std::get<std::vector<int64_t>>(b);
  return std::get<std::vector<std::string>>(a) == std::get<std::vector<std::string>>(b);
}

bool equal(const Node& a, const Node& b) {
  if (a.outputs.size() != b.outputs.size()) return false;
  for (size_t i = 0; i < a.outputs.size(); ++i)
    if (!a.outputs[i] != !b.outputs[i]) return false;
  const auto& x = a.attributes.all();
  const auto& y = b.attributes.all();
  if (x.size() != y.size()) return false;
  for (auto i = x.begin(), j = y.begin(); i != x.end(); ++i, ++j)
    if (i->first != j->first || !equal(i->second, j->second)) return false;
  return true;
}

uint64_t hash(const Tensor& t) {  // FNV-1a over the bytes
  uint64_t h = 14695981039346656037u;
  for (int64_t i = 0; i < t.bytes(); ++i) h = (h ^ static_cast<uint64_t>(t.data()[i])) * 1099511628211u;
  return h;
}

bool merge_constants(Graph& g) {
  bool changed = false;
  std::map<std::pair<int64_t, uint64_t>, std::vector<Value*>> seen;
  for (const auto& p : g.values) {
    Value* v = p.get();
    if (!v->data || v->data->dtype() == DType::kString || v->users.empty()) continue;
    std::vector<Value*>& like = seen[{v->data->bytes(), hash(*v->data)}];
    bool merged = false;
    for (Value* w : like)
      if (!merged && w->data->same_bits(*v->data)) merged = bypass(g, v, w);
    if (!merged) like.push_back(v);
    changed |= merged;
  }
  return changed;
}

}  // namespace

bool merge_common(Graph& g, const PassOptions&) {
  bool changed = merge_constants(g);
  std::map<std::pair<const Op*, std::vector<Value*>>, std::vector<Node*>> seen;
  for (Node* n : snapshot(g)) {
    if (n->op->impure || !n->bodies.empty() || n->epilogue) continue;
    std::vector<Node*>& like = seen[{n->op, n->inputs}];
    Node* same = nullptr;
    for (Node* m : like)
      if (!same && equal(*m, *n)) same = m;
    if (!same) {
      like.push_back(n);
      continue;
    }
    for (size_t i = 0; i < n->outputs.size(); ++i)
      if (n->outputs[i] && same->outputs[i]) changed |= bypass(g, n->outputs[i], same->outputs[i]);
  }
  const size_t nodes = g.nodes.size();
  g.erase_unused();
  return changed || nodes != g.nodes.size();
}

}  // namespace sinter
