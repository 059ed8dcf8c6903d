// Depthwise convolution of bytes with int32 sums, by dot products down the columns (dot_depthwise.h), or on
// ARM without them by pairs of taps along the rows (pairs_depthwise.h).
//
// Pixels outside, channels inside, four vectors of them at a time. Every window is complete: rows and columns
// outside the input are read from a few bytes that hold the zero point, so that what the zero point adds to
// the sums is one constant of the channel, in the bias.
#include "kernels/products/dot_tiles.h"
#include "kernels/windows/rows.h"
#include "ops/op.h"
#include "ops/products/contraction.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return is_integer_conv(n, DType::kI8) && conv_shape(n).is_depthwise() &&
         n.inputs[1]->type.shape.size() <= 4;
}

class DepthwiseWriter {
 public:
  explicit DepthwiseWriter(LayerWriter& w)
      : w_(w),
        n_(w.node),
        window_(window_of(w.node)),
        x_(w.input(0)),
        epilogue_(w, w.node.outputs[0]->type.shape),
        sums_(w, epilogue_, most_of(w.node, 0)),
        channels_(n_.inputs[1]->data->dim(0)),
        block_(4 * w.target.lanes),
        by_pairs_(is_neon_without_dots(w.target)),
        rows_{w, window_, n_.inputs[0]->type.shape[0], w.pixel_stride(*n_.inputs[0]), w.pixel_stride()} {}

  void emit() {
    const int64_t taps = n_.inputs[1]->data->size() / channels_;
    w_.include(by_pairs_ ? "sinter/pairs_depthwise.h" : "sinter/dot_depthwise.h");
    w_.flops(product(n_.outputs[0]->type.shape) * Dim(2 * taps));
    w_.summary(fmt::format("depthwise Conv of bytes, {} taps, stride {}, {} channels{}", taps, rows_.stride(),
                           channels_, epilogue_.summary()));
    pack();
    y_ = w_.output(0);
    const bool parted = !rows_.take_strip() && !rows_.outermost().is(1);
    if (parted) rows_.turns = w_.open_parts(w_.dim(rows_.outermost()));
    Rows(rows_).open();
    declare_rows();
    pixels(false);
    const std::string begin = w_.dim(rows_.interior_begin()), end = w_.dim(rows_.interior_end()),
                      width = w_.dim(rows_.out_width());
    const Dim interior = rows_.interior_end() - rows_.interior_begin();
    constexpr int kTile = 4;
    if (begin == "0" && end == width) {
      emit_tiles(w_, "0", end, interior, kTile, "ox", "tile(Int<{T}>(), {x});");
    } else {
      pixels(true);
      const std::string call = fmt::format("edge(ox, {}, {});", rows_.first_tap("ox"), rows_.last_tap("ox"));
      w_.out.line("std::int64_t ox = 0;");
      if (begin != "0") w_.out.line("for (; ox < {}; ++ox) {}", begin, call);
      emit_tiles(w_, "ox", end, interior, kTile, "ox", "tile(Int<{T}>(), {x});");
      if (end != width) w_.out.line("for (; ox < {}; ++ox) {}", width, call);
    }
    Rows(rows_).close();
    if (parted) w_.close_parts();
  }

 private:
  int64_t height() const { return window_.rank() == 2 ? window_.kernel[0] : 1; }
  // Whose top bit dot_depthwise.h leaves.
  MicroKernel::Sign sign() const {
    return is_x86(w_.target) ? MicroKernel::Sign::kUnsigned : MicroKernel::Sign::kSigned;
  }
  int64_t groups() const { return (height() + 3) / 4; }
  // Those of the window, in whole groups of four where a product takes four.
  int64_t row_count() const { return by_pairs_ ? height() : 4 * groups(); }

  // Weights [block][kw][group of rows][4 vectors][lane][4], in the order in which the instruction set
  // interleaves: lane l of vector j is channel 4 * lanes * block + channel_of(j, l); by pairs
  // [block][kw][row][channel].
  int64_t channel_of(int64_t vector, int64_t lane) const {
    const bool by_blocks = !w_.target.aarch64 && w_.target.lanes > 4;  // x86 interleaves within four lanes
    return by_blocks ? lane / 4 * 16 + vector * 4 + lane % 4 : vector * w_.target.lanes + lane;
  }

