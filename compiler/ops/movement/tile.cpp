// Tile: the tensor repeated along each axis, repeats[d] times.
#include "ops/movement/movement.h"

namespace sinter {
namespace {

void infer(Inference& x) {
  const int64_t n = operand_length(x, 1, "repeats");
  x.require(n == x.rank(0), fmt::format("{} repeats for {}", n, text(x.shape(0))));
  const std::vector<Dim> repeats = known_elements(x, 1, "repeats");
  Shape out = x.shape(0);
  for (size_t d = 0; d < out.size(); ++d) {
    x.require(repeats[d].hi() >= 0, fmt::format("axis {} is repeated {} times", d, repeats[d].text()));
    out[d] = out[d] * repeats[d];
  }
  x.set(0, x.dtype(0), std::move(out));
  propagate_moved(x, {0});
}

// The output as [repeats0, extent0, repeats1, extent1, …]: repeats have stride 0 in the input.
void eval(Evaluation& e) {
  const Tensor& in = e.in[0];
  const std::vector<int64_t> dense = row_major_strides(in.shape());
  std::vector<int64_t> extents, strides;
  for (size_t d = 0; d < dense.size(); ++d) {
    extents.push_back(e.in[1].integer(static_cast<int64_t>(d)));
    extents.push_back(in.shape()[d]);
    strides.push_back(0);
    strides.push_back(dense[d]);
  }
  copy_strided(in, 0, strides, e.out[0], 0, row_major_strides(extents), extents);
}

}  // namespace

const std::vector<Op>& ops_tile() {
  static const std::vector<Op> table = {
      {.name = "Tile", .min_inputs = 2, .max_inputs = 2, .infer = infer, .eval = eval}};
  return table;
}

}  // namespace sinter
