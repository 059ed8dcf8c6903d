// Weights of RNN, GRU and LSTM as the panels that kernels/sequences/recurrent.cpp multiplies: of one vector
// of neurons each, with all gates of these neurons; zeros where a panel has more neurons than the layer.
#pragma once
#include <cstdint>
#include <vector>

#include "ops/sequences/recurrent.h"

namespace sinter {

struct GateRange {
  int64_t first = 0, count = 0;
};

// Some gates of W or R ([directions][gates * hidden][depth]) as [direction][panel][depth][gate][lane].
std::vector<float> pack_gates(const Recurrence& r, GateRange range, const float* weights, int64_t depth,
                              int lanes);

// Biases B ([directions][2 * gates * hidden]) as [direction][panel][gate][lane]. Those of R join those of W,
// but for GRU's hidden gate with linear_before_reset: it is multiplied by r, so it starts the sum of R h
// (what `recurrent` asks for, zeros for the other gates).
std::vector<float> pack_gate_bias(const Recurrence& r, bool recurrent, const float* bias, int lanes);

// LSTM's P ([directions][3 * hidden]) as [direction][gate][neuron], rows of whole panels.
std::vector<float> pack_peepholes(const Recurrence& r, const float* peepholes, int lanes);

}  // namespace sinter
