// Quantised convolutions and matrix products: int16 operands, int32 sums (Conv and MatMul with the attribute
// `integer`), constant weights, by the register tiles of mac_int.h.
//
// The loops are those of conv.cpp (row_source.h). A run of taps is one product where it holds whole pairs (an
// even number of channels, no groups, no dilation), else each tap is.
#include <limits>

#include "kernels/products/finish_tile.h"
#include "kernels/products/integer.h"
#include "kernels/products/micro_kernels.h"
#include "kernels/products/row_source.h"
#include "ops/op.h"

namespace sinter {
namespace {

constexpr double kAnySum = std::numeric_limits<double>::infinity();

// Biases [groups][padded].
std::string int32_bias(LayerWriter& w, int64_t groups, int64_t columns, int64_t padded) {
  const Node& n = w.node;
  if (n.anchor_inputs < 3 || !n.inputs[2]) return "";
  std::vector<int32_t> b(static_cast<size_t>(groups * padded), 0);
  for (int64_t m = 0; m < groups * columns; ++m)
    b[static_cast<size_t>(m / columns * padded + m % columns)] = n.inputs[2]->data->as<int32_t>()[m];
  return w.weights("bias", "std::int32_t", b.data(), b.size() * sizeof(int32_t),
                   fmt::format("[{}]", columns));
}

// --- convolution, and matrix product with a constant second factor: a pointwise convolution of rows

bool accepts_conv(const Node& n, const Context&) { return is_integer_conv(n, DType::kI16); }

bool accepts_matmul(const Node& n, const Context&) {
  return is_integer_product(n, "MatMul", DType::kI16) && n.inputs[0]->type.shape.size() >= 2 &&
         n.inputs[1]->data->rank() == 2;
}

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w),
        n_(w.node),
        micro_(micro_kernel(w.target, DType::kI16)),
        matrix_(is_matrix_product(w.node)),
        s_(product_shape(w.node)),
        depth_(round_up(s_.group_in, micro_.k)),
        x_(w.input(0)),
        epilogue_(w, w.node.outputs[0]->type.shape),
        sums_(w, epilogue_, kAnySum),
        source_(w, epilogue_, matrix_ ? matrix_rows(w) : picture_rows(w)),
        rows_(source_.rows()) {}

  void emit() {
    w_.include(micro_.header);
    w_.flops(product(n_.outputs[0]->type.shape) * Dim(2 * s_.taps * s_.group_in));
    w_.summary(fmt::format("integer {}, {} taps, {} -> {} channels in {} groups{}", n_.op->name, s_.taps,
                           s_.in_channels(), s_.out_channels(), s_.groups, epilogue_.summary()));
    if (!grouped()) source_.pad(DType::kI16, s_.in_channels(), kShortRow, "0");
    const Dim& interior = source_.interior();
    panels_ = panels_of(w_.target, s_.group_out, interior.is_static() ? interior.value() : 64);
    padded_ = (panels_.full * panels_.vectors + panels_.rest) * w_.target.lanes;
    pack();
    const std::string y = w_.output(0);
    source_.open(panels_, micro_.tile(w_.target, panels_.vectors), grouped());
    if (grouped()) w_.out.line("for (std::int64_t g = 0; g < {}; ++g) {{", s_.groups);
    open_panel(w_, "const std::int16_t* wp");
    source_.each_tile(
        x_, false, [] {},
        [&](bool edge) {
          tile(edge);
          finish_tile(w_, sums_, texts(y));
        });
    w_.out.put("};");
    const int64_t k = s_.taps * depth_;
    emit_panels(w_, panels_, k, grouped() ? fmt::format("{} + g * {}", weights_, padded_ * k) : weights_, "0",
                source_.panel_turns());
    if (grouped()) w_.out.line("}}");
    source_.close();
  }

 private:
  static constexpr int64_t kShortRow = 64;
  bool grouped() const { return s_.groups > 1; }
  // Whether the taps of a kernel row are one run, in whole pairs.
  bool whole_run() const {
    return !grouped() && rows_.dilation() == 1 && depth_ == s_.group_in &&
           (rows_.kernel() == 1 || rows_.in_channels.is(s_.in_channels()));
  }

  void pack() {
    const int16_t* v = n_.inputs[1]->data->as<int16_t>();
    weights_ =
        pack_runs<int16_t>(w_, micro_, panels_, s_.groups, s_.group_out, s_.taps, s_.group_in,
                           fmt::format("[{} channels][{} taps][{}]", s_.out_channels(), s_.taps, s_.group_in),
                           [&](int64_t g, int64_t c, int64_t tap, int64_t i) {
                             return matrix_ ? v[i * s_.group_out + c]
                                            : v[((g * s_.group_out + c) * s_.group_in + i) * s_.taps + tap];
                           });
    bias_ = int32_bias(w_, s_.groups, s_.group_out, padded_);
  }

  void tile(bool edge) {
    const std::string first = edge ? "first" : "0", end = edge ? "end" : std::to_string(rows_.kernel()),
                      step = w_.dim(Dim(rows_.stride()) * rows_.in_channels), position = rows_.position("ox");
    w_.out.line("IntTile<kVectors, kPixels> sum;");
    w_.out.line("tile_bias(sum, {});", bias_.empty() ? "static_cast<const std::int32_t*>(nullptr)"
                                       : grouped()   ? fmt::format("{} + g * {} + c", bias_, padded_)
                                                     : bias_ + " + c");
    rows_.open_taps(w_.out);
    if (whole_run()) {
      w_.out.line("{}(sum, {}, {}, wp + {} * ({} * kVectors * kLanes), {});", micro_.word,
                  source_.run_at(x_, edge ? position + " + first" : position), step, rows_.tap(first), depth_,
                  edge ? fmt::format("(end - first) * {}", depth_) : std::to_string(rows_.kernel() * depth_));
    } else {
      const std::string from =
          source_.is_padded()
              ? fmt::format("{} + kw * {}", source_.run_at(x_, position), s_.group_in)
              : fmt::format("{} + {}{}", x_,
                            rows_.input_offset(fmt::format("{} + kw * {}", position, rows_.dilation())),
                            grouped() ? fmt::format(" + g * {}", s_.group_in) : "");
      w_.out.line("for (std::int64_t kw = {}; kw < {}; ++kw)", first, end);
      w_.out.line("{}(sum, {}, {}, wp + {} * ({} * kVectors * kLanes), {});", micro_.word, from, step,
                  rows_.tap("kw"), depth_, s_.group_in);
    }
    rows_.close_taps(w_.out);
  }

