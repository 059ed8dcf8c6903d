// Winograd's tiles for a layer, as candidates (emit/candidate.h): with modelled cycles (multiply-adds,
// transforms, weights that stream in again for each group), and the error that the layer's own weights make
// on random inputs (kernels/convolutions/winograd.h), which must stay below a limit
// (docs/decisions/0014-rounding-budget.md). Nodes satisfy may_use_winograd (ops/windows/window.h).
#pragma once
#include <optional>

#include "emit/layer.h"
#include "kernels/convolutions/winograd.h"
#include "ops/windows/window.h"
#include "plan/decision.h"
#include "targets/target.h"

namespace sinter {

struct WinogradLayer {
  int64_t in, out;
  WinogradAxis down, along;  // of no outputs yet
  const float* weight;       // [out][in][down.taps][along.taps]
  int64_t taps() const { return int64_t{down.taps} * along.taps; }
};
WinogradLayer winograd_layer(const Node&);
// The node's window with two axes: that along one is a picture of one row.
Window winograd_plane(const Node&);
// Floats from one tile's transformed inputs at a position to the next one's: the channels, in whole vectors.
int64_t winograd_pitch(const WinogradLayer&, const Target&);
// An extent, or what stands for a free one in a model of cycles: its bound, 64 at most.
int64_t likely_extent(const Dim&);

// The greatest error of a layer, of its largest output (docs/decisions/0014-rounding-budget.md).
constexpr double kMaxWinogradError = 1e-5;
// ... in halves, whose direct sums are up to 2.2e-3 off (docs/decisions/0020-half-arithmetic.md).
constexpr double kMaxWinogradErrorOfHalves = 1e-2;
// Loads, stores and arithmetic of the two transforms are counted a position; the arithmetic of eight
// positions is twice as much each. Of a single tap's there is none. Even and odd numbers of many positions go
// through the stack.
double winograd_arithmetic(const WinogradAxis&);

// Cycles for which each of some threads has a layer's weights stream in, `passes` times: from where the net's
// weights stay for several threads or for one, else from memory.
double winograd_stream(const WeightDecision&, const CoreSpeed&, double weight_bytes, double passes,
                       int threads);

// The work of one picture cut into tiles.
struct WinogradChoice {
  WinogradTile tile;
  int64_t group = 0;          // tiles
  bool by_positions = false;  // positions are outermost, all tiles one group
  bool when_used = false;     // ... a column of them at a time, whose weights are transformed when used
  double cycles = 0, weight_bytes = 0;
  double error = 0;  // of the largest output
  int block = 0;     // products that a block of halves sums before blocks are added up, in halves too
};

// The tiles that the node's freedom and its decision leave, by groups and, where that fits, by positions;
// their errors are not measured. Tuning (plan/tuning.h) leaves one tile; the limits hold. None where the node
// is not marked (passes/allow_winograd.cpp).
std::vector<Candidate> winograd_ways(const Node&, const Context&);
// Measures one: what errs too much is forbidden, and what errs more than usual must be worth it.
void measure_winograd(const Node&, const Context&, Candidate&);
// Modelled cycles of the direct convolution of such a node, whose multiply-adds are `share` of what they are
// by its taps.
double direct_cycles(const Node&, const Context&, double share);
// The most outputs along an axis that the node's freedom and its decision leave; 0: none.
int64_t most_winograd(const Node&, const Decision&);
// The choice for some threads: the same tile, so that the bits are the same, but groups where the threads
// would read more of each other's positions than each gains by reading its own positions' weights only, and
// groups of the size that is best for several threads (targets/core_speed.h, shared_work_share).
WinogradChoice share_winograd(const Node&, const Context&, WinogradChoice, int threads);

}  // namespace sinter
