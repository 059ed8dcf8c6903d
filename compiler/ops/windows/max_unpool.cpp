// MaxUnpool (ONNX MaxUnpool-22): puts each element of X where its index says, 0 elsewhere.
//
// Indices count the elements of the result, as ONNX Runtime and PyTorch have it: of a tensor that was pooled,
// that is the one before. ONNX's own examples count those of the tensor that kernel, strides and pads imply,
// [N, C, (in-1)*stride + kernel - pads], which an output_shape that is larger holds at its beginning along
// every axis. Where both would do, what lies in the windows decides (runtime/sinter/unpool.h).
#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

void infer(Inference& x) {
  const Attributes& a = x.attributes();
  x.require(is_float(x.dtype(0)), fmt::format("only for floats, not {}", name_of(x.dtype(0))));
  x.require(x.dtype(1) == DType::kI64, "the indices are not int64");
  x.require(x.rank(0) >= 3, fmt::format("input {}: N, C and a spatial axis are needed", text(x.shape(0))));
  x.require(x.rank(1) == x.rank(0), "the indices have another shape than the input");
  for (size_t i = 0; i < x.shape(0).size(); ++i)
    x.require_equal(x.shape(0)[i], x.shape(1)[i], "shape of the indices = shape of the input");
  x.require(!a.integers("kernel_shape").empty(), "kernel_shape is missing");
  const Window w = window_of(a, WindowKind::kUnpool, a.integers("kernel_shape"), spatial_of(a, x.shape(0)));
  check_window(x, w);
  Shape implied = with_channels(a, x.shape(0)[0], x.shape(0)[1], w.out);
  if (x.has(2)) {
    x.require(x.dtype(2) == DType::kI64 && x.rank(2) == 1, "output_shape is not a list of int64");
    const auto given = x.elements(2);
    x.require(given.has_value(), "output_shape is not known before the model runs");
    x.require(given->size() == implied.size(),
              fmt::format("output_shape has {} entries for {} axes", given->size(), implied.size()));
    for (size_t i = 0; i < implied.size(); ++i) {
      const Dim spare = (*given)[i] - implied[i];
      x.require(spare.hi() >= 0,
                fmt::format("output_shape {} is smaller than {}", text(*given), text(implied)));
      x.require_equal(min(spare, 0), 0, "output_shape holds the implied shape");
    }
    implied = *given;
  }
  x.set(0, x.dtype(0), implied);
}

// The position that flat index `i` means in a tensor of these extents; empty: outside of it.
std::vector<int64_t> position_of(int64_t i, const std::vector<int64_t>& extents) {
  std::vector<int64_t> at(extents.size());
  for (size_t d = extents.size(); d-- > 0; i /= extents[d]) at[d] = i % extents[d];
  return i == 0 ? at : std::vector<int64_t>{};
}

// Whether every index, counted in a tensor of these extents, lies in the window of its element.
bool in_windows(const Evaluation& e, const Window& w, const std::vector<int64_t>& extents) {
  for (int64_t i = 0; i < e.in[1].size(); ++i) {
    const int64_t index = e.in[1].integer(i);
    if (index < 0) return false;
    const auto at = position_of(index, extents), element = position_of(i, e.in[0].shape());
    if (at.empty() || at[0] != element[0] || at[1] != element[1]) return false;
    for (size_t a = 0; a < w.rank(); ++a) {
      const int64_t tap = at[a + 2] - element[a + 2] * w.strides[a] + w.pads_begin[a].value();
      if (tap < 0 || tap >= w.kernel[a]) return false;
    }
  }
  return true;
}

void eval(Evaluation& e) {
  const Tensor& x = e.in[0];
  const Attributes& a = e.attributes();
  const Shape spatial(x.shape().begin() + 2, x.shape().end());
  const Window w = window_of(a, WindowKind::kUnpool, a.integers("kernel_shape"), spatial);
  std::vector<int64_t> implied{x.dim(0), x.dim(1)};
  for (const Dim& d : w.out) implied.push_back(d.value());
  const std::vector<int64_t>& given = e.out[0].shape();
  const bool of_implied = given != implied && !in_windows(e, w, given) && in_windows(e, w, implied);
  const std::vector<int64_t> strides = row_major_strides(given);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t index = e.in[1].integer(i);
    const auto position =
        index < 0 ? std::vector<int64_t>{} : position_of(index, of_implied ? implied : given);
    if (position.empty()) e.fail(fmt::format("index {} outside 0 to {}", index, e.out[0].size() - 1));
    int64_t at = 0;
    for (size_t d = 0; d < position.size(); ++d) at += position[d] * strides[d];
    e.out[0].set_real(at, x.real(i));
  }
}

}  // namespace

const std::vector<Op>& ops_max_unpool() {
  static const std::vector<Op> table = {
      {.name = "MaxUnpool", .min_inputs = 2, .max_inputs = 3, .infer = infer, .eval = eval},
  };
  return table;
}

}  // namespace sinter
