#include "plan/steps.h"

#include <algorithm>
#include <chrono>

#include "ir/error.h"
#include "plan/growth.h"
#include "plan/strips.h"
#include "plan/weight_budgets.h"

namespace sinter {

const std::vector<Step>& all_steps() {
  static const std::vector<Step> table = {
      {"near_weights", "Tells layers where all weights of the net stay in the third-level cache.",
       "first: faster algorithms may take more weights then", true,
       [](Graph& g, const StepOptions& o, Decisions& d) { tell_near_weights(g, o.target, d); }},
      {"tune", "Takes the algorithms that --tuning has measured for these layers.",
       "before every step that asks which kernel runs a layer", true,
       [](Graph& g, const StepOptions& o, Decisions& d) { apply_tuning(g, o.tuning, d); }},
      {"store_rows",
       "Gives caches that attention reads all their rows, so that new ones are written in place.",
       "before separate_outputs: a state's output is another Value then", true,
       [](Graph& g, const StepOptions& o, Decisions&) { store_rows(g, o.states); }},
      {"narrow_caches", "Stores caches that attention reads in fewer bytes (--cache).",
       "behind store_rows, which makes them such that are written in place", false,
       [](Graph& g, const StepOptions& o, Decisions&) { narrow_caches(g, o.states, o.cache_type); }},
      {"slide_windows",
       "Lets states that are windows of rows slide in place: new rows are written behind the old ones.",
       "before separate_outputs: a state's output is a part of its input then", true,
       [](Graph& g, const StepOptions& o, Decisions& d) { slide_windows(g, o.states, d); }},
      {"separate_outputs", "Copies outputs that are inputs, constants, views or other outputs.",
       "before the order is chosen: copies are layers", false,
       [](Graph& g, const StepOptions& o, Decisions& d) { separate_outputs(g, d, o.states); }},
      {"schedule", "Orders the nodes so that few bytes are alive at once.",
       "before memory is shared, which depends on the order", true,
       [](Graph& g, const StepOptions&, Decisions&) { schedule(g); }},
      {"small_weights",
       "Stores a model's 16-bit floats as such (but with --fast-weights), and weights without what is only "
       "there to be "
       "read faster (--small-weights).",
       "before share_weights, which asks what weights take at least", true,
       [](Graph& g, const StepOptions& o, Decisions& d) {
         if (o.small_weights || o.half_weights) store_small_weights(g, o.small_weights, d);
       }},
      {"share_weights", "Lets layers take the algorithms that are worth their weights, within the budget.",
       "before the steps that ask which kernel runs a layer", true,
       [](Graph& g, const StepOptions& o, Decisions& d) {
         if (o.most_weights == INT64_MAX) return;
         if (o.larger_budgets) *o.larger_budgets = larger_budgets(g, o.target, d, o.most_weights);
         share_weights(g, o.target, o.most_weights, d);
       }},
      {"read_pieces", "Lets Winograd read a picture's pieces before they are joined or doubled.",
       "before place_concats, which would join them in place", true,
       [](Graph& g, const StepOptions& o, Decisions& d) { read_pieces(g, o.target, d); }},
      {"place_concats", "Lets layers write their channels straight into a Concat's result.",
       "behind schedule: what is written early keeps the result alive", true,
       [](Graph& g, const StepOptions& o, Decisions& d) { place_concats(g, o.target, d); }},
      {"read_planes", "Lets the first convolution read a picture's planes.",
       "behind place_concats: a picture has one reader", false,
       [](Graph& g, const StepOptions& o, Decisions& d) { read_planes(g, o.target, d); }},
      {"make_strips",
       "Runs layers together, a few rows at a time, where what is between them leaves the cache.",
       "behind the steps that decide where layers read and write", true,
       [](Graph& g, const StepOptions& o, Decisions& d) { make_strips(g, o.target, d, o.cache, o.tuning); }},
  };
  return table;
}

namespace {

std::string decisions_text(const Graph& g, const Decisions& decisions) {
  std::string s;
  for (const auto& n : g.nodes)
    if (const std::string what = text(decisions.of(*n)); !what.empty())
      s += fmt::format("  {}: {}\n", label(*n), what);
  return s;
}

}  // namespace

void run_steps(Graph& g, const StepOptions& o, Decisions& decisions, const PassHooks& hooks) {
  const auto& passes = all_passes();
  if (std::any_of(passes.begin(), passes.end(), [&](const Pass& p) { return p.name == hooks.stop_after; }))
    return run_steps(g, o, decisions);  // a plan is made of what the passes have left
  BugContext context;
  for (const Step& step : all_steps()) {
    if (step.can_skip && hooks.skip.count(step.name)) continue;
    context.set(fmt::format("in step {}", step.name));
    const auto start = std::chrono::steady_clock::now();
    step.run(g, o, decisions);
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    if (hooks.verify_each) g.verify();
    if (hooks.time)
      hooks.print(fmt::format("{:24} {:9.2f} ms  {:5} nodes\n", step.name, ms.count(), g.nodes.size()));
    if (std::count(hooks.print_after.begin(), hooks.print_after.end(), step.name))
      hooks.print(
          fmt::format("-- after {}\n{}-- decided\n{}", step.name, text(g), decisions_text(g, decisions)));
  }
}

}  // namespace sinter
