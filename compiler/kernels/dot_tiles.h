// What the kernels of products of bytes share (conv_dot.cpp, conv_dot_depthwise.cpp): packed constants, and
// what becomes of a tile of sums.
//
// The words are those of runtime/sinter/dot.h.
#pragma once
#include <string>
#include <vector>

#include "kernels/integer.h"
#include "kernels/tiles.h"

namespace sinter {

// What is to be taken off every x as the instruction sees it: the zero point, and what flipping its sign
// adds.
int64_t offset_of(const Node& n, const Target& t);

// Pixels of a register tile beside `vectors` output vectors. On NEON fewer than Target::tile: four values of
// k of each pixel take a register, and the constants that round the results want some too.
int dot_tile(const Target& t, int vectors);

// No sum of products of n's operands exceeds this, whatever x holds. `out`: the axis of the weights that
// counts the output channels.
double most_of(const Node& n, size_t out);

// Weights [groups][columns][runs][run] by `at(group, column, run, i)` in panels, four i at a time.
template <class At>
std::string pack_quads(LayerWriter& w, const Panels& p, int64_t groups, int64_t columns, int64_t runs,
                       int64_t run, const std::string& shape, At at) {
  const int64_t lanes = w.target.lanes, panels = p.full + (p.rest ? 1 : 0);
  std::vector<int8_t> out;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < panels; ++i)
      for (int64_t r = 0; r < runs; ++r)
        for (int64_t k = 0; k < run; k += 4)
          for (int64_t e = 0; e < (i < p.full ? p.vectors : p.rest) * lanes * 4; ++e) {
            const int64_t c = i * p.vectors * lanes + e / 4, j = k + e % 4;
            out.push_back(c < columns && j < run ? at(g, c, r, j) : int8_t{0});
          }
  return w.weights("w", "std::int8_t", out.data(), out.size(),
                   fmt::format("{}, fours in panels of {}", shape, p.vectors * lanes));
}

// int32 [groups][padded] by `at(output channel)`.
template <class At>
std::vector<int32_t> for_channels(int64_t groups, int64_t columns, int64_t padded, At at) {
  std::vector<int32_t> v(static_cast<size_t>(groups * padded), 0);
  for (int64_t m = 0; m < groups * columns; ++m)
    v[static_cast<size_t>(m / columns * padded + m % columns)] = static_cast<int32_t>(at(m));
  return v;
}

// Words of 32 bits among the weights.
std::string words(LayerWriter& w, const std::string& name, const std::vector<int32_t>& v,
                  const std::string& comment);

// What the sums of a layer become, and how they are written down until then.
class Sums {
 public:
  // `most`: what no sum exceeds.
  Sums(const LayerWriter& w, const Epilogue& e, double most)
      : epilogue_(e),
        most_(most),
        small_(w.target.isa == std::string_view("neon") && most < 4194304 && (e.bytes() || e.has_lanes())) {}

  // To be added to the biases.
  int64_t shift() const { return small_ ? kSmallSum : 0; }
  std::string text(const std::string& sum) const { return small_ ? "small_sums(" + sum + ")" : sum; }
  std::string range() const {
    const ByteSteps& b = *epilogue_.bytes();
    return fmt::format("{{{}, {}, {}, {}}}", b.zero, b.low, b.high,
                       epilogue_.most_steps(most_) < 32000 ? "true" : "false");
  }
  const Epilogue& epilogue() const { return epilogue_; }

 private:
  static constexpr int64_t kSmallSum = 0x4b400000;  // as in runtime/sinter/dot.h
  const Epilogue& epilogue_;
  double most_;
  bool small_;
};

// Finishes and stores the tile `sum` of kVectors by kPixels sums. `index(pixel, channel)`: the texts of an
// element's index; `to(pixel)`: the address of channel c.
using IndexText =
    std::function<std::vector<std::string>(const std::string& pixel, const std::string& channel)>;
using AddressText = std::function<std::string(const std::string& pixel)>;
void store_tile(LayerWriter& w, const Sums& sums, const std::string& channel, const IndexText& index,
                const AddressText& to);

constexpr const char* kByteWeights = "const std::int8_t* wp";  // for open_panel

}  // namespace sinter
