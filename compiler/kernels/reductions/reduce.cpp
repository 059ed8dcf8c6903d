// Reductions. Three forms, by where the contiguous axis goes:
//
//   rows      it is reduced: four vectors of partial sums, joined at the end
//   columns   it is kept: a vector of results, one lane a column, over the rows of the reduced axes
//   sweep     columns of a tensor beyond the cache: row by row as they lie in memory, sums in the output
//   plain     any element type: one result at a time, accumulated in double or 64-bit integers
//
// Sums of float32 run in float over 4 * lanes partial sums.
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/nest.h"
#include "kernels/reductions/reduction.h"
#include "ops/op.h"

namespace sinter {
namespace {

constexpr std::pair<std::string_view, Fold> kFolds[] = {
    {"ReduceSum", Fold::kSum},
    {"ReduceMean", Fold::kMean},
    {"ReduceMax", Fold::kMax},
    {"ReduceMin", Fold::kMin},
    {"ReduceProd", Fold::kProd},
    {"ReduceL1", Fold::kL1},
    {"ReduceL2", Fold::kL2},
    {"ReduceLogSum", Fold::kLogSum},
    {"ReduceLogSumExp", Fold::kLogSumExp},
    {"ReduceSumSquare", Fold::kSumSquare},
};

class Writer {
 public:
  Writer(LayerWriter& w, const Reduction& r)
      : w_(w), r_(r), x_(w.input(0)), epilogue_(w, w.node.outputs[0]->type.shape), y_(w.output(0)) {
    const Node& n = w.node;
    shape_ = n.inputs[0]->type.shape;
    type_ = n.inputs[0]->type.dtype;
    groups_ = collapse(shape_, r.reduced, [&](size_t first, size_t last) {
      if (epilogue_.empty() || r.reduced[first]) return true;
      return epilogue_.can_merge(static_cast<size_t>(r_.out_axes[first]),
                                 static_cast<size_t>(r_.out_axes[last]));
    });
    count_ = Dim(1);
    for (const AxisGroup& g : groups_)
      if (g.marked) count_ = count_ * g.extent;
  }

  void write() {
    const bool vectors = type_ == element_type(w_.node) && vector_epilogue(w_.node);
    const bool contiguous = !groups_.empty() && groups_.back().stride.is(1);
    if (!vectors || !contiguous)
      plain();
    else if (groups_.back().marked)
      rows();
    else if (sweeps())
      sweep();
    else
      columns();
  }

 private:
  // --- the words of a fold

  std::string identity() const {
    switch (r_.fold) {
      case Fold::kMax: return "-std::numeric_limits<float>::infinity()";
      case Fold::kMin: return "std::numeric_limits<float>::infinity()";
      case Fold::kProd: return "1.0f";
      default: return "0.0f";
    }
  }
  std::string step(const std::string& acc, const std::string& v, const std::string& splat) const {
    switch (r_.fold) {
      case Fold::kMax: return fmt::format("max_nan({}, {})", acc, v);
      case Fold::kMin: return fmt::format("min_nan({}, {})", acc, v);
      case Fold::kProd: return fmt::format("mul({}, {})", acc, v);
      case Fold::kL1: return fmt::format("add({}, abs({}))", acc, v);
      case Fold::kL2:
      case Fold::kSumSquare: return fmt::format("fma({1}, {1}, {0})", acc, v);
      case Fold::kLogSumExp: return fmt::format("add({}, exp(sub({}, top)))", acc, v);
      case Fold::kLp:
        return fmt::format("add({}, pow(abs({}), {}))", acc, v, wrap(splat, float_literal(r_.p)));
      default: return fmt::format("add({}, {})", acc, v);
    }
  }
  // Two accumulators made one.
  std::string join(const std::string& a, const std::string& b) const {
    const char* word = r_.fold == Fold::kMax    ? "max_nan"
                       : r_.fold == Fold::kMin  ? "min_nan"
                       : r_.fold == Fold::kProd ? "mul"
                                                : "add";
    return fmt::format("{}({}, {})", word, a, b);
  }
  std::string last(const std::string& acc, const std::string& splat) const {
    switch (r_.fold) {
      case Fold::kMean:
        return fmt::format(
            "div({}, {})", acc,
            wrap(splat, count_.is_static() ? float_literal(static_cast<double>(count_.value()))
                                           : fmt::format("static_cast<float>({})", w_.dim(count_))));
      case Fold::kL2: return fmt::format("sqrt({})", acc);
      case Fold::kLogSum: return fmt::format("log({})", acc);
      case Fold::kLogSumExp: return fmt::format("add(log({}), top)", acc);
      case Fold::kLp: return fmt::format("pow({}, {})", acc, wrap(splat, float_literal(1 / r_.p)));
      default: return acc;
    }
  }
  static std::string wrap(const std::string& splat, const std::string& v) {
    return splat.empty() ? v : splat + "(" + v + ")";
  }

