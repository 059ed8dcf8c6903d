// Reductions over any set of axes: the core of Reduce*, of the global pools and of what else sums up.
#pragma once
#include <string>
#include <vector>

#include "emit/layer.h"

namespace sinter {

enum class Fold { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kLogSum, kLogSumExp, kSumSquare, kLp };

struct Reduction {
  Fold fold = Fold::kSum;
  double p = 2;               // kLp: the root of the sum of |x|^p
  std::vector<bool> reduced;  // per axis of node.inputs[0]
  std::vector<int> out_axes;  // per axis of the input: the axis of the output that shows it; -1: none
};

// Writes the layer: node.outputs[0] = the reduction of node.inputs[0], with the node's epilogue.
void emit_reduction(LayerWriter& w, const Reduction& r);

}  // namespace sinter
