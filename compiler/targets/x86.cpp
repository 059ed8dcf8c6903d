// x86-64 in the three levels of its ABI: SSE4.2 (16 registers of 4 floats, no fused multiply-add), AVX2 with
// FMA (16 of 8) and AVX-512 (32 of 16), the last one with VNNI too, for four kinds of cores, one of them
// with AMX as well. Weights stream from memory, inputs are broadcast from memory, so that a tile of V vectors
// times T pixels needs V*T + V (+1) registers; without fused multiply-add one more, for the product.
//
// Figures of speed: the rows of a level are between Skylake-X with one 512-bit unit or Zen 4 (one 512-bit
// multiply-add a cycle) and larger cores. On a Zen 4, groups of Winograd's tiles in a fifth of the second
// level are 5 to 10 % faster in nets of large pictures and few channels than in most of it, nowhere slower;
// where two threads work, it is most of the level that is 5 % faster. Sapphire Rapids and its successors: two
// 512-bit units, but a third level that is shared over a mesh, 30 to 40 GB/s for a core, of which a rented
// machine gives some 64 MB (15 GB/s behind it); the 2 MB before it hold what lies in a few hundred KB best,
// and give 48 bytes a cycle. What another core wrote comes at 6 GB/s. Zen 5: two 512-bit multiply-adds a
// cycle at 4.2 GHz, some 30 GB/s from memory, and 32 MB of a third level for the weights of a small net.
// Cascade Lake: two 512-bit units, 1 MB of a second level; a rented one gives a core 9 bytes a cycle from the
// third level and 4 from memory, in many an hour less: of algorithms chosen for 3, nets have fewer weights
// and are nowhere slower; two threads work in 0.4 of the second level each (in 0.8, UNet takes a fifth
// longer).
#include "targets/target.h"
#include "targets/this_machine.h"

