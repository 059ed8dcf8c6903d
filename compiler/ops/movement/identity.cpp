// Operators that pass their input on: Identity, and Dropout as it is when nothing is trained.
#include <cstring>

#include "ops/op.h"

namespace sinter {
namespace {

void copy(Evaluation& e) {
  std::memcpy(e.out[0].mutable_data(), e.in[0].data(), static_cast<size_t>(e.in[0].bytes()));
}

void infer_identity(Inference& x) {
  x.require(size_of(x.dtype(0)) > 0, fmt::format("tensors of {} are not supported", name_of(x.dtype(0))));
  x.same(0, 0);
  if (auto e = x.elements(0); e && e->size() <= static_cast<size_t>(Fact::kMaxElements))
    x.out[0].elements = std::move(*e);
}

void infer_dropout(Inference& x) {
  x.require(is_float(x.dtype(0)), "only for floats");
  if (x.has(2)) {
    const auto training = x.integers(2);
    const bool off = training && training->size() == 1 && (*training)[0] == 0;
    const bool none = x.has(1) && x.in[1].data && x.in[1].data->size() == 1 && x.in[1].data->real(0) == 0;
    x.require(off || none, "training_mode must be false or the ratio 0: random masks are not supported");
  }
  x.same(0, 0);
  if (x.out.size() > 1 && x.out[1].present) x.set(1, DType::kBool, Shape(x.shape(0)));
}
void eval_dropout(Evaluation& e) {
  if (e.node.has_output(0)) copy(e);
  if (e.node.has_output(1))
    for (int64_t i = 0; i < e.out[1].size(); ++i) e.out[1].as<bool>()[i] = true;
}

}  // namespace

const std::vector<Op>& ops_identity() {
  static const std::vector<Op> table = {
      {.name = "Identity", .infer = infer_identity, .eval = copy, .is_view = true},
      // An Identity that is carried out: where a tensor must be in two places.
      {.name = "copy", .domain = "sinter", .infer = infer_identity, .eval = copy},
      {.name = "Dropout",
       .max_inputs = 3,
       .max_outputs = 2,
       .infer = infer_dropout,
       .eval = eval_dropout,
       .note = "inference only: the output is the input, the mask all true"},
  };
  return table;
}

}  // namespace sinter
