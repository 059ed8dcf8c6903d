// Resize (ONNX Resize-19): nearest, N-linear and N-cubic interpolation over any axes.
//
// Linear and cubic interpolation are separable: eval resizes one axis after the other in double, with a
// table of taps and weights for each output along the axis. Integers are rounded to nearest even and
// saturate.
#include "ops/vision/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "ops/movement/movement.h"
#include "ops/op.h"
#include "sinter/dims.h"

namespace sinter {
namespace {

struct Fraction {
  int64_t p, q;
};
// Whether in * p / q is what the float product gives, for all extents up to `most`.
bool agrees(Fraction f, float scale, int64_t most) {
  for (int64_t in = 0; in <= most; ++in)
    if (in * f.p / f.q != scaled_extent(in, scale)) return false;
  return true;
}
// The simplest convergent of the scale's continued fraction that gives the extents that the float product
// gives, up to `most`. Where the product of an extent and an integer is exact, that integer.
std::optional<Fraction> fraction_of(float scale, int64_t most) {
  constexpr int64_t kLooked = int64_t{1} << 20;
  if (scale > 1e6f) return std::nullopt;
  if (scale == std::floor(scale) && (most <= 1 << 24) && most <= (1 << 24) / static_cast<int64_t>(scale))
    return Fraction{static_cast<int64_t>(scale), 1};
  if (most > kLooked) return std::nullopt;
  double rest = static_cast<double>(scale);
  Fraction before{1, 0}, f{static_cast<int64_t>(std::floor(rest)), 1};
  for (int step = 0; step < 24; ++step) {
    if (f.p > 0 && agrees(f, scale, most)) return f;
    const double part = rest - std::floor(rest);
    if (part < 1e-12) break;
    rest = 1 / part;
    const int64_t a = static_cast<int64_t>(std::floor(rest));
    if (a > 100'000) break;
    const Fraction next{a * f.p + before.p, a * f.q + before.q};
    if (next.q > 1'000'000 || next.p > 1'000'000'000) break;
    before = f;
    f = next;
  }
  return std::nullopt;
}

float policy_scale(const std::string& policy, const std::vector<int64_t>& in,
                   const std::vector<int64_t>& sizes, const std::vector<int64_t>& axes) {
  float scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const float s = static_cast<float>(sizes[i]) / static_cast<float>(in[static_cast<size_t>(axes[i])]);
    scale = i == 0 ? s : policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
  }
  return scale;
}

std::string policy_of(const Attributes& a) {
  std::string policy = a.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    refuse("keep_aspect_ratio_policy is {}", sinter::quoted(policy));
  return policy;
}

// An optional input counts as absent where it is empty: exporters write that before opset 13's "".
bool given(const Inference& x, size_t i) { return x.has(i) && !(x.rank(i) == 1 && x.shape(i)[0].is(0)); }
const Tensor* given(const Evaluation& e, size_t i) {
  return e.has(i) && e.in[i].size() > 0 ? &e.in[i] : nullptr;
}

void infer_by_scales(Inference& x, const std::vector<int64_t>& axes, Shape& out) {
  const Tensor* scales = x.in[2].data;
  if (!scales) {  // the model's declaration must tell what comes out
    x.require(
        x.dtype(2) == DType::kF32 && x.rank(2) == 1 && x.shape(2)[0].is(static_cast<int64_t>(axes.size())),
        fmt::format("scales are not {} floats", axes.size()));
    for (const int64_t a : axes) out[static_cast<size_t>(a)] = x.operand_extent(fmt::format("axis{}", a));
    return;
  }
  x.require(scales->dtype() == DType::kF32 && scales->size() == static_cast<int64_t>(axes.size()),
            fmt::format("scales are not {} floats", axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const float s = scales->as<float>()[i];
    x.require(s > 0 && std::isfinite(s), fmt::format("scale {} is {}", i, s));
    Dim& d = out[static_cast<size_t>(axes[i])];
    d = resized_extent(d, s);
  }
}

void infer_by_sizes(Inference& x, const std::vector<int64_t>& axes, Shape& out) {
  const std::vector<Dim> known = known_elements(x, 3, "sizes");
  const std::vector<Dim>* sizes = &known;
  x.require(sizes->size() == axes.size(), fmt::format("{} sizes for {} axes", sizes->size(), axes.size()));
  for (const Dim& d : *sizes) x.require(d.hi() >= 0, fmt::format("a size is {}", d.text()));
  const std::string policy = policy_of(x.attributes());
  if (policy == "stretch") {
    for (size_t i = 0; i < axes.size(); ++i) {
      x.require_equal(min((*sizes)[i], 0), 0, "sizes are not negative");
      out[static_cast<size_t>(axes[i])] = (*sizes)[i];
    }
    return;
  }
  if (!x.integers(3)) {
    for (const int64_t a : axes) out[static_cast<size_t>(a)] = x.operand_extent(fmt::format("axis{}", a));
    return;
  }
  std::vector<int64_t> in, wanted;
  for (size_t i = 0; i < out.size(); ++i) in.push_back(out[i].is_static() ? out[i].value() : 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim& d = out[static_cast<size_t>(axes[i])];
    x.require(d.is_static() && (*sizes)[i].is_static(),
              fmt::format("keep_aspect_ratio_policy is not supported for an unknown extent ({} to {})",
                          d.text(), (*sizes)[i].text()));
    x.require(d.value() > 0, "an axis without elements is resized");
    wanted.push_back((*sizes)[i].value());
  }
  const float scale = policy_scale(policy, in, wanted, axes);
  for (const int64_t axis : axes) {
    const float product = std::round(scale * static_cast<float>(in[static_cast<size_t>(axis)]));
    x.require(product < 1e15f, "the output is too large");
    out[static_cast<size_t>(axis)] = static_cast<int64_t>(product);
  }
}

void infer(Inference& x) {
  const Attributes& a = x.attributes();
  const ResizeRule rule = resize_rule(a);
  const DType t = x.dtype(0);
  x.require(rule.mode == ResizeMode::kNearest ? size_of(t) > 0 : is_float(t) || is_integer(t),
            fmt::format("{} interpolation is not for {}", a.text("mode", "nearest"), name_of(t)));
  x.require(!(rule.antialias && rule.mode == ResizeMode::kNearest), "antialias with mode nearest");
  const std::vector<int64_t> axes = resize_axes(a, x.rank(0));
  const bool by_scales = given(x, 2), by_sizes = given(x, 3);
  x.require(by_scales || by_sizes || axes.empty(), "neither scales nor sizes are given");
  x.require(!(by_scales && by_sizes), "both scales and sizes are given");
  if (rule.transform == ResizeTransform::kTfCropAndResize) {
    x.require(given(x, 1), "roi is missing");
    x.require(is_float(x.dtype(1)) && x.rank(1) == 1, "roi is not a list of floats");
    x.require_equal(x.shape(1)[0], Dim(static_cast<int64_t>(2 * axes.size())), "length of roi = 2 an axis");
  }
  Shape out = x.shape(0);
  if (by_scales) infer_by_scales(x, axes, out);
  if (by_sizes) infer_by_sizes(x, axes, out);
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == x.shape(0)[i] || out[i].is(0)) continue;
    x.require(x.shape(0)[i].hi() > 0, "an axis without elements is resized");
    x.require_equal(min(x.shape(0)[i], 1), 1, fmt::format("axis {} has elements to resize", i));
  }
  x.set(0, t, out);
}

// For each output along an axis: the input indices and their weights.
struct Tap {
  int64_t index;
  double weight;
};
using Taps = std::vector<std::vector<Tap>>;

std::vector<Tap> span_taps(const ResizeAxis& axis, float source, const ResizeRule& rule) {
  const bool cubic = rule.mode == ResizeMode::kCubic;
  const ResizeSpan span = resize_span(axis, source, cubic ? 2.0f : 1.0f);
  std::vector<Tap> taps;
  double sum = 0;
  for (int64_t j = span.first; j < span.first + span.count; ++j) {
    const bool outside = j < 0 || j >= axis.in;
    const float w = resize_span_weight(span, j, cubic, rule.cubic_coefficient);
    if (w == 0 || (outside && rule.exclude_outside)) continue;
    taps.push_back({std::clamp<int64_t>(j, 0, axis.in - 1), static_cast<double>(w)});
    sum += static_cast<double>(w);
  }
  for (Tap& t : taps) t.weight /= sum;
  return taps;
}

Taps taps_of(const ResizeAxis& axis, const ResizeRule& rule) {
  Taps all;
  for (int64_t o = 0; o < axis.out; ++o) {
    const float source = resize_source(axis, o);
    all.emplace_back();
    if (resize_is_outside(axis, source)) continue;
    int64_t index[4];
    float weight[4];
    size_t n = 0;
    if (rule.antialias && axis.scale < 1) {
      all.back() = span_taps(axis, source, rule);
    } else if (rule.mode == ResizeMode::kLinear) {
      resize_linear(axis, source, index, weight);
      n = 2;
    } else {
      resize_cubic(axis, source, rule.cubic_coefficient, rule.exclude_outside, index, weight);
      n = 4;
    }
    for (size_t i = 0; i < n; ++i) all.back().push_back({index[i], static_cast<double>(weight[i])});
  }
  return all;
}

Tensor resize_axis(const Tensor& x, size_t axis, const Taps& taps) {
  std::vector<int64_t> shape = x.shape();
  const int64_t in = shape[axis], out = static_cast<int64_t>(taps.size());
  shape[axis] = out;
  Tensor y(DType::kF64, shape);
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  for (int64_t b = 0; b < outer; ++b)
    for (int64_t o = 0; o < out; ++o) {
      double* to = y.as<double>() + (b * out + o) * inner;
      for (const Tap& t : taps[static_cast<size_t>(o)]) {
        const double* from = x.as<double>() + (b * in + t.index) * inner;
        for (int64_t i = 0; i < inner; ++i) to[i] += t.weight * from[i];
      }
    }
  return y;
}

// The flat input index of every output, or -1 outside; visited in order.
template <class F>
void for_each_source(const std::vector<std::vector<int64_t>>& index, const std::vector<int64_t>& in_strides,
                     F f) {
  const size_t n = index.size();
  std::vector<size_t> at(n, 0);
  int64_t total = 1;
  for (const auto& v : index) total *= static_cast<int64_t>(v.size());
  for (int64_t o = 0; o < total; ++o) {
    int64_t source = 0;
    bool outside = false;
    for (size_t d = 0; d < n; ++d) {
      const int64_t i = index[d][at[d]];
      outside = outside || i < 0;
      source += i * in_strides[d];
    }
    f(o, outside ? -1 : source);
    for (size_t d = n; d-- > 0;) {
      if (++at[d] < index[d].size()) break;
      at[d] = 0;
    }
  }
}

// Per axis the input index of each output (nearest), or just 0 and -1 for inside and outside.
std::vector<std::vector<int64_t>> sources(const std::vector<ResizeAxis>& axes, const ResizeRule& rule) {
  std::vector<std::vector<int64_t>> index;
  for (const ResizeAxis& a : axes) {
    index.emplace_back();
    for (int64_t o = 0; o < a.out; ++o) {
      const float s = resize_source(a, o);
      index.back().push_back(resize_is_outside(a, s) ? -1 : resize_nearest(a, s, rule.nearest));
    }
  }
  return index;
}

void eval(Evaluation& e) {
  const Tensor& x = e.in[0];
  Tensor& y = e.out[0];
  if (y.size() == 0) return;
  const ResizeRule rule = resize_rule(e.attributes());
  const std::vector<ResizeAxis> axes =
      resize_geometry(e.attributes(), x.shape(), y.shape(), given(e, 2), given(e, 3), given(e, 1));
  const std::vector<int64_t> strides = row_major_strides(x.shape());
  const auto index = sources(axes, rule);
  const auto extrapolate = static_cast<double>(rule.extrapolation_value);
  if (rule.mode == ResizeMode::kNearest) {
    const size_t each = size_of(x.dtype());
    for_each_source(index, strides, [&](int64_t o, int64_t source) {
      if (source < 0)
        y.set_real(o, extrapolate);
      else
        std::memcpy(y.mutable_data() + static_cast<size_t>(o) * each,
                    x.data() + static_cast<size_t>(source) * each, each);
    });
    return;
  }
  Tensor t = x.converted(DType::kF64);
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].scale != 1 || axes[i].in != axes[i].out ||
        axes[i].transform == ResizeTransform::kTfCropAndResize)
      t = resize_axis(t, i, taps_of(axes[i], rule));
  if (rule.transform == ResizeTransform::kTfCropAndResize) {
    for_each_source(index, strides, [&](int64_t o, int64_t source) {
      if (source < 0) t.as<double>()[o] = extrapolate;
    });
  }
  if (is_integer(y.dtype()))
    for (int64_t i = 0; i < t.size(); ++i) y.set_real(i, std::nearbyint(t.as<double>()[i]));
  else
    y = t.converted(y.dtype());
}

}  // namespace

