#include "report/report.h"

#include <map>
#include <nlohmann/json.hpp>

#include "ir/error.h"
#include "plan/cost.h"

namespace sinter {
namespace {

using nlohmann::ordered_json;

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string escaped(const std::string& s) {
  std::string out;
  for (const char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'' || u < 0x20 || u >= 0x7f)
      out += fmt::format("&#{};", u < 0x20 || u >= 0x7f ? 0xfffd : static_cast<int>(u));
    else
      out += c;
  }
  return out;
}

// The page with `@NAME@` where a part stands; parts are not looked into for others.
std::string filled(const std::string& page, const std::map<std::string, std::string>& parts) {
  std::string out;
  for (size_t at = 0; at < page.size();) {
    const size_t begin = page.find('@', at);
    if (begin == std::string::npos) return out + page.substr(at);
    const size_t end = page.find('@', begin + 1);
    const auto part =
        end == std::string::npos ? parts.end() : parts.find(page.substr(begin + 1, end - begin - 1));
    out += page.substr(at, begin - at);
    if (part == parts.end()) {
      out += '@';
      at = begin + 1;
    } else {
      out += part->second;
      at = end + 1;
    }
  }
  return out;
}

ordered_json cost_json(const LayerCost& cost, const CoreSpeed& m) {
  return {{"cycles", std::round(cost.cycles)},
          {"us", std::round(cost.cycles / m.mhz * 1000) / 1000},
          {"bound", text(cost.bound())},
          {"weight_bytes", cost.weight_bytes},
          {"tensor_bytes", cost.tensor_bytes}};
}

ordered_json offers_json(const std::vector<Offer>& offers) {
  ordered_json j = ordered_json::array();
  for (const Offer& o : offers) {
    j.push_back({{"kernel", o.kernel}, {"way", o.way}, {"taken", o.taken}, {"note", o.note}});
    if (o.cycles) j.back()["cycles"] = std::round(*o.cycles);
    if (o.weight_bytes) j.back()["weight_bytes"] = *o.weight_bytes;
    if (o.error) j.back()["error"] = *o.error;
    j.back()["text"] = text(o);
  }
  return j;
}

}  // namespace

std::vector<Block> memory_blocks(const Plan& plan) {
  std::vector<Block> blocks;
  std::map<const Value*, size_t> by_value;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const Layer& l = plan.layers[i];
    size_t scratch = 0;
    for (const Parameter& p : l.parameters) {
      if (p.kind == Parameter::Kind::kScratch) {
        blocks.push_back({l.function + ": " + p.name, i, i, plan.scratch[i][scratch++], p.bytes, true});
        continue;
      }
      if (p.kind != Parameter::Kind::kInput && p.kind != Parameter::Kind::kOutput) continue;
      const Value* v = root_of(p.value);
      const auto place = plan.places.find(v);
      if (place == plan.places.end() || place->second.kind != Place::Kind::kArena) continue;
      const auto [it, fresh] = by_value.try_emplace(v, blocks.size());
      if (fresh)
        blocks.push_back({sinter::quoted(v->name) + " " + text(v->type), i, i, place->second.offset,
                          place->second.bytes, false});
      else
        blocks[it->second].last = i;
    }
  }
  return blocks;
}

ordered_json report_of(const Compiled& c, const std::vector<WeightPrice>& prices) {
  ordered_json j = ordered_json::parse(c.files.at(c.options.name + ".map"));
  const CoreSpeed& m = c.target->speed;
  const std::vector<LayerCost> costs = layer_costs(c.plan, *c.target);
  for (size_t i = 0; i < costs.size(); ++i) {
    j["layers"][i]["modelled"] = cost_json(costs[i], m);
    j["layers"][i]["offers"] = offers_json(offers_of(c, i, costs[i]));
  }
  j["machine"] = {{"mhz", m.mhz},
                  {"gflops", 2 * m.fma * c.target->lanes * m.mhz / 1000},
                  {"gbytes", m.memory_bytes * m.mhz / 1000}};
  j["advice"] = advice(c, costs, prices);
  j["weight_prices"] = ordered_json::array();
  double all = 0;
  for (const LayerCost& l : costs) all += l.cycles;
  for (const WeightPrice& p : prices)
    j["weight_prices"].push_back({{"max_weights", p.most},
                                  {"more_bytes", p.bytes},
                                  {"us_saved", std::round(p.cycles / c.target->speed.mhz * 1000) / 1000},
                                  {"text", text(p, *c.target, all)}});
  j["blocks"] = ordered_json::array();
  for (const Block& b : memory_blocks(c.plan))
    j["blocks"].push_back({{"label", b.label},
                           {"first", b.first},
                           {"last", b.last},
                           {"offset", b.offset},
                           {"bytes", b.bytes},
                           {"scratch", b.scratch}});
  return j;
}

std::string report_text(const ordered_json& report) {
  return report.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void require_page_libraries() {
  if (report_file("libraries").empty())
    refuse(
        "this sinter was built without the libraries that draw a page: d3 and dagre (Debian: libjs-d3, "
        "node-dagre-layout); inspect --json writes the same as numbers");
}

std::string report_page(const ordered_json& report) {
  require_page_libraries();
  return filled(report_file("page.html"), {{"TITLE", escaped(report["name"].get<std::string>())},
                                           {"STYLE", report_file("page.css")},
                                           {"SCRIPT", report_file("page.js")},
                                           {"LIBRARIES", report_file("libraries")},
                                           // No text of the model's can end the element that it stands in.
                                           {"DATA", replaced(report_text(report), "<", "\\u003c")}});
}

}  // namespace sinter
