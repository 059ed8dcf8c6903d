// What passes ask about quantised tensors: the nodes `quantize` and `dequantize`
// (ops/elementwise/quantize.cpp) and the constants that are their steps. For passes before fold_constants,
// which find those behind Casts and Reshapes.
#pragma once
#include "passes/rewrite.h"

namespace sinter {

bool is_ours(const Node* n, std::string_view name);  // a node of domain "sinter", without an epilogue
bool is_bytes(const Value* v);                       // int8 or uint8
// v's contents where they follow from constants by a few nodes; empty otherwise.
Tensor constant_of(const Value* v, int depth = 0);
std::optional<double> number_of(const Value* v);  // of those of one element
bool is_scale(double s);                          // neither so small nor so large that products leave float32

// One scale and one zero point for a whole tensor.
struct Steps {
  double scale = 1;
  int64_t zero = 0;
  bool operator==(const Steps&) const = default;
};
// Of a `quantize` to bytes, or a `dequantize` of bytes that are computed.
std::optional<Steps> quantized_steps(const Node* n);
std::optional<Steps> dequantized_steps(const Node* n);

}  // namespace sinter
