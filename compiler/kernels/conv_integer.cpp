// Quantised convolutions and matrix products: int16 operands, int32 sums (Conv and MatMul with the attribute
// `integer`), constant weights, by the register tiles of mac_int.h.
//
// The loops are those of conv.cpp: channels-last rows, taps outside the input never touched. A run of taps is
// one product where it holds whole pairs (an even number of channels, no groups, no dilation), else each tap
// is. Sums go to a small array and through the epilogue, which scales, rounds and saturates them.
#include "kernels/integer.h"
#include "kernels/rows.h"
#include "kernels/tiles.h"
#include "ops/op.h"

namespace sinter {
namespace {

// Weights [groups][columns][taps][depth] by `at(group, column, tap, i)`, cut into panels, packed in pairs.
template <class At>
std::vector<int16_t> pack_pairs(const Target& t, const Panels& p, int64_t groups, int64_t columns,
                                int64_t taps, int64_t depth, At at) {
  std::vector<int16_t> out;
  const bool lanes_inside = std::string_view(t.isa) == "neon";
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < p.full + (p.rest ? 1 : 0); ++i)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t k = 0; k < depth; k += 2)
          for (int64_t o = 0; o < (i < p.full ? p.vectors : p.rest); ++o)
            for (int64_t e = 0; e < 2 * t.lanes; ++e) {
              const int64_t lane = lanes_inside ? e % t.lanes : e / 2,
                            half = lanes_inside ? e / t.lanes : e % 2;
              const int64_t c = (i * p.vectors + o) * t.lanes + lane;
              out.push_back(c < columns && k + half < depth ? at(g, c, tap, k + half) : int16_t{0});
            }
  return out;
}

std::string int16_weights(LayerWriter& w, const std::vector<int16_t>& data, const std::string& comment) {
  return w.weights("w", "std::int16_t", data.data(), data.size() * sizeof(int16_t), comment);
}

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

// The lines that finish and store `lanes` sums of the vector `sum` at `index`, the last entry of which is the
// channel of lane 0; `to`: the address of lane 0.
void store_sums(LayerWriter& w, const Epilogue& e, const std::string& sum, std::vector<std::string> index,
                const std::string& to, const std::string& lanes) {
  if (e.has_lanes()) {
    const std::string value = e.vector(sum, index, lanes, w.out);
    w.out.line("store_lanes({}, {}, {});", to, value, lanes);
    return;
  }
  w.out.line("std::int32_t sums[kLanes];");
  w.out.line("store(sums, {});", sum);
  w.out.line("for (int l = 0; l < {}; ++l) {{", lanes);
  index.back() = fmt::format("({} + l)", index.back());
  const std::string value = e.scalar("sums[l]", index, w.out);
  w.out.line("*({} + l) = {};", to, store_text(e.dtype(), value));
  w.out.line("}}");
}

std::string panels_comment(const Panels& p, const Target& t) {
  return fmt::format("pairs in panels of {}", p.vectors * t.lanes);
}

// --- convolution

bool accepts_conv(const Node& n, const Context&) { return is_integer_conv(n, DType::kI16); }

// Opens a loop nest over the rows, calls `pixels(name of the lambda)` for all pixels of each.
void for_each_pixel(LayerWriter& w, const Rows& rows, int tile, const std::function<void(bool)>& define) {
  const std::string begin = w.dim(rows.interior_begin()), end = w.dim(rows.interior_end()),
                    width = w.dim(rows.out_width());
  const Dim interior = rows.interior_end() - rows.interior_begin();
  define(false);
  if (begin == "0" && end == width) {
    emit_tiles(w, "0", end, interior, tile, "ox", "tile(Int<{T}>(), {x});");
    return;
  }
  define(true);
  const std::string call =
      fmt::format("edge(Int<1>(), ox, {}, {});", rows.first_tap("ox"), rows.last_tap("ox"));
  w.out.line("std::int64_t ox = 0;");
  if (begin != "0") w.out.line("for (; ox < {}; ++ox) {}", begin, call);
  emit_tiles(w, "ox", end, interior, tile, "ox", "tile(Int<{T}>(), {x});");
  if (end != width) w.out.line("for (; ox < {}; ++ox) {}", width, call);
}

