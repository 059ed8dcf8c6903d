// --small-weights: packed weights take at most a tenth more than the model's, where that can be. All layers
// leave out what only pads their vectors, and keep 16-bit floats in 16 bits. What makes weights larger then
// is Winograd, whose transformed weights are 1.8 to 7 times the layer's, and Strassen's product, whose are
// 1.75 times, with two levels 3.06 times. Layers give it up, first the second level and then the rest, those
// first in which a byte of weights saves the fewest multiply-adds: the ones with the smallest pictures or the
// fewest rows.
#include <algorithm>

#include "plan/plan.h"

namespace sinter {

int64_t constant_bytes(const Graph& g) {
  int64_t sum = 0;
  for (const auto& v : g.values)
    if (v->data) sum += static_cast<int64_t>(v->data->bytes());
  for (const auto& n : g.nodes)
    for (const auto& body : n->bodies) sum += constant_bytes(*body);
  return sum;
}

namespace {

struct Candidate {
  const Node* node;
  int64_t more;  // bytes beyond the layer's own weights
  int64_t rows;  // of its result, pixels included
  bool twice;    // Strassen's product of two levels, which may fall back to one
};

int64_t weight_bytes(const Layer& l) {
  int64_t most = 0;  // the bias is another parameter
  for (const Parameter& p : l.parameters)
    if (p.kind == Parameter::Kind::kWeights) most = std::max(most, p.bytes);
  return most;
}

void collect(const Graph& g, const Plan& plan, std::vector<Candidate>& found) {
  for (const auto& n : g.nodes)
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      const Layer& l = plan.layers[i];
      if (l.node != n.get()) continue;
      for (size_t b = 0; b < plan.bodies[i].size(); ++b) collect(*n->bodies[b], plan.bodies[i][b], found);
      if (l.algorithm != Algorithm::kWinograd && l.algorithm != Algorithm::kStrassen) continue;
      const Shape& y = n->outputs[0]->type.shape;
      int64_t rows = 1;
      for (size_t a = 0; a + 1 < y.size(); ++a) rows *= y[a].hi();
      const auto own = static_cast<int64_t>(n->inputs[1]->data->bytes());
      // One level has 7 / 4 of the layer's weights, two have 49 / 16.
      const bool twice = l.algorithm == Algorithm::kStrassen && plan.decisions->of(*n).strassen.levels == 2 &&
                         weight_bytes(l) > own * 5 / 2;
      found.push_back({n.get(), weight_bytes(l) - (twice ? own * 7 / 4 : own), rows, twice});
    }
}

}  // namespace

void store_small_weights(const Graph& g, Decisions& decisions) {
  for (const auto& n : g.nodes) {
    decisions.change(*n).weights.short_rows = true;
    decisions.change(*n).weights.half = true;
    for (const auto& body : n->bodies) store_small_weights(*body, decisions);
  }
}

bool drop_half_weights(const Graph& g, const Plan& plan, Decisions& decisions) {
  const int64_t limit = arena_limit(plan);
  if (plan.arena_bytes <= limit) return false;
  bool dropped = false;
  for (const auto& n : g.nodes)
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      const Layer& l = plan.layers[i];
      if (l.node != n.get() || !decisions.of(*n).weights.half) continue;
      const bool widens = std::any_of(l.parameters.begin(), l.parameters.end(), [](const Parameter& p) {
        return p.kind == Parameter::Kind::kScratch && p.name == "widened";
      });
      int64_t scratch = 0;
      for (const Parameter& p : l.parameters)
        if (p.kind == Parameter::Kind::kScratch) scratch += p.bytes;
      if (!widens || plan.live_at[i] + scratch <= limit) continue;
      decisions.change(*n).weights.half = false;
      dropped = true;
    }
  return dropped;
}

bool shrink_weights(const Graph& g, const Plan& plan, int64_t excess, Decisions& decisions) {
  if (excess <= 0) return false;
  std::vector<Candidate> found;
  collect(g, plan, found);
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return a.twice != b.twice ? a.twice : a.rows < b.rows;
  });
  for (const Candidate& c : found) {
    if (excess <= 0) break;
    Decision& d = decisions.change(*c.node);
    if (c.twice)
      d.strassen.levels = 1;
    else
      d.winograd.allowed = d.strassen.allowed = false;
    excess -= c.more;
  }
  return !found.empty();
}

}  // namespace sinter
