#include "kernels/products/panel_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "emit/expr_text.h"
#include "ops/op.h"
#include "sinter/half.h"

namespace sinter {
namespace {

bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

bool all_half(const std::vector<float>& v) {
  return std::all_of(v.begin(), v.end(),
                     [](float x) { return std::isfinite(x) && same_bits(to_float(to_half(x)), x); });
}
bool all_bfloat16(const std::vector<float>& v) {
  return std::all_of(v.begin(), v.end(),
                     [](float x) { return std::isfinite(x) && same_bits(to_float(to_bfloat16(x)), x); });
}

template <class To>
std::vector<uint16_t> narrowed(const std::vector<float>& v, To to) {
  std::vector<uint16_t> bits;
  bits.reserve(v.size());
  for (const float x : v) bits.push_back(to(x).bits);
  return bits;
}

// Integers of 8 bits times one scale: (byte + offset) * scale, to the last bit.
struct Steps {
  float scale = 1;
  int offset = 0;
};

bool are_steps(const float* v, int64_t count, int64_t stride, float scale, Steps& steps) {
  int low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float n = std::nearbyint(v[i * stride] / scale);
    if (!(std::fabs(n) <= 255) || !same_bits(n * scale + 0.0f, v[i * stride] + 0.0f)) return false;
    low = std::min(low, static_cast<int>(n)), high = std::max(high, static_cast<int>(n));
  }
  if (high - low > 255) return false;
  steps = {scale, low < -128 ? low + 128 : high > 127 ? high - 127 : 0};
  return true;
}

// The steps of a channel, if it has any: its greatest weight is some number of them.
std::optional<Steps> steps_of(const float* v, int64_t count, int64_t stride) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(v[i * stride])) return std::nullopt;
    most = std::max(most, std::fabs(v[i * stride]));
  }
  Steps steps;
  if (most == 0) return steps;
  for (int n = 1; n <= 255; ++n) {
    const float scale = most / static_cast<float>(n);
    if (!std::isnormal(scale)) return std::nullopt;
    for (const float s : {scale, std::nextafter(scale, 0.0f), std::nextafter(scale, INFINITY)})
      if (are_steps(v, count, stride, s, steps)) return steps;
  }
  return std::nullopt;
}

}  // namespace

PanelWeights::PanelWeights(LayerWriter& w, const Panels& panels, int64_t k_count)
    : w_(w), panels_(panels), k_count_(k_count) {
  short_rows_ = w.decision.weights.short_rows && panels.rest > 0 && panels.tail < w.target.lanes;
  half_vector_ = panels.rest > 0 && w.target.lanes == 16 && panels.tail * 2 <= w.target.lanes;
}

void PanelWeights::store(const std::string& name, const std::string& comment) {
  const bool may_widen = w_.decision.weights.half && !w_.element.is_half();
  std::vector<uint16_t> bits;
  if (may_widen && all_half(packed_)) {
    type_ = "sinter::half";
    bits = narrowed(packed_, to_half);
  } else if (may_widen && all_bfloat16(packed_)) {
    type_ = "sinter::bfloat16";
    bits = narrowed(packed_, to_bfloat16);
  }
  if (may_widen && in_place() && store_bytes(name, comment)) return;
  if (!in_place()) {
    w_.include("sinter/widen.h");
    name_ = w_.weights(name, type_, bits.data(), bits.size() * sizeof(uint16_t), comment);
  } else {
    // The last row's last vector is read whole.
    if (short_rows_) packed_.insert(packed_.end(), static_cast<size_t>(w_.target.lanes), 0.0f);
    name_ = w_.weights(name, packed_, comment);
  }
}

int64_t PanelWeights::width(bool is_full) const {
  const int64_t lanes = w_.target.lanes;
  if (is_full) return panels_.vectors * lanes;
  return short_rows_ ? (panels_.rest - 1) * lanes + panels_.tail : panels_.rest * lanes;
}

template <class F>
void PanelWeights::each_panel(F f) const {
  const auto groups = static_cast<int64_t>(packed_.size()) / std::max<int64_t>(group_size_, 1);
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < panel_count(panels_); ++i)
      f(packed_.data() + g * group_size_ + i * k_count_ * width(true),
        (g * panel_count(panels_) + i) * width(true), width(i < panels_.full));
}

