// Why a layer is computed as it is.
#include <algorithm>
#include <cmath>

#include "plan/cost.h"
#include "report/report.h"

namespace sinter {
namespace {

Offer offer(const Candidate& c) {
  Offer o{c.kernel->name, c.text};
  if (std::isfinite(c.cycles)) o.cycles = c.cycles, o.weight_bytes = c.weight_bytes;
  if (c.measured && c.error > 0) o.error = c.error;
  o.note = c.why_not.empty() ? "" : "not taken: " + c.why_not;
  return o;
}

// Why another was taken, where nothing forbids this one.
std::string reason(const Candidate& c, const Candidate& taken) {
  if (taken.tuned) return "not taken: a measurement has chosen another (--tuning)";
  if (!std::isfinite(c.cycles))
    return fmt::format("could: stands behind {} in the table", taken.kernel->name);
  if (c.cycles >= taken.cycles) return "not taken: modelled as slower";
  if (c.margin > 1)
    return fmt::format("not taken: less than {:.0f} % faster, and errs more or has more weights",
                       (c.margin - 1) * 100);
  return fmt::format("not taken: no faster than {}, which must be beaten", taken.kernel->name);
}

// Algorithms that the node's arithmetic allows, none of whose ways was compared.
void add_absent(const Node& n, const Decision& d, const Choice& choice, std::vector<Offer>& offers) {
  const auto compared = [&](Algorithm a) {
    return std::any_of(choice.candidates.begin(), choice.candidates.end(),
                       [&](const Candidate& c) { return c.kernel->can.algorithm == a; });
  };
  const auto add = [&](bool free, Algorithm a, const char* name, const Limit& limit) {
    if (!free || compared(a)) return;
    offers.push_back({name, "",
                      limit.allowed ? "not taken: the layer has no form that it knows here"
                                    : "not taken: a measurement or a budget has ruled it out"});
  };
  add(n.freedom.winograd > 0, Algorithm::kWinograd, "winograd", d.winograd);
  add(n.freedom.strassen, Algorithm::kStrassen, "strassen", d.strassen);
  add(n.freedom.tile_matrices, Algorithm::kTileMatrices, "tile_matrices", d.tile_matrices);
  if (n.freedom.half_error >= 0 && n.freedom.halves == Halves::kNone)
    offers.push_back(
        {"float16", "",
         fmt::format("not taken: off by {:.2g} of its largest result (--fp16-error)", n.freedom.half_error)});
}

}  // namespace

std::string text(const Offer& o) {
  std::string s = o.kernel + (o.way.empty() ? "" : ", " + o.way) + ": " + o.note;
  if (o.cycles) s += fmt::format("; {:.3f} Mcycles", *o.cycles / 1e6);
  if (o.weight_bytes.value_or(0) > 0) s += fmt::format(", {} bytes of weights", *o.weight_bytes);
  if (o.error) s += fmt::format(", error {:.1e}", *o.error);
  return s;
}

std::vector<Offer> offers_of(const Compiled& c, size_t layer, const LayerCost& cost) {
  const Layer& l = c.plan.layers[layer];
  if (!l.node->bodies.empty()) return {};
  const Context context = context_of(*l.node, Context{*c.target, *c.plan.decisions});
  const Choice choice = choose(*l.node, context);
  const Candidate& taken = choice.candidates.front();
  std::vector<Offer> offers;
  for (const Candidate& way : choice.candidates) {
    offers.push_back(offer(way));
    if (offers.back().note.empty()) offers.back().note = reason(way, taken);
  }
  offers[0].taken = true;
  offers[0].note = "taken";
  if (!offers[0].cycles) offers[0].cycles = cost.cycles, offers[0].weight_bytes = cost.weight_bytes;
  add_absent(*l.node, c.plan.decision(layer), choice, offers);
  for (const Kernel* k : all_kernels()) {
    const bool listed =
        std::any_of(offers.begin(), offers.end(), [&](const Offer& o) { return o.kernel == k->name; });
    if (!listed && k->accepts(*l.node, context))
      offers.push_back({k->name, "", fmt::format("could: stands behind {} in the table", l.kernel)});
  }
  return offers;
}

}  // namespace sinter
