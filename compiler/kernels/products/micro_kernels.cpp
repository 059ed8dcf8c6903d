#include "kernels/products/micro_kernels.h"

#include <algorithm>

#include "targets/target.h"

namespace sinter {
namespace {

bool is_neon(const Target& t) { return t.isa == std::string_view("neon"); }
bool always(const Target&) { return true; }

int whole_tile(const Target& t, int vectors) { return t.tile(vectors); }

// On NEON four values of k of each pixel take a register, and the constants that round the results want some
// too; in order, where those come later, a wider tile has more products to load beside.
int dot_tile(const Target& t, int vectors) {
  if (!is_neon(t)) return t.tile(vectors);
  if (vectors == 4 && t.speed.in_order) return 5;
  return vectors == 1 ? 12 : vectors == 2 ? 8 : vectors == 3 ? 6 : 4;
}

// Pixels in pairs.
int matrix_tile(const Target&, int vectors) {
  return vectors == 1 ? 14 : vectors == 2 ? 10 : vectors == 3 ? 8 : 6;
}

// Sixteen sums of four lanes are four pixels by one vector; more vectors come one behind the other.
int sixteen_tile(const Target&, int) { return 4; }

// The widened weights of a panel and those of a pixel lie in registers beside the sums.
int word_tile(const Target& t, int vectors) {
  if (t.lanes == 16) return t.tile(vectors);
  return vectors == 1 ? 8 : vectors == 2 ? 4 : vectors == 3 ? 2 : 1;
}
bool is_x86_without_dots(const Target& t) { return is_x86(t) && !t.features.dot_products; }

using Order = MicroKernel::Order;
using Sign = MicroKernel::Sign;

const MicroKernel kRows[] = {
    {"i8mm", DType::kI8, "sinter/dot_matrices.h", "mac_matrices", 8, Order::kChannels, Sign::kEither, true,
     matrix_tile, [](const Target& t) { return t.features.byte_matrices; }},
    {"sixteen", DType::kI8, "sinter/mac_bytes.h", "mac_bytes", 16, Order::kChannels, Sign::kSigned, false,
     sixteen_tile, is_neon_without_dots},
    {"sixteen", DType::kI8, "sinter/mac_bytes.h", "mac_all_bytes", 16, Order::kChannels, Sign::kSigned, true,
     sixteen_tile, is_neon_without_dots},
    {"words", DType::kI8, "sinter/mac_bytes.h", "mac_bytes", 4, Order::kEvenOdd, Sign::kEither, true,
     word_tile, is_x86_without_dots},
    {"dot", DType::kI8, "sinter/dot.h", "mac", 4, Order::kChannels, Sign::kUnsigned, true, dot_tile, is_x86},
    {"dot", DType::kI8, "sinter/dot.h", "mac", 4, Order::kChannels, Sign::kSigned, true, dot_tile, always},
    {"pairs", DType::kI16, "sinter/dot.h", "mac", 2, Order::kLanes, Sign::kEither, true, whole_tile, is_neon},
    {"pairs", DType::kI16, "sinter/dot.h", "mac", 2, Order::kChannels, Sign::kEither, true, whole_tile,
     always},
};

}  // namespace

bool is_x86(const Target& t) { return !t.aarch64 && t.isa != std::string_view("scalar"); }
bool is_neon_without_dots(const Target& t) { return is_neon(t) && !t.features.dot_products; }

std::pair<int64_t, int64_t> MicroKernel::place(int64_t e, int64_t lanes) const {
  if (order == Order::kChannels) return {e / k, e % k};
  const int64_t vector = lanes * k, first = e / vector * lanes, in = e % vector;
  if (order == Order::kLanes) return {first + in % lanes, in / lanes};
  return {first + in % (2 * lanes) / 2, in % 2 * 2 + in / (2 * lanes)};
}

const MicroKernel& micro_kernel(const Target& t, DType weights, bool lowest, int most) {
  for (const MicroKernel& m : kRows)
    if (m.weights == weights && m.lowest >= lowest && m.k <= most && m.needs(t)) return m;
  SINTER_CHECK(false, "no micro-kernel for these weights");
}

namespace {
// Cycles of eight values of k in a tile of dot_in_order.h: its products, or all instructions two by two; one
// or two vectors of weights are waited for.
double dot_cycles_in_order(double vectors, double pixels) {
  const double products = 2 * vectors * pixels, others = 6 * vectors + pixels + 4;
  const double waits = vectors < 2 ? 7.4 : vectors < 3 ? 2.4 : 1.4;
  return std::max(products + waits, (products + others) / 2 + 2);
}
}  // namespace

Panels panels_of(const MicroKernel& m, const Target& t, int64_t channels, int64_t pixels) {
  if (m.tile != dot_tile || !is_neon(t) || is_neon_without_dots(t) || !t.speed.in_order)
    return panels_of(t, channels, pixels);
  const int64_t vectors = (channels + t.lanes - 1) / t.lanes, rows = std::max<int64_t>(pixels, 1);
  int best = 1;
  double least = 0;
  for (int v = 1; v <= t.max_vectors && v <= vectors; ++v) {
    const int64_t tile = m.tile(t, v), tiles = (rows + tile - 1) / tile;
    double cycles = 0;
    for (int64_t done = 0; done < vectors; done += v)
      cycles += static_cast<double>(tiles) *
                dot_cycles_in_order(static_cast<double>(std::min<int64_t>(v, vectors - done)),
                                    static_cast<double>(rows) / static_cast<double>(tiles));
    if (v == 1 || cycles < least) best = v, least = cycles;
  }
  return cut_panels(channels, best, t.lanes);
}

}  // namespace sinter
