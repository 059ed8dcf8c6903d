// Normalisations: statistics of a set of elements, then (x - mean) * factor, scale and bias.
//
// All of them are one Norm: which axes are reduced, what the factor is, and how scale and bias lie along the
// axes. Rows: the reduced axes are one contiguous line (LayerNormalization, InstanceNormalization and
// GroupNormalization of [N, C, spatial...]); a line is read for its mean, its variance, and to be finished,
// from the first-level cache. Columns: they are one block of outer axes, a lane per column (channels-last;
// kernels/reductions/norm_blocks.cpp has large ones). Grouped columns: the same, with the sums of
// neighbouring columns added up (GroupNormalization, channels-last). Plain: any axes and element types, in
// double.
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/nest.h"
#include "kernels/reductions/norm_form.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) { return norm_of(n).has_value(); }

class Writer {
 public:
  explicit Writer(LayerWriter& w) : w_(w), n_(w.node), norm_(*norm_of(w.node)) {}

  void write() {
    w_.flops(product(n_.inputs[0]->type.shape) * Dim(7));
    w_.summary(fmt::format("{} of {}{}", n_.op->name, text(n_.inputs[0]->type),
                           n_.epilogue ? ", then " + text(*n_.epilogue) : ""));
    x_ = w_.input(0);
    scale_ = norm_.scale >= 0 && n_.has_output(0) ? w_.input(static_cast<size_t>(norm_.scale)) : "";
    bias_ = norm_.bias >= 0 && n_.has_output(0) ? w_.input(static_cast<size_t>(norm_.bias)) : "";
    count_ = reduced_count(norm_);
    if (runs_in_vectors(n_, norm_)) {
      const Norm whole = norm_;
      epilogue_.emplace(w_, n_.outputs[0]->type.shape);
      merge_axes(norm_, *epilogue_);
      if (is_rows() || reduces_columns(norm_) || is_grouped_columns()) {
        w_.include("sinter/math.h");
        w_.include("sinter/mac.h");
        y_ = w_.output(0);
        side_outputs();
        if (is_rows())
          rows();
        else if (reduces_columns(norm_))
          columns();
        else
          grouped_columns();
        return;
      }
      norm_ = whole;
    }
    plain();
  }

 private:
  size_t size() const { return norm_.axes.size(); }
  size_t first_reduced() const {
    size_t a = 0;
    while (a < size() && !norm_.axes[a].reduced) ++a;
    return a;
  }
  size_t behind_reduced() const {
    size_t a = first_reduced();
    while (a < size() && norm_.axes[a].reduced) ++a;
    return a;
  }
  // The reduced axes are the last ones.
  bool is_rows() const {
    return first_reduced() < size() && behind_reduced() == size() && has_unit_operands(norm_);
  }
  // The reduced axes are a block of outer axes and the last one; between them, the groups.
  bool is_grouped_columns() const {
    if (norm_.factor != Factor::kDeviation || size() < 3 || behind_reduced() + 2 != size() ||
        scale_.empty() || bias_.empty())
      return false;
    const NormAxis &groups = norm_.axes[size() - 2], &each = norm_.axes.back();
    if (!each.reduced || !each.scale.is(1) || !each.bias.is(1)) return false;
    for (size_t a = 0; a + 2 < size(); ++a)
      if (!norm_.axes[a].scale.is(0) || !norm_.axes[a].bias.is(0)) return false;
    return groups.scale == each.extent && groups.bias == each.extent;
  }

  void side_outputs() {
    if (norm_.mean_output >= 0) mean_out_ = w_.output(static_cast<size_t>(norm_.mean_output));
    if (norm_.factor_output >= 0) factor_out_ = w_.output(static_cast<size_t>(norm_.factor_output));
  }

  // Opens loops over the axes [first, end), named after their numbers; `at` becomes the row-major number.
  // Parts are turns of the first axis before the reduced ones that has several; size() where none has.
  size_t open_parts() {
    size_t axis = 0;
    while (axis < first_reduced() && norm_.axes[axis].extent.is(1)) ++axis;
    if (axis == first_reduced()) return size();
    turns_ = w_.open_parts(w_.dim(norm_.axes[axis].extent));
    return axis;
  }
  void open_axes(size_t first, size_t end, std::vector<std::string>& index, std::string& at) {
    at = "0";
    for (size_t a = first; a < end; ++a) {
      index[a] = fmt::format("i{}", a);
      if (a == parted_)
        w_.out.put(loop_text(index[a], turns_));
      else
        w_.out.put(loop_text(index[a], w_.dim(norm_.axes[a].extent)));
      at = plus(times(at, w_.dim(norm_.axes[a].extent)), index[a]);
    }
  }
  void close(size_t loops) {
    for (size_t i = 0; i < loops; ++i) w_.out.line("}}");
  }

