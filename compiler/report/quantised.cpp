#include "report/quantised.h"

#include <algorithm>

#include "ir/error.h"

namespace sinter {
namespace {

using nlohmann::ordered_json;

// The layer that computes an ONNX node; null where none does.
ordered_json* layer_of(ordered_json& report, const std::string& node) {
  for (auto& l : report["layers"])
    for (const auto& n : l["nodes"])
      if (n.get<std::string>() == node) return &l;
  return nullptr;
}

}  // namespace

ordered_json quantised_report(const Compiled& floats, const Compiled& written, const ordered_json& measured) {
  ordered_json page = report_of(written), before = report_of(floats);
  double us = 0;
  for (const auto& l : before["layers"]) us += l["modelled"]["us"].get<double>();
  page["quantised"] = measured;
  page["quantised"].erase("layers");
  page["quantised"]["float_us"] = us;
  page["quantised"]["float_weights_bytes"] = before["weights_bytes"];
  if (!measured.contains("layers") || !measured["layers"].is_array()) return page;
  for (const auto& m : measured["layers"]) {
    const std::string node =
        sinter::quoted(m["node"].get<std::string>()) + " (" + m["op"].get<std::string>() + ")";
    ordered_json* const layer = layer_of(page, node);
    if (!layer) continue;
    ordered_json q = m;
    if (const ordered_json* old = layer_of(before, node)) q["float_us"] = (*old)["modelled"]["us"];
    // Of several in one layer, the one that loses most.
    if (!layer->contains("quantised") ||
        (*layer)["quantised"]["snr_alone_db"].get<double>() > m["snr_alone_db"].get<double>())
      (*layer)["quantised"] = q;
  }
  return page;
}

}  // namespace sinter