// Where each channel's weights are steps of 8 bits: these, and scales and offsets of the channels.
bool PanelWeights::store_bytes(const std::string& name, const std::string& comment) {
  const size_t lanes = static_cast<size_t>(w_.target.lanes);
  std::vector<int8_t> bytes(packed_.size() + lanes);
  std::vector<float> scales, offsets;
  bool all = true;
  each_panel([&](const float* panel, int64_t first, int64_t width) {
    scales.resize(static_cast<size_t>(first + width) + lanes, 1.0f);
    offsets.resize(scales.size());
    for (int64_t c = 0; all && c < width; ++c) {
      const auto steps = steps_of(panel + c, k_count_, width);
      all = steps.has_value();
      if (!all) return;
      scales[static_cast<size_t>(first + c)] = steps->scale;
      offsets[static_cast<size_t>(first + c)] = static_cast<float>(steps->offset);
      int8_t* const to = bytes.data() + (panel - packed_.data()) + c;
      for (int64_t k = 0; k < k_count_; ++k)
        to[k * width] = static_cast<int8_t>(std::lround(panel[c + k * width] / steps->scale) - steps->offset);
    }
  });
  if (!all) return false;
  type_ = "std::int8_t";
  w_.include("sinter/widen.h");
  name_ = w_.weights(name, type_, bytes.data(), bytes.size(), comment + ", less an offset, by a scale");
  scales_ = w_.weights("scales", scales, "of channels");
  offsets_ = w_.weights("offsets", offsets, "of channels");
  return true;
}

// The word that widens a panel at `address` into scratch. `counted`: p is its number.
std::string PanelWeights::pointer(const std::string& address, bool is_full, const std::string& group,
                                  bool counted) const {
  const int64_t floats =
      is_full ? k_count_ * width(true) : group_size_ - panels_.full * k_count_ * width(true);
  if (scales_.empty()) return fmt::format("widen({}, {}, ", address, floats);
  std::string channel = !is_full  ? std::to_string(panels_.full * width(true))
                        : counted ? fmt::format("p * {}", width(true))
                                  : "0";
  if (!group.empty()) channel += fmt::format(" + {} * {}", group, panel_count(panels_) * width(true));
  return fmt::format("widen({}, {}, {}, {} + {}, {} + {}, ", address, k_count_, width(is_full), scales_,
                     channel, offsets_, channel);
}

void PanelWeights::declare_row(int64_t tiles, int64_t reads) {
  if (short_rows_ || half_vector_)
    w_.out.line("constexpr {}<kVectors, last.value> kRow;", short_rows_ ? "ShortRow" : "WholeRow");
  const int step = floats_ahead(w_.target, panels_.vectors, tiles);
  asks_ahead_ = step > 0 && in_place();
  if (asks_ahead_) w_.out.line("Ahead<{}> ahead{{wp + {} * ({})}};", step, reads, row());
}

void PanelWeights::emit(const std::string& group, const LayerWriter::Turns& turns) {
  const std::string weights = group.empty() ? name_ : fmt::format("{} + {} * {}", name_, group, group_size_);
  if (in_place()) return emit_panels(w_, panels_, k_count_, weights, "0", turns);
  const int lanes = w_.target.lanes;
  const int64_t full = k_count_ * panels_.vectors * lanes,
                last = group_size_ - panels_.full * full;  // floats of the panel that is not full
  const std::string panel = w_.scratch_of_part("widened", "float", (panels_.full > 0 ? full : last) + lanes);
  const bool counted = panels_.full > 1 || turns.first != "0";
  emit_panels(w_, panels_, k_count_, weights, "0", turns, [&](const std::string& at, bool is_full) {
    return pointer(at, is_full, group, counted) + panel + ")";
  });
}

bool is_float_conv(const Node& n) {
  if (std::string_view(n.op->name) != "Conv" || n.attributes.integer("channels_last", 0) != 1) return false;
  const DType element = element_type(n);
  if (n.inputs[0]->type.dtype != element || n.outputs[0]->type.dtype != element) return false;
  if (!n.inputs[1]->data || (n.anchor_inputs > 2 && n.inputs[2] && !n.inputs[2]->data)) return false;
  return !n.epilogue || has_vector_text(*n.epilogue, element);
}

std::string padded_bias(LayerWriter& w, int64_t channels) {
  const Node& n = w.node;
  if (n.anchor_inputs < 3 || !n.inputs[2]) return "";
  std::vector<float> bias(static_cast<size_t>(round_up(channels, w.target.lanes)));
  std::copy_n(n.inputs[2]->data->as<float>(), channels, bias.begin());
  return w.weights("bias", bias, fmt::format("[{}]", channels));
}

std::string row_bias(LayerWriter& w, int64_t columns) {
  const Node& n = w.node;
  if (n.anchor_inputs < 3 || !n.inputs[2]) return "";
  const Tensor& c = *n.inputs[2]->data;
  const float beta = std::string_view(n.op->name) == "Gemm" ? n.attributes.real("beta", 1) : 1;
  std::vector<float> bias(static_cast<size_t>(columns + w.target.lanes));
  for (int64_t j = 0; j < columns; ++j)
    bias[static_cast<size_t>(j)] = beta == 0 ? 0 : beta * c.as<float>()[c.size() == 1 ? 0 : j];
  return w.weights("bias", bias, fmt::format("[{}]", columns));
}

}  // namespace sinter
