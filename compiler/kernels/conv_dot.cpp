// Convolutions and matrix products of bytes with int32 sums (Conv and MatMul with the attribute `integer`),
// constant weights, by the register tiles of dot.h.
//
// The loops are those of conv.cpp: channels-last rows, in which the taps of one kernel row are one run of
// bytes (or a run a tap, with groups or dilation); runs are padded with zero weights to whole groups of four.
// Padding holds the zero point of x: rows of taps outside the input are left out, and with them their share
// of the sums; at the ends of a row the taps of a pixel are gathered first, the missing ones filled with the
// zero point. What the zero point (and the flipped sign of dot.h) adds to a row of taps is a constant of the
// output channel: it is part of the bias where no row is ever outside, else it is added row by row.
#include "kernels/dot_tiles.h"
#include "kernels/rows.h"
#include "ops/contraction.h"
#include "ops/op.h"

namespace sinter {
namespace {

// --- convolution

bool accepts_conv(const Node& n, const Context&) { return is_integer_conv(n, DType::kI8); }

class ConvWriter {
 public:
  explicit ConvWriter(LayerWriter& w)
      : w_(w),
        n_(w.node),
        s_(conv_shape(w.node)),
        whole_(window_of(w.node)),
        x_(w.input(0)),
        epilogue_(w, w.node.outputs[0]->type.shape),
        sums_(w, epilogue_, most_of(w.node, 0)) {}

  void emit() {
    w_.include("sinter/dot.h");
    w_.flops(product(n_.outputs[0]->type.shape) * Dim(2 * s_.taps * s_.group_in));
    w_.summary(fmt::format("Conv of bytes, {} taps, {} -> {} channels in {} groups{}", s_.taps,
                           s_.in_channels(), s_.out_channels(), s_.groups, epilogue_.summary()));
    Dim batch = n_.inputs[0]->type.shape[0];
    flatten(batch);
    rows_.emplace(Rows{w_, window_, batch, Dim(s_.in_channels()), Dim(s_.out_channels())});
    const Dim interior = rows_->interior_end() - rows_->interior_begin();
    panels_ = panels_of(w_.target, s_.group_out, interior.is_static() ? interior.value() : 64);
    padded_ = (panels_.full * panels_.vectors + panels_.rest) * w_.target.lanes;
    pack();
    y_ = w_.output(0);
    const int tile_pixels = dot_tile(w_.target, panels_.vectors);
    const bool by_tiles = flat_ && rows_->outermost().is(1);
    turns_ = w_.open_parts(w_.threads == 1 ? "1"
                           : by_tiles      ? w_.dim(tile_count(interior, tile_pixels))
                                           : w_.dim(rows_->outermost()));
    if (turns_.first != "0" && !by_tiles) rows_->turns = turns_;
    if (has_edges())
      taps_ = w_.scratch_of_part("taps", std::string(cpp_name(x_type())), rows_->kernel() * tap_pitch());
    if (!shares_.empty())
      row_start_ = w_.scratch_of_part("start", "std::int32_t", int64_t{panels_.vectors} * w_.target.lanes);
    if (grouped()) w_.out.line("for (std::int64_t g = 0; g < {}; ++g) {{", s_.groups);
    open_panel(w_, kByteWeights);
    Rows(*rows_).open();
    start();
    tile();
    if (by_tiles) {
      emit_tile_parts(w_, turns_, interior, tile_pixels, "ox", "tile(Int<{T}>(), {x});");
    } else if (has_edges()) {
      edge();
      const std::string begin = w_.dim(rows_->interior_begin()), end = w_.dim(rows_->interior_end()),
                        width = w_.dim(rows_->out_width());
      const std::string call =
          fmt::format("edge(ox, {}, {});", rows_->first_tap("ox"), rows_->last_tap("ox"));
      w_.out.line("std::int64_t ox = 0;");
      if (begin != "0") w_.out.line("for (; ox < {}; ++ox) {}", begin, call);
      emit_tiles(w_, "ox", end, interior, tile_pixels, "ox", "tile(Int<{T}>(), {x});");
      if (end != width) w_.out.line("for (; ox < {}; ++ox) {}", width, call);
    } else {
      emit_tiles(w_, "0", w_.dim(rows_->interior_end()), interior, tile_pixels, "ox",
                 "tile(Int<{T}>(), {x});");
    }
    Rows(*rows_).close();
    w_.out.put("};");
    emit_panels(
        w_, panels_, runs() * round_up(run(), 4),
        grouped() ? fmt::format("{} + g * {}", weights_, padded_ * runs() * round_up(run(), 4)) : weights_);
    if (grouped()) w_.out.line("}}");
    w_.close_parts();
  }

