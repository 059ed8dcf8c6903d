// Decision: what the planner has settled of a node, as data. Decisions: the table of them, which the Plan
// owns.
//
// A graph says what is computed and how its arithmetic may be rearranged (Node::freedom). What of that is
// used, and where the layer's tensors lie, is decided afterwards by the steps of plan/: they write here,
// never on the nodes; kernels and the emitter read. A node that no step has spoken of has the default
// Decision: every tensor dense and whole, every algorithm that its freedom allows, weights as packed for
// speed.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "targets/target.h"

namespace sinter {

// A layer that runs together with those around it, a few rows at a time (plan/strips.h).
struct RowTile {
  int64_t group = 0;         // the number of the layers that run together
  int64_t work_items = 1;    // threads that share the tiles, each with buffers of its own
  bool reads_rows = false;   // its input is a buffer of rows
  bool writes_rows = false;  // its output is one, of `bytes` for each work item
  int64_t bytes = 0;
  int64_t rows = 0;  // of the group's last layer: rows of its result at a time
  bool operator==(const RowTile&) const = default;
};

// Limits of an algorithm that a node's freedom allows.
struct Limit {
  bool allowed = true;
  int64_t bytes = INT64_MAX;  // of scratch: the arena's budget (plan/budget.cpp)
  bool tuned = false;         // a measurement has chosen it: it is taken wherever it is possible
  bool operator==(const Limit&) const = default;
};

struct WinogradLimit : Limit {
  // Measured: outputs along an axis of a square tile, or along a line; 0: the model chooses, kNoTile: none.
  int64_t tile = 0;
  static constexpr int64_t kNoTile = 1;
  bool operator==(const WinogradLimit&) const = default;
};

struct StrassenLimit : Limit {
  int levels = 2;  // at most; where `tuned`, this many
  bool operator==(const StrassenLimit&) const = default;
};

// How a layer's constant weights are stored, and where they are when it runs.
struct WeightDecision {
  // What they may take where an algorithm makes them larger: the budget of weights (plan/small_weights.cpp).
  int64_t most = INT64_MAX;
  bool near = false;        // all weights of the net stay in the third-level cache for one thread
  bool stay = false;        // ... for several
  bool split = false;       // as the parts that tile matrices multiply (runtime/sinter/amx.h)
  bool short_rows = false;  // without the lanes that the last vector has no channels for
  bool half = false;        // floats that are 16-bit floats in 16 bits, widened a panel at a time
  bool operator==(const WeightDecision&) const = default;
};

struct Decision {
  // --- where tensors lie (plan/in_place.cpp)
  // Channels from one pixel of the first output to the next, where it is a part of another Value's.
  std::optional<int64_t> pixel_stride;
  bool reads_nchw = false;  // the picture's planes, as the caller has them
  // The picture's pieces, where it is read before they are joined: how many of its pixels, down and across,
  // each one's stand for. Empty: it is read as it is.
  std::vector<int64_t> piece_times;
  bool in_place = false;  // the outputs lie where they belong without a layer
  std::optional<RowTile> row_tile;
  // --- how it is computed
  WinogradLimit winograd;
  StrassenLimit strassen;
  Limit tile_matrices;
  WeightDecision weights;
  bool operator==(const Decision&) const = default;
};

// What of it is not the default, for people: "pixel_stride 64, rows 4 of group 2". Empty: all is.
std::string text(const Decision&);

class Decisions {
 public:
  const Decision& of(const Node& n) const {
    const auto at = table_.find(&n);
    return at == table_.end() ? default_ : at->second;
  }
  Decision& change(const Node& n) { return table_[&n]; }

  // Channels from one pixel of a channels-last Value to the next: all that it has, or the pixel_stride of the
  // node that makes it.
  Dim pixel_stride(const Value&) const;
  bool has_gaps(const Value&) const;   // whether there are others' channels between its pixels
  bool reads_gaps(const Node&) const;  // ... of some input of the node
  // Whether the node reads its picture and writes its result as a whole, channels last.
  bool is_whole(const Node&) const;

  // The greatest error that a faster algorithm makes with these weights, measured once by `measure` for each
  // tensor of weights and algorithm (`key`: what it depends on beside them).
  template <class F>
  double error(const void* weights, const std::string& key, F measure) const {
    const auto [at, fresh] = errors_.try_emplace({weights, key}, 0.0);
    if (fresh) at->second = measure();
    return at->second;
  }

 private:
  std::unordered_map<const Node*, Decision> table_;
  Decision default_;
  struct Measured {
    const void* weights;
    std::string key;
    bool operator==(const Measured&) const = default;
  };
  struct Hash {
    size_t operator()(const Measured& m) const {
      return std::hash<const void*>()(m.weights) ^ std::hash<std::string>()(m.key);
    }
  };
  mutable std::unordered_map<Measured, double, Hash> errors_;
};

// A picture that is read before its channels are joined (Concat) or its pixels doubled (Resize).
struct PicturePiece {
  const Value* value;  // [N][H / times][W / times][channels]
  int64_t channels, times;
  const Node* resize;  // what repeats its pixels; null where times is 1
};
std::vector<PicturePiece> picture_pieces(const Decisions&, const Node&);  // none where it is read as it is

// What a kernel chooses by: the processor, and what has been decided so far.
struct Context {
  const Target& target;
  const Decisions& decisions;
  const Decision& of(const Node& n) const { return decisions.of(n); }
};

}  // namespace sinter
