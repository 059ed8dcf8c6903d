// Direct convolution on channels-last tensors.
//
// In [N][H][W][C] the taps of one kernel row are one contiguous run of kw*C floats (without dilation and
// groups), so a convolution is a few matrix products whose rows start a pixel apart: the same register tile
// serves 1x1, 3x3, strided, 1-D and 3-D convolutions. Taps outside the input are never touched: outer axes
// clip their range of taps a row at a time, along the row the pixels at the edges are done one by one with a
// clipped run; where a row is short, so that these would be many, its inputs are first copied to a row with
// zeros at both ends. A pointwise convolution is one long row. A picture that comes with its channels as
// planes is read as it is where the node says so (attribute `planar`): the runs are those of one channel
// then.
#include "emit/epilogue.h"
#include "kernels/panel_weights.h"
#include "kernels/rows.h"
#include "ops/op.h"
#include "targets/machine.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) { return is_float_conv(n); }

struct Geometry {
  int64_t groups, in_channels, out_channels, group_in, group_out;
  int64_t pixel;  // channels from one of the input to the next
  Window window;
  Dim batch;
  bool planar;
};

Geometry geometry_of(const LayerWriter& w) {
  const Node& n = w.node;
  Geometry g;
  const Shape& x = n.inputs[0]->type.shape;
  const Tensor& weight = *n.inputs[1]->data;
  g.groups = n.attributes.integer("group", 1);
  g.out_channels = weight.dim(0);
  g.group_in = weight.dim(1);
  g.in_channels = g.group_in * g.groups;
  g.group_out = g.out_channels / g.groups;
  g.window = window_of(n);
  g.batch = x[0];
  g.planar = w.decision.reads_nchw;
  g.pixel = g.planar ? g.in_channels : w.pixel_stride(*n.inputs[0]).value();
  return g;
}

std::string describe(const Geometry& g, const Node& n) {
  std::string k, s, d;
  for (size_t a = 0; a < g.window.rank(); ++a) {
    k += (a ? "x" : "") + std::to_string(g.window.kernel[a]);
    s += (a ? "x" : "") + std::to_string(g.window.strides[a]);
    d += (a ? "x" : "") + std::to_string(g.window.dilations[a]);
  }
  std::string text =
      fmt::format("Conv {}, stride {}, {} -> {} channels", k, s, g.in_channels, g.out_channels);
  if (g.groups > 1) text += fmt::format(" in {} groups", g.groups);
  if (d.find_first_not_of("1x") != std::string::npos) text += ", dilation " + d;
  std::string pads;
  for (size_t a = 0; a < g.window.rank(); ++a)
    pads += (a ? "," : "") + g.window.pads_begin[a].text() + "+" + g.window.pads_end[a].text();
  if (g.planar) text += ", from planes of channels";
  return text + ", pads " + pads + (n.epilogue ? ", then " + sinter::text(*n.epilogue) : "");
}

// Weights [M][C/g][taps] as panels a group, biases padded to whole vectors a group.
void pack_weights(const Node& n, const Geometry& g, PanelWeights& weights) {
  const float* weight = n.inputs[1]->data->as<float>();
  const int64_t taps = n.inputs[1]->data->size() / (g.out_channels * g.group_in);
  for (int64_t group = 0; group < g.groups; ++group)
    weights.add_group(g.group_out, [&](int64_t k, int64_t c) {
      const int64_t tap = g.planar ? k % taps : k / g.group_in, ci = g.planar ? k / taps : k % g.group_in;
      return weight[((group * g.group_out + c) * g.group_in + ci) * taps + tap];
    });
}

std::vector<float> pack_bias(const Node& n, const Geometry& g, int64_t padded) {
  std::vector<float> packed(static_cast<size_t>(padded * g.groups), 0.0f);
  if (n.anchor_inputs > 2 && n.inputs[2])
    for (int64_t m = 0; m < g.out_channels; ++m)
      packed[static_cast<size_t>(m / g.group_out * padded + m % g.group_out)] =
          n.inputs[2]->data->as<float>()[m];
  return packed;
}

