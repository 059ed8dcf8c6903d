// Loop and Scan; see control_loop.cpp. The table of operators is in control.cpp.
#pragma once
#include "ops/op.h"

namespace sinter {

void infer_loop(Inference&);
void eval_loop(Evaluation&);
void infer_scan(Inference&);
void eval_scan(Evaluation&);

}  // namespace sinter