  // float `name` = the sum over the line of term(v) or, where that begins with "square:", of its square.
  using Term = std::function<std::string(const std::string& v, bool vector)>;
  void line_sum(const std::string& name, const std::string& n, const Term& term) {
    w_.out.line("f32v {0}0 = zero(), {0}1 = zero();", name);
    w_.out.line("i = 0;");
    w_.out.line("for (; i + 2 * kLanes <= {}; i += 2 * kLanes) {{", n);
    w_.out.line("const f32v a = load(from + i), b = load(from + i + kLanes);");
    add_term(name + "0", "a", term, true);
    add_term(name + "1", "b", term, true);
    w_.out.line("}}");
    w_.out.line("for (; i + kLanes <= {}; i += kLanes) {{", n);
    w_.out.line("const f32v a = load(from + i);");
    add_term(name + "0", "a", term, true);
    w_.out.line("}}");
    w_.out.line("float {0} = hsum(add({0}0, {0}1));", name);
    if (whole(count_)) return;
    w_.out.line("for (; i < {}; ++i) {{", n);
    w_.out.line("const float a = from[i];");
    add_term(name, "a", term, false);
    w_.out.line("}}");
  }
  void add_term(const std::string& sum, const std::string& v, const Term& term, bool vector) {
    const std::string t = term(v, vector);
    if (t.rfind("square:", 0) != 0) {
      w_.out.line("{0} = add({0}, {1});", sum, t);
    } else if (t == "square:" + v) {
      w_.out.line("{0} = fma({1}, {1}, {0});", sum, v);
    } else {
      w_.out.line("const {} d{} = {};", vector ? "f32v" : "float", v, t.substr(7));
      w_.out.line("{0} = fma(d{1}, d{1}, {0});", sum, v);
    }
  }
  bool whole(const Dim& n) const {
    return w_.target.lanes == 1 || (n.is_static() && n.value() % w_.target.lanes == 0);
  }

  void statistics(const std::string& n) {
    w_.out.line("std::int64_t i = 0;");
    if (subtracts_mean(norm_.factor)) {
      line_sum("sum", n, [](const std::string& v, bool) { return v; });
      w_.out.line("const float mean = sum / {};", float_text(w_, count_));
      line_sum("squares", n, [](const std::string& v, bool vector) {
        return "square:sub(" + v + (vector ? ", splat(mean))" : ", mean)");
      });
    } else if (norm_.factor == Factor::kL1) {
      line_sum("squares", n, [](const std::string& v, bool) { return "abs(" + v + ")"; });
    } else {
      line_sum("squares", n, [](const std::string& v, bool) { return "square:" + v; });
    }
    const std::string mean_square = fmt::format("squares / {}", float_text(w_, count_));
    std::string factor;
    switch (norm_.factor) {
      case Factor::kDeviation:
      case Factor::kRms:
        factor = fmt::format("1.0f / sqrt({} + {})", mean_square, float_literal(norm_.epsilon));
        break;
      case Factor::kPlainDeviation: factor = fmt::format("1.0f / (sqrt({}) + 1e-9f)", mean_square); break;
      case Factor::kL1: factor = "squares == 0.0f ? 0.0f : 1.0f / squares"; break;
      case Factor::kL2: factor = "squares == 0.0f ? 0.0f : 1.0f / sqrt(squares)"; break;
    }
    w_.out.line("const float factor = {};", factor);
  }

  // (x - mean) * factor * scale + bias.
  std::string finished(const std::string& x, const std::string& scale, const std::string& bias,
                       bool vector) const {
    auto splat = [&](const char* s) { return vector ? fmt::format("splat({})", s) : std::string(s); };
    std::string v = x;
    if (subtracts_mean(norm_.factor)) v = fmt::format("sub({}, {})", v, splat("mean"));
    v = fmt::format("mul({}, {})", v, splat("factor"));
    if (!scale.empty() && !bias.empty()) return fmt::format("fma({}, {}, {})", v, scale, bias);
    return scale.empty() ? v : fmt::format("mul({}, {})", v, scale);
  }

