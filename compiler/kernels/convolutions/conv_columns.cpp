// Convolution to fewer channels than fill the vectors, as at the end of nets that make pictures.
//
// Three channels leave five of eight lanes of direct convolution idle. But the products of one input column
// with all taps of a kernel row are independent sums: of 9 taps a row and 3 channels there are 27, which fill
// four vectors. So for each row of the output, every column of the input is multiplied by the kernel's
// columns side by side, [column][tap of the row][channel], which is a convolution one tap wide; then each
// output pixel adds up one tap of each column of its window. Columns outside the input stay zeros, so that no
// pixel is an edge.
#include "kernels/convolutions/conv_columns.h"

#include "emit/epilogue.h"
#include "kernels/products/direct_ways.h"
#include "kernels/products/panel_weights.h"
#include "kernels/windows/rows.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool serves(const Node& n) {
  if (!is_float_conv(n) || n.attributes.integer("group", 1) != 1) return false;
  const Window w = window_of(n);
  return w.kernel.back() > 1 && w.strides.back() == 1 && w.pads_begin.back().is_static();
}

// Whether the scratch, the products of a row's columns, is small beside the input, so that the arena's budget
// holds (docs/decisions/0009-arena-budget.md). In doubles: extents may have no bound yet.
bool is_small(const Window& w, int64_t pitch, const Shape& input) {
  const double columns = static_cast<double>(w.out.back().hi()) +
                         static_cast<double>((w.kernel.back() - 1) * w.dilations.back());
  return 8 * columns * static_cast<double>(pitch) <= static_cast<double>(product(input).hi());
}

bool accepts(const Node& n, const Context& c) { return c.target.lanes > 1 && columns_share(n, c) < 1; }

