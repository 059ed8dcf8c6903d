// What sinter knows of a compiled model, for people: NAME.map with what each layer costs, which kernels
// offered to compute it, where memory goes and what would help; as JSON, and as a page to look at.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "driver/compile.h"

namespace sinter {

struct LayerCost;  // plan/cost.h

// A way in which a layer could be computed.
struct Offer {
  std::string kernel;
  std::string way{};  // how it would cut the layer, where it has several: "4 x 4 outputs, groups of 28 tiles"
  std::string note{};  // "taken", or why it is not
  bool taken = false;
  // As modelled and measured; none of kernels that the table's order decides between, nor errors of ways that
  // were too slow to be measured.
  std::optional<double> cycles{}, error{};
  std::optional<int64_t> weight_bytes{};
};
// The ways to compute a layer of the plan that costs `taken`: the one that is taken, those it was compared
// with, then what its arithmetic would have allowed and why that was not done. Empty for If, Loop and Scan.
std::vector<Offer> offers_of(const Compiled&, size_t layer, const LayerCost& taken);
// "conv_winograd, 4 x 4 outputs: taken; 1.240 Mcycles, 36864 bytes of weights, error 1.2e-06"
std::string text(const Offer&);

// What a larger budget of weights would buy, as planned with it.
struct WeightPrice {
  int64_t most = 0;   // --max-weights
  int64_t bytes = 0;  // that the weights take more than now
  double cycles = 0;  // of the net that are saved
};
// For each further megabyte or several, as long as they save time, of a model compiled with price_weights.
// Plans the model again for each.
std::vector<WeightPrice> weight_prices(const Compiled&, const ModelOptions&, const ImportOptions&);
// A line for people: "--max-weights 71M: 4.74 MiB more, 0.722 ms less (1.3 %)".
std::string text(const WeightPrice&, const Target&, double all_cycles);

// The changes that would save most of the modelled time, at most three, the first the one that saves most.
std::vector<std::string> advice(const Compiled&, const std::vector<LayerCost>&,
                                const std::vector<WeightPrice>& prices);

// A rectangle of the memory plan: bytes of the arena over layers.
struct Block {
  std::string label;
  size_t first, last;
  int64_t offset, bytes;
  bool scratch;
};
std::vector<Block> memory_blocks(const Plan&);

// NAME.map and, beside each layer, `modelled` {cycles, us, bound, weight_bytes, tensor_bytes} and `offers`;
// `machine`, `blocks`, `advice`, `weight_prices` [{max_weights, more_bytes, us_saved, text}]. Microseconds
// are those of the usual board's clock.
nlohmann::ordered_json report_of(const Compiled&, const std::vector<WeightPrice>& prices = {});
std::string report_text(const nlohmann::ordered_json& report);
// The same drawn: one HTML file that needs no network. Where the report has `verified` (report/verified.h) or
// `quantised` (report/quantised.h), the layers' colours are by that, and they are bars of their own.
std::string report_page(const nlohmann::ordered_json& report);
// Refuses where sinter was built without the libraries that draw pages.
void require_page_libraries();

// The parts of the page, which travel inside the compiler (cmake/embed_report.cmake): "page.html",
// "page.css", "page.js", "libraries"; the last is empty where they were missing.
const std::string& report_file(const std::string& name);

}  // namespace sinter
