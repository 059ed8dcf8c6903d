// The rules of ONNX (Conv-22, ConvTranspose-22, MaxPool-22, AveragePool-22, LpPool-22, MaxUnpool-22) for
// kernel, strides, dilations, pads, auto_pad, ceil_mode, output_padding and output_shape; where the standard
// leaves something open (SAME pads that would be negative, odd pads of a given output_shape), ONNX Runtime's.
#include "ops/windows/window.h"

#include <algorithm>

#include "ops/op.h"

namespace sinter {
namespace {

constexpr int64_t kLimit = int64_t{1} << 31;

std::vector<int64_t> positive(const Attributes& a, const char* name, size_t n) {
  std::vector<int64_t> v = a.integers(name);
  if (v.empty()) v.assign(n, 1);
  if (v.size() != n) refuse("{} has {} entries for {} spatial axes", name, v.size(), n);
  for (int64_t d : v)
    if (d < 1 || d >= kLimit) refuse("{} holds {}, outside 1 to 2^31-1", name, d);
  return v;
}

std::vector<int64_t> not_negative(const Attributes& a, const char* name, size_t n) {
  std::vector<int64_t> v = a.integers(name);
  if (v.empty()) v.assign(n, 0);
  if (v.size() != n) refuse("{} has {} entries, {} are needed", name, v.size(), n);
  for (int64_t d : v)
    if (d < 0 || d >= kLimit) refuse("{} holds {}, outside 0 to 2^31-1", name, d);
  return v;
}

enum class AutoPad { kNotSet, kSameUpper, kSameLower, kValid };
AutoPad auto_pad_of(const Attributes& a) {
  const std::string s = a.text("auto_pad", "NOTSET");
  if (s.empty() || s == "NOTSET") return AutoPad::kNotSet;
  if (s == "SAME_UPPER") return AutoPad::kSameUpper;
  if (s == "SAME_LOWER") return AutoPad::kSameLower;
  if (s == "VALID") return AutoPad::kValid;
  refuse("auto_pad is {}", sinter::quoted(s));
}

// An odd total leaves one more at the end, or at the beginning.
void split_pads(Window& w, const Dim& total, bool more_at_end) {
  const Dim small = floordiv(total, 2), large = ceildiv(total, 2);
  w.pads_begin.push_back(more_at_end ? small : large);
  w.pads_end.push_back(more_at_end ? large : small);
}

void plain_axis(Window& w, size_t i, AutoPad mode, const std::vector<int64_t>& pads) {
  const Dim in = w.in[i], stride(w.strides[i]), extent(w.extent(i));
  if (w.same_pads) {
    // out = ceil(in / stride), so the last window begins at in - 1 - (in-1) mod stride. The bounds, which
    // always hold, are said again because intervals lose them.
    const Dim total = min(max(extent - 1 - mod(in - 1, stride), 0), extent - 1);
    split_pads(w, total, mode == AutoPad::kSameUpper);
    w.out.push_back(ceildiv(in, stride));
    return;
  }
  const bool none = mode == AutoPad::kValid;
  w.pads_begin.emplace_back(none ? 0 : pads[i]);
  w.pads_end.emplace_back(none ? 0 : pads[i + w.rank()]);
  const Dim room = w.room(i), padded = in + w.pads_begin[i] + w.pads_end[i];
  if (room.hi() < 0)
    refuse("on spatial axis {} the kernel's extent {} exceeds the padded input {}", i, extent.text(),
           padded.text());
  if (w.ceil_mode)  // a last window that would begin in the padding at the end is dropped
    w.out.push_back(min(floordiv(room, stride), floordiv(in + w.pads_begin[i] - 1, stride)) + 1);
  else
    w.out.push_back(floordiv(room, stride) + 1);
}

void transposed_axis(Window& w, size_t i, AutoPad mode, const std::vector<int64_t>& pads,
                     int64_t output_padding, const std::vector<int64_t>& output_shape) {
  const Dim stride(w.strides[i]);
  const Dim full = (w.in[i] - 1) * stride + output_padding + w.extent(i);
  if (!output_shape.empty() || w.same_pads) {
    const Dim wanted = output_shape.empty() ? w.in[i] * stride : Dim(output_shape[i]);
    const Dim total = max(full - wanted, 0);
    split_pads(w, total, mode == AutoPad::kSameUpper);
    w.out.push_back(output_shape.empty() ? full - total : wanted);
    return;
  }
  const bool none = mode == AutoPad::kValid;
  w.pads_begin.emplace_back(none ? 0 : pads[i]);
  w.pads_end.emplace_back(none ? 0 : pads[i + w.rank()]);
  w.out.push_back(full - w.pads_begin[i] - w.pads_end[i]);
  if (w.out[i].hi() < 0)
    refuse("on spatial axis {} the pads exceed the result: {} elements are left", i, w.out[i].text());
}

// The entries of output_shape for the spatial axes; some exporters give N and C as well.
std::vector<int64_t> output_shape_of(const Attributes& a, size_t n) {
  std::vector<int64_t> v = a.integers("output_shape");
  if (v.empty()) return v;
  if (v.size() == n + 2) v.erase(v.begin(), v.begin() + 2);
  if (v.size() != n) refuse("output_shape has {} entries for {} spatial axes", v.size(), n);
  for (int64_t d : v)
    if (d < 0 || d >= kLimit) refuse("output_shape holds {}", d);
  return v;
}

int64_t product_of(const std::vector<int64_t>& v) {
  int64_t p = 1;
  for (int64_t d : v) p *= d;
  return p;
}

WindowKind kind_of(const Node& n) {
  const std::string_view op = n.op->name;
  if (op == "ConvTranspose") return WindowKind::kConvTranspose;
  if (op == "MaxUnpool") return WindowKind::kUnpool;
  if (op.find("Pool") != std::string_view::npos) return WindowKind::kPool;
  return WindowKind::kConv;
}

}  // namespace

int64_t StaticWindow::taps() const { return product_of(kernel); }
int64_t StaticWindow::in_size() const { return product_of(in); }
int64_t StaticWindow::out_size() const { return product_of(out); }
bool StaticWindow::is_pointwise() const {
  auto all = [](const std::vector<int64_t>& v, int64_t value) {
    return std::all_of(v.begin(), v.end(), [&](int64_t d) { return d == value; });
  };
  return all(kernel, 1) && all(strides, 1) && all(pads_begin, 0) && all(pads_end, 0) && in == out;
}
StaticWindow StaticWindow::turned() const {
  StaticWindow t = *this;
  std::swap(t.in, t.out);
  return t;
}

Dim Window::room(size_t i) const {
  return in[i] + pads_begin[i] + pads_end[i] - extent(i) + (ceil_mode ? strides[i] - 1 : 0);
}
bool Window::is_pointwise() const {
  const auto one = [](int64_t n) { return n == 1; };
  const auto none = [](const Dim& d) { return d.is(0); };
  return std::all_of(kernel.begin(), kernel.end(), one) && std::all_of(strides.begin(), strides.end(), one) &&
         std::all_of(pads_begin.begin(), pads_begin.end(), none) &&
         std::all_of(pads_end.begin(), pads_end.end(), none);
}
bool Window::has_static_pads() const { return sinter::is_static(pads_begin) && sinter::is_static(pads_end); }
bool Window::is_static() const {
  return has_static_pads() && sinter::is_static(in) && sinter::is_static(out);
}
StaticWindow Window::numbers() const {
  return {kernel,          strides,         dilations, static_dims(pads_begin), static_dims(pads_end),
          static_dims(in), static_dims(out)};
}

Window window_of(const Attributes& a, WindowKind kind, std::vector<int64_t> kernel, const Shape& spatial_in) {
  Window w;
  const size_t n = spatial_in.size();
  if (n == 0) refuse("the input has no spatial axis");
  if (kernel.size() != n) refuse("kernel_shape has {} entries for {} spatial axes", kernel.size(), n);
  for (int64_t k : kernel)
    if (k < 1 || k >= kLimit) refuse("kernel_shape holds {}, outside 1 to 2^31-1", k);
  int64_t taps = 1;
  for (int64_t k : kernel)
    if (__builtin_mul_overflow(taps, k, &taps)) refuse("the kernel has more than 2^63 taps");
  w.kernel = std::move(kernel);
  w.strides = positive(a, "strides", n);
  w.dilations = kind == WindowKind::kUnpool ? std::vector<int64_t>(n, 1) : positive(a, "dilations", n);
  w.in = spatial_in;
  w.ceil_mode = kind == WindowKind::kPool && a.integer("ceil_mode", 0) != 0;
  w.transposed = kind == WindowKind::kConvTranspose || kind == WindowKind::kUnpool;
  const AutoPad mode = auto_pad_of(a);
  w.same_pads = mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower;
  const std::vector<int64_t> pads = not_negative(a, "pads", 2 * n);
  std::vector<int64_t> output_padding(n, 0), output_shape;
  if (kind == WindowKind::kConvTranspose) {
    output_padding = not_negative(a, "output_padding", n);
    output_shape = output_shape_of(a, n);
  }
  for (size_t i = 0; i < n; ++i) {
    if (kind == WindowKind::kPool && mode == AutoPad::kNotSet &&
        std::max(pads[i], pads[i + n]) >= w.extent(i))
      refuse("on spatial axis {} a pad of {} is not smaller than the kernel's extent {}", i,
             std::max(pads[i], pads[i + n]), w.extent(i));
    if (w.transposed)
      transposed_axis(w, i, mode, pads, output_padding[i], output_shape);
    else
      plain_axis(w, i, mode, pads);
  }
  return w;
}

Window window_of(const Node& node, const Shape& spatial_in) {
  std::vector<int64_t> kernel = node.attributes.integers("kernel_shape");
  if (kernel.empty() && node.input(1)) {
    const Shape& weights = node.input(1)->type.shape;
    for (size_t i = 2; i < weights.size(); ++i) {
      if (!weights[i].is_static()) refuse("the kernel's extent {} is not known", weights[i].text());
      kernel.push_back(weights[i].value());
    }
  }
  return window_of(node.attributes, kind_of(node), std::move(kernel), spatial_in);
}
Window window_of(const Node& node) {
  return window_of(node, spatial_of(node.attributes, node.input(0)->type.shape));
}

void check_window(Inference& x, const Window& w) {
  for (size_t i = 0; i < w.rank(); ++i) {
    // a >= 0 in the one form that checks have: min(a, 0) == 0.
    if (w.transposed) {
      x.require_equal(min(w.out[i], 0), 0, fmt::format("extent of spatial axis {} is not negative", i));
    } else if (!w.same_pads) {
      x.require_equal(min(w.room(i), 0), 0, fmt::format("spatial axis {} holds the kernel", i));
    }
  }
}

bool is_channels_last(const Attributes& a) { return a.integer("channels_last", 0) != 0; }
Shape spatial_of(const Attributes& a, const Shape& s) {
  if (s.size() < 2) refuse("the input has {} axes, at least N and C are needed", s.size());
  return is_channels_last(a) ? Shape(s.begin() + 1, s.end() - 1) : Shape(s.begin() + 2, s.end());
}
Dim channels_of(const Attributes& a, const Shape& s) {
  if (s.size() < 2) refuse("the input has {} axes, at least N and C are needed", s.size());
  return is_channels_last(a) ? s.back() : s[1];
}
Shape with_channels(const Attributes& a, const Dim& batch, const Dim& channels, const Shape& spatial) {
  Shape s{batch};
  if (!is_channels_last(a)) s.push_back(channels);
  s.insert(s.end(), spatial.begin(), spatial.end());
  if (is_channels_last(a)) s.push_back(channels);
  return s;
}
Tensor channels_first(const Attributes& a, const Tensor& t) {
  if (!is_channels_last(a)) return t;
  std::vector<int64_t> perm{0, t.rank() - 1};
  for (int64_t i = 1; i + 1 < t.rank(); ++i) perm.push_back(i);
  return t.transposed(perm);
}
Tensor as_node_layout(const Attributes& a, const Tensor& t) {
  if (!is_channels_last(a)) return t;
  std::vector<int64_t> perm{0};
  for (int64_t i = 2; i < t.rank(); ++i) perm.push_back(i);
  perm.push_back(1);
  return t.transposed(perm);
}

namespace {

// Whether the node is a convolution over one or two axes, channels last, one group, in float32 with constant
// weights and bias.
// `widened`: of a layer that computes halves the picture may be floats.
bool is_plain_convolution(const Node& n, bool widened = false) {
  if (std::string_view(n.op->name) != "Conv" || n.op->domain[0] != 0 || !is_channels_last(n.attributes))
    return false;
  const Value& w = *n.inputs[1];
  const DType element = n.freedom.halves == Halves::kComputed ? DType::kF16 : DType::kF32,
              picture = n.inputs[0]->type.dtype;
  if (picture != element && !(widened && picture == DType::kF32)) return false;
  if (n.outputs[0]->type.dtype != element || !w.data) return false;
  if (n.anchor_inputs > 2 && n.inputs[2] && !n.inputs[2]->data) return false;
  return n.attributes.integer("group", 1) == 1 && w.data->rank() >= 3 && w.data->rank() <= 4;
}

}  // namespace

bool may_use_winograd(const Node& n) {
  if (!is_plain_convolution(n)) return false;
  const Window window = window_of(n);
  const int64_t less = std::min(window.kernel[0], window.kernel.back()),
                more = std::max(window.kernel[0], window.kernel.back());
  const bool line = window.rank() == 1 || less == 1, square = less == more && more >= 3 && more <= 6;
  if (!square && !(line && more >= 2 && more <= 7)) return false;
  for (size_t a = 0; a < window.rank(); ++a) {
    const int64_t taps = window.kernel[a];
    // Of 5 taps and a stride of 2 the even and the odd ones have no two transforms for as many outputs.
    const bool has_phases = taps == 1 || taps == 3 || taps == 4 || taps == 6;
    if (window.strides[a] != 1 && !(window.strides[a] == 2 && has_phases)) return false;
    if (window.dilations[a] != 1) return false;
  }
  return true;
}

bool may_use_winograd_along_rows(const Node& n) {
  constexpr int64_t kMostChannels = 4;
  if (!is_plain_convolution(n, true) || n.inputs[1]->data->rank() != 4 ||
      n.inputs[1]->data->dim(1) > kMostChannels)
    return false;
  const Window w = window_of(n);
  if (!w.is_static() || w.dilations[0] != 1 || w.dilations[1] != 1) return false;
  return w.kernel[1] >= 3 && w.kernel[1] <= 7 && w.strides[1] <= 2;
}

int64_t winograd_outputs(int64_t taps, int64_t stride, int64_t positions) {
  if (taps == 1) return 1;
  if (stride == 1) return positions - taps + 1;
  return positions == 8 && taps != 3 ? 0 : positions - (taps + 1) / 2 + 1;
}

int64_t most_winograd_outputs(const Node& n, int64_t positions) {
  const Window w = window_of(n);
  if (!may_use_winograd(n)) return positions - (w.kernel[1] + w.strides[1] - 1) / w.strides[1] + 1;
  int64_t most = 0;
  for (size_t a = 0; a < w.rank(); ++a)
    for (int64_t p = positions; p >= 4; p -= 2)
      most = std::max(most, winograd_outputs(w.kernel[a], w.strides[a], p));
  return most;
}

namespace {

// A Transpose from [N][C][spatial ...] to [N][spatial ...][C].
bool puts_channels_last(const Node& n) {
  if (std::string_view(n.op->name) != "Transpose" || n.op->domain[0] != 0 || n.epilogue) return false;
  const auto perm = n.attributes.integers("perm");
  if (perm.size() < 3 || perm[0] != 0 || perm.back() != 1) return false;
  for (size_t a = 1; a + 1 < perm.size(); ++a)
    if (perm[a] != static_cast<int64_t>(a) + 1) return false;
  return true;
}

}  // namespace

bool may_read_planes(const Node& n) {
  if (std::string_view(n.op->name) != "Conv" || n.op->domain[0] != 0) return false;
  const Value& x = *n.inputs[0];
  if (!x.producer || !puts_channels_last(*x.producer)) return false;
  const Dim& channels = x.type.shape.back();
  if (!channels.is_static() || channels.value() > 4 || n.attributes.integer("group", 1) != 1) return false;
  const Window w = window_of(n);
  return w.kernel.back() > 1 && w.dilations.back() == 1;
}

}  // namespace sinter