namespace sinter {

namespace {

int tile(const Target& t, int vectors, int fewer) {
  const bool wide = t.registers == 32;
  switch (vectors) {
    case 1: return wide ? 14 : 10;
    case 2: return wide ? 12 : 6;
    case 3: return wide ? 8 : 4 - fewer;
    default: return wide ? 6 : 3 - fewer;
  }
}
int fused_tile(const Target& t, int vectors) { return tile(t, vectors, 0); }
int unfused_tile(const Target& t, int vectors) { return tile(t, vectors, 1); }

constexpr InstructionSet kSse42 = {.isa = "sse42",
                                   .spelt = "SSE4.2",
                                   .lanes = 4,
                                   .registers = 16,
                                   .max_vectors = 2,
                                   .aarch64 = false,
                                   .tile_of = unfused_tile,
                                   .runs_here = has_sse42};
constexpr InstructionSet kAvx2 = {.isa = "avx2",
                                  .spelt = "AVX2 and FMA",
                                  .lanes = 8,
                                  .registers = 16,
                                  .max_vectors = 2,
                                  .aarch64 = false,
                                  .tile_of = fused_tile,
                                  .runs_here = has_avx2};
constexpr InstructionSet kAvx512 = {.isa = "avx512",
                                    .spelt = "AVX-512 F, BW, CD, DQ, VL",
                                    .lanes = 16,
                                    .registers = 32,
                                    .max_vectors = 4,
                                    .aarch64 = false,
                                    .tile_of = fused_tile,
                                    .runs_here = has_avx512};

constexpr CoreSpeed kOneUnit = {.fma = 1,
                                .ops = 1.2,
                                .l2_bytes = 32,
                                .memory_bytes = 8,
                                .again_bytes = 20,
                                .l1 = 32 << 10,
                                .l2 = 1 << 20,
                                .asks_ahead = true,
                                .work_share = 0.2,
                                .shared_work_share = 0.8};
constexpr CoreSpeed kSapphireRapids = {.fma = 2,
                                       .ops = 1.6,
                                       .l2_bytes = 40,
                                       .memory_bytes = 6,
                                       .again_bytes = 12,
                                       .l1 = 48 << 10,
                                       .l2 = 2 << 20,
                                       .asks_ahead = true,
                                       .starts_cold = true,
                                       .work_share = 0.25,
                                       .again_at_once = 80 << 10,
                                       .l3 = 64 << 20,
                                       .exchanged_bytes = 2};

constexpr const char* kVnni = "-march=x86-64-v4 -mavx512vnni";
// Left to itself, g++ 12 allocates the registers of an inner loop together with those of the epilogue
// around it, and of some tiles then keeps the weights in memory (Strassen's product of 49 x 512 x 2048:
// 1190 us, with them in registers 860). On AVX2 and NEON it makes no difference.
constexpr const char* kRegions = "-fira-region=all";

}  // namespace

const std::vector<Target>& targets_x86() {
  static const std::vector<Target> rows = {
      {kSse42,
       {.name = "x86-64-v2",
        .what = "x86-64 with SSE4.2",
        .boards = "Atom, old servers",
        .features = {},
        .speed = {.fma = 1,
                  .ops = 2,
                  .l2_bytes = 16,
                  .memory_bytes = 6,
                  .again_bytes = 12,
                  .l1 = 32 << 10,
                  .l2 = 256 << 10},
        .cxx_flags = "-march=x86-64-v2",
        .is_host = any_core}},
      {kAvx2,
       {.name = "avx2",
        .what = "x86-64 with AVX2 and FMA (x86-64-v3)",
        .boards = "Haswell, Zen and later",
        .features = {},
        .speed = {.fma = 2,
                  .ops = 2,
                  .l2_bytes = 32,
                  .memory_bytes = 8,
                  .again_bytes = 20,
                  .l1 = 32 << 10,
                  .l2 = 512 << 10,
                  .asks_ahead = true},
        .cxx_flags = "-march=x86-64-v3",
        .is_host = any_core}},
      {kAvx512,
       {.name = "avx512",
        .what = "x86-64 with AVX-512 F, BW, CD, DQ, VL (x86-64-v4)",
        .boards = "Skylake-X",
        .features = {},
        .speed = kOneUnit,
        .cxx_flags = "-march=x86-64-v4",
        .gcc_flags = kRegions,
        .is_host = any_core}},
      {kAvx512,
       {.name = "avx512vnni",
        .what = "x86-64-v4 with VNNI: dot products of bytes",
        .boards = "Ice Lake, Zen 4 and later",
        .features = {.dot_products = true},
        .speed = kOneUnit,
        .cxx_flags = kVnni,
        .gcc_flags = kRegions,
        .is_host = any_core}},
      {kAvx512,
       {.name = "cascadelake",
        .what = "Xeons with VNNI before Sapphire Rapids: two 512-bit units",
        .boards = "Cascade Lake, Ice Lake servers",
        .features = {.dot_products = true},
        .speed = {.fma = 2,
                  .ops = 1.6,
                  .l2_bytes = 32,
                  .memory_bytes = 3,
                  .again_bytes = 9,
                  .l1 = 32 << 10,
                  .l2 = 1 << 20,
                  .asks_ahead = true,
                  .starts_cold = true,
                  .work_share = 0.2,
                  .l3 = 16 << 20,
                  .exchanged_bytes = 2,
                  .shared_work_share = 0.4},
        .cxx_flags = kVnni,
        .gcc_flags = kRegions,
        .is_host = is_cascade_lake}},
      {kAvx512,
       {.name = "zen5",
        .what = "Zen 5: AVX-512 with VNNI, two 512-bit units",
        .boards = "Ryzen 9000, EPYC 9005",
        .features = {.dot_products = true},
        .speed = {.fma = 2,
                  .ops = 2.4,
                  .l2_bytes = 32,
                  .memory_bytes = 7,
                  .again_bytes = 20,
                  .l1 = 32 << 10,
                  .l2 = 1 << 20,
                  .asks_ahead = true,
                  .work_share = 0.2,
                  .shared_work_share = 0.8,
                  .near_weights = 30 << 20},
        .cxx_flags = kVnni,
        .gcc_flags = kRegions,
        .is_host = is_wide_zen5}},
      {kAvx512,
       {.name = "sapphirerapids",
        .what = "Xeons from Sapphire Rapids on, without AMX",
        .boards = "Sapphire Rapids and later where AMX may not be used",
        .features = {.dot_products = true},
        .speed = kSapphireRapids,
        .cxx_flags = kVnni,
        .gcc_flags = kRegions,
        .is_host = is_sapphire_rapids}},
      {kAvx512,
       {.name = "sapphirerapids-amx",
        .what = "the same cores with tile matrices of bfloat16 (AMX)",
        .boards = "Sapphire Rapids and later",
        .features = {.dot_products = true, .tile_matrices = true},
        .speed = kSapphireRapids,
        .cxx_flags = "-march=x86-64-v4 -mavx512vnni -mamx-tile -mamx-bf16",
        .gcc_flags = kRegions,
        .is_host = is_sapphire_rapids}},
  };
  return rows;
}

}  // namespace sinter
