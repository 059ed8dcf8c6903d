// The text of strips: what plan/strips.h has grouped.
#pragma once
#include "emit/calls.h"

namespace sinter {

// The loop over strips of the layers [first, end), with their calls.
void write_strips(Printer&, Calls&, const Plan&, size_t first, size_t end);

}  // namespace sinter
