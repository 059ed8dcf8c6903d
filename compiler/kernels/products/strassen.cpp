// The choice of Strassen's product, its weights and its error. As with Winograd's filtering the error is
// measured: with the layer's own weights on a sample of its columns, in the arithmetic of the generated code.
#include "kernels/products/strassen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "emit/expr_text.h"
#include "kernels/products/tiles.h"
#include "targets/target.h"

namespace sinter {
namespace {

constexpr double kMaxError[] = {0, 3e-6, 1e-5};  // of the layer's largest output, by levels

double strassen_cycles(const RowProduct& p, const Target& t, const StrassenChoice& c, bool near) {
  const CoreSpeed& m = t.speed;
  const int side = 1 << c.levels;
  const int64_t depth = p.k / side, columns = p.n / side;
  const double k = static_cast<double>(depth), n = static_cast<double>(columns), lanes = t.lanes;
  const int64_t repeats = c.levels == 1 ? c.groups : 1;
  const double rows = static_cast<double>(repeats * (c.levels == 1 ? c.height : c.quarter));
  const double products = c.levels == 1 ? 7 : 49;
  // With the second level, seven times as much of each sixteenth. The first level's own share is in that: its
  // sums are made and its results added while they are in registers for the second.
  const double more = c.levels == 1 ? 1 : 7;
  const double sums = products * k * static_cast<double>(repeats) *
                      panels_cost(t, p.n / side, c.levels == 1 ? c.height : c.quarter) / m.fma;
  // Of a vector of each quarter of x: what is loaded, added and stored, and 8 vectors' way to the cache
  // behind the first. Of one of the result's: the sums that are kept, and the loops of seven products.
  const double quarters = more * rows * k / lanes * (12 / m.ops + 32 * lanes / m.l2_bytes);
  const double kept = more * rows * n / lanes * 48 / m.ops;
  const double passes = static_cast<double>(c.levels == 1 ? c.groups : c.pieces);
  return beside_stream(sums, stream_cycles(m, 4 * products * k * n, passes, near)) + quarters + kept;
}

// Bytes that the layer's sums may take: half the second-level cache, no more in the largest, and what the
// arena allows.
int64_t scratch_limit(const StrassenLimit& limit, const Target& t) {
  constexpr int64_t kMost = 512 << 10;
  return std::min({t.speed.l2 / 2, kMost, limit.bytes});
}

std::optional<StrassenChoice> one_level(const StrassenLimit& limit, const RowProduct& p, const Target& t) {
  StrassenChoice c{};
  c.levels = 1;
  // Where weights come from far behind the caches, they cost more than what is kept.
  c.by_products = t.speed.asks_ahead;
  // The rows' sums take half the cache at most, and with the products that a panel keeps what the arena
  // allows.
  const int64_t vectors = std::min<int64_t>(t.max_vectors, (p.n / 2 + t.lanes - 1) / t.lanes);
  const int64_t kept = c.by_products ? 4 * vectors * t.lanes : 0;
  const int64_t most = std::min(t.speed.l2 / 2 / (4 * p.k), limit.bytes / (4 * p.k + kept)) - 1;
  if (most < 2) return std::nullopt;
  c.groups = (p.rows + most - 1) / most;
  c.rows = p.rows / c.groups;
  c.larger = p.rows % c.groups;
  c.height = (c.rows + (c.larger > 0 ? 1 : 0) + 1) / 2;
  if (c.rows < 2) return std::nullopt;
  return c;
}

std::optional<StrassenChoice> two_levels(const Node& n, const StrassenLimit& limit, const RowProduct& p,
                                         const Target& t) {
  if (!may_use_strassen_twice(n)) return std::nullopt;
  StrassenChoice c{};
  c.levels = 2;
  c.groups = 1;
  c.rows = p.rows;
  c.height = (p.rows + 1) / 2;
  c.quarter = (c.height + 1) / 2;
  const StrassenTiles tiles = strassen_tiles(p, t, c);
  c.pieces = 1;
  while (c.pieces < tiles.count && 4 * tiles.floats(p, c.pieces) > scratch_limit(limit, t)) ++c.pieces;
  if (4 * tiles.floats(p, c.pieces) > scratch_limit(limit, t)) return std::nullopt;
  return c;
}

}  // namespace

StrassenTiles strassen_tiles(const RowProduct& p, const Target& t, const StrassenChoice& c) {
  StrassenTiles tiles;
  // Of four vectors a tile has so few rows that what is kept of it takes longer than the loads it saves.
  const int64_t vectors = (p.n / 4 + t.lanes - 1) / t.lanes;
  const int widest = panels_of(t, p.n / 4, c.quarter).vectors;
  tiles.panels = cut_panels(p.n / 4, widest < 4 ? widest : vectors % 3 == 1 ? 2 : 3, t.lanes);
  // Tiles of one size, if they are hardly smaller for it, are half the code.
  const int most = t.tile(tiles.panels.vectors);
  const int64_t fewest = (c.quarter + most - 1) / most;
  int64_t count = fewest;
  while (c.quarter % count != 0 && 8 * count <= 9 * fewest) ++count;
  tiles.cut(c.quarter, c.quarter % count == 0 ? count : fewest);
  tiles.width = int64_t{tiles.panels.vectors} * t.lanes;
  tiles.columns = (tiles.panels.full * tiles.panels.vectors + tiles.panels.rest) * t.lanes;
  return tiles;
}

// The sums of the first level and of the second, and what the second one keeps. What the first one keeps lies
// in the result, but for the rows that two parts of it have.
int64_t StrassenTiles::floats(const RowProduct& p, int64_t pieces) const {
  return most_rows(pieces) * 2 * (p.k + width) + 8 * columns;
}

// The weights of seven products do not stay in the first-level cache beside a register tile's rows; cores
// that execute in order wait for them, and nothing is gained.
bool may_choose_strassen(const Node& n, const Context& context) {
  const StrassenLimit& limit = context.of(n).strassen;
  return n.freedom.strassen && limit.allowed && context.decisions.is_whole(n) && may_use_strassen(n) &&
         (!n.epilogue || has_vector_text(*n.epilogue)) && (limit.tuned || !context.target.speed.in_order);
}

// Two levels only where weights are asked for ahead: they are three times the layer's.
std::vector<Candidate> strassen_ways(const Node& n, const Context& context) {
  constexpr double kMargin = 1 / 0.97;
  const Target& t = context.target;
  const StrassenLimit& limit = context.of(n).strassen;
  const RowProduct p = *row_product(n);
  std::vector<Candidate> ways;
  for (const bool twice : {true, false}) {
    const auto c = twice ? two_levels(n, limit, p, t) : one_level(limit, p, t);
    if (!c || c->levels > limit.levels) continue;
    if (twice && !limit.tuned && !t.speed.asks_ahead) continue;
    if (limit.tuned && !ways.empty()) continue;  // as many levels as was measured
    ways.push_back({.way = *c,
                    .text = twice ? "two levels" : "one level",
                    .cycles = strassen_cycles(p, t, *c, context.of(n).weights.near),
                    .weight_bytes = p.k * p.n * 4 / 16 * (twice ? 49 : 28),
                    .margin = kMargin,
                    .tuned = limit.tuned,
                    .measured = false});
  }
  return ways;
}

void measure_strassen(const Node& n, const Context& context, Candidate& c) {
  auto choice = std::any_cast<StrassenChoice>(c.way);
  const RowProduct p = *row_product(n);
  choice.error =
      context.decisions.error(p.w, fmt::format("strassen {} {} {}", choice.levels, p.k_stride, p.scale),
                              [&] { return strassen_error(p, choice.levels); });
  c.error = choice.error;
  c.way = choice;
  if (!(c.error <= kMaxError[choice.levels])) c.forbid_error();
}

namespace {

// Matrices of blocks, row by row; 2^levels of them a side. In place: there is one for each element of a
// block.
class Blocks {
 public:
  explicit Blocks(size_t size = 0) : size_(size) {}
  size_t size() const { return size_; }
  double operator[](size_t i) const { return at_[i]; }
  double& operator[](size_t i) { return at_[i]; }
  void push_back(double v) { at_[size_++] = v; }

