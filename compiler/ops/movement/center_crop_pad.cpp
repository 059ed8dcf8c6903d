// CenterCropPad: crops or zero-pads each of some axes around its middle to a wanted extent (opset 18).
//
// Cropping from n to m drops (n - m) / 2 rows in front, padding puts (m - n) / 2 there; both round down, so
// that an odd row is taken from, or put, behind.
#include <numeric>

#include "ops/movement/movement.h"

namespace sinter {
namespace {

std::vector<int64_t> axes_of(const Attributes& attributes, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return attributes.integers("axes", axes);
}

void infer(Inference& x) {
  require_index_type(x, 1, "shape");
  const std::vector<int64_t> axes = distinct_axes(x, axes_of(x.attributes(), x.rank(0)), x.rank(0));
  const int64_t n = operand_length(x, 1, "shape");
  x.require(n == static_cast<int64_t>(axes.size()), fmt::format("{} extents for {} axes", n, axes.size()));
  const std::vector<Dim> wanted = known_elements(x, 1, "shape");
  Shape out = x.shape(0);
  for (size_t k = 0; k < axes.size(); ++k) {
    x.require(wanted[k].hi() >= 0, fmt::format("its shape has the negative extent {}", wanted[k].text()));
    out[static_cast<size_t>(axes[k])] = wanted[k];
  }
  x.set(0, x.dtype(0), std::move(out));
  propagate_moved(x, {0});
}

void eval(Evaluation& e) {
  const Tensor& in = e.in[0];
  Tensor& out = e.out[0];
  const std::vector<int64_t> from = row_major_strides(in.shape()), to = row_major_strides(out.shape());
  std::vector<int64_t> extents;
  int64_t source = 0, target = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    const int64_t n = in.shape()[d], m = out.shape()[d];
    source += std::max<int64_t>(n - m, 0) / 2 * from[d];
    target += std::max<int64_t>(m - n, 0) / 2 * to[d];
    extents.push_back(std::min(n, m));
  }
  copy_strided(in, source, from, out, target, to, extents);
}

}  // namespace

const std::vector<Op>& ops_center_crop_pad() {
  static const std::vector<Op> table = {
      {.name = "CenterCropPad", .min_inputs = 2, .max_inputs = 2, .infer = infer, .eval = eval}};
  return table;
}

}  // namespace sinter
