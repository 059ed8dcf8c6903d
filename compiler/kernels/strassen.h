// Products of a tensor's rows with a constant matrix, by Strassen's seven products of quarters: whether it
// pays, its weights and its error (the formulas are in runtime/sinter/strassen.h).
#pragma once
#include <array>
#include <optional>

#include "ops/row_product.h"
#include "targets/target.h"

namespace sinter {

// Rows are computed `height` pairs at a time, in groups whose sums stay in the second-level cache. Group g
// has rows() of them: the first `larger` groups one more than the others; where 2 * height is more than that,
// its middle rows are computed twice. Either each of the seven products runs over all pairs of rows before
// the next one, so that its weights stay near, or all seven do for one register tile after the other, so that
// what they keep does.
struct StrassenChoice {
  int64_t groups, rows, larger, height;
  bool by_products;
  double error;  // of the largest output
  bool skips() const { return 2 * height != rows || larger != 0; }
};
// How it is to be computed on the target; no value where the plain product is as fast or the error too large.
std::optional<StrassenChoice> choose_strassen(const Node&, const Target&);

// The right factors of the seven products, in the order of their steps: element (i, j), i < k / 2, j < n / 2.
std::array<float, 7> strassen_weights(const RowProduct&, int64_t i, int64_t j);

// The greatest error of float arithmetic with these weights on seeded inputs in [-1, 1), relative to the
// largest output.
double strassen_error(const RowProduct&);

}  // namespace sinter
