// Any processor with a C++17 compiler: no vector words at all, one float at a time.
#include "targets/target.h"

namespace sinter {

namespace {
int tile(const Target&, int vectors) { return vectors >= 4 ? 2 : 4; }
}  // namespace

const std::vector<Target>& targets_scalar() {
  static const std::vector<Target> rows = {
      {{.isa = "scalar",
        .spelt = "none: C++17",
        .lanes = 1,
        .registers = 16,
        .max_vectors = 4,
        .aarch64 = false,
        .tile_of = tile,
        .runs_here = any_core},
       {.name = "scalar",
        .what = "any processor, plain C++17",
        .boards = "whatever has a compiler",
        .features = {},
        .speed = {.fma = 1,
                  .ops = 2,
                  .l2_bytes = 16,
                  .memory_bytes = 6,
                  .again_bytes = 12,
                  .l1 = 32 << 10,
                  .l2 = 256 << 10},
        .is_host = any_core}},
  };
  return rows;
}

}  // namespace sinter