  TileTexts texts(const std::string& y) const {
    return source_.texts(y, (grouped() ? fmt::format("g * {} + ", s_.group_out) : "") + "c");
  }

  LayerWriter& w_;
  const Node& n_;
  const MicroKernel& micro_;
  const bool matrix_;
  const ConvShape s_;
  const int64_t depth_;
  const std::string x_;
  const Epilogue epilogue_;
  const Sums sums_;
  RowSource source_;
  const Rows& rows_;
  Panels panels_;
  int64_t padded_ = 0;
  std::string weights_, bias_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

// --- depthwise: every channel has its own kernel, vectors run over channels

bool accepts_depthwise(const Node& n, const Context& c) {
  return accepts_conv(n, c) && conv_shape(n).is_depthwise();
}

void emit_depthwise(LayerWriter& w) {
  const Node& n = w.node;
  const ConvShape s = conv_shape(n);
  const int lanes = w.target.lanes;
  const int64_t channels = s.groups, padded = (channels + lanes - 1) / lanes * lanes;
  w.include("sinter/dot.h");
  w.flops(product(n.outputs[0]->type.shape) * Dim(2 * s.taps));
  const std::string x = w.input(0);
  const Epilogue epilogue(w, n.outputs[0]->type.shape);
  w.summary(
      fmt::format("depthwise integer Conv, {} taps, {} channels{}", s.taps, channels, epilogue.summary()));
  std::vector<int32_t> packed(static_cast<size_t>(s.taps * padded), 0);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t t = 0; t < s.taps; ++t)
      packed[static_cast<size_t>(t * padded + c)] = n.inputs[1]->data->as<int16_t>()[c * s.taps + t];
  const std::string weights = w.weights("w", "std::int32_t", packed.data(), packed.size() * sizeof(int32_t),
                                        fmt::format("[{} taps][{}]", s.taps, padded));
  const std::string bias = int32_bias(w, 1, channels, padded);
  const std::string y = w.output(0);
  RowSource source(w, epilogue, picture_rows(w));
  const Rows& rows = source.rows();
  const Panels one = cut_panels(channels, 1, lanes);
  const Sums sums(w, epilogue, kAnySum);
  source.open(one, w.target.registers == 32 ? 8 : 4, true);
  source.each_tile(
      x, false, [] {},
      [&](bool edge) {
        w.out.line("const auto channels = [&](std::int64_t c, auto last) __attribute__((always_inline)) {{");
        w.out.line("constexpr int kVectors = 1;");
        w.out.line("IntTile<kVectors, kPixels> sum;");
        w.out.line("tile_bias(sum, {});",
                   bias.empty() ? "static_cast<const std::int32_t*>(nullptr)" : bias + " + c");
        rows.open_taps(w.out);
        w.out.line("for (std::int64_t kw = {}; kw < {}; ++kw) {{", edge ? "first" : "0",
                   edge ? "end" : std::to_string(rows.kernel()));
        w.out.line("const i32v k = load({} + {} * {} + c);", weights, rows.tap("kw"), padded);
        w.out.line("const std::int16_t* const from = {} + {} + c;", x,
                   rows.input_offset(fmt::format("{} + kw * {}", rows.position("ox"), rows.dilation())));
        w.out.line("SINTER_UNROLL");
        w.out.line("for (int t = 0; t < kPixels; ++t)");
        w.out.line("sum.a[t][0] = mac_lanes(sum.a[t][0], load_wide(from + t * {}, last.value), k);",
                   w.dim(Dim(rows.stride()) * rows.in_channels));
        w.out.line("}}");
        rows.close_taps(w.out);
        finish_tile(w, sums, source.texts(y, "c"));
        w.out.put("};");
        const int64_t full = channels / lanes;
        if (full > 0)
          w.out.line("for (std::int64_t c = 0; c < {}; c += kLanes) channels(c, Int<kLanes>());",
                     full * lanes);
        if (channels % lanes) w.out.line("channels({}, Int<{}>());", full * lanes, channels % lanes);
      });
  source.close();
}

}  // namespace

const std::vector<Kernel>& kernels_conv_integer() {
  constexpr Kernel::Abilities kAll{
      .writes_apart = true, .rows = true, .reads_apart = true, .work = Work::kProducts};
  constexpr Kernel::Abilities kTaps{
      .writes_apart = true, .rows = true, .reads_apart = true, .work = Work::kTaps};
  static const std::vector<Kernel> table = {
      {"conv_integer_depthwise", "depthwise convolution of int16 on channels-last tensors", accepts_depthwise,
       emit_depthwise, kTaps},
      {"conv_integer", "convolution of int16 with int32 sums on channels-last tensors, by register tiles",
       accepts_conv, emit, kAll},
      {"matmul_integer", "products of int16 matrices with int32 sums, by register tiles", accepts_matmul,
       emit, kAll},
  };
  return table;
}

}  // namespace sinter