  // --- loops

  // Loops over the groups that are kept or reduced, up to `end`; the offset into x in `at`.
  int open(bool marked, size_t end, std::string& at) {
    int opened = 0;
    for (size_t g = 0; g < end; ++g) {
      if (groups_[g].marked != marked) continue;
      const std::string v = variable(g);
      w_.out.put(loop_text(v, w_.dim(groups_[g].extent)));
      at = plus(at, times(v, w_.dim(groups_[g].stride)));
      ++opened;
    }
    return opened;
  }
  void close(int loops) {
    for (int i = 0; i < loops; ++i) w_.out.line("}}");
  }
  std::string variable(size_t g) const { return fmt::format("{}{}", groups_[g].marked ? "r" : "i", g); }

  // The output's offset, and its index for the epilogue; `c` stands for the last group where given.
  std::string out_offset(const std::string& c = "") const {
    std::string at = "0";
    for (size_t g = 0; g < groups_.size(); ++g)
      if (!groups_[g].marked) at = plus(times(at, w_.dim(groups_[g].extent)), index_of(g, c));
    return at;
  }
  std::vector<std::string> out_index(const std::string& c = "") const {
    std::vector<std::string> index(w_.node.outputs[0]->type.shape.size(), "0");
    for (size_t g = 0; g < groups_.size(); ++g)
      if (!groups_[g].marked)
        index[static_cast<size_t>(r_.out_axes[groups_[g].axes.back()])] = index_of(g, c);
    return index;
  }
  std::string index_of(size_t g, const std::string& c) const {
    return g + 1 == groups_.size() && !c.empty() ? c : variable(g);
  }

  // --- rows: the contiguous axis is reduced

