// Loops whose condition counts; see counted_loop.cpp and extent_loop.cpp.
#pragma once
#include <optional>

#include "ops/op.h"

namespace sinter {

// After how many iterations the condition of a Loop ends it, where that is known before the model runs, its
// trip count (input 0) left aside.
std::optional<int64_t> counted_trips(const Node& loop);

// The same where it counts to an extent: exactly, where that can be told, and at most.
struct Trips {
  std::optional<Dim> exact;
  int64_t at_most = Interval::kUnbounded;
};
Trips extent_trips(const Inference& loop);

}  // namespace sinter
