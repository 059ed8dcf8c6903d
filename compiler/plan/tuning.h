// Decisions that were measured instead of modelled: how a layer is computed, by what the layer is.
//
// A layer is described in words that are the same in every model (operator, extents, window, types), so that
// what was measured in one net serves another. What can be decided: whether a convolution goes by Winograd,
// with which tile, whether a product of matrices goes by Strassen, and whether layers run in strips. The
// error limits and the arena's budget hold for tuned choices too: one that they forbid is not taken.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace sinter {

using Tuning = std::map<std::string, std::string>;  // layer in words -> one of its choices

struct TuningCandidate {
  std::string layer;
  std::vector<std::string> choices;  // "direct", "strassen", "strassen 2", "amx", "winograd 2" to
                                     // "winograd 7"; "strips", "apart"
};

bool is_tuning_choice(const std::string& choice);
// Changes with what kernels there are: a measurement is of use to those that it was made with.
std::string kernel_table_version();

// Layers that run in strips, or one, in words.
std::string tuning_layer(const std::vector<const Node*>& layers);
// What of a plan could be decided otherwise, each layer once, in the plan's order.
std::vector<TuningCandidate> tuning_candidates(const Plan&);
// Decides for the layers of `g` (not of its bodies) that `tuning` knows by which algorithm they are computed.
// make_strips looks for the others.
void apply_tuning(const Graph& g, const Tuning& tuning, Decisions&);

}  // namespace sinter
