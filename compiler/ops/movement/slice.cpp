// Slice: elements start, start + step, … before end along some axes, clamped as Python's slices are.
//
// Positions may be symbolic: movement.h has their arithmetic. A part whose bounds are only known at run time
// is a count of at most the axis.
#include <numeric>

#include "ops/movement/movement.h"

namespace sinter {
namespace {

// Axis `axis` of extent `extent`, as far as k-th starts, ends and steps are known.
Dim sliced(Inference& x, const Dim& extent, int64_t axis, const Dim* start, const Dim* end, const Dim* step) {
  const bool stepped = step && step->is_static();
  if (stepped) x.require(!step->is(0), "a step is 0");
  if (stepped && start && end)
    if (const auto part = slice_extent(extent, *start, *end, step->value())) return *part;
  const int64_t s = stepped ? step->value() : 1;
  const int64_t stride = s == INT64_MIN ? INT64_MAX : s < 0 ? -s : s;
  const Dim most = stride == 1 || stride > INT32_MAX ? extent : ceildiv(extent, stride);
  return x.count(fmt::format("axis{}", axis), most);
}

void infer(Inference& x) {
  const int64_t n = operand_length(x, 1, "starts");
  x.require(operand_length(x, 2, "ends") == n, "its starts and ends differ in number");
  const auto starts = x.elements(1), ends = x.elements(2);
  std::vector<int64_t> axes(static_cast<size_t>(n));
  std::iota(axes.begin(), axes.end(), 0);
  if (x.has(3)) {
    x.require(operand_length(x, 3, "axes") == n, "its starts and axes differ in number");
    if (!x.integers(3)) {  // any axis may be the one that is cut
      Shape out;
      for (size_t a = 0; a < x.shape(0).size(); ++a)
        out.push_back(x.operand_extent(fmt::format("axis{}", a), x.shape(0)[a].hi()));
      return x.set(0, x.dtype(0), std::move(out));
    }
    axes = known_integers(x, 3, "axes");
  }
  axes = distinct_axes(x, std::move(axes), x.rank(0));
  std::optional<std::vector<Dim>> steps(std::vector<Dim>(static_cast<size_t>(n), Dim(1)));
  if (x.has(4)) {
    x.require(operand_length(x, 4, "steps") == n, "its starts and steps differ in number");
    steps = x.elements(4);
  }
  Shape out = x.shape(0);
  for (size_t k = 0; k < axes.size(); ++k) {
    Dim& d = out[static_cast<size_t>(axes[k])];
    d = sliced(x, d, axes[k], starts ? &(*starts)[k] : nullptr, ends ? &(*ends)[k] : nullptr,
               steps ? &(*steps)[k] : nullptr);
  }
  x.set(0, x.dtype(0), std::move(out));
  propagate_moved(x, {0});
}

void eval(Evaluation& e) {
  const Tensor& in = e.in[0];
  std::vector<int64_t> strides = row_major_strides(in.shape());
  int64_t offset = 0;
  for (int64_t k = 0; k < e.in[1].size(); ++k) {
    int64_t axis = e.has(3) ? e.in[3].integer(k) : k;
    if (axis < 0) axis += in.rank();
    const auto d = static_cast<size_t>(axis);
    const int64_t step = e.has(4) ? e.in[4].integer(k) : 1;
    offset += slice_start(in.shape()[d], e.in[1].integer(k), step)->value() * strides[d];
    // With one element left the step, however long, is not taken.
    strides[d] = e.out[0].shape()[d] > 1 ? strides[d] * step : 0;
  }
  copy_strided(in, offset, strides, e.out[0]);
}

}  // namespace

const std::vector<Op>& ops_slice() {
  static const std::vector<Op> table = {
      {.name = "Slice", .min_inputs = 3, .max_inputs = 5, .infer = infer, .eval = eval}};
  return table;
}

}  // namespace sinter
