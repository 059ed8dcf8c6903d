// What a written model computes with bytes, as its QuantizeLinear and DequantizeLinear say.
//
// Which layers stay in floats is asked for by name; what they were between may be left with floats on all
// sides then. So what is told of a layer is read from the file and not from what was asked for.
#pragma once
#include <onnx/onnx_pb.h>

#include <set>
#include <string>

namespace sinter::quantize {

// The labels (label_of) of the nodes that work on bytes: products of bytes and weights of bytes; other nodes
// that read bytes and whose result, behind an activation of its own, is rounded to bytes again.
std::set<std::string> layers_of_bytes(const onnx::GraphProto& written);

}  // namespace sinter::quantize