void open_lambda(LayerWriter& w, bool edge) {
  w.out.line(
      "[[maybe_unused]] const auto {} = [&](auto pixels, std::int64_t ox{}) __attribute__((always_inline)) "
      "{{",
      edge ? "edge" : "tile", edge ? ", std::int64_t first, std::int64_t end" : "");
  w.out.line("constexpr int kPixels = pixels.value;");
}

void emit_conv(LayerWriter& w) {
  const Node& n = w.node;
  const ConvShape s = conv_shape(n);
  const Window window = window_of(n);
  const int lanes = w.target.lanes;
  const int64_t in_channels = s.in_channels(), out_channels = s.out_channels();
  w.include("sinter/mac_int.h");
  w.flops(product(n.outputs[0]->type.shape) * Dim(2 * s.taps * s.group_in));
  const std::string x = w.input(0);
  const Epilogue epilogue(w, n.outputs[0]->type.shape);
  w.summary(fmt::format("integer Conv, {} taps, {} -> {} channels in {} groups{}", s.taps, in_channels,
                        out_channels, s.groups, epilogue.summary()));
  const Rows rows{w, window, n.inputs[0]->type.shape[0], Dim(in_channels), Dim(out_channels)};
  const Dim interior = rows.interior_end() - rows.interior_begin();
  const Panels panels = panels_of(w.target, s.group_out, interior.is_static() ? interior.value() : 64);
  const Tensor& weight = *n.inputs[1]->data;
  const int64_t padded = (panels.full * panels.vectors + panels.rest) * lanes,
                depth = (s.group_in + 1) / 2 * 2;
  const std::string weights = int16_weights(
      w,
      pack_pairs(w.target, panels, s.groups, s.group_out, s.taps, s.group_in,
                 [&](int64_t g, int64_t c, int64_t tap, int64_t i) {
                   return weight.as<int16_t>()[((g * s.group_out + c) * s.group_in + i) * s.taps + tap];
                 }),
      fmt::format("[{} channels][{} taps][{}], {}", out_channels, s.taps, s.group_in,
                  panels_comment(panels, w.target)));
  const std::string bias = int32_bias(w, s.groups, s.group_out, padded);
  const std::string y = w.output(0);
  const bool grouped = s.groups > 1, whole_run = !grouped && rows.dilation() == 1 && depth == s.group_in;
  if (grouped) w.out.line("for (std::int64_t g = 0; g < {}; ++g) {{", s.groups);
  open_panel(w, "const std::int16_t* wp");
  Rows(rows).open();
  for_each_pixel(w, rows, w.target.tile(panels.vectors), [&](bool edge) {
    open_lambda(w, edge);
    const std::string first = edge ? "first" : "0", end = edge ? "end" : std::to_string(rows.kernel());
    w.out.line("IntTile<kVectors, kPixels> sum;");
    w.out.line("tile_bias(sum, {});", bias.empty() ? "static_cast<const std::int32_t*>(nullptr)"
                                      : grouped    ? fmt::format("{} + g * {} + c", bias, padded)
                                                   : bias + " + c");
    rows.open_taps(w.out);
    const std::string step = std::to_string(rows.stride() * in_channels), position = rows.position("ox");
    if (whole_run) {
      const std::string ix = edge ? position + " + first" : position;
      const std::string run =
          edge ? fmt::format("(end - first) * {}", depth) : std::to_string(rows.kernel() * depth);
      w.out.line("mac(sum, {} + {}, {}, wp + {} * ({} * kVectors * kLanes), {});", x, rows.input_offset(ix),
                 step, rows.tap(first), depth, run);
    } else {
      w.out.line("for (std::int64_t kw = {}; kw < {}; ++kw) {{", first, end);
      const std::string ix = fmt::format("{} + kw * {}", position, rows.dilation());
      w.out.line("mac(sum, {} + {}{}, {}, wp + {} * ({} * kVectors * kLanes), {});", x, rows.input_offset(ix),
                 grouped ? fmt::format(" + g * {}", s.group_in) : "", step, rows.tap("kw"), depth,
                 s.group_in);
      w.out.line("}}");
    }
    rows.close_taps(w.out);
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int t = 0; t < kPixels; ++t) {{");
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int o = 0; o < kVectors; ++o) {{");
    w.out.line("const int lanes = o == kVectors - 1 ? last.value : kLanes;");
    const std::string channel = (grouped ? fmt::format("g * {} + ", s.group_out) : "") + "c + o * kLanes";
    store_sums(w, epilogue, "sum.a[t][o]", rows.index("ox + t", channel),
               fmt::format("{} + {} + {}", y, rows.output_offset("ox + t"), channel), "lanes");
    w.out.line("}}");
    w.out.line("}}");
    w.out.put("};");
  });
  Rows(rows).close();
  w.out.put("};");
  emit_panels(w, panels, s.taps * depth,
              grouped ? fmt::format("{} + g * {}", weights, padded * s.taps * depth) : weights);
  if (grouped) w.out.line("}}");
}

// --- depthwise: every channel has its own kernel, vectors run over channels

bool accepts_depthwise(const Node& n, const Context& c) {
  return accepts_conv(n, c) && conv_shape(n).is_depthwise();
}

void emit_depthwise(LayerWriter& w) {
  const Node& n = w.node;
  const ConvShape s = conv_shape(n);
  const int lanes = w.target.lanes;
  const int64_t channels = s.groups, padded = (channels + lanes - 1) / lanes * lanes;
  w.include("sinter/mac_int.h");
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
  const Rows rows{w, window_of(n), n.inputs[0]->type.shape[0], Dim(channels), Dim(channels)};
  Rows(rows).open();
  w.out.line("const auto channels = [&](std::int64_t c, auto last) __attribute__((always_inline)) {{");
  w.out.line("constexpr int lanes = last.value;");
  w.out.line("const i32v b = {};", bias.empty() ? "splat_int<i32v>(0)" : fmt::format("load({} + c)", bias));
  for_each_pixel(w, rows, w.target.registers == 32 ? 8 : 4, [&](bool edge) {
    open_lambda(w, edge);
    w.out.line("i32v sum[kPixels];");
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int t = 0; t < kPixels; ++t) sum[t] = b;");
    rows.open_taps(w.out);
    w.out.line("for (std::int64_t kw = {}; kw < {}; ++kw) {{", edge ? "first" : "0",
               edge ? "end" : std::to_string(rows.kernel()));
    w.out.line("const i32v k = load({} + {} * {} + c);", weights, rows.tap("kw"), padded);
    w.out.line("const std::int16_t* const from = {} + {} + c;", x,
               rows.input_offset(fmt::format("{} + kw * {}", rows.position("ox"), rows.dilation())));
    w.out.line("SINTER_UNROLL");
    w.out.line(
        "for (int t = 0; t < kPixels; ++t) sum[t] = mac_lanes(sum[t], load_wide(from + t * {}, lanes), k);",
        rows.stride() * channels);
    w.out.line("}}");
    rows.close_taps(w.out);
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int t = 0; t < kPixels; ++t) {{");
    store_sums(w, epilogue, "sum[t]", rows.index("ox + t", "c"),
               fmt::format("{} + {} + c", y, rows.output_offset("ox + t")), "lanes");
    w.out.line("}}");
    w.out.put("};");
  });
  w.out.put("};");
  const int64_t full = channels / lanes;
  if (full > 0)
    w.out.line("for (std::int64_t c = 0; c < {}; c += kLanes) channels(c, Int<kLanes>());", full * lanes);
  if (channels % lanes) w.out.line("channels({}, Int<{}>());", full * lanes, channels % lanes);
  Rows(rows).close();
}

// --- matrix product with a constant second factor: all rows are one long column of rows

bool accepts_matmul(const Node& n, const Context&) {
  return is_integer_product(n, "MatMul", DType::kI16) && n.inputs[0]->type.shape.size() >= 2 &&
         n.inputs[1]->data->rank() == 2;
}

void emit_matmul(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& out = n.outputs[0]->type.shape;
  const Tensor& weight = *n.inputs[1]->data;
  const int64_t k = weight.dim(0), columns = weight.dim(1), depth = (k + 1) / 2 * 2;
  w.include("sinter/mac_int.h");
  w.flops(product(out) * Dim(2 * k));
  const std::string x = w.input(0);
  const Epilogue epilogue(w, out);
  MatrixRows matrix_rows(w, epilogue);
  const Dim rows = matrix_rows.count();
  w.summary(
      fmt::format("integer MatMul [{}, {}] x [{}, {}]{}", rows.text(), k, k, columns, epilogue.summary()));
  const Panels panels = panels_of(w.target, columns, rows.is_static() ? rows.value() : 32);
  const std::string weights = int16_weights(
      w,
      pack_pairs(
          w.target, panels, 1, columns, 1, k,
          [&](int64_t, int64_t c, int64_t, int64_t i) { return weight.as<int16_t>()[i * columns + c]; }),
      fmt::format("[{}][{}], {}", k, columns, panels_comment(panels, w.target)));
  const std::string y = w.output(0);
  matrix_rows.open();
  const std::string base = matrix_rows.earlier();
  w.out.line("// `vectors` vectors of columns from c, the last one with `last` columns; wp: their weights");
  w.out.line(
      "const auto panel = [&](auto vectors, auto last, std::int64_t c, const std::int16_t* wp) "
      "__attribute__((always_inline)) {{");
  w.out.line("constexpr int kVectors = vectors.value;");
  w.out.line("const auto tile = [&](auto pixels, std::int64_t i) __attribute__((always_inline)) {{");
  w.out.line("constexpr int kRows = pixels.value;");
  w.out.line("IntTile<kVectors, kRows> sum;");
  w.out.line("tile_bias(sum, static_cast<const std::int32_t*>(nullptr));");
  w.out.line("mac(sum, {} + ({}i) * {}, {}, wp, {});", x, base, k, k, k);
  w.out.line("SINTER_UNROLL");
  w.out.line("for (int t = 0; t < kRows; ++t) {{");
  w.out.line("SINTER_UNROLL");
  w.out.line("for (int o = 0; o < kVectors; ++o) {{");
  w.out.line("const int lanes = o == kVectors - 1 ? last.value : kLanes;");
  store_sums(w, epilogue, "sum.a[t][o]", matrix_rows.index("(i + t)", "c + o * kLanes"),
             fmt::format("{} + ({}i + t) * {} + c + o * kLanes", y, base, columns), "lanes");
  w.out.line("}}");
  w.out.line("}}");
  w.out.put("};");
  emit_tiles(w, "0", w.dim(rows), rows, w.target.tile(panels.vectors), "i", "tile(Int<{T}>(), {x});");
  w.out.put("};");
  emit_panels(w, panels, depth, weights);
  matrix_rows.close();
}

}  // namespace

const std::vector<Kernel>& kernels_conv_integer() {
  static const std::vector<Kernel> table = {
      {"conv_integer_depthwise", "depthwise convolution of int16 on channels-last tensors", accepts_depthwise,
       emit_depthwise},
      {"conv_integer", "convolution of int16 with int32 sums on channels-last tensors, by register tiles",
       accepts_conv, emit_conv},
      {"matmul_integer", "products of int16 matrices with int32 sums, by register tiles", accepts_matmul,
       emit_matmul},
  };
  return table;
}

}  // namespace sinter
