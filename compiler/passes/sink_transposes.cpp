// sink_transposes: for every permutation that occurs in the graph, moves its Transposes through the nodes
// that can work either way, up or down, where in the end fewer elements are transposed; inverse pairs meet
// and vanish.
//
// Each step lowers the number of transposed elements, so the search ends by itself. Then Transposes that
// stand behind each other become one, which may go where neither could.
#include <set>

#include "passes/passes.h"
#include "passes/permute.h"
#include "passes/rewrite.h"

namespace sinter {

namespace {

bool sink(Graph& g) {
  bool changed = false, again = true;
  for (int round = 0; again && round < 16; ++round) {
    std::set<std::vector<int64_t>> perms;
    for (const auto& n : g.nodes)
      if (is_op(n.get(), "Transpose") && n->has_output(0)) {
        const std::vector<int64_t> perm = transpose_perm(*n);
        if (!is_identity(perm)) perms.insert({perm, inverse(perm)});
      }
    again = false;
    for (const auto& perm : perms) again |= permute_region(g, Arrangement::of(perm), false);
    again |= permute_region(g, Arrangement::channels_last(), false);
    again |= permute_region(g, Arrangement::channels_first(), false);
    changed |= again;
  }
  return changed;
}

}  // namespace

bool sink_transposes(Graph& g, const PassOptions& options) {
  bool changed = sink(g);
  if (remove_identity(g, options)) changed = true, sink(g);
  return changed;
}

}  // namespace sinter
