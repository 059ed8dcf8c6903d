// Conv (ONNX Conv-22): y[n,m,o] = b[m] + sum over c, k of w[m,c,k] * x[n, group's c, o*stride + k*dilation -
// pad], over any number of spatial axes; padding counts as 0. With the attribute `integer`, which lowering
// sets: integer x and w (contraction.h), int32 b and y, sums wrap.
//
// eval: one column matrix a group (columns.h) times the group's weights.
#include "ops/convolutions/columns.h"
#include "ops/op.h"
#include "ops/products/contraction.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

std::vector<int64_t> kernel_of(Inference& x) {
  std::vector<int64_t> kernel = x.attributes().integers("kernel_shape");
  const Shape spatial(x.shape(1).begin() + 2, x.shape(1).end());
  if (kernel.empty()) {
    for (const Dim& d : spatial) {
      x.require(d.is_static(),
                fmt::format("the weights are {}, their kernel must be static", text(x.shape(1))));
      kernel.push_back(d.value());
    }
  }
  x.require(kernel.size() == spatial.size(),
            fmt::format("kernel_shape has {} entries for weights {}", kernel.size(), text(x.shape(1))));
  for (size_t i = 0; i < kernel.size(); ++i)
    x.require_equal(Dim(kernel[i]), spatial[i], "kernel_shape is the weights' extents");
  return kernel;
}

void infer(Inference& x) {
  const Attributes& a = x.attributes();
  const bool integer = sums_integers(x.node);
  x.require(integer ? is_integer_pair(x.dtype(0), x.dtype(1)) : is_float(x.dtype(0)),
            fmt::format("only for floats, not {}", name_of(x.dtype(0))));
  for (size_t i = 1; i < 3; ++i)
    if (x.has(i))
      x.require(x.dtype(i) == (integer ? i == 2 ? DType::kI32 : x.dtype(1) : x.dtype(0)),
                "inputs of different types");
  x.require(x.rank(0) >= 3 && x.rank(1) == x.rank(0),
            fmt::format("input {} and weights {}: both need N, C and the same spatial axes", text(x.shape(0)),
                        text(x.shape(1))));
  const int64_t group = a.integer("group", 1);
  x.require(group >= 1, fmt::format("group is {}", group));
  x.require_equal(channels_of(a, x.shape(0)), x.shape(1)[1] * Dim(group),
                  fmt::format("channels of the input = {} groups of the weights' channels", group));
  const Dim m = x.shape(1)[0];
  x.require(group == 1 || (m.is_static() && m.value() % group == 0),
            fmt::format("{} output channels do not divide into {} groups", m.text(), group));
  if (x.has(2)) {
    x.require(x.rank(2) == 1, "the bias is not one-dimensional");
    x.require_equal(x.shape(2)[0], m, "length of the bias = output channels");
  }
  const Window w = window_of(a, WindowKind::kConv, kernel_of(x), spatial_of(a, x.shape(0)));
  check_window(x, w);
  x.set(0, integer ? DType::kI32 : x.dtype(0), with_channels(a, x.shape(0)[0], m, w.out));
}

template <class T>
void convolve(const StaticWindow& g, int64_t group, const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t batch = x.dim(0), channels = w.dim(1), features = w.dim(0) / group, taps = g.taps();
  const int64_t in_size = g.in_size(), out_size = g.out_size(), depth = channels * taps;
  if (y.size() == 0) return;
  const int64_t width = g.out.back(), rows = out_size / width, block = rows_at_once(g, channels);
  const bool pointwise = g.is_pointwise();
  std::vector<T> columns;
  for (int64_t row = 0; row < rows; row += block) {
    const int64_t count = pointwise ? rows : std::min(block, rows - row), n = count * width;
    const std::vector<ColumnRun> runs =
        pointwise ? std::vector<ColumnRun>{} : column_runs(g, row, row + count);
    if (!pointwise) columns.resize(static_cast<size_t>(depth * n));
    for (int64_t i = 0; i < batch * group; ++i) {
      const T* in = x.as<T>() + i * channels * in_size;
      if (!pointwise)
        for (int64_t c = 0; c < channels; ++c)
          gather_columns(g, runs, count, in + c * in_size, columns.data() + c * taps * n);
      multiply(false, false, features, n, depth, w.as<T>() + i % group * features * depth, depth,
               pointwise ? in : columns.data(), n, y.as<T>() + i * features * out_size + row * width,
               out_size);
    }
    if (pointwise) break;
  }
}

template <class T>
void add_bias(const Tensor& bias, Tensor& y) {
  const int64_t channels = y.dim(1), size = y.size() / std::max<int64_t>(1, y.dim(0) * channels);
  for (int64_t i = 0; i < y.dim(0) * channels; ++i)
    for (int64_t p = 0; p < size; ++p) y.as<T>()[i * size + p] += bias.as<T>()[i % channels];
}

void eval(Evaluation& e) {
  const Attributes& a = e.attributes();
  const bool integer = sums_integers(e.node);
  const DType dtype = integer ? DType::kI32 : e.in[0].dtype();
  const DType work = integer ? DType::kF64 : contraction_dtype(dtype);  // exact: |sums| < 2^53
  const Tensor x = integer ? less_zero(e.node, channels_first(a, e.in[0]))
                           : converted_if(channels_first(a, e.in[0]), work),
               w = converted_if(e.in[1], work);
  const Tensor bias = e.has(2) ? converted_if(e.in[2], work) : Tensor();
  const Shape spatial(x.shape().begin() + 2, x.shape().end());
  const std::vector<int64_t> kernel(w.shape().begin() + 2, w.shape().end());
  const StaticWindow g = window_of(a, WindowKind::kConv, kernel, spatial).numbers();
  std::vector<int64_t> shape{x.dim(0), w.dim(0)};
  shape.insert(shape.end(), g.out.begin(), g.out.end());
  Tensor y(work, shape);
  const int64_t group = a.integer("group", 1);
  if (work == DType::kF32) {
    convolve<float>(g, group, x, w, y);
    if (bias) add_bias<float>(bias, y);
  } else {
    convolve<double>(g, group, x, w, y);
    if (bias) add_bias<double>(bias, y);
  }
  e.out[0] = as_node_layout(a, integer ? wrapped(y) : converted_if(y, dtype));
}

}  // namespace

const std::vector<Op>& ops_conv() {
  static const std::vector<Op> table = {
      {.name = "Conv", .min_inputs = 2, .max_inputs = 3, .infer = infer, .eval = eval},
  };
  return table;
}

}  // namespace sinter
