// spread_pixel_shuffle: where a DepthToSpace or SpaceToDepth is channels-last and a Transpose to or from
// planes stands at the side of the many pixels, used by nobody else, it writes or reads the planes itself
// (wide_planes).
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

// Whether n is the Transpose by perm, with nobody else at the value between it and its neighbour.
bool is_turn(const Graph& g, const Node* n, const Value* between, const std::vector<int64_t>& perm) {
  return is_op(n, "Transpose") && n->has_output(0) && between->users.size() == 1 && !g.is_output(between) &&
         transpose_perm(*n) == perm;
}

}  // namespace

bool spread_pixel_shuffle(Graph& g, const PassOptions&) {
  bool changed = false;
  const Order order(g);
  for (Node* n : snapshot(g)) {
    const bool to_depth = is_op(n, "SpaceToDepth");
    if (!(to_depth || is_op(n, "DepthToSpace")) || !n->has_output(0) ||
        n->attributes.integer("channels_last", 0) == 0 || n->attributes.integer("wide_planes", 0) != 0)
      continue;
    Value *x = n->inputs[0], *y = n->outputs[0];
    Node* turn = to_depth ? x->producer : y->users.size() == 1 ? y->users[0] : nullptr;
    if (!turn || !order.has(turn)) continue;
    if (!is_turn(g, turn, to_depth ? x : y,
                 to_depth ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 3, 1, 2}))
      continue;
    add_sources(*n, *turn);
    n->attributes.set("wide_planes", int64_t{1});
    if (to_depth)
      g.set_input(n, 0, turn->inputs[0]);
    else
      take_output(n, 0, turn, 0);
    changed = true;
  }
  g.erase_unused();
  return changed;
}

}  // namespace sinter
