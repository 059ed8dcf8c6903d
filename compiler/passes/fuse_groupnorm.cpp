// fuse_groupnorm: group normalisation as exporters spell it becomes GroupNormalization.
//
//   Reshape [N, C, S..] -> [N, G, K];  InstanceNormalization;  Reshape back  [* factors[C, 1..]] [+
//   offsets[C, 1..]]
//
// Scale and bias of the InstanceNormalization, one for each group, go into those of the channels. Nothing in
// between may be used elsewhere. The operator rounds once where these round thrice, so not with `exact`.
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

// The constant that n, an `op`, combines v with: one number, or one for each channel of v; null otherwise.
Value* of_channels(const Node* n, const char* op, const Value* v) {
  if (!is_op(n, op) || !n->has_output(0) || !(n->outputs[0]->type == v->type)) return nullptr;
  Value* c = n->inputs[n->inputs[0] == v ? 1 : 0];
  if (!c->data || c->type.dtype != v->type.dtype) return nullptr;
  const size_t rank = v->type.shape.size(), behind = rank - 2;
  const std::vector<int64_t>& shape = c->data->shape();
  const bool one = c->data->size() == 1;
  const bool along = shape.size() > behind && shape[shape.size() - behind - 1] == c->data->size() &&
                     v->type.shape[1].is(c->data->size());
  return one || along ? c : nullptr;
}

struct Match {
  Node *grouping, *norm, *ungrouping;
  int64_t channels, groups;
  Node *scaling = nullptr, *adding = nullptr;
  Value *factors = nullptr, *offsets = nullptr;
  Node* last() const { return adding ? adding : scaling ? scaling : ungrouping; }
};

std::optional<Match> match(const Graph& g, const Order& order, Node* norm) {
  if (!is_op(norm, "InstanceNormalization") || !norm->has_output(0) || !norm->inputs[1]->data ||
      !norm->inputs[2]->data || norm->attributes.integer("channels_last", 0) != 0)
    return std::nullopt;
  Node* grouping = norm->inputs[0]->producer;
  if (!is_op(grouping, "Reshape") || !order.has(grouping) || only_user(g, order, grouping) != norm)
    return std::nullopt;
  Node* ungrouping = only_user(g, order, norm);
  if (!is_op(ungrouping, "Reshape") || !ungrouping->has_output(0)) return std::nullopt;
  const TensorType& x = grouping->inputs[0]->type;
  const Shape &s = x.shape, &grouped = norm->inputs[0]->type.shape;
  if (s.size() < 3 || grouped.size() < 3 || !(ungrouping->outputs[0]->type == x)) return std::nullopt;
  if (!same_extent(g, s[0], grouped[0]) || !s[1].is_static() || !grouped[1].is_static()) return std::nullopt;
  Match m{grouping, norm, ungrouping, s[1].value(), grouped[1].value()};
  if (m.groups < 1 || m.channels < 1 || m.channels % m.groups != 0) return std::nullopt;
  Node* next = only_user(g, order, ungrouping);
  if ((m.factors = next ? of_channels(next, "Mul", ungrouping->outputs[0]) : nullptr)) {
    m.scaling = next;
    next = only_user(g, order, next);
  }
  if ((m.offsets = next ? of_channels(next, "Add", m.last()->outputs[0]) : nullptr)) m.adding = next;
  return m;
}

void fuse(Graph& g, const Match& m) {
  Node* last = m.last();
  const DType t = m.norm->inputs[0]->type.dtype;
  Tensor scale(t, {m.channels}), bias(t, {m.channels});
  const auto entry = [](const Value* v, int64_t c, double fallback) {
    return v ? v->data->real(v->data->size() == 1 ? 0 : c) : fallback;
  };
  for (int64_t c = 0; c < m.channels; ++c) {
    const int64_t group = c / (m.channels / m.groups);
    const double factor = entry(m.factors, c, 1);
    scale.set_real(c, m.norm->inputs[1]->data->real(group) * factor);
    bias.set_real(c, m.norm->inputs[2]->data->real(group) * factor + entry(m.offsets, c, 0));
  }
  Attributes a;
  a.set("num_groups", m.groups);
  a.set("epsilon", m.norm->attributes.real("epsilon", 1e-5f));
  std::vector<Node*> parts{m.grouping, m.norm, m.ungrouping};
  for (Node* part : {m.scaling, m.adding})
    if (part) parts.push_back(part);
  fuse_into(g, find_op("", "GroupNormalization"), last,
            {m.grouping->inputs[0], g.add_constant(last->name + "/scale", std::move(scale)),
             g.add_constant(last->name + "/bias", std::move(bias))},
            std::move(a), parts);
}

}  // namespace

bool fuse_groupnorm(Graph& g, const PassOptions& options) {
  if (options.exact) return false;
  bool changed = false;
  const Order order(g);
  for (Node* n : snapshot(g))
    if (const auto m = match(g, order, n)) {
      fuse(g, *m);
      changed = true;
    }
  g.erase_unused();
  return changed;
}

}  // namespace sinter
