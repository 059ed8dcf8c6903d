// The figures of machine.h. A53 to A76: issue width and caches of the usual boards (Raspberry Pi 3, 4 and 5).
// x86-64: between Skylake-X with one 512-bit unit or Zen 4 (one 512-bit multiply-add a cycle) and larger
// cores. On a Zen 4, groups of Winograd's tiles in a fifth of the second level are 5 to 10 % faster in nets
// of large pictures and few channels than in most of it, nowhere slower; where two threads work, it is most
// of the level that is 5 % faster. Sapphire Rapids and its successors: two 512-bit units, but a third level
// that is shared over a mesh, 30 to 40 GB/s for a core, of which a rented machine gives some 64 MB (15 GB/s
// behind it); the 2 MB before it hold what lies in a few hundred KB best, and give 48 bytes a cycle. What
// another core wrote comes at 6 GB/s. Zen 5: two 512-bit multiply-adds a cycle at 4.2 GHz, some 30 GB/s from
// memory, and 32 MB of a third level for the weights of a small net. Cascade Lake: two 512-bit units, 1 MB of
// a second level; a rented one gives a core 9 bytes a cycle from the third level and 4 from memory, in many
// an hour less: of algorithms chosen for 3, nets have fewer weights and are nowhere slower; two threads work
// in 0.4 of the second level each (in 0.8, UNet takes a fifth longer).
#include "targets/machine.h"

#include <algorithm>
#include <string_view>

namespace sinter {

namespace {

Machine choice_figures(const Target& t) {
  const std::string_view name = t.name, isa = t.isa;
  if (name == "cortex-a53") return {1, 0.8, 8, 2, 2, 32 << 10, 400 << 10, true, false};
  if (name == "cortex-a55") return {1, 0.9, 8, 3, 3, 32 << 10, 256 << 10, true, false};
  if (name == "cortex-a72" || name == "aarch64") return {1, 1.6, 10, 4, 4, 32 << 10, 512 << 10, false, false};
  if (t.aarch64) return {2, 2.4, 16, 6, 8, 64 << 10, 400 << 10, false, false};
  if (name.substr(0, 14) == "sapphirerapids")
    return {2, 1.6, 40, 6, 12, 48 << 10, 2 << 20, false, true, true, 0.25, 80 << 10, 64 << 20, 2};
  if (name == "cascadelake")
    return {2, 1.6, 32, 3, 9, 32 << 10, 1 << 20, false, true, true, 0.2, 0, 16 << 20, 2, 0.4};
  if (name == "zen5")
    return {2, 2.4, 32, 7, 20, 32 << 10, 1 << 20, false, true, false, 0.2, 0, 0, 0, 0.8, 30 << 20};
  if (isa == "avx512") return {1, 1.2, 32, 8, 20, 32 << 10, 1 << 20, false, true, false, 0.2, 0, 0, 0, 0.8};
  if (isa == "avx2") return {2, 2, 32, 8, 20, 32 << 10, 512 << 10, false, true};
  return {1, 2, 16, 6, 12, 32 << 10, 256 << 10, false, false};
}

}  // namespace

Machine machine_of(const Target& t) {
  Machine m = choice_figures(t);
  const std::string_view name = t.name;
  if (name == "cortex-a53") m.tile_share = 0.77, m.mhz = 1200;
  if (name == "cortex-a55") m.tile_share = 0.9, m.mhz = 1800;
  if (name == "cortex-a72" || name == "aarch64") m.tile_share = 0.97, m.mhz = 1500;
  if (name == "cortex-a78ae") m.mhz = 2000;
  return m;
}

double stream_cycles(const Machine& m, double weight_bytes, double passes, bool near) {
  const bool stays = weight_bytes <= static_cast<double>(m.l2);
  const double behind = near ? m.again_bytes : m.memory_bytes;
  return weight_bytes / (stays && !m.starts_cold ? m.l2_bytes : behind) +
         (passes - 1) * weight_bytes / (stays ? m.l2_bytes : m.again_bytes);
}

double beside_stream(double sums, double stream) {
  return std::max(sums, stream) + 0.3 * std::min(sums, stream);
}

}  // namespace sinter
