// reveal: a small list of integers, its elements known as symbols from here on.
//
// Made by import for operands that decide extents and are inputs of the model. Attributes, one entry an
// element: `open` 1 where the element is a symbol, else it is `values`; `negative` 1 where elements may be
// below 0. The value is the input's.
#include "ops/op.h"

namespace sinter {
namespace {

void infer(Inference& x) {
  x.same(0, 0);
  const std::vector<int64_t> values = x.attributes().integers("values"),
                             open = x.attributes().integers("open");
  const bool negative = x.attributes().integer("negative", 0) != 0;
  for (size_t k = 0; k < values.size(); ++k) {
    if (!open[k]) {
      x.out[0].elements.push_back(values[k]);
      continue;
    }
    const Interval range{negative ? -Interval::kUnbounded : 0, Interval::kUnbounded};
    x.out[0].elements.push_back(
        Dim(x.symbols.fresh(fmt::format("{}_{}", x.node.name, k), range,
                            fmt::format("element {} of {}", k, label(x.node)), true, 1, true)));
  }
}

void eval(Evaluation& e) { e.out[0] = e.in[0]; }

}  // namespace

const std::vector<Op>& ops_reveal() {
  static const std::vector<Op> table = {
      {.name = "reveal", .domain = "sinter", .infer = infer, .eval = eval, .note = "made by import"}};
  return table;
}

}  // namespace sinter