 private:
  bool grouped() const { return s_.groups > 1; }
  bool whole_run() const { return !grouped() && rows_->dilation() == 1; }
  DType x_type() const { return n_.inputs[0]->type.dtype; }
  // A run of weights: the taps of a kernel row, or one tap.
  int64_t run() const { return whole_run() ? rows_->kernel() * s_.group_in : s_.group_in; }
  int64_t runs() const { return s_.taps * s_.group_in / run(); }
  // How far apart the taps of a gathered row are, so that runs lie as in the weights.
  int64_t tap_pitch() const { return whole_run() ? s_.group_in : round_up(s_.group_in, 4); }
  bool has_edges() const {
    return !flat_ && !(rows_->interior_begin().is(0) && rows_->interior_end() == rows_->out_width());
  }
  // Whether a row of taps may lie outside the input.
  bool clips_rows() const {
    for (size_t a = 0; a < rows_->last(); ++a)
      if (!window_.pads_begin[a].is(0) || !window_.pads_end[a].is(0)) return true;
    return false;
  }

  // One long row where nothing distinguishes the pixels.
  void flatten(Dim& batch) {
    window_ = whole_;
    flat_ = whole_.is_pointwise() && epilogue_.can_merge(1, whole_.rank());
    if (!flat_) return;
    flat_batch_ = epilogue_.can_merge(0, whole_.rank());
    window_ = flattened(whole_, batch, flat_batch_);
    if (flat_batch_) batch = Dim(1);
  }

  std::vector<std::string> index(const std::string& ox, const std::string& channel) const {
    if (!flat_) return rows_->index(ox, channel);
    std::vector<std::string> i(whole_.rank() + 2, "0");
    if (!flat_batch_ && !rows_->batch.is(1)) i[0] = "n";
    i[whole_.rank()] = ox;
    i[whole_.rank() + 1] = channel;
    return i;
  }

  int8_t weight(int64_t channel, int64_t tap, int64_t i) const {
    return n_.inputs[1]->data->as<int8_t>()[(channel * s_.group_in + i) * s_.taps + tap];
  }

  void pack() {
    weights_ = pack_quads(w_, panels_, s_.groups, s_.group_out, runs(), run(),
                          fmt::format("[{} channels][{} taps][{}]", s_.out_channels(), s_.taps, s_.group_in),
                          [&](int64_t g, int64_t c, int64_t r, int64_t i) {
                            const int64_t k = r * run() + i;
                            return weight(g * s_.group_out + c, k / s_.group_in, k % s_.group_in);
                          });
    const int64_t offset = offset_of(n_, w_.target), outer = s_.taps / rows_->kernel();
    const auto share = [&](int64_t m, int64_t row) {  // of one row of taps
      int64_t sum = 0;
      for (int64_t t = row * rows_->kernel(); t < (row + 1) * rows_->kernel(); ++t)
        for (int64_t i = 0; i < s_.group_in; ++i) sum += weight(m, t, i);
      return -offset * sum;
    };
    const bool in_bias = !clips_rows();
    const Tensor* given = n_.anchor_inputs > 2 && n_.inputs[2] ? &*n_.inputs[2]->data : nullptr;
    bias_ = words(w_, "bias",
                  for_channels(s_.groups, s_.group_out, padded_,
                               [&](int64_t m) {
                                 int64_t b = sums_.shift() + (given ? given->as<int32_t>()[m] : 0);
                                 for (int64_t row = 0; in_bias && row < outer; ++row) b += share(m, row);
                                 return b;
                               }),
                  fmt::format("[{}]{}", s_.out_channels(), in_bias ? ", less the zero point's share" : ""));
    if (in_bias || offset == 0) return;
    std::vector<int32_t> shares;
    for (int64_t row = 0; row < outer; ++row)
      for (const int32_t v :
           for_channels(s_.groups, s_.group_out, padded_, [&](int64_t m) { return share(m, row); }))
        shares.push_back(v);
    shares_ = words(w_, "share", shares,
                    fmt::format("[{} rows of taps][{}], the zero point's", outer, s_.out_channels()));
  }

