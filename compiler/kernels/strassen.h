// Products of a tensor's rows with a constant matrix, by Strassen's seven products of quarters: where that is
// possible, whether it pays, its weights and its error (the formulas are in runtime/sinter/strassen.h).
#pragma once
#include <optional>

#include "ir/graph.h"
#include "targets/target.h"

namespace sinter {

// A MatMul, Gemm or pointwise Conv as a product of matrices: `rows` rows of `k` floats that lie side by side,
// with constant weights [k][n].
struct RowProduct {
  int64_t rows, k, n;
  const float* w;              // of the initializer
  int64_t k_stride, n_stride;  // element (i, j) of the weights is scale * w[i * k_stride + j * n_stride]
  float scale;
  float at(int64_t i, int64_t j) const { return scale * w[i * k_stride + j * n_stride]; }
};

// Whether Strassen's product may compute the node: floats, constant weights and bias, static extents, k and n
// even, an epilogue that is the same for all rows or lies like them.
std::optional<RowProduct> strassen_product(const Node&);

// Rows are computed `height` pairs at a time, in groups whose sums stay in the second-level cache. Group g
// has rows() of them: the first `larger` groups one more than the others; where 2 * height is more than that,
// its middle rows are computed twice.
struct StrassenChoice {
  int64_t groups, rows, larger, height;
  double error;  // of the largest output
  bool skips() const { return 2 * height != rows || larger != 0; }
};
// The value of the attribute `strassen` where a measurement has decided for it; 1: the model decides.
constexpr int64_t kTunedStrassen = 2;
// How it is to be computed on the target; no value where the plain product is as fast or the error too large.
std::optional<StrassenChoice> choose_strassen(const Node&, const Target&);

// The factor of product `step` (strassen.h) of the quarters of the weights: element (i, j), i < k / 2, j < n
// / 2.
float strassen_weight(const RowProduct&, int step, int64_t i, int64_t j);

// The greatest error of float arithmetic with these weights on seeded inputs in [-1, 1), relative to the
// largest output.
double strassen_error(const RowProduct&);

}  // namespace sinter
