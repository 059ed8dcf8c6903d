// The first convolution of a net, of a picture that comes as planes of up to 4 channels (attribute `planar`,
// plan/in_place.cpp), with words that multiply by four neighbouring values (NEON).
//
// The sums of such a layer are short (27 products for 3x3 taps), and its operands lie in as many runs as
// there are channels and rows of the kernel. So the taps of each pixel of a row are first put one behind the
// other, [ox][channel][taps], zeros where the window hangs out of the picture and up to a whole number of
// words; then the row is one matrix product, without edges, for all panels of output channels while it is
// near.
#include <numeric>

#include "emit/epilogue.h"
#include "kernels/products/direct_ways.h"
#include "kernels/products/panel_weights.h"
#include "kernels/windows/rows.h"
#include "ops/op.h"
#include "targets/target.h"

namespace sinter {
namespace {

// Floats that halves are made of are planes always (passes/compute_in_halves.cpp).
bool makes_halves(const Node& n) {
  return n.freedom.halves == Halves::kComputed && n.inputs[0]->type.dtype == DType::kF32;
}

bool accepts(const Node& n, const Context& c) {
  if (std::string_view(n.op->name) != "Conv" || n.op->domain[0] != 0) return false;
  return c.target.aarch64 && (c.of(n).reads_nchw || makes_halves(n)) &&
         (!n.epilogue || has_vector_text(*n.epilogue, element_type(n)));
}

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w),
        weight_(*w.node.inputs[1]->data),
        window_(window_of(w.node)),
        epilogue_(w, w.node.outputs[0]->type.shape) {
    channels_ = weight_.dim(1);
    taps_ = std::accumulate(window_.kernel.begin(), window_.kernel.end(), int64_t{1}, std::multiplies<>());
    const int64_t lanes = w.target.lanes;
    pitch_ = (channels_ * taps_ + lanes - 1) / lanes * lanes;
    // Cores in order have no fast word for a rest: they multiply its zeros.
    count_ = w.target.speed.in_order ? pitch_ : channels_ * taps_;
    panels_ = panels_of(w.target, weight_.dim(0), std::min<int64_t>(window_.out.back().hi(), 64));
  }

  void emit() {
    SINTER_CHECK(w_.decision.reads_nchw, "planes are read as a picture");
    w_.include("sinter/mac.h");
    w_.include("sinter/planes.h");
    w_.flops(product(w_.node.outputs[0]->type.shape) * Dim(2 * channels_ * taps_));
    w_.summary(summary());
    const std::string x = w_.input(0);
    pack();
    y_ = w_.output(0);
    Rows rows{w_, window_, w_.node.inputs[0]->type.shape[0], Dim(channels_), w_.pixel_stride()};
    rows.take_strip();
    const bool in_parts = rows.turns.end.empty() && !rows.outermost().is(1);
    if (in_parts) rows.turns = w_.open_parts(w_.dim(rows.outermost()));
    row_ = w_.scratch_of_part("taps", "float", window_.out.back().hi() * pitch_);
    if (w_.element.is_half()) {
      w_.include("sinter/convert.h");
      halves_ = w_.scratch_of_part("halves", "float", window_.in.back().hi());
    }
    w_.out.put(clear());
    Rows(rows).open();
    gather(rows, x);
    product_of_row(rows);
    Rows(rows).close();
    if (in_parts) w_.close_parts();
  }

 private:
  std::string summary() const {
    std::string kernel, strides;
    for (size_t a = 0; a < window_.rank(); ++a) {
      kernel += (a ? "x" : "") + std::to_string(window_.kernel[a]);
      strides += (a ? "x" : "") + std::to_string(window_.strides[a]);
    }
    return fmt::format(
        "Conv {}, stride {}, {} -> {} channels, from planes whose taps are gathered a row at a time{}",
        kernel, strides, channels_, weight_.dim(0), epilogue_.summary());
  }

  void pack() {
    const float* weight = weight_.as<float>();
    const int64_t out = weight_.dim(0), count = channels_ * taps_;
    const int lanes = w_.target.lanes;
    weights_.emplace(w_, panels_, count_);
    weights_->add_group(out, [&](int64_t k, int64_t c) { return k < count ? weight[c * count + k] : 0.0f; });
    weights_->store("w", fmt::format("[{} channels][{} taps of {} planes], in panels of {}", out, taps_,
                                     channels_, panels_.vectors * lanes));
    bias_ = padded_bias(w_, out);
  }

