// The budget of weights: what is packed may take only so many times the bytes that the model has for it.
//
// What makes weights larger is Winograd, whose transformed weights are 1.8 to 7 times the layer's, and
// Strassen's product, whose are 1.75 times, with two levels 3.06 times. Their layers offer what they could do
// with less: a smaller tile, one level, the direct way (Layer::offers). One price of a byte, in cycles, holds
// for the whole net: each layer takes what is cheapest with it, so that the net gives up the least time for
// the bytes that it saves. The price is the least that keeps the budget; Lagrange's multiplier of it.
//
// It is settled twice: before anything is packed, with what the layers offer and the least that all other
// weights can take (the step share_weights); and where packing takes more than that, from what was packed.
//
// With --small-weights, layers also leave out what only pads their vectors. 16-bit floats stay in 16 bits but
// with --fast-weights.
#include <algorithm>
#include <unordered_map>

#include "plan/plan.h"
#include "plan/weight_budgets.h"

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

// A layer that could do with less weights, or several that have the same ones, which are stored once.
struct Saver {
  std::vector<const Node*> nodes;
  std::vector<WeightOffer> offers;  // cycles of all of them
};

// Whether the node's weights are those of a candidate, in all forms that they can have.
bool shares_weights(const Saver& c, const Node& n, const std::vector<WeightOffer>& offers) {
  const auto same = [](const WeightOffer& a, const WeightOffer& b) { return a.bytes == b.bytes; };
  const Node& other = *c.nodes.front();
  return n.inputs.size() > 1 && other.inputs.size() > 1 && n.inputs[1] == other.inputs[1] &&
         std::equal(c.offers.begin(), c.offers.end(), offers.begin(), offers.end(), same);
}

void add_offers(const Node& n, const std::vector<WeightOffer>& offers, std::vector<Saver>& found) {
  const auto shared =
      std::find_if(found.begin(), found.end(), [&](const Saver& c) { return shares_weights(c, n, offers); });
  if (shared == found.end()) return found.push_back({{&n}, offers});
  shared->nodes.push_back(&n);
  for (size_t k = 0; k < offers.size(); ++k) shared->offers[k].cycles += offers[k].cycles;
}

void collect(const Graph& g, const Plan& plan, std::vector<Saver>& found) {
  for (const auto& n : g.nodes)
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      const Layer& l = plan.layers[i];
      if (l.node != n.get()) continue;
      for (size_t b = 0; b < plan.bodies[i].size(); ++b) collect(*n->bodies[b], plan.bodies[i][b], found);
      if (!l.offers.empty()) add_offers(*n, l.offers, found);
    }
}

// What packing makes of a constant at least.
int64_t least_bytes(const Value& v, const Node& user, const Decisions& d) {
  const auto bytes = static_cast<int64_t>(v.data->bytes());
  if (v.type.dtype != DType::kF32) return bytes;
  if (d.of(user).weights.half) return bytes / 4;  // they may be bytes (kernels/products/panel_weights.h)
  return user.freedom.halves == Halves::kComputed ? bytes / 2 : bytes;
}

// The same of nodes whose layers are not written yet. Returns what all other weights take at least.
int64_t collect(const Graph& g, const Target& target, const Decisions& d, std::vector<Saver>& found) {
  std::unordered_map<const Value*, int64_t> constants;
  int64_t sum = 0;
  for (const auto& n : g.nodes) {
    for (const auto& body : n->bodies) sum += collect(*body, target, d, found);
    std::vector<WeightOffer> offers;
    if (n->bodies.empty()) offers = weight_offers(choose(*n, {target, d}));
    const bool chooses = !offers.empty();
    if (chooses) add_offers(*n, offers, found);
    for (size_t i = 0; i < n->inputs.size(); ++i) {
      const Value* v = n->inputs[i];
      if (!v || !v->data || (chooses && i == 1)) continue;
      const int64_t bytes = least_bytes(*v, *n, d);
      if (const auto [at, added] = constants.emplace(v, bytes); !added)
        at->second = std::min(at->second, bytes);
    }
  }
  for (const auto& [v, bytes] : constants) sum += bytes;
  return sum;
}

// The offer that costs least where a byte of weights costs `price` cycles. Of equal ones the first.
size_t cheapest(const std::vector<WeightOffer>& offers, double price) {
  const auto cost = [&](const WeightOffer& o) { return o.cycles + price * static_cast<double>(o.bytes); };
  size_t best = 0;
  for (size_t k = 1; k < offers.size(); ++k)
    if (cost(offers[k]) < cost(offers[best])) best = k;
  return best;
}