ResizeRule resize_rule(const Attributes& a) {
  ResizeRule r;
  auto choose = [&](const char* name, const char* fallback, std::initializer_list<const char*> words) {
    const std::string s = a.text(name, fallback);
    size_t i = 0;
    for (const char* word : words) {
      if (s == word) return i;
      ++i;
    }
    refuse("{} {} is not supported", name, sinter::quoted(s));
  };
  r.mode = static_cast<ResizeMode>(choose("mode", "nearest", {"nearest", "linear", "cubic"}));
  r.transform = static_cast<ResizeTransform>(
      choose("coordinate_transformation_mode", "half_pixel",
             {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
              "tf_crop_and_resize", "tf_half_pixel_for_nn"}));
  r.nearest = static_cast<ResizeNearest>(choose(
      "nearest_mode", "round_prefer_floor", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  r.cubic_coefficient = a.real("cubic_coeff_a", -0.75f);
  r.extrapolation_value = a.real("extrapolation_value", 0);
  r.exclude_outside = a.integer("exclude_outside", 0) != 0;
  r.antialias = a.integer("antialias", 0) != 0;
  return r;
}

std::vector<int64_t> resize_axes(const Attributes& a, int64_t rank) {
  std::vector<int64_t> axes = a.integers("axes");
  if (!a.has("axes")) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) refuse("axis {} out of range for {} axes", axis, rank);
    if (axis < 0) axis += rank;
    if (seen[static_cast<size_t>(axis)]) refuse("axis {} is named twice", axis);
    seen[static_cast<size_t>(axis)] = true;
  }
  return axes;
}

