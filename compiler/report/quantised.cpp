#include "report/quantised.h"

#include <algorithm>

#include "ir/error.h"
#include "plan/cost.h"

namespace sinter {
namespace {

using nlohmann::ordered_json;

double rounded(double us) { return std::round(us * 1000) / 1000; }

// An ONNX node as layers name their sources.
std::string source_of(const ordered_json& row) {
  return sinter::quoted(row["node"].get<std::string>()) + " (" + row["op"].get<std::string>() + ")";
}

bool is_product(const ordered_json& row) { return row.contains("weight_bytes"); }

// The modelled time of a plan's layers, under `key` of the rows that they compute. Returns what belongs to
// none.
double share_costs(const Compiled& c, const char* key, ordered_json& rows) {
  const std::vector<LayerCost> costs = layer_costs(c.plan, *c.target);
  double others = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    const double us = costs[i].cycles / c.target->speed.mhz;
    const std::vector<std::string>& sources = c.plan.layers[i].node->sources;
    std::vector<ordered_json*> inside;
    for (ordered_json& row : rows)
      if (std::count(sources.begin(), sources.end(), source_of(row))) inside.push_back(&row);
    if (inside.empty()) {
      others += us;
      continue;
    }
    const auto product = std::find_if(inside.begin(), inside.end(), [](auto* r) { return is_product(*r); });
    ordered_json& owner = product == inside.end() ? *inside[0] : **product;
    owner[key] = rounded(owner.value(key, 0.0) + us);
    for (ordered_json* row : inside)
      if (row != &owner) (*row)["in"] = owner["node"];
  }
  return others;
}

double time_of(const Compiled& c) {
  double cycles = 0;
  for (const LayerCost& l : layer_costs(c.plan, *c.target)) cycles += l.cycles;
  return cycles / c.target->speed.mhz;
}

// The layer that computes an ONNX node; null where none does.
ordered_json* layer_of(ordered_json& report, const std::string& node) {
  for (auto& l : report["layers"])
    for (const auto& n : l["nodes"])
      if (n.get<std::string>() == node) return &l;
  return nullptr;
}

}  // namespace

void add_costs(const Compiled& floats, const Compiled& written, ordered_json& measured) {
  ordered_json others, &modelled = measured["modelled"];
  others["float_us"] = rounded(share_costs(floats, "float_us", measured["layers"]));
  others["us"] = rounded(share_costs(written, "us", measured["layers"]));
  modelled = {{"target", written.target->name},
              {"mhz", written.target->speed.mhz},
              {"float_us", rounded(time_of(floats))},
              {"us", rounded(time_of(written))},
              {"others", others}};
}

ordered_json quantised_report(const Compiled& floats, const Compiled& written, const ordered_json& measured) {
  ordered_json page = report_of(written), before = report_of(floats);
  page["quantised"] = measured;
  page["quantised"].erase("layers");
  page["quantised"]["float_us"] = time_of(floats);
  page["quantised"]["float_weights_bytes"] = before["weights_bytes"];
  if (!measured.contains("layers") || !measured["layers"].is_array()) return page;
  for (const auto& m : measured["layers"]) {
    ordered_json* const layer = layer_of(page, source_of(m));
    if (!layer) continue;
    ordered_json q = m;
    const ordered_json known = layer->contains("quantised") ? (*layer)["quantised"] : ordered_json(nullptr);
    // Of several in one layer, the one that loses most.
    if (!known.is_null() && known["snr_alone_db"].get<double>() <= m["snr_alone_db"].get<double>()) q = known;
    const double us = (known.is_null() ? 0.0 : known.value("float_us", 0.0)) + m.value("float_us", 0.0);
    if (us > 0) q["float_us"] = us;
    (*layer)["quantised"] = q;
  }
  return page;
}

}  // namespace sinter
