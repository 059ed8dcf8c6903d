// What halves cost a graph's outputs, and which layers are to be floats so that it is not too much.
#pragma once
#include <unordered_set>
#include <vector>

#include "passes/half_errors.h"

namespace sinter {

struct HalfOutputs {
  std::unordered_set<const Node*> floats;  // layers within the limit of layers that stay floats all the same
  std::vector<double> errors;              // of each output then; below 0: no float
};

HalfOutputs hold_outputs(const Graph&, const PassOptions&, const HalfErrors&);

}  // namespace sinter