bool resized_by_run(const Node& n) {
  const auto computed = [&](size_t i) { return i < n.anchor_inputs && n.input(i) && !n.inputs[i]->data; };
  const bool stretches = n.attributes.text("keep_aspect_ratio_policy", "stretch") == "stretch";
  const bool crops = resize_rule(n.attributes).transform == ResizeTransform::kTfCropAndResize;
  return computed(2) || (computed(3) && !stretches) || (crops && computed(1));
}

bool resize_keeps(const Node& n, size_t a) {
  const Dim &in = n.inputs[0]->type.shape[a], &out = n.outputs[0]->type.shape[a];
  const std::vector<int64_t> named =
      resize_axes(n.attributes, static_cast<int64_t>(n.inputs[0]->type.shape.size()));
  const auto at = std::find(named.begin(), named.end(), static_cast<int64_t>(a));
  if (at == named.end()) return true;
  if (!(in == out) || resize_rule(n.attributes).transform == ResizeTransform::kTfCropAndResize) return false;
  // One element stays what it is, whatever the scale.
  if (resized_by_run(n) && !(in.is(1) && out.is(1))) return false;
  const Value* scales = n.input(2);
  return !scales || !scales->data || scales->data->size() == 0 ||
         scales->data->real(at - named.begin()) == 1.0;
}

