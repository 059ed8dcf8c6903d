// Growth: states that get longer with each run, as the cache of a decoder does: `past` has P rows, `present`
// P and S, of which S are new.
//
// P is then told by no input of the caller's. It is a state itself: an integer that begins with 0 and to
// which each run adds S. count_rows() puts it into the graph as an input and an output of its own, linked
// like any other state; NAME_run reads the extent P from it, and returns NAME_E_CAPACITY before anything is
// written where P and S are more than the bound of P (--dim "P=0..MAX"), the rows that the buffer has room
// for.
//
// A mask that is an input has a length of its own in the model, as exporters know no sums of extents. Where
// it is broadcast with the rows of a cache, its length becomes theirs; NAME_run compares.
//
// Where the layers can use a cache that has all its rows from the beginning, store_rows() makes it one: new
// rows are written at their place (TensorScatter), and attention reads as many rows as are valid. All else
// works as for other states: the model joins old and new rows in the other slot.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/state.h"

namespace sinter {

struct Growth {
  size_t axis;
  SymbolPtr rows;  // before the run
  Dim next;        // after it
  // next - rows: a number, or the extent of an input. Where the model writes fewer rows in some runs (those
  // that a length of the sequence doesn't reach), such runs are errors.
  Dim step;
  const Value* told = nullptr;  // the input that tells it, where it is none
  size_t told_axis = 0;
};

// How a link grows; empty: it does not, or not in that way.
std::optional<Growth> growth_of(const Graph&, const StateLinks&, const StateLink&);
// Adds the counts of rows of all that grows to the graph and to its links, and gives masks their length.
void count_rows(Graph&, StateLinks&);

// A state that counts rows: the extent that it tells and what it is after the run.
struct RowCount {
  SymbolPtr rows;
  Dim next;
};
std::optional<RowCount> row_count(const Graph&, const StateLink&);

// Caches that attention reads, by Attention's own past or joined by Concat, get all their rows, and new ones
// are written at their place.
void store_rows(Graph&, const StateLinks&);
// Caches that are written in place become halves (type "f16") or bytes with a scale for each row ("int8");
// "f32": they stay. Refuses what is a cache and can't.
void narrow_caches(Graph&, const StateLinks&, const std::string& type);

}  // namespace sinter
