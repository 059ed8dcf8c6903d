// The arena's budget: a faster algorithm may not cost more memory than is promised.
#include <algorithm>

#include "plan/plan.h"

namespace sinter {

int64_t arena_limit(const Plan& plan) {
  constexpr int64_t kTileMatrices = 3 << 19;
  int64_t threads = 0, tiles = 0;
  for (const Layer& l : plan.layers) {
    int64_t sum = 0;
    for (const Parameter& p : l.parameters) sum += p.more_parts;
    threads = std::max(threads, sum);
    if (l.algorithm == Algorithm::kTileMatrices) tiles = kTileMatrices;
  }
  return plan.live_bytes + plan.live_bytes / 20 * 3 + (64 << 10) + threads + tiles;
}

namespace {

// The limit of the algorithm that takes scratch for speed, if that is what the layer's kernel runs.
Limit* limit_of(const Layer& l, Decision& d) {
  switch (l.algorithm) {
    case Algorithm::kPlain:
    case Algorithm::kForeign: return nullptr;
    case Algorithm::kWinograd: return &d.winograd;
    case Algorithm::kStrassen: return &d.strassen;
    case Algorithm::kTileMatrices: return &d.tile_matrices;
  }
  return nullptr;
}

// Gives the layer's tiles no more than `allowed` bytes; takes the algorithm from it where that is too little
// for a few tiles.
void limit_layer(Limit& limit, int64_t allowed) {
  constexpr int64_t kLeast = 32 << 10;
  if (allowed < kLeast)
    limit.allowed = false;
  else
    limit.bytes = allowed;
}

}  // namespace

bool limit_scratch(const Graph& g, const Plan& plan, Decisions& decisions) {
  const int64_t limit = arena_limit(plan);
  if (plan.arena_bytes <= limit) return false;
  struct Scratch {
    int64_t bytes, allowed;  // while it runs; for its scratch, of one part
    const Node* node;
    Limit* limit;
  };
  std::vector<Scratch> found;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const Node& node = *plan.layers[i].node;
    Limit* const limited = limit_of(plan.layers[i], decisions.change(node));
    if (!limited) continue;
    int64_t scratch = 0, more_parts = 0;
    for (const Parameter& p : plan.layers[i].parameters)
      if (p.kind == Parameter::Kind::kScratch) scratch += p.bytes, more_parts += p.more_parts;
    // Less than now in any case: gaps between tensors may be the reason.
    const int64_t room = limit - plan.live_at[i] - more_parts, less = (scratch - more_parts) / 4 * 3;
    if (scratch > 0) found.push_back({plan.live_at[i] + scratch, std::min(room, less), &node, limited});
  }
  if (found.empty()) return false;
  // Where none is too large by itself, gaps between tensors are the reason: those near the limit make them.
  int64_t most = 0;
  for (const Scratch& l : found) most = std::max(most, l.bytes);
  const int64_t from = most > limit ? limit : limit / 5 * 4;
  bool dropped = false;
  for (const auto& n : g.nodes)
    for (const Scratch& l : found)
      if (l.node == n.get() && l.bytes > from) {
        limit_layer(*l.limit, l.allowed);
        dropped = true;
      }
  return dropped;
}

}  // namespace sinter
