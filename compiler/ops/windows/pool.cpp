// MaxPool, AveragePool, LpPool (ONNX opset 22) and their Global forms over any number of spatial axes.
//
// Taps in the padding are left out: of the maximum, of the sum, and of the average's count; with
// count_include_pad the count takes the given pads in, but not what ceil_mode adds behind them. A window
// that sees no input gives the least value (MaxPool) or 0. MaxPool passes NaN on.
#include <cmath>
#include <limits>

#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

void infer_pool(Inference& x, bool with_integers) {
  const Attributes& a = x.attributes();
  const DType t = x.dtype(0);
  x.require(is_float(t) || (with_integers && (t == DType::kI8 || t == DType::kU8)),
            fmt::format("not for {}", name_of(t)));
  x.require(x.rank(0) >= 3, fmt::format("input {}: N, C and a spatial axis are needed", text(x.shape(0))));
  x.require(!a.integers("kernel_shape").empty(), "kernel_shape is missing");
  const Window w = window_of(a, WindowKind::kPool, a.integers("kernel_shape"), spatial_of(a, x.shape(0)));
  check_window(x, w);
  x.set(0, t, with_channels(a, x.shape(0)[0], channels_of(a, x.shape(0)), w.out));
}

void infer_max(Inference& x) {
  infer_pool(x, true);
  if (x.out.size() < 2 || !x.out[1].present) return;
  x.require(!is_channels_last(x.attributes()), "Indices need the layout [N, C, spatial...]");
  x.set(1, DType::kI64, x.out[0].type.shape);
}
void infer_average(Inference& x) { infer_pool(x, false); }
void infer_lp(Inference& x) {
  infer_pool(x, false);
  x.require(x.attributes().integer("p", 2) >= 1, "p is less than 1");
}

void infer_global(Inference& x) {
  const Attributes& a = x.attributes();
  x.require(is_float(x.dtype(0)), fmt::format("only for floats, not {}", name_of(x.dtype(0))));
  const Shape spatial = spatial_of(a, x.shape(0));
  x.set(0, x.dtype(0),
        with_channels(a, x.shape(0)[0], channels_of(a, x.shape(0)), Shape(spatial.size(), Dim(1))));
}
void infer_global_lp(Inference& x) {
  infer_global(x);
  x.require(x.attributes().integer("p", 2) >= 1, "p is less than 1");
}

template <class T>
auto load(T v) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return to_float(v);
  else
    return v;
}

StaticWindow window_of(const Evaluation& e, const Tensor& x, bool global) {
  const Shape spatial(x.shape().begin() + 2, x.shape().end());
  if (!global)
    return window_of(e.attributes(), WindowKind::kPool, e.attributes().integers("kernel_shape"), spatial)
        .numbers();
  StaticWindow w;
  w.kernel = w.in = static_dims(spatial);
  w.strides = w.dilations = w.out = std::vector<int64_t>(spatial.size(), 1);
  w.pads_begin = w.pads_end = std::vector<int64_t>(spatial.size(), 0);
  return w;
}

// What f(plane, taps) makes of the input's taps (offsets within a plane) under each output.
template <class F>
void for_each_output(const StaticWindow& w, int64_t planes, F f) {
  std::vector<int64_t> taps;
  for (int64_t o = 0; o < w.out_size(); ++o) {
    taps.clear();
    if (w.in_size() > 0) for_each_tap(w, o, [&](int64_t, int64_t offset) { taps.push_back(offset); });
    for (int64_t p = 0; p < planes; ++p) f(p, o, taps);
  }
}

std::vector<int64_t> output_shape(const Tensor& x, const StaticWindow& w) {
  std::vector<int64_t> s{x.dim(0), x.dim(1)};
  s.insert(s.end(), w.out.begin(), w.out.end());
  return s;
}

template <class T>
T least() {
  if constexpr (std::is_same_v<T, half>)
    return half{0xfc00};
  else if constexpr (std::is_same_v<T, bfloat16>)
    return bfloat16{0xff80};
  else if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::min();
}

// The number of an element within the tensor, counted as storage_order says: 1 = first spatial axis fastest.
int64_t index_of(int64_t plane, int64_t offset, const StaticWindow& w, bool column_major) {
  int64_t at = plane * w.in_size();
  if (!column_major) return at + offset;
  std::vector<int64_t> position(w.rank());
  for (size_t i = w.rank(); i-- > 0; offset /= w.in[i]) position[i] = offset % w.in[i];
  for (size_t i = 0, scale = 1; i < w.rank(); scale *= static_cast<size_t>(w.in[i]), ++i)
    at += position[i] * static_cast<int64_t>(scale);
  return at;
}

