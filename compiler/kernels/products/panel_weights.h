// The constant weights of a layer that works in panels: how they lie in NAME.weights and reach the tiles.
//
// Where at most half of the last panel's last vector has channels, AVX-512 multiplies half of it (mac.h,
// WholeRow).
//
// By default a panel is whole vectors of floats, and the tiles read it where it is. Where the node says so
// (plan/small_weights.cpp), two things are left out of the file:
//
// - with the attribute `short_rows`, the lanes that the last panel's last vector has no channels for: its
// rows
//   are shorter then, and tiles are told so (mac.h, ShortRow);
// - with the attribute `half_weights`, the lower half of floats that are 16-bit floats, all of them: they are
//   stored in 16 bits, and before a panel's tiles run, the panel is widened into scratch (widen.h). So are
//   floats that are integers of 8 bits times a scale of their channel, as dequantisation makes them.
#pragma once
#include "kernels/products/tiles.h"

namespace sinter {

class PanelWeights {
 public:
  PanelWeights(LayerWriter& w, const Panels& panels, int64_t k_count);

  // One group's weights behind those of the groups before: element (k, channel) is at(k, channel).
  template <class At>
  void add_group(int64_t channels, At at) {
    std::vector<float> one = pack_panels(panels_, w_.target.lanes, channels, k_count_, at, short_rows_);
    group_size_ = static_cast<int64_t>(one.size());
    if (packed_.empty())
      packed_ = std::move(one);
    else
      packed_.insert(packed_.end(), one.begin(), one.end());
  }
  // Makes the groups the parameter `name`.
  void store(const std::string& name, const std::string& comment);

  // In the function of a panel, behind kVectors: the lines that name the row's floats, and what mac asks for
  // ahead where `tiles` register tiles read `reads` values of k each (of them, k_count or fewer; the rest
  // comes again).
  void declare_row(int64_t tiles = 0, int64_t reads = 0);
  // The parameter, once stored.
  const std::string& name() const { return name_; }
  // Floats from one value of k to the next, as text, and the argument that tells a word of mac.h so.
  std::string row() const { return short_rows_ ? "kRow" : "kVectors * kLanes"; }
  std::string row_argument() const { return short_rows_ || half_vector_ ? ", kRow" : ""; }
  // ... and the word mac what it asks for ahead.
  std::string mac_arguments() const {
    return !asks_ahead_             ? row_argument()
           : row_argument().empty() ? ", RowOf<kVectors>(), ahead"
                                    : ", kRow, ahead";
  }
  // Floats of a group.
  int64_t group_size() const { return group_size_; }
  // Whether tiles read the weights where they are stored; else emit's panels are widened first.
  bool in_place() const { return type_ == "float"; }
  // emit_panels with these weights, those of group `group` (text; empty: there is one).
  void emit(const std::string& group = "", const LayerWriter::Turns& turns = {"0", ""});

 private:
  LayerWriter& w_;
  Panels panels_;
  int64_t k_count_, group_size_ = 0;
  bool short_rows_ = false, half_vector_ = false, asks_ahead_ = false;
  // f(the panel's weights, the place of its first channel's scale, width) for each panel of each group.
  template <class F>
  void each_panel(F f) const;
  bool store_bytes(const std::string& name, const std::string& comment);
  std::string pointer(const std::string& address, bool is_full, const std::string& group, bool counted) const;
  int64_t width(bool is_full) const;  // floats of a value of k
  std::vector<float> packed_;
  std::string name_, type_ = "float", scales_, offsets_;
};

// Whether the node is a Conv on channels-last floats with constant weights and bias, whose epilogue, if any,
// is in vectors.
bool is_float_conv(const Node&);
// A convolution's bias for `channels` channels as the parameter `bias`, zeros up to whole vectors; its name,
// empty where the node has none.
std::string padded_bias(LayerWriter& w, int64_t channels);
// The same for a row_product of `columns` columns, a Gemm's beta in it; a whole vector may be read from the
// last column on.
std::string row_bias(LayerWriter& w, int64_t columns);

}  // namespace sinter
