// Convolutions and matrix products of bytes with int32 sums (Conv and MatMul with the attribute `integer`),
// constant weights, by the register tiles of dot.h, dot_matrices.h or mac_bytes.h.
//
// The loops are those of conv.cpp (row_source.h): the taps of one kernel row are one run of bytes (or a run a
// tap, with groups or dilation); runs are padded with zero weights to as many as the instruction takes.
// Padding holds the zero point of x: rows of taps outside the input are left out, and with them their share
// of the sums; at the ends of a row the ring of padded rows has them, or the taps of a pixel are gathered
// first, the missing ones filled with the zero point. What the zero point (and the flipped sign of dot.h)
// adds to a row of taps is a constant of the output channel: it is part of the bias where no row is ever
// outside, else it is added row by row. A product of matrices is a pointwise convolution of rows.
#include <limits>

#include "kernels/products/dot_tiles.h"
#include "kernels/products/row_source.h"
#include "ops/op.h"
#include "ops/products/contraction.h"

namespace sinter {
namespace {

bool accepts_conv(const Node& n, const Context&) { return is_integer_conv(n, DType::kI8); }

bool accepts_matmul(const Node& n, const Context&) {
  return is_integer_product(n, "MatMul", DType::kI8) && n.inputs[0]->type.shape.size() >= 2 &&
         n.inputs[1]->data->rank() == 2;
}

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w),
        n_(w.node),
        micro_(micro_kernel(w.target, DType::kI8, holds_lowest(*w.node.inputs[1]->data))),
        matrix_(is_matrix_product(w.node)),
        s_(product_shape(w.node)),
        x_(w.input(0)),
        epilogue_(w, w.node.outputs[0]->type.shape),
        sums_(w, epilogue_, most_of(w.node, matrix_ ? 1 : 0)),
        source_(w, epilogue_, matrix_ ? matrix_rows(w) : picture_rows(w)),
        rows_(source_.rows()) {}

  void emit() {
    w_.include(micro_.header);
    w_.flops(product(n_.outputs[0]->type.shape) * Dim(2 * s_.taps * s_.group_in));
    w_.summary(fmt::format("{} of bytes, {} taps, {} -> {} channels in {} groups{}", n_.op->name, s_.taps,
                           s_.in_channels(), s_.out_channels(), s_.groups, epilogue_.summary()));
    if (!grouped()) pad();
    const Dim& interior = source_.interior();
    panels_ = panels_of(micro_, w_.target, s_.group_out, interior.is_static() ? interior.value() : 64);
    padded_ = (panels_.full * panels_.vectors + panels_.rest) * w_.target.lanes;
    pack();
    y_ = w_.output(0);
    source_.open(panels_, micro_.tile(w_.target, panels_.vectors), grouped());
    if (source_.has_edges())
      taps_ = w_.scratch_of_part("taps", std::string(cpp_name(x_type())), rows_.kernel() * tap_pitch());
    if (!shares_.empty())
      row_start_ = w_.scratch_of_part("start", "std::int32_t", int64_t{panels_.vectors} * w_.target.lanes);
    if (grouped()) w_.out.line("for (std::int64_t g = 0; g < {}; ++g) {{", s_.groups);
    open_panel(w_, kByteWeights);
    source_.each_tile(
        x_, false, [&] { start(); }, [&](bool edge) { tile(edge); });
    w_.out.put("};");
    const int64_t k = packed_run(micro_, runs(), run());
    emit_panels(w_, panels_, k, grouped() ? fmt::format("{} + g * {}", weights_, padded_ * k) : weights_, "0",
                source_.panel_turns());
    if (grouped()) w_.out.line("}}");
    source_.close();
  }

 private:
  bool grouped() const { return s_.groups > 1; }
  // Whether the taps of a kernel row are one run.
  bool whole_run() const {
    return !grouped() && rows_.dilation() == 1 &&
           (rows_.kernel() == 1 || rows_.in_channels.is(s_.in_channels()));
  }
  DType x_type() const { return n_.inputs[0]->type.dtype; }
  // Where the micro-kernel would flip the sign of x for each tap and panel, the ring has it flipped.
  void pad() {
    constexpr int64_t kAnyRow = std::numeric_limits<int64_t>::max();
    const int64_t zero = x_zero_of(n_), flip = flip_of(n_, micro_.sign);
    if (flip == 0) return source_.pad(x_type(), s_.in_channels(), kAnyRow, std::to_string(zero));
    source_.pad(x_type() == DType::kI8 ? DType::kU8 : DType::kI8, s_.in_channels(), kAnyRow,
                std::to_string(zero + flip), "copy_flipped");
  }
  // A run of weights: the taps of a kernel row, or one tap.
  int64_t run() const { return whole_run() ? rows_.kernel() * s_.group_in : s_.group_in; }
  int64_t runs() const { return s_.taps * s_.group_in / run(); }
  // How far apart the taps of a gathered row are, so that runs lie as in the weights.
  int64_t tap_pitch() const { return whole_run() ? s_.group_in : round_up(s_.group_in, micro_.k); }
  // Whether a row of taps may lie outside the input.
  bool clips_rows() const {
    for (size_t a = 0; a < rows_.last(); ++a)
      if (!rows_.window.pads_begin[a].is(0) || !rows_.window.pads_end[a].is(0)) return true;
    return false;
  }

