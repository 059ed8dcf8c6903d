// Pools. Channels-last floats: one output pixel at a time, vectors over channels; the taps that fall inside
// the input are cut out per row and per pixel, so no padding is read or copied. Floats with the channels
// outside: a row at a time, vectors along the row. Everything else, indices and other element types, is plain
// loops over the outputs. Global pools are reductions (kernels/reductions/reduce.cpp).
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/nest.h"
#include "kernels/reductions/reduction.h"
#include "kernels/windows/rows.h"
#include "ops/op.h"

namespace sinter {
namespace {

enum class Kind { kMax, kAverage, kLp };

std::optional<Kind> kind_of(const Node& n, bool global) {
  if (n.op->domain[0] != 0) return std::nullopt;
  const std::string prefix = global ? "Global" : "";
  for (const auto& [name, kind] : {std::pair("MaxPool", Kind::kMax), std::pair("AveragePool", Kind::kAverage),
                                   std::pair("LpPool", Kind::kLp)})
    if (n.op->name == prefix + name) return kind;
  return std::nullopt;
}

bool numeric(DType t) { return is_float(t) || is_integer(t); }

// --- global pools

bool accepts_global(const Node& n, const Context&) {
  return kind_of(n, true) && is_float(n.inputs[0]->type.dtype);
}
void emit_global(LayerWriter& w) {
  const Node& n = w.node;
  const size_t rank = n.inputs[0]->type.shape.size();
  Reduction r;
  const Kind kind = *kind_of(n, true);
  r.fold = kind == Kind::kMax ? Fold::kMax : kind == Kind::kAverage ? Fold::kMean : Fold::kLp;
  r.p = static_cast<double>(n.attributes.integer("p", 2));
  if (kind == Kind::kLp && r.p == 2) r.fold = Fold::kL2;
  if (kind == Kind::kLp && r.p == 1) r.fold = Fold::kL1;
  const size_t channels = is_channels_last(n.attributes) ? rank - 1 : 1;
  for (size_t i = 0; i < rank; ++i) {
    r.reduced.push_back(i != 0 && i != channels);
    r.out_axes.push_back(static_cast<int>(i));
  }
  w.summary(fmt::format("{} of {}{}", n.op->name, text(n.inputs[0]->type),
                        n.epilogue ? ", then " + text(*n.epilogue) : ""));
  emit_reduction(w, r);
}

// --- windows

std::string summary_of(const Node& n, const Window& window) {
  std::string kernel;
  for (int64_t k : window.kernel) kernel += (kernel.empty() ? "" : "x") + std::to_string(k);
  std::string stride;
  for (int64_t s : window.strides) stride += (stride.empty() ? "" : "x") + std::to_string(s);
  return fmt::format("{} {}, stride {}{}", n.op->name, kernel, stride,
                     n.epilogue ? ", then " + text(*n.epilogue) : "");
}

// The words of one kind of pool on float vectors.
struct Words {
  Kind kind;
  double p;
  std::string first() const {
    return kind == Kind::kMax ? "splat(-std::numeric_limits<float>::infinity())" : "zero()";
  }
  // acc and `e`, a variable.
  std::string step(const std::string& acc) const {
    if (kind == Kind::kMax) return fmt::format("max_nan({}, e)", acc);
    if (kind == Kind::kAverage || p == 1)
      return fmt::format("add({}, {})", acc, kind == Kind::kAverage ? "e" : "abs(e)");
    if (p == 2) return fmt::format("fma(e, e, {})", acc);
    return fmt::format("add({}, pow(abs(e), splat({})))", acc, float_literal(p));
  }
  std::string last(const std::string& acc) const {
    if (kind == Kind::kAverage) return fmt::format("mul({}, splat(scale))", acc);
    if (kind == Kind::kMax || p == 1) return acc;
    if (p == 2) return fmt::format("sqrt({})", acc);
    return fmt::format("pow({}, splat({}))", acc, float_literal(1 / p));
  }
};

// Text for how many taps of an axis an average counts: those inside, or also those in the given pads.
std::string counted_taps(LayerWriter& w, const Window& window, size_t axis, const std::string& o, bool pads,
                         const std::string& inside) {
  if (!pads) return inside;
  const Dim end = window.in[axis] + window.pads_end[axis] + window.pads_begin[axis];
  return fmt::format(
      "sinter::max_of(std::int64_t{{0}}, sinter::min_of(std::int64_t{{{}}}, sinter::ceil_div({} - {}, {})))",
      window.kernel[axis], w.dim(end), times(o, std::to_string(window.strides[axis])),
      window.dilations[axis]);
}

// Whether every window lies inside the input and its pads, so that an average always counts all taps.
bool windows_fit(const Window& window, bool with_pads) {
  for (size_t a = 0; a < window.rank(); ++a) {
    if (!with_pads && !(window.pads_begin[a].is(0) && window.pads_end[a].is(0))) return false;
    if (window.ceil_mode || (window.same_pads && !with_pads)) return false;
  }
  return true;
}

// Text for how many taps the average at (o0 ..., ox) counts; taps [first, end) of the row lie inside.
std::string count_text(LayerWriter& w, const Window& window, const Rows& rows, bool pads) {
  std::string count;
  for (size_t a = 0; a < window.rank(); ++a) {
    const bool last = a == rows.last(), single = !last && window.kernel[a] == 1 && window.pads_begin[a].is(0);
    const std::string inside = last     ? "(end - first)"
                               : single ? "1"
                                        : fmt::format("(k{0}_last - k{0}_first)", a);
    const std::string o = last ? "ox" : fmt::format("o{}", a);
    count += (a ? " * " : "") + counted_taps(w, window, a, o, pads, inside);
  }
  return count;
}

bool accepts_vectors(const Node& n, const Context&) {
  const auto kind = kind_of(n, false);
  return kind && is_channels_last(n.attributes) && n.inputs[0]->type.dtype == element_type(n) &&
         !n.has_output(1) && n.has_output(0) && vector_epilogue(n);
}

// Whether the taps of the outer axes are to be taken together first, for whole rows of the input: that reads
// memory in its order, and no tap twice where windows overlap along the row.
bool joins_rows(const Window& window, Kind kind, const Dim& channels) {
  if (kind != Kind::kMax || window.rank() < 2 || !channels.is_static() || !window.in.back().is_static())
    return false;
  int64_t outer = 1;
  for (size_t a = 0; a + 1 < window.rank(); ++a) outer *= window.kernel[a];
  const int64_t along = window.kernel.back(), stride = window.strides.back();
  constexpr int64_t kMost = 64 << 10;  // bytes of such a row
  return outer > 1 && stride * outer + along <= outer * along &&
         window.in.back().value() * channels.value() * 4 <= kMost;
}

// The pool of channels-last floats: its loops over rows, and the two forms of what is done for a pixel.
class Vectors {
 public:
  explicit Vectors(LayerWriter& w)
      : w_(w),
        n_(w.node),
        words_{*kind_of(n_, false), static_cast<double>(n_.attributes.integer("p", 2))},
        window_(window_of(n_)),
        channels_(n_.inputs[0]->type.shape.back()),
        rows_{w, window_, n_.inputs[0]->type.shape[0], w.pixel_stride(*n_.inputs[0]), w.pixel_stride()},
        joins_(joins_rows(window_, words_.kind, channels_)) {
    for (int64_t k : window_.kernel) taps_ *= k;
    pads_ = n_.attributes.integer("count_include_pad", 0) != 0;
    average_ = words_.kind == Kind::kAverage;
    fits_ = windows_fit(window_, pads_);
    vectors_ = std::max(1, std::min(4, 32 / w.target.lanes));
  }

