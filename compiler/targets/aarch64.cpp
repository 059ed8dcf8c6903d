// ARMv8-A with Advanced SIMD: 32 registers of 4 floats, multiply-accumulate by lane.
//
// A tile of V output vectors times T pixels needs V*T sums, V weights and T broadcast sources: V*T + T + V <=
// 32, or g++ spills. In-order cores (A53, A55) pay for every 128-bit load; out-of-order ones (A72, A76) do
// not. All of them run the same words today; the rows differ in the compiler's scheduling flags.
#include "targets/machine.h"
#include "targets/target.h"

namespace sinter {

int tile_neon(int vectors) {
  switch (vectors) {
    case 1: return 14;
    case 2: return 9;
    case 3: return 7;
    default: return 5;
  }
}

// Of halves a multiplier lies in registers 0 to 15. In order, of two vectors of weights the next one is
// waited for (docs/decisions/0020-half-arithmetic.md).
int tile_neon_halves(const Target& t, int vectors) {
  switch (vectors) {
    case 1: return 8;
    case 2: return machine_of(t).in_order ? 8 : 10;
    case 3: return machine_of(t).in_order ? 6 : 7;
    default: return 5;
  }
}

const std::vector<Target>& targets_aarch64() {
  // -fno-schedule-insns: g++ 12's scheduler before register allocation makes the tiles spill; on cores in
  // order everything else gains more by it, and their tiles are written in order.
  static const char* const kOrder = "-fno-schedule-insns";
  static const std::vector<Target> rows = {
      {"cortex-a53", "Arm Cortex-A53, in order", "neon", 4, 32, true, "-mcpu=cortex-a53", "",
       "Raspberry Pi 3, i.MX 8M", 4},
      {"cortex-a55", "Arm Cortex-A55, in order, dot product", "neon", 4, 32, true, "-mcpu=cortex-a55", "",
       "i.MX 93, RK3588 (small cores)", 4, true, false, false, true},
      {"cortex-a72", "Arm Cortex-A72, out of order", "neon", 4, 32, true, "-mcpu=cortex-a72", kOrder,
       "Raspberry Pi 4", 4},
      {"cortex-a76", "Arm Cortex-A76, out of order, dot product", "neon", 4, 32, true, "-mcpu=cortex-a76",
       kOrder, "Raspberry Pi 5, RK3588 (big cores)", 4, true, false, false, true},
      {"cortex-a78ae", "Arm Cortex-A78AE", "neon", 4, 32, true, "-mcpu=cortex-a78ae", kOrder, "Jetson Orin",
       4, true, false, false, true},
      {"armv8.6-a", "any ARMv8.6-A, dot product, matrices of bytes", "neon", 4, 32, true, "-march=armv8.6-a",
       kOrder, "Cortex-A510, A710, X2 and later", 4, true, false, true, true},
      {"aarch64", "any ARMv8-A", "neon", 4, 32, true, "", kOrder, "all of the above", 4},
  };
  return rows;
}

}  // namespace sinter
