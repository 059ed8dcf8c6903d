// Views: Values that take no memory of their own, because they are a piece of another one.
//
// Five kinds. A Reshape (or its like) shows all of its input under another shape. A part is an output of
// Split, Slice or Gather that is one run of its input. A member is an input of Concat that is written
// straight to its place in the Concat's output. Parts and members exist only where the pieces are contiguous:
// along the outermost axis that is not 1. A channel part is an input of a Concat along the last axis whose
// writer leaves the room between its pixels that the others' channels take, or an output of Slice or Split
// along the last axis whose readers step over what lies between its pixels (plan/in_place.cpp). The rows of a
// window are those of the state that it is the last value of, the new ones behind them (plan/windows.cpp).
#pragma once
#include <map>
#include <set>

#include "plan/decision.h"

namespace sinter {

struct View {
  const Value* host = nullptr;  // whose elements are shown; itself where it is no view
  Dim shift;                    // the first of them, in elements
  bool piece = false;           // a part or a member is on the way: more than another shape
};

class Views {
 public:
  Views(const Graph&, const Decisions&);
  // The Value that has the memory, and where in it `v` begins.
  View of(const Value* v) const;
  const Value* host(const Value* v) const { return of(v).host; }
  // Whether all outputs of the node are where they belong without any code.
  bool needs_no_layer(const Node* n) const { return without_layer_.count(n) != 0; }

 private:
  void find_parts(const Node&);
  void find_members(const Node&);
  void find_window(const Node&);
  void find_channels(const Node&);
  void find_channel_parts(const Node&);
  std::map<const Value*, View> views_;
  std::set<const Node*> without_layer_;
  std::set<const Value*> fixed_;  // graph outputs and what they show: these stay where the caller wants them
};

// Gives every Concat that could be written in place by some of its inputs' layers a copy of each of the
// others, so that it needs no layer itself.
void separate_members(Graph&, const Decisions&);
// Whether the Concat's inputs lie behind each other in its output.
bool is_stacked_concat(const Node&, const Decisions&);
// Puts a layer before a Concat that copies one of its inputs; the Concat joins the copy instead.
void copy_part(Graph&, Node& concat, size_t input);

}  // namespace sinter