  // The sums before the products, for the rows of taps inside. They stay in memory: the tile needs all
  // registers.
  void start() {
    const std::string group = grouped() ? fmt::format(" + g * {}", padded_) : "";
    start_ = bias_ + group + " + c";
    if (shares_.empty()) return;
    w_.out.line("auto before = sum_start<kVectors>({});", start_);
    rows_->open_taps(w_.out);
    w_.out.line("add_share(before, {} + {} * {}{} + c);", shares_, row_of_taps(), s_.groups * padded_, group);
    rows_->close_taps(w_.out);
    start_ = row_start_;
    w_.out.line("store_start({}, before);", start_);
  }

  // The number of the row of taps (k0, k1 ...).
  std::string row_of_taps() const {
    std::string row = "0";
    for (size_t a = 0; a < rows_->last(); ++a) {
      const bool single = window_.kernel[a] == 1 && window_.pads_begin[a].is(0);
      const std::string k = single ? "0" : fmt::format("k{}", a);
      row = row == "0" ? k : fmt::format("({} * {} + {})", row, window_.kernel[a], k);
    }
    return row;
  }

  void store() {
    const std::string group = grouped() ? fmt::format("g * {} + ", s_.group_out) : "";
    store_tile(
        w_, sums_, group + "c",
        [&](const std::string& t, const std::string& channel) { return index("ox + " + t, channel); },
        [&](const std::string& t) {
          return fmt::format("{} + {} + {}c", y_, rows_->output_offset("ox + " + t), group);
        });
  }

  std::string weights_at(const std::string& kw) const {
    return fmt::format("wp + {} * ({} * kVectors * kLanes)", whole_run() ? row_of_taps() : rows_->tap(kw),
                       round_up(run(), 4));
  }

  void tile() {
    w_.out.line(
        "[[maybe_unused]] const auto tile = [&](auto pixels, std::int64_t ox) __attribute__((always_inline)) "
        "{{");
    w_.out.line("constexpr int kPixels = pixels.value;");
    w_.out.line("IntTile<kVectors, kPixels> sum;");
    w_.out.line("tile_bias(sum, {});", start_);
    rows_->open_taps(w_.out);
    const std::string step = std::to_string(rows_->stride() * s_.in_channels()),
                      position = rows_->position("ox");
    if (whole_run()) {
      w_.out.line("mac(sum, {} + {}, {}, {}, {});", x_, rows_->input_offset(position), step, weights_at("0"),
                  run());
    } else {
      w_.out.line("for (std::int64_t kw = 0; kw < {}; ++kw) {{", rows_->kernel());
      w_.out.line("mac(sum, {} + {}{}, {}, {}, {});", x_,
                  rows_->input_offset(fmt::format("{} + kw * {}", position, rows_->dilation())),
                  grouped() ? fmt::format(" + g * {}", s_.group_in) : "", step, weights_at("kw"), run());
      w_.out.line("}}");
    }
    rows_->close_taps(w_.out);
    store();
    w_.out.put("};");
  }

  // One pixel, of whose taps along the row those in [first, end) are inside.
  void edge() {
    w_.out.line(
        "[[maybe_unused]] const auto edge = [&](std::int64_t ox, std::int64_t first, std::int64_t end) "
        "__attribute__((always_inline)) {{");
    w_.out.line("constexpr int kPixels = 1;");
    w_.out.line("IntTile<kVectors, kPixels> sum;");
    w_.out.line("tile_bias(sum, {});", start_);
    rows_->open_taps(w_.out);
    w_.out.line("gather_taps<{}>({}, {}, {} + {}{}, {}, {}, first, end, {});", rows_->kernel(), taps_,
                tap_pitch(), x_, rows_->input_offset(rows_->position("ox")),
                grouped() ? fmt::format(" + g * {}", s_.group_in) : "", rows_->dilation() * s_.in_channels(),
                s_.group_in, x_zero_of(n_));
    if (whole_run()) {
      w_.out.line("mac(sum, {}, 0, {}, {});", taps_, weights_at("0"), run());
    } else {
      w_.out.line("for (std::int64_t kw = 0; kw < {}; ++kw)", rows_->kernel());
      w_.out.line("mac(sum, {} + kw * {}, 0, {}, {});", taps_, tap_pitch(), weights_at("kw"), run());
    }
    rows_->close_taps(w_.out);
    store();
    w_.out.put("};");
  }

