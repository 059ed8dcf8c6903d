// Transposed convolution on channels-last tensors, gathered by phases.
//
// Output pixel o and tap k meet at input position (o + pad - k * dilation) / stride where that is whole.
// Along a row the outputs o = phase + stride * j of one phase use the same taps, and neighbouring j read
// neighbouring input pixels: each phase is a small convolution of stride 1, done with the register tiles.
// Axes before the row are gathered tap by tap. Nothing is scattered, so every output is written once, with
// its epilogue.
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/products/panel_weights.h"
#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  if (std::string_view(n.op->name) != "ConvTranspose" || n.attributes.integer("channels_last", 0) != 1)
    return false;
  const DType element = element_type(n);
  if (n.inputs[0]->type.dtype != element || !n.inputs[1]->data || n.outputs[0]->type.dtype != element)
    return false;
  if (n.anchor_inputs > 2 && n.inputs[2] && !n.inputs[2]->data) return false;
  return window_of(n).has_static_pads() && (!n.epilogue || has_vector_text(*n.epilogue, element));
}

// One tap of a phase: its number along the row, and the input position it reads for j = 0.
struct Tap {
  int64_t kernel, shift;
};

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w), n_(w.node), window_(window_of(n_)), epilogue_(w, n_.outputs[0]->type.shape) {}

  void emit() {
    const Tensor& weight = *n_.inputs[1]->data;
    groups_ = n_.attributes.integer("group", 1);
    in_channels_ = weight.dim(0);
    group_in_ = in_channels_ / groups_;
    group_out_ = weight.dim(1);
    taps_ = weight.size() / (in_channels_ * group_out_);
    const size_t row = window_.rank() - 1;
    stride_ = window_.strides[row];
    const Dim per_phase = ceildiv(window_.out[row], Dim(stride_));
    panels_ = panels_of(w_.target, group_out_, per_phase.is_static() ? per_phase.value() : 64);
    w_.include("sinter/mac.h");
    w_.include("sinter/dims.h");
    w_.flops(product(n_.inputs[0]->type.shape) * Dim(2 * taps_ * group_out_));
    w_.summary(fmt::format("ConvTranspose, {} taps, stride {}, {} -> {} channels{}", taps_, stride_,
                           in_channels_, group_out_ * groups_, epilogue_.summary()));
    x_ = w_.input(0);
    padded_ = (panels_.full * panels_.vectors + panels_.rest) * w_.target.lanes;
    pack();
    weights_->store("w", fmt::format("[{} channels][{} taps][{}], in panels of {}", group_out_ * groups_,
                                     taps_, group_in_, panels_.vectors * w_.target.lanes));
    bias_ = w_.weights("bias", pack_bias(), fmt::format("[{}]", group_out_ * groups_));
    y_ = w_.output(0);
    body();
  }

 private:
  void pack() {
    const float* weight = n_.inputs[1]->data->as<float>();
    weights_.emplace(w_, panels_, taps_ * group_in_);
    for (int64_t g = 0; g < groups_; ++g)
      weights_->add_group(group_out_, [&](int64_t k, int64_t c) {
        return weight[((g * group_in_ + k % group_in_) * group_out_ + c) * taps_ + k / group_in_];
      });
  }
  std::vector<float> pack_bias() const {
    std::vector<float> packed(static_cast<size_t>(padded_ * groups_), 0.0f);
    if (n_.anchor_inputs > 2 && n_.inputs[2])
      for (int64_t m = 0; m < group_out_ * groups_; ++m)
        packed[static_cast<size_t>(m / group_out_ * padded_ + m % group_out_)] =
            n_.inputs[2]->data->as<float>()[m];
    return packed;
  }

  void body() {
    const bool grouped = groups_ > 1;
    const Dim batch = n_.inputs[0]->type.shape[0];
    const size_t row = window_.rank() - 1;
    // Parts are rows of all pictures, the outermost ones of each; of 1-D, pictures.
    const bool by_rows = row > 0;
    const LayerWriter::Turns turns = w_.open_parts(w_.dim(by_rows ? batch * window_.out[0] : batch));
    const bool parted = by_rows && turns.first != "0";
    if (grouped) w_.out.line("for (std::int64_t g = 0; g < {}; ++g) {{", groups_);
    open_panel(w_);
    weights_->declare_row();
    if (parted) {
      w_.out.line("for (std::int64_t turn = {}; turn < {}; ++turn) {{", turns.first, turns.end);
      w_.out.line("const std::int64_t n = turn / {0}, o0 = turn % {0};", w_.dim(window_.out[0]));
    } else {
      w_.out.line("for (std::int64_t n = {}; n < {}; ++n) {{", by_rows ? "0" : turns.first,
                  by_rows ? w_.dim(batch) : turns.end);
    }
    for (size_t a = parted ? 1 : 0; a < row; ++a)
      w_.out.line("for (std::int64_t o{0} = 0; o{0} < {1}; ++o{0}) {{", a, w_.dim(window_.out[a]));
    for (int64_t phase = 0; phase < stride_; ++phase) phase_loop(phase);
    for (size_t a = parted ? 1 : 0; a < row; ++a) w_.out.line("}}");
    w_.out.line("}}");
    w_.out.put("};");
    weights_->emit(grouped ? "g" : "");
    if (grouped) w_.out.line("}}");
    w_.close_parts();
  }

  std::vector<Tap> taps_of(int64_t phase) const {
    const size_t row = window_.rank() - 1;
    std::vector<Tap> taps;
    for (int64_t k = 0; k < window_.kernel[row]; ++k) {
      const int64_t at = phase + window_.pads_begin[row].value() - k * window_.dilations[row];
      if (at % stride_ == 0) taps.push_back({k, at / stride_});
    }
    return taps;
  }

  void phase_loop(int64_t phase) {
    const size_t row = window_.rank() - 1;
    const std::vector<Tap> taps = taps_of(phase);
    const Dim count = max(Dim(0), ceildiv(window_.out[row] - Dim(phase), Dim(stride_)));
    if (count.is(0)) return;
    Dim begin(0), end = count;
    for (const Tap& t : taps) {
      begin = max(begin, Dim(-t.shift));
      end = min(end, window_.in[row] - Dim(t.shift));
    }
    begin = min(begin, count);
    end = max(begin, end);
    w_.out.line("{{");
    w_.out.line("// outputs {} + j * {}: {} taps of the row", phase, stride_, taps.size());
    if (!(end - begin).is(0)) tile(phase, taps, false);
    const std::string b = w_.dim(begin), e = w_.dim(end), c = w_.dim(count);
    if (b == "0" && e == c) {
      emit_tiles(w_, "0", e, count, w_.target.tile(panels_.vectors), "j", "tile(Int<{T}>(), {x});");
    } else {
      tile(phase, taps, true);
      w_.out.line("std::int64_t j = 0;");
      if (b != "0") w_.out.line("for (; j < {}; ++j) edge(Int<1>(), j);", b);
      emit_tiles(w_, "j", e, end - begin, w_.target.tile(panels_.vectors), "j", "tile(Int<{T}>(), {x});");
      if (e != c) w_.out.line("for (; j < {}; ++j) edge(Int<1>(), j);", c);
    }
    w_.out.line("}}");
  }

  void tile(int64_t phase, const std::vector<Tap>& taps, bool edge) {
    const size_t row = window_.rank() - 1;
    w_.out.line("const auto {} = [&](auto pixels, std::int64_t j) __attribute__((always_inline)) {{",
                edge ? "edge" : "tile");
    w_.out.line("constexpr int kPixels = pixels.value;");
    const TileSums sums(w_, taps_ * group_in_);
    sums.declare("kPixels", bias_ + (groups_ > 1 ? fmt::format(" + g * {}", padded_) : "") + " + c");
    std::string at = "n", tap;
    for (size_t a = 0; a < row; ++a) {
      w_.out.line("for (std::int64_t k{0} = 0; k{0} < {1}; ++k{0}) {{", a, window_.kernel[a]);
      w_.out.line("const std::int64_t t{0} = o{0} + {1} - k{0} * {2};", a, w_.dim(window_.pads_begin[a]),
                  window_.dilations[a]);
      w_.out.line("if (t{0} < 0 || t{0} % {1} != 0 || t{0} / {1} >= {2}) continue;", a, window_.strides[a],
                  w_.dim(window_.in[a]));
      at = fmt::format("({} * {} + t{} / {})", at, w_.dim(window_.in[a]), a, window_.strides[a]);
      tap = tap.empty() ? fmt::format("k{}", a) : fmt::format("({} * {} + k{})", tap, window_.kernel[a], a);
    }
    const std::string width = w_.dim(window_.in[row]);
    for (const Tap& t : taps) {
      const std::string position =
          t.shift == 0 ? "j"
                       : fmt::format("j {} {}", t.shift < 0 ? "-" : "+", t.shift < 0 ? -t.shift : t.shift);
      const std::string number = tap.empty()
                                     ? std::to_string(t.kernel)
                                     : fmt::format("({} * {} + {})", tap, window_.kernel[row], t.kernel);
      if (edge) w_.out.line("if ({0} >= 0 && {0} < {1})", position, width);
      sums.add(fmt::format("{} + ({} * {} + {}) * {}{}", x_, at, width, position, in_channels_,
                           groups_ > 1 ? fmt::format(" + g * {}", group_in_) : ""),
               std::to_string(in_channels_),
               fmt::format("wp + {} * ({} * {})", number, group_in_, weights_->row()),
               std::to_string(group_in_), weights_->row_argument());
    }
    for (size_t a = 0; a < row; ++a) w_.out.line("}}");
    sums.end();
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int t = 0; t < kPixels; ++t) {{");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int o = 0; o < kVectors; ++o) {{");
    w_.out.line("const int lanes = o == kVectors - 1 ? last.value : kLanes;");
    const std::string ox = fmt::format("((j + t) * {} + {})", stride_, phase);
    const std::string channel = (groups_ > 1 ? fmt::format("g * {} + ", group_out_) : "") + "c + o * kLanes";
    std::vector<std::string> index{"n"};
    std::string to = "n";
    for (size_t a = 0; a < row; ++a) {
      index.push_back(fmt::format("o{}", a));
      to = fmt::format("({} * {} + o{})", to, w_.dim(window_.out[a]), a);
    }
    index.push_back(ox);
    index.push_back(channel);
    const std::string value = epilogue_.vector("sum.a[t][o]", index, "lanes", w_.out);
    w_.out.line("store_lanes({} + ({} * {} + {}) * {} + {}, {}, lanes);", y_, to, w_.dim(window_.out[row]),
                ox, group_out_ * groups_, channel, value);
    w_.out.line("}}");
    w_.out.line("}}");
    w_.out.put("};");
  }

  LayerWriter& w_;
  const Node& n_;
  Window window_;
  Epilogue epilogue_;
  Panels panels_;
  int64_t groups_ = 1, in_channels_ = 0, group_in_ = 0, group_out_ = 0, taps_ = 0, stride_ = 1, padded_ = 0;
  std::optional<PanelWeights> weights_;
  std::string x_, bias_, y_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_conv_transpose() {
  static const std::vector<Kernel> table = {
      {"conv_transpose",
       "transposed convolution on channels-last floats, by phases and register tiles",
       accepts,
       emit,
       {.work = Work::kProducts}}};
  return table;
}

}  // namespace sinter
