// Softmax, LogSoftmax and Hardmax along one axis.
//
// Rows: the axis is contiguous; a row is read for its maximum, then for the sum of exp(x - maximum), then
// finished; it stays in the first-level cache meanwhile. Short rows, as of a detector's two classes, are
// turned into columns of a small array, a vector of rows at a time. Columns: the axis is an outer one; each
// lane has a line of its own. Everything else (other element types, epilogues without vector text) is plain
// loops in double.
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/nest.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  const std::string_view op = n.op->name;
  return n.op->domain[0] == 0 && (op == "Softmax" || op == "LogSoftmax" || op == "Hardmax") &&
         is_float(n.inputs[0]->type.dtype);
}

class Writer {
 public:
  explicit Writer(LayerWriter& w) : w_(w), node_(w.node), shape_(node_.inputs[0]->type.shape) {
    const int64_t rank = static_cast<int64_t>(shape_.size()), axis = node_.attributes.integer("axis", -1);
    axis_ = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    log_ = std::string_view(node_.op->name) == "LogSoftmax";
    outer_ = product(shape_, 0, axis_);
    n_ = shape_[axis_];
    inner_ = product(shape_, axis_ + 1);
  }

  void write() {
    x_ = w_.input(0);
    w_.flops(product(shape_) * Dim(8));
    const bool hard = std::string_view(node_.op->name) == "Hardmax";
    const bool vectors =
        node_.inputs[0]->type.dtype == element_type(node_) && vector_epilogue(node_) && !hard;
    w_.summary(fmt::format("{} along axis {} of {}", node_.op->name, axis_, text(node_.inputs[0]->type)));
    if (vectors && inner_.is(1) && are_short())
      short_rows();
    else if (vectors && inner_.is(1))
      rows();
    else if (vectors)
      columns();
    else
      plain(hard);
  }

 private:
  // --- rows

  void rows() {
    w_.include("sinter/math.h");
    const Epilogue epilogue(w_, shape_);
    const std::string y = w_.output(0), n = w_.dim(n_);
    if (epilogue.empty()) w_.may_overwrite(0);
    // With an epilogue the loops follow the axes, so that its operands find their indices.
    std::vector<std::string> index;
    int opened = 0;
    std::string row = "0";
    size_t parted = 0;
    while (parted < axis_ && shape_[parted].is(1)) ++parted;
    const LayerWriter::Turns turns = w_.open_parts(epilogue.empty() ? w_.dim(outer_)
                                                   : parted < axis_ ? w_.dim(shape_[parted])
                                                                    : "1");
    if (epilogue.empty()) {
      w_.out.put(loop_text("row", turns));
      row = times("row", n);
      opened = 1;
    } else {
      for (size_t a = 0; a < axis_; ++a) {
        index.push_back(fmt::format("i{}", a));
        w_.out.put(a == parted ? loop_text(index[a], turns) : loop_text(index[a], w_.dim(shape_[a])));
        row = plus(times(row, w_.dim(shape_[a])), index[a]);
        ++opened;
      }
      row = times(row, n);
      index.resize(shape_.size(), "0");
    }
    w_.out.line("const float* const from = {};", plus(x_, row));
    w_.out.line("float* const to = {};", plus(y, row));
    w_.out.blank();
    maximum(n);
    sum(n);
    finish(epilogue, index, n);
    for (int i = 0; i < opened; ++i) w_.out.line("}}");
    w_.close_parts();
  }

  std::string element(const char* of) const {
    return load_text(node_.inputs[0]->type.dtype, fmt::format("{}[i]", of));
  }
  bool whole() const { return w_.target.lanes == 1 || (n_.is_static() && n_.value() % w_.target.lanes == 0); }

