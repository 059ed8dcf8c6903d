// What layers lose by computing halves, measured on samples of the model's inputs.
#pragma once
#include <unordered_map>
#include <vector>

#include "passes/half_choice.h"

namespace sinter {

struct HalfErrors {
  // For each node that has a form in halves: the greatest error that they make of its results, relative to
  // the largest of them, over all samples; infinity where an operand or a result leaves half the range of a
  // half. Nodes that a sample does not reach have none.
  std::unordered_map<const Node*, double> layers;
  std::vector<std::vector<Tensor>> outputs;  // of the graph, in floats, for each sample
};

// The samples are the graph's inputs in order.
HalfErrors half_errors(const Graph&, const std::vector<std::vector<Tensor>>& samples);

// The graph's outputs where these layers are in halves: operands and results rounded, sums off by as much as
// sums of halves are, at random but always the same.
std::vector<Tensor> evaluate_in_halves(const Graph&, const std::vector<Tensor>& sample,
                                       const std::unordered_map<const Node*, Halves>& layers);

// For each of these nodes, the greatest error that another second operand makes of its results, relative to
// the largest of them, over all samples. Nodes that a sample does not reach have none.
std::unordered_map<const Node*, double> factor_errors(
    const Graph&, const std::vector<std::vector<Tensor>>& samples,
    const std::unordered_map<const Node*, const Tensor*>& factors);

// The greatest difference, relative to the greatest of `want`; infinity where numbers are lost; below 0 where
// the two are no floats or can't be compared.
double relative_error(const Tensor& got, const Tensor& want);

}  // namespace sinter
