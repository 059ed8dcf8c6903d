// Resize: every output element is a weighted sum of a few input elements, by a table for each resized axis.
//
// The tables (sinter/resize.h) are weights where the extents are known, else the layer fills scratch first.
// Loops run over the output; at each resized axis the taps of this output are looked up. Where the last axis
// keeps its size, as channels-last tensors do, the innermost loop runs over whole vectors with the taps'
// pointers and weights ready. Where floats are blended along the last axis too, a row's taps along the other
// axes are summed up first, whole vectors of the input at a time; then the row is resized, and finished.
#include "ops/vision/resize.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "emit/epilogue.h"
#include "ops/op.h"
#include "sinter/resize.h"

namespace sinter {
namespace {

const Tensor* constant(const Node& n, size_t i) {
  const Value* v = n.input(i);
  return v && v->data && v->data->size() > 0 ? &*v->data : nullptr;
}
bool computed(const Node& n, size_t i) { return i < n.anchor_inputs && n.input(i) && !n.inputs[i]->data; }

bool accepts(const Node& n, const Context&) {
  if (std::string_view(n.op->name) != "Resize" || n.op->domain[0] != 0) return false;
  const DType t = n.inputs[0]->type.dtype;
  return is_float(t) || is_integer(t) || t == DType::kBool;
}

constexpr int64_t kMostTaps = 1024;  // of one output: a pointer and a weight each are on the stack
constexpr int64_t kLongestAxis = int64_t{1} << 24;  // its table of indices is made here or lies in the arena

// One axis of the output, or several neighbouring ones that keep their size.
struct Axis {
  Dim extent, in_stride, out_stride;
  bool resized = false;
  size_t first = 0;           // the tensor's axis
  std::string index, weight;  // tables
  int taps = 1;
};

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w), n_(w.node), rule_(resize_rule(n_.attributes)), epilogue_(w, n_.outputs[0]->type.shape) {}

  void emit() {
    kind_ = static_cast<ResizeKind>(rule_.mode);
    t_ = n_.inputs[0]->type.dtype;
    const Shape& out = n_.outputs[0]->type.shape;
    w_.include("sinter/resize.h");
    w_.summary(
        fmt::format("Resize {} to {}{}", text(n_.inputs[0]->type.shape), text(out), epilogue_.summary()));
    x_ = w_.input(0);
    make_axes();
    y_ = w_.output(0);
    int64_t taps = 1;
    for (const Axis& a : axes_) taps *= a.taps;
    if (taps > kMostTaps) refuse_node(n_, "antialiasing over this many elements is not supported");
    taps_ = taps;
    w_.flops(product(out) * Dim(2 * taps));
    loops();
    if (by_run_ || checked_) w_.out.line("return 0;");
  }

 private:
  void make_axes() {
    const Shape& in = n_.inputs[0]->type.shape;
    const Shape& out = n_.outputs[0]->type.shape;
    const std::vector<Dim> in_strides = pitched_strides(w_, *n_.inputs[0]),
                           out_strides = pitched_strides(w_, *n_.outputs[0]);
    const bool dense = !w_.decision.pixel_stride && !w_.reads_gaps();
    by_run_ = resized_by_run(n_);
    const bool fixed = is_static(in) && is_static(out) && !by_run_;
    if (by_run_) settle(in, out);
    std::vector<ResizeAxis> geometry;
    if (fixed)
      geometry = resize_geometry(n_.attributes, static_dims(in), static_dims(out), constant(n_, 2),
                                 constant(n_, 3), constant(n_, 1));
    const std::vector<int64_t> named = resize_axes(n_.attributes, static_cast<int64_t>(in.size()));
    for (size_t a = 0; a < in.size(); ++a) {
      const auto at = std::find(named.begin(), named.end(), static_cast<int64_t>(a));
      const bool keeps = resize_keeps(n_, a);
      Axis axis{out[a], in_strides[a], out_strides[a], !keeps, a, "", "", 1};
      const bool run_on = dense || a + 1 < in.size();  // behind the last of the axis before
      if (keeps && run_on && !axes_.empty() && !axes_.back().resized && epilogue_.empty()) {
        axes_.back() = {axes_.back().extent * out[a], in_strides[a], out_strides[a], false, a, "", "", 1};
        continue;
      }
      if (!keeps) {
        if (in[a].hi() > kLongestAxis || out[a].hi() > kLongestAxis)
          refuse_node(n_, fmt::format("an axis of more than {} elements is resized", kLongestAxis));
        axis.taps = resize_taps(kind_);
        if (fixed)
          static_table(axis, geometry[a]);
        else
          run_time_table(axis, in[a], out[a], at - named.begin());
      }
      axes_.push_back(axis);
    }
    blends_rows_ = kind_ != ResizeKind::kNearest && rule_.transform != ResizeTransform::kTfCropAndResize &&
                   !axes_.empty() && axes_.back().resized && axes_.back().in_stride.is(1) &&
                   axes_.back().out_stride.is(1) && t_ == DType::kF32 && element_type(n_) == t_ &&
                   epilogue_.has_vector() && w_.target.lanes > 1;
    // A last axis of one element, so that there always is a plain innermost loop.
    if (axes_.empty() || (axes_.back().resized && epilogue_.empty()))
      inner_ = false;
    else
      inner_ = !axes_.back().resized;
  }