  // The text that makes all taps 0: those beyond the last stay so.
  std::string clear() const {
    return fmt::format("for (std::int64_t i = 0; i < {} * {}; i += kLanes) store({} + i, zero());",
                       w_.dim(window_.out.back()), pitch_, row_);
  }

  void gather(const Rows& rows, const std::string& x) {
    const std::string count = w_.dim(rows.out_width());
    w_.out.line("// the taps of the row's pixels, one pixel's behind each other");
    std::string clipped;
    for (size_t a = 0; a + 1 < window_.rank(); ++a)
      if (window_.kernel[a] > 1 || !window_.pads_begin[a].is(0))
        clipped += fmt::format("{}k{}_last - k{}_first < {}", clipped.empty() ? "" : " || ", a, a,
                               window_.kernel[a]);
    if (!clipped.empty()) w_.out.line("if ({}) {}", clipped, clear());
    w_.out.line("for (std::int64_t ci = 0; ci < {}; ++ci) {{", channels_);
    rows.open_taps(w_.out);
    const std::string width = w_.dim(rows.width());
    std::string row = fmt::format("{} + {}", x, rows.planar_offset("ci", "0"));
    if (w_.element.is_half()) {
      w_.out.line("convert({}, {}, {});", row, width, halves_);
      row = halves_;
    }
    w_.out.line("gather_taps<{}>({}, {}, {}, {}, {}, {} + ci * {} + {}, {});", rows.kernel(), row, width,
                w_.dim(rows.pad()), rows.stride(), count, row_, taps_, rows.tap("0"), pitch_);
    rows.close_taps(w_.out);
    w_.out.line("}}");
  }

  void product_of_row(const Rows& rows) {
    open_panel(w_);
    weights_->declare_row();
    w_.out.line("const auto tile = [&](auto pixels, std::int64_t ox) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int kPixels = pixels.value;");
    w_.out.line("Tile<kVectors, kPixels> sum;");
    w_.out.line("tile_bias(sum, {});", bias_.empty() ? "static_cast<const float*>(nullptr)" : bias_ + " + c");
    w_.out.line("{}(sum, {} + ox * {}, {}, wp, {}{});",
                count_ == pitch_ || w_.element.is_half() ? mac_word(w_.target) : "mac_padded", row_, pitch_,
                pitch_, count_, weights_->row_argument());
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int t = 0; t < kPixels; ++t) {{");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int o = 0; o < kVectors; ++o) {{");
    w_.out.line("const int lanes = o == kVectors - 1 ? last.value : kLanes;");
    const std::string value =
        epilogue_.vector("sum.a[t][o]", rows.index("ox + t", "c + o * kLanes"), "lanes", w_.out);
    w_.out.line("store_lanes({} + {} + c + o * kLanes, {}, lanes);", y_, rows.output_offset("ox + t"), value);
    w_.out.line("}}");
    w_.out.line("}}");
    w_.out.put("};");
    emit_tiles(w_, "0", w_.dim(rows.out_width()), rows.out_width(), w_.target.tile(panels_.vectors), "ox",
               "tile(Int<{T}>(), {x});");
    w_.out.put("};");
    weights_->emit();
  }

  LayerWriter& w_;
  const Tensor& weight_;  // [out][channels][taps]
  Window window_;
  Epilogue epilogue_;
  int64_t channels_ = 0, taps_ = 0;
  int64_t pitch_ = 0, count_ = 0;  // floats from one pixel's taps to the next's; those that are multiplied
  Panels panels_;
  std::optional<PanelWeights> weights_;
  std::string y_, row_, bias_;
  std::string halves_;  // a row of the picture as such
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_conv_planes() {
  static const std::vector<Kernel> table = {
      {"conv_planes",
       "convolution of a picture's planes, whose taps are gathered a row at a time",
       accepts,
       emit,
       {.writes_apart = true, .rows = true, .reads_nchw = true, .work = Work::kProducts},
       direct_ways}};
  return table;
}

}  // namespace sinter
