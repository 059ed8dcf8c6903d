// Winograd convolution: its weights, and what it costs in precision.
#pragma once
#include <vector>

#include "ir/graph.h"

namespace sinter {

// Outputs that are made at once, for kernels of `tap_rows` x `tap_columns`. Along each axis as many positions
// as a transform has: 4, 6 or 8; or 1, with a single tap and output, where the kernel is a line along the
// other.
struct WinogradTile {
  int rows = 0, columns = 0, tap_rows = 3, tap_columns = 3;
  int64_t outputs() const { return int64_t{rows} * columns; }
  int64_t taps() const { return int64_t{tap_rows} * tap_columns; }
  int64_t height() const { return rows + tap_rows - 1; }
  int64_t width() const { return columns + tap_columns - 1; }
  int64_t positions() const { return height() * width(); }
};

// G g Gt of the weights of one pair of channels.
class WinogradWeights {
 public:
  explicit WinogradWeights(const WinogradTile& tile);
  // tile.taps() weights, row by row, to tile.positions() numbers.
  void transform(const float* weights, double* to) const;

 private:
  std::vector<std::vector<double>> down_, along_;
};

// The greatest error that F(rows x columns, tap_rows x tap_columns) makes in float with this layer's weights,
// on seeded inputs in [-1, 1), relative to the largest output; the node satisfies may_use_winograd
// (ops/window.h).
double winograd_error(const Node&, const WinogradTile& tile);

}  // namespace sinter
