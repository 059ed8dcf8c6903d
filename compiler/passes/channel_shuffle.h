// The channel shuffle of ShuffleNets, which exporters write as Reshape, Transpose, Reshape: [N, g*c, S..] to
// [N, g, c, S..] to [N, c, g, S..] and back to [N, c*g, S..].
//
// In between the tensor has another rank, so that no arrangement fits all of it; as one node, a Gather of
// channels, it goes with any. choose_layout gathers shuffles before it decides and spreads them again after.
#pragma once
#include <vector>

#include "ir/graph.h"

namespace sinter {

struct ChannelShuffle {
  Node* gather;
  int64_t groups;
};

// Replaces every shuffle by a Gather along axis 1.
std::vector<ChannelShuffle> gather_shuffles(Graph& g);
// Back to Reshape, Transpose, Reshape, along the axis that the Gather has now.
void spread_shuffles(Graph& g, const std::vector<ChannelShuffle>& shuffles);

}  // namespace sinter
