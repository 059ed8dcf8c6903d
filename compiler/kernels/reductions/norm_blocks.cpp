// Normalisations of large channels-last tensors by their deviation (InstanceNormalization,
// MeanVarianceNormalization): what kernels/reductions/norm.cpp would read three times from memory.
//
// Rows are cut into blocks that stay in the first-level cache while they are read for their means and for
// their deviations (runtime/sinter/norm.h). Then the blocks' statistics are merged in order, and all rows are
// finished where they lie. Blocks and rows are what threads share, so that few channels have work for
// several.
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/nest.h"
#include "kernels/reductions/norm_form.h"
#include "ops/op.h"
#include "targets/target.h"

namespace sinter {
namespace {

constexpr int kVectors = 4;  // of columns at once

// Rows of a block: three quarters of the first-level cache.
int64_t block_rows(const Norm& norm, const Target& t) {
  constexpr int64_t kFewest = 16, kMost = 1 << 30;  // an extent may be without bound
  const int64_t row = std::clamp<int64_t>(norm.axes.back().extent.hi(), 1, kMost) * 4;
  return std::max(kFewest, t.speed.l1 * 3 / 4 / row);
}

bool accepts(const Node& n, const Context& c) {
  constexpr int64_t kFewestBlocks = 4, kMostElements = int64_t{1} << 40;
  const std::optional<Norm> norm = norm_of(n);
  if (!norm || !subtracts_mean(norm->factor) || !reduces_columns(*norm) || !runs_in_vectors(n, *norm))
    return false;
  // A single channel is a row.
  return norm->mean_output < 0 && norm->factor_output < 0 && !norm->axes.back().extent.is(1) &&
         product(n.inputs[0]->type.shape).hi() <= kMostElements &&
         reduced_count(*norm).hi() / block_rows(*norm, c.target) >= kFewestBlocks;
}

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w), n_(w.node), norm_(*norm_of(w.node)), epilogue_(w, n_.outputs[0]->type.shape) {}

  void write() {
    block_ = block_rows(norm_, w_.target);
    rows_ = reduced_count(norm_);
    merge_axes(norm_, epilogue_);
    w_.flops(product(n_.inputs[0]->type.shape) * Dim(7));
    w_.summary(fmt::format("{} of {}, statistics of blocks of {} rows{}", n_.op->name,
                           text(n_.inputs[0]->type), block_,
                           n_.epilogue ? ", then " + text(*n_.epilogue) : ""));
    w_.include("sinter/math.h");
    w_.include("sinter/norm.h");
    x_ = w_.input(0);
    scale_ = norm_.scale >= 0 ? w_.input(static_cast<size_t>(norm_.scale)) : "";
    bias_ = norm_.bias >= 0 ? w_.input(static_cast<size_t>(norm_.bias)) : "";
    y_ = w_.output(0);
    if (std::count(n_.inputs.begin(), n_.inputs.end(), n_.inputs[0]) == 1) w_.may_overwrite(0);
    pitch_ = (channels().hi() + w_.target.lanes - 1) / w_.target.lanes * w_.target.lanes;
    statistics_ = w_.scratch("statistics", "float", blocks().hi() * 2 * pitch_);
    mean_ = w_.scratch("means", "float", pitch_);
    factor_ = w_.scratch("factors", "float", pitch_);
    body();
  }

 private:
  const Dim& channels() const { return norm_.axes.back().extent; }
  Dim blocks() const { return ceildiv(rows_, Dim(block_)); }

  void body() {
    size_t first = 0;
    while (!norm_.axes[first].reduced) ++first;
    const size_t last = norm_.axes.size() - 1;
    std::vector<std::string> index(norm_.axes.size(), "0");
    const std::string outer = open_axes(0, first, index, {"0", ""}),
                      base = times(outer, times(w_.dim(rows_), w_.dim(channels())));
    w_.out.line("const float* const from = {};", plus(x_, base));
    w_.out.line("float* const to = {};", plus(y_, base));
    statistics_of_blocks();
    factors();
    const LayerWriter::Turns rows = w_.open_parts(w_.dim(norm_.axes[first].extent));
    const std::string k = open_axes(first, last, index, rows);
    finish(k, index);
    for (size_t a = first; a < last; ++a) w_.out.line("}}");
    w_.close_parts();
    for (size_t a = 0; a < first; ++a) w_.out.line("}}");
  }

