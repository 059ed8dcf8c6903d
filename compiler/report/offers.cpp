// Why a layer is computed as it is.
#include "plan/cost.h"
#include "report/report.h"

namespace sinter {
namespace {

std::string figures(const WeightOffer& o) {
  return fmt::format("{:.3f} Mcycles, {} bytes of weights", o.cycles / 1e6, o.bytes);
}

// Why an algorithm that the node's arithmetic allows was not taken.
std::string reason(const Limit& limit, bool weights) {
  if (!limit.allowed) return "not taken: a measurement or a budget has ruled it out";
  if (limit.bytes != INT64_MAX) return "not taken: its scratch has no room in the arena's budget";
  if (weights) return "not taken: its weights have no room in the budget (--max-weights)";
  return "not taken: modelled as slower here, or the layer has no form that it knows";
}

void add_unused(const Node& n, const Decision& d, Algorithm taken, std::vector<Offer>& offers) {
  if (n.freedom.winograd && taken != Algorithm::kWinograd)
    offers.push_back({"winograd", reason(d.winograd, d.winograd.weight_bytes != INT64_MAX)});
  if (n.freedom.strassen && taken != Algorithm::kStrassen)
    offers.push_back({"strassen", reason(d.strassen, false)});
  if (n.freedom.half_error >= 0 && n.freedom.halves == Halves::kNone)
    offers.push_back({"float16", fmt::format("not taken: off by {:.2g} of its largest result (--fp16-error)",
                                             n.freedom.half_error)});
}

}  // namespace

std::vector<Offer> offers_of(const Compiled& c, size_t layer) {
  const Layer& l = c.plan.layers[layer];
  std::vector<Offer> offers;
  if (!l.node->bodies.empty()) return offers;
  const Context context = context_of(*l.node, Context{*c.target, *c.plan.decisions});
  for (size_t k = 0; k < std::max<size_t>(1, l.offers.size()); ++k)
    offers.push_back({l.kernel, k < l.offers.size() ? figures(l.offers[k]) : "", k == 0});
  offers[0].note = offers[0].note.empty() ? "taken" : "taken: " + offers[0].note;
  for (size_t k = 1; k < l.offers.size(); ++k) offers[k].note += ": with less weights";
  add_unused(*l.node, c.plan.decision(layer), l.algorithm, offers);
  bool behind = false;
  for (const Kernel* k : all_kernels()) {
    if (k->name == l.kernel) {
      behind = true;
    } else if (behind && k->accepts(*l.node, context)) {
      offers.push_back({k->name, fmt::format("could: stands behind {} in the table", l.kernel)});
    }
  }
  return offers;
}

}  // namespace sinter
