// Winograd convolution: its weights, and what it costs in precision.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "ir/graph.h"

namespace sinter {

// One axis of a tile: outputs that are made at once by a convolution of `taps` and a stride of 1 or 2. Stride
// 1 has 4, 6 or 8 positions, or 1 for a single tap and output. Stride 2 is the sum of two convolutions of
// stride 1, of the even inputs with the even taps and of the odd ones, each with positions of its own
// (runtime/sinter/winograd.h).
struct WinogradAxis {
  int outputs = 0, taps = 0, stride = 1;
  bool has_phases() const { return stride == 2 && taps > 1; }
  // Positions, and inputs.
  int64_t positions() const { return int64_t{outputs - 1} * stride + taps; }
  // Positions of the even inputs and taps, all where the stride is 1.
  int64_t even() const { return has_phases() ? int64_t{outputs} + (taps - 1) / 2 : positions(); }
  // A single odd tap has the same weights at all its positions.
  bool has_one_odd_tap() const { return has_phases() && taps == 3; }
  int64_t matrices() const { return has_one_odd_tap() ? even() + 1 : positions(); }
};

// Outputs that are made at once.
struct WinogradTile {
  WinogradAxis down, along;
  int64_t outputs() const { return int64_t{down.outputs} * along.outputs; }
  int64_t taps() const { return int64_t{down.taps} * along.taps; }
  int64_t positions() const { return down.positions() * along.positions(); }
  // Matrices of weights: one a position, or fewer.
  int64_t matrices() const { return down.matrices() * along.matrices(); }
  // Of the transform with most positions.
  int64_t most_positions() const { return std::max(down.even(), along.even()); }
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

// The 3 x 3 weights of one pair of channels that 6 x 6 positions transform when they are used
// (runtime/sinter/winograd.h, winograd_square_sums): row and column 1 multiplied by sqrt(2).
std::array<float, 9> winograd_square(const float* weights);

// The greatest error that this tile makes with a layer's weights [out][in][tile.taps()], on seeded inputs in
// [-1, 1), relative to the largest output. `when_used`: the weights are transformed when they are used.
// `half_block`: transforms and sums are halves, of blocks of so many products, which are added up in halves,
// too; 0: they are floats.
double winograd_error(const float* weights, int64_t out, int64_t in, const WinogradTile& tile,
                      bool when_used = false, int half_block = 0);

}  // namespace sinter
