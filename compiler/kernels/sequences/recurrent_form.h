// What the two kernels for RNN, GRU and LSTM share: the text of activations and the addresses of rows.
#pragma once
#include <string>

#include "emit/layer.h"
#include "ops/sequences/recurrent.h"

namespace sinter {

// Writes `const TYPE name = activation(clip(value));` (without the clip where !clips) for floats (whole
// vectors where `vector`) or doubles.
void emit_activation(LayerWriter& w, const Recurrence& r, const GateActivation& a, const std::string& name,
                     const std::string& value, const std::string& type, bool clips = true);

// Strides of rows of `hidden` elements, as C++ text: Y's from step to step, from sequence to sequence and
// from direction to direction; X's and the states' likewise.
struct RowStrides {
  std::string x_step, x_row, y_step, y_row, y_direction, state_row, state_direction;
};
RowStrides row_strides(LayerWriter& w, const Recurrence& r);

// The test that every length of input 4 lies in [0, steps].
void emit_length_check(LayerWriter& w, const Recurrence& r);

}  // namespace sinter