  // --- rows: the line is the last axes

  void rows() {
    const size_t first = first_reduced(), last = size() - 1;
    std::vector<std::string> index(size(), "0");
    std::string row, at;
    parted_ = open_parts();
    if (parted_ + 1 == first && norm_.axes[parted_].extent.is_static() && mean_out_.empty() &&
        factor_out_.empty())
      w_.parts_are_rows(
          norm_.axes[parted_].extent.value(), [](int64_t turn) { return turn; }, true);
    open_axes(0, first, index, row);
    const std::string n = w_.dim(count_);
    w_.out.line("const float* const from = {};", plus(x_, times(row, n)));
    w_.out.line("float* const to = {};", plus(y_, times(row, n)));
    statistics(n);
    if (!mean_out_.empty())
      w_.out.line("{}[{}] = {};", mean_out_, row, subtracts_mean(norm_.factor) ? "mean" : "0.0f");
    if (!factor_out_.empty()) w_.out.line("{}[{}] = factor;", factor_out_, row);
    w_.out.blank();

    open_axes(first, last, index, at);
    index[last] = "i";
    const Dim& inner = norm_.axes[last].extent;
    const std::string end = w_.dim(inner);
    at = plus(times(at, end), "i");
    auto operand = [&](const std::string& p, bool is_scale, bool vector) -> std::string {
      if (p.empty()) return "";
      auto stride = [&](size_t a) { return is_scale ? norm_.axes[a].scale : norm_.axes[a].bias; };
      std::string offset = "0";
      for (size_t a = 0; a < last; ++a)
        if (!stride(a).is(0)) offset = plus(offset, times(index[a], w_.dim(stride(a))));
      if (stride(last).is(0)) {
        const std::string element = fmt::format("{}[{}]", p, offset);
        return vector ? "splat(" + element + ")" : element;
      }
      return vector ? fmt::format("load({})", plus(plus(p, offset), "i"))
                    : fmt::format("{}[{}]", p, plus(offset, "i"));
    };
    w_.out.line("i = 0;");
    w_.out.line("for (; i + kLanes <= {}; i += kLanes) {{", end);
    w_.out.line("const f32v v = {};",
                finished(fmt::format("load({})", plus("from", at)), operand(scale_, true, true),
                         operand(bias_, false, true), true));
    w_.out.line("store({}, {});", plus("to", at),
                epilogue_->vector("v", output_index(w_, norm_, index), "", w_.out));
    w_.out.line("}}");
    if (!whole(inner)) {
      w_.out.line("for (; i < {}; ++i) {{", end);
      w_.out.line("const float v = {};",
                  finished(load_text(n_.inputs[0]->type.dtype, fmt::format("from[{}]", at)),
                           operand(scale_, true, false), operand(bias_, false, false), false));
      w_.out.line("to[{}] = {};", at,
                  epilogue_->scalar("v", output_index(w_, norm_, index), w_.out, TextMode::kLane));
      w_.out.line("}}");
    }
    close(last);
    if (parted_ < size()) w_.close_parts();
  }

  // --- columns: [outer][count][inner], statistics over the middle

