// Steps: what is settled between the passes and the plan, once the target is known, as a table like that of
// the passes.
//
// A step changes the Decisions of the graph's nodes; some also put copies into the graph or change the order
// of its nodes. None changes what it computes. Then make_plan may be called.
#pragma once
#include <vector>

#include "passes/pass.h"
#include "plan/state.h"
#include "plan/tuning.h"

namespace sinter {

struct StepOptions {
  const Target& target;
  const Tuning& tuning;  // decides where it knows the layers
  int64_t cache = 0;     // bytes that a strip's buffers may take; 0: the target's second level
  bool small_weights = false;
  bool half_weights = false;         // 16-bit floats stay so
  int64_t most_weights = INT64_MAX;  // bytes: their budget
  StateLinks states{};
  std::string cache_type = "f32";                  // what caches among them are stored as
  std::vector<int64_t>* larger_budgets = nullptr;  // takes those above `most_weights` that are worth a look
};

struct Step {
  const char* name;
  const char* what;      // one sentence, for `sinter passes`
  const char* why_here;  // why at this place of the table
  bool can_skip;         // the plan is right without it
  void (*run)(Graph&, const StepOptions&, Decisions&);
};

const std::vector<Step>& all_steps();  // in the order they run

// Runs the table. `hooks` are those of the passes: steps are named like these, printed with what is decided,
// timed, left out where they can be; none runs where `stop_after` names a pass.
void run_steps(Graph&, const StepOptions&, Decisions&, const PassHooks& hooks = {});

}  // namespace sinter
