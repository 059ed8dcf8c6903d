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

bool accepts(const Node& n, const Target&) {
  if (std::string_view(n.op->name) != "Conv" || n.attributes.integer("channels_last", 0) != 1) return false;
  if (n.inputs[0]->type.dtype != DType::kF32 || n.outputs[0]->type.dtype != DType::kF32) return false;
  if (!n.inputs[1]->data || (n.anchor_inputs > 2 && n.inputs[2] && !n.inputs[2]->data)) return false;
  return !n.epilogue || has_vector_text(*n.epilogue);
}

struct Geometry {
  int64_t groups, in_channels, out_channels, group_in, group_out;
  Window window;
  Dim batch;
  bool planar;
};

Geometry geometry_of(const Node& n) {
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
  g.planar = n.attributes.has("planar");
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
    if (window.rank() > 2 || g.groups > 1 || g.planar || !rows.out_width().is_static() ||
        !rows.width().is_static() || !rows.pad().is_static())
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

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const int lanes = w.target.lanes;
  Geometry g = geometry_of(n);
  w.summary(describe(g, n));
  w.flops(product(n.outputs[0]->type.shape) * Dim(2 * n.inputs[1]->data->size() / g.out_channels));
  w.include("sinter/mac.h");
  const std::string x = w.input(0);
  Epilogue epilogue(w, n.outputs[0]->type.shape);

  // One long row where nothing distinguishes the pixels.
  std::vector<std::string> (*index_of)(const Rows&, const std::string&, const std::string&) =
      [](const Rows& r, const std::string& ox, const std::string& c) { return r.index(ox, c); };
  const size_t spatial = g.window.rank();
  Window window = g.window;
  Dim batch = g.batch;
  bool flat = window.is_pointwise() && epilogue.can_merge(1, spatial),
       flat_batch = flat && epilogue.can_merge(0, spatial);
  if (flat) {
    window = flattened(window, batch, flat_batch);
    if (flat_batch) batch = Dim(1);
  }
  Rows rows{w, window, batch, Dim(g.in_channels), output_pitch(n)};
  // In the flattened case the pixel number takes the place of the last spatial axis; the others are 0.
  auto index = [&](const std::string& ox, const std::string& c) {
    if (!flat) return index_of(rows, ox, c);
    std::vector<std::string> i(spatial + 2, "0");
    if (!flat_batch && !batch.is(1)) i[0] = "n";
    i[spatial] = ox;
    i[spatial + 1] = c;
    return i;
  };

  PaddedRows padded_rows(w, rows, g);
  const bool is_padded = !flat && padded_rows.wanted();
  const Dim interior = is_padded ? rows.out_width() : rows.interior_end() - rows.interior_begin();
  const Panels panels = panels_of(w.target, g.group_out, interior.is_static() ? interior.value() : 64);
  const int64_t taps = n.inputs[1]->data->size() / (g.out_channels * g.group_in), k_count = taps * g.group_in;
  const int64_t padded = (panels.full * panels.vectors + panels.rest) * lanes;
  PanelWeights weights(w, panels, k_count);
  pack_weights(n, g, weights);
  weights.store("w", fmt::format("[{} channels][{} taps][{}], in panels of {}", g.out_channels, taps,
                                 g.group_in, panels.vectors * lanes));
  const bool has_bias = n.anchor_inputs > 2 && n.inputs[2];
  const std::string bias =
      has_bias ? w.weights("bias", pack_bias(n, g, padded), fmt::format("[{}]", g.out_channels)) : "";
  const std::string y = w.output(0);

  const std::optional<LayerWriter::Strip> strip = w.strip();
  if (strip) {
    const std::string columns = flat ? w.dim(g.window.out.back()) : "";  // rows as pixels of the one long row
    auto number = [&](const std::string& row) { return flat && !row.empty() ? row + " * " + columns : row; };
    rows.turns = {number(strip->first), number(strip->end)};
    rows.x_base = number(strip->x_base);
    rows.y_base = number(strip->y_base);
  }
  // Parts are rows; where all pixels are one row, some of its tiles; where these are few, panels.
  const int tile_pixels = w.target.tile(panels.vectors);
  const bool one_row = rows.outermost().is(1),
             by_tiles = one_row && flat && interior.hi() >= 2 * w.threads * tile_pixels;
  const bool by_panels = one_row && !by_tiles && g.groups == 1 && panels.full > 0;
  const LayerWriter::Turns turns = w.open_parts(w.threads == 1 ? "1"
                                                : by_tiles     ? w.dim(tile_count(interior, tile_pixels))
                                                : by_panels    ? std::to_string(panel_count(panels))
                                                               : w.dim(rows.outermost()));
  const bool in_parts = turns.first != "0";
  if (in_parts && !one_row) rows.turns = turns;
  if (is_padded) padded_rows.declare();
  Dim tiles = tile_count(interior, tile_pixels);
  for (size_t a = 0; !flat && a + 1 < spatial; ++a) tiles = tiles * window.out[a];
  const bool asks_ahead = !strip && !g.planar && tiles.hi() != Interval::kUnbounded;
  if (g.groups > 1) w.out.line("for (std::int64_t g = 0; g < {}; ++g) {{", g.groups);
  w.out.line(
      "// `vectors` vectors of output channels from c, the last one with `last` channels; wp: their weights");
  w.out.line(
      "const auto panel = [&](auto vectors, auto last, std::int64_t c, const float* wp) "
      "__attribute__((always_inline)) {{");
  w.out.line("constexpr int kVectors = vectors.value;");
  weights.declare_row(asks_ahead ? tiles.hi() : 0, k_count);
  Rows(rows).open();
  if (is_padded) padded_rows.fill(x);
  // The sums of T pixels from ox, taps first..end of the row, are made and stored.
  const bool whole_run = g.groups == 1 && rows.dilation() == 1;
  auto tile = [&](const std::string& name, const std::string& parameters, const std::string& first,
                  const std::string& end, bool edge) {
    w.out.line(
        "[[maybe_unused]] const auto {} = [&](auto pixels, std::int64_t ox{}) __attribute__((always_inline)) "
        "{{",
        name, parameters);
    w.out.line("constexpr int kPixels = pixels.value;");
    const std::string start = has_bias
                                  ? bias + (g.groups > 1 ? fmt::format(" + g * {}", padded) : "") + " + c"
                                  : "static_cast<const float*>(nullptr)";
    if (edge) {
      w.out.line("Chains<kVectors> sums;");
      w.out.line("chains_bias(sums, {});", start);
    } else {
      w.out.line("Tile<kVectors, kPixels> sum;");
      w.out.line("tile_bias(sum, {});", start);
    }
    // The words for a run of taps at `x`, and what is between their arguments.
    const auto product = [&](const std::string& from, const std::string& stride, const std::string& wk,
                             const std::string& run) {
      if (edge)
        w.out.line("mac_chains(sums, {}, {}, {}{});", from, wk, run, weights.row_argument());
      else
        w.out.line("{}(sum, {}, {}, {}, {}{});", g.planar ? "mac" : mac_word(w.target), from, stride, wk, run,
                   weights.mac_arguments());
    };
    if (g.planar && !edge && machine_of(w.target).asks_ahead) ask_for_next_row(w, rows, g, x);
    if (g.planar) w.out.line("for (std::int64_t ci = 0; ci < {}; ++ci) {{", g.in_channels);
    rows.open_taps(w.out);
    const std::string shift = g.groups > 1 ? fmt::format(" + g * {}", g.group_in) : "";
    const std::string step = std::to_string(rows.stride() * g.in_channels);
    const std::string position = rows.position("ox");
    if (g.planar) {
      const std::string ix = first == "0" ? position : fmt::format("{} + {}", position, first);
      const std::string from = rows.planar_offset("ci", ix);
      const std::string wk = fmt::format("wp + (ci * {} + {}) * ({})", taps, rows.tap(first), weights.row());
      if (edge || rows.kernel() > 8)
        product(fmt::format("{} + {}", x, from), std::to_string(rows.stride()), wk,
                fmt::format("{} - {}", end, first));
      else
        w.out.line("mac_few<{}>(sum, {} + {}, {}, {}{});", rows.kernel(), x, from, rows.stride(), wk,
                   weights.row_argument());
    } else if (whole_run) {
      const std::string ix = first == "0" ? position : fmt::format("{} + {}", position, first);
      const std::string run = edge ? fmt::format("({} - {}) * {}", end, first, g.group_in)
                                   : std::to_string(rows.kernel() * g.group_in);
      product(is_padded ? padded_rows.first_tap("ox") : fmt::format("{} + {}", x, rows.input_offset(ix)),
              step, fmt::format("wp + {} * ({} * {})", rows.tap(first), g.group_in, weights.row()), run);
    } else {
      w.out.line("for (std::int64_t kw = {}; kw < {}; ++kw) {{", first, end);
      const std::string ix = fmt::format("{} + kw * {}", position, rows.dilation());
      product(fmt::format("{} + {}{}", x, rows.input_offset(ix), shift), step,
              fmt::format("wp + {} * ({} * {})", rows.tap("kw"), g.group_in, weights.row()),
              std::to_string(g.group_in));
      w.out.line("}}");
    }
    rows.close_taps(w.out);
    if (g.planar) w.out.line("}}");
    if (edge) w.out.line("const Tile<kVectors, kPixels> sum = chains_sum(sums);");
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int t = 0; t < kPixels; ++t) {{");
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int o = 0; o < kVectors; ++o) {{");
    w.out.line("const int lanes = o == kVectors - 1 ? last.value : kLanes;");
    const std::string channel =
        (g.groups > 1 ? fmt::format("g * {} + ", g.group_out) : "") + "c + o * kLanes";
    const std::string value = epilogue.vector("sum.a[t][o]", index("ox + t", channel), "lanes", w.out);
    w.out.line("store_lanes({} + {} + {}, {}, lanes);", y, rows.output_offset("ox + t"), channel, value);
    w.out.line("}}");
    w.out.line("}}");
    w.out.put("};");
  };
  const std::string width = w.dim(rows.out_width()), begin = is_padded ? "0" : w.dim(rows.interior_begin()),
                    end = is_padded ? width : w.dim(rows.interior_end());
  tile("tile", "", "0", std::to_string(rows.kernel()), false);
  const bool edges = !(begin == "0" && end == width);
  if (edges) {
    tile("edge", ", std::int64_t first, std::int64_t end", "first", "end", true);
    w.out.line("std::int64_t ox = 0;");
    const std::string call =
        fmt::format("edge(Int<1>(), ox, {}, {});", rows.first_tap("ox"), rows.last_tap("ox"));
    if (begin != "0") w.out.line("for (; ox < {}; ++ox) {}", begin, call);
    emit_tiles(w, "ox", end, interior, tile_pixels, "ox", "tile(Int<{T}>(), {x});");
    if (end != width) w.out.line("for (; ox < {}; ++ox) {}", width, call);
  } else if (strip && flat) {
    emit_tile_range(w, rows.turns.first, rows.turns.end, tile_pixels, "ox", "tile(Int<{T}>(), {x});");
  } else if (in_parts && by_tiles) {
    emit_tile_parts(w, turns, interior, tile_pixels, "ox", "tile(Int<{T}>(), {x});");
  } else {
    emit_tiles(w, "0", end, interior, tile_pixels, "ox", "tile(Int<{T}>(), {x});");
  }
  Rows(rows).close();
  w.out.put("};");
  weights.emit(g.groups > 1 ? "g" : "", in_parts && by_panels ? turns : LayerWriter::Turns{"0", ""});
  if (g.groups > 1) w.out.line("}}");
  w.close_parts();
}

}  // namespace

const std::vector<Kernel>& kernels_conv() {
  static const std::vector<Kernel> table = {{"conv_direct",
                                             "direct convolution on channels-last floats, by register tiles",
                                             accepts, emit, true, true}};
  return table;
}

}  // namespace sinter