  void static_table(Axis& axis, const ResizeAxis& g) {
    std::vector<int32_t> index;
    std::vector<float> weight;
    const bool antialias = rule_.antialias && g.scale < 1 && kind_ != ResizeKind::kNearest;
    if (antialias) axis.taps = antialiased_taps(g.scale);
    index.resize(static_cast<size_t>(g.out * axis.taps));
    weight.resize(index.size());
    if (antialias)
      SINTER_CHECK(resize_antialiased_table(g, kind_, rule_.cubic_coefficient, rule_.exclude_outside,
                                            axis.taps, index.data(), weight.data()),
                   "too few taps");
    else
      resize_table(g, kind_, rule_.nearest, rule_.cubic_coefficient, rule_.exclude_outside, axis.taps,
                   index.data(), weight.data());
    const std::string comment = fmt::format("axis {}: [{}][{} taps]", axis.first, g.out, axis.taps);
    axis.index = w_.weights(fmt::format("index{}", axis.first), "std::int32_t", index.data(),
                            index.size() * 4, comment);
    if (kind_ != ResizeKind::kNearest)
      axis.weight = w_.weights(fmt::format("weight{}", axis.first), weight, comment);
  }

  int antialiased_taps(float scale) const {
    const int64_t taps = resize_antialiased_taps(kind_, scale);
    if (taps > kMostTaps) refuse_node(n_, "antialiasing over this many elements is not supported");
    return static_cast<int>(taps);
  }

  std::string policy() const { return n_.attributes.text("keep_aspect_ratio_policy", "stretch"); }

  // Element k of roi, as float.
  std::string roi(int64_t k) {
    if (const Tensor* known = constant(n_, 1)) return float_literal(known->real(k));
    const DType t = n_.inputs[1]->type.dtype;
    const std::string element = load_text(t, fmt::format("{}[{}]", w_.input(1), k));
    return t == DType::kF32 ? element : fmt::format("static_cast<float>({})", element);
  }

