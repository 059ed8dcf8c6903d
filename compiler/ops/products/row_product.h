// Products of a tensor's rows with a constant matrix: what MatMul, Gemm and pointwise Conv have in common.
#pragma once
#include <optional>

#include "ir/graph.h"

namespace sinter {

// `rows` rows of `k` floats that lie side by side, times constant weights [k][n].
struct RowProduct {
  int64_t rows, k, n;
  const float* w;              // of the initializer
  int64_t k_stride, n_stride;  // element (i, j) of the weights is scale * w[i * k_stride + j * n_stride]
  float scale;
  int64_t channels = 0;  // of a window: k runs over taps and those, and a tap's weights lie side by side
  float at(int64_t i, int64_t j) const {
    if (channels > 0) i = i % channels * (k / channels) + i / channels;
    return scale * w[i * k_stride + j * n_stride];
  }
};

// The node as such a product: floats, constant weights and bias, static extents, an epilogue that is the same
// for all rows or lies like them.
std::optional<RowProduct> row_product(const Node&);

// The node, which is none of those, as the product that a convolution of one picture is when its rows are the
// windows: as many as the result has pixels, over two axes and channels of whole `block`s, which lie side by
// side in the picture.
std::optional<RowProduct> window_product(const Node&, int64_t block);

// The node as one of both, if tile matrices can compute it: a tile takes kAmxDepth values of k.
constexpr int64_t kAmxDepth = 32;
std::optional<RowProduct> amx_product(const Node&);

// Whether Strassen's product may compute it: k and n are even.
bool may_use_strassen(const Node&);
// ... with the quarters' products by it too: k and n are multiples of four, and there are rows for it.
bool may_use_strassen_twice(const Node&);
}  // namespace sinter
