// Which layers of a model are computed with bytes, and which tensors between them are bytes.
//
// A *product* (Conv, ConvTranspose, Gemm, MatMul by a constant) multiplies bytes. The tensor it reads becomes
// bytes at its input, behind all that is fused into whatever makes it: a Conv's sums go through the
// activation and the addition behind it as floats, in registers, and are rounded to bytes once. A *move*
// (MaxPool, Reshape, Concat ...) between bytes works on bytes, with one scale on both sides. A *sum* (Add,
// AveragePool, GlobalAveragePool) in front of a product reads bytes.
//
// Tensors that moves tie to each other are one Site: they share a scale and a zero point.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "quantize/float_model.h"

namespace sinter::quantize {

struct Layer {
  enum class Kind { kProduct, kMove, kSum };
  int node = 0;
  Kind kind = Kind::kProduct;
  std::vector<int> bytes;  // which of the node's inputs are read as bytes
  int weights = -1;        // a product's constant input
  int axis = 0;            // of its output channels in the weights
};

struct Site {
  std::vector<std::string> tensors;
};

struct Layers {
  std::vector<Layer> layers;  // in the model's order
  std::vector<Site> sites;
  int site_of(const std::string& tensor) const;  // -1 where it stays float
};

// Conv, ConvTranspose, Gemm or MatMul.
bool is_product(const onnx::NodeProto&);
// Activations that go with the product or the sum before them.
bool is_activation(const onnx::NodeProto&);

// `kept`: labels of nodes that stay in floats.
Layers choose_layers(const FloatModel& model, const std::set<std::string>& kept);

}  // namespace sinter::quantize