  void emit() {
    const Shape& ys = n_.outputs[0]->type.shape;
    w_.include("sinter/math.h");
    w_.include("sinter/mac.h");
    w_.flops(product(ys) * Dim(taps_));
    w_.summary(summary_of(n_, window_));
    x_ = w_.input(0);
    epilogue_.emplace(w_, ys);
    y_ = w_.output(0);
    if (average_ && fits_) {
      w_.out.line("constexpr float scale = 1.0f / {};", taps_);
      w_.out.blank();
    }
    const bool parted = !rows_.take_strip() && !rows_.outermost().is(1);
    if (parted) rows_.turns = w_.open_parts(w_.dim(rows_.outermost()));
    if (joins_)
      joined_ = w_.scratch_of_part("joined", "float", window_.in.back().value() * channels_.value());
    Rows(rows_).open();
    if (joins_) join();
    pixel();
    pixels();
    Rows(rows_).close();
    if (parted) w_.close_parts();
  }

 private:
  void start() {
    w_.out.line("f32v acc[kVectors];");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) acc[v] = {};", words_.first());
  }
  // acc and what lies at `from`, a text.
  void take(const std::string& from) {
    w_.out.line("const float* const from = {};", plus(from, "c"));
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    w_.out.line("const f32v e = load_lanes(from + v * kLanes, lanes);");
    w_.out.line("acc[v] = {};", words_.step("acc[v]"));
    w_.out.line("}}");
  }

