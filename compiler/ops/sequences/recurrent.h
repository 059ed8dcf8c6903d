// What RNN, GRU and LSTM share: their attributes and extents, read once for infer, eval and the kernels.
#pragma once
#include <string>
#include <vector>

#include "ops/op.h"

namespace sinter {

// One activation function of a gate, with its numbers: alpha and beta as ONNX defines them.
struct GateActivation {
  enum class Kind {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  };
  Kind kind = Kind::kTanh;
  float alpha = 0, beta = 0;
  bool operator==(const GateActivation&) const = default;
};

// The attribute `quantized_state` (ours, for DynamicQuantizeLSTM): in each step R multiplies what is left of
// the hidden states of all sequences after DynamicQuantizeLinear and DequantizeLinear.
//
// The order of the gates along the weights: RNN one; GRU update z, reset r, hidden h; LSTM input i, output o,
// forget f, cell c.
struct Recurrence {
  enum class Cell { kRnn, kGru, kLstm };
  Cell cell = Cell::kRnn;
  int64_t gates = 1, directions = 1;
  bool first_reverse = false;  // direction 0 runs from the last step to the first
  bool batch_first = false;    // layout 1
  bool clips = false;
  float clip = 0;
  bool input_forget = false;                             // LSTM: f = 1 - i
  bool linear_before_reset = false;                      // GRU
  bool quantizes_state = false;                          // LSTM: R multiplies the state in 256 steps
  std::vector<std::vector<GateActivation>> activations;  // [direction][f, g, h]
  Dim steps, batch, inputs, hidden;

  // Positions of the optional inputs: 3 biases, 4 lengths of the sequences, 5 initial state; LSTM 6 initial
  // cell, 7 peepholes.
  bool reverse(int64_t direction) const { return direction == 1 || first_reverse; }
};

// Whether the node is an RNN, a GRU or an LSTM.
bool is_recurrent(const Node&);

// Reads a node whose inputs are typed. Attributes that make no sense are reported through `fail`, which must
// not return.
Recurrence recurrence_of(const Node& node, const Shape& x, const Shape& r,
                         const std::function<void(const std::string&)>& fail);
Recurrence recurrence_of(const Node& inferred);

}  // namespace sinter
