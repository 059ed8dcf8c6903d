// Loop and Scan; see control_loop.cpp. The table of operators is in control.cpp.
#pragma once
#include "ops/op.h"

namespace sinter {

void infer_loop(Inference&);
void eval_loop(Evaluation&);
void infer_scan(Inference&);
void eval_scan(Evaluation&);

// After how many iterations the condition of a Loop ends it, where that is known before the model runs, its
// trip count (input 0) left aside; counted_loop.cpp.
std::optional<int64_t> counted_trips(const Node& loop);

}  // namespace sinter
