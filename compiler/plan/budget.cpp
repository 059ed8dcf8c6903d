// The arena's budget: a faster algorithm may not cost more memory than is promised.
#include <algorithm>

#include "plan/plan.h"

namespace sinter {

int64_t arena_limit(const Plan& plan) {
  int64_t threads = 0;
  for (const Layer& l : plan.layers) {
    int64_t sum = 0;
    for (const Parameter& p : l.parameters) sum += p.more_parts;
    threads = std::max(threads, sum);
  }
  return plan.live_bytes + plan.live_bytes / 20 * 3 + (64 << 10) + threads;
}

bool drop_winograd(Graph& g, const Plan& plan) {
  const int64_t limit = arena_limit(plan);
  if (plan.arena_bytes <= limit) return false;
  std::vector<std::pair<int64_t, const Node*>> found;  // bytes while it runs
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    if (!plan.layers[i].node->attributes.has("winograd")) continue;
    int64_t scratch = 0;
    for (const Parameter& p : plan.layers[i].parameters)
      if (p.kind == Parameter::Kind::kScratch) scratch += p.bytes;
    if (scratch > 0) found.emplace_back(plan.live_at[i] + scratch, plan.layers[i].node);
  }
  if (found.empty()) return false;
  // Where none is too large by itself, gaps between tensors are the reason: those near the limit make them.
  const int64_t most = std::max_element(found.begin(), found.end())->first;
  const int64_t from = most > limit ? limit : limit / 5 * 4;
  bool dropped = false;
  for (const auto& n : g.nodes)
    for (const auto& [bytes, node] : found)
      if (node == n.get() && bytes > from) {
        n->attributes.erase("winograd");
        dropped = true;
      }
  return dropped;
}

}  // namespace sinter
