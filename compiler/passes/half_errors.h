// What layers lose by computing halves, measured on samples of the model's inputs.
#pragma once
#include <functional>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace sinter {

// For each node that `wanted` names: the greatest error that halves make of its results, relative to the
// largest of them, over all samples (inputs of the graph in order); infinity where an operand or a result
// leaves half the range of a half. Nodes that a sample does not reach have none.
std::unordered_map<const Node*, double> half_errors(const Graph&,
                                                    const std::vector<std::vector<Tensor>>& samples,
                                                    const std::function<bool(const Node&)>& wanted);

}  // namespace sinter