  // Accumulates into s0 … s3 and `rest`, and names the joined result.
  void row_fold(const Reduction& r, const std::string& line, const std::string& result) {
    const Writer fold(*this, r);
    const Dim n = groups_.back().extent;
    const int lanes = w_.target.lanes;
    const std::string end = w_.dim(n);
    const bool four = n.hi() >= 4 * lanes, one = n.hi() >= lanes,
               tail = lanes > 1 && !(n.is_static() && n.value() % lanes == 0);
    if (one) {
      w_.out.line("f32v s0 = splat({});", fold.identity());
      if (four) w_.out.line("f32v s1 = s0, s2 = s0, s3 = s0;");
    }
    if (tail || !one) w_.out.line("float {} = {};", result, fold.identity());
    std::string at = line;
    const int opened = open(true, groups_.size() - 1, at);
    if (opened) w_.out.line("const float* const from = {};", at);
    const std::string from = opened ? "from" : line;
    w_.out.line("std::int64_t i = 0;");
    auto step_line = [&](const std::string& s, const std::string& p) {
      const bool twice = fold.r_.fold == Fold::kL2 || fold.r_.fold == Fold::kSumSquare;
      if (twice) {
        w_.out.line("const f32v v{} = load({});", s, p);
        w_.out.line("{} = {};", s, fold.step(s, "v" + s, "splat"));
      } else {
        w_.out.line("{} = {};", s, fold.step(s, fmt::format("load({})", p), "splat"));
      }
    };
    auto top_splat = [&](bool vector) {  // `top` is a float here
      if (fold.r_.fold == Fold::kLogSumExp && vector) w_.out.line("const f32v top = splat(greatest);");
    };
    if (four) {
      w_.out.line("for (; i + 4 * kLanes <= {}; i += 4 * kLanes) {{", end);
      top_splat(true);
      for (int k = 0; k < 4; ++k)
        step_line(fmt::format("s{}", k),
                  k == 0 ? from + " + i" : fmt::format("{} + i + {} * kLanes", from, k));
      w_.out.line("}}");
    }
    if (one) {
      w_.out.line("for (; i + kLanes <= {}; i += kLanes) {{", end);
      top_splat(true);
      step_line("s0", from + " + i");
      w_.out.line("}}");
    }
    if (tail || !one) {
      w_.out.line("for (; i < {}; ++i) {{", end);
      if (fold.r_.fold == Fold::kLogSumExp) w_.out.line("const float top = greatest;");
      w_.out.line("{} = {};", result, fold.step(result, load_text(type_, from + "[i]"), ""));
      w_.out.line("}}");
    }
    close(opened);
    if (!one) return;
    const std::string all = four ? fold.join(fold.join("s0", "s1"), fold.join("s2", "s3")) : "s0";
    if (fold.r_.fold == Fold::kProd) {
      if (!tail) w_.out.line("float {} = 1.0f;", result);
      w_.out.line("float lanes[kLanes];");
      w_.out.line("store(lanes, {});", all);
      w_.out.line("for (const float v : lanes) {0} = mul({0}, v);", result);
      return;
    }
    const std::string joined = fmt::format("{}({})",
                                           fold.r_.fold == Fold::kMax   ? "hmax"
                                           : fold.r_.fold == Fold::kMin ? "hmin"
                                                                        : "hsum",
                                           all);
    if (tail)
      w_.out.line("{} = {};", result, fold.join(result, joined));
    else
      w_.out.line("const float {} = {};", result, joined);
  }

  void rows() {
    w_.include("sinter/math.h");
    std::string at = x_;
    const int opened = open(false, groups_.size(), at);
    std::string line = at;
    if (at != x_) {
      w_.out.line("const float* const line = {};", at);
      line = "line";
    }
    if (r_.fold == Fold::kLogSumExp) {
      Reduction top = r_;
      top.fold = Fold::kMax;
      w_.out.line("float greatest = -std::numeric_limits<float>::infinity();");
      w_.out.line("{{");
      row_fold(top, line, "most");
      w_.out.line("greatest = most;");
      w_.out.line("}}");
      w_.out.line("// An infinite maximum is not subtracted: exp of what is left says the same.");
      w_.out.line("if (!(greatest - greatest == 0.0f) && greatest == greatest) greatest = 0.0f;");
    }
    row_fold(r_, line, "sum");
    if (r_.fold == Fold::kLogSumExp) w_.out.line("const float top = greatest;");
    std::string value = last("sum", "");
    if (!epilogue_.empty()) {
      w_.out.line("const float acc = {};", value);
      value = epilogue_.scalar("acc", out_index(), w_.out, TextMode::kLane);
    }
    w_.out.line("{}[{}] = {};", y_, out_offset(), value);
    close(opened);
  }

  // --- columns: the contiguous axis is kept

