// How much a result depends on rounding: a graph evaluated with every value disturbed a little.
//
// Two right programs round differently: sums in another order, a multiplication folded into weights, 16-bit
// floats held in 32 bits. Each float value gets the error that its operator may make in one element, at
// random; what comes out of that at another value, several times over, is what any correct rewrite of the
// graph may change there.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sinter::random_graphs {

using Values = std::map<std::string, Tensor>;  // by name

// All values of the graph, inputs included. `run` 0: without noise; else the seed of it.
Values evaluate_with_noise(const Graph& graph, const std::vector<Tensor>& inputs, uint32_t run);

// Of any element; infinite where a number stands against none, -1 where the shapes differ.
double largest_difference(const Tensor& a, const Tensor& b);
double largest(const Tensor& t);  // magnitude of its finite elements

// The most that noise may make of a value in a model that is to be compared; 0 for integers.
double allowed_deviation(const Tensor& t);
// What two results may differ in whose noise makes `deviation`.
double tolerance(const Tensor& t, double deviation);

}  // namespace sinter::random_graphs
