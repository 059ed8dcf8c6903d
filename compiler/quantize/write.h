// The quantised model as plain ONNX: QuantizeLinear and DequantizeLinear around layers that stay as they are.
#pragma once
#include "quantize/twin.h"

namespace sinter::quantize {

// `layers` are those that read bytes at all, `setting` which tensors and products are. Weights become int8
// initializers behind DequantizeLinear, biases int32 ones in steps of their products.
onnx::ModelProto quantised_model(const FloatModel& model, const Layers& layers, const Twin& twin,
                                 const Setting& setting);

}  // namespace sinter::quantize