  int8_t weight(int64_t channel, int64_t tap, int64_t i) const {
    const int8_t* w = n_.inputs[1]->data->as<int8_t>();
    return matrix_ ? w[i * s_.out_channels() + channel] : w[(channel * s_.group_in + i) * s_.taps + tap];
  }

  void pack() {
    weights_ =
        pack_runs<int8_t>(w_, micro_, panels_, s_.groups, s_.group_out, runs(), run(),
                          fmt::format("[{} channels][{} taps][{}]", s_.out_channels(), s_.taps, s_.group_in),
                          [&](int64_t g, int64_t c, int64_t r, int64_t i) {
                            const int64_t k = r * run() + i;
                            return weight(g * s_.group_out + c, k / s_.group_in, k % s_.group_in);
                          });
    const int64_t offset = offset_of(n_, micro_.sign), outer = s_.taps / rows_.kernel();
    const auto share = [&](int64_t m, int64_t row) {  // of one row of taps
      int64_t sum = 0;
      for (int64_t t = row * rows_.kernel(); t < (row + 1) * rows_.kernel(); ++t)
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
    rows_.open_taps(w_.out);
    w_.out.line("add_share(before, {} + {} * {}{} + c);", shares_, row_of_taps(), s_.groups * padded_, group);
    rows_.close_taps(w_.out);
    start_ = row_start_;
    w_.out.line("store_start({}, before);", start_);
  }

  // The number of the row of taps (k0, k1 ...).
  std::string row_of_taps() const {
    std::string row = "0";
    for (size_t a = 0; a < rows_.last(); ++a) {
      const bool single = rows_.window.kernel[a] == 1 && rows_.window.pads_begin[a].is(0);
      const std::string k = single ? "0" : fmt::format("k{}", a);
      row = row == "0" ? k : fmt::format("({} * {} + {})", row, rows_.window.kernel[a], k);
    }
    return row;
  }

  std::string weights_at(const std::string& kw) const {
    return fmt::format("wp + {} * ({} * kVectors * kLanes)", whole_run() ? row_of_taps() : rows_.tap(kw),
                       round_up(run(), micro_.k));
  }
  // Of the first channel of the group.
  std::string group_channel() const { return grouped() ? fmt::format(" + g * {}", s_.group_in) : ""; }

  // A tile; or one pixel, of whose taps along the row those in [first, end) are inside.
  void tile(bool edge) {
    w_.out.line("IntTile<kVectors, kPixels> sum;");
    w_.out.line("tile_bias(sum, {});", start_);
    rows_.open_taps(w_.out);
    const std::string position = rows_.position("ox");
    if (edge)
      w_.out.line("gather_taps<{}>({}, {}, {} + {}{}, {}, {}, first, end, {});", rows_.kernel(), taps_,
                  tap_pitch(), x_, rows_.input_offset(position), group_channel(),
                  w_.dim(Dim(rows_.dilation()) * rows_.in_channels), s_.group_in, x_zero_of(n_));
    const std::string step = edge ? "0" : w_.dim(Dim(rows_.stride()) * rows_.in_channels);
    if (whole_run()) {
      w_.out.line("{}(sum, {}, {}, {}, {});", micro_.word, edge ? taps_ : source_.run_at(x_, position), step,
                  weights_at("0"), run());
    } else {
      const std::string from =
          edge ? fmt::format("{} + kw * {}", taps_, tap_pitch())
               : fmt::format("{} + {}{}", x_,
                             rows_.input_offset(fmt::format("{} + kw * {}", position, rows_.dilation())),
                             group_channel());
      w_.out.line("for (std::int64_t kw = 0; kw < {}; ++kw) {{", rows_.kernel());
      w_.out.line("{}(sum, {}, {}, {}, {});", micro_.word, from, step, weights_at("kw"), run());
      w_.out.line("}}");
    }
    rows_.close_taps(w_.out);
    const std::string channel = (grouped() ? fmt::format("g * {} + ", s_.group_out) : "") + "c";
    finish_tile(w_, sums_, source_.texts(y_, channel));
  }

  LayerWriter& w_;
  const Node& n_;
  const MicroKernel& micro_;
  const bool matrix_;
  const ConvShape s_;
  const std::string x_;
  const Epilogue epilogue_;
  const Sums sums_;
  RowSource source_;
  const Rows& rows_;
  Panels panels_;
  int64_t padded_ = 0;
  std::string weights_, bias_, shares_, start_, row_start_, taps_, y_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

constexpr Kernel::Abilities kMatrices{.writes_apart = true, .reads_apart = true, .work = Work::kProducts},
    kWindows{
        .writes_apart = true, .rows = true, .reads_apart = true, .joins_taps = true, .work = Work::kProducts};

}  // namespace

const std::vector<Kernel>& kernels_conv_dot() {
  static const std::vector<Kernel> table = {
      {"conv_dot", "convolution of bytes with int32 sums on channels-last tensors, by dot products of four",
       accepts_conv, emit, kWindows},
      {"matmul_dot", "products of matrices of bytes with int32 sums, by dot products of four", accepts_matmul,
       emit, kMatrices},
  };
  return table;
}

}  // namespace sinter
