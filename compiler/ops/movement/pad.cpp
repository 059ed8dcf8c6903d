// Pad: rows before and behind each axis, filled with a constant, mirrored without the border (reflect),
// repeated border (edge) or the other end (wrap). Negative pads crop; cropping comes first.
#include <algorithm>
#include <numeric>

#include "ops/movement/movement.h"

namespace sinter {
namespace {

std::vector<int64_t> padded_axes(const Inference& x, int64_t pads) {
  std::vector<int64_t> axes(x.shape(0).size());
  std::iota(axes.begin(), axes.end(), 0);
  if (x.has(3)) {
    operand_length(x, 3, "axes");
    axes = distinct_axes(x, known_integers(x, 3, "axes"), x.rank(0));
  }
  x.require(pads == 2 * static_cast<int64_t>(axes.size()),
            fmt::format("{} pads for {} axes", pads, axes.size()));
  return axes;
}

// Pads or axes that the run tells: only the model's declaration bounds the result.
void padded_by_data(Inference& x) {
  if (x.has(3))
    x.require(operand_length(x, 3, "axes") * 2 == operand_length(x, 1, "pads"),
              "its pads are not two an axis");
  Shape out;
  for (size_t a = 0; a < x.shape(0).size(); ++a) out.push_back(x.operand_extent(fmt::format("axis{}", a)));
  x.set(0, x.dtype(0), std::move(out));
}

void infer(Inference& x) {
  const std::string mode = x.attributes().text("mode", "constant");
  x.require(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap",
            "its mode is " + sinter::quoted(mode));
  const int64_t count = operand_length(x, 1, "pads");
  if ((x.has(3) && !x.integers(3)) || !x.elements(1)) return padded_by_data(x);
  const std::vector<int64_t> axes = padded_axes(x, count);
  if (x.has(2)) {
    x.require(x.dtype(2) == x.dtype(0), "its constant_value is of another type");
    x.require(product(x.shape(2)).is(1), "its constant_value must be one element");
  }
  const std::vector<Dim> pads = known_elements(x, 1, "pads");
  Shape out = x.shape(0);
  for (size_t k = 0; k < axes.size(); ++k) {
    Dim& d = out[static_cast<size_t>(axes[k])];
    const Dim &before = pads[k], &after = pads[k + axes.size()];
    const Dim padded = d + before + after;
    x.require(padded.hi() >= 0, fmt::format("its pads crop axis {} to {}", axes[k], padded.text()));
    if (padded.lo() < 0 && d.lo() >= 0) require_le(x, 0, padded, fmt::format("extent of axis {}", axes[k]));
    if (mode != "constant" && (before.hi() > 0 || after.hi() > 0)) {
      const Dim left = d + min(before, 0) + min(after, 0);
      require_le(x, 1, left, fmt::format("rows of axis {} to pad from", axes[k]));
    }
    d = padded;
  }
  x.set(0, x.dtype(0), std::move(out));
  if (mode == "constant" && x.has(2))
    propagate_moved(x, {0, 2});
  else
    propagate_moved(x, {0});
}

// Row i of n, where i may lie outside.
int64_t source_row(const std::string& mode, int64_t i, int64_t n) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, n - 1);
  const int64_t period = mode == "wrap" ? n : std::max<int64_t>(2 * (n - 1), 1);
  const int64_t r = (i % period + period) % period;
  return mode == "wrap" || r < n ? r : period - r;
}

struct AxisPad {
  int64_t before = 0, after = 0;
};

void pad_constant(Evaluation& e, const std::vector<AxisPad>& pads) {
  const Tensor& in = e.in[0];
  Tensor& out = e.out[0];
  if (e.has(2)) fill_with(out, e.in[2], 0);
  const std::vector<int64_t> from = row_major_strides(in.shape()), to = row_major_strides(out.shape());
  std::vector<int64_t> extents;
  int64_t source = 0, target = 0;
  for (size_t d = 0; d < pads.size(); ++d) {
    const int64_t first = std::max<int64_t>(0, -pads[d].before);  // in the input
    const int64_t last = in.shape()[d] - std::max<int64_t>(0, -pads[d].after);
    if (last <= first) return;
    source += first * from[d];
    target += (first + pads[d].before) * to[d];
    extents.push_back(last - first);
  }
  copy_strided(in, source, from, out, target, to, extents);
}

void eval(Evaluation& e) {
  const Tensor& in = e.in[0];
  const std::string mode = e.attributes().text("mode", "constant");
  const int64_t n = e.in[1].size() / 2;
  std::vector<AxisPad> pads(in.shape().size());
  for (int64_t k = 0; k < n; ++k) {
    const int64_t axis = e.has(3) ? e.in[3].integer(k) : k;
    pads[static_cast<size_t>(axis < 0 ? axis + in.rank() : axis)] = {e.in[1].integer(k),
                                                                     e.in[1].integer(k + n)};
  }
  if (mode == "constant") return pad_constant(e, pads);
  const std::vector<int64_t> strides = row_major_strides(in.shape());
  std::vector<std::vector<int64_t>> maps(pads.size());
  for (size_t d = 0; d < pads.size(); ++d) {
    const int64_t crop = std::max<int64_t>(0, -pads[d].before);
    const int64_t rows = in.shape()[d] - crop - std::max<int64_t>(0, -pads[d].after);
    for (int64_t i = 0; i < e.out[0].shape()[d]; ++i)
      maps[d].push_back((crop + source_row(mode, i - std::max<int64_t>(pads[d].before, 0), rows)) *
                        strides[d]);
  }
  copy_mapped(in, maps, e.out[0]);
}

}  // namespace

const std::vector<Op>& ops_pad() {
  static const std::vector<Op> table = {
      {.name = "Pad", .min_inputs = 2, .max_inputs = 4, .infer = infer, .eval = eval}};
  return table;
}

}  // namespace sinter
