#include "passes/channel_shuffle.h"

#include <numeric>

#include "passes/rewrite.h"

namespace sinter {
namespace {

// The groups of the shuffle that begins with `split`; 0 where none does. `last` is its final Reshape.
int64_t shuffle_groups(const Graph& g, const Order& order, const Node* split, Node*& last) {
  if (!is_op(split, "Reshape") || !split->has_output(0)) return 0;
  const Shape& x = split->inputs[0]->type.shape;
  const Shape& parts = split->outputs[0]->type.shape;
  const Node* swap = only_user(g, order, split);
  if (!is_op(swap, "Transpose") || x.size() < 3 || parts.size() != x.size() + 1) return 0;
  last = only_user(g, order, swap);
  if (!is_op(last, "Reshape") || !last->has_output(0) || !(last->outputs[0]->type.shape == x)) return 0;
  std::vector<int64_t> perm(parts.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[1], perm[2]);
  if (transpose_perm(*swap) != perm || !(parts[0] == x[0]) || !parts[1].is_static() || !parts[2].is_static())
    return 0;
  for (size_t i = 2; i < x.size(); ++i)
    if (!(parts[i + 1] == x[i])) return 0;
  return parts[1].value();
}

}  // namespace

std::vector<ChannelShuffle> gather_shuffles(Graph& g) {
  std::vector<ChannelShuffle> found;
  const Order order(g);
  for (Node* n : snapshot(g)) {
    Node* last = nullptr;
    const int64_t groups = shuffle_groups(g, order, n, last);
    if (groups == 0) continue;
    const int64_t channels = last->outputs[0]->type.shape[1].value(), size = channels / groups;
    std::vector<int64_t> from;
    for (int64_t c = 0; c < channels; ++c) from.push_back(c % groups * size + c / groups);
    Value* y = last->outputs[0];
    Value* x = n->inputs[0];
    last->outputs[0] = nullptr;
    y->producer = nullptr;
    Node* gather = g.add_node(find_op("", "Gather"), last->name,
                              {x, constant_integers(g, last->name + "/channels", from)}, {y}, last);
    gather->attributes.set("axis", int64_t{1});
    for (const Node* part : {static_cast<const Node*>(n), static_cast<const Node*>(n->outputs[0]->users[0]),
                             static_cast<const Node*>(last)})
      add_sources(*gather, *part);
    found.push_back({gather, groups});
  }
  g.erase_unused();
  return found;
}

void spread_shuffles(Graph& g, const std::vector<ChannelShuffle>& shuffles) {
  for (const auto& [gather, groups] : shuffles) {
    Value* x = gather->inputs[0];
    Value* y = gather->outputs[0];
    const size_t axis = static_cast<size_t>(gather->attributes.integer("axis", 0)),
                 rank = x->type.shape.size();
    Shape parts = x->type.shape;
    const int64_t size = parts[axis].value() / groups;
    parts[axis] = Dim(groups);
    parts.insert(parts.begin() + static_cast<ptrdiff_t>(axis) + 1, Dim(size));
    std::vector<int64_t> perm(rank + 1);
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[axis], perm[axis + 1]);
    const Shape swapped_shape = permuted(parts, perm);
    const auto split_target = reshape_target(x->type.shape, parts);
    const auto join_target = reshape_target(swapped_shape, y->type.shape);
    if (!split_target || !join_target) continue;  // stays a Gather
    const DType t = x->type.dtype;
    Value* split = g.add_value(gather->name + "/split", {t, parts});
    Value* swapped = g.add_value(gather->name + "/swapped", {t, swapped_shape});
    gather->outputs[0] = nullptr;
    y->producer = nullptr;
    const Op* reshape = find_op("", "Reshape");
    Node* a = g.add_node(reshape, split->name,
                         {x, constant_integers(g, split->name + "/shape", *split_target)}, {split}, gather);
    Node* b = g.add_node(find_op("", "Transpose"), swapped->name, {split}, {swapped}, gather);
    b->attributes.set("perm", perm);
    Node* c = g.add_node(reshape, gather->name,
                         {swapped, constant_integers(g, gather->name + "/shape", *join_target)}, {y}, gather);
    b->sources = gather->sources;
    for (Node* n : {a, b}) infer(g, *n);
    const TensorType type = y->type;
    infer(g, *c);
    y->type = type;
  }
  g.erase_unused();
}

}  // namespace sinter
