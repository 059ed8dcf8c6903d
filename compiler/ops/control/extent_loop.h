// Loops whose condition counts to an extent; see extent_loop.cpp.
#pragma once
#include <optional>

#include "ops/op.h"

namespace sinter {

// After how many iterations the condition of a Loop ends it, its trip count (input 0) left aside: exactly,
// where that can be told, and at most.
struct Trips {
  std::optional<Dim> exact;
  int64_t at_most = Interval::kUnbounded;
};
Trips extent_trips(const Inference& loop);

}  // namespace sinter
