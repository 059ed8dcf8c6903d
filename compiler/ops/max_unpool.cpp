// MaxUnpool (ONNX MaxUnpool-22): puts each element of X where its index says, 0 elsewhere.
//
// Indices count the elements of the tensor that kernel, strides and pads imply, [N, C, (in-1)*stride + kernel
// - pads]; an output_shape that is larger holds that tensor at its beginning along every axis.
#include "ops/op.h"
#include "ops/window.h"

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

void eval(Evaluation& e) {
  const Tensor& x = e.in[0];
  const Attributes& a = e.attributes();
  const Shape spatial(x.shape().begin() + 2, x.shape().end());
  const Window w = window_of(a, WindowKind::kUnpool, a.integers("kernel_shape"), spatial);
  std::vector<int64_t> implied{x.dim(0), x.dim(1)};
  for (const Dim& d : w.out) implied.push_back(d.value());
  int64_t size = 1;
  for (int64_t d : implied) size *= d;
  const std::vector<int64_t> strides = row_major_strides(e.out[0].shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t rest = e.in[1].as<int64_t>()[i], at = 0;
    if (rest < 0 || rest >= size) e.fail(fmt::format("index {} outside 0 to {}", rest, size - 1));
    for (size_t d = implied.size(); d-- > 0; rest /= implied[d]) at += rest % implied[d] * strides[d];
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