  void join() {
    w_.out.line(
        "// the rows of the window taken together, all pixels and channels of a row as they lie in memory");
    const int64_t width = window_.in.back().value(), channels = channels_.value();
    const bool apart = w_.reads_gaps();  // no run then but a pixel's channels
    if (apart) w_.out.line("for (std::int64_t ix = 0; ix < {}; ++ix) {{", width);
    open_columns(w_, "join");
    start();
    rows_.open_taps(w_.out);
    take(plus(x_, rows_.input_offset(apart ? "ix" : "0")));
    rows_.close_taps(w_.out);
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) store_lanes({}{} + c + v * kLanes, acc[v], lanes);",
                joined_, apart ? fmt::format(" + ix * {}", channels) : "");
    close_columns(w_, Dim(apart ? channels : width * channels), vectors_, "join");
    if (apart) w_.out.line("}}");
  }

  // One output pixel: its taps [first, end) of the row lie inside.
  void pixel() {
    w_.out.line(
        "const auto pixel = [&](std::int64_t ox, std::int64_t first, std::int64_t end) "
        "__attribute__((always_inline)) {{");
    if (average_ && !fits_) {
      w_.out.line("const std::int64_t count = {};", count_text(w_, window_, rows_, pads_));
      w_.out.line("const float scale = count > 0 ? 1.0f / static_cast<float>(count) : 0.0f;");
    }
    w_.out.line("float* const to = {};", plus(y_, rows_.output_offset("ox")));
    open_columns(w_);
    start();
    const std::string position = plus(rows_.position("ox"), times("kw", std::to_string(rows_.dilation())));
    if (!joins_) rows_.open_taps(w_.out);
    w_.out.line("for (std::int64_t kw = first; kw < end; ++kw) {{");
    take(joins_ ? fmt::format("{} + ({}) * {}", joined_, position, w_.dim(channels_))
                : plus(x_, rows_.input_offset(position)));
    w_.out.line("}}");
    if (!joins_) rows_.close_taps(w_.out);
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    w_.out.line("const f32v r = {};", words_.last("acc[v]"));
    w_.out.line("store_lanes(to + c + v * kLanes, {}, lanes);",
                epilogue_->vector("r", rows_.index("ox", "c + v * kLanes"), "lanes", w_.out));
    w_.out.line("}}");
    close_columns(w_, channels_, vectors_);
    w_.out.put("};");
  }

  void pixels() {
    const std::string begin = w_.dim(rows_.interior_begin()), end = w_.dim(rows_.interior_end()),
                      width = w_.dim(rows_.out_width());
    const std::string edge = fmt::format("pixel(ox, {}, {});", rows_.first_tap("ox"), rows_.last_tap("ox"));
    const std::string inner = fmt::format("pixel(ox, 0, {});", rows_.kernel());
    if (begin == "0" && end == width) {
      w_.out.line("for (std::int64_t ox = 0; ox < {}; ++ox) {}", width, inner);
      return;
    }
    w_.out.line("std::int64_t ox = 0;");
    if (begin != "0") w_.out.line("for (; ox < {}; ++ox) {}", begin, edge);
    if (begin != end) w_.out.line("for (; ox < {}; ++ox) {}", end, inner);
    if (end != width) w_.out.line("for (; ox < {}; ++ox) {}", width, edge);
  }

  LayerWriter& w_;
  const Node& n_;
  Words words_;
  Window window_;
  Dim channels_;
  Rows rows_;
  bool joins_, pads_ = false, average_ = false, fits_ = false;
  int64_t taps_ = 1;
  int vectors_ = 1;
  std::optional<Epilogue> epilogue_;
  std::string x_, y_, joined_;
};

