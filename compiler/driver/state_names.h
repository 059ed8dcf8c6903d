// --state: which output of a run is which input of the next, by the model's names.
#pragma once
#include <string>
#include <vector>

#include "driver/options.h"
#include "plan/state.h"

namespace sinter {

struct StateName {
  std::string output, input;
};

// What the options of --state name, in their order. OUT=IN and IN=OUT mean the same, as the names tell them
// apart; of two names that are both an input and an output, the first one is the output. With one star on
// each side, all pairs that differ in it are meant. Refusal where a name is unknown or comes up twice, or a
// pattern has no pair; UsageError where the text has not that form. Nothing of a model that can't be read.
std::vector<StateName> state_names(const ModelOptions& o, const ImportOptions& import);

std::vector<DeclaredInput> without_states(std::vector<DeclaredInput> inputs,
                                          const std::vector<StateName>& states);

// The same as numbers of the imported graph's outputs and inputs.
StateLinks state_links(const Graph& g, const ModelOptions& o, const ImportOptions& import);

}  // namespace sinter
