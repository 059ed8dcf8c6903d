// Register tiles: the multiply-accumulate loops that direct convolution, GEMM and their relatives share.
//
// The result is a grid of rows of `pixels` by `channels`. Output channels are cut into panels of `vectors`
// SIMD vectors; each panel's weights are packed as one stream [taps][in channels][vectors * lanes]. Along a
// row, pixels are cut into tiles that fill the registers.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "emit/layer.h"
#include "ops/products/row_product.h"

namespace sinter {

inline int64_t round_up(int64_t v, int64_t to) { return (v + to - 1) / to * to; }

// How `channels` output channels are cut: `full` panels of `vectors` vectors, then one of `rest` vectors
// whose last one holds `tail` channels (1..lanes).
struct Panels {
  int vectors = 1;
  int64_t full = 0;
  int rest = 0;
  int tail = 0;
};
// How a panel's weights are read: `k` values of k each (0: too few to matter), for every tile of `rows` rows
// of pixels.
struct PanelReads {
  int64_t k = 0, rows = 1;
};
Panels panels_of(const Target&, int64_t channels, int64_t pixels, const PanelReads& = {});
// Panels of at most `vectors` vectors.
Panels cut_panels(int64_t channels, int vectors, int lanes);
// Vector multiply-adds, and what else takes their time, of one input channel with those panels.
double panels_cost(const Target&, int64_t channels, int64_t pixels, const PanelReads& = {});
// Cycles of the product by register tiles, its weights with them; near: from the third level.
double plain_cycles(const RowProduct&, const Target&, bool near = false);

// Packs weights for `panels`: element (k, channel) is `at(k, channel)`; k runs over taps and input channels
// in the order of the loops. Lanes beyond the last channel are 0, or left out of the last panel's rows.
template <class At>
std::vector<float> pack_panels(const Panels& p, int lanes, int64_t channels, int64_t k_count, At at,
                               bool short_rows = false) {
  std::vector<float> out;
  out.reserve(static_cast<size_t>((p.full * p.vectors + p.rest) * lanes * k_count + lanes));
  const int64_t count = p.full + (p.rest ? 1 : 0);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = i * p.vectors * lanes, whole = int64_t{i < p.full ? p.vectors : p.rest} * lanes,
                  width = short_rows ? std::min(whole, channels - first) : whole;
    for (int64_t k = 0; k < k_count; ++k)
      for (int64_t c = 0; c < width; ++c) out.push_back(first + c < channels ? at(k, first + c) : 0.0f);
  }
  return out;
}

// Loops over tiles of `pixels` (known: equal tiles as large as registers allow; unknown: full tiles, then
// smaller ones): each writes a line `call` with {T} replaced by the tile's pixels and {x} by the first
// pixel's variable.
void emit_tiles(LayerWriter& w, const std::string& first, const std::string& end, const Dim& count, int tile,
                const std::string& variable, const std::string& call);

// How many tiles emit_tile_parts walks.
Dim tile_count(const Dim& pixels, int tile);
// The tiles [turns.first, turns.end) of `tile` pixels out of tile_count(); where that is all of them, what
// emit_tiles writes.
void emit_tile_parts(LayerWriter& w, const LayerWriter::Turns& turns, const Dim& count, int tile,
                     const std::string& variable, const std::string& call);

// Tiles over [first, end), whose count only the run knows: whole ones, then smaller ones.
void emit_tile_range(LayerWriter& w, const std::string& first, const std::string& end, int tile,
                     const std::string& variable, const std::string& call);

// Opens the function that emit_panels calls, a lambda `panel` that knows kVectors. `weights`: its last
// parameter; `last`: the type of the one before.
void open_panel(LayerWriter& w, const char* weights = "const float* wp", const char* last = "auto");

// In the function of a panel: the lines that call finish(number, Int<lanes>) for each of its vectors.
void finish_vectors(LayerWriter& w);

// The lines that call `panel(Int<vectors>, Int<lanes of the last>, channel, weights)` for every panel of
// `turns`. `pointer`: what to pass for the address of a panel's weights, a full panel's or the last one's.
using PanelPointer = std::function<std::string(const std::string& address, bool full)>;
void emit_panels(
    LayerWriter& w, const Panels& p, int64_t k_count, const std::string& weights,
    const std::string& base_channel = "0", const LayerWriter::Turns& turns = {"0", ""},
    const PanelPointer& pointer = [](const std::string& address, bool) { return address; });
// How many panels there are: the turns of emit_panels.
int64_t panel_count(const Panels&);

// Floats of a panel's weights that mac asks for ahead of their use, at each value of k, where `tiles`
// register tiles read a panel of `vectors` vectors (mac.h, Ahead): those behind the panel are what is read
// next, as NAME.weights has the layers in their order. 0: not at all.
int floats_ahead(const Target&, int vectors, int64_t tiles);

// The word of mac.h for the target's pipeline: "mac" or "mac_in_order".
std::string mac_word(const Target&);

// The sums of a tile whose `k` products come in runs. Long sums of halves are made in blocks, which are added
// up as floats; where `block` is given, blocks of so many are added up as halves (mac_half.h). Of a single
// run it is known where its blocks end.
class TileSums {
 public:
  enum class Runs { kSeveral, kOne };
  // Products that one block of halves may sum (docs/decisions/0020-half-arithmetic.md).
  static constexpr int64_t kOneBlock = 192;
  TileSums(LayerWriter& w, int64_t k, Runs runs = Runs::kSeveral, int block = 0)
      : w_(w),
        runs_(runs),
        block_(block > 0        ? block
               : k <= kInHalves ? kBlock
                                : 0),
        blocks_(w.element.is_half() && k > (block > 0 ? block : kOneBlock)) {}
  // Declares the tile `sum` of kVectors x `pixels` that starts with `bias`, a text.
  void declare(const std::string& pixels, const std::string& bias) const;
  // The call of mac_word for a run; `more`: further arguments, with commas.
  void add(const std::string& x, const std::string& pixel_stride, const std::string& weights,
           const std::string& k, const std::string& more) const;
  // Behind the last run.
  void end() const;

 private:
  static constexpr int kBlock = 128;
  static constexpr int64_t kInHalves =
      4 * kBlock;  // so few blocks lose little where they are added as halves
  LayerWriter& w_;
  Runs runs_;
  int block_;
  bool blocks_;
};

}  // namespace sinter
