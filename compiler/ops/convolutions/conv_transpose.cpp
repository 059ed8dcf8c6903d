// ConvTranspose (ONNX ConvTranspose-22): x[n,c,i] * w[c,m,k] is added to y[n, group's m, i*stride +
// k*dilation
// - pad]; what falls outside the output is dropped. y begins as the bias.
//
// eval: the transpose of Conv's: the weights times the image give columns, which are scattered.
#include "ops/convolutions/columns.h"
#include "ops/op.h"
#include "ops/products/contraction.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

std::vector<int64_t> kernel_of(Inference& x) {
  std::vector<int64_t> kernel = x.attributes().integers("kernel_shape");
  const size_t n = x.shape(1).size() - 2;
  x.require(kernel.empty() || kernel.size() == n,
            fmt::format("kernel_shape has {} entries for weights {}", kernel.size(), text(x.shape(1))));
  for (size_t i = 0; i < n; ++i) {
    const Dim& d = x.shape(1)[i + 2];
    if (kernel.size() < n) {
      x.require(d.is_static(),
                fmt::format("the weights are {}, their kernel must be static", text(x.shape(1))));
      kernel.push_back(d.value());
    }
    x.require_equal(Dim(kernel[i]), d, "kernel_shape is the weights' extents");
  }
  return kernel;
}

void infer(Inference& x) {
  const Attributes& a = x.attributes();
  x.require(is_float(x.dtype(0)), fmt::format("only for floats, not {}", name_of(x.dtype(0))));
  for (size_t i = 1; i < 3; ++i)
    if (x.has(i)) x.require(x.dtype(i) == x.dtype(0), "inputs of different types");
  x.require(x.rank(0) >= 3 && x.rank(1) == x.rank(0),
            fmt::format("input {} and weights {}: both need N, C and the same spatial axes", text(x.shape(0)),
                        text(x.shape(1))));
  const int64_t group = a.integer("group", 1);
  x.require(group >= 1, fmt::format("group is {}", group));
  const Dim c = x.require_equal(channels_of(a, x.shape(0)), x.shape(1)[0],
                                "channels of the input = first extent of the weights");
  x.require(group == 1 || (c.is_static() && c.value() % group == 0),
            fmt::format("{} input channels do not divide into {} groups", c.text(), group));
  const Dim m = x.shape(1)[1] * Dim(group);
  if (x.has(2)) {
    x.require(x.rank(2) == 1, "the bias is not one-dimensional");
    x.require_equal(x.shape(2)[0], m, "length of the bias = output channels");
  }
  const Window w = window_of(a, WindowKind::kConvTranspose, kernel_of(x), spatial_of(a, x.shape(0)));
  check_window(x, w);
  x.set(0, x.dtype(0), with_channels(a, x.shape(0)[0], m, w.out));
}

template <class T>
void spread(const StaticWindow& plain, int64_t group, const Tensor& x, const Tensor& w, const Tensor& bias,
            Tensor& y) {
  const int64_t batch = x.dim(0), channels = w.dim(0) / group, features = w.dim(1), taps = plain.taps();
  const int64_t x_size = plain.out_size(), y_size = plain.in_size(), depth = features * taps;
  if (y.size() == 0) return;
  if (bias)
    for (int64_t i = 0; i < batch * y.dim(1); ++i)
      std::fill_n(y.as<T>() + i * y_size, y_size, bias.as<T>()[i % y.dim(1)]);
  if (x.size() == 0) return;
  const int64_t width = plain.out.back(), rows = x_size / width, block = rows_at_once(plain, features);
  std::vector<T> columns;
  for (int64_t row = 0; row < rows; row += block) {
    const int64_t count = std::min(block, rows - row), n = count * width;
    const std::vector<ColumnRun> runs = column_runs(plain, row, row + count);
    columns.resize(static_cast<size_t>(depth * n));
    for (int64_t i = 0; i < batch * group; ++i) {
      multiply(true, false, depth, n, channels, w.as<T>() + i % group * channels * depth, depth,
               x.as<T>() + i * channels * x_size + row * width, x_size, columns.data(), n);
      for (int64_t m = 0; m < features; ++m)
        scatter_columns(plain, runs, count, columns.data() + m * taps * n,
                        y.as<T>() + (i * features + m) * y_size);
    }
  }
}

void eval(Evaluation& e) {
  const Attributes& a = e.attributes();
  const DType dtype = e.in[0].dtype(), work = contraction_dtype(dtype);
  const Tensor x = converted_if(channels_first(a, e.in[0]), work), w = converted_if(e.in[1], work);
  const Tensor bias = e.has(2) ? converted_if(e.in[2], work) : Tensor();
  const Shape spatial(x.shape().begin() + 2, x.shape().end());
  const std::vector<int64_t> kernel(w.shape().begin() + 2, w.shape().end());
  const StaticWindow g = window_of(a, WindowKind::kConvTranspose, kernel, spatial).numbers();
  const int64_t group = a.integer("group", 1);
  std::vector<int64_t> shape{x.dim(0), w.dim(1) * group};
  shape.insert(shape.end(), g.out.begin(), g.out.end());
  Tensor y(work, shape);
  if (work == DType::kF32)
    spread<float>(g.turned(), group, x, w, bias, y);
  else
    spread<double>(g.turned(), group, x, w, bias, y);
  e.out[0] = as_node_layout(a, converted_if(y, dtype));
}

}  // namespace

const std::vector<Op>& ops_conv_transpose() {
  static const std::vector<Op> table = {
      {.name = "ConvTranspose", .min_inputs = 2, .max_inputs = 3, .infer = infer, .eval = eval},
  };
  return table;
}

}  // namespace sinter
