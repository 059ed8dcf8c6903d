#include "kernels/products/micro_kernels.h"

#include "targets/machine.h"

namespace sinter {
namespace {

bool is_neon(const Target& t) { return t.isa == std::string_view("neon"); }
bool is_x86(const Target& t) { return !t.aarch64 && t.isa != std::string_view("scalar"); }
bool always(const Target&) { return true; }

int whole_tile(const Target& t, int vectors) { return t.tile(vectors); }

// On NEON four values of k of each pixel take a register, and the constants that round the results want some
// too; in order, where those come later, a wider tile has more products to load beside.
int dot_tile(const Target& t, int vectors) {
  if (!is_neon(t)) return t.tile(vectors);
  if (vectors == 4 && machine_of(t).in_order) return 5;
  return vectors == 1 ? 12 : vectors == 2 ? 8 : vectors == 3 ? 6 : 4;
}

// Pixels in pairs.
int matrix_tile(const Target&, int vectors) {
  return vectors == 1 ? 14 : vectors == 2 ? 10 : vectors == 3 ? 8 : 6;
}

using Order = MicroKernel::Order;
using Sign = MicroKernel::Sign;

const MicroKernel kRows[] = {
    {"i8mm", DType::kI8, "sinter/dot_matrices.h", "mac_matrices", 8, Order::kChannels, Sign::kEither,
     matrix_tile, [](const Target& t) { return t.byte_matrices; }},
    {"dot", DType::kI8, "sinter/dot.h", "mac", 4, Order::kChannels, Sign::kUnsigned, dot_tile, is_x86},
    {"dot", DType::kI8, "sinter/dot.h", "mac", 4, Order::kChannels, Sign::kSigned, dot_tile, always},
    {"pairs", DType::kI16, "sinter/dot.h", "mac", 2, Order::kLanes, Sign::kEither, whole_tile, is_neon},
    {"pairs", DType::kI16, "sinter/dot.h", "mac", 2, Order::kChannels, Sign::kEither, whole_tile, always},
};

}  // namespace

const MicroKernel& micro_kernel(const Target& t, DType weights, int most) {
  for (const MicroKernel& m : kRows)
    if (m.weights == weights && m.k <= most && m.needs(t)) return m;
  SINTER_CHECK(false, "no micro-kernel for these weights");
}

}  // namespace sinter
