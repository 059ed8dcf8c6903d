// Loops whose condition counts to a number; see counted_loop.cpp.
#pragma once
#include <optional>

#include "ops/op.h"

namespace sinter {

// After how many iterations the condition of a Loop ends it, where that is known before the model runs, its
// trip count (input 0) left aside.
std::optional<int64_t> counted_trips(const Node& loop);

}  // namespace sinter
