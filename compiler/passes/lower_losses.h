// The losses' part of pass lower_composites.
#pragma once
#include "ir/graph.h"

namespace sinter {

// Lowers NegativeLogLikelihoodLoss or SoftmaxCrossEntropyLoss in front of `n`, which is left without outputs;
// false, with nothing changed, for other nodes.
bool lower_loss(Graph&, Node* n);

}  // namespace sinter