// The rows of the input that one row of the output needs, with zeros at both ends, as a ring in scratch: row
// iy lies in slot iy % kernel. None of its pixels are edges then.
class PaddedRows {
 public:
  PaddedRows(LayerWriter& w, const Rows& rows, const Geometry& g)
      : w_(w), rows_(rows), pixel_(g.in_channels) {
    const Window& window = rows.window;
    if (window.rank() > 2 || g.groups > 1 || g.planar || g.pixel != g.in_channels ||
        !rows.out_width().is_static() || !rows.width().is_static() || !rows.pad().is_static())
      return;
    for (const int64_t d : window.dilations)
      if (d != 1) return;
    const int64_t width = rows.out_width().value(),
                  inside = (rows.interior_end() - rows.interior_begin()).value();
    pitch_ = ((width - 1) * rows.stride() + rows.kernel()) * pixel_;
    slots_ = window.rank() == 2 ? window.kernel[0] : 1;
    const int64_t bytes = slots_ * pitch_ * static_cast<int64_t>(sizeof(float));
    wanted_ = inside < width && width <= kShortRow && bytes <= machine_of(w.target).l1;
  }
  bool wanted() const { return wanted_; }

  // After open_parts, outside of the loops over rows.
  void declare() {
    ring_ = w_.scratch_of_part("padded", "float", slots_ * pitch_);
    w_.include("sinter/copy.h");
    if (two()) w_.out.line("std::int64_t copied = 0;  // the row behind those in the ring");
  }
  // In the loops over rows: what is missing of this row's input.
  void fill(const std::string& x) const {
    const int64_t before = rows_.pad().value() * pixel_,
                  run = std::min(rows_.width().value() * pixel_, pitch_ - before);
    std::string at = rows_.batch.is(1) ? "0" : "n", to = ring_;
    if (two()) {
      const std::string first = single() ? row() : "i0 + k0_first",
                        end = single() ? row() + " + 1" : "i0 + k0_last";
      w_.out.line("if (o0 == {} || copied < {}) copied = {};",
                  rows_.turns.end.empty() || !rows_.batch.is(1) ? "0" : rows_.turns.first, first, first);
      w_.out.line("for (; copied < {}; ++copied) {{", end);
      to = slot("copied");
      at = fmt::format("{} * {} + copied{}", at, w_.dim(rows_.window.in[0]),
                       rows_.x_base.empty() ? "" : " - " + rows_.x_base);
    } else {
      w_.out.line("{{");
    }
    w_.out.line("float* const to = {};", to);
    w_.out.line("sinter::fill(to, {}, 0.0f);", before);
    w_.out.line("sinter::copy(to + {}, {} + ({}) * {}, {});", before, x, at, rows_.width().value() * pixel_,
                run);
    w_.out.line("sinter::fill(to + {}, {}, 0.0f);", before + run, pitch_ - before - run);
    w_.out.line("}}");
  }
  // The address of the first tap of output pixel ox, in the loops over taps.
  std::string first_tap(const std::string& ox) const {
    const std::string from = !two() ? ring_ : slot(single() ? row() : "(i0 + k0)");
    return fmt::format("{} + {} * {}", from, ox, rows_.stride() * pixel_);
  }

 private:
  static constexpr int64_t kShortRow = 64;
  bool two() const { return rows_.window.rank() == 2; }
  bool single() const { return rows_.window.kernel[0] == 1 && rows_.window.pads_begin[0].is(0); }
  std::string row() const { return fmt::format("o0 * {}", rows_.window.strides[0]); }
  std::string slot(const std::string& iy) const {
    return slots_ == 1 ? ring_ : fmt::format("{} + {} % {} * {}", ring_, iy, slots_, pitch_);
  }

  LayerWriter& w_;
  const Rows& rows_;
  int64_t pixel_ = 0, pitch_ = 0, slots_ = 0;
  bool wanted_ = false;
  std::string ring_;
};