  // Opens loops over the axes [first, end), the first of them over `turns`; the row-major number in them.
  std::string open_axes(size_t first, size_t end, std::vector<std::string>& index,
                        const LayerWriter::Turns& turns) {
    std::string at = "0";
    for (size_t a = first; a < end; ++a) {
      index[a] = fmt::format("i{}", a);
      const std::string extent = w_.dim(norm_.axes[a].extent);
      w_.out.put(a == first && !turns.end.empty() ? loop_text(index[a], turns) : loop_text(index[a], extent));
      at = plus(times(at, extent), index[a]);
    }
    return at;
  }

  void statistics_of_blocks() {
    const LayerWriter::Turns turns = w_.open_parts(w_.dim(blocks()));
    w_.out.put(loop_text("b", turns));
    w_.out.line("const std::int64_t rows = sinter::min_of(std::int64_t{{{0}}}, {1} - b * {0});", block_,
                w_.dim(rows_));
    w_.out.line("float* const block = {} + b * {};", statistics_, 2 * pitch_);
    open_columns(w_, "statistics_of");
    const std::string stride = w_.dim(channels());
    w_.out.line(
        "block_statistics<kVectors>(from + b * {} * {} + c, rows, {}, lanes, block + c, block + {} + c);",
        block_, stride, stride, pitch_);
    close_columns(w_, channels(), kVectors, "statistics_of");
    w_.out.line("}}");
    w_.close_parts();
  }

  void factors() {
    open_columns(w_, "factors_of");
    w_.out.line("f32v mean[kVectors], squares[kVectors];");
    w_.out.line("merge_statistics({} + c, {}, {}, {}, lanes, mean, squares);", statistics_, pitch_,
                w_.dim(rows_), block_);
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    const std::string factor = vector_factor(norm_, "squares[v]", float_text(w_, rows_));
    w_.out.line("store_lanes({} + c + v * kLanes, mean[v], lanes);", mean_);
    w_.out.line("store_lanes({} + c + v * kLanes, {}, lanes);", factor_,
                scale_.empty()
                    ? factor
                    : fmt::format("mul({}, {})", factor, operand(scale_, norm_.axes.back().scale)));
    w_.out.line("}}");
    close_columns(w_, channels(), kVectors, "factors_of");
  }

  // (x - mean) * factor + bias of row k.
  void finish(const std::string& k, std::vector<std::string> index) {
    index.back() = "c + v * kLanes";
    const std::string row = times(k, w_.dim(channels()));
    open_columns(w_, "finish");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    const std::string d = fmt::format("sub({}, {})", lanes_of(plus("from", row)), lanes_of(mean_)),
                      factor = lanes_of(factor_);
    w_.out.line("const f32v r = {};", bias_.empty() ? fmt::format("mul({}, {})", d, factor)
                                                    : fmt::format("fma({}, {}, {})", d, factor,
                                                                  operand(bias_, norm_.axes.back().bias)));
    w_.out.line("store_lanes({} + c + v * kLanes, {}, lanes);", plus("to", row),
                epilogue_.vector("r", output_index(w_, norm_, index), "lanes", w_.out));
    w_.out.line("}}");
    close_columns(w_, channels(), kVectors, "finish");
  }
  static std::string lanes_of(const std::string& p) {
    return fmt::format("load_lanes({} + c + v * kLanes, lanes)", p);
  }
  // Scale or bias: one of each column, or a single one.
  static std::string operand(const std::string& p, const Dim& stride) {
    return stride.is(0) ? fmt::format("splat({}[0])", p) : lanes_of(p);
  }

  LayerWriter& w_;
  const Node& n_;
  Norm norm_;
  Epilogue epilogue_;
  Dim rows_;
  int64_t block_ = 0, pitch_ = 0;  // floats of a block's means
  std::string x_, y_, scale_, bias_, statistics_, mean_, factor_;
};

void emit(LayerWriter& w) { Writer(w).write(); }

}  // namespace

const std::vector<Kernel>& kernels_norm_blocks() {
  static const std::vector<Kernel> table = {
      {"norm_blocks",
       "Instance- and MeanVarianceNormalization of large channels-last floats, by blocks of rows", accepts,
       emit}};
  return table;
}

}  // namespace sinter
