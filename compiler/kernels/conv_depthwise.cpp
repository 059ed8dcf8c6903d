// Depthwise convolution on channels-last tensors: every channel has its own kernel, vectors run over
// channels.
//
// A tile is a few neighbouring pixels of one vector of channels: each tap's weights are loaded once a tile,
// and each input vector once for all the taps and pixels that it meets. Small pictures of many channels are
// done some channels at a time, so that the rows under a kernel stay in the first-level cache until the last
// row has used them.
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/rows.h"
#include "kernels/tiles.h"
#include "ops/op.h"
#include "targets/machine.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Target&) {
  if (std::string_view(n.op->name) != "Conv" || n.attributes.integer("channels_last", 0) != 1) return false;
  if (n.inputs[0]->type.dtype != DType::kF32 || n.outputs[0]->type.dtype != DType::kF32 || !n.inputs[1]->data)
    return false;
  if (n.anchor_inputs > 2 && n.inputs[2] && !n.inputs[2]->data) return false;
  const Tensor& weight = *n.inputs[1]->data;
  const int64_t groups = n.attributes.integer("group", 1);
  return groups > 1 && weight.dim(1) == 1 && weight.dim(0) == groups &&
         (!n.epilogue || has_vector_text(*n.epilogue));
}

// Channels at a time: whole lines of the cache, equal shares, with the rows under a kernel in half of the
// first-level cache; all of them where that would be so few that reading them is no stream any more.
int64_t channels_at_once(const Target& t, const Window& w, int64_t channels) {
  constexpr int64_t kLine = 16, kFewest = 48;
  if (!w.in.back().is_static()) return channels;
  int64_t rows = 1;
  for (size_t a = 0; a + 1 < w.rank(); ++a) rows *= w.extent(a);
  const int64_t most = machine_of(t).l1 / 2 / static_cast<int64_t>(sizeof(float)) /
                       (rows * w.in.back().value()) / kLine * kLine;
  if (most < kFewest || most >= channels) return channels;
  const int64_t shares = (channels + most - 1) / most;
  return round_up((channels + shares - 1) / shares, kLine);
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const int lanes = w.target.lanes;
  const Tensor& weight = *n.inputs[1]->data;
  const int64_t channels = weight.dim(0), taps = weight.size() / channels,
                padded = (channels + lanes - 1) / lanes * lanes;
  const Window window = window_of(n);
  w.include("sinter/mac.h");
  w.flops(product(n.outputs[0]->type.shape) * Dim(2 * taps));
  const std::string x = w.input(0);
  Epilogue epilogue(w, n.outputs[0]->type.shape);
  w.summary(fmt::format("depthwise Conv, {} taps, stride {}, {} channels{}", taps, window.strides.back(),
                        channels, epilogue.summary()));

  std::vector<float> packed(static_cast<size_t>(taps * padded), 0.0f),
      bias(static_cast<size_t>(padded), 0.0f);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t t = 0; t < taps; ++t)
      packed[static_cast<size_t>(t * padded + c)] = weight.as<float>()[c * taps + t];
    if (n.anchor_inputs > 2 && n.inputs[2]) bias[static_cast<size_t>(c)] = n.inputs[2]->data->as<float>()[c];
  }
  const std::string weights = w.weights("w", packed, fmt::format("[{} taps][{}]", taps, padded));
  const std::string biases = w.weights("bias", bias, fmt::format("[{}]", padded));
  const std::string y = w.output(0);

  Rows rows{w, window, n.inputs[0]->type.shape[0], Dim(channels), output_pitch(n)};
  const int64_t stride = rows.stride(), dilation = rows.dilation(), kernel = rows.kernel();
  // Pixels a tile: sums, the inputs under them and one weight must fit the registers.
  int64_t tile = w.target.registers == 32 ? 8 : 4;
  auto inputs_under = [&](int64_t t) { return (t - 1) * stride + (kernel - 1) * dilation + 1; };
  while (tile > 1 && tile + inputs_under(tile) + 2 > w.target.registers) --tile;
  const bool keep_inputs = tile > 1 && dilation == 1;
  if (!keep_inputs) tile = w.target.registers == 32 ? 8 : 4;

  const std::optional<LayerWriter::Strip> strip = w.strip();
  const bool parted = !strip && !rows.outermost().is(1);
  if (parted) rows.turns = w.open_parts(w.dim(rows.outermost()));
  if (strip) {
    rows.turns = {strip->first, strip->end};
    rows.x_base = strip->x_base;
    rows.y_base = strip->y_base;
  }
  const int64_t full = channels / lanes * lanes, at_once = channels_at_once(w.target, window, channels);
  if (at_once < channels)
    w.out.line("for (std::int64_t share = 0; share < {}; share += {}) {{  // of the channels", channels,
               at_once);
  Rows(rows).open();
  // Pixels outside, channels inside: a tile's inputs are a few whole runs of memory, read once.
  auto open_pixels = [&](const std::string& name, const std::string& parameters, const std::string& count) {
    w.out.line("[[maybe_unused]] const auto {} = [&]({}) __attribute__((always_inline)) {{", name,
               parameters);
    w.out.line("constexpr int kPixels = {};", count);
    w.out.line("const auto vector = [&](std::int64_t c, auto last) __attribute__((always_inline)) {{");
    w.out.line("constexpr int lanes = last.value;");
    w.out.line("f32v sum[kPixels];");
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int t = 0; t < kPixels; ++t) sum[t] = load_start({} + c);", biases);
    rows.open_taps(w.out);
  };
  auto close_pixels = [&] {
    rows.close_taps(w.out);
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int t = 0; t < kPixels; ++t) {{");
    const std::string value = epilogue.vector("sum[t]", rows.index("ox + t", "c"), "lanes", w.out);
    w.out.line("store_lanes({} + {} + c, {}, lanes);", y, rows.output_offset("ox + t"), value);
    w.out.line("}}");
    w.out.put("};");
    if (at_once < channels)
      w.out.line(
          "for (std::int64_t c = share; c < sinter::min_of(std::int64_t{{{}}}, share + {}); c += kLanes) "
          "vector(c, "
          "Int<kLanes>());",
          full, at_once);
    else if (full > 0)
      w.out.line("for (std::int64_t c = 0; c < {}; c += kLanes) vector(c, Int<kLanes>());", full);
    if (full < channels)
      w.out.line("{}vector({}, Int<{}>());",
                 at_once < channels ? fmt::format("if (share + {} >= {}) ", at_once, channels) : "", full,
                 channels - full);
    w.out.put("};");
  };
  open_pixels("tile", "auto pixels, std::int64_t ox", "pixels.value");
  w.out.line("const float* const from = {} + {} + c;", x, rows.input_offset(rows.position("ox")));
  w.out.line("const float* const wk = {} + {} * {} + c;", weights, rows.tap("0"), padded);
  if (keep_inputs) {
    w.out.line("constexpr int kInputs = (kPixels - 1) * {} + {};", stride, (kernel - 1) * dilation + 1);
    w.out.line("f32v in[kInputs];");
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int i = 0; i < kInputs; ++i) in[i] = load_lanes(from + i * {}, lanes);", channels);
  }
  w.out.line("SINTER_UNROLL");
  w.out.line("for (int kw = 0; kw < {}; ++kw) {{", kernel);
  w.out.line("const f32v k = load(wk + kw * {});", padded);
  w.out.line("SINTER_UNROLL");
  if (keep_inputs)
    w.out.line("for (int t = 0; t < kPixels; ++t) sum[t] = fma(in[t * {} + kw], k, sum[t]);", stride);
  else
    w.out.line(
        "for (int t = 0; t < kPixels; ++t) sum[t] = fma(load_lanes(from + (t * {} + kw * {}) * {}, lanes), "
        "k, "
        "sum[t]);",
        stride, dilation, channels);
  w.out.line("}}");
  close_pixels();
  const std::string begin = w.dim(rows.interior_begin()), end = w.dim(rows.interior_end()),
                    width = w.dim(rows.out_width());
  const Dim interior = rows.interior_end() - rows.interior_begin();
  if (begin == "0" && end == width) {
    emit_tiles(w, "0", end, interior, static_cast<int>(tile), "ox", "tile(Int<{T}>(), {x});");
  } else {
    // Where the extents are known, so are the taps of every edge.
    const bool known = rows.interior_begin().is_static() && rows.interior_end().is_static() &&
                       rows.out_width().is_static() && rows.pad().is_static() && rows.width().is_static() &&
                       rows.interior_begin().value() <= 4 &&
                       rows.out_width().value() - rows.interior_end().value() <= 4;
    open_pixels("edge", "std::int64_t ox, auto first, auto behind", "1");
    if (known) {
      w.out.line("SINTER_UNROLL");
      w.out.line("for (std::int64_t kw = 0; kw < {}; ++kw)", kernel);
      w.out.line("  if (kw >= first && kw < behind)");
    } else {
      w.out.line("for (std::int64_t kw = first; kw < behind; ++kw)");
    }
    w.out.line("  sum[0] = fma(load_lanes({} + {} + c, lanes), load({} + {} * {} + c), sum[0]);", x,
               rows.input_offset(fmt::format("{} + kw * {}", rows.position("ox"), dilation)), weights,
               rows.tap("kw"), padded);
    close_pixels();
    auto edges = [&](const Dim& from, const Dim& to) {
      if (!known) {
        w.out.line("for (; ox < {}; ++ox) edge(ox, {}, {});", w.dim(to), rows.first_tap("ox"),
                   rows.last_tap("ox"));
        return;
      }
      for (int64_t ox = from.value(); ox < to.value(); ++ox) {
        const int64_t at = ox * stride - rows.pad().value();
        const int64_t first = at < 0 ? (-at + dilation - 1) / dilation : 0;
        const int64_t room = rows.width().value() - at;
        const int64_t behind = room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
        w.out.line("edge({}, Int<{}>(), Int<{}>());", ox, first, behind);
      }
    };
    if (!known) w.out.line("std::int64_t ox = 0;");
    if (begin != "0") edges(Dim(0), rows.interior_begin());
    if (!known || !interior.is(0)) {
      if (known) w.out.line("{{");
      emit_tiles(w, known ? begin : "ox", end, interior, static_cast<int>(tile), "ox",
                 "tile(Int<{T}>(), {x});");
      if (known) w.out.line("}}");
    }
    if (end != width) edges(rows.interior_end(), rows.out_width());
  }
  Rows(rows).close();
  if (at_once < channels) w.out.line("}}");
  if (parted) w.close_parts();
}

}  // namespace

const std::vector<Kernel>& kernels_conv_depthwise() {
  static const std::vector<Kernel> table = {
      {"conv_depthwise", "depthwise convolution on channels-last floats, vectors over channels", accepts,
       emit, true, true}};
  return table;
}

}  // namespace sinter
