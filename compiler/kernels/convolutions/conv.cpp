// Direct convolution on channels-last tensors.
//
// In [N][H][W][C] the taps of one kernel row are one contiguous run of kw*C floats (without dilation and
// groups), so a convolution is a few matrix products whose rows start a pixel apart: the same register tile
// serves 1x1, 3x3, strided, 1-D and 3-D convolutions. Taps outside the input are never touched: outer axes
// clip their range of taps a row at a time, along the row the pixels at the edges are done one by one with a
// clipped run; where a row is short, so that these would be many, its inputs are first copied to a row with
// zeros at both ends (row_source.h, which has the loops). A picture that comes with its channels as
// planes is read as it is where the node says so (attribute `planar`): the runs are those of one channel
// then.
#include "emit/epilogue.h"
#include "kernels/products/direct_ways.h"
#include "kernels/products/finish_tile.h"
#include "kernels/products/panel_weights.h"
#include "kernels/products/row_source.h"
#include "ops/op.h"
#include "targets/target.h"

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
        source_(w, epilogue_, shape()),
        rows_(source_.rows()) {}

  void emit() {
    constexpr int64_t kShortRow = 64;
    w_.summary(describe(g_, n_));
    w_.flops(product(n_.outputs[0]->type.shape) * Dim(2 * n_.inputs[1]->data->size() / g_.out_channels));
    w_.include("sinter/mac.h");
    if (g_.groups == 1 && !g_.planar)
      source_.pad(w_.element.is_half() ? DType::kF16 : DType::kF32, g_.in_channels,
                  w_.element.is_half() ? INT64_MAX : kShortRow,
                  w_.element.is_half() ? "sinter::half{0}" : "0.0f");
    taps_ = n_.inputs[1]->data->size() / (g_.out_channels * g_.group_in);
    k_count_ = taps_ * g_.group_in;
    const Dim rows = rows_.outermost(), &interior = source_.interior();
    panels_ = panels_of(w_.target, g_.group_out, interior.is_static() ? interior.value() : 64,
                        {k_count_, rows.is_static() ? rows.value() : 64});
    tile_pixels_ = w_.target.tile(panels_.vectors);
    store_weights();
    y_ = w_.output(0);
    source_.open(panels_, tile_pixels_, g_.groups > 1);
    if (g_.groups > 1) w_.out.line("for (std::int64_t g = 0; g < {}; ++g) {{", g_.groups);
    if (panels_within_tiles())
      tiles_of_panels();
    else
      panels_of_tiles();
    if (g_.groups > 1) w_.out.line("}}");
    source_.close();
  }

 private:
  RowShape shape() const {
    RowShape s = picture_rows(w_);
    s.x_pixel = Dim(g_.pixel);
    return s;
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

  bool panels_within_tiles() const {
    return g_.groups == 1 && !g_.planar && weights_->in_place() &&
           source_.panels_within_tiles(bytes_of_tile());
  }
  // All weights and a tile's rows.
  int64_t bytes_of_tile() const {
    const int64_t floats = k_count_ * padded_ + tile_pixels_ * (k_count_ + padded_);
    return floats * w_.element.bytes;
  }

  void tiles_of_panels() {
    source_.each_tile(
        x_, true, [] {},
        [&](bool) {
          open_panel(w_);
          weights_->declare_row();
          tile_body("0", std::to_string(rows_.kernel()), false);
          w_.out.put("};");
          weights_->emit();
        });
  }

  void panels_of_tiles() {
    open_panel(w_);
    weights_->declare_row(g_.planar ? 0 : source_.tiles_of_item().value_or(0), k_count_);
    source_.each_tile(
        x_, false, [] {},
        [&](bool edge) {
          if (edge)
            tile_body("first", "end", true);
          else
            tile_body("0", std::to_string(rows_.kernel()), false);
        });
    w_.out.put("};");
    weights_->emit(g_.groups > 1 ? "g" : "", source_.panel_turns());
  }

  // The sums of kPixels pixels from ox, taps first..end of the row, are made and stored.
  void tile_body(const std::string& first, const std::string& end, bool edge) {
    const std::string start =
        bias_.empty() ? "" : bias_ + (g_.groups > 1 ? fmt::format(" + g * {}", padded_) : "") + " + c";
    const TileSums sums(w_, k_count_);
    if (edge) {
      w_.out.line("Chains<kVectors{}> sums;",
                  panels_.rest == 0 ? "" : fmt::format(", chains_of({})", panels_.vectors));
      w_.out.line("chains_bias(sums, {});", start.empty() ? "static_cast<const float*>(nullptr)" : start);
    } else {
      sums.declare("kPixels", start);
    }
    if (g_.planar && !edge && w_.target.speed.asks_ahead) ask_for_next_row(w_, rows_, g_, x_);
    if (!edge && (!panels_within_tiles() || bytes_of_tile() > w_.target.speed.l1))
      epilogue_.ask_for_rows("kPixels", source_.index("ox + t", channel()), w_.out);
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
    if (edge)
      w_.out.line("const Tile<kVectors, kPixels> sum = chains_sum(sums);");
    else
      sums.end();
    store_tile();
  }

  // The word for a run of `run` products at `from`, by the weights at wk.
  void product_of(const std::string& from, int64_t stride, const std::string& wk, const std::string& run,
                  bool edge) {
    if (edge)
      w_.out.line("mac_chains(sums, {}, {}, {}{});", from, wk, run, weights_->row_argument());
    else if (g_.planar)
      w_.out.line("mac(sum, {}, {}, {}, {}{});", from, stride, wk, run, weights_->mac_arguments());
    else
      TileSums(w_, k_count_).add(from, std::to_string(stride), wk, run, weights_->mac_arguments());
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
    product_of(source_.run_at(x_, ix), rows_.stride() * g_.pixel,
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

  void store_tile() { finish_tile(w_, epilogue_, source_.texts(y_, channel())); }

  // The number of the panel's first channel.
  std::string channel() const { return g_.groups > 1 ? fmt::format("g * {} + c", g_.group_out) : "c"; }

  LayerWriter& w_;
  const Node& n_;
  const Geometry g_;
  const std::string x_;
  Epilogue epilogue_;
  RowSource source_;
  const Rows& rows_;
  Panels panels_;
  std::optional<PanelWeights> weights_;
  int tile_pixels_ = 0;
  int64_t taps_ = 0, k_count_ = 0, padded_ = 0;  // products of a sum; channels of a group, in whole vectors
  std::string y_, bias_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_conv() {
  static const std::vector<Kernel> table = {{"conv_direct",
                                             "direct convolution on channels-last floats, by register tiles",
                                             accepts,
                                             emit,
                                             {.writes_apart = true,
                                              .rows = true,
                                              .reads_apart = true,
                                              .reads_nchw = true,
                                              .joins_taps = true,
                                              .work = Work::kProducts},
                                             direct_ways}};
  return table;
}

}  // namespace sinter
