// Depthwise convolution on channels-last tensors: every channel has its own kernel, vectors run over
// channels.
//
// A tile is a few neighbouring pixels of one vector of channels: each tap's weights are loaded once a tile,
// and each input vector once for all the taps and pixels that it meets. Small pictures of many channels are
// done some channels at a time, so that the rows under a kernel stay in the first-level cache until the last
// row has used them.
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/products/panel_weights.h"
#include "kernels/windows/rows.h"
#include "ops/op.h"
#include "targets/target.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  if (!is_float_conv(n)) return false;
  const Tensor& weight = *n.inputs[1]->data;
  const int64_t groups = n.attributes.integer("group", 1);
  return groups > 1 && weight.dim(1) == 1 && weight.dim(0) == groups;
}

// Channels at a time: whole lines of the cache, equal shares, with the rows under a kernel in half of the
// first-level cache; all of them where that would be so few that reading them is no stream any more.
int64_t channels_at_once(const Target& t, const Window& w, int64_t channels, int64_t bytes) {
  const int64_t kLine = 64 / bytes, kFewest = 3 * kLine;
  if (!w.in.back().is_static()) return channels;
  int64_t most = t.speed.l1 / 2 / bytes;
  for (size_t a = 0; a + 1 < w.rank(); ++a) most /= w.extent(a);
  most = most / std::max<int64_t>(1, w.in.back().value()) / kLine * kLine;
  if (most < kFewest || most >= channels) return channels;
  const int64_t shares = (channels + most - 1) / most;
  return round_up((channels + shares - 1) / shares, kLine);
}

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w),
        n_(w.node),
        weight_(*n_.inputs[1]->data),
        channels_(weight_.dim(0)),
        padded_(round_up(channels_, w.target.lanes)),
        window_(window_of(n_)),
        at_once_(channels_at_once(w.target, window_, channels_, w.element.bytes)),
        x_(w.input(0)),
        epilogue_(w, n_.outputs[0]->type.shape),
        rows_{w, window_, n_.inputs[0]->type.shape[0], w.pixel_stride(*n_.inputs[0]), w.pixel_stride()} {}

  void emit() {
    const int64_t taps = weight_.size() / channels_;
    w_.include("sinter/mac.h");
    w_.flops(product(n_.outputs[0]->type.shape) * Dim(2 * taps));
    w_.summary(fmt::format("depthwise Conv, {} taps, stride {}, {} channels{}", taps, rows_.stride(),
                           channels_, epilogue_.summary()));
    store_weights(taps);
    y_ = w_.output(0);
    cut_tiles();
    const bool parted = open_rows();
    tile();
    tile_calls();
    Rows(rows_).close();
    if (at_once_ < channels_) w_.out.line("}}");
    if (parted) w_.close_parts();
  }

 private:
  void store_weights(int64_t taps) {
    std::vector<float> packed(static_cast<size_t>(taps * padded_)), bias(static_cast<size_t>(padded_));
    for (int64_t c = 0; c < channels_; ++c) {
      for (int64_t t = 0; t < taps; ++t)
        packed[static_cast<size_t>(t * padded_ + c)] = weight_.as<float>()[c * taps + t];
      if (n_.anchor_inputs > 2 && n_.inputs[2])
        bias[static_cast<size_t>(c)] = n_.inputs[2]->data->as<float>()[c];
    }
    weights_ = w_.weights("w", packed, fmt::format("[{} taps][{}]", taps, padded_));
    biases_ = w_.weights("bias", bias, fmt::format("[{}]", padded_));
  }

  // Pixels a tile: sums, the inputs under them and one weight must fit the registers.
  void cut_tiles() {
    const int registers = w_.target.registers;
    const auto fits = [&](int64_t tile) {
      return tile + (tile - 1) * rows_.stride() + rows_.window.extent(rows_.last()) + 2 <= registers;
    };
    const int most = registers == 32 ? 8 : 4;
    tile_ = most;
    while (tile_ > 1 && !fits(tile_)) --tile_;
    keeps_inputs_ = tile_ > 1 && rows_.dilation() == 1;
    if (!keeps_inputs_) tile_ = most;
  }

  // Whether parts were opened.
  bool open_rows() {
    const bool parted = !rows_.take_strip() && !rows_.outermost().is(1);
    if (parted) rows_.turns = w_.open_parts(w_.dim(rows_.outermost()));
    if (at_once_ < channels_)
      w_.out.line("for (std::int64_t share = 0; share < {}; share += {}) {{  // of the channels", channels_,
                  at_once_);
    Rows(rows_).open();
    return parted;
  }

  // Pixels outside, channels inside: a tile's inputs are a few whole runs of memory, read once.
  void open_pixels(const std::string& name, const std::string& parameters, const std::string& count) {
    w_.out.line("[[maybe_unused]] const auto {} = [&]({}) __attribute__((always_inline)) {{", name,
                parameters);
    w_.out.line("constexpr int kPixels = {};", count);
    w_.out.line("const auto vector = [&](std::int64_t c, auto last) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int lanes = last.value;");
    w_.out.line("f32v sum[kPixels];");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int t = 0; t < kPixels; ++t) sum[t] = load_start({} + c);", biases_);
    rows_.open_taps(w_.out);
  }

  void close_pixels() {
    rows_.close_taps(w_.out);
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int t = 0; t < kPixels; ++t) {{");
    const std::string value = epilogue_.vector("sum[t]", rows_.index("ox + t", "c"), "lanes", w_.out);
    w_.out.line("store_lanes({} + {} + c, {}, lanes);", y_, rows_.output_offset("ox + t"), value);
    w_.out.line("}}");
    w_.out.put("};");
    const int64_t full = channels_ / w_.target.lanes * w_.target.lanes;
    const bool shared = at_once_ < channels_;
    if (shared)
      w_.out.line(
          "for (std::int64_t c = share; c < sinter::min_of(std::int64_t{{{}}}, share + {}); c += kLanes) "
          "vector(c, Int<kLanes>());",
          full, at_once_);
    else if (full > 0)
      w_.out.line("for (std::int64_t c = 0; c < {}; c += kLanes) vector(c, Int<kLanes>());", full);
    if (full < channels_)
      w_.out.line("{}vector({}, Int<{}>());",
                  shared ? fmt::format("if (share + {} >= {}) ", at_once_, channels_) : "", full,
                  channels_ - full);
    w_.out.put("};");
  }

  // The sums of kPixels pixels all of whose taps lie inside the row.
  void tile() {
    open_pixels("tile", "auto pixels, std::int64_t ox", "pixels.value");
    w_.out.line("const float* const from = {} + {} + c;", x_, rows_.input_offset(rows_.position("ox")));
    w_.out.line("const float* const wk = {} + {} * {} + c;", weights_, rows_.tap("0"), padded_);
    if (keeps_inputs_) {
      w_.out.line("constexpr int kInputs = (kPixels - 1) * {} + {};", rows_.stride(),
                  rows_.window.extent(rows_.last()));
      w_.out.line("f32v in[kInputs];");
      w_.out.line("SINTER_UNROLL");
      w_.out.line("for (int i = 0; i < kInputs; ++i) in[i] = load_lanes(from + i * {}, lanes);",
                  rows_.in_channels.value());
    }
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int kw = 0; kw < {}; ++kw) {{", rows_.kernel());
    w_.out.line("const f32v k = load(wk + kw * {});", padded_);
    w_.out.line("SINTER_UNROLL");
    if (keeps_inputs_)
      w_.out.line("for (int t = 0; t < kPixels; ++t) sum[t] = fma(in[t * {} + kw], k, sum[t]);",
                  rows_.stride());
    else
      w_.out.line(
          "for (int t = 0; t < kPixels; ++t) sum[t] = fma(load_lanes(from + (t * {} + kw * {}) * {}, lanes), "
          "k, sum[t]);",
          rows_.stride(), rows_.dilation(), rows_.in_channels.value());
    w_.out.line("}}");
    close_pixels();
  }

  // The sums of one pixel, taps first..behind of the row.
  void edge(bool known) {
    open_pixels("edge", "std::int64_t ox, auto first, auto behind", "1");
    if (known) {
      w_.out.line("SINTER_UNROLL");
      w_.out.line("for (std::int64_t kw = 0; kw < {}; ++kw)", rows_.kernel());
      w_.out.line("  if (kw >= first && kw < behind)");
    } else {
      w_.out.line("for (std::int64_t kw = first; kw < behind; ++kw)");
    }
    w_.out.line("  sum[0] = fma(load_lanes({} + {} + c, lanes), load({} + {} * {} + c), sum[0]);", x_,
                rows_.input_offset(fmt::format("{} + kw * {}", rows_.position("ox"), rows_.dilation())),
                weights_, rows_.tap("kw"), padded_);
    close_pixels();
  }

  // Whether the extents are known, and so the taps of every edge.
  bool knows_edges() const {
    return rows_.interior_begin().is_static() && rows_.interior_end().is_static() &&
           rows_.out_width().is_static() && rows_.pad().is_static() && rows_.width().is_static() &&
           rows_.interior_begin().value() <= 4 &&
           rows_.out_width().value() - rows_.interior_end().value() <= 4;
  }

  void edge_calls(const Dim& from, const Dim& to, bool known) {
    if (!known) {
      w_.out.line("for (; ox < {}; ++ox) edge(ox, {}, {});", w_.dim(to), rows_.first_tap("ox"),
                  rows_.last_tap("ox"));
      return;
    }
    const int64_t dilation = rows_.dilation();
    for (int64_t ox = from.value(); ox < to.value(); ++ox) {
      const int64_t at = ox * rows_.stride() - rows_.pad().value();
      const int64_t first = at < 0 ? (-at + dilation - 1) / dilation : 0;
      const int64_t room = rows_.width().value() - at;
      const int64_t behind = room <= 0 ? 0 : std::min(rows_.kernel(), (room + dilation - 1) / dilation);
      w_.out.line("edge({}, Int<{}>(), Int<{}>());", ox, first, behind);
    }
  }

  // The loops along the row.
  void tile_calls() {
    const std::string begin = w_.dim(rows_.interior_begin()), end = w_.dim(rows_.interior_end()),
                      width = w_.dim(rows_.out_width()), call = "tile(Int<{T}>(), {x});";
    const Dim interior = rows_.interior_end() - rows_.interior_begin();
    if (begin == "0" && end == width) return emit_tiles(w_, "0", end, interior, tile_, "ox", call);
    const bool known = knows_edges();
    edge(known);
    if (!known) w_.out.line("std::int64_t ox = 0;");
    if (begin != "0") edge_calls(Dim(0), rows_.interior_begin(), known);
    if (!known || !interior.is(0)) {
      if (known) w_.out.line("{{");
      emit_tiles(w_, known ? begin : "ox", end, interior, tile_, "ox", call);
      if (known) w_.out.line("}}");
    }
    if (end != width) edge_calls(rows_.interior_end(), rows_.out_width(), known);
  }

  LayerWriter& w_;
  const Node& n_;
  const Tensor& weight_;
  int64_t channels_, padded_;
  Window window_;
  int64_t at_once_;  // channels
  std::string x_, y_, weights_, biases_;
  Epilogue epilogue_;
  Rows rows_;
  int tile_ = 1;  // pixels
  bool keeps_inputs_ = false;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_conv_depthwise() {
  static const std::vector<Kernel> table = {
      {"conv_depthwise",
       "depthwise convolution on channels-last floats, vectors over channels",
       accepts,
       emit,
       {.writes_apart = true, .rows = true, .reads_apart = true, .work = Work::kTaps}}};
  return table;
}

}  // namespace sinter
