// allow_amx: products with constant weights, convolutions among them, get the freedom `tile_matrices`: a
// kernel may compute them on tile matrices of bfloat16, each float as a sum of three (runtime/sinter/amx.h).
// Sums are rearranged then, though not less exact, and infinities become NaN, so --exact forbids it. Whether
// they pay, the kernel decides.
#include "ops/products/row_product.h"
#include "passes/passes.h"

namespace sinter {

bool allow_amx(Graph& g, const PassOptions& options) {
  if (options.exact || !options.tile_matrices) return false;
  bool changed = false;
  for (const auto& n : g.nodes) {
    if (n->freedom.tile_matrices || (!row_product(*n) && !window_product(*n, 1))) continue;
    n->freedom.tile_matrices = true;
    changed = true;
  }
  return changed;
}

}  // namespace sinter
