// Weights of 8 or 4 bits beside activations of floats: what a transformer needs to be small and quick to
// read.
#pragma once
#include "quantize/float_model.h"

namespace sinter::quantize {

struct WeightsOnly {
  onnx::ModelProto proto;
  int64_t layers = 0;                         // whose weights have fewer bits now
  int64_t bytes_before = 0, bytes_after = 0;  // of these weights
};

// With 8 bits, weights of products and tables of Gather become int8 behind DequantizeLinear, a scale for each
// output channel or row. With 4, matrices become com.microsoft.MatMulNBits in blocks of 32 along k, each with
// a scale and a zero point; all else as with 8. Nodes in `kept` and weights of less than 1,024 elements stay.
WeightsOnly with_small_weights(const FloatModel& model, int bits, const std::set<std::string>& kept);

}  // namespace sinter::quantize