  // Scales, or sizes within an aspect ratio, that the run tells: what comes out of them must be the extents
  // that were planned.
  void settle(const Shape& in, const Shape& out) {
    const std::vector<int64_t> axes = resize_axes(n_.attributes, static_cast<int64_t>(in.size()));
    w_.can_fail();
    w_.include("sinter/status.h");
    const bool by_scales = computed(n_, 2);
    if (constant(n_, 2) || (!by_scales && policy() == "stretch")) return;  // the roi alone is computed
    if (!is_static(out))
      refuse_node(
          n_, "its scales are only known at run time: give them with --const, or declare its output's shape");
    for (int64_t a : axes)
      if (in[static_cast<size_t>(a)].lo() < 1)
        refuse_node(n_, "an axis that may be empty is resized by what the run tells");
    if (!by_scales && computed(n_, 3) && policy() != "stretch") {
      w_.out.line("float scale = 0;");
      for (size_t k = 0; k < axes.size(); ++k) {
        const std::string s = fmt::format("static_cast<float>({}[{}]) / static_cast<float>({})", w_.input(3),
                                          k, w_.dim(in[static_cast<size_t>(axes[k])]));
        w_.out.line("{}scale = {};",
                    k == 0 ? "" : fmt::format("if ({} {} scale) ", s, policy() == "not_larger" ? "<" : ">"),
                    s);
      }
    }
    w_.include("sinter/scalar.h");
    for (size_t k = 0; k < axes.size(); ++k) {
      const auto a = static_cast<size_t>(axes[k]);
      const std::string extent = w_.dim(in[a]);
      const std::string scaled = by_scales
                                     ? fmt::format("static_cast<float>({}) * {}[{}]", extent, w_.input(2), k)
                                     : fmt::format("std::round(scale * static_cast<float>({}))", extent);
      w_.out.line(
          "if (const float e = {}; !(e > 0.0f) || e > 1e9f || static_cast<std::int64_t>(e) != {}) "
          "return sinter::kDimError;",
          scaled, w_.dim(out[a]));
    }
  }

  // The given scale of an axis; 1 where no extent changes, as in resize_geometry().
  std::string scale_text(int64_t named) const {
    std::string scale = float_literal(constant(n_, 2)->real(named));
    const Shape &in = n_.inputs[0]->type.shape, &out = n_.outputs[0]->type.shape;
    std::string same;
    for (size_t a = 0; a < in.size(); ++a) {
      if (in[a] == out[a]) continue;
      if ((in[a] - out[a]).lo() > 0 || (in[a] - out[a]).hi() < 0) return scale;
      same += fmt::format("{}{} == {}", same.empty() ? "" : " && ", w_.dim(in[a]), w_.dim(out[a]));
    }
    if (rule_.transform == ResizeTransform::kTfCropAndResize) return scale;
    if (same.empty()) return "1.0f";
    return fmt::format("{} ? 1.0f : {}", same, scale);
  }

  void run_time_table(Axis& axis, const Dim& in, const Dim& out, int64_t named) {
    const bool antialias = rule_.antialias && kind_ != ResizeKind::kNearest;
    if (antialias) {  // the least scale that gives an output of this size
      if (in.hi() == Interval::kUnbounded || out.lo() < 1)
        refuse_node(n_, "antialiasing needs bounded sizes: bound them with --dim");
      axis.taps =
          antialiased_taps(constant(n_, 2) ? static_cast<float>(constant(n_, 2)->real(named))
                                           : static_cast<float>(out.lo()) / static_cast<float>(in.hi()));
    }
    const int64_t count = out.hi() * axis.taps;
    axis.index = w_.scratch(fmt::format("index{}", axis.first), "std::int32_t", count);
    axis.weight = w_.scratch(fmt::format("weight{}", axis.first), "float", count);
    if (!constant(n_, 2) && !by_run_ && policy() != "stretch")
      refuse_node(n_, "keep_aspect_ratio_policy needs known sizes: pin them with --dim");
    const bool crops = rule_.transform == ResizeTransform::kTfCropAndResize;
    const auto axes =
        static_cast<int64_t>(resize_axes(n_.attributes, n_.inputs[0]->type.shape.size()).size());
    const std::string begin = crops ? roi(named) : "0.0f", end = crops ? roi(axes + named) : "1.0f";
    const std::string i = w_.dim(in), o = w_.dim(out);
    const std::string scale = constant(n_, 2)   ? scale_text(named)
                              : computed(n_, 2) ? fmt::format("{}[{}]", w_.input(2), named)
                              : policy() != "stretch"
                                  ? "scale"
                                  : fmt::format("static_cast<float>({}) / static_cast<float>({})", o, i);
    w_.out.line(
        "const sinter::ResizeAxis axis{}{{{}, {}, {}, static_cast<sinter::ResizeTransform>({}), {}, {}}};",
        axis.first, i, o, scale, static_cast<int>(rule_.transform), begin, end);
    const std::string kind = fmt::format("static_cast<sinter::ResizeKind>({})", static_cast<int>(kind_));
    const std::string rest =
        fmt::format("{}, {}, {}, {}, {}", float_literal(rule_.cubic_coefficient),
                    rule_.exclude_outside ? "true" : "false", axis.taps, axis.index, axis.weight);
    if (antialias) {
      w_.can_fail();
      w_.include("sinter/status.h");
      w_.out.line("if (!sinter::resize_antialiased_table(axis{}, {}, {})) return sinter::kDimError;",
                  axis.first, kind, rest);
      checked_ = true;
    } else {
      w_.out.line("sinter::resize_table(axis{}, {}, static_cast<sinter::ResizeNearest>({}), {});", axis.first,
                  kind, static_cast<int>(rule_.nearest), rest);
    }
  }