  // Opens a loop over blocks of k and one over k in the block, with sums part[]: a single chain of floats
  // over a whole picture (800 x 800 pixels) would lose three digits.
  void open_blocks(const std::string& n) {
    constexpr int kBlock = 256;
    w_.include("sinter/dims.h");
    w_.out.line("for (std::int64_t k0 = 0; k0 < {0}; k0 += {1}) {{", n, kBlock);
    w_.out.line("const std::int64_t k1 = sinter::min_of({}, k0 + {});",
                n.find_first_not_of("0123456789") == std::string::npos ? "std::int64_t{" + n + "}" : n,
                kBlock);
    w_.out.line("f32v part[kVectors];");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) part[v] = zero();");
    w_.out.line("for (std::int64_t k = k0; k < k1; ++k) {{");
  }

  void columns() {
    const size_t first = first_reduced(), last = size() - 1;
    std::vector<std::string> index(size(), "0");
    std::string outer, k;
    parted_ = open_parts();
    const Dim& inner = norm_.axes[last].extent;
    // Of a single set of rows, parts are columns.
    const int vectors = std::max(1, 16 / w_.target.lanes);
    LayerWriter::Turns columns{"0", ""};
    if (parted_ == size()) columns = w_.open_parts(w_.dim(column_turns(w_, inner, vectors)));
    open_axes(0, first, index, outer);
    const std::string n = w_.dim(count_), stride = w_.dim(inner);
    const std::string base = times(outer, times(n, stride));
    open_columns(w_);
    w_.out.line("const float* const from = {};", plus(plus(x_, base), "c"));
    w_.out.line("float* const to = {};", plus(plus(y_, base), "c"));
    w_.out.line("f32v {}squares[kVectors], factor[kVectors];",
                subtracts_mean(norm_.factor) ? "mean[kVectors], " : "");
    auto each = [&](const std::string& line) {
      w_.out.line("SINTER_UNROLL");
      w_.out.line("for (int v = 0; v < kVectors; ++v) {}", line);
    };
    const std::string e = fmt::format("load_lanes(from + {} + v * kLanes, lanes)", times("k", stride));
    if (subtracts_mean(norm_.factor)) {
      each("mean[v] = zero();");
      open_blocks(n);
      each(fmt::format("part[v] = add(part[v], {});", e));
      w_.out.line("}}");
      each("mean[v] = add(mean[v], part[v]);");
      w_.out.line("}}");
      each(fmt::format("mean[v] = div(mean[v], splat({}));", float_text(w_, count_)));
    }
    each("squares[v] = zero();");
    const std::string deviation = subtracts_mean(norm_.factor) ? fmt::format("sub({}, mean[v])", e) : e;
    open_blocks(n);
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    w_.out.line("const f32v d = {};", deviation);
    w_.out.line("part[v] = {};", norm_.factor == Factor::kL1 ? "add(part[v], abs(d))" : "fma(d, d, part[v])");
    w_.out.line("}}");
    w_.out.line("}}");
    each("squares[v] = add(squares[v], part[v]);");
    w_.out.line("}}");
    each("factor[v] = " + vector_factor(norm_, "squares[v]", float_text(w_, count_)) + ";");
    open_axes(first, last, index, k);
    index[last] = "c + v * kLanes";
    w_.out.line("const std::int64_t k = {};", k);
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    auto operand = [&](const std::string& p, const Dim& s) {
      return s.is(0) ? fmt::format("splat({}[0])", p)
                     : fmt::format("load_lanes({} + c + v * kLanes, lanes)", p);
    };
    std::string r = fmt::format("mul({}, factor[v])", deviation);
    if (!scale_.empty() && !bias_.empty())
      r = fmt::format("fma({}, {}, {})", r, operand(scale_, norm_.axes[last].scale),
                      operand(bias_, norm_.axes[last].bias));
    else if (!scale_.empty())
      r = fmt::format("mul({}, {})", r, operand(scale_, norm_.axes[last].scale));
    w_.out.line("const f32v r = {};", r);
    w_.out.line("store_lanes(to + {} + v * kLanes, {}, lanes);", times("k", stride),
                epilogue_->vector("r", output_index(w_, norm_, index), "lanes", w_.out));
    w_.out.line("}}");
    close(last - first);
    close_columns(w_, inner, vectors, "columns", columns);
    close(first);
    w_.close_parts();
  }

  // --- grouped columns: [outer][area][groups][each], statistics over area and each

  // to[c] = the sum of `term`, which the element x of channel c gives, over the area.
  void column_sums(const std::string& to, const std::string& area, const std::string& stride,
                   const std::string& start, const std::string& term) {
    const std::string name = "sum_" + to;
    open_columns(w_, name);
    const auto each = [&](const std::string& line) {
      w_.out.line("SINTER_UNROLL");
      w_.out.line("for (int v = 0; v < kVectors; ++v) {}", line);
    };
    w_.out.line("f32v sums[kVectors]{};", start.empty() ? "" : ", mean[kVectors]");
    each("sums[v] = zero();");
    if (!start.empty()) each("mean[v] = " + start + ";");
    open_blocks(area);
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    w_.out.line("const f32v x = load_lanes(from + {} + c + v * kLanes, lanes);", times("k", stride));
    w_.out.line("part[v] = {};", term);
    w_.out.line("}}");
    w_.out.line("}}");
    each("sums[v] = add(sums[v], part[v]);");
    w_.out.line("}}");
    each(fmt::format("store_lanes({} + c + v * kLanes, sums[v], lanes);", to));
    close_columns(w_, channels(), std::max(1, 16 / w_.target.lanes), name);
  }
  Dim channels() const { return norm_.axes[size() - 2].extent * norm_.axes.back().extent; }

  // Opens a loop over the groups with `sum`, that of a group's channels in `of`.
  void open_groups(const std::string& of) {
    w_.out.put(loop_text("g", w_.dim(norm_.axes[size() - 2].extent)));
    const std::string each = w_.dim(norm_.axes.back().extent), first = times("g", each);
    w_.out.line("float sum = 0.0f;");
    w_.out.line("for (std::int64_t c = {0}; c < {0} + {1}; ++c) sum += {2}[c];", first, each, of);
  }

  void grouped_columns() {
    const size_t first = first_reduced(), behind = behind_reduced();
    std::vector<std::string> index(size(), "0");
    std::string outer, k;
    open_axes(0, first, index, outer);
    Dim rows(1);
    for (size_t a = first; a < behind; ++a) rows = rows * norm_.axes[a].extent;
    const std::string area = w_.dim(rows), stride = w_.dim(channels()),
                      base = times(outer, times(area, stride));
    const std::string each = w_.dim(norm_.axes.back().extent), group = times("g", each);
    const std::string mean = w_.scratch("means", "float", channels().hi()),
                      factor = w_.scratch("factors", "float", channels().hi());
    w_.out.line("const float* const from = {};", plus(x_, base));
    w_.out.line("float* const to = {};", plus(y_, base));
    column_sums(mean, area, stride, "", "add(part[v], x)");
    open_groups(mean);
    w_.out.line("for (std::int64_t c = {0}; c < {0} + {1}; ++c) {2}[c] = sum / {3};", group, each, mean,
                float_text(w_, count_));
    w_.out.line("}}");
    column_sums(factor, area, stride, fmt::format("load_lanes({} + c + v * kLanes, lanes)", mean),
                "fma(sub(x, mean[v]), sub(x, mean[v]), part[v])");
    open_groups(factor);
    w_.out.line("const float f = 1.0f / sqrt(sum / {} + {});", float_text(w_, count_),
                float_literal(norm_.epsilon));
    w_.out.line("for (std::int64_t c = {0}; c < {0} + {1}; ++c) {2}[c] = f * {3}[c];", group, each, factor,
                scale_);
    w_.out.line("}}");
    open_axes(first, behind, index, k);
    w_.out.line("const std::int64_t k = {};", k);
    open_columns(w_, "finish");
    index.back() = "c + v * kLanes";
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    const auto lanes = [](const std::string& p) {
      return fmt::format("load_lanes({} + c + v * kLanes, lanes)", p);
    };
    w_.out.line("const f32v r = fma(sub({}, {}), {}, {});", lanes(plus("from", times("k", stride))),
                lanes(mean), lanes(factor), lanes(bias_));
    w_.out.line("store_lanes(to + {} + c + v * kLanes, {}, lanes);", times("k", stride),
                epilogue_->vector("r", output_index(w_, norm_, index), "lanes", w_.out));
    w_.out.line("}}");
    close_columns(w_, channels(), std::max(1, 16 / w_.target.lanes), "finish");
    close(behind);
  }

  // --- plain

  void plain() {
    w_.include("sinter/scalar.h");
    const DType t = n_.inputs[0]->type.dtype;
    const DType out_type = std::string_view(n_.op->name) == "RMSNormalization" ? n_.inputs[1]->type.dtype : t;
    std::optional<PlainOutput> output;
    if (n_.has_output(0)) output.emplace(w_, out_type);
    side_outputs();
    Shape shape;
    std::vector<Dim> scale_strides, bias_strides;
    for (const NormAxis& a : norm_.axes) {
      shape.push_back(a.extent);
      scale_strides.push_back(a.scale);
      bias_strides.push_back(a.bias);
    }
    const std::vector<Dim> strides = dim_strides(shape);
    std::vector<std::string> index(size(), "0");
    auto open = [&](bool reduced) {
      size_t loops = 0;
      for (size_t a = 0; a < size(); ++a) {
        if (norm_.axes[a].reduced != reduced || shape[a].is(1)) continue;
        index[a] = fmt::format("i{}", a);
        w_.out.put(loop_text(index[a], w_.dim(shape[a])));
        ++loops;
      }
      return loops;
    };
    auto offset = [&](const std::vector<Dim>& s) {
      std::string at = "0";
      for (size_t a = 0; a < s.size(); ++a)
        if (!s[a].is(0)) at = plus(at, times(index[a], w_.dim(s[a])));
      return at;
    };
    auto element = [&](const std::string& p, const std::vector<Dim>& s, DType type) {
      return fmt::format("static_cast<double>({})", load_text(type, fmt::format("{}[{}]", p, offset(s))));
    };
    auto rounded = [&](DType type, const std::string& v) {
      return store_text(type, type == DType::kF64 ? v : fmt::format("static_cast<float>({})", v));
    };
    const size_t kept = open(false);
    std::string row = "0";
    for (size_t a = 0; a < size(); ++a)
      if (!norm_.axes[a].reduced) row = plus(times(row, w_.dim(shape[a])), index[a]);
    const std::string n = w_.dim(count_);
    if (subtracts_mean(norm_.factor)) {
      w_.out.line("double mean = 0.0;");
      const size_t loops = open(true);
      w_.out.line("mean += {};", element(x_, strides, t));
      close(loops);
      w_.out.line("mean /= static_cast<double>({});", n);
    }
    w_.out.line("double squares = 0.0;");
    size_t loops = open(true);
    const std::string mean = subtracts_mean(norm_.factor) ? " - mean" : "";
    w_.out.line("const double d = {}{};", element(x_, strides, t), mean);
    w_.out.line("squares += {};", norm_.factor == Factor::kL1 ? "std::fabs(d)" : "d * d");
    close(loops);
    const std::string mean_square = fmt::format("squares / static_cast<double>({})", n);
    const std::string eps = literal(*Expr::constant(norm_.epsilon, DType::kF64));
    std::string factor;
    switch (norm_.factor) {
      case Factor::kDeviation:
      case Factor::kRms: factor = fmt::format("1.0 / std::sqrt({} + {})", mean_square, eps); break;
      case Factor::kPlainDeviation: factor = fmt::format("1.0 / (std::sqrt({}) + 1e-9)", mean_square); break;
      case Factor::kL1: factor = "squares == 0.0 ? 0.0 : 1.0 / squares"; break;
      case Factor::kL2: factor = "squares == 0.0 ? 0.0 : 1.0 / std::sqrt(squares)"; break;
    }
    w_.out.line("const double factor = {};", factor);
    if (!mean_out_.empty())
      w_.out.line("{}[{}] = {};", mean_out_, row, rounded(n_.outputs[1]->type.dtype, "mean"));
    if (!factor_out_.empty())
      w_.out.line("{}[{}] = {};", factor_out_, row, rounded(n_.outputs[2]->type.dtype, "factor"));
    if (output) {
      loops = open(true);
      std::string v = fmt::format("({}{}) * factor", element(x_, strides, t), mean);
      if (!scale_.empty())
        v += " * " + element(scale_, scale_strides, n_.inputs[static_cast<size_t>(norm_.scale)]->type.dtype);
      if (!bias_.empty())
        v += " + " + element(bias_, bias_strides, n_.inputs[static_cast<size_t>(norm_.bias)]->type.dtype);
      w_.out.line("{}[{}] = {};", output->pointer(), offset(strides), rounded(out_type, v));
      close(loops);
    }
    close(kept);
    if (output) output->finish();
  }

  LayerWriter& w_;
  size_t parted_ = SIZE_MAX;  // the axis whose turns are cut into parts
  LayerWriter::Turns turns_;
  const Node& n_;
  Norm norm_;
  Dim count_;
  std::optional<Epilogue> epilogue_;
  std::string x_, y_, scale_, bias_, mean_out_, factor_out_;
};

void emit(LayerWriter& w) { Writer(w).write(); }

}  // namespace

const std::vector<Kernel>& kernels_norm() {
  static const std::vector<Kernel> table = {
      {"norm", "Layer-, RMS-, Instance-, Group-, Lp- and MeanVarianceNormalization", accepts, emit}};
  return table;
}

}  // namespace sinter
