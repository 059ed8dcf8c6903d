#include "report/verified.h"

#include <algorithm>
#include <cmath>

namespace sinter {
namespace {

using nlohmann::ordered_json;

constexpr double kMostRatio = 1e9;  // JSON has no infinity

}  // namespace

void VerifiedReport::begin(const Compiled& c, const Tolerance& tolerance) {
  if (!model_.is_null()) return;
  model_ = report_of(c);
  tolerance_ = tolerance;
}

VerifiedReport::Found VerifiedReport::found(const std::string& name, const std::string& whose,
                                            const Difference& d, const std::vector<int64_t>& shape) {
  const double ratio = d.shape.empty() && d.ratio < kMostRatio ? d.ratio : kMostRatio;
  return {name, whose, text(d, shape), ratio, d.ok()};
}

void VerifiedReport::add_layer(const std::string& function, const std::string& value, const Difference& d,
                               const std::vector<int64_t>& shape) {
  const Found f = found(value, "", d, shape);
  const auto [at, fresh] = layers_.try_emplace(function, f);
  if (!fresh && f.ratio > at->second.ratio) at->second = f;
}

void VerifiedReport::add_output(const std::string& name, const std::string& whose, const Difference& d,
                                const std::vector<int64_t>& shape) {
  const Found f = found(name, whose, d, shape);
  const auto at = std::find_if(outputs_.begin(), outputs_.end(),
                               [&](const Found& o) { return o.name == name && o.whose == whose; });
  if (at == outputs_.end())
    outputs_.push_back(f);
  else if (f.ratio > at->ratio)
    *at = f;
}

ordered_json VerifiedReport::report() const {
  ordered_json j = model_;
  j["verified"] = {{"cases", cases_}, {"rtol", tolerance_.rtol}, {"atol", tolerance_.atol}};
  j["verified"]["outputs"] = ordered_json::array();
  for (const Found& o : outputs_)
    j["verified"]["outputs"].push_back(
        {{"name", o.name}, {"against", o.whose}, {"ok", o.ok}, {"ratio", o.ratio}, {"text", o.text}});
  for (auto& l : j["layers"])
    if (const auto at = layers_.find(l["function"].get<std::string>()); at != layers_.end()) {
      const Found& f = at->second;
      l["verified"] = {{"value", f.name}, {"ok", f.ok}, {"ratio", f.ratio}, {"text", f.text}};
    }
  return j;
}

}  // namespace sinter