  void columns() {
    w_.include("sinter/math.h");
    const int vectors = std::max(1, std::min(4, 32 / w_.target.lanes));
    std::string at = x_;
    const int opened = open(false, groups_.size() - 1, at);
    open_columns(w_);
    auto pass = [&](const Writer& fold, const std::string& s) {
      w_.out.line("f32v {}[kVectors];", s);
      w_.out.line("SINTER_UNROLL");
      w_.out.line("for (int v = 0; v < kVectors; ++v) {}[v] = splat({});", s, fold.identity());
      std::string from = at;
      int loops = open(true, groups_.size(), from);
      if (loops == 0) {  // nothing is reduced: a block of its own all the same
        w_.out.line("{{");
        loops = 1;
      }
      w_.out.line("const float* const from = {} + c;", from);
      w_.out.line("SINTER_UNROLL");
      w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
      if (fold.r_.fold == Fold::kLogSumExp) w_.out.line("const f32v top = tops[v];");
      w_.out.line("const f32v e = load_lanes(from + v * kLanes, lanes);");
      w_.out.line("{0}[v] = {1};", s, fold.step(s + "[v]", "e", "splat"));
      w_.out.line("}}");
      close(loops);
    };
    if (r_.fold == Fold::kLogSumExp) {
      Reduction top = r_;
      top.fold = Fold::kMax;
      pass(Writer(*this, top), "tops");
      w_.out.line("// An infinite maximum is not subtracted: exp of what is left says the same.");
      w_.out.line("SINTER_UNROLL");
      w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
      w_.out.line("const f32v infinite = splat(std::numeric_limits<float>::infinity());");
      w_.out.line("tops[v] = select(eq(abs(tops[v]), infinite), zero(), tops[v]);");
      w_.out.line("}}");
    }
    pass(*this, "sum");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    if (r_.fold == Fold::kLogSumExp) w_.out.line("const f32v top = tops[v];");
    w_.out.line("const f32v acc = {};", last("sum[v]", "splat"));
    const std::string value = epilogue_.vector("acc", out_index("c + v * kLanes"), "lanes", w_.out);
    w_.out.line("store_lanes({} + {}, {}, lanes);", y_, out_offset("c + v * kLanes"), value);
    w_.out.line("}}");
    close_columns(w_, groups_.back().extent, vectors);
    close(opened);
  }

  // --- sweep: columns, but memory is read once in its order

  // Columns would take a line of the cache from each of many long rows, over and over, which no prefetcher
  // follows; in the cache they are the faster ones.
  bool sweeps() const {
    const size_t n = groups_.size();
    if (r_.fold == Fold::kLogSumExp || n < 2 || !groups_[n - 2].marked) return false;
    if (w_.element.halves != Halves::kNone) return false;  // the sums are to be floats
    if (std::count_if(groups_.begin(), groups_.end(), [](const AxisGroup& g) { return g.marked; }) != 1)
      return false;
    const Dim row = groups_.back().extent, count = groups_[n - 2].extent;
    return row.is_static() && count.is_static() && count.value() >= kTogether && row.value() >= 256 &&
           row.value() * count.value() * 4 > 128 << 10;
  }

  // The sums take kTogether rows a turn, each in its turn: the order is that of columns().
  static constexpr int64_t kTogether = 4;
  void sweep() {
    w_.include("sinter/math.h");
    const int vectors = std::max(1, std::min(4, 32 / w_.target.lanes));
    const AxisGroup& reduced = groups_[groups_.size() - 2];
    const Dim width = groups_.back().extent;
    std::string at = x_;
    const int opened = open(false, groups_.size() - 1, at);
    w_.out.line("float* const to = {};", plus(y_, out_offset("0")));
    auto lines = [&](const char* name, const std::string& value) {
      open_columns(w_, name);
      w_.out.line("SINTER_UNROLL");
      w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
      w_.out.line("const std::int64_t i = c + v * kLanes;");
      return value;
    };
    auto finish = [&](const char* name, const std::string& value) {
      w_.out.line("store_lanes(to + i, {}, lanes);", value);
      w_.out.line("}}");
      close_columns(w_, width, vectors, name);
    };
    auto take = [&](int64_t first, int64_t end, int64_t step, const char* name) {
      if (first == end) return;
      w_.out.line("for (std::int64_t r = {}; r < {}; r += {}) {{", first, end, step);
      w_.out.line("const float* const from = {} + r * {};", at, w_.dim(reduced.stride));
      lines(name, "");
      w_.out.line("f32v sum = load_lanes(to + i, lanes);");
      for (int64_t k = 0; k < step; ++k) {
        w_.out.line("const f32v e{} = load_lanes({} + i, lanes);", k,
                    plus("from", times(std::to_string(k), w_.dim(reduced.stride))));
        w_.out.line("sum = {};", step_text(k));
      }
      finish(name, "sum");
      w_.out.line("}}");
    };
    const int64_t count = reduced.extent.value(), whole = count / kTogether * kTogether;
    finish("start", lines("start", fmt::format("splat({})", identity())));
    take(0, whole, kTogether, "rows");
    take(whole, count, 1, "row");
    lines("end", "");
    w_.out.line("const f32v acc = {};", last("load_lanes(to + i, lanes)", "splat"));
    finish("end", epilogue_.vector("acc", out_index("i"), "lanes", w_.out));
    close(opened);
  }
  std::string step_text(int64_t k) const { return step("sum", fmt::format("e{}", k), "splat"); }

