// What a recurrent layer of halves loses from step to step.
#pragma once
#include <random>
#include <vector>

#include "ir/graph.h"

namespace sinter {

// The node's results where its states are halves and each step's sums are off by up to `noise` of the mean
// square of its state. Steps first, no lengths.
std::vector<Tensor> recurrence_in_halves(const Node&, const std::vector<Tensor>& in, double noise,
                                         std::mt19937& random);

// Adds numbers of up to `size` times the tensor's mean square, at random; finite floats only.
void add_noise(Tensor&, double size, std::mt19937& random);

}  // namespace sinter
