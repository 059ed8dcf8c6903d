// Several models as one bundle: one header, one file of weights in which equal blobs lie once, and one arena,
// which the models use in turn. Each model's code is a file of its own (NAME_part_A.cpp); its functions are
// called NAME_A_….
//
// Tensors that outlive a run lie at the front of the arena, where no model has scratch; whoever reads one
// gets its address there. Behind them all models begin at the same place, so that the arena takes what the
// largest does.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "emit/bundle.h"

namespace sinter {

struct PipelineModel {
  const Graph& graph;
  Plan& plan;  // its weights get new places
  const Target& target;
  WeightStore& weights;  // which turn into the bundle's
  BundleOptions& options;
};

// The weights of all in one store, equal ones once. Sets what the models' options have of them.
void join_weights(std::vector<PipelineModel>&, WeightStore& weights);

// The files by name, as make_bundle's. Sets what the models' options have of a pipeline, and of `memory` all
// but the name and which tensors last. Refuses models whose names in C are the same.
std::map<std::string, std::string> make_pipeline(std::vector<PipelineModel>, SharedMemory& memory,
                                                 WeightStore& weights);

}  // namespace sinter
