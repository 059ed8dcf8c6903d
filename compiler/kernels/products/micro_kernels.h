// Micro-kernels: the words that add products of runs to a register tile, one row of a table each.
//
// A row says what its elements are, how many values of k its instruction takes at once, how large its tile
// is, and how its weights lie; the loops around it (row_source.h) and what becomes of the sums
// (finish_tile.h) are the same for all of them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "kernels/products/tiles.h"

namespace sinter {

// How the rows tell targets apart.
bool is_x86(const Target&);
bool is_neon_without_dots(const Target&);

struct MicroKernel {
  // How the weights of a panel lie for `k` values of k at once: [channel][k], or in each vector [k][lane] or
  // [2][lane][2], where k 0 and 2 come first.
  enum class Order { kChannels, kLanes, kEvenOdd };
  // The sign that bytes of x must have, or their top bit is flipped: -128 or 128 is added to them.
  enum class Sign { kEither, kSigned, kUnsigned };

  const char* name;
  DType weights;       // x has the same type; kI8: bytes of either sign
  const char* header;  // of the runtime
  const char* word;    // word(sum, x, pixel stride, weights, k)
  int k;               // at once; runs of weights are padded to whole ones
  Order order;
  Sign sign;
  bool lowest;                              // whether weights may be the least of their type, -128
  int (*tile)(const Target&, int vectors);  // pixels beside so many output vectors
  bool (*needs)(const Target&);

  // Of element e of a panel's weights for k values of k: its channel in the panel, and which of the k.
  std::pair<int64_t, int64_t> place(int64_t e, int64_t lanes) const;
};

// The first row for such weights that the target has, of at most `most` values of k at once. `lowest`: bytes
// that may be -128.
const MicroKernel& micro_kernel(const Target&, DType weights, bool lowest = true, int most = 16);

// How the kernel's output channels are cut beside rows of `pixels` pixels: as panels_of of tiles.h, but where
// its words are known to take other times than those of floats.
Panels panels_of(const MicroKernel&, const Target&, int64_t channels, int64_t pixels);

// Weights [groups][columns][runs][run] by `at(group, column, run, i)` in panels, as the micro-kernel reads
// them; zeros behind the last column and the last i.
template <class T, class At>
std::string pack_runs(LayerWriter& w, const MicroKernel& m, const Panels& p, int64_t groups, int64_t columns,
                      int64_t runs, int64_t run, const std::string& shape, At at) {
  const int64_t lanes = w.target.lanes;
  std::vector<T> out;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < panel_count(p); ++i)
      for (int64_t r = 0; r < runs; ++r)
        for (int64_t k = 0; k < run; k += m.k)
          for (int64_t e = 0; e < (i < p.full ? p.vectors : p.rest) * lanes * m.k; ++e) {
            const auto [lane, value] = m.place(e, lanes);
            const int64_t j = k + value, c = i * p.vectors * lanes + lane;
            out.push_back(c < columns && j < run ? at(g, c, r, j) : T{0});
          }
  return w.weights("w", std::string(cpp_name(m.weights)), out.data(), out.size() * sizeof(T),
                   fmt::format("{}, {} at once in panels of {}", shape, m.k, p.vectors * lanes));
}
// Elements of a panel's weights for each of its channels.
inline int64_t packed_run(const MicroKernel& m, int64_t runs, int64_t run) {
  return runs * round_up(run, m.k);
}

}  // namespace sinter