// The window with one tap along the row, at the column itself.
Window narrowed(Window w) {
  w.kernel.back() = w.strides.back() = w.dilations.back() = 1;
  w.pads_begin.back() = w.pads_end.back() = Dim(0);
  w.out.back() = w.in.back();
  return w;
}

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w),
        weight_(*w.node.inputs[1]->data),
        window_(window_of(w.node)),
        narrow_(narrowed(window_)),
        epilogue_(w, w.node.outputs[0]->type.shape),
        out_(weight_.dim(0)),
        in_(weight_.dim(1)),
        width_(window_.kernel.back()),
        products_(width_ * out_),
        pitch_(round_up(products_, w.target.lanes)),
        panels_(panels_of(w.target, products_, std::min<int64_t>(window_.in.back().hi(), 64))) {}

  void emit() {
    const int64_t taps = weight_.size() / (out_ * in_);
    w_.include("sinter/mac.h");
    w_.include("sinter/dims.h");
    w_.flops(product(w_.node.outputs[0]->type.shape) * Dim(2 * in_ * taps));
    w_.summary(fmt::format("Conv of {} taps, {} -> {} channels, columns by the {} taps of a row{}", taps, in_,
                           out_, width_, epilogue_.summary()));
    x_ = w_.input(0);
    pack(taps / width_);
    y_ = w_.output(0);
    const Dim batch = w_.node.inputs[0]->type.shape[0];
    Rows rows{w_, window_, batch, Dim(in_), w_.pixel_stride()};
    rows.take_strip();
    const bool in_parts = rows.turns.end.empty() && !rows.outermost().is(1);
    if (in_parts) rows.turns = w_.open_parts(w_.dim(rows.outermost()));
    clear_columns();
    Rows(rows).open();
    Rows columns{w_, narrow_, batch, Dim(in_), Dim(out_)};
    columns.x_base = rows.x_base;
    multiply_columns(columns);
    add_columns(rows);
    Rows(rows).close();
    if (in_parts) w_.close_parts();
  }

 private:
  // Weights [taps of the outer axes][in channels][taps of the row][out channels].
  void pack(int64_t outer_taps) {
    const float* weight = weight_.as<float>();
    weights_.emplace(w_, panels_, outer_taps * in_);
    weights_->add_group(products_, [&](int64_t k, int64_t c) {
      const int64_t tap = k / in_ * width_ + c / out_;
      return weight[(c % out_ * in_ + k % in_) * outer_taps * width_ + tap];
    });
    weights_->store("w", fmt::format("[{} taps of a row][{} channels][{} rows][{}], in panels of {}", width_,
                                     out_, outer_taps, in_, panels_.vectors * w_.target.lanes));
    bias_ = padded_bias(w_, out_);
  }

  // The columns of a row from the first that a window covers; a vector more, which the last sums' idle lanes
  // read.
  void clear_columns() {
    const int64_t reach = (width_ - 1) * window_.dilations.back();
    const Dim count = (window_.out.back() + Dim(reach)) * Dim(pitch_) + Dim(w_.target.lanes);
    columns_ = w_.scratch_of_part("columns", "float", count.hi());
    w_.out.line("for (std::int64_t i = 0; i < {}; i += kLanes) store({} + i, zero());", w_.dim(count),
                columns_);
  }

  void multiply_columns(const Rows& columns) {
    const Dim pad = window_.pads_begin.back(),
              covered = window_.out.back() + Dim((width_ - 1) * window_.dilations.back()) - pad;
    const int64_t first = std::max<int64_t>(0, -pad.value());
    const Dim end = max(min(window_.in.back(), covered), Dim(first));
    open_panel(w_, "const float* wp", "[[maybe_unused]] auto");
    weights_->declare_row();
    w_.out.line("const auto tile = [&](auto pixels, std::int64_t ix) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int kPixels = pixels.value;");
    const TileSums sums(w_, weight_.size() / (out_ * width_));
    sums.declare("kPixels", "");
    columns.open_taps(w_.out);
    sums.add(fmt::format("{} + {}", x_, columns.input_offset("ix")), std::to_string(in_),
             fmt::format("wp + {} * ({} * {})", columns.tap("0"), in_, weights_->row()), std::to_string(in_),
             weights_->mac_arguments());
    columns.close_taps(w_.out);
    sums.end();
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int t = 0; t < kPixels; ++t) {{");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int o = 0; o < kVectors; ++o)");
    w_.out.line("  store({} + (ix + t + {}) * {} + c + o * kLanes, sum.a[t][o]);", columns_, pad.value(),
                pitch_);
    w_.out.line("}}");
    w_.out.put("};");
    emit_tiles(w_, std::to_string(first), w_.dim(end), end - Dim(first), w_.target.tile(panels_.vectors),
               "ix", "tile(Int<{T}>(), {x});");
    w_.out.put("};");
    weights_->emit();
  }

  void add_columns(const Rows& rows) {
    const int64_t vectors = (out_ + w_.target.lanes - 1) / w_.target.lanes;
    w_.out.line("for (std::int64_t ox = 0; ox < {}; ++ox) {{", w_.dim(rows.out_width()));
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int o = 0; o < {}; ++o) {{", vectors);
    w_.out.line("const int lanes = o == {} ? {} : kLanes;", vectors - 1,
                out_ - (vectors - 1) * w_.target.lanes);
    w_.out.line("const float* const from = {} + ox * {} + o * kLanes;", columns_, pitch_);
    w_.out.line("f32v sum = {};", bias_.empty() ? "zero()" : fmt::format("load({} + o * kLanes)", bias_));
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int k = 0; k < {}; ++k) sum = add(sum, load(from + k * {}));", width_,
                window_.dilations.back() * pitch_ + out_);
    const std::string value = epilogue_.vector("sum", rows.index("ox", "o * kLanes"), "lanes", w_.out);
    w_.out.line("store_lanes({} + {} + o * kLanes, {}, lanes);", y_, rows.output_offset("ox"), value);
    w_.out.line("}}");
    w_.out.line("}}");
  }

  LayerWriter& w_;
  const Tensor& weight_;  // [out][in][taps]
  const Window window_, narrow_;
  Epilogue epilogue_;
  const int64_t out_, in_, width_;  // channels; taps of a row
  const int64_t products_, pitch_;  // of a column; floats from one column's to the next's
  const Panels panels_;
  std::optional<PanelWeights> weights_;
  std::string x_, y_, columns_, bias_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

double columns_share(const Node& n, const Context& context) {
  constexpr double kWorth = 0.8;
  if (!serves(n) || context.of(n).reads_nchw) return 1;
  const Target& t = context.target;
  const Tensor& weight = *n.inputs[1]->data;
  const Window w = window_of(n);
  const int64_t width = w.kernel.back(), out = weight.dim(0),
                columns = std::min<int64_t>(w.in.back().hi(), 64), depth = weight.size() / (out * width);
  if (!is_small(w, round_up(width * out, t.lanes), n.inputs[0]->type.shape)) return 1;
  const double direct = static_cast<double>(width * depth) * panels_cost(t, out, columns);
  // A pixel's sums are as many additions, with a load each, as a row has taps; a column's are stored.
  const int64_t added = (out + t.lanes - 1) / t.lanes * width, stored = (width * out + t.lanes - 1) / t.lanes;
  const double share = (static_cast<double>(depth) * panels_cost(t, width * out, columns) +
                        static_cast<double>(added + stored)) /
                       direct;
  return share < kWorth ? share : 1;
}

namespace {
std::vector<Candidate> ways(const Node& n, const Context& c) {
  return direct_ways(n, c, columns_share(n, c));
}
}  // namespace

const std::vector<Kernel>& kernels_conv_columns() {
  static const std::vector<Kernel> table = {
      {"conv_columns",
       "convolution to few channels: input columns by all taps of a kernel row at once",
       accepts,
       emit,
       {.writes_apart = true, .rows = true, .work = Work::kProducts},
       ways}};
  return table;
}

}  // namespace sinter
