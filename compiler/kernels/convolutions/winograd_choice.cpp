// The model of cycles behind winograd_choice.h. For each tile that is allowed, groups of tiles or positions
// outermost (kernels/convolutions/conv_winograd.cpp). What errs by more than usual, up to kMaxWinogradError,
// has to be worth it (Candidate::margin).
#include "kernels/convolutions/winograd_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/products/tiles.h"
#include "targets/target.h"

namespace sinter {

WinogradLayer winograd_layer(const Node& n) {
  const Tensor& w = *n.inputs[1]->data;
  const Window plane = winograd_plane(n);
  const auto axis = [&](size_t a) {
    return WinogradAxis{0, static_cast<int>(plane.kernel[a]), static_cast<int>(plane.strides[a])};
  };
  return {w.dim(1), w.dim(0), axis(0), axis(1), w.as<float>()};
}

Window winograd_plane(const Node& n) {
  Window w = window_of(n);
  if (w.rank() == 2) return w;
  for (auto* of : {&w.kernel, &w.strides, &w.dilations}) of->insert(of->begin(), 1);
  for (auto* of : {&w.pads_begin, &w.pads_end}) of->insert(of->begin(), Dim(0));
  for (auto* of : {&w.in, &w.out}) of->insert(of->begin(), Dim(1));
  return w;
}

int64_t winograd_pitch(const WinogradLayer& l, const Target& t) { return round_up(l.in, t.lanes); }

double winograd_stream(const WeightDecision& w, const CoreSpeed& m, double weight_bytes, double passes,
                       int threads) {
  if (threads > 1 && w.stay) return weight_bytes * passes / m.again_bytes;
  return stream_cycles(m, weight_bytes, passes, w.near);
}

int64_t most_winograd(const Node& n, const Decision& d) {
  return d.winograd.allowed ? n.freedom.winograd : 0;
}

int64_t likely_extent(const Dim& d) { return d.is_static() ? d.value() : std::min<int64_t>(d.hi(), 64); }

double winograd_arithmetic(const WinogradAxis& axis) {
  constexpr double kSorting = 2.1;
  const double each = axis.even() == 8 ? 3.8 : axis.even() == 1 ? 0.0 : 2.0;
  if (!axis.has_phases()) return each;
  const double share = static_cast<double>(axis.even()) / static_cast<double>(axis.positions());
  return kSorting + (axis.has_one_odd_tap() ? each * share : each);
}

namespace {

// Of the layer's largest output. Six positions make 1e-6 to 3e-6, eight 3e-6 to 1e-5: they must be worth
// that.
constexpr double kUsualError = 3e-6;
// Sums of few products round little themselves: what Winograd adds must be as small, or it is most of a
// shallow net's error.
constexpr int64_t kFewProducts = 144;  // 3 x 3 taps of 16 channels
constexpr double kErrorOfFew = 1e-6;
constexpr double kWorth = 1.06;  // times as fast as with six, or as what errs no more than usual

// How many tiles cover the picture.
int64_t tiles_in(const Window& w, const WinogradTile& tile) {
  const int64_t rows = tile.down.outputs, columns = tile.along.outputs;
  return (round_up(likely_extent(w.out[0]), rows) / rows) *
         (round_up(likely_extent(w.out[1]), columns) / columns);
}

// Tiles of a group: V and one panel's sums in most of the second-level cache and in what the arena allows,
// the groups of equal size, whole register tiles or, where that is too much, a single smaller one; 0 where
// too few sums would be in flight then.
int64_t group_of(const Node& n, const Context& context, const WinogradTile& shape, int64_t tiles,
                 const Panels& panels, int threads) {
  const Target& t = context.target;
  constexpr int64_t kInFlight = 8;
  const WinogradLayer l = winograd_layer(n);
  const int64_t positions = shape.positions(), tile = t.tile(panels.vectors);
  const int64_t each =
      positions * t.element_bytes() * (winograd_pitch(l, t) + int64_t{panels.vectors} * t.lanes);
  const int64_t spare = 2 * positions * 64;  // between planes
  const int64_t allowed = (context.of(n).winograd.bytes - spare) / each;
  if (allowed < tile) return allowed * panels.vectors >= kInFlight ? allowed : 0;
  const int64_t most =
      std::min(std::max<int64_t>(t.speed.work_bytes(threads) / each, tile), allowed / tile * tile);
  const int64_t groups = (tiles + most - 1) / most;
  return round_up((tiles + groups - 1) / groups, tile);
}

// Whether positions can be outermost: scratch for the inputs and sums of all tiles, and those of one position
// in the first-level cache.
bool fits_by_positions(const Node& n, const Context& context, const WinogradTile& shape) {
  const Target& t = context.target;
  const WinogradLayer l = winograd_layer(n);
  const CoreSpeed& m = t.speed;
  const Window w = winograd_plane(n);
  if (!w.out[0].is_static() || !w.out[1].is_static()) return false;
  const int64_t tiles = tiles_in(w, shape);
  const int64_t each = t.element_bytes() * tiles, in = each * winograd_pitch(l, t),
                out = each * round_up(l.out, t.lanes);
  return in <= m.l1 && shape.positions() * out <= 2 * m.l2 &&
         shape.positions() * (in + out + 128) <= context.of(n).winograd.bytes;
}

// For each of some threads: groups are shared, each thread reading all weights; or positions and then tiles,
// each reading what the others have written.
WinogradChoice modelled(const Node& n, const Context& context, const WinogradTile& tile, bool by_positions,
                        int threads = 1, bool when_used = false) {
  const Target& t = context.target;
  const WinogradLayer l = winograd_layer(n);
  const CoreSpeed& machine = t.speed;
  const int64_t all = tiles_in(winograd_plane(n), tile), share = (all + threads - 1) / threads,
                tiles = by_positions ? all : share;
  const Panels panels = panels_of(t, l.out, std::min<int64_t>(tiles, 64));
  WinogradChoice c{tile, by_positions ? tiles : group_of(n, context, tile, tiles, panels, threads),
                   by_positions, when_used};
  if (c.group == 0) return {tile, 0, false, false, std::numeric_limits<double>::infinity()};
  const double positions = static_cast<double>(tile.positions()) / (by_positions ? threads : 1);
  const double in = std::ceil(static_cast<double>(l.in) / t.lanes),
               out = std::ceil(static_cast<double>(l.out) / t.lanes);
  const double groups = std::ceil(static_cast<double>(tiles) / static_cast<double>(c.group));
  // A tile with few pixels has more loads beside its sums.
  const double pixels = std::min<double>(static_cast<double>(tiles), t.tile(panels.vectors));
  const double density = when_used ? 1 + 1.75 / static_cast<double>(tiles)
                                   : 1 + 0.3 * (1 / pixels + 1 / static_cast<double>(panels.vectors)) * 0.5;
  const double sums =
      positions * static_cast<double>(tiles) * static_cast<double>(l.in) * out * density / machine.fma;
  const double matrices = static_cast<double>(tile.matrices()) / static_cast<double>(tile.positions());
  const double bytes = t.element_bytes();
  const double weights =
      positions * (when_used ? 0.25 : matrices) * static_cast<double>(l.in) * out * t.lanes * bytes;
  // Bytes of all inputs, of one panel's weights, and of all sums.
  const double inputs = bytes * positions * static_cast<double>(tiles * winograd_pitch(l, t)),
               panel = weights / out * panels.vectors,
               outputs = bytes * positions * static_cast<double>(tiles) * out * t.lanes;
  // Of its positions' inputs and its tiles' sums a thread has made its share itself.
  const double exchanged = (inputs + bytes * static_cast<double>(tile.positions() * share) * out * t.lanes) *
                           (threads - 1) / threads;
  const auto l2 = static_cast<double>(machine.l2);
  double stream = winograd_stream(context.of(n).weights, machine, weights, groups, threads);
  if (by_positions)
    stream += 2 * outputs / (inputs + outputs > l2 ? machine.again_bytes : machine.l2_bytes) +
              exchanged / machine.other_core_bytes();
  else if (inputs / groups + panel > l2)
    stream += inputs * static_cast<double>(panel_count(panels)) / machine.again_bytes;
  const double transform = (4 + winograd_arithmetic(tile.down) + winograd_arithmetic(tile.along)) *
                           static_cast<double>(tile.positions());
  const double transforms = static_cast<double>(share) * (in + out * 0.9) * transform / machine.ops;
  c.weight_bytes = weights;
  c.cycles = beside_stream(sums, stream) + transforms;
  return c;
}

// Whether 6 x 6 positions can have their weights transformed when they are used: the sums of a column of all
// tiles in the registers, by words that multiply by an element of memory.
bool may_transform_when_used(const Node& n, const Target& t, const WinogradTile& tile) {
  constexpr int64_t kMostTiles = 4;
  const auto has_six = [](const WinogradAxis& a) {
    return a.taps == 3 && a.stride == 1 && a.positions() == 6;
  };
  return std::string_view(t.isa) == "avx512" && has_six(tile.down) && has_six(tile.along) &&
         tiles_in(winograd_plane(n), tile) <= kMostTiles;
}

// The tiles of at most so many outputs along an axis, squares and those with eight positions along one axis
// and six along the other; of a line's, along it. What was measured (plan/tuning.h) names a square or a line.
// Eight positions are too coarse in halves.
std::vector<WinogradTile> tiles_of(const Node& n, const Decision& d, const Target& t) {
  const WinogradLayer l = winograd_layer(n);
  const int64_t most = most_winograd(n, d), tuned = d.winograd.tile;
  const bool is_line = l.down.taps == 1 || l.along.taps == 1;
  std::vector<WinogradTile> tiles;
  const auto add = [&](int height, int width) {
    WinogradTile tile{l.down, l.along};
    tile.down.outputs = static_cast<int>(winograd_outputs(l.down.taps, l.down.stride, height));
    tile.along.outputs = static_cast<int>(winograd_outputs(l.along.taps, l.along.stride, width));
    const int more = std::max(tile.down.outputs, tile.along.outputs),
              less = is_line ? more : std::min(tile.down.outputs, tile.along.outputs);
    if (less < 2 || more > most || (t.of_halves && tile.most_positions() > 6)) return;
    if (tuned == 0 || (height == width && tuned == more)) tiles.push_back(tile);
  };
  for (const int n : {8, 6, 4}) add(n, n);
  if (is_line) return tiles;
  add(6, 8);
  add(8, 6);
  return tiles;
}

}  // namespace

namespace {
// What its error depends on beside the weights.
std::string text_of(const WinogradChoice& c) {
  const auto axis = [](const WinogradAxis& a) {
    return fmt::format("{} {} {}", a.outputs, a.taps, a.stride);
  };
  return fmt::format("winograd {} x {}{}{}", axis(c.tile.down), axis(c.tile.along),
                     c.when_used ? " used" : "", c.block > 0 ? fmt::format(" halves of {}", c.block) : "");
}

double error_of(const WinogradLayer& l, const Context& context, const WinogradChoice& c) {
  return context.decisions.error(l.weight, text_of(c), [&] {
    return winograd_error(l.weight, l.out, l.in, c.tile, c.when_used, c.block);
  });
}

// Sums halves in the longest blocks whose error is small enough, if there are any. Of longer ones that has to
// be well below the limit: it is measured on some channels and tiles, and others are up to a third worse.
bool is_fine_in_halves(const WinogradLayer& l, const Context& context, WinogradChoice& c) {
  for (c.block = l.in > 64 ? 128 : 64; c.block >= 32; c.block /= 2) {
    c.error = error_of(l, context, c);
    if (c.error <= (c.block > 32 ? 0.75 : 1) * kMaxWinogradErrorOfHalves) return true;
  }
  return false;
}

std::string way_text(const WinogradChoice& c) {
  return fmt::format("{} x {} outputs, {}", c.tile.down.outputs, c.tile.along.outputs,
                     c.when_used      ? "weights transformed when used"
                     : c.by_positions ? "positions outermost"
                                      : fmt::format("groups of {} tiles", c.group));
}

// What gains little beside tile matrices is theirs where up to four times as many weights would come from
// memory.
Candidate candidate(const Node& n, const Context& context, const WinogradChoice& c) {
  constexpr double kTiles = 0.8;
  const bool is_far = c.weight_bytes > static_cast<double>(context.target.speed.l2);
  Candidate way{.way = c, .text = way_text(c), .cycles = c.cycles, .measured = false};
  way.weight_bytes = static_cast<int64_t>(c.weight_bytes);
  way.margin = c.tile.most_positions() == 8 ? kWorth : 1;
  if (is_far && n.freedom.tile_matrices && context.of(n).tile_matrices.allowed) way.margin = 1 / kTiles;
  way.tuned = context.of(n).winograd.tile != 0;
  if (c.group == 0) way.why_not = "its scratch has no room in the arena's budget";
  return way;
}
}  // namespace

double direct_cycles(const Node& n, const Context& context, double share) {
  const Target& t = context.target;
  const WinogradLayer l = winograd_layer(n);
  const CoreSpeed& machine = t.speed;
  const Window w = winograd_plane(n);
  const double pixels = static_cast<double>(likely_extent(w.out[0]) * likely_extent(w.out[1]));
  const double out = std::ceil(static_cast<double>(l.out) / t.lanes);
  const double taps = static_cast<double>(l.taps()) * share;
  const double sums = taps * pixels * static_cast<double>(l.in) * out * 1.1 / machine.fma;
  const double weights = taps * static_cast<double>(l.in) * out * t.lanes * t.element_bytes();
  return beside_stream(sums, stream_cycles(machine, weights, 1, context.of(n).weights.near));
}

std::vector<Candidate> winograd_ways(const Node& n, const Context& context) {
  std::vector<Candidate> ways;
  const auto add = [&](const WinogradChoice& c) { ways.push_back(candidate(n, context, c)); };
  for (const WinogradTile& tile : tiles_of(n, context.of(n), context.target)) {
    add(modelled(n, context, tile, false));
    if (!fits_by_positions(n, context, tile)) continue;
    add(modelled(n, context, tile, true));
    if (may_transform_when_used(n, context.target, tile)) add(modelled(n, context, tile, true, 1, true));
  }
  return ways;
}

void measure_winograd(const Node& n, const Context& context, Candidate& c) {
  auto choice = std::any_cast<WinogradChoice>(c.way);
  const WinogradLayer l = winograd_layer(n);
  const bool few = l.taps() * l.in <= kFewProducts;
  bool fine = false;
  if (context.target.of_halves) {
    fine = is_fine_in_halves(l, context, choice);
  } else {
    choice.error = error_of(l, context, choice);
    fine = choice.error <= (few ? kErrorOfFew : kMaxWinogradError);
    if (choice.error > kUsualError) c.margin = std::max(c.margin, kWorth);
  }
  c.error = choice.error;
  c.way = choice;
  if (!fine) c.forbid_error();
}

WinogradChoice share_winograd(const Node& n, const Context& context, WinogradChoice c, int threads) {
  if (threads == 1 || c.when_used) return c;
  if (!c.by_positions) {
    const int64_t tiles = tiles_in(winograd_plane(n), c.tile);
    c.group =
        group_of(n, context, c.tile, tiles,
                 panels_of(context.target, winograd_layer(n).out, std::min<int64_t>(tiles, 64)), threads);
    return c;
  }
  const WinogradChoice groups = modelled(n, context, c.tile, false, threads),
                       positions = modelled(n, context, c.tile, true, threads);
  if (groups.cycles > positions.cycles) return c;
  c.by_positions = false;
  c.group = groups.group;
  return c;
}

}  // namespace sinter
