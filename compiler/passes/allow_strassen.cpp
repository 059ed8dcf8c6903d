// allow_strassen: products with constant weights get the freedom `strassen`: a kernel may compute them by
// Strassen's seven products of quarters. Sums are rearranged then, with errors of some 1e-6 of the largest
// output, so --exact forbids it. Whether it pays depends on the target: the kernel decides.
#include "ops/products/row_product.h"
#include "passes/passes.h"

namespace sinter {

bool allow_strassen(Graph& g, const PassOptions& options) {
  if (options.exact) return false;
  bool changed = false;
  for (const auto& n : g.nodes) {
    if (n->freedom.strassen || !may_use_strassen(*n)) continue;
    n->freedom.strassen = true;
    changed = true;
  }
  return changed;
}

}  // namespace sinter