 private:
  size_t size_;
  std::array<double, 16> at_{};
};

std::array<Blocks, 4> quarters_of(const Blocks& b) {
  const size_t side = b.size() == 16 ? 4 : 2, half = side / 2;
  std::array<Blocks, 4> out;
  for (size_t i = 0; i < side; ++i)
    for (size_t j = 0; j < side; ++j) out[i / half * 2 + j / half].push_back(b[i * side + j]);
  return out;
}

Blocks sum_of(const Blocks& a, double sign, const Blocks& b, bool in_float) {
  Blocks out(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    out[i] = a[i] + sign * b[i];
    if (in_float) out[i] = static_cast<double>(static_cast<float>(out[i]));
  }
  return out;
}

// The factors of all products, in the order of their steps.
void right_factors(const Blocks& w, std::vector<double>& out) {
  if (w.size() == 1) return out.push_back(w[0]);
  const auto q = quarters_of(w);
  const Blocks t1 = sum_of(q[1], -1, q[0], false), t2 = sum_of(q[3], -1, t1, false);
  for (const Blocks& f :
       {q[0], q[2], t2, t1, q[3], sum_of(q[3], -1, q[1], false), sum_of(q[2], -1, t2, false)})
    right_factors(f, out);
}

void left_factors(const Blocks& x, std::vector<double>& out) {
  if (x.size() == 1) return out.push_back(x[0]);
  const auto q = quarters_of(x);
  const Blocks s1 = sum_of(q[2], 1, q[3], true), s2 = sum_of(s1, -1, q[0], true);
  for (const Blocks& f : {q[0], q[1], s2, s1, sum_of(q[1], -1, s2, true), sum_of(q[0], -1, q[2], true), q[3]})
    left_factors(f, out);
}

// The blocks of the result, from the products [first, first + count).
Blocks results_of(const float* products, size_t count) {
  if (count == 1) {
    Blocks one;
    one.push_back(static_cast<double>(*products));
    return one;
  }
  std::array<Blocks, 7> p;
  for (size_t i = 0; i < 7; ++i) p[i] = results_of(products + i * (count / 7), count / 7);
  const auto add = [](const Blocks& a, const Blocks& b) { return sum_of(a, 1, b, true); };
  const Blocks u2 = add(p[0], p[2]), u3 = add(u2, p[5]), v = add(u2, p[3]);
  const std::array<Blocks, 4> c = {add(p[0], p[1]), add(v, p[4]), add(u3, p[6]), add(v, p[5])};
  const size_t half = p[0].size() == 4 ? 2 : 1;
  Blocks out(4 * p[0].size());
  for (size_t i = 0; i < 2 * half; ++i)
    for (size_t j = 0; j < 2 * half; ++j)
      out[i * 2 * half + j] = c[i / half * 2 + j / half][i % half * half + j % half];
  return out;
}

Blocks weight_blocks(const RowProduct& p, int side, int64_t i, int64_t j) {
  Blocks out;
  for (int64_t a = 0; a < side; ++a)
    for (int64_t b = 0; b < side; ++b)
      out.push_back(static_cast<double>(p.at(a * (p.k / side) + i, b * (p.n / side) + j)));
  return out;
}

}  // namespace

std::vector<float> strassen_weights(const RowProduct& p, int levels) {
  const int side = 1 << levels;
  const int64_t rows = p.k / side, columns = p.n / side;
  std::vector<float> out(static_cast<size_t>((levels == 2 ? 49 : 7) * rows * columns));
  std::vector<double> factors;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      factors.clear();
      right_factors(weight_blocks(p, side, i, j), factors);
      for (size_t q = 0; q < factors.size(); ++q)
        out[q * static_cast<size_t>(rows * columns) + static_cast<size_t>(i * columns + j)] =
            static_cast<float>(factors[q]);
    }
  return out;
}

