// Samples of a model's inputs, with which --fp16 measures what its layers lose.
#pragma once
#include <vector>

#include "driver/options.h"
#include "ir/graph.h"

namespace sinter {

// The folders of --data, each one sample (input_0.pb ...) or many (driver/sample_folder.h), else one sample
// of seeded random numbers: floats in [-1, 1), integers 0 or 1 or up to what --dim bounds them to, free
// extents small. UsageError where a file can't be read or has another type or shape than the graph's input,
// or elements beyond their bound.
std::vector<std::vector<Tensor>> samples_of(const ModelOptions&, const ImportOptions&, const Graph&);

}  // namespace sinter
