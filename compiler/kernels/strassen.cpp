// The choice of Strassen's product, its weights and its error. As with Winograd's filtering the error is
// measured: with the layer's own weights on a sample of its columns, in the arithmetic of the generated code.
#include "kernels/strassen.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "emit/expr_text.h"
#include "kernels/tiles.h"
#include "targets/machine.h"

namespace sinter {
namespace {

constexpr double kMaxError = 3e-6;  // of the layer's largest output

// Cycles of multiply-adds, and of the weights that stream in beside them.
double cycles(const Machine& m, double sums, double weight_bytes, double passes) {
  const bool stays = weight_bytes <= static_cast<double>(m.l2);
  const double stream = stays ? passes * weight_bytes / m.l2_bytes
                              : weight_bytes / m.memory_bytes + (passes - 1) * weight_bytes / m.again_bytes;
  return std::max(sums, stream) + 0.3 * std::min(sums, stream);
}

double plain_cycles(const RowProduct& p, const Target& t) {
  const Machine m = machine_of(t);
  const auto k = static_cast<double>(p.k), n = static_cast<double>(p.n);
  return cycles(m, k * panels_cost(t, p.n, p.rows) / m.fma, 4 * k * n, 1);
}

double strassen_cycles(const RowProduct& p, const Target& t, const StrassenChoice& c) {
  const Machine m = machine_of(t);
  const double k = static_cast<double>(p.k), n = static_cast<double>(p.n),
               groups = static_cast<double>(c.groups), lanes = t.lanes;
  const double height = groups * static_cast<double>(c.height);
  const double sums = 7 * k / 2 * groups * panels_cost(t, p.n / 2, c.height) / m.fma;
  // Of a vector of each quarter of x: what is loaded, added and stored, and 8 vectors' way to the cache
  // behind the first. Of one of the result's: the sums that are kept, and the loops of seven products.
  const double quarters = height * k / 2 / lanes * (12 / m.ops + 32 * lanes / m.l2_bytes);
  const double kept = height * n / 2 / lanes * 48 / m.ops;
  return cycles(m, sums, 7 * k * n, groups) + quarters + kept;
}

// The weights of seven products do not stay in the first-level cache beside a register tile's rows; cores
// that execute in order wait for them, and nothing is gained.
bool is_faster(const RowProduct& p, const Target& t, const StrassenChoice& c) {
  return !machine_of(t).in_order && strassen_cycles(p, t, c) < 0.97 * plain_cycles(p, t);
}

}  // namespace

std::optional<StrassenChoice> choose_strassen(const Node& n, const Target& t) {
  const int64_t mark = n.attributes.integer("strassen", 0);
  if (mark == 0 || !may_use_strassen(n)) return std::nullopt;
  if (n.epilogue && !has_vector_text(*n.epilogue)) return std::nullopt;
  const auto p = row_product(n);
  StrassenChoice c{};
  // Where weights come from far behind the caches, they cost more than what is kept.
  c.by_products = machine_of(t).asks_ahead;
  // The rows' sums take half the cache at most, and with the products that a panel keeps what the arena
  // allows.
  const int64_t vectors = std::min<int64_t>(t.max_vectors, (p->n / 2 + t.lanes - 1) / t.lanes);
  const int64_t kept = c.by_products ? 6 * vectors * t.lanes : 0;
  const int64_t most = std::min(machine_of(t).l2 / 2 / (4 * p->k),
                                n.attributes.integer("strassen_bytes", INT64_MAX) / (4 * p->k + kept)) -
                       1;
  if (most < 2) return std::nullopt;
  c.groups = (p->rows + most - 1) / most;
  c.rows = p->rows / c.groups;
  c.larger = p->rows % c.groups;
  c.height = (c.rows + (c.larger > 0 ? 1 : 0) + 1) / 2;
  if (c.rows < 2 || (mark != kTunedStrassen && !is_faster(*p, t, c))) return std::nullopt;
  c.error = strassen_error(*p);
  if (!(c.error <= kMaxError)) return std::nullopt;
  return c;
}

std::array<float, 7> strassen_weights(const RowProduct& p, int64_t i, int64_t j) {
  const int64_t below = i + p.k / 2, right = j + p.n / 2;
  const double w11 = static_cast<double>(p.at(i, j)), w12 = static_cast<double>(p.at(i, right));
  const double w21 = static_cast<double>(p.at(below, j)), w22 = static_cast<double>(p.at(below, right));
  const double t1 = w12 - w11, t2 = w22 - w12 + w11;
  const auto f = [](double w) { return static_cast<float>(w); };
  return {f(w11), f(w21), f(t2), f(w22 - w12), f(w21 - t2), f(t1), f(w22)};
}

namespace {

// The seven products of one element of each quarter of the result, and its four sums in double.
struct Sums {
  float products[7] = {};
  double exact[4] = {};

  void add(const float (&x)[4], const std::array<float, 7>& weights, const double (&w)[4]) {
    const float s1 = x[2] + x[3], s2 = s1 - x[0];
    const float factors[7] = {x[0], x[1], s2, x[0] - x[2], x[3], s1, x[1] - s2};
    for (size_t q = 0; q < 7; ++q) products[q] += factors[q] * weights[q];
    for (size_t c = 0; c < 4; ++c)
      exact[c] +=
          static_cast<double>(x[c / 2 * 2]) * w[c % 2] + static_cast<double>(x[c / 2 * 2 + 1]) * w[c % 2 + 2];
  }
  std::array<float, 4> results() const {
    const float u2 = products[0] + products[2], u3 = u2 + products[3];
    return {products[0] + products[1], u2 + products[5] + products[6], u3 + products[4], u3 + products[5]};
  }
};

}  // namespace

double strassen_error(const RowProduct& p) {
  constexpr int64_t kColumns = 16, kRows = 4;
  const int64_t half = p.k / 2, right = p.n / 2;
  std::mt19937 random(1);
  std::vector<float> x(static_cast<size_t>(2 * kRows * p.k));
  for (float& f : x) f = static_cast<float>(random()) / 2147483648.0f - 1.0f;
  double worst = 0, largest = 0;
  for (int64_t j = 0; j < right; j += std::max<int64_t>(1, right / kColumns)) {
    Sums sums[kRows];
    for (int64_t i = 0; i < half; ++i) {
      const std::array<float, 7> weights = strassen_weights(p, i, j);
      const double w[4] = {static_cast<double>(p.at(i, j)), static_cast<double>(p.at(i, j + right)),
                           static_cast<double>(p.at(half + i, j)),
                           static_cast<double>(p.at(half + i, j + right))};
      for (int64_t r = 0; r < kRows; ++r) {
        const float *upper = x.data() + r * p.k + i, *lower = upper + kRows * p.k;
        sums[r].add({upper[0], upper[half], lower[0], lower[half]}, weights, w);
      }
    }
    for (const Sums& s : sums) {
      const std::array<float, 4> got = s.results();
      for (size_t c = 0; c < 4; ++c) {
        worst = std::max(worst, std::abs(static_cast<double>(got[c]) - s.exact[c]));
        largest = std::max(largest, std::abs(s.exact[c]));
      }
    }
  }
  return largest > 0 ? worst / largest : 0;
}

}  // namespace sinter