double strassen_error(const RowProduct& p, int levels) {
  constexpr int64_t kColumns = 16, kRows = 4;
  const int side = 1 << levels;
  const auto blocks = static_cast<size_t>(side);
  const int64_t part = p.k / side, right = p.n / side;
  std::mt19937 random(1);
  std::vector<float> x(static_cast<size_t>(side * kRows * p.k));
  for (float& f : x) f = static_cast<float>(random()) / 2147483648.0f - 1.0f;
  // The left factors of all products, for each of the rows' and each element of a block's.
  std::vector<std::vector<double>> left(static_cast<size_t>(kRows * part));
  const auto x_at = [&](size_t block, int64_t r, int64_t k) {
    return static_cast<double>(x[static_cast<size_t>((static_cast<int64_t>(block) * kRows + r) * p.k + k)]);
  };
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t i = 0; i < part; ++i) {
      Blocks b;
      for (size_t a = 0; a < blocks; ++a)
        for (int64_t c = 0; c < side; ++c) b.push_back(x_at(a, r, c * part + i));
      left_factors(b, left[static_cast<size_t>(r * part + i)]);
    }
  double worst = 0, largest = 0;
  std::vector<double> right_of;
  for (int64_t j = 0; j < right; j += std::max<int64_t>(1, right / kColumns)) {
    std::vector<float> products(static_cast<size_t>(kRows) * left[0].size());
    std::vector<double> exact(static_cast<size_t>(kRows) * blocks * blocks);
    for (int64_t i = 0; i < part; ++i) {
      const Blocks w = weight_blocks(p, side, i, j);
      right_of.clear();
      right_factors(w, right_of);
      for (size_t r = 0; r < static_cast<size_t>(kRows); ++r) {
        const std::vector<double>& l = left[r * static_cast<size_t>(part) + static_cast<size_t>(i)];
        for (size_t q = 0; q < l.size(); ++q)
          products[r * l.size() + q] += static_cast<float>(l[q]) * static_cast<float>(right_of[q]);
        for (size_t a = 0; a < blocks; ++a)
          for (size_t b = 0; b < blocks; ++b)
            for (size_t c = 0; c < blocks; ++c)
              exact[(r * blocks + a) * blocks + b] +=
                  x_at(a, static_cast<int64_t>(r), static_cast<int64_t>(c) * part + i) * w[c * blocks + b];
      }
    }
    for (size_t r = 0; r < static_cast<size_t>(kRows); ++r) {
      const Blocks got = results_of(products.data() + r * left[0].size(), left[0].size());
      for (size_t c = 0; c < got.size(); ++c) {
        const double wanted = exact[r * blocks * blocks + c];
        worst = std::max(worst, std::abs(got[c] - wanted));
        largest = std::max(largest, std::abs(wanted));
      }
    }
  }
  return largest > 0 ? worst / largest : 0;
}

}  // namespace sinter