bool resize_repeats(const Node& n, size_t a, int64_t times) {
  constexpr int64_t kLongest = 1 << 24;  // elements that are looked at
  const Shape &in = n.inputs[0]->type.shape, &out = n.outputs[0]->type.shape;
  const ResizeRule rule = resize_rule(n.attributes);
  if (rule.mode != ResizeMode::kNearest || rule.transform == ResizeTransform::kTfCropAndResize) return false;
  if (!is_static(in) || !is_static(out) || resized_by_run(n)) return false;
  if (out[a].value() > kLongest || in[a].value() > kLongest || out[a].value() != in[a].value() * times)
    return false;
  const auto constant = [&](size_t i) {
    const Value* v = n.input(i);
    return v && v->data && v->data->size() > 0 ? &*v->data : nullptr;
  };
  const ResizeAxis axis = resize_geometry(n.attributes, static_dims(in), static_dims(out), constant(2),
                                          constant(3), constant(1))[a];
  for (int64_t o = 0; o < axis.out; ++o)
    if (resize_nearest(axis, resize_source(axis, o), rule.nearest) != o / times) return false;
  return true;
}

std::vector<ResizeAxis> resize_geometry(const Attributes& a, const std::vector<int64_t>& in,
                                        const std::vector<int64_t>& out, const Tensor* scales,
                                        const Tensor* sizes, const Tensor* roi) {
  const ResizeTransform transform = resize_rule(a).transform;
  const bool crop = transform == ResizeTransform::kTfCropAndResize;
  std::vector<ResizeAxis> all;
  for (size_t i = 0; i < in.size(); ++i)  // an axis that is not resized is its own crop
    all.push_back({in[i], out[i], 1, crop ? ResizeTransform::kAsymmetric : transform, 0, 1});
  const std::vector<int64_t> axes = resize_axes(a, static_cast<int64_t>(in.size()));
  const std::string policy = policy_of(a);
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& r = all[static_cast<size_t>(axes[i])];
    r.transform = transform;
    if (scales)
      r.scale = static_cast<float>(scales->real(static_cast<int64_t>(i)));
    else if (sizes && policy != "stretch")
      r.scale = policy_scale(policy, in, sizes->integers(), axes);
    else if (r.in > 0)
      r.scale = static_cast<float>(r.out) / static_cast<float>(r.in);
    if (!crop || !roi) continue;
    r.roi_start = static_cast<float>(roi->real(static_cast<int64_t>(i)));
    r.roi_end = static_cast<float>(roi->real(static_cast<int64_t>(axes.size() + i)));
  }
  // Where no extent changes, ONNX Runtime copies, whatever the scales are.
  if (!crop && in == out)
    for (ResizeAxis& r : all) r.scale = 1;
  return all;
}

Dim resized_extent(const Dim& in, float scale) {
  const int64_t most = in.hi();
  if (in.is_static()) {
    if (!(static_cast<float>(most) * scale < 1e15f))
      refuse("an extent of {} scaled by {} is too large", most, scale);
    return Dim(scaled_extent(most, scale));
  }
  // Without a bound the model is refused later; the fraction says most about what comes out until then.
  const auto f = fraction_of(scale, most == Interval::kUnbounded ? 4096 : most);
  return f ? floordiv(in * Dim(f->p), Dim(f->q)) : scaled_extent(in, scale);
}

const std::vector<Op>& ops_resize() {
  static const std::vector<Op> table = {
      {.name = "Resize",
       .min_inputs = 1,
       .max_inputs = 4,
       .infer = infer,
       .eval = eval,
       .note = "scales must be constant"},
  };
  return table;
}

}  // namespace sinter
