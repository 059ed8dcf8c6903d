// elementwise: a node that is nothing but its epilogue.
//
// Pass fuse_elementwise makes these: all inputs are operands of the expression (anchor_inputs is 0), the one
// output has the shape they broadcast to. Inference and evaluation follow from the expression alone
// (infer.cpp, evaluate.cpp), so both functions here are empty.
#include "ops/op.h"

namespace sinter {

const std::vector<Op>& ops_fused() {
  static const std::vector<Op> table = {
      {.name = "elementwise",
       .domain = "sinter",
       .min_inputs = 0,
       .max_inputs = -1,
       .infer = [](Inference&) {},
       .note = "made by fusion"},
  };
  return table;
}

}  // namespace sinter
