// Random graphs: small valid models, one for each seed, the same on every machine.
#pragma once
#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "import/onnx.h"

namespace sinter::random_graphs {

struct Sample {
  uint64_t seed = 0;
  onnx::ModelProto model;
  ImportOptions options;                     // bounds of its free dims
  std::vector<std::vector<Tensor>> inputs;   // data sets
  std::map<std::string, double> deviations;  // of values, by rounding alone: noise.h
  std::map<std::string, int> rejected;       // what the generator took back, and why
};

Sample generate(uint64_t seed);

// Passes over the graph of `sample`: every value that says which of the model's it is must have its value,
// after each pass. What differs first, or "".
std::string check_passes(const Sample& sample);

// The graph after all passes (or the few that every model needs), fit for a plan.
enum class Passes { kNeeded, kAll };
std::unique_ptr<Graph> graph_of(const Sample& sample, Passes passes);
// The relative tolerance (of the largest element) that holds for all outputs.
double output_tolerance(const Sample& sample, const Graph& graph);

}  // namespace sinter::random_graphs
