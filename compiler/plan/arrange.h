// What is settled between the passes and the plan, once the target is known.
#pragma once
#include "plan/tuning.h"

namespace sinter {

// Outputs that need a copy get one, nodes take the order that needs the least memory, and it is decided
// which nodes write or read where it is (in_place.cpp) or run in strips (strips.cpp). `cache`:
// bytes that a strip's buffers may take, 0 for the target's second level. `tuning` decides where it knows the
// layers. Then make_plan may be called.
void arrange(Graph&, const Target&, Decisions&, int64_t cache = 0, const Tuning& tuning = {});

}  // namespace sinter