  void loops() {
    const size_t depth = inner_ || blends_rows_ ? axes_.size() - 1 : axes_.size();
    std::string in = "0", out = "0";
    std::vector<size_t> resized;
    size_t parted = 0;
    while (parted < depth && axes_[parted].extent.is(1)) ++parted;
    const LayerWriter::Turns turns = w_.open_parts(parted < depth ? w_.dim(axes_[parted].extent) : "1");
    for (size_t a = 0; a < depth; ++a) {
      w_.out.line("for (std::int64_t i{0} = {1}; i{0} < {2}; ++i{0}) {{", a, a == parted ? turns.first : "0",
                  a == parted ? turns.end : w_.dim(axes_[a].extent));
      out += fmt::format(" + i{} * {}", a, w_.dim(axes_[a].out_stride));
      if (axes_[a].resized)
        resized.push_back(a);
      else
        in += fmt::format(" + i{} * {}", a, w_.dim(axes_[a].in_stride));
    }
    if (in.size() > 4) in = in.substr(4);
    if (out.size() > 4) out = out.substr(4);
    w_.out.line("{}* to = {} + {};", cpp_name(n_.outputs[0]->type.dtype), y_, out);
    if (blends_rows_) taps_ /= axes_.back().taps;
    taps(resized, in);
    const bool crops = rule_.transform == ResizeTransform::kTfCropAndResize;
    if (crops) {
      std::string outside;
      for (size_t a : resized)
        outside += fmt::format("{}{}[i{} * {}] < 0", outside.empty() ? "" : " || ", axes_[a].index, a,
                               axes_[a].taps);
      if (!outside.empty()) {
        w_.out.line("if ({}) {{", outside);
        const std::string n = inner_ ? w_.dim(axes_.back().extent) : "1";
        w_.include("sinter/scalar.h");
        w_.out.line("for (std::int64_t i = 0; i < {}; ++i) {{", n);
        if (!epilogue_.empty()) refuse_node(n_, "an epilogue behind tf_crop_and_resize is not supported");
        w_.out.line("to[i] = sinter::cast_to<{}>({});", cpp_name(t_),
                    float_literal(rule_.extrapolation_value));
        w_.out.line("}}");
        w_.out.line("continue;");
        w_.out.line("}}");
      }
    }
    blends_rows_ ? resize_row(blended_row()) : inner();
    for (size_t a = 0; a < depth; ++a) w_.out.line("}}");
    w_.close_parts();
  }

  // Loops over `extent` by variable v: whole vectors, and what is left. No loop that never runs: compilers
  // warn of these.
  void over_lanes(const Dim& extent, const char* v, const std::function<void()>& vector,
                  const std::function<void()>& element) {
    const int64_t lanes = w_.target.lanes;
    const bool known = extent.is_static();
    w_.include("sinter/math.h");
    w_.out.line("std::int64_t {} = 0;", v);
    if (!known || extent.value() >= lanes) {
      w_.out.line("for (; {0} + kLanes <= {1}; {0} += kLanes) {{", v, w_.dim(extent));
      vector();
      w_.out.line("}}");
    }
    if (known && extent.value() % lanes == 0) return;
    w_.out.line("for (; {0} < {1}; ++{0}) {{", v, w_.dim(extent));
    element();
    w_.out.line("}}");
  }