  // --- plain: any element type

  void plain() {
    w_.include("sinter/scalar.h");
    const bool real = is_float(type_);
    const std::string acc = real ? "double" : is_unsigned(type_) ? "std::uint64_t" : "std::int64_t";
    std::string at = "0";
    const int opened = open(false, groups_.size(), at);
    auto value = [&](const std::string& index) {
      return fmt::format("static_cast<{}>({})", acc, load_text(type_, fmt::format("{}[{}]", x_, index)));
    };
    std::string top = "0.0";
    if (r_.fold == Fold::kLogSumExp) {
      w_.out.line("double top = -std::numeric_limits<double>::infinity();");
      std::string from = at;
      const int loops = open(true, groups_.size(), from);
      w_.out.line("top = sinter::max(top, {});", value(from));
      close(loops);
      w_.out.line("// An infinite maximum is not subtracted: exp of what is left says the same.");
      w_.out.line("if (top == top && !(top - top == 0.0)) top = 0.0;");
    }
    w_.out.line("{} sum = {};", acc, plain_identity(acc));
    std::string from = at;
    const int loops = open(true, groups_.size(), from);
    w_.out.line("const {} e = {};", acc, value(from));
    w_.out.line("sum = {};", plain_step());
    close(loops);
    const DType t = epilogue_.empty() ? type_ : epilogue_.dtype();
    std::string result = plain_last(acc);
    if (type_ == DType::kF16 || type_ == DType::kBF16 || type_ == DType::kF32)
      result = fmt::format("static_cast<float>({})", result);
    else if (!real)
      result = fmt::format("sinter::cast_to<{}>({})", cpp_name(type_), result);
    if (!epilogue_.empty()) {
      w_.out.line("const {} acc = {};", compute_type(type_), result);
      result = epilogue_.scalar("acc", out_index(), w_.out);
    }
    w_.out.line("{}[{}] = {};", y_, out_offset(), store_text(t, result));
    close(opened);
  }
  std::string plain_identity(const std::string& acc) const {
    const bool real = is_float(type_);
    const std::string limits =
        fmt::format("std::numeric_limits<{}>", real ? acc : std::string(cpp_name(type_)));
    if (r_.fold == Fold::kMax) return real ? "-" + limits + "::infinity()" : limits + "::min()";
    if (r_.fold == Fold::kMin) return real ? limits + "::infinity()" : limits + "::max()";
    return r_.fold == Fold::kProd ? "1" : "0";
  }
  std::string plain_step() const {
    switch (r_.fold) {
      case Fold::kMax: return "sinter::max(sum, e)";
      case Fold::kMin: return "sinter::min(sum, e)";
      case Fold::kProd: return "sinter::mul(sum, e)";
      case Fold::kL1: return "sinter::add(sum, sinter::abs(e))";
      case Fold::kL2:
      case Fold::kSumSquare: return "sinter::add(sum, sinter::mul(e, e))";
      case Fold::kLogSumExp: return "sum + std::exp(e - top)";
      case Fold::kLp: return fmt::format("sum + std::pow(std::fabs(e), {})", double_text(r_.p));
      default: return "sinter::add(sum, e)";
    }
  }
  std::string plain_last(const std::string& acc) const {
    switch (r_.fold) {
      case Fold::kMean:
        return is_float(type_) ? fmt::format("sum / static_cast<double>({})", w_.dim(count_))
                               : fmt::format("sinter::div(sum, static_cast<{}>({}))", acc, w_.dim(count_));
      case Fold::kL2:
        return is_float(type_) ? "std::sqrt(sum)"
                               : fmt::format("sinter::cast_to<{}>(std::sqrt(static_cast<double>(sum)))", acc);
      case Fold::kLogSum: return "std::log(sum)";
      case Fold::kLogSumExp: return "std::log(sum) + top";
      case Fold::kLp: return fmt::format("std::pow(sum, {})", double_text(1 / r_.p));
      default: return "sum";
    }
  }
  static std::string double_text(double v) { return literal(*Expr::constant(v, DType::kF64)); }

