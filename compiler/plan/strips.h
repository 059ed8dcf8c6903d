// Strips: convolutions behind each other that run together, a few rows of the last one's result at a time, so
// that what is between them stays in the cache and takes the memory of a few rows only.
//
// A group is a convolution and the pool behind it, or two or three convolutions next to each other in the
// plan, one of them depthwise (the blocks of the MobileNets), and the Transposes from planes before them and
// to planes behind them, if any, or the frame before them (--pre), or a frame and a convolution: each but the
// last is read by the next one alone. Decision::row_tile of its
// nodes says so. Nothing is computed twice: rows of a buffer that the next turn needs again (under a 3x3
// kernel: two) move to its beginning. With threads, work items share the turns, each with buffers and scratch
// of its own; what the first turn of one needs of the rows before it is computed by both.
#pragma once
#include "plan/plan.h"
#include "plan/tuning.h"

namespace sinter {

// Finds groups that are worth it: what is between would not stay in `cache` bytes; 0: the target's
// second-level cache. Those that `tuning` knows to be faster apart stay so.
void make_strips(const Graph&, const Target&, Decisions&, int64_t cache = 0, const Tuning& tuning = {});
// Cuts the groups that make_strips has found for `threads`, the same number of turns for each. Those with
// fewer turns than threads run apart, by the kernels that they have in a strip, which make the same bits.
void share_strips(const Graph&, const Target&, Decisions&, int threads, int64_t cache = 0);

// The layer behind the group that begins with `layer`; layer + 1 where none does.
size_t behind_strips(const Plan&, size_t layer);
// The first spatial axis of a layer.
struct RowAxis {
  int64_t kernel, stride, dilation, pad, in, out;
  int64_t span() const { return (kernel - 1) * dilation + 1; }
  bool keeps_rows() const { return kernel == 1 && stride == 1 && pad == 0; }  // output row i is input row i
};
RowAxis row_axis(const Node&);
int64_t row_bytes(const Value&);  // of one row of a picture [1][H][W][C]

}  // namespace sinter
