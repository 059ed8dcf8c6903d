// merge_common: of nodes that compute the same from the same inputs, one stays; equal constants become one.
//
// Nodes are compared by operator, inputs, attributes and which outputs they have. Nodes with bodies and
// random ones are left alone. Dead nodes go as well.
#include <map>

#include "ir/hash.h"
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

// Those of one type and shape are candidates; only where there are two is anything hashed.
using Likeness = std::pair<DType, std::vector<int64_t>>;

bool merge_equal(Graph& g, const std::vector<Value*>& alike) {
  bool changed = false;
  std::map<const std::byte*, uint64_t> hashes;  // Values may share their bytes
  std::map<uint64_t, std::vector<Value*>> seen;
  for (Value* v : alike) {
    const auto [known, fresh] = hashes.try_emplace(v->data->data(), 0);
    if (fresh) known->second = hash_bytes(v->data->data(), static_cast<size_t>(v->data->bytes()));
    std::vector<Value*>& like = seen[known->second];
    bool merged = false;
    for (Value* w : like)
      if (!merged && (w->data->data() == v->data->data() || w->data->same_bits(*v->data)))
        merged = bypass(g, v, w);
    if (!merged) like.push_back(v);
    changed |= merged;
  }
  return changed;
}

bool merge_constants(Graph& g) {
  std::map<Likeness, std::vector<Value*>> alike;
  for (const auto& p : g.values) {
    Value* v = p.get();
    if (!v->data || v->data->dtype() == DType::kString || v->users.empty()) continue;
    alike[{v->data->dtype(), v->data->shape()}].push_back(v);
  }
  bool changed = false;
  for (const auto& [likeness, values] : alike)
    if (values.size() > 1) changed |= merge_equal(g, values);
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
