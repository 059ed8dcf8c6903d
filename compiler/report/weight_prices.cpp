// What more flash for weights would buy.
#include "emit/bundle.h"
#include "plan/cost.h"
#include "report/report.h"

namespace sinter {
namespace {

double cycles_of(const Compiled& c) {
  double sum = 0;
  for (const LayerCost& l : layer_costs(c.plan, *c.target)) sum += l.cycles;
  return sum;
}

// A size as --max-weights takes it, rounded up.
std::string size_option(int64_t bytes) {
  constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;
  return bytes < 10 * kMiB ? fmt::format("{}K", (bytes + kKiB - 1) / kKiB)
                           : fmt::format("{}M", (bytes + kMiB - 1) / kMiB);
}

}  // namespace

std::vector<WeightPrice> weight_prices(const Compiled& c, const ModelOptions& o,
                                       const ImportOptions& import) {
  constexpr double kWorthSaying = 1e-3;
  const double now = cycles_of(c);
  double saved = 0;
  std::vector<WeightPrice> prices;
  for (const int64_t most : c.larger_budgets) {
    ModelOptions larger = o;
    larger.max_weights = std::to_string(most);
    larger.small_weights = false;
    larger.price_weights = false;
    larger.say = [](const std::string&) {};  // it was said of the model already
    const Compiled then = compile_part(larger, import);
    const WeightPrice p{most, weights_bytes(then.weights) - weights_bytes(c.weights), now - cycles_of(then)};
    if (p.cycles - saved < kWorthSaying * now) continue;
    saved = p.cycles;
    prices.push_back(p);
  }
  return prices;
}

std::string text(const WeightPrice& p, const Target& target, double all_cycles) {
  return fmt::format("--max-weights {}: {:.2f} MiB more, {:.3f} ms less ({:.1f} %)", size_option(p.most),
                     static_cast<double>(p.bytes) / (1 << 20), p.cycles / target.speed.mhz / 1e3,
                     100 * p.cycles / all_cycles);
}

}  // namespace sinter
