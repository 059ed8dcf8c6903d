// What a node costs to evaluate: see work.cpp.
#pragma once
#include <vector>

#include "ops/op.h"

namespace sinter {

// In the steps of a Budget, for these inputs and these shapes of the outputs (of those that are known
// before).
double steps_of(const Node& node, const std::vector<Tensor>& in,
                const std::vector<std::vector<int64_t>>& out);

}  // namespace sinter