  Writer(const Writer& other, const Reduction& r)
      : w_(other.w_),
        r_(r),
        x_(other.x_),
        epilogue_(other.epilogue_),
        y_(other.y_),
        shape_(other.shape_),
        type_(other.type_),
        groups_(other.groups_),
        count_(other.count_) {}

  LayerWriter& w_;
  const Reduction& r_;
  std::string x_;
  Epilogue epilogue_;
  std::string y_;
  Shape shape_;
  DType type_;
  std::vector<AxisGroup> groups_;
  Dim count_;
};

// --- Reduce*

const Fold* fold_of(const Node& n) {
  for (const auto& [name, fold] : kFolds)
    if (name == n.op->name && n.op->domain[0] == 0) return &fold;
  return nullptr;
}

// The reduced axes: given, or all where the result's extents leave no choice.
std::vector<bool> reduced_axes(const Node& n) {
  const size_t rank = n.inputs[0]->type.shape.size();
  const bool noop = n.attributes.integer("noop_with_empty_axes", 0) != 0;
  const Value* axes = n.input(1);
  if (!axes || product(axes->type.shape).is(0)) return std::vector<bool>(rank, !noop);
  std::vector<int64_t> list;
  if (axes->data) {
    list = axes->data->integers();
  } else {
    for (const Dim& d : axes->elements) {
      if (!d.is_static()) return std::vector<bool>(rank, true);
      list.push_back(d.value());
    }
  }
  std::vector<bool> mask(rank, list.empty());  // unknown: infer let through only what reduces all of them
  for (int64_t a : list) mask[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank) : a)] = true;
  return mask;
}

bool accepts(const Node& n, const Context&) {
  return fold_of(n) && (is_float(n.inputs[0]->type.dtype) || is_integer(n.inputs[0]->type.dtype) ||
                        n.inputs[0]->type.dtype == DType::kBool);
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  Reduction r;
  r.fold = *fold_of(n);
  r.reduced = reduced_axes(n);
  const bool keepdims = n.attributes.integer("keepdims", 1) != 0;
  int next = 0;
  for (bool reduced : r.reduced) {
    r.out_axes.push_back(reduced && !keepdims ? -1 : next);
    if (!reduced || keepdims) ++next;
  }
  w.summary(fmt::format("{} of {}", n.op->name, text(n.inputs[0]->type)));
  emit_reduction(w, r);
}

}  // namespace

void emit_reduction(LayerWriter& w, const Reduction& r) {
  w.flops(product(w.node.inputs[0]->type.shape));
  Writer(w, r).write();
}

const std::vector<Kernel>& kernels_reduce() {
  static const std::vector<Kernel> table = {
      {"reduce", "reductions over any axes, in vectors along the contiguous one", accepts, emit}};
  return table;
}

}  // namespace sinter
