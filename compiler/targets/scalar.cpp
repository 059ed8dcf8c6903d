// Any processor with a C++17 compiler: no vector words at all, one float at a time.
#include <algorithm>
#include <string_view>

#include "targets/target.h"

namespace sinter {

int tile_neon(int vectors);
int tile_neon_halves(const Target&, int vectors);
int tile_x86(int vectors, int registers, bool fused);

const std::vector<Target>& targets_scalar() {
  static const std::vector<Target> rows = {
      {"scalar", "any processor, plain C++17", "scalar", 1, 16, false, "", "", "whatever has a compiler", 4},
  };
  return rows;
}

int Target::tile(int vectors) const {
  if (lanes == 1) return vectors >= 4 ? 2 : 4;
  if (of_halves) return tile_neon_halves(*this, vectors);
  return aarch64 ? tile_neon(vectors) : tile_x86(vectors, registers, isa != std::string_view("sse42"));
}

}  // namespace sinter
