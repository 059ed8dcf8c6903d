// What a layer costs, as modelled: cycles of one core, and what it waits for.
//
// The model is coarse on purpose. It adds up a layer's arithmetic (operations over what the units do a cycle,
// by Kernel's `work`), and the bytes that stream in beside it; where an algorithm has a model of its own
// (Layer::offers), that one's figure is taken. It knows the figures of targets/core_speed.h and nothing of
// instructions. docs/performance.md says how far it is from a simulator that does.
#pragma once
#include "plan/plan.h"
#include "targets/target.h"

namespace sinter {

enum class Bound { kArithmetic, kWeights, kTensors, kCalls };
const char* text(Bound);  // "arithmetic", "weights", "tensors", "calls"

struct LayerCost {
  double cycles = 0;
  // What each would take alone.
  double arithmetic = 0, weights = 0, tensors = 0, calls = 0;
  int64_t weight_bytes = 0, tensor_bytes = 0;  // that stream in or out, at the bounds
  Bound bound() const;
};

// Of each layer at the bounds of its extents, on one thread. A Loop's or Scan's is that of its body, so many
// times as is known.
std::vector<LayerCost> layer_costs(const Plan&, const Target&);

}  // namespace sinter
