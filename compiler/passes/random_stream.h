// A stream of random numbers (--random state): what random operators draw from when runs shall differ.
//
// A stream is two words, a seed of the caller's and how many runs there were, in the caller's state like any
// other state. Each random node reads it and makes its numbers of the two words and of its own number in the
// model (runtime/sinter/random.h), so nothing depends on the order in which layers run. One layer writes the
// next run's words.
//
// In a Loop or Scan, each iteration draws from another place: the stream is a value that the Loop carries,
// with a seed that random_stream makes of the outer stream and of the Loop's own number.
//
// The two words lie in the state in front of all others, at a place that no target's plan changes, twice
// (they are slots in turn): NAME_seed writes both.
#pragma once
#include "ir/graph.h"

namespace sinter {

// Lets all random nodes draw from a stream: the last input of the graph, whose next value is the last output.
// Whether there are any.
bool draw_from_stream(Graph&);

}  // namespace sinter