  // The sum of the taps along all axes but the last one: a row of the input.
  std::string blended_row() {
    if (!weighted_) return "from[0]";
    const Dim& extent = n_.inputs[0]->type.shape.back();
    const std::string row = w_.floats_of_part("blended", std::max<int64_t>(extent.hi(), 1));
    over_lanes(
        extent, "i",
        [&] {
          w_.out.line("f32v sum = mul(load(from[0] + i), splat(weight[0]));");
          w_.out.line("for (int t = 1; t < {}; ++t) sum = fma(load(from[t] + i), splat(weight[t]), sum);",
                      taps_);
          w_.out.line("store({} + i, sum);", row);
        },
        [&] {
          w_.out.line("float sum = from[0][i] * weight[0];");
          w_.out.line("for (int t = 1; t < {}; ++t) sum += from[t][i] * weight[t];", taps_);
          w_.out.line("{}[i] = sum;", row);
        });
    return row;
  }

  // The taps along the last axis, and the epilogue of whole vectors.
  void resize_row(const std::string& from) {
    const Axis& a = axes_.back();
    const std::string row =
        epilogue_.empty() ? "to" : w_.floats_of_part("resized", std::max<int64_t>(a.extent.hi(), 1));
    w_.out.line("for (std::int64_t k = 0; k < {}; ++k) {{", w_.dim(a.extent));
    if (a.taps <= 4) {
      std::string sum;
      for (int t = 0; t < a.taps; ++t)
        sum += fmt::format("{0}{1}[{2}[k * {4} + {5}]] * {3}[k * {4} + {5}]", t == 0 ? "" : " + ", from,
                           a.index, a.weight, a.taps, t);
      w_.out.line("{}[k] = {};", row, sum);
    } else {
      w_.out.line("float sum = 0.0f;");
      w_.out.line("for (std::int64_t t = k * {0}; t < k * {0} + {0}; ++t) sum += {1}[{2}[t]] * {3}[t];",
                  a.taps, from, a.index, a.weight);
      w_.out.line("{}[k] = sum;", row);
    }
    w_.out.line("}}");
    if (epilogue_.empty()) return;
    const auto index = row_index("o");
    over_lanes(
        a.extent, "o",
        [&] {
          w_.out.line("store(to + o, {});",
                      epilogue_.vector(fmt::format("load({} + o)", row), index, "", w_.out));
        },
        [&] {
          w_.out.line(
              "to[o] = {};",
              store_text(epilogue_.dtype(), epilogue_.scalar(row + "[o]", index, w_.out, TextMode::kLane)));
        });
  }
  std::vector<std::string> row_index(const std::string& last) const {
    std::vector<std::string> i;
    for (size_t a = 0; a + 1 < axes_.size(); ++a) i.push_back(fmt::format("i{}", a));
    i.push_back(last);
    return i;
  }

  // from[k], weight[k]: where each of the taps' products begins and what it weighs.
  void taps(const std::vector<size_t>& resized, const std::string& in) {
    w_.out.line("const {}* from[{}];", cpp_name(t_), taps_);
    const bool weighted = kind_ != ResizeKind::kNearest && !resized.empty();
    if (weighted) w_.out.line("float weight[{}];", taps_);
    std::string at = in, k, w;
    for (size_t i = 0; i < resized.size(); ++i) {
      const Axis& a = axes_[resized[i]];
      const std::string v = fmt::format("t{}", resized[i]);
      const std::string entry = fmt::format("[i{} * {} + {}]", resized[i], a.taps, v);
      w_.out.line("for (int {0} = 0; {0} < {1}; ++{0}) {{", v, a.taps);
      // Outside a crop the index is -1: the pointer is made from 0 and never read.
      const std::string position =
          rule_.transform == ResizeTransform::kTfCropAndResize
              ? fmt::format("sinter::max_of(std::int64_t{{0}}, std::int64_t{{{}{}}})", a.index, entry)
              : a.index + entry;
      if (rule_.transform == ResizeTransform::kTfCropAndResize) w_.include("sinter/dims.h");
      at += fmt::format(" + {} * {}", position, w_.dim(a.in_stride));
      k = k.empty() ? v : fmt::format("({} * {} + {})", k, a.taps, v);
      w += (w.empty() ? "" : " * ") + a.weight + entry;
    }
    w_.out.line("from[{}] = {} + {};", k.empty() ? "0" : k, x_, at);
    if (weighted) w_.out.line("weight[{}] = {};", k, w);
    for (size_t i = 0; i < resized.size(); ++i) w_.out.line("}}");
    weighted_ = weighted;
  }