void emit_vectors(LayerWriter& w) { Vectors(w).emit(); }

// --- rows: floats with the channels outside. Along a row, first the taps of the other axes are taken
// together for every input column in vectors, then those of the row for each output.

bool accepts_rows(const Node& n, const Context&) {
  const auto kind = kind_of(n, false);
  return kind && *kind != Kind::kLp && !is_channels_last(n.attributes) &&
         n.inputs[0]->type.dtype == DType::kF32 && !n.has_output(1) && n.has_output(0);
}

void emit_rows(LayerWriter& w) {
  const Node& n = w.node;
  const Words words{*kind_of(n, false), 2};
  const Window window = window_of(n);
  const Shape& xs = n.inputs[0]->type.shape;
  const Rows rows{w, window, xs[0] * xs[1], Dim(1), Dim(1)};
  const bool pads = n.attributes.integer("count_include_pad", 0) != 0;
  const bool average = words.kind == Kind::kAverage, fits = windows_fit(window, pads);
  int64_t taps = 1;
  for (int64_t k : window.kernel) taps *= k;
  w.include("sinter/mac.h");
  w.flops(xs[0] * xs[1] * product(window.out) * Dim(taps));
  w.summary(summary_of(n, window));
  const std::string x = w.input(0);
  PlainOutput output(w, DType::kF32);
  // Windows that are strided: all results of stride 1 in vectors, then every stride-th of them. Vectors reach
  // beyond the end of both rows.
  const bool strided = rows.stride() > 1 && rows.kernel() > 1 && (!average || fits);
  const int64_t room = std::max<int64_t>(rows.width().hi(), 1) + (strided ? 2 * w.target.lanes : 0);
  const std::string row = w.scratch("row", "float", room);
  const std::string slid = strided ? w.scratch("slid", "float", room) : "";
  const std::string width = w.dim(rows.width()), out_width = w.dim(rows.out_width());
  const std::string first_value = average ? "0.0f" : "-std::numeric_limits<float>::infinity()";

  Rows(rows).open();
  w.out.line("for (std::int64_t i = 0; i < {}; i += kLanes) {{", width);
  w.out.line("const int lanes = static_cast<int>(sinter::min_of(std::int64_t{{kLanes}}, {} - i));", width);
  w.out.line("f32v acc = splat({});", first_value);
  rows.open_taps(w.out);
  w.out.line("const f32v e = load_lanes({}, lanes);", plus(x, rows.input_offset("i")));
  w.out.line("acc = {};", words.step("acc"));
  rows.close_taps(w.out);
  w.out.line("store_lanes({} + i, acc, lanes);", row);
  w.out.line("}}");
  w.out.line(
      "[[maybe_unused]] const auto pixel = [&](std::int64_t ox, std::int64_t first, std::int64_t end) "
      "__attribute__((always_inline)) {{");
  w.out.line("float acc = {};", first_value);
  w.out.line("for (std::int64_t kw = first; kw < end; ++kw) {{");
  w.out.line("const float e = {}[{}];", row,
             plus(rows.position("ox"), times("kw", std::to_string(rows.dilation()))));
  w.out.line("acc = {};", words.step("acc"));
  w.out.line("}}");
  std::string value = "acc";
  if (average && fits) {
    value = fmt::format("acc / {}.0f", taps);
  } else if (average) {
    w.out.line("const std::int64_t count = {};", count_text(w, window, rows, pads));
    value = "count > 0 ? acc / static_cast<float>(count) : acc";
  }
  w.out.line("{}[{}] = {};", output.pointer(), rows.output_offset("ox"), value);
  w.out.put("};");
  const std::string begin = w.dim(rows.interior_begin()), end = w.dim(rows.interior_end());
  const std::string edge = fmt::format("pixel(ox, {}, {});", rows.first_tap("ox"), rows.last_tap("ox"));
  w.out.line("std::int64_t ox = 0;");
  if (begin != "0") w.out.line("for (; ox < {}; ++ox) {}", begin, edge);
  if (begin != end) {
    // The window whose first tap is at `from` of the row, and the kLanes - 1 behind it.
    auto windows = [&](const std::string& from, const std::string& to) {
      w.out.line("f32v acc = splat({});", first_value);
      w.out.line("for (std::int64_t kw = 0; kw < {}; ++kw) {{", rows.kernel());
      w.out.line("const f32v e = load({} + {});", row,
                 plus(from, times("kw", std::to_string(rows.dilation()))));
      w.out.line("acc = {};", words.step("acc"));
      w.out.line("}}");
      w.out.line("store({}, {});", to, average ? fmt::format("div(acc, splat({}.0f))", taps) : "acc");
      w.out.line("}}");
    };
    if (rows.stride() == 1 && (!average || fits)) {
      w.out.line("for (; ox + kLanes <= {}; ox += kLanes) {{", end);
      windows(rows.position("ox"), plus(output.pointer(), rows.output_offset("ox")));
    }
    if (strided) {
      w.out.line("for (std::int64_t i = {}; i <= {}; i += kLanes) {{", rows.position("ox"),
                 rows.position("(" + end + " - 1)"));
      windows("i", plus(slid, "i"));
      w.out.line("for (; ox < {}; ++ox) {}[{}] = {}[{}];", end, output.pointer(), rows.output_offset("ox"),
                 slid, rows.position("ox"));
    } else {
      w.out.line("for (; ox < {}; ++ox) pixel(ox, 0, {});", end, rows.kernel());
    }
  }
  if (end != out_width) w.out.line("for (; ox < {}; ++ox) {}", out_width, edge);
  Rows(rows).close();
  output.finish();
}

