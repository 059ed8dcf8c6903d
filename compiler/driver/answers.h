// --post: outputs that are answers. Nodes behind the model's own outputs make them, so that all commands, and
// verify's meaning, see the answers.
#pragma once
#include <string>
#include <vector>

#include "driver/answer_words.h"
#include "driver/options.h"
#include "plan/state.h"

namespace sinter {

// What --post says, of the outputs that are wanted. UsageError where words name none, or one twice.
std::vector<AnswerWords> answers_of(const ModelOptions& o);

// Replaces the outputs that the answers are of; `states` follow the numbers of the others. `frames`: as they
// have been added. UsageError where an output has not the form that the words need.
void add_answers(Graph& g, const std::vector<AnswerWords>& answers, const std::vector<FrameWords>& frames,
                 const ModelOptions& o, StateLinks& states);

}  // namespace sinter
