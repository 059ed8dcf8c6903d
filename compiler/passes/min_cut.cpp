#include "passes/min_cut.h"

#include <algorithm>

namespace sinter {

int MinCut::add_vertex() {
  out_.emplace_back();
  return static_cast<int>(out_.size()) - 1;
}

void MinCut::add_edge(int from, int to, int64_t capacity) {
  if (from == to || capacity == 0) return;
  out_[static_cast<size_t>(from)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  out_[static_cast<size_t>(to)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::levels(int source, int sink) {
  level_.assign(out_.size(), -1);
  std::vector<int> queue{source};
  level_[static_cast<size_t>(source)] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (int e : out_[static_cast<size_t>(queue[i])]) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      int& level = level_[static_cast<size_t>(edge.to)];
      if (edge.room == 0 || level >= 0) continue;
      level = level_[static_cast<size_t>(queue[i])] + 1;
      queue.push_back(edge.to);
    }
  return level_[static_cast<size_t>(sink)] >= 0;
}

int64_t MinCut::push(int v, int sink, int64_t room) {
  if (v == sink) return room;
  const size_t at = static_cast<size_t>(v);
  for (size_t& i = next_[at]; i < out_[at].size(); ++i) {
    const int e = out_[at][i];
    Edge& edge = edges_[static_cast<size_t>(e)];
    if (edge.room == 0 || level_[static_cast<size_t>(edge.to)] != level_[at] + 1) continue;
    const int64_t pushed = push(edge.to, sink, std::min(room, edge.room));
    if (pushed == 0) continue;
    edge.room -= pushed;
    edges_[static_cast<size_t>(e ^ 1)].room += pushed;
    return pushed;
  }
  return 0;
}

int64_t MinCut::solve(int source, int sink, bool most_at_source) {
  int64_t flow = 0;
  while (levels(source, sink)) {
    next_.assign(out_.size(), 0);
    while (const int64_t pushed = push(source, sink, kInfinite)) flow += pushed;
  }
  // What the source still reaches is on its side in every minimum cut, what still reaches the sink on the
  // other.
  const int start = most_at_source ? sink : source;
  std::vector<bool> seen(out_.size(), false);
  seen[static_cast<size_t>(start)] = true;
  std::vector<int> queue{start};
  for (size_t i = 0; i < queue.size(); ++i)
    for (int e : out_[static_cast<size_t>(queue[i])]) {
      const int next = edges_[static_cast<size_t>(e)].to;
      const int64_t room = edges_[static_cast<size_t>(most_at_source ? e ^ 1 : e)].room;
      if (seen[static_cast<size_t>(next)] || room == 0) continue;
      seen[static_cast<size_t>(next)] = true;
      queue.push_back(next);
    }
  if (most_at_source) seen.flip();
  at_source_ = std::move(seen);
  return flow;
}

}  // namespace sinter
