// DeformConv (ONNX 22): a convolution whose taps are moved by offsets, and weighed by a mask, that come with
// the data. Two spatial axes. The sampling is runtime/sinter/deform_conv.h, which generated code calls too.
#include "sinter/deform_conv.h"

#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

Window window_for(const Attributes& a, const Shape& x, const Shape& w) {
  return window_of(a, WindowKind::kConv, a.integers("kernel_shape", {w[2].value(), w[3].value()}),
                   Shape(x.begin() + 2, x.end()));
}

void infer(Inference& x) {
  x.require(is_float(x.dtype(0)), "only for floats");
  for (size_t i = 1; i < x.in.size(); ++i)
    if (x.has(i)) x.require(x.dtype(i) == x.dtype(0), fmt::format("input {} has another type", i));
  for (size_t i : {0, 1, 2, 4})
    if (x.has(i))
      x.require(x.rank(i) == 4,
                fmt::format("input {} of shape {}: only for images [N,C,H,W]", i, text(x.shape(i))));
  const Shape &image = x.shape(0), &filters = x.shape(1);
  const Attributes& a = x.attributes();
  const int64_t groups = a.integer("group", 1), offset_groups = a.integer("offset_group", 1);
  x.require(groups >= 1 && offset_groups >= 1, "group and offset_group are at least 1");
  x.require(is_static(filters) && image[1].is_static(), "its channels and filters must be known");
  const int64_t channels = image[1].value(), count = filters[0].value();
  x.require(channels % groups == 0 && count % groups == 0 && filters[1].is(channels / groups),
            fmt::format("filters {} do not fit {} channels in {} groups", text(filters), channels, groups));
  x.require(channels % offset_groups == 0,
            fmt::format("{} offset groups do not divide {} channels", offset_groups, channels));
  const Window w = window_for(a, image, filters);
  x.require(w.rank() == 2 && filters[2].is(w.kernel[0]) && filters[3].is(w.kernel[1]),
            "kernel_shape is not that of the filters");
  check_window(x, w);
  const int64_t taps = w.kernel[0] * w.kernel[1];
  Shape out{image[0], Dim(count), w.out[0], w.out[1]};
  const auto require_map = [&](size_t i, int64_t per_tap, const std::string& what) {
    out[0] = x.require_equal(out[0], x.shape(i)[0], "batch of the " + what);
    x.require_equal(x.shape(i)[1], Dim(offset_groups) * taps * per_tap, "channels of the " + what);
    for (size_t d = 2; d < 4; ++d) out[d] = x.require_equal(out[d], x.shape(i)[d], "extents of the " + what);
  };
  require_map(2, 2, "offset");
  if (x.has(4)) require_map(4, 1, "mask");
  if (x.has(3)) {
    x.require(x.rank(3) == 1, fmt::format("a bias of shape {}", text(x.shape(3))));
    x.require_equal(x.shape(3)[0], count, "elements of the bias");
  }
  x.set(0, x.dtype(0), std::move(out));
}

template <class T>
void run(Evaluation& e, const DeformGeometry& g) {
  std::vector<deform_detail::Sum<T>> column(static_cast<size_t>(g.channels * g.kernel[0] * g.kernel[1]));
  deform_conv(e.in[0].as<T>(), e.in[1].as<T>(), e.in[2].as<T>(), e.has(3) ? e.in[3].as<T>() : nullptr,
              e.has(4) ? e.in[4].as<T>() : nullptr, g, column.data(), e.out[0].as<T>());
}

void eval(Evaluation& e) {
  const Tensor &x = e.in[0], &f = e.in[1], &out = e.out[0];
  const auto shape = [](const Tensor& t) { return Shape(t.shape().begin(), t.shape().end()); };
  const StaticWindow w = window_for(e.attributes(), shape(x), shape(f)).numbers();
  const DeformGeometry g{x.dim(0),
                         x.dim(1),
                         x.dim(2),
                         x.dim(3),
                         f.dim(0),
                         e.attributes().integer("group", 1),
                         e.attributes().integer("offset_group", 1),
                         {w.kernel[0], w.kernel[1]},
                         {w.strides[0], w.strides[1]},
                         {w.dilations[0], w.dilations[1]},
                         {w.pads_begin[0], w.pads_begin[1]},
                         {out.dim(2), out.dim(3)}};
  switch (x.dtype()) {
    case DType::kF32: return run<float>(e, g);
    case DType::kF64: return run<double>(e, g);
    case DType::kF16: return run<half>(e, g);
    default: return run<bfloat16>(e, g);
  }
}

}  // namespace

const std::vector<Op>& ops_deform_conv() {
  static const std::vector<Op> table = {{.name = "DeformConv",
                                         .min_inputs = 3,
                                         .max_inputs = 5,
                                         .infer = infer,
                                         .eval = eval,
                                         .note = "two spatial axes"}};
  return table;
}

}  // namespace sinter