  void pack() {
    const int8_t* weight = n_.inputs[1]->data->as<int8_t>();
    const int64_t taps = n_.inputs[1]->data->size() / channels_, width = rows_.kernel(),
                  lanes = w_.target.lanes, blocks = (channels_ + block_ - 1) / block_;
    std::vector<int8_t> packed;
    std::vector<int32_t> bias(static_cast<size_t>(blocks * block_), 0);
    const Tensor* given = n_.anchor_inputs > 2 && n_.inputs[2] ? &*n_.inputs[2]->data : nullptr;
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t kw = 0; kw < width; ++kw)
        for (int64_t e = 0; e < block_ * row_count(); ++e) {
          const int64_t at = by_pairs_ ? e % block_ : e / 4 % block_,
                        kh = by_pairs_ ? e / block_ : e / (4 * block_) * 4 + e % 4,
                        c = b * block_ + channel_of(at / lanes, at % lanes);
          packed.push_back(c < channels_ && kh < height() ? weight[c * taps + kh * width + kw] : int8_t{0});
        }
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t e = 0; e < block_; ++e) {
        const int64_t c = b * block_ + channel_of(e / lanes, e % lanes);
        int64_t sum = 0;
        for (int64_t t = 0; c < channels_ && t < taps; ++t) sum += weight[c * taps + t];
        bias[static_cast<size_t>(b * block_ + e)] =
            static_cast<int32_t>(sums_.shift() - offset_of(n_, sign()) * sum +
                                 (given && c < channels_ ? given->as<int32_t>()[c] : 0));
      }
    weights_ = w_.weights("w", "std::int8_t", packed.data(), packed.size(),
                          fmt::format("[{} channels][{}][{}], {} in blocks of {}", channels_, width, height(),
                                      by_pairs_ ? "rows" : "columns of four", block_));
    bias_ = words(w_, "bias", bias, fmt::format("[{}], less the zero point's share", channels_));
    const std::vector<uint8_t> blank(static_cast<size_t>(block_), static_cast<uint8_t>(x_zero_of(n_)));
    const std::string type(cpp_name(n_.inputs[0]->type.dtype));
    blank_ = w_.weights("blank", type, blank.data(), blank.size(), "the zero point");
  }

  std::string word(int64_t kernel, int64_t stride, int64_t dilation) const {
    if (!by_pairs_) return fmt::format("mac_depthwise<{}, {}, {}, {}>", kernel, stride, dilation, groups());
    return fmt::format("mac_depthwise_pairs<Lowest::{}, {}, {}, {}>",
                       holds_lowest(*n_.inputs[1]->data) ? "kSome" : "kNone", kernel, stride, dilation);
  }

  // The rows of the window, in memory or blank.
  void declare_rows() {
    w_.out.line("RowOfBytes<{}> rows[{}];", cpp_name(n_.inputs[0]->type.dtype), row_count());
    const bool two = window_.rank() == 2,
               single = two && window_.kernel[0] == 1 && window_.pads_begin[0].is(0);
    for (int64_t k = 0; k < row_count(); ++k) {
      if (k >= height()) {
        w_.out.line("rows[{}] = blank_row({});", k, blank_);
        continue;
      }
      std::string at = rows_.batch.is(1) ? "" : "n";
      if (two) {
        const std::string base = rows_.x_base.empty() ? "" : " - " + rows_.x_base,
                          row = single ? fmt::format("o0 * {}{}", window_.strides[0], base)
                                       : fmt::format("i0 + {}{}", k * window_.dilations[0], base);
        at = at.empty() ? fmt::format("({})", row)
                        : fmt::format("({} * {} + {})", at, w_.dim(window_.in[0]), row);
      }
      const std::string offset = at.empty() ? ""
                                            : fmt::format(" + {} * {} * {}", at, w_.dim(window_.in.back()),
                                                          w_.dim(rows_.in_channels));
      const std::string inside = fmt::format("row_in({}{}, {})", x_, offset, w_.dim(rows_.in_channels));
      if (single || !two)
        w_.out.line("rows[{}] = {};", k, inside);
      else
        w_.out.line("rows[{0}] = {0} >= k0_first && {0} < k0_last ? {1} : blank_row({2});", k, inside,
                    blank_);
    }
  }

  // The lambda that makes a tile of pixels, or at the edges of a row one whose taps [first, end) are inside.
  void pixels(bool edge) {
    w_.out.line(
        "[[maybe_unused]] const auto {} = [&]({}) __attribute__((always_inline)) {{", edge ? "edge" : "tile",
        edge ? "std::int64_t ox, std::int64_t first, std::int64_t end" : "auto pixels, std::int64_t ox");
    w_.out.line("constexpr int kPixels = {};", edge ? "1" : "pixels.value");
    w_.out.line(
        "const auto block = [&](std::int64_t c, auto vectors, auto last) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int kVectors = vectors.value, kChannels = (kVectors - 1) * kLanes + last.value;");
    w_.out.line("IntTile<4, kPixels> sum;");
    w_.out.line("tile_bias(sum, {} + c);", bias_);
    const std::string weights = fmt::format("{} + c * {}", weights_, rows_.kernel() * row_count());
    if (edge) {
      w_.out.line("for (std::int64_t kw = 0; kw < {}; ++kw) {{", rows_.kernel());
      w_.out.line(
          "const DepthwiseColumns<{}, {}> at(rows, {} + kw * {}, c, kw >= first && kw < end ? nullptr : {});",
          cpp_name(n_.inputs[0]->type.dtype), row_count(), rows_.position("ox"), rows_.dilation(), blank_);
      w_.out.line("{}(sum, at.row, at.step, {} + kw * {}, kChannels);", word(1, 1, 1), weights,
                  row_count() * block_);
      w_.out.line("}}");
    } else {
      w_.out.line("const DepthwiseColumns<{}, {}> at(rows, {}, c, nullptr);",
                  cpp_name(n_.inputs[0]->type.dtype), row_count(), rows_.position("ox"));
      w_.out.line("{}(sum, at.row, at.step, {}, kChannels);",
                  word(rows_.kernel(), rows_.stride(), rows_.dilation()), weights);
    }
    w_.out.line("in_order(sum);");
    finish_tile(
        w_, sums_,
        {.channel = "c",
         .index = [&](const std::string& t, const std::string& c) { return rows_.index("ox + " + t, c); },
         .to =
             [&](const std::string& t) {
               return fmt::format("{} + {} + c", y_, rows_.output_offset("ox + " + t));
             }});
    w_.out.put("};");
    const int64_t full = channels_ / block_ * block_, rest = channels_ - full, lanes = w_.target.lanes;
    if (full > 0)
      w_.out.line("for (std::int64_t c = 0; c < {}; c += {}) block(c, Int<4>(), Int<kLanes>());", full,
                  block_);
    if (rest > 0)
      w_.out.line("block({}, Int<{}>(), Int<{}>());", full, (rest + lanes - 1) / lanes,
                  (rest - 1) % lanes + 1);
    w_.out.put("};");
  }

  LayerWriter& w_;
  const Node& n_;
  const Window window_;
  const std::string x_;
  const Epilogue epilogue_;
  const Sums sums_;
  const int64_t channels_, block_;
  const bool by_pairs_;
  Rows rows_;
  std::string weights_, bias_, blank_, y_;
};

void emit(LayerWriter& w) { DepthwiseWriter(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_conv_dot_depthwise() {
  static const std::vector<Kernel> table = {
      {"conv_dot_depthwise",
       "depthwise convolution of bytes with int32 sums, by dot products down the columns or pairs of taps",
       accepts,
       emit,
       {.writes_apart = true, .rows = true, .reads_apart = true, .work = Work::kTaps}}};
  return table;
}

}  // namespace sinter
