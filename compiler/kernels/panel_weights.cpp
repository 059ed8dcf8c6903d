#include "kernels/panel_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>

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
  if (!in_place()) {
    w_.include("sinter/widen.h");
    name_ = w_.weights(name, type_, bits.data(), bits.size() * sizeof(uint16_t), comment);
  } else {
    // The last row's last vector is read whole.
    if (short_rows_) packed_.insert(packed_.end(), static_cast<size_t>(w_.target.lanes), 0.0f);
    name_ = w_.weights(name, packed_, comment);
  }
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
  emit_panels(w_, panels_, k_count_, weights, "0", turns, [&](const std::string& at, bool is_full) {
    return fmt::format("widen({}, {}, {})", at, is_full ? full : last, panel);
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
