// The order of execution: of two candidates, the model's own order and a greedy one, the order with the
// smaller peak of live bytes.
//
// The greedy order always runs the ready node after which the fewest bytes are alive (nodes that free more
// than they make first); ties go to the model's order, so that the result is deterministic.
#include <algorithm>
#include <map>
#include <set>

#include "ops/op.h"
#include "plan/lives.h"
#include "plan/plan.h"

namespace sinter {
namespace {

using Order = std::vector<size_t>;

class Scheduler {
 public:
  explicit Scheduler(Graph& g) : g_(g) {
    for (size_t i = 0; i < g.nodes.size(); ++i) position_[g.nodes[i].get()] = i;
    reads_.resize(g.nodes.size());
    makes_.resize(g.nodes.size());
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      const Node& n = *g.nodes[i];
      collect(n, reads_[i]);
      for (const Value* v : n.outputs)
        if (v && root_of(v) == v) makes_[i].push_back(v);
      for (const Value* v : reads_[i]) ++readers_[v];
    }
  }

  Order own() const {
    Order o(g_.nodes.size());
    for (size_t i = 0; i < o.size(); ++i) o[i] = i;
    return o;
  }

  Order greedy() {
    std::vector<size_t> waits(g_.nodes.size(), 0);
    std::vector<std::vector<size_t>> after(g_.nodes.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      for (const Node* p : producers(*g_.nodes[i])) {
        const size_t k = position_.at(p);
        if (k == i) continue;
        after[k].push_back(i);
        ++waits[i];
      }
    std::set<size_t> ready;
    for (size_t i = 0; i < waits.size(); ++i)
      if (waits[i] == 0) ready.insert(i);
    std::map<const Value*, size_t> left = readers_;
    Order order;
    while (!ready.empty()) {
      size_t best = *ready.begin();
      int64_t best_delta = INT64_MAX;
      for (size_t i : ready) {
        int64_t delta = 0;
        for (const Value* v : makes_[i]) delta += bytes(v);
        for (const Value* v : reads_[i])
          if (left[v] == 1) delta -= bytes(v);
        if (delta < best_delta) best_delta = delta, best = i;
      }
      ready.erase(best);
      order.push_back(best);
      for (const Value* v : reads_[best]) --left[v];
      for (size_t u : after[best])
        if (--waits[u] == 0) ready.insert(u);
    }
    return order;
  }

  int64_t peak(const Order& order) const {
    std::map<const Value*, size_t> left = readers_;
    int64_t live = 0, most = 0;
    for (size_t i : order) {
      for (const Value* v : makes_[i]) live += bytes(v);
      most = std::max(most, live);
      for (const Value* v : reads_[i])
        if (--left[v] == 0) live -= bytes(v);
      for (const Value* v : makes_[i])
        if (!readers_.count(v)) live -= bytes(v);
    }
    return most;
  }

  void apply(const Order& order) {
    std::vector<std::unique_ptr<Node>> nodes;
    for (size_t i : order) nodes.push_back(std::move(g_.nodes[i]));
    g_.nodes = std::move(nodes);
  }

 private:
  // Roots of all that a node and its bodies read, each once.
  void collect(const Node& n, std::vector<const Value*>& out) const {
    for (const Value* v : n.inputs)
      if (v && std::find(out.begin(), out.end(), root_of(v)) == out.end()) out.push_back(root_of(v));
    for (const auto& b : n.bodies)
      for (const auto& inner : b->nodes) collect(*inner, out);
  }
  std::set<const Node*> producers(const Node& n) const {
    std::set<const Node*> p;
    for (const Value* v : n.inputs)
      if (v && v->producer && position_.count(v->producer)) p.insert(v->producer);
    for (const auto& b : n.bodies) {
      for (const auto& inner : b->nodes)
        for (const Node* q : producers(*inner)) p.insert(q);
      for (const Value* v : b->outputs)
        if (v->producer && position_.count(v->producer)) p.insert(v->producer);
    }
    return p;
  }
  int64_t bytes(const Value* v) const { return arena_bytes(g_, v); }

  Graph& g_;
  std::map<const Node*, size_t> position_;
  std::vector<std::vector<const Value*>> reads_, makes_;
  std::map<const Value*, size_t> readers_;
};

}  // namespace

void schedule(Graph& g) {
  for (const auto& n : g.nodes)
    for (const auto& b : n->bodies) schedule(*b);
  Scheduler s(g);
  const Order own = s.own(), greedy = s.greedy();
  if (greedy.size() == own.size() && s.peak(greedy) < s.peak(own)) s.apply(greedy);
}

}  // namespace sinter