  // for whole vectors: body(p) with `step` vectors at once; the tail in the same words with a count.
  void maximum(const std::string& n) {
    w_.out.line("f32v m0 = splat(-std::numeric_limits<float>::infinity()), m1 = m0;");
    w_.out.line("std::int64_t i = 0;");
    w_.out.line("for (; i + 2 * kLanes <= {}; i += 2 * kLanes) {{", n);
    w_.out.line("m0 = max(m0, load(from + i));");
    w_.out.line("m1 = max(m1, load(from + i + kLanes));");
    w_.out.line("}}");
    w_.out.line("for (; i + kLanes <= {}; i += kLanes) m0 = max(m0, load(from + i));", n);
    w_.out.line("float top = hmax(max(m0, m1));");
    if (!whole()) w_.out.line("for (; i < {}; ++i) top = max(top, {});", n, element("from"));
    w_.out.blank();
  }
  void sum(const std::string& n) {
    const char* keep = log_ ? "" : "store(to + i, e);";
    w_.out.line("f32v s0 = zero(), s1 = zero();");
    w_.out.line("i = 0;");
    w_.out.line("for (; i + 2 * kLanes <= {}; i += 2 * kLanes) {{", n);
    w_.out.line("const f32v e0 = exp_nonpos(sub(load(from + i), splat(top)));");
    w_.out.line("const f32v e1 = exp_nonpos(sub(load(from + i + kLanes), splat(top)));");
    if (!log_) {
      w_.out.line("store(to + i, e0);");
      w_.out.line("store(to + i + kLanes, e1);");
    }
    w_.out.line("s0 = add(s0, e0);");
    w_.out.line("s1 = add(s1, e1);");
    w_.out.line("}}");
    w_.out.line("for (; i + kLanes <= {}; i += kLanes) {{", n);
    w_.out.line("const f32v e = exp_nonpos(sub(load(from + i), splat(top)));");
    w_.out.put(keep);
    w_.out.line("s0 = add(s0, e);");
    w_.out.line("}}");
    w_.out.line("float total = hsum(add(s0, s1));");
    if (!whole()) {
      w_.out.line("for (; i < {}; ++i) {{", n);
      w_.out.line("const float e = exp_nonpos({} - top);", element("from"));
      if (!log_) w_.out.line("to[i] = e;");
      w_.out.line("total += e;");
      w_.out.line("}}");
    }
    w_.out.blank();
  }
  void finish(const Epilogue& epilogue, std::vector<std::string>& index, const std::string& n) {
    if (log_)
      w_.out.line("const float log_total = log(total);");
    else
      w_.out.line("const float scale = 1.0f / total;");
    if (!index.empty()) index[axis_] = "i";
    w_.out.line("i = 0;");
    w_.out.line("for (; i + kLanes <= {}; i += kLanes) {{", n);
    // The maximum and the logarithm one after the other: their sum would be rounded at the maximum's size.
    w_.out.line("const f32v v = {};", log_ ? "sub(sub(load(from + i), splat(top)), splat(log_total))"
                                           : "mul(load(to + i), splat(scale))");
    w_.out.line("store(to + i, {});", epilogue.vector("v", index, "", w_.out));
    w_.out.line("}}");
    if (whole()) return;
    w_.out.line("for (; i < {}; ++i) {{", n);
    w_.out.line("const float v = {};",
                log_ ? fmt::format("({} - top) - log_total", element("from")) : element("to") + " * scale");
    w_.out.line("to[i] = {};", epilogue.scalar("v", index, w_.out, TextMode::kLane));
    w_.out.line("}}");
  }

  // --- short rows

  bool are_short() const {
    constexpr int64_t kLongest = 8;  // beyond, moving elements one by one takes as long as what it saves
    const bool many = !outer_.is_static() || outer_.value() >= w_.target.lanes;
    const bool alone = node_.inputs.size() == node_.anchor_inputs;  // the epilogue reads no other tensor
    return w_.target.lanes > 1 && many && n_.is_static() && n_.value() <= kLongest && alone;
  }