// In a tile of kPixels from ox: asks for what the tile below it reads beyond this one, a few short runs from
// each plane, which processors do not foresee.
void ask_for_next_row(LayerWriter& w, const Rows& rows, const Geometry& g, const std::string& x) {
  const Window& window = rows.window;
  if (window.rank() != 2 || window.dilations[0] != 1) return;
  w.out.line("for (std::int64_t ci = 0; ci < {}; ++ci)", g.in_channels);
  w.out.line("  for (std::int64_t k0 = {}; k0 < {}; ++k0) ask_for<kPixels * {}>({} + {});", window.kernel[0],
             window.kernel[0] + window.strides[0], rows.stride(), x,
             rows.planar_offset("ci", rows.position("ox")));
}

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w),
        n_(w.node),
        g_(geometry_of(w)),
        x_(w.input(0)),
        epilogue_(w, n_.outputs[0]->type.shape),
        rows_{w, window_, batch_, Dim(g_.pixel), w.pixel_stride()} {}

  void emit() {
    w_.summary(describe(g_, n_));
    w_.flops(product(n_.outputs[0]->type.shape) * Dim(2 * n_.inputs[1]->data->size() / g_.out_channels));
    w_.include("sinter/mac.h");
    flatten();
    PaddedRows padded_rows(w_, rows_, g_);
    if (!flat_ && padded_rows.wanted()) padded_rows_ = &padded_rows;
    interior_ = padded_rows_ ? rows_.out_width() : rows_.interior_end() - rows_.interior_begin();
    taps_ = n_.inputs[1]->data->size() / (g_.out_channels * g_.group_in);
    k_count_ = taps_ * g_.group_in;
    const Dim rows = rows_.outermost();
    panels_ = panels_of(w_.target, g_.group_out, interior_.is_static() ? interior_.value() : 64,
                        {k_count_, rows.is_static() ? rows.value() : 64});
    tile_pixels_ = w_.target.tile(panels_.vectors);
    store_weights();
    y_ = w_.output(0);
    open_parts();
    if (padded_rows_) padded_rows_->declare();
    if (g_.groups > 1) w_.out.line("for (std::int64_t g = 0; g < {}; ++g) {{", g_.groups);
    if (panels_within_tiles())
      tiles_of_panels();
    else
      panels_of_tiles();
    if (g_.groups > 1) w_.out.line("}}");
    w_.close_parts();
  }

 private:
  // One long row where nothing distinguishes the pixels.
  void flatten() {
    const size_t spatial = g_.window.rank();
    window_ = g_.window;
    batch_ = g_.batch;
    flat_ = window_.is_pointwise() && epilogue_.can_merge(1, spatial);
    flat_batch_ = flat_ && epilogue_.can_merge(0, spatial);
    if (flat_) window_ = flattened(window_, batch_, flat_batch_);
    if (flat_batch_) batch_ = Dim(1);
    rows_.batch = batch_;
  }

  // In the flattened case the pixel number takes the place of the last spatial axis; the others are 0.
  std::vector<std::string> index(const std::string& ox, const std::string& c) const {
    if (!flat_) return rows_.index(ox, c);
    const size_t spatial = g_.window.rank();
    std::vector<std::string> i(spatial + 2, "0");
    if (!flat_batch_ && !batch_.is(1)) i[0] = "n";
    i[spatial] = ox;
    i[spatial + 1] = c;
    return i;
  }

  void store_weights() {
    padded_ = (panels_.full * panels_.vectors + panels_.rest) * w_.target.lanes;
    weights_.emplace(w_, panels_, k_count_);
    pack_weights(n_, g_, *weights_);
    weights_->store("w", fmt::format("[{} channels][{} taps][{}], in panels of {}", g_.out_channels, taps_,
                                     g_.group_in, panels_.vectors * w_.target.lanes));
    if (n_.anchor_inputs > 2 && n_.inputs[2])
      bias_ = w_.weights("bias", pack_bias(n_, g_, padded_), fmt::format("[{}]", g_.out_channels));
  }

  // Parts are rows; where all pixels are one row, some of its tiles; where these are few, or a thread would
  // have more than its share of rows, panels.
  void open_parts() {
    strip_ = w_.strip();
    if (strip_) {
      // Rows as pixels of the one long row.
      const std::string columns = flat_ ? w_.dim(g_.window.out.back()) : "";
      auto number = [&](const std::string& row) {
        return flat_ && !row.empty() ? row + " * " + columns : row;
      };
      rows_.turns = {number(strip_->first), number(strip_->end)};
      rows_.x_base = number(strip_->x_base);
      rows_.y_base = number(strip_->y_base);
    }
    const bool one_row = rows_.outermost().is(1);
    by_tiles_ = one_row && flat_ && interior_.hi() >= 2 * w_.threads * tile_pixels_;
    by_panels_ = !by_tiles_ && g_.groups == 1 && panels_.full > 0 && (one_row || panels_share_better());
    turns_ = w_.open_parts(w_.threads == 1 ? "1"
                           : by_tiles_     ? w_.dim(tile_count(interior_, tile_pixels_))
                           : by_panels_    ? std::to_string(panel_count(panels_))
                                           : w_.dim(rows_.outermost()));
    if (in_parts() && !one_row && !by_panels_) rows_.turns = turns_;
  }
  bool in_parts() const { return turns_.first != "0"; }
  // Whether the thread with most to do has less of the panels than of the rows.
  bool panels_share_better() const {
    const auto most = [&](int64_t turns) {
      const int64_t own = (turns + w_.threads - 1) / w_.threads;
      return static_cast<double>(own) / static_cast<double>(turns);
    };
    const Dim rows = rows_.outermost();
    return !strip_ && rows.is_static() && 1.05 * most(panel_count(panels_)) < most(rows.value());
  }

  // Whether each tile's pixels are finished before the next ones': where all weights stay near beside a
  // tile's rows. Sums are so short then that the stores would take the time: a panel's are a line of each
  // pixel, which is not in the first-level cache; all panels' of a tile are one run.
  bool panels_within_tiles() const {
    if (!flat_ || g_.groups > 1 || g_.planar || panel_count(panels_) < 2 || !weights_->in_place())
      return false;
    if (in_parts() && !by_tiles_) return false;
    return bytes_of_tile() <= machine_of(w_.target).reread_bytes();
  }
  // All weights and a tile's rows.
  int64_t bytes_of_tile() const {
    const int64_t floats = k_count_ * padded_ + tile_pixels_ * (k_count_ + padded_);
    return floats * static_cast<int64_t>(sizeof(float));
  }

  void tiles_of_panels() {
    Rows(rows_).open();
    w_.out.line("const auto tile = [&](auto pixels, std::int64_t ox) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int kPixels = pixels.value;");
    open_panel(w_);
    weights_->declare_row();
    tile_body("0", std::to_string(rows_.kernel()), false);
    w_.out.put("};");
    weights_->emit();
    w_.out.put("};");
    tile_calls();
    Rows(rows_).close();
  }

  void panels_of_tiles() {
    Dim tiles = tile_count(interior_, tile_pixels_);
    for (size_t a = 0; !flat_ && a + 1 < g_.window.rank(); ++a) tiles = tiles * window_.out[a];
    if (in_parts() && !by_panels_) tiles = ceildiv(tiles, Dim(w_.threads));
    const bool asks_ahead = !strip_ && !g_.planar && tiles.hi() != Interval::kUnbounded;
    open_panel(w_);
    weights_->declare_row(asks_ahead ? tiles.hi() : 0, k_count_);
    Rows(rows_).open();
    if (padded_rows_) padded_rows_->fill(x_);
    open_tile("tile", "");
    tile_body("0", std::to_string(rows_.kernel()), false);
    w_.out.put("};");
    if (has_edges()) {
      open_tile("edge", ", std::int64_t first, std::int64_t end");
      tile_body("first", "end", true);
      w_.out.put("};");
    }
    tile_calls();
    Rows(rows_).close();
    w_.out.put("};");
    weights_->emit(g_.groups > 1 ? "g" : "", in_parts() && by_panels_ ? turns_ : LayerWriter::Turns{"0", ""});
  }

  void open_tile(const std::string& name, const std::string& parameters) {
    w_.out.line(
        "[[maybe_unused]] const auto {} = [&](auto pixels, std::int64_t ox{}) __attribute__((always_inline)) "
        "{{",
        name, parameters);
    w_.out.line("constexpr int kPixels = pixels.value;");
  }

  // The sums of kPixels pixels from ox, taps first..end of the row, are made and stored.
  void tile_body(const std::string& first, const std::string& end, bool edge) {
    const std::string start = !bias_.empty()
                                  ? bias_ + (g_.groups > 1 ? fmt::format(" + g * {}", padded_) : "") + " + c"
                                  : "static_cast<const float*>(nullptr)";
    if (edge)
      w_.out.line("Chains<kVectors{}> sums;",
                  panels_.rest == 0 ? "" : fmt::format(", chains_of({})", panels_.vectors));
    else
      w_.out.put("Tile<kVectors, kPixels> sum;");
    w_.out.line("{}_bias({}, {});", edge ? "chains" : "tile", edge ? "sums" : "sum", start);
    if (g_.planar && !edge && machine_of(w_.target).asks_ahead) ask_for_next_row(w_, rows_, g_, x_);
    if (!edge && (!panels_within_tiles() || bytes_of_tile() > machine_of(w_.target).l1))
      epilogue_.ask_for_rows("kPixels", index("ox + t", channel("")), w_.out);
    if (g_.planar) w_.out.line("for (std::int64_t ci = 0; ci < {}; ++ci) {{", g_.in_channels);
    rows_.open_taps(w_.out);
    const std::string position = rows_.position("ox"),
                      ix = first == "0" ? position : fmt::format("{} + {}", position, first);
    if (g_.planar)
      planar_taps(ix, first, end, edge);
    else if (g_.groups == 1 && rows_.dilation() == 1 && (g_.pixel == g_.in_channels || rows_.kernel() == 1))
      run_of_taps(ix, first, end, edge);
    else
      each_tap(position, first, end, edge);
    rows_.close_taps(w_.out);
    if (g_.planar) w_.out.line("}}");
    if (edge) w_.out.line("const Tile<kVectors, kPixels> sum = chains_sum(sums);");
    store_tile();
  }

  // The word for a run of `run` products at `from`, by the weights at wk.
  void product_of(const std::string& from, int64_t stride, const std::string& wk, const std::string& run,
                  bool edge) {
    if (edge)
      w_.out.line("mac_chains(sums, {}, {}, {}{});", from, wk, run, weights_->row_argument());
    else
      w_.out.line("{}(sum, {}, {}, {}, {}{});", g_.planar ? "mac" : mac_word(w_.target), from, stride, wk,
                  run, weights_->mac_arguments());
  }

  void planar_taps(const std::string& ix, const std::string& first, const std::string& end, bool edge) {
    const std::string from = fmt::format("{} + {}", x_, rows_.planar_offset("ci", ix)),
                      wk =
                          fmt::format("wp + (ci * {} + {}) * ({})", taps_, rows_.tap(first), weights_->row());
    if (edge || rows_.kernel() > 16)
      product_of(from, rows_.stride(), wk, fmt::format("{} - {}", end, first), edge);
    else
      w_.out.line("mac_few<{}>(sum, {}, {}, {}{});", rows_.kernel(), from, rows_.stride(), wk,
                  weights_->row_argument());
  }

  // All taps of a row are one run.
  void run_of_taps(const std::string& ix, const std::string& first, const std::string& end, bool edge) {
    product_of(
        padded_rows_ ? padded_rows_->first_tap("ox") : fmt::format("{} + {}", x_, rows_.input_offset(ix)),
        rows_.stride() * g_.pixel,
        fmt::format("wp + {} * ({} * {})", rows_.tap(first), g_.group_in, weights_->row()),
        edge ? fmt::format("({} - {}) * {}", end, first, g_.group_in)
             : std::to_string(rows_.kernel() * g_.group_in),
        edge);
  }

  void each_tap(const std::string& position, const std::string& first, const std::string& end, bool edge) {
    w_.out.line("for (std::int64_t kw = {}; kw < {}; ++kw) {{", first, end);
    const std::string ix = fmt::format("{} + kw * {}", position, rows_.dilation()),
                      shift = g_.groups > 1 ? fmt::format(" + g * {}", g_.group_in) : "";
    product_of(fmt::format("{} + {}{}", x_, rows_.input_offset(ix), shift), rows_.stride() * g_.pixel,
               fmt::format("wp + {} * ({} * {})", rows_.tap("kw"), g_.group_in, weights_->row()),
               std::to_string(g_.group_in), edge);
    w_.out.line("}}");
  }

  void store_tile() {
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int t = 0; t < kPixels; ++t) {{");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int o = 0; o < kVectors; ++o) {{");
    w_.out.line("const int lanes = o == kVectors - 1 ? last.value : kLanes;");
    const std::string here = channel(" + o * kLanes"),
                      value = epilogue_.vector("sum.a[t][o]", index("ox + t", here), "lanes", w_.out);
    w_.out.line("store_lanes({} + {} + {}, {}, lanes);", y_, rows_.output_offset("ox + t"), here, value);
    w_.out.line("}}");
    w_.out.line("}}");
  }

  // The number of the panel's first channel, plus `shift`.
  std::string channel(const char* shift) const {
    return (g_.groups > 1 ? fmt::format("g * {} + c", g_.group_out) : "c") + shift;
  }

  std::string begin() const { return padded_rows_ ? "0" : w_.dim(rows_.interior_begin()); }
  std::string end() const { return w_.dim(padded_rows_ ? rows_.out_width() : rows_.interior_end()); }
  bool has_edges() const { return !(begin() == "0" && end() == w_.dim(rows_.out_width())); }

  // The loops along the row.
  void tile_calls() {
    const std::string call = "tile(Int<{T}>(), {x});", width = w_.dim(rows_.out_width());
    if (has_edges()) {
      w_.out.line("std::int64_t ox = 0;");
      const std::string edge =
          fmt::format("edge(Int<1>(), ox, {}, {});", rows_.first_tap("ox"), rows_.last_tap("ox"));
      if (begin() != "0") w_.out.line("for (; ox < {}; ++ox) {}", begin(), edge);
      emit_tiles(w_, "ox", end(), interior_, tile_pixels_, "ox", call);
      if (end() != width) w_.out.line("for (; ox < {}; ++ox) {}", width, edge);
    } else if (strip_ && flat_) {
      emit_tile_range(w_, rows_.turns.first, rows_.turns.end, tile_pixels_, "ox", call);
    } else if (in_parts() && by_tiles_) {
      emit_tile_parts(w_, turns_, interior_, tile_pixels_, "ox", call);
    } else {
      emit_tiles(w_, "0", end(), interior_, tile_pixels_, "ox", call);
    }
  }

  LayerWriter& w_;
  const Node& n_;
  const Geometry g_;
  const std::string x_;
  Epilogue epilogue_;
  Window window_;  // that of the layer, or the flattened one
  Dim batch_;
  Rows rows_;
  PaddedRows* padded_rows_ = nullptr;  // null: none
  std::optional<LayerWriter::Strip> strip_;
  Panels panels_;
  std::optional<PanelWeights> weights_;
  Dim interior_;
  LayerWriter::Turns turns_;
  bool flat_ = false, flat_batch_ = false, by_tiles_ = false, by_panels_ = false;
  int tile_pixels_ = 0;
  int64_t taps_ = 0, k_count_ = 0, padded_ = 0;  // products of a sum; channels of a group, in whole vectors
  std::string y_, bias_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_conv() {
  static const std::vector<Kernel> table = {
      {"conv_direct",
       "direct convolution on channels-last floats, by register tiles",
       accepts,
       emit,
       {.writes_apart = true, .rows = true, .reads_apart = true, .reads_nchw = true, .joins_taps = true}}};
  return table;
}

}  // namespace sinter
