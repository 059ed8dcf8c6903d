// x86-64 in the three levels of its ABI: SSE4.2 (16 registers of 4 floats, no fused multiply-add), AVX2 with
// FMA (16 of 8) and AVX-512 (32 of 16), the last one with VNNI too, for four kinds of cores, one of them
// with AMX as well. Weights stream from memory, inputs are broadcast from memory, so that a tile of V vectors
// times T pixels needs V*T + V (+1) registers; without fused multiply-add one more, for the product.
#include "targets/target.h"

namespace sinter {

int tile_x86(int vectors, int registers, bool fused) {
  const bool wide = registers == 32;
  const int fewer = fused ? 0 : 1;
  switch (vectors) {
    case 1: return wide ? 14 : 10;
    case 2: return wide ? 12 : 6;
    case 3: return wide ? 8 : 4 - fewer;
    default: return wide ? 6 : 3 - fewer;
  }
}

const std::vector<Target>& targets_x86() {
  // Left to itself, g++ 12 allocates the registers of an inner loop together with those of the epilogue
  // around it, and of some tiles then keeps the weights in memory (Strassen's product of 49 x 512 x 2048:
  // 1190 us, with them in registers 860). On AVX2 and NEON it makes no difference.
  static const char* const kRegions = "-fira-region=all";
  static const std::vector<Target> rows = {
      {"x86-64-v2", "x86-64 with SSE4.2", "sse42", 4, 16, false, "-march=x86-64-v2", "", "Atom, old servers",
       2},
      {"avx2", "x86-64 with AVX2 and FMA (x86-64-v3)", "avx2", 8, 16, false, "-march=x86-64-v3", "",
       "Haswell, Zen and later", 2},
      {"avx512", "x86-64 with AVX-512 F, BW, CD, DQ, VL (x86-64-v4)", "avx512", 16, 32, false,
       "-march=x86-64-v4", kRegions, "Skylake-X", 4},
      {"avx512vnni", "x86-64-v4 with VNNI: dot products of bytes", "avx512", 16, 32, false,
       "-march=x86-64-v4 -mavx512vnni", kRegions, "Ice Lake, Zen 4 and later", 4, true},
      {"cascadelake", "Xeons with VNNI before Sapphire Rapids: two 512-bit units", "avx512", 16, 32, false,
       "-march=x86-64-v4 -mavx512vnni", kRegions, "Cascade Lake, Ice Lake servers", 4, true},
      {"zen5", "Zen 5: AVX-512 with VNNI, two 512-bit units", "avx512", 16, 32, false,
       "-march=x86-64-v4 -mavx512vnni", kRegions, "Ryzen 9000, EPYC 9005", 4, true},
      {"sapphirerapids-amx", "AVX-512, VNNI and tile matrices of bfloat16 (AMX)", "avx512", 16, 32, false,
       "-march=x86-64-v4 -mavx512vnni -mamx-tile -mamx-bf16", kRegions, "Sapphire Rapids and later", 4, true,
       true},
      {"sapphirerapids", "the same cores without AMX", "avx512", 16, 32, false,
       "-march=x86-64-v4 -mavx512vnni", kRegions, "the same where AMX may not be used", 4, true},
  };
  return rows;
}

}  // namespace sinter
