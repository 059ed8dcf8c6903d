// What verify found, on the page of the model: each layer's error as a share of its tolerance.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/difference.h"
#include "report/report.h"

namespace sinter {

class VerifiedReport {
 public:
  // The model as it was built. Of several that differ in extents, the first is drawn, and layers of the same
  // function are one.
  void begin(const Compiled&, const Tolerance&);
  void add_case(const std::string& name) { cases_.push_back(name); }
  // What a layer wrote, compared. `shape`: of what was expected.
  void add_layer(const std::string& function, const std::string& value, const Difference&,
                 const std::vector<int64_t>& shape);
  // An output against the model's meaning, or what was stored.
  void add_output(const std::string& name, const std::string& whose, const Difference&,
                  const std::vector<int64_t>& shape);

  // What sinter inspect knows of the model, `verified` {cases, rtol, atol, outputs}, and the same beside each
  // layer that was compared: {ratio, ok, value, text}, the worst of all cases.
  nlohmann::ordered_json report() const;

 private:
  struct Found {
    std::string name, whose, text;
    double ratio = 0;
    bool ok = true;
  };
  static Found found(const std::string& name, const std::string& whose, const Difference&,
                     const std::vector<int64_t>& shape);

  nlohmann::ordered_json model_;
  Tolerance tolerance_;
  std::vector<std::string> cases_;
  std::map<std::string, Found> layers_;  // by function
  std::vector<Found> outputs_;
};

}  // namespace sinter
