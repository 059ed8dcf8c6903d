// Plan: the layers in order, and where every tensor lies.
//
// A Value lies in a caller's input or output buffer, in the weights, or in the arena at a fixed offset that
// holds for every size within the bounds. Views (Reshape …) share their input's place. Two Values may share
// arena bytes only if they are never alive at once, or if a layer writes its output over an input that ends
// there (Layer::may_overwrite).
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "emit/layer.h"
#include "plan/state.h"

namespace sinter {

struct Place {
  enum class Kind { kInput, kOutput, kWeights, kArena };
  Kind kind = Kind::kArena;
  size_t index = 0;    // kInput, kOutput: which one
  int64_t offset = 0;  // kArena, kWeights: bytes
  int64_t bytes = 0;   // at the bounds
  Dim shift;           // elements from there to the first of this Value (views and parts of a Concat)
};

class Emitted;

struct Plan {
  std::shared_ptr<const Decisions> decisions;  // what was settled of each node
  const Decision& decision(size_t layer) const { return decisions->of(*layers[layer].node); }
  std::vector<Layer> layers;  // in order of execution
  std::map<const Value*, Place> places;
  std::vector<std::vector<int64_t>> scratch;  // per layer: arena offset of each kScratch parameter, in order
  // The same where threads run through layers (Layer::region): part p's piece is the one of part 0 and p
  // times `step` bytes, beside what the layer itself adds for each part. Of use in a region only.
  struct Share {
    int64_t offset, step;
  };
  std::vector<std::vector<Share>> shares;
  // Per layer: the plans of its node's bodies (If, Loop, Scan; else none), whose arena is the layer's scratch
  // parameter "a". Body inputs and outputs have places of the kinds kInput and kOutput.
  std::vector<std::vector<Plan>> bodies;
  int64_t arena_bytes = 0;
  // The greatest sum of dense bytes of arena Values alive at once, at the bounds: no alignment, no scratch.
  int64_t live_bytes = 0;
  std::vector<int64_t> live_at;  // that sum while each layer runs
  StatePlan states;              // of the graph itself (plan_states)
};

// What an arena may take: 15 % more than the live bytes, 64 KiB, and the scratch of threads beyond the first.
// It is kept for one thread; several run what that leaves, in pieces of scratch of their own.
int64_t arena_limit(const Plan&);
// Where the arena takes more: layers whose scratch for Winograd, Strassen or tile matrices is the reason get
// a Limit for it, and give that up where it is too small. Whether any did; then the graph is to be planned
// again.
bool limit_scratch(const Graph&, const Plan&, Decisions&);

// Bytes of the constants of a graph and its bodies: as imported, the model's weights.
int64_t constant_bytes(const Graph&);
// 16-bit floats are stored as such, and with `short_rows` (--small-weights) weights without what is only
// there to be read faster (WeightDecision's half and short_rows; kernels/products/panel_weights.h).
void store_small_weights(const Graph&, bool short_rows, Decisions&);
// Layers are told (WeightDecision::near) where all weights stay in the third-level cache.
void tell_near_weights(const Graph&, const Target&, Decisions&);
// For several threads on tile matrices: products may store their weights split where these come in time, and
// are told where all stay near (plan/weight_parts.cpp).
void store_weight_parts(const Graph&, const Target&, int threads, Decisions&);
// Where the arena takes more than its limit, and panels that are widened from 16 bits are the reason: their
// layers store floats. Whether any did; then the graph is to be planned again.
bool drop_half_weights(const Graph&, const Plan&, Decisions&);
// Before layers are written: they share `most` bytes of weights, as far as that is known then.
void share_weights(const Graph&, const Target&, int64_t most, Decisions&);
// Where packed weights take `excess` bytes too many: layers give up what saves least time for its bytes.
// Whether any did; then the graph is to be planned again.
bool shrink_weights(const Graph&, const Plan&, int64_t excess, Decisions&);

// Concat along the channels of channels-last tensors: where an input is written by a kernel that can, and
// read by no others or by such as can step over what lies between its pixels, it is written straight to its
// channels of the result (pixel_stride of the writers, in_place of the Concat); other inputs are
// copied there, if any, and the Concat needs no layer. Nor do Slice and Split that take channels of such an
// input. More bytes are alive at once for none that others read too (plan/lives.h).
void place_concats(Graph&, const Target&, Decisions&);
// Convolutions of pictures (up to 4 channels) that only they see with the channels last read the planes
// themselves (reads_nchw of the Conv, in_place of the Transpose before it, which needs no layer).
void read_planes(Graph&, const Target&, Decisions&);

// Convolutions by Winograd's filtering whose picture they alone see, joined along the channels or doubled in
// size by the nearest pixel or both, read the pieces where they lie where that saves a copy
// (piece_times of the Conv; Concat and Resize need no layer). To be called again, with
// place_concats behind it, where another kernel may do the convolution now: marks that no longer hold go.
void read_pieces(Graph&, const Target&, Decisions&);

// Whether the node's output is its first input's bytes, so that it needs no layer and no memory.
bool is_view(const Node&);
// The Value whose bytes a chain of views shows.
const Value* root_of(const Value*);
// Makes sure that every graph output is written by a layer of its own: inserts copies where an output is a
// graph input, a constant, another output, or a view of one of those. Of bodies too. Not where an output of
// `states` is the input of one.
void separate_outputs(Graph&, const Decisions&, const StateLinks& states = {});
// What the model calls an output: its Value's name, but where the model has given that to an input or to
// another output as well, and the copies that separate_outputs makes are Values of other names.
std::string outside_name(const Value& output);
// An order of execution with small peak memory (plan/schedule.cpp). Of bodies too.
void schedule(Graph&);
// Chooses kernels, writes the layers and lays out the arena. Refuses nodes without a kernel and Values
// without bound.
// `emitted`: what plans before this one have written to the same store, if it is made again.
// `threads`: that the layers of the graph itself (not of bodies) may be cut for; `spend`: memory, so that
// those run through several layers (plan/parallel_regions.h) and have their scratch where no other one has
// it.
Plan make_plan(const Graph&, const Target&, const Decisions&, WeightStore&, int threads = 1,
               bool spend = true, Emitted* emitted = nullptr);

// The most bytes that a Value takes; refuses one without a bound.
int64_t bound_bytes(const Value&);
// The layer of an If, Loop or Scan around the plans of its bodies (plan/control.cpp). Its text is written
// when the layers' functions are (emit/control.cpp). Up to `threads` share the iterations of a Loop or Scan
// that carries nothing: then it has a kPool parameter and a piece of scratch for each of them.
Layer control_layer(const Node&, const std::vector<Plan>& bodies, WeightStore&, const std::string& function,
                    int threads);

}  // namespace sinter
