// What would help: for each change that a user can make, the modelled time that it would save.
#include <algorithm>

#include "plan/cost.h"
#include "report/report.h"

namespace sinter {
namespace {

struct Change {
  double cycles;  // saved
  std::string text;
};

class Adviser {
 public:
  Adviser(const Compiled& c, const std::vector<LayerCost>& costs, const std::vector<WeightPrice>& prices)
      : c_(c), costs_(costs), prices_(prices) {
    for (const LayerCost& l : costs) all_ += l.cycles;
  }

  std::vector<std::string> changes() {
    say_halves();
    say_bytes();
    say_core();
    say_weights();
    say_loops();
    say_threads();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Change& a, const Change& b) { return a.cycles > b.cycles; });
    std::vector<std::string> texts;
    for (const Change& f : found_)
      if (texts.size() < 3) texts.push_back(f.text);
    return texts;
  }

 private:
  static constexpr double kWorthSaying = 0.03;  // of the net's time

  // What a change saves; `text` has the place for it.
  void add(double cycles, const std::string& text) {
    if (cycles < kWorthSaying * all_) return;
    found_.push_back({cycles, fmt::format("{} (modelled: {:.0f} % less time)", text, 100 * cycles / all_)});
  }

  // The cycles of layers that compute floats, and are bound by what smaller elements would cut.
  double float_cycles() const {
    double sum = 0;
    for (size_t i = 0; i < costs_.size(); ++i) {
      const Layer& l = c_.plan.layers[i];
      const Value* out = l.node->outputs.empty() ? nullptr : l.node->outputs[0];
      const bool floats =
          out && out->type.dtype == DType::kF32 && l.node->freedom.halves != Halves::kComputed;
      if (floats && l.work != Work::kLoops) sum += costs_[i].cycles - costs_[i].calls;
    }
    return sum;
  }

  void say_halves() {
    constexpr double kSaved = 0.45;  // of a layer's time, as the bench's nets go
    if (!c_.target->features.halves) return;
    add(kSaved * float_cycles(), "--fp16: layers compute and store float16 where their errors allow it");
  }
  void say_bytes() {
    constexpr double kSaved = 0.55;
    double products = 0;
    for (size_t i = 0; i < costs_.size(); ++i) {
      const Value* w = c_.plan.layers[i].node->input(1);
      if (c_.plan.layers[i].work == Work::kProducts && w && w->data && is_float(w->type.dtype))
        products += costs_[i].cycles;
    }
    if (c_.target->features.dot_products)
      add(kSaved * products, "sinter quantize: products of bytes, four of them an instruction");
  }
  void say_core() {
    if (std::string_view(c_.target->name) != "aarch64" && std::string_view(c_.target->name) != "sse42")
      return;
    found_.push_back(
        {all_, fmt::format("--target: {} is any processor of its kind; a board's own core has more "
                           "instructions and its own order of them (sinter targets)",
                           c_.target->name)});
  }

  void say_weights() {
    if (prices_.empty()) return;
    const WeightPrice& all = prices_.back();
    add(all.cycles,
        fmt::format("--max-weights or --fast-weights: faster algorithms, whose weights take {:.1f} "
                    "MiB more flash",
                    static_cast<double>(all.bytes) / (1 << 20)));
  }

  void say_loops() {
    for (size_t i = 0; i < costs_.size(); ++i)
      if (const Layer& l = c_.plan.layers[i]; l.work == Work::kLoops && l.node->bodies.empty())
        add(0.7 * costs_[i].cycles,
            fmt::format(
                "{} is written as loops over single elements ({}): another type or layout of {} would have "
                "a kernel of its own",
                l.function, l.kernel, l.node->sources.empty() ? l.function : l.node->sources[0]));
  }
  void say_threads() {
    double parts = 0;
    for (size_t i = 0; i < costs_.size(); ++i)
      if (costs_[i].bound() == Bound::kArithmetic && c_.plan.layers[i].work != Work::kLoops)
        parts += costs_[i].arithmetic;
    if (c_.options.threads == 1 && parts > 2e6)  // less is over before threads are awake
      add(0.42 * std::min(parts, all_), "--threads 2, where the board has a second core to give");
  }

  const Compiled& c_;
  const std::vector<LayerCost>& costs_;
  const std::vector<WeightPrice>& prices_;
  double all_ = 0;
  std::vector<Change> found_;
};

}  // namespace

std::vector<std::string> advice(const Compiled& c, const std::vector<LayerCost>& costs,
                                const std::vector<WeightPrice>& prices) {
  return Adviser(c, costs, prices).changes();
}

}  // namespace sinter
