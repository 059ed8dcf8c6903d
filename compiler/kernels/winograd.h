// Winograd convolution: its weights, and what it costs in precision.
#pragma once
#include "ir/graph.h"

namespace sinter {

// G g Gt of the 3 x 3 weights of one pair of channels: (m + 2) x (m + 2) numbers. m: 2, 4 or 6.
void winograd_weight(int m, const float* weights, double* to);

// The greatest error that F(m x m, 3 x 3) makes in float with this layer's weights, on seeded inputs in [-1,
// 1), relative to the largest output. m: 2, 4 or 6; the node satisfies may_use_winograd (ops/window.h).
double winograd_error(const Node&, int m);

}  // namespace sinter