  LayerWriter& w_;
  const Node& n_;
  const ConvShape s_;
  const Window whole_;
  Window window_;
  const std::string x_;
  const Epilogue epilogue_;
  const Sums sums_;
  bool flat_ = false, flat_batch_ = false;
  std::optional<Rows> rows_;
  Panels panels_;
  int64_t padded_ = 0;
  LayerWriter::Turns turns_;
  std::string weights_, bias_, shares_, start_, row_start_, taps_, y_;
};

void emit_conv(LayerWriter& w) { ConvWriter(w).emit(); }

// --- matrix product with a constant second factor

bool accepts_matmul(const Node& n, const Context&) {
  return is_integer_product(n, "MatMul", DType::kI8) && n.inputs[0]->type.shape.size() >= 2 &&
         n.inputs[1]->data->rank() == 2;
}

void emit_matmul(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& out = n.outputs[0]->type.shape;
  const Tensor& weight = *n.inputs[1]->data;
  const int64_t k = weight.dim(0), columns = weight.dim(1);
  w.include("sinter/dot.h");
  w.flops(product(out) * Dim(2 * k));
  const std::string x = w.input(0);
  const Epilogue epilogue(w, out);
  MatrixRows matrix_rows(w, epilogue);
  const Dim rows = matrix_rows.count();
  w.summary(
      fmt::format("MatMul of bytes [{}, {}] x [{}, {}]{}", rows.text(), k, k, columns, epilogue.summary()));
  const Panels panels = panels_of(w.target, columns, rows.is_static() ? rows.value() : 32);
  const int64_t padded = (panels.full * panels.vectors + panels.rest) * w.target.lanes;
  const std::string weights = pack_quads(
      w, panels, 1, columns, 1, k, fmt::format("[{}][{}]", k, columns),
      [&](int64_t, int64_t c, int64_t, int64_t i) { return weight.as<int8_t>()[i * columns + c]; });
  const int64_t offset = offset_of(n, w.target);
  const Sums sums(w, epilogue, most_of(n, 1));
  const std::string bias = words(w, "bias",
                                 for_channels(1, columns, padded,
                                              [&](int64_t c) {
                                                int64_t sum = 0;
                                                for (int64_t i = 0; i < k; ++i)
                                                  sum += weight.as<int8_t>()[i * columns + c];
                                                return sums.shift() - offset * sum;
                                              }),
                                 fmt::format("[{}], the zero point's share", columns));
  const std::string y = w.output(0);
  const int tile_rows = dot_tile(w.target, panels.vectors);
  const LayerWriter::Turns turns =
      w.open_parts(matrix_rows.one_column() && w.threads > 1 ? w.dim(tile_count(rows, tile_rows)) : "1");
  matrix_rows.open();
  const std::string base = matrix_rows.earlier();
  open_panel(w, kByteWeights);
  w.out.line("const auto tile = [&](auto pixels, std::int64_t i) __attribute__((always_inline)) {{");
  w.out.line("constexpr int kPixels = pixels.value;");
  w.out.line("IntTile<kVectors, kPixels> sum;");
  w.out.line("tile_bias(sum, {} + c);", bias);
  w.out.line("mac(sum, {} + ({}i) * {}, {}, wp, {});", x, base, k, k, k);
  store_tile(
      w, sums, "c",
      [&](const std::string& t, const std::string& channel) {
        return matrix_rows.index(fmt::format("(i + {})", t), channel);
      },
      [&](const std::string& t) { return fmt::format("{} + ({}i + {}) * {} + c", y, base, t, columns); });
  w.out.put("};");
  emit_tile_parts(w, turns, rows, tile_rows, "i", "tile(Int<{T}>(), {x});");
  w.out.put("};");
  emit_panels(w, panels, round_up(k, 4), weights);
  matrix_rows.close();
  w.close_parts();
}

}  // namespace

const std::vector<Kernel>& kernels_conv_dot() {
  static const std::vector<Kernel> table = {
      {"conv_dot", "convolution of bytes with int32 sums on channels-last tensors, by dot products of four",
       accepts_conv, emit_conv},
      {"matmul_dot", "products of matrices of bytes with int32 sums, by dot products of four", accepts_matmul,
       emit_matmul},
  };
  return table;
}

}  // namespace sinter
