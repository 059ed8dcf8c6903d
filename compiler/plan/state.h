// State: what one run leaves for the next, in a buffer of the caller's.
//
// A link says that output `output` of a run is input `input` of the next; the caller sees neither. Where the
// tensors of all links lie, StatePlan says, in bytes of that buffer.
//
// Links are grouped in rings. In the plainest ring there is one link and one slot: the new value is written
// over the old one, because no layer reads that any more (or an output is its own input, and nothing is
// written at all). Where some layer still does, the ring has two slots, which change their roles from run to
// run: a count of the runs, the buffer's first word, says which one is the value and which one is written.
// Where an output is the input of another link (a line of delays, or two that swap), nobody moves the
// tensors either: the links share a ring, and with each run all take one step along it. So nothing is ever
// copied for a state that the model itself does not copy.
//
//   slot of link k of a ring with M slots, in run r:  (place of k + r) mod M;  its next value: one further
//
// A stream begins with zeros, or with what Value::initial of a link's input says.
//
// Extents of states that inputs leave free must be the same in every run; they are words of the buffer, too.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sinter {

struct Plan;
class Decisions;

// A box of a state of the model that is a state of its own (plan/state_pieces.cpp).
struct StatePiece {
  std::string of;                       // the model's input
  std::vector<int64_t> whole;           // its extents
  std::vector<int64_t> begin, extents;  // the box, by axis
};

struct StateLink {
  size_t output, input;                 // of the graph's outputs and inputs
  std::string output_name, input_name;  // in the model
  std::vector<std::string> grown{};     // of a count of rows: the inputs of the states that have so many
  bool random = false;                  // a stream of random numbers (passes/random_stream.h)
  std::optional<StatePiece> piece{};
};
using StateLinks = std::vector<StateLink>;

// A state that is the last rows of a longer buffer (plan/windows.cpp): each run reads its rows, from `word`
// on counted, and writes `step` new ones behind them, so that the next run's rows begin so much later. Only
// where the buffer ends, the rows that stay are moved back to its beginning.
struct StateWindow {
  int64_t rows, room;  // of the state, of the buffer
  int64_t row_bytes;
  Dim step;
  size_t word;  // of the caller's buffer: rows in front of the window
  bool operator==(const StateWindow&) const = default;
};

struct StateRing {
  int64_t slots = 1, slot_bytes = 0;
  int64_t offset = 0;  // of the first slot, in the caller's buffer
  std::optional<StateWindow> window{};
};

struct State {
  StateLink link;
  size_t ring;    // of StatePlan::rings
  int64_t place;  // its slot in the first run
  bool kept;      // the output is the input itself
};

struct StatePlan {
  std::vector<State> states;
  std::vector<StateRing> rings;
  std::vector<SymbolPtr> extents;  // word k + 1 of the buffer is 0, or that extent and 1
  int64_t bytes = 0;               // of the buffer
  bool empty() const { return states.empty(); }
  bool turns() const;  // whether any ring has several slots: word 0 counts the runs
  const State* of_input(size_t input) const;
  const State* of_output(size_t output) const;
  const State* random() const;  // the stream of random numbers; null: there is none
};

// Refuses links whose output and input differ in type or shape, or whose extents no other input tells.
void check_states(const Graph&, const StateLinks&);
// Refuses values that a state can't begin with; leaves out those that are zeros.
void check_initial(Graph&, const StateLinks&);
// Makes several states of one whose boxes are read and written apart from each other.
void split_states(Graph&, StateLinks&);
// What of a tensor of the whole state is the piece, with the box's extents.
Tensor cut(const Tensor& whole, const StatePiece&);
// For each link, the one whose input its output shows (itself, where a state is kept); each shows up once.
// The copies that separate_outputs would make of these outputs are not needed.
std::vector<std::optional<size_t>> passed_on(const Graph&, const StateLinks&);
// Lets states that are windows of rows slide in place, where all that read the rows can read them there:
// marks the Concat of old and new rows and the Slice of those that stay with Decision::in_place.
void slide_windows(Graph&, const StateLinks&, Decisions&);
// What a link is that slides, without its word; nothing: it doesn't.
std::optional<StateWindow> window_of(const Graph&, const Decisions&, const StateLink&);
// For a plan whose places are settled.
StatePlan plan_states(const Graph&, const Plan&, const StateLinks&);
// What becomes of it, for people: "in place", "kept", "slot 1 of 2 in turn".
std::string text(const StatePlan&, const State&);
// "begins with 0.5", "begins with values of its own"; empty: with zeros.
std::string beginning(const Graph&, const State&);

}  // namespace sinter
