// Bodies: the graphs inside If, Loop and Scan, and how their inputs and outputs are numbered.
//
// A body is closed: it uses Values of its own only. What a model's body takes from around it (a capture) is
// an input of the node, behind those that ONNX gives it, and an input of each of its bodies; constants are
// copied instead. So a body is a graph like any other, for passes, plan and interpreter alike.
//
// Input i of a Loop or Scan is input i of its body, and output i of the node belongs to output i of the body
// (Loop: i + 1, behind the condition). An If's body has the captures as inputs: input i is the node's i + 1.
#pragma once
#include "ops/op.h"

namespace sinter {

// The inputs and outputs of a Loop or Scan by their roles.
struct LoopForm {
  bool scan = false;
  size_t first = 0;     // node and body input where the states begin: 2 for Loop (trip count, condition)
  size_t states = 0;    // carried from one iteration to the next; node outputs 0 to states - 1
  size_t scanned = 0;   // Scan: inputs of which each iteration gets a slice, behind the states
  size_t captures = 0;  // behind those
  size_t results = 0;   // node outputs behind the states: one row for each iteration
  size_t body_output(size_t node_output) const { return node_output + (scan ? 0 : 1); }
};
// Refuses a node whose numbers do not fit together.
LoopForm loop_form(const Node&);
bool is_control(const Node&);  // If, Loop or Scan

// Whether a condition is a constant that holds.
bool is_true(const Value& condition);

// Makes the bodies of `node`, which is in `g`, closed: see above. Once, when the node is made.
void close_bodies(Graph& g, Node& node);
// Lists that a Loop's body appends one element to, in each iteration, become results of the Loop: their rows
// are written where they stay, and nothing is copied from one iteration to the next. Before the node is
// inferred; its inputs are typed.
void append_in_place(Graph& g, Node& loop);
// Puts branch `k` of an If into `g` in place of the node, which is left without uses.
void inline_branch(Graph& g, Node& node, size_t k);
// The branch that an If is known to take; -1 where that is not known.
int known_branch(const Node& node);
// Removes body inputs that nobody reads, with the node's captures.
bool drop_unused_captures(Graph& g, Node& node);

// For infer: types the body's inputs from the node's facts, beginning with input `first` of the node, and
// infers the body.
void set_input(Value& v, const Fact& f);
// An extent as it is seen outside of the body, of output `i`, axis `axis`: `d` itself where it depends on
// nothing that only the body knows, else a Symbol in `range` that the node reports.
Dim border(Inference& x, size_t i, size_t axis, const Dim& d, Interval range);
// An extent that nothing outside knows, for border().
Dim unknown_extent(Interval range, const std::string& id = "unknown");
// Whether `d` is known around the node: made of symbols of the caller and of the node's inputs.
bool known_outside(const Inference& x, const Dim& d);

}  // namespace sinter
