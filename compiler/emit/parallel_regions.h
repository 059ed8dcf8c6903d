// The text of parallel regions (plan/parallel_regions.h).
#pragma once
#include "emit/calls.h"

namespace sinter {

// Calls the layers [first, end) on each thread. To be written where a status is returned.
void write_region(Printer& p, Calls& calls, const Plan& plan, size_t first, size_t end);

}  // namespace sinter
