// ARMv8-A with Advanced SIMD: 32 registers of 4 floats, multiply-accumulate by lane.
//
// A tile of V output vectors times T pixels needs V*T sums, V weights and T broadcast sources: V*T + T + V <=
// 32, or g++ spills. In-order cores (A53, A55) pay for every 128-bit load; out-of-order ones (A72, A76) do
// not. Figures of speed: issue width and caches of the usual boards (Raspberry Pi 3, 4 and 5).
#include "targets/target.h"

namespace sinter {

namespace {

// Of halves a multiplier lies in registers 0 to 15. In order, of two vectors of weights the next one is
// waited for (docs/decisions/0020-half-arithmetic.md).
int tile_of_halves(const Target& t, int vectors) {
  switch (vectors) {
    case 1: return 8;
    case 2: return t.speed.in_order ? 8 : 10;
    case 3: return t.speed.in_order ? 6 : 7;
    default: return 5;
  }
}

int tile(const Target& t, int vectors) {
  if (t.of_halves) return tile_of_halves(t, vectors);
  switch (vectors) {
    case 1: return 14;
    case 2: return 9;
    case 3: return 7;
    default: return 5;
  }
}

bool runs_here() {
#if defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

constexpr InstructionSet kNeon = {.isa = "neon",
                                  .spelt = "NEON",
                                  .lanes = 4,
                                  .registers = 32,
                                  .max_vectors = 4,
                                  .aarch64 = true,
                                  .tile_of = tile,
                                  .runs_here = runs_here};

constexpr CoreSpeed kA72 = {.fma = 1,
                            .ops = 1.6,
                            .l2_bytes = 10,
                            .memory_bytes = 4,
                            .again_bytes = 4,
                            .l1 = 32 << 10,
                            .l2 = 512 << 10,
                            .tile_share = 0.97,
                            .mhz = 1500};
constexpr CoreSpeed kA76 = {.fma = 2,
                            .ops = 2.4,
                            .l2_bytes = 16,
                            .memory_bytes = 6,
                            .again_bytes = 8,
                            .l1 = 64 << 10,
                            .l2 = 400 << 10};

constexpr CoreSpeed with_clock(CoreSpeed speed, int mhz) {
  speed.mhz = mhz;
  return speed;
}

// g++ 12's scheduler before register allocation makes the tiles spill; on cores in order everything else
// gains more by it, and their tiles are written in order.
constexpr const char* kOrder = "-fno-schedule-insns";

}  // namespace

const std::vector<Target>& targets_aarch64() {
  static const std::vector<Target> rows = {
      {kNeon,
       {.name = "cortex-a53",
        .what = "Arm Cortex-A53, in order",
        .boards = "Raspberry Pi 3, i.MX 8M",
        .features = {},
        .speed = {.fma = 1,
                  .ops = 0.8,
                  .l2_bytes = 8,
                  .memory_bytes = 2,
                  .again_bytes = 2,
                  .l1 = 32 << 10,
                  .l2 = 400 << 10,
                  .in_order = true,
                  .tile_share = 0.77,
                  .mhz = 1200},
        .cxx_flags = "-mcpu=cortex-a53"}},
      {kNeon,
       {.name = "cortex-a55",
        .what = "Arm Cortex-A55, in order, dot product",
        .boards = "i.MX 93, RK3588 (small cores)",
        .features = {.dot_products = true, .halves = true},
        .speed = {.fma = 1,
                  .ops = 0.9,
                  .l2_bytes = 8,
                  .memory_bytes = 3,
                  .again_bytes = 3,
                  .l1 = 32 << 10,
                  .l2 = 256 << 10,
                  .in_order = true,
                  .tile_share = 0.9,
                  .mhz = 1800},
        .cxx_flags = "-mcpu=cortex-a55"}},
      {kNeon,
       {.name = "cortex-a72",
        .what = "Arm Cortex-A72, out of order",
        .boards = "Raspberry Pi 4",
        .features = {},
        .speed = kA72,
        .cxx_flags = "-mcpu=cortex-a72",
        .gcc_flags = kOrder}},
      {kNeon,
       {.name = "cortex-a76",
        .what = "Arm Cortex-A76, out of order, dot product",
        .boards = "Raspberry Pi 5, RK3588 (big cores)",
        .features = {.dot_products = true, .halves = true},
        .speed = kA76,
        .cxx_flags = "-mcpu=cortex-a76",
        .gcc_flags = kOrder}},
      {kNeon,
       {.name = "cortex-a78ae",
        .what = "Arm Cortex-A78AE",
        .boards = "Jetson Orin",
        .features = {.dot_products = true, .halves = true},
        .speed = with_clock(kA76, 2000),
        .cxx_flags = "-mcpu=cortex-a78ae",
        .gcc_flags = kOrder}},
      {kNeon,
       {.name = "armv8.6-a",
        .what = "any ARMv8.6-A, dot product, matrices of bytes",
        .boards = "Cortex-A510, A710, X2 and later",
        .features = {.dot_products = true, .byte_matrices = true, .halves = true},
        .speed = kA76,
        .cxx_flags = "-march=armv8.6-a",
        .gcc_flags = kOrder}},
      {kNeon,
       {.name = "aarch64",
        .what = "any ARMv8-A",
        .boards = "all of the above",
        .features = {},
        .speed = kA72,
        .gcc_flags = kOrder,
        .is_host = any_core}},
  };
  return rows;
}

}  // namespace sinter
