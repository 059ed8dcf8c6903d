// The weights of products of codes and of tables of codes as they lie in NAME.weights: in panels of channels,
// as runtime/sinter/product_of_codes.h reads them. A table that is both looked up and multiplied by is there
// once.
#pragma once
#include "kernels/products/tiles.h"
#include "ops/products/codes.h"

namespace sinter {

struct PackedCodes {
  Codes codes;
  Panels panels;
  int64_t words;                 // of 32 bits, of a channel
  std::string w, scales, zeros;  // parameters; zeros: empty where all blocks have one zero point
  std::string blocks;            // the CodeBlocks
  int64_t blocks_of_zeros = 0;   // of a channel: elements of zero points
  // The zero points of the panel that begins with channel `c`, as the words take them.
  std::string zeros_at(const std::string& c) const {
    return zeros.empty() ? "OneZero()" : fmt::format("{} + ({}) * {}", zeros, c, blocks_of_zeros);
  }
};
// Makes the codes of w.node parameters of the layer.
PackedCodes pack_codes(LayerWriter& w);

}  // namespace sinter