void max_pool(Evaluation& e, bool global) {
  const Tensor x = channels_first(e.attributes(), e.in[0]);
  const StaticWindow w = window_of(e, x, global);
  Tensor y(x.dtype(), output_shape(x, w));
  const bool column_major = !global && e.attributes().integer("storage_order", 0) != 0;
  Tensor* indices = e.out.size() > 1 && e.node.has_output(1) ? &e.out[1] : nullptr;
  with_type(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for_each_output(w, x.dim(0) * x.dim(1), [&](int64_t p, int64_t o, const std::vector<int64_t>& taps) {
      const T* plane = x.as<T>() + p * w.in_size();
      T best = taps.empty() ? least<T>() : plane[taps[0]];
      int64_t at = taps.empty() ? 0 : taps[0];
      for (int64_t i : taps) {
        const auto v = load(plane[i]), b = load(best);
        if (v > b || (v != v && b == b)) {
          best = plane[i];
          at = i;
        }
      }
      y.as<T>()[p * w.out_size() + o] = best;
      if (indices) indices->as<int64_t>()[p * w.out_size() + o] = index_of(p, at, w, column_major);
    });
  });
  e.out[0] = as_node_layout(e.attributes(), y);
}

// Sums f(x) over each window in double, and stores g(sum, taps inside, output).
template <class F, class G>
void sum_pool(Evaluation& e, bool global, F f, G g) {
  const Tensor x = channels_first(e.attributes(), e.in[0]);
  const StaticWindow w = window_of(e, x, global);
  Tensor y(x.dtype(), output_shape(x, w));
  with_type(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for_each_output(w, x.dim(0) * x.dim(1), [&](int64_t p, int64_t o, const std::vector<int64_t>& taps) {
      const T* plane = x.as<T>() + p * w.in_size();
      double sum = 0;
      for (int64_t i : taps) sum += f(static_cast<double>(load(plane[i])));
      const double v = g(sum, static_cast<int64_t>(taps.size()), o, w);
      if constexpr (std::is_same_v<T, double>)
        y.as<T>()[p * w.out_size() + o] = v;
      else if constexpr (std::is_same_v<T, float>)
        y.as<T>()[p * w.out_size() + o] = static_cast<float>(v);
      else
        y.set_real(p * w.out_size() + o, v);
    });
  });
  e.out[0] = as_node_layout(e.attributes(), y);
}

// Taps of output `flat` that lie in the input or its given pads.
int64_t taps_with_pads(const StaticWindow& w, int64_t flat) {
  int64_t count = 1;
  for (size_t i = w.rank(); i-- > 0; flat /= w.out[i]) {
    const int64_t begin = flat % w.out[i] * w.strides[i] - w.pads_begin[i], end = w.in[i] + w.pads_end[i];
    count *= std::min(w.kernel[i], begin >= end ? 0 : (end - 1 - begin) / w.dilations[i] + 1);
  }
  return count;
}

void average_pool(Evaluation& e, bool global) {
  const bool with_pads = !global && e.attributes().integer("count_include_pad", 0) != 0;
  sum_pool(
      e, global, [](double v) { return v; },
      [&](double sum, int64_t taps, int64_t o, const StaticWindow& w) {
        const int64_t count = with_pads ? taps_with_pads(w, o) : taps;
        return count == 0 && !global ? 0.0 : sum / static_cast<double>(count);
      });
}

void lp_pool(Evaluation& e, bool global) {
  const double p = static_cast<double>(e.attributes().integer("p", 2));
  sum_pool(
      e, global, [&](double v) { return p == 2 ? v * v : std::pow(std::fabs(v), p); },
      [&](double sum, int64_t, int64_t, const StaticWindow&) {
        return p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
      });
}

}  // namespace

const std::vector<Op>& ops_pool() {
  static const std::vector<Op> table = {
      {.name = "MaxPool",
       .max_outputs = 2,
       .infer = infer_max,
       .eval = [](Evaluation& e) { max_pool(e, false); }},
      {.name = "AveragePool", .infer = infer_average, .eval = [](Evaluation& e) { average_pool(e, false); }},
      {.name = "LpPool", .infer = infer_lp, .eval = [](Evaluation& e) { lp_pool(e, false); }},
      {.name = "GlobalMaxPool", .infer = infer_global, .eval = [](Evaluation& e) { max_pool(e, true); }},
      {.name = "GlobalAveragePool",
       .infer = infer_global,
       .eval = [](Evaluation& e) { average_pool(e, true); }},
      {.name = "GlobalLpPool", .infer = infer_global_lp, .eval = [](Evaluation& e) { lp_pool(e, true); }},
  };
  return table;
}

}  // namespace sinter
