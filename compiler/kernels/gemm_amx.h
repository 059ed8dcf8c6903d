// What a product on tile matrices would take, for the kernels that could compute it otherwise.
#pragma once
#include "ir/graph.h"
#include "targets/target.h"

namespace sinter {

// Modelled cycles of the node on AMX's tile matrices; infinity where they may not or cannot compute it.
double amx_cycles(const Node&, const Target&);

}  // namespace sinter
