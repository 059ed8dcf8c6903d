// How products on tile matrices are cut, so that what meets in a tile comes from near.
//
// Cuts of k: the parts of 32 columns' weights are 6 KB a block of k. Up to a dozen blocks stay in the
// first-level cache beside what streams through it, and a panel's products then take 150 ns a block of two
// tiles; 72 blocks come from the second level again for each two tiles, and take 300 (measured on a Xeon 6,
// [196, 2304] x [2304, 256]). A cut costs that sums are stored and taken again, so that less than some five
// blocks are not worth it.
//
// Groups of rows: a group's parts of two cuts (those of the next one are split beside the products of this
// one) and its sums stay in the second-level cache. Each group splits all weights, which hides beside the
// products of eight tiles or more.
#include "kernels/products/amx.h"

#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/products/tiles.h"
#include "ops/op.h"
#include "sinter/dims.h"
#include "targets/target.h"

namespace sinter {

int64_t amx_blocks(int64_t k) { return ceil_div(k, kAmxDepth); }

namespace {

constexpr int64_t kTileRows = 16;  // at most

int64_t row_bytes(const RowProduct& p) { return amx_blocks(p.k) * 3 * kAmxDepth * 2; }

// All weights at once beside short groups of many rows, if their parts stay near enough to be read again.
std::optional<AmxChoice> cut_once(const RowProduct& p, int64_t limit) {
  constexpr int64_t kStays = 256 << 10, kMany = 40;  // bytes, tiles of rows
  const int64_t count = ceil_div(p.rows, kTileRows), columns = round_up(p.n, 32);
  AmxChoice c{};
  c.once = true;
  c.tile = ceil_div(p.rows, count);
  if (columns * row_bytes(p) > kStays || count < kMany || (columns + 8 * c.tile) * row_bytes(p) > limit)
    return std::nullopt;
  c.tiles = ceil_div(count, ceil_div(count, 4));
  c.tiles += c.tiles % 2;
  c.groups = ceil_div(count, c.tiles);
  return c;
}

// Bytes of the sums that a group keeps between cuts.
int64_t kept_bytes(const RowProduct& p, const AmxChoice& c) {
  return c.cuts > 1 ? c.rows() * round_up(p.n, 32) * int64_t{sizeof(float)} : 0;
}
// ... and of the parts of its rows and of two panels.
int64_t group_bytes(const RowProduct& p, const AmxChoice& c) {
  return (64 + c.rows() * (c.cuts > 1 ? 2 : 1)) * row_bytes(p) / c.cuts + kept_bytes(p, c);
}

// Into how many cuts `blocks` of k should be divided evenly.
int64_t best_cuts(int64_t blocks) {
  constexpr int64_t kLeast = 5, kMost = 12;
  if (blocks <= kMost) return 1;
  for (int64_t size = kMost; size >= kLeast; --size)
    if (blocks % size == 0) return blocks / size;
  int64_t size = kMost + 1;
  while (blocks % size != 0) ++size;
  return blocks / size;
}

// Few groups, as each splits all weights, but none of too few tiles for that unless the cache has no room.
std::optional<AmxChoice> cut_groups(const RowProduct& p, int64_t limit) {
  constexpr int64_t kHides = 8;         // tiles beside whose products weights are split
  constexpr int64_t kKept = 512 << 10;  // bytes; more pass through the cache with each cut than cuts save
  const int64_t count = ceil_div(p.rows, kTileRows), blocks = amx_blocks(p.k);
  AmxChoice c{};
  c.tile = ceil_div(p.rows, count);
  const auto in_groups = [&](int64_t groups) {
    c.tiles = ceil_div(count, groups);
    if (groups > 1) c.tiles += c.tiles % 2;
    c.groups = ceil_div(count, c.tiles);
  };
  c.cuts = best_cuts(blocks);
  in_groups(1);
  if (kept_bytes(p, c) > kKept) c.cuts = 1;
  for (int64_t groups = 1; groups <= count; ++groups) {
    in_groups(groups);
    if (groups > 1 && c.tiles < kHides) break;
    if (group_bytes(p, c) <= limit) return c;
  }
  for (int64_t groups = 1; groups <= count; ++groups) {
    in_groups(groups);
    for (c.cuts = 1; c.cuts <= blocks; ++c.cuts)
      if (blocks % c.cuts == 0 && group_bytes(p, c) <= limit) return c;
  }
  return std::nullopt;
}

// Cycles of the parts' products: 16 of a tile of 16 rows at the clock that they leave, which is a third below
// the one of vectors (measured on a Xeon 6: 6.2 ns instead of 4.4 with random operands), and a tenth for
// operands from the second-level cache. The vectors' work goes beside it, but for some of it.
double cycles_of(const RowProduct& p, const Target& t, const AmxChoice& c) {
  const CoreSpeed& m = t.speed;
  constexpr double kRow = 1.6, kLeastRows = 9, kStore = 6, kSplit = 9, kBeside = 0.3;
  const auto blocks = static_cast<double>(amx_blocks(p.k)), rows = static_cast<double>(p.rows);
  const int64_t vectors = ceil_div(p.n, t.lanes);
  const auto columns = static_cast<double>(vectors),
             tiles = static_cast<double>(c.groups * c.tiles) * columns;
  const double sums = tiles * blocks * 6 * kRow * std::max(kLeastRows, static_cast<double>(c.tile));
  const double finish = rows * columns * kStore;
  const double split =
      blocks * kSplit * (rows + (c.once ? 1.0 : static_cast<double>(c.groups)) * 16 * columns);
  const double kept = static_cast<double>(c.cuts - 1) * tiles * 2 * 16;
  return beside_stream(sums, stream_cycles(m, 4 * static_cast<double>(p.k * p.n), 1)) +
         kBeside * (finish + split) + kept;
}

}  // namespace

// The rows and k are cut as the target's cache and the node's scratch have it.
std::optional<AmxChoice> choose_amx(const Node& n, const Context& context) {
  const Target& t = context.target;
  const Limit& allowed = context.of(n).tile_matrices;
  if (!t.features.tile_matrices || !n.freedom.tile_matrices || !allowed.allowed ||
      !context.decisions.is_whole(n))
    return std::nullopt;
  const auto p = amx_product(n);
  if (!p || (n.epilogue && !has_vector_text(*n.epilogue))) return std::nullopt;
  const int64_t limit = std::min(t.speed.l2 * 3 / 4, allowed.bytes);
  const auto once = cut_once(*p, limit);
  return once ? once : cut_groups(*p, limit);
}

std::vector<Candidate> amx_ways(const Node& n, const Context& context) {
  const auto c = choose_amx(n, context);
  if (!c) return {};
  const RowProduct p = *amx_product(n);
  return {{.way = *c,
           .text = fmt::format("{} groups of {} tiles, k in {}", c->groups, c->tiles, c->cuts),
           .cycles = cycles_of(p, context.target, *c),
           .weight_bytes = p.k * p.n * 4,
           .tuned = context.of(n).tile_matrices.tuned}};
}

}  // namespace sinter
