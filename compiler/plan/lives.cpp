#include "plan/lives.h"

#include <algorithm>

#include "plan/views.h"

namespace sinter {

int64_t arena_bytes(const Graph& g, const Value* v) {
  if (v->data || !v->producer || g.is_output(v)) return 0;
  const int64_t count = product(v->type.shape).hi();
  constexpr int64_t kMost = int64_t{1} << 50;
  return count > kMost ? 0 : count * static_cast<int64_t>(size_of(v->type.dtype));
}

Lives::Lives(const Graph& g, const Decisions& decisions) : nodes_(g.nodes.size()) {
  const Views views(g, decisions);
  for (size_t i = 0; i < nodes_; ++i) {
    const Node& n = *g.nodes[i];
    if (views.needs_no_layer(&n)) continue;
    for (const auto* values : {&n.inputs, &n.outputs})
      for (const Value* v : *values) {
        if (!v) continue;
        const Value* host = views.host(v);
        if (host != v) host_of_[v] = host;
        lives_.try_emplace(host, Life{i, i, arena_bytes(g, host)}).first->second.last = i;
      }
  }
}

const Value* Lives::host_of(const Value* v) const {
  for (auto it = host_of_.find(v); it != host_of_.end(); it = host_of_.find(v)) v = it->second;
  return v;
}

void Lives::join(const Value* host, const std::vector<const Value*>& pieces) {
  Life& whole = lives_.at(host_of(host));
  for (const Value* piece : pieces) {
    const auto life = lives_.find(host_of(piece));
    if (life == lives_.end() || life->first == host_of(host)) continue;
    whole.first = std::min(whole.first, life->second.first);
    whole.last = std::max(whole.last, life->second.last);
    host_of_[life->first] = host_of(host);
    lives_.erase(life);
  }
}

int64_t Lives::peak() const {
  std::vector<int64_t> change(nodes_ + 1, 0);
  for (const auto& [v, life] : lives_) {
    change[life.first] += life.bytes;
    change[life.last + 1] -= life.bytes;
  }
  int64_t alive = 0, most = 0;
  for (const int64_t c : change) most = std::max(most, alive += c);
  return most;
}

}  // namespace sinter