  void short_rows() {
    w_.include("sinter/math.h");
    w_.include("sinter/dims.h");
    const Epilogue epilogue(w_, shape_);
    const std::string y = w_.output(0), n = w_.dim(n_), rows = w_.dim(outer_);
    w_.may_overwrite(0);
    const LayerWriter::Turns turns = w_.open_parts(w_.dim(ceildiv(outer_, Dim(w_.target.lanes))));
    w_.out.put(loop_text("block", turns));
    w_.out.line("const std::int64_t lanes = sinter::min_of(std::int64_t{{kLanes}}, {} - block * kLanes);",
                rows);
    w_.out.line("const float* const from = {} + block * kLanes * {};", x_, n);
    w_.out.line("float* const to = {} + block * kLanes * {};", y, n);
    w_.out.line("float v[{}][kLanes] = {{}};", n);
    w_.out.line("for (std::int64_t l = 0; l < lanes; ++l) {{");
    each_of_row("v[k][l] = from[l * " + n + " + k];");
    w_.out.line("}}");
    w_.out.line("f32v top = load(v[0]), sum = zero();");
    each_of_row("top = max(top, load(v[k]));");
    each_of_row(log_ ? "sum = add(sum, exp_nonpos(sub(load(v[k]), top)));"
                     : "store(v[k], exp_nonpos(sub(load(v[k]), top))), sum = add(sum, load(v[k]));");
    w_.out.line("const f32v last = {};", log_ ? "log(sum)" : "div(splat(1.0f), sum)");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int k = 0; k < {}; ++k) {{", n);
    w_.out.line("const f32v e = {};", log_ ? "sub(sub(load(v[k]), top), last)" : "mul(load(v[k]), last)");
    const std::vector<std::string> index(shape_.size(), "0");  // of no operand
    w_.out.line("store(v[k], {});", epilogue.vector("e", index, "", w_.out));
    w_.out.line("}}");
    w_.out.line("for (std::int64_t l = 0; l < lanes; ++l) {{");
    each_of_row("to[l * " + n + " + k] = v[k][l];");
    w_.out.line("}}");
    w_.out.line("}}");
    w_.close_parts();
  }
  void each_of_row(const std::string& line) {
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int k = 0; k < {}; ++k) {}", n_.value(), line);
  }

  // --- columns

  void columns() {
    w_.include("sinter/math.h");
    const Epilogue epilogue(w_, shape_);
    const std::string y = w_.output(0), n = w_.dim(n_), stride = w_.dim(inner_);
    if (epilogue.empty()) w_.may_overwrite(0);
    const bool merged = epilogue.empty() || (epilogue.can_merge(0, axis_ == 0 ? 0 : axis_ - 1) &&
                                             epilogue.can_merge(axis_ + 1, shape_.size() - 1));
    if (!merged) return plain(false);
    // Of a single block, parts are columns.
    const int vectors = std::max(1, 16 / w_.target.lanes);
    const bool by_columns = outer_.is(1);
    const LayerWriter::Turns turns =
        w_.open_parts(w_.dim(by_columns ? column_turns(w_, inner_, vectors) : outer_));
    w_.out.put(by_columns ? loop_text("o", "1") : loop_text("o", turns));
    const std::string block = times("o", times(n, stride));
    open_columns(w_);
    w_.out.line("const float* const from = {};", plus(plus(x_, block), "c"));
    w_.out.line("float* const to = {};", plus(plus(y, block), "c"));
    auto each = [&](const std::string& line) {
      w_.out.line("SINTER_UNROLL");
      w_.out.line("for (int v = 0; v < kVectors; ++v) {}", line);
    };
    const std::string at = fmt::format("from + {} + v * kLanes", times("k", stride)),
                      there = fmt::format("to + {} + v * kLanes", times("k", stride));
    w_.out.line("f32v top[kVectors], sum[kVectors];");
    each("top[v] = splat(-std::numeric_limits<float>::infinity()), sum[v] = zero();");
    w_.out.put(loop_text("k", n));
    each(fmt::format("top[v] = max(top[v], load_lanes({}, lanes));", at));
    w_.out.line("}}");
    w_.out.put(loop_text("k", n));
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    w_.out.line("const f32v e = exp_nonpos(sub(load_lanes({}, lanes), top[v]));", at);
    w_.out.line("sum[v] = add(sum[v], e);");
    if (!log_) w_.out.line("store_lanes({}, e, lanes);", there);
    w_.out.line("}}");
    w_.out.line("}}");
    each(log_ ? "sum[v] = log(sum[v]);" : "sum[v] = div(splat(1.0f), sum[v]);");
    w_.out.put(loop_text("k", n));
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    if (log_)
      w_.out.line("const f32v e = sub(sub(load_lanes({}, lanes), top[v]), sum[v]);", at);
    else
      w_.out.line("const f32v e = mul(load_lanes({}, lanes), sum[v]);", there);
    std::vector<std::string> index(shape_.size(), "0");
    if (axis_ > 0) index[axis_ - 1] = "o";
    index[axis_] = "k";
    index.back() = "c + v * kLanes";
    w_.out.line("store_lanes({}, {}, lanes);", there, epilogue.vector("e", index, "lanes", w_.out));
    w_.out.line("}}");
    w_.out.line("}}");
    close_columns(w_, inner_, vectors, "columns", by_columns ? turns : LayerWriter::Turns{"0", ""});
    w_.out.line("}}");
    w_.close_parts();
  }