// --- plain loops

bool accepts_plain(const Node& n, const Context&) {
  return kind_of(n, false) && numeric(n.inputs[0]->type.dtype);
}

// Column-major number of an element within its plane, from its row-major position variables.
std::string plane_index(LayerWriter& w, const Window& window, bool column_major) {
  std::string at = "0";
  for (size_t k = 0; k < window.rank(); ++k) {
    const size_t a = column_major ? window.rank() - 1 - k : k;
    at = plus(times(at, w.dim(window.in[a])), fmt::format("p{}", a));
  }
  return at;
}

void emit_plain(LayerWriter& w) {
  const Node& n = w.node;
  const Kind kind = *kind_of(n, false);
  const double p = static_cast<double>(n.attributes.integer("p", 2));
  const Window window = window_of(n);
  const Shape& xs = n.inputs[0]->type.shape;
  const DType t = n.inputs[0]->type.dtype;
  const bool last = is_channels_last(n.attributes), pads = n.attributes.integer("count_include_pad", 0) != 0;
  const Dim channels = channels_of(n.attributes, xs);
  const Shape ys = with_channels(n.attributes, xs[0], channels, window.out);
  int64_t taps = 1;
  for (int64_t k : window.kernel) taps *= k;
  w.include("sinter/dims.h");
  w.include("sinter/scalar.h");
  w.flops(product(ys) * Dim(taps));
  w.summary(summary_of(n, window));
  const std::string x = w.input(0);
  // A node without its first output still finds the indices.
  std::optional<PlainOutput> output;
  if (n.has_output(0)) output.emplace(w, t);
  const std::string indices = n.has_output(1) ? w.output(1) : "";
  const bool sums = kind != Kind::kMax;
  const std::string acc = sums ? (t == DType::kF64 ? "double" : "float") : compute_type(t);

  w.out.put(loop_text("n", w.dim(xs[0])));
  if (!last) w.out.put(loop_text("c", w.dim(channels)));
  std::vector<std::string> spatial, position;
  for (size_t a = 0; a < window.rank(); ++a) {
    spatial.push_back(fmt::format("o{}", a));
    position.push_back(fmt::format("p{}", a));
    w.out.put(loop_text(spatial[a], w.dim(window.out[a])));
  }
  if (last) w.out.put(loop_text("c", w.dim(channels)));
  auto index = [&](const std::vector<std::string>& s) {
    std::vector<std::string> i{"n"};
    if (!last) i.push_back("c");
    i.insert(i.end(), s.begin(), s.end());
    if (last) i.push_back("c");
    return i;
  };
  const bool best = !indices.empty();
  if (sums) {
    w.out.line("{} acc = 0;", acc);
  } else {
    w.out.line("{0} acc = {1};", acc,
               is_float(t) ? fmt::format("-std::numeric_limits<{}>::infinity()", acc)
                           : fmt::format("std::numeric_limits<{}>::min()", acc));
    w.out.line("bool found = false;");
    if (best) w.out.line("std::int64_t at = 0;");
  }
  if (kind == Kind::kAverage && !pads) w.out.line("std::int64_t count = 0;");
  for (size_t a = 0; a < window.rank(); ++a) {
    w.out.put(loop_text(fmt::format("k{}", a), std::to_string(window.kernel[a])));
    const std::string begin = w.dim(window.pads_begin[a]);
    w.out.line("const std::int64_t p{} = {}{};", a,
               plus(times(spatial[a], std::to_string(window.strides[a])),
                    times(fmt::format("k{}", a), std::to_string(window.dilations[a]))),
               begin == "0" ? "" : " - " + begin);
    w.out.line("if (p{0} < 0 || p{0} >= {1}) continue;", a, w.dim(window.in[a]));
  }
  const std::string element = load_text(t, fmt::format("{}[{}]", x, offset_text(w, xs, index(position))));
  w.out.line("const {} e = {};", acc,
             acc == compute_type(t) ? element : fmt::format("static_cast<{}>({})", acc, element));
  if (kind == Kind::kMax) {
    w.out.line("if (!found || e > acc{}) {{", is_float(t) ? " || (e != e && acc == acc)" : "");
    w.out.line("found = true;");
    w.out.line("acc = e;");
    if (best) w.out.line("at = {};", plane_index(w, window, n.attributes.integer("storage_order", 0) != 0));
    w.out.line("}}");
  } else if (kind == Kind::kAverage) {
    w.out.line("acc += e;");
    if (!pads) w.out.line("++count;");
  } else {
    w.out.line("acc += {};", p == 2   ? "e * e"
                             : p == 1 ? "std::fabs(e)"
                                      : fmt::format("std::pow(std::fabs(e), {}({}))", acc, p));
  }
  for (size_t a = 0; a < window.rank(); ++a) w.out.line("}}");
  if (kind == Kind::kAverage) {
    if (pads) {
      std::string count;
      for (size_t a = 0; a < window.rank(); ++a)
        count += (a ? " * " : "") + counted_taps(w, window, a, spatial[a], true, "");
      w.out.line("const std::int64_t count = {};", count);
    }
    w.out.line("if (count > 0) acc /= static_cast<{}>(count);", acc);
  }
  if (kind == Kind::kLp && p != 1)
    w.out.line("acc = {};",
               p == 2 ? "std::sqrt(acc)" : fmt::format("std::pow(acc, {}({:.17g}))", acc, 1 / p));
  const std::string to = offset_text(w, ys, index(spatial));
  if (output) w.out.line("{}[{}] = {};", output->pointer(), to, store_text(t, "acc"));
  if (best)
    w.out.line("{}[{}] = {};", indices, to,
               plus(times(plus(times("n", w.dim(channels)), "c"), w.dim(product(window.in))), "at"));
  for (size_t a = 0; a < window.rank() + 2; ++a) w.out.line("}}");
  if (output) output->finish();
}

}  // namespace

const std::vector<Kernel>& kernels_pool() {
  static const std::vector<Kernel> table = {
      {"pool_global", "global pools, as reductions", accepts_global, emit_global},
      {"pool",
       "pools on channels-last floats, vectors over channels",
       accepts_vectors,
       emit_vectors,
       {.writes_apart = true, .rows = true, .reads_apart = true}},
      {"pool_rows", "maximum and average pools on floats with the channels outside, a row at a time",
       accepts_rows, emit_rows},
      {"pool_plain",
       "pools of any type, layout and with indices as plain loops",
       accepts_plain,
       emit_plain,
       {.work = Work::kLoops}},
  };
  return table;
}

}  // namespace sinter
