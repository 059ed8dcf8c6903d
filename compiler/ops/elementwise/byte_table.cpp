// byte_table: a function of bytes as the table of its 256 results. Pass tabulate_bytes makes these.
//
// Inputs: bytes (uint8 or int8) and a constant table [256] of bytes, by the bits of its argument.
#include "ops/op.h"

namespace sinter {
namespace {

void infer_table(Inference& x) {
  x.require(size_of(x.dtype(0)) == 1 && size_of(x.dtype(1)) == 1, "it takes bytes and a table of bytes");
  x.require(x.rank(1) == 1 && x.shape(1)[0].is(256), "its table has no 256 elements");
  x.set(0, x.dtype(1), x.shape(0));
}

void eval_table(Evaluation& e) {
  const auto* table = e.in[1].as<uint8_t>();
  for (int64_t i = 0; i < e.in[0].size(); ++i) e.out[0].as<uint8_t>()[i] = table[e.in[0].as<uint8_t>()[i]];
}

}  // namespace

const std::vector<Op>& ops_byte_table() {
  static const std::vector<Op> table = {
      {.name = "byte_table",
       .domain = "sinter",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_table,
       .eval = eval_table,
       .note = "made by fusion"},
  };
  return table;
}

}  // namespace sinter