  // --- plain

  void plain(bool hard) {
    w_.include("sinter/scalar.h");
    const DType t = node_.inputs[0]->type.dtype;
    PlainOutput output(w_, t);
    const std::string y = output.pointer(), n = w_.dim(n_), stride = w_.dim(inner_), type(cpp_name(t));
    w_.out.put(loop_text("o", w_.dim(outer_)));
    w_.out.put(loop_text("c", stride));
    const std::string line = plus(times("o", times(n, stride)), "c");
    w_.out.line("const {}* const from = {};", type, plus(x_, line));
    w_.out.line("{}* const to = {};", type, plus(y, line));
    const std::string k = times("k", stride);
    const std::string value =
        fmt::format("static_cast<double>({})", load_text(t, fmt::format("from[{}]", k)));
    auto store = [&](const std::string& v) {
      const std::string narrow = t == DType::kF64 ? v : fmt::format("static_cast<float>({})", v);
      w_.out.line("to[{}] = {};", k, store_text(t, narrow));
    };
    if (hard) {
      w_.out.line("std::int64_t best = 0;");
      w_.out.put(loop_text("k", n));
      w_.out.line("if ({} > {}) best = k;", load_text(t, fmt::format("from[{}]", k)),
                  load_text(t, fmt::format("from[{}]", times("best", stride))));
      w_.out.line("}}");
      w_.out.put(loop_text("k", n));
      store("k == best ? 1.0 : 0.0");
      w_.out.line("}}");
    } else {
      w_.out.line("double top = -std::numeric_limits<double>::infinity(), sum = 0.0;");
      w_.out.put(loop_text("k", n));
      w_.out.line("const double e = {};", value);
      w_.out.line("if (e > top) top = e;");
      w_.out.line("}}");
      w_.out.put(loop_text("k", n));
      w_.out.line("sum += std::exp({} - top);", value);
      w_.out.line("}}");
      if (log_) w_.out.line("const double shift = std::log(sum);");
      w_.out.put(loop_text("k", n));
      store(log_ ? fmt::format("{} - top - shift", value) : fmt::format("std::exp({} - top) / sum", value));
      w_.out.line("}}");
    }
    w_.out.line("}}");
    w_.out.line("}}");
    output.finish();
  }

  LayerWriter& w_;
  const Node& node_;
  const Shape& shape_;
  size_t axis_ = 0;
  bool log_ = false;
  Dim outer_, n_, inner_;
  std::string x_;
};

void emit(LayerWriter& w) { Writer(w).write(); }

}  // namespace

const std::vector<Kernel>& kernels_softmax() {
  static const std::vector<Kernel> table = {
      {"softmax", "Softmax, LogSoftmax and Hardmax along any axis", accepts, emit}};
  return table;
}

}  // namespace sinter