  std::vector<std::string> index(const std::string& last) const {
    std::vector<std::string> i;
    for (size_t a = 0; a < axes_.size(); ++a)
      i.push_back(inner_ && a + 1 == axes_.size() ? last : fmt::format("i{}", a));
    return i;
  }

  void inner() {
    const std::string n = inner_ ? w_.dim(axes_.back().extent) : "1";
    const bool vector = inner_ && t_ == element_type(n_) && epilogue_.has_vector() && w_.target.lanes > 1 &&
                        axes_.back().extent.hi() >= w_.target.lanes;
    const bool whole =
        vector && axes_.back().extent.is_static() && axes_.back().extent.value() % w_.target.lanes == 0;
    if (vector) {
      w_.include("sinter/math.h");
      if (whole)
        w_.out.line("for (std::int64_t i = 0; i < {}; i += kLanes) {{", n);
      else
        w_.out.line("std::int64_t i = 0;");
      if (!whole) w_.out.line("for (; i + kLanes <= {}; i += kLanes) {{", n);
      if (weighted_) {
        w_.out.line("f32v sum = mul(load(from[0] + i), splat(weight[0]));");
        if (taps_ > 1)
          w_.out.line("for (int t = 1; t < {}; ++t) sum = fma(load(from[t] + i), splat(weight[t]), sum);",
                      taps_);
      } else {
        w_.out.line("const f32v sum = load(from[0] + i);");
      }
      w_.out.line("store(to + i, {});", epilogue_.vector("sum", index("i"), "", w_.out));
      w_.out.line("}}");
      if (whole) return;  // no tail: compilers warn of loops that never run
      w_.out.line("for (; i < {}; ++i) {{", n);
    } else {
      w_.out.line("for (std::int64_t i = 0; i < {}; ++i) {{", n);
    }
    const bool wide = t_ == DType::kF64 || is_integer(t_);
    const std::string sum_type = weighted_ ? (wide ? "double" : "float") : compute_type(t_);
    auto element = [&](const std::string& k) {
      const std::string e = load_text(t_, fmt::format("from[{}][i]", k));
      return sum_type == "double" && weighted_ ? fmt::format("static_cast<double>({})", e) : e;
    };
    if (weighted_) {
      w_.out.line("{} sum = 0;", sum_type);
      w_.out.line("for (int t = 0; t < {}; ++t) sum += {} * {};", taps_, element("t"),
                  sum_type == "double" ? "static_cast<double>(weight[t])" : "weight[t]");
    } else {
      w_.out.line("const {} sum = {};", sum_type, element("0"));
    }
    std::string value = "sum";
    if (weighted_ && is_integer(t_)) {
      w_.include("sinter/scalar.h");
      value = fmt::format("sinter::cast_to<{}>(sinter::round(sum))", cpp_name(t_));
    }
    const std::string result =
        epilogue_.scalar(value, index("i"), w_.out, vector ? TextMode::kLane : TextMode::kScalar);
    w_.out.line("to[i] = {};", store_text(epilogue_.dtype(), result));
    w_.out.line("}}");
  }

  LayerWriter& w_;
  const Node& n_;
  ResizeRule rule_;
  Epilogue epilogue_;
  ResizeKind kind_ = ResizeKind::kNearest;
  DType t_ = DType::kF32;
  std::vector<Axis> axes_;
  bool inner_ = true, weighted_ = false, blends_rows_ = false;
  bool by_run_ = false;   // scales or roi come with the run
  bool checked_ = false;  // a table is made by a function that may fail
  int64_t taps_ = 1;
  std::string x_, y_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_resize() {
  static const std::vector<Kernel> table = {{"resize",
                                             "Resize by a table of taps for each resized axis",
                                             accepts,
                                             emit,
                                             {.writes_apart = true, .reads_apart = true}}};
  return table;
}

}  // namespace sinter
