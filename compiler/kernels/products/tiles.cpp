#include "kernels/products/tiles.h"

#include <algorithm>

#include "kernels/nest.h"
#include "targets/target.h"

namespace sinter {

namespace {

// Cycles, up to a factor, of one value of k in a tile of `vectors` x `pixels`.
double tile_cost(const CoreSpeed& m, double vectors, double pixels) {
  // Sums in flight hide the latency of multiply-add: at least 8 of them.
  if (!m.in_order) return std::max(vectors * pixels, 8.0) + 0.35 * (vectors + pixels);
  // Loads of weights and (four at a time) of inputs take issue slots from multiply-adds; with two vectors the
  // next weights are needed too soon after their load. Where mac_in_order does not reach, each load is whole.
  if (vectors < 2 || pixels < 4) return vectors * pixels + 2.5 * (vectors + pixels / 4) + 4;
  return vectors * pixels + 1.55 * (vectors + pixels / 4) + (vectors < 3 ? 2.5 : 0);
}

}  // namespace

namespace {
// Cycles of one value of k, times those multiply-adds that one cycle takes, where panels have `v` vectors,
// the last one what is left. Weights that don't stay in the second level come again for each tile.
double cost_of(const Target& t, const CoreSpeed& machine, int64_t vectors, int64_t pixels, int v,
               const PanelReads& reads) {
  const int64_t rows = std::max<int64_t>(pixels, 1), tile = std::min<int64_t>(t.tile(v), rows);
  const int64_t count = (rows + tile - 1) / tile;
  const auto tiles = static_cast<double>(count);
  const double bytes = 4.0 * t.lanes;  // of a vector
  const bool stays = v * bytes * static_cast<double>(reads.k) <= 0.7 * static_cast<double>(machine.l2);
  const bool again = !stays && count * reads.rows > 1;
  double cost = 0;
  for (int64_t done = 0; done < vectors; done += v) {
    const double w = static_cast<double>(std::min<int64_t>(v, vectors - done));
    const double sums = tile_cost(machine, w, static_cast<double>(pixels) / tiles) / machine.fma;
    cost += tiles * machine.fma * (again ? beside_stream(sums, w * bytes / machine.again_bytes) : sums);
  }
  return cost;
}

// The widest panels waste the fewest loads; but few pixels a row leave a wide machine's registers empty, and
// a count that does not divide leaves a narrow last panel.
std::pair<int, double> best_panels(const Target& t, int64_t channels, int64_t pixels,
                                   const PanelReads& reads) {
  const int64_t vectors = (channels + t.lanes - 1) / t.lanes;
  const CoreSpeed& machine = t.speed;
  std::pair<int, double> best{1, 1e30};
  for (int v = 1; v <= t.max_vectors && v <= vectors; ++v)
    if (const double cost = cost_of(t, machine, vectors, pixels, v, reads); cost < best.second * 0.999)
      best = {v, cost};
  return best;
}
}  // namespace

double panels_cost(const Target& t, int64_t channels, int64_t pixels, const PanelReads& reads) {
  return best_panels(t, channels, pixels, reads).second;
}

double plain_cycles(const RowProduct& p, const Target& t, bool near) {
  const CoreSpeed& m = t.speed;
  const auto k = static_cast<double>(p.k), n = static_cast<double>(p.n);
  return beside_stream(k * panels_cost(t, p.n, p.rows, {p.k}) / m.fma, stream_cycles(m, 4 * k * n, 1, near));
}

Panels cut_panels(int64_t channels, int vectors, int lanes) {
  Panels p;
  p.vectors = static_cast<int>(std::clamp<int64_t>((channels + lanes - 1) / lanes, 1, vectors));
  p.full = channels / (int64_t{p.vectors} * lanes);
  const int64_t left = channels - p.full * p.vectors * lanes;
  if (left > 0) {
    p.rest = static_cast<int>((left + lanes - 1) / lanes);
    p.tail = static_cast<int>(left - int64_t{p.rest - 1} * lanes);
  }
  return p;
}

Panels panels_of(const Target& t, int64_t channels, int64_t pixels, const PanelReads& reads) {
  return cut_panels(channels, best_panels(t, channels, pixels, reads).first, t.lanes);
}

namespace {
std::string filled(std::string call, const std::string& variable, int64_t pixels) {
  for (size_t at; (at = call.find("{T}")) != std::string::npos;) call.replace(at, 3, std::to_string(pixels));
  for (size_t at; (at = call.find("{x}")) != std::string::npos;) call.replace(at, 3, variable);
  return call;
}
}  // namespace

void emit_tiles(LayerWriter& w, const std::string& first, const std::string& end, const Dim& count, int tile,
                const std::string& v, const std::string& call) {
  auto loop = [&](int64_t pixels, const std::string& limit) {
    w.out.line("for (; {0} + {1} <= {2}; {0} += {1}) {3}", v, pixels, limit, filled(call, v, pixels));
  };
  const bool own = first != v;  // else the caller goes on where the tiles end
  if (!count.is_static()) {
    if (own) w.out.line("std::int64_t {} = {};", v, first);
    for (int64_t t = tile; t >= 1; t = t > 4 ? t / 2 : t > 1 ? 1 : 0) loop(t, end);
    return;
  }
  const int64_t n = count.value();
  if (n <= 0) return;
  const int64_t tiles = (n + tile - 1) / tile, size = n / tiles, larger = n % tiles;
  if (own && (tiles == 1 || (tiles == 2 && larger == 1))) {  // no variable at all
    w.out.line("{}", filled(call, first, size + larger));
    if (tiles == 2) w.out.line("{}", filled(call, plus(first, std::to_string(size + 1)), size));
    return;
  }
  if (own) w.out.line("std::int64_t {} = {};", v, first);
  auto turns = [&](int64_t times, int64_t pixels) {
    if (times == 1) {
      w.out.line("{}", filled(call, v, pixels));
      w.out.line("{} += {};", v, pixels);
    } else if (times > 1) {
      w.out.line("for (std::int64_t turn = 0; turn < {}; ++turn, {} += {}) {}", times, v, pixels,
                 filled(call, v, pixels));
    }
  };
  turns(larger, size + 1);
  turns(tiles - larger, size);
}

Dim tile_count(const Dim& pixels, int tile) { return ceildiv(pixels, Dim(tile)); }

void emit_tile_parts(LayerWriter& w, const LayerWriter::Turns& turns, const Dim& count, int tile,
                     const std::string& v, const std::string& call) {
  if (turns.first == "0") return emit_tiles(w, "0", w.dim(count), count, tile, v, call);
  w.include("sinter/dims.h");
  w.out.line("std::int64_t {} = {} * {};", v, turns.first, tile);
  w.out.line("const std::int64_t behind = sinter::min_of({} * {}, std::int64_t{{{}}});", turns.end, tile,
             w.dim(count));
  auto loop = [&](int64_t pixels) {
    w.out.line("for (; {0} + {1} <= behind; {0} += {1}) {2}", v, pixels, filled(call, v, pixels));
  };
  loop(tile);
  if (!count.is_static()) {
    for (int64_t t = tile / 2; t >= 1; t /= 2) loop(t);
  } else if (const int64_t rest = count.value() % tile; rest > 0) {
    w.out.line("if ({} < behind) {}", v, filled(call, v, rest));
  }
}

void emit_tile_range(LayerWriter& w, const std::string& first, const std::string& end, int tile,
                     const std::string& v, const std::string& call) {
  w.out.line("std::int64_t {} = {};", v, first);
  for (int64_t t = tile; t >= 1; t = t > 4 ? t / 2 : t > 1 ? 1 : 0)
    w.out.line("for (; {0} + {1} <= {2}; {0} += {1}) {3}", v, t, end, filled(call, v, t));
}

void finish_vectors(LayerWriter& w) {
  w.out.line("constexpr int kFull = last.value == kLanes ? kVectors : kVectors - 1;");
  w.out.line("for (std::int64_t o = 0; o < kFull; ++o) finish(o, Int<kLanes>());");
  w.out.line("if constexpr (kFull < kVectors) finish(kFull, last);");
}

void open_panel(LayerWriter& w, const char* weights, const char* last) {
  w.out.line(
      "// `vectors` vectors of output channels from c, the last one with `last` channels; wp: their weights");
  w.out.line(
      "const auto panel = [&](auto vectors, {} last, std::int64_t c, {}) __attribute__((always_inline)) {{",
      last, weights);
  w.out.line("constexpr int kVectors = vectors.value;");
}

int64_t panel_count(const Panels& p) { return p.full + (p.rest ? 1 : 0); }

void emit_panels(LayerWriter& w, const Panels& p, int64_t k_count, const std::string& weights,
                 const std::string& base, const LayerWriter::Turns& turns, const PanelPointer& pointer) {
  const int lanes = w.target.lanes;
  const int64_t width = int64_t{p.vectors} * lanes;
  const std::string each = pointer(fmt::format("{} + p * {}", weights, k_count * width), true),
                    last = pointer(fmt::format("{} + {}", weights, p.full * k_count * width), false);
  const std::string plus = base == "0" ? "" : base + " + ";
  if (turns.first != "0") {
    w.out.line("for (std::int64_t p = {}; p < {}; ++p) {{", turns.first, turns.end);
    const std::string condition = p.rest ? fmt::format("if (p < {}) ", p.full) : "";
    w.out.line("{}panel(Int<{}>(), Int<{}>(), {}p * {}, {});", condition, p.vectors, lanes, plus, width,
               each);
    if (p.rest)
      w.out.line("else panel(Int<{}>(), Int<{}>(), {}{}, {});", p.rest, p.tail, plus, p.full * width, last);
    w.out.line("}}");
    return;
  }
  if (p.full > 1)
    w.out.line("for (std::int64_t p = 0; p < {}; ++p) panel(Int<{}>(), Int<{}>(), {}p * {}, {});", p.full,
               p.vectors, lanes, plus, width, each);
  else if (p.full == 1)
    w.out.line("panel(Int<{}>(), Int<{}>(), {}, {});", p.vectors, lanes, base, pointer(weights, true));
  if (p.rest)
    w.out.line("panel(Int<{}>(), Int<{}>(), {}{}, {});", p.rest, p.tail, plus, p.full * width, last);
}

int floats_ahead(const Target& t, int vectors, int64_t tiles) {
  // Of many tiles the first one's wait is nothing; tiles of one vector have no load to spare.
  const int floats = vectors * t.lanes;
  if (!t.speed.asks_ahead || vectors < 2 || tiles > floats || tiles < 1) return 0;
  return static_cast<int>((floats + tiles - 1) / tiles);
}

std::string mac_word(const Target& t) { return t.speed.in_order ? "mac_in_order" : "mac"; }

void TileSums::declare(const std::string& pixels, const std::string& bias) const {
  w_.out.line("Tile<kVectors, {}> sum;", pixels);
  if (blocks_ && runs_ == Runs::kOne)
    w_.out.line("{} blocks[{} * kVectors * kLanes];  // their sums", block_ > 0 ? "sinter::half" : "float",
                pixels);
  else if (blocks_)
    w_.out.line("BlockSums<kVectors, {}{}> blocks;", pixels,
                block_ > 0 ? fmt::format(", {}, sinter::half", block_) : "");
  w_.out.line("tile_bias(sum, {});", bias.empty() ? "static_cast<const float*>(nullptr)" : bias);
}
void TileSums::add(const std::string& x, const std::string& pixel_stride, const std::string& weights,
                   const std::string& k, const std::string& more) const {
  const std::string arguments = fmt::format("{}, {}, {}, {}{}", x, pixel_stride, weights, k, more);
  if (blocks_ && runs_ == Runs::kOne)
    w_.out.line("const bool many = mac_blocks<{}, {}>(sum, blocks, {});", block_ > 0 ? block_ : kBlock,
                w_.target.speed.in_order, arguments);
  else if (blocks_)
    w_.out.line("mac_in_blocks<{}>(sum, blocks, {});", w_.target.speed.in_order, arguments);
  else
    w_.out.line("{}(sum, {});", mac_word(w_.target), arguments);
}
void TileSums::end() const {
  if (!blocks_) return;
  if (runs_ == Runs::kOne)
    w_.out.line("if (many) end_blocks<{}>(sum, blocks);", w_.target.speed.in_order);
  else
    w_.out.put("blocks.end(sum);");
}

}  // namespace sinter