int64_t saved_at(const std::vector<Saver>& all, double price) {
  int64_t saved = 0;
  for (const Saver& c : all) saved += c.offers[0].bytes - c.offers[cheapest(c.offers, price)].bytes;
  return saved;
}

// The least price at which the layers save `excess` bytes, or one at which they save all that they can.
double price_for(const std::vector<Saver>& all, int64_t excess) {
  double lo = 0, hi = 1e6;
  for (int i = 0; i < 100; ++i) {
    const double mid = (lo + hi) / 2;
    (saved_at(all, mid) >= excess ? hi : lo) = mid;
  }
  return hi;
}

// Which offer each layer takes, so that all save `excess` bytes: with that price, and then with what is left
// of the budget, where a price is too coarse for it: the offer that saves most time for its bytes, as long as
// one fits.
std::vector<size_t> choose_offers(const std::vector<Saver>& all, int64_t excess) {
  const double price = price_for(all, excess);
  std::vector<size_t> taken;
  taken.reserve(all.size());
  for (const Saver& c : all) taken.push_back(cheapest(c.offers, price));
  for (int64_t left = saved_at(all, price) - excess; left > 0;) {
    double most = 0;
    size_t layer = 0, offer = 0;
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t k = 0; k < all[i].offers.size(); ++k) {
        const WeightOffer &now = all[i].offers[taken[i]], &other = all[i].offers[k];
        const int64_t more = other.bytes - now.bytes;
        if (more > left || other.cycles >= now.cycles) continue;
        const double worth = (now.cycles - other.cycles) / static_cast<double>(std::max<int64_t>(more, 1));
        if (worth > most) most = worth, layer = i, offer = k;
      }
    if (most == 0) break;
    left -= all[layer].offers[offer].bytes - all[layer].offers[taken[layer]].bytes;
    taken[layer] = offer;
  }
  return taken;
}

// Tells a layer to do with the weights of one of its offers.
void take(const Saver& c, size_t k, Decision& d) {
  d.weights.most = c.offers[k].bytes;
  if (k + 1 == c.offers.size()) d.winograd.allowed = d.strassen.allowed = false;
}

}  // namespace

void store_small_weights(const Graph& g, bool short_rows, Decisions& decisions) {
  for (const auto& n : g.nodes) {
    decisions.change(*n).weights.short_rows = short_rows;
    decisions.change(*n).weights.half = true;
    for (const auto& body : n->bodies) store_small_weights(*body, short_rows, decisions);
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

namespace {
bool save(const std::vector<Saver>& all, int64_t excess, Decisions& decisions) {
  if (excess <= 0) return false;
  const std::vector<size_t> taken = choose_offers(all, excess);
  bool shrunk = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (taken[i] == 0) continue;
    for (const Node* n : all[i].nodes) take(all[i], taken[i], decisions.change(*n));
    shrunk = true;
  }
  return shrunk;
}
}  // namespace

bool shrink_weights(const Graph& g, const Plan& plan, int64_t excess, Decisions& decisions) {
  std::vector<Saver> all;
  collect(g, plan, all);
  return save(all, excess, decisions);
}

std::vector<int64_t> larger_budgets(const Graph& g, const Target& target, const Decisions& decisions,
                                    int64_t most) {
  constexpr int64_t kMiB = 1 << 20;
  constexpr double kWorthALook = 1e-3;
  std::vector<Saver> all;
  int64_t fastest = collect(g, target, decisions, all);
  for (const Saver& c : all) fastest += c.offers.front().bytes;
  const auto cycles = [&](int64_t budget) {
    const std::vector<size_t> taken = choose_offers(all, fastest - budget);
    double sum = 0;
    for (size_t i = 0; i < all.size(); ++i) sum += all[i].offers[taken[i]].cycles;
    return sum;
  };
  std::vector<int64_t> budgets;
  double before = most < fastest ? cycles(most) : 0;
  const int64_t first = std::max<int64_t>(1, (fastest - most) / 16 / kMiB) * kMiB;
  for (int64_t more = first; most < fastest; more *= 2) {
    const int64_t budget = std::min(most + more, fastest);
    if (const double then = cycles(budget); then <= (1 - kWorthALook) * before)
      budgets.push_back(budget), before = then;
    if (budget == fastest) break;
  }
  return budgets;
}

void share_weights(const Graph& g, const Target& target, int64_t most, Decisions& decisions) {
  std::vector<Saver> all;
  int64_t bytes = collect(g, target, decisions, all);
  for (const Saver& c : all) bytes += c.offers.front().bytes;
  save(all, bytes - most, decisions);
}

}  // namespace sinter
