// Products of a tensor's rows with a constant matrix, by Strassen's seven products of quarters: whether it
// pays, its weights and its error (the formulas are in runtime/sinter/strassen.h).
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "emit/layer.h"
#include "kernels/products/tiles.h"
#include "ops/products/row_product.h"
#include "plan/decision.h"
#include "targets/target.h"

namespace sinter {

// One level: rows are computed `height` pairs at a time, in groups whose sums stay in the second-level cache.
// Group g has rows() of them: the first `larger` groups one more than the others; where 2 * height is more
// than that, its middle rows are computed twice. Either each of the seven products runs over all pairs of
// rows before the next one, so that its weights stay near, or all seven do for one register tile after the
// other, so that what they keep does.
//
// Two levels: each product of quarters is one again, of sixteenths. All rows are one group; of its `height`
// pairs, `quarter` pairs of pairs are computed, in `pieces` whose sums stay in the cache.
struct StrassenChoice {
  int levels;
  int64_t groups, rows, larger, height;
  bool by_products;
  int64_t quarter, pieces;
  double error;  // of the largest output
  bool skips() const { return 2 * height != rows || larger != 0; }
};

// Register tiles of two levels: `larger` ones of rows + 1 rows of a sixteenth, then those of `rows` rows.
struct StrassenTiles {
  Panels panels;
  int64_t count, rows, larger;
  int64_t width, columns;  // floats of a row of a panel, of all of them
  // A quarter's rows in `into` tiles of about the same size.
  void cut(int64_t quarter, int64_t into) {
    count = into;
    rows = quarter / into;
    larger = quarter % into;
  }
  int64_t rows_before(int64_t tile) const { return tile * rows + std::min(tile, larger); }
  int64_t most_rows(int64_t pieces) const {
    int64_t most = 0;
    for (int64_t p = 0; p < pieces; ++p)
      most = std::max(most, rows_before((p + 1) * count / pieces) - rows_before(p * count / pieces));
    return most;
  }
  int64_t floats(const RowProduct&, int64_t pieces) const;  // of scratch
};
StrassenTiles strassen_tiles(const RowProduct&, const Target&, const StrassenChoice&);

// Whether the node may be computed so on the target: marked (passes/allow_strassen.cpp), whole and out of
// order.
bool may_choose_strassen(const Node&, const Context&);
// Two levels and one, with modelled cycles, errors not measured.
std::vector<Candidate> strassen_ways(const Node&, const Context&);
// Measures one, and forbids what errs too much.
void measure_strassen(const Node&, const Context&, Candidate&);

// The right factors of the 7^levels products, in the order of their steps: [7^levels][k / m][n / m], m =
// 2^levels.
std::vector<float> strassen_weights(const RowProduct&, int levels);

// The greatest error of float arithmetic with these weights on seeded inputs in [-1, 1), relative to the
// largest output.
double strassen_error(const RowProduct&, int levels);

}  // namespace sinter
