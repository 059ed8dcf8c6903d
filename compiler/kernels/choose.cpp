// The one comparison of costs: of all ways to compute a node, the cheapest that nothing forbids.
//
// Candidates are looked at in the order of their price, modelled cycles times the margin by which they must
// be faster. An error is measured when its candidate's turn comes, and may raise its price; one whose price
// is then beaten by a candidate that has had its turn is done with. So the most that is measured is what was
// modelled as faster than what is taken. Of equal prices the table's order decides, and it alone where
// kernels have no model of their cost.
#include <algorithm>
#include <cmath>

#include "emit/layer.h"

namespace sinter {
namespace {

bool accepts(const Kernel& k, const Node& n, const Context& context) {
  return k.accepts(n, context) && (k.can.reads_apart || !context.decisions.reads_gaps(n));
}

bool goes_before(const Candidate& a, const Candidate& b) {
  return a.tuned != b.tuned ? a.tuned : a.price() < b.price();
}

// What the budget of weights has left the node.
void hold_to_budget(const Decision& d, Candidate& c) {
  if (c.kernel->can.algorithm != Algorithm::kPlain && c.weight_bytes > d.weights.most && c.why_not.empty())
    c.why_not = "its weights have no room in the budget (--max-weights)";
}

// The ways of all kernels that accept the node and have models of them, but of those that stand behind one
// that has none: it is the last.
std::vector<Candidate> all_ways(const Node& n, const Context& context) {
  std::vector<Candidate> all;
  for (const Kernel* k : all_kernels()) {
    if (!accepts(*k, n, context)) continue;
    std::vector<Candidate> ways = k->ways ? k->ways(n, context) : std::vector<Candidate>{};
    const bool is_last = ways.empty() && (!k->ways || k->can.algorithm == Algorithm::kPlain);
    if (is_last) ways.push_back({.cycles = INFINITY});
    for (Candidate& c : ways) {
      c.kernel = k;
      hold_to_budget(context.of(n), c);
      all.push_back(std::move(c));
    }
    if (is_last) break;
  }
  return all;
}

void measure(const Node& n, const Context& context, Candidate& c) {
  if (c.measured || !c.why_not.empty()) return;
  c.kernel->measure(n, context, c);
  c.measured = true;
}

}  // namespace

void Candidate::forbid_error() {
  why_not = fmt::format("its error, {:.1e} of the largest output, is too large", error);
}

Choice choose(const Node& node, const Context& of_target) {
  const Context context = context_of(node, of_target);
  std::vector<Candidate> all = all_ways(node, context);
  std::stable_sort(all.begin(), all.end(), goes_before);
  auto best = all.end();
  for (auto c = all.begin(); c != all.end(); ++c) {
    if (best != all.end() && !goes_before(*c, *best)) break;
    measure(node, context, *c);
    if (c->why_not.empty() && (best == all.end() || goes_before(*c, *best))) best = c;
  }
  if (best == all.end()) return {};
  std::rotate(all.begin(), best, best + 1);
  return {std::move(all)};
}

const Kernel* find_kernel(const Node& node, const Context& of_target) {
  return choose(node, of_target).kernel();
}

std::vector<WeightOffer> weight_offers(const Choice& choice) {
  if (choice.candidates.size() < 2) return {};
  const Candidate& taken = choice.candidates.front();
  if (taken.kernel->can.algorithm == Algorithm::kPlain) return {};
  std::vector<WeightOffer> offers = {{taken.weight_bytes, taken.cycles}};
  const Candidate* plain = nullptr;
  for (const Candidate& c : choice.candidates) {
    if (c.weight_bytes >= taken.weight_bytes || !c.why_not.empty()) continue;
    if (c.kernel->can.algorithm != Algorithm::kPlain)
      offers.push_back({c.weight_bytes, c.cycles});
    else if (!plain)
      plain = &c;
  }
  if (!plain) return {};
  offers.push_back({plain->weight_bytes, plain->cycles});
  return offers;
}

}  // namespace sinter
