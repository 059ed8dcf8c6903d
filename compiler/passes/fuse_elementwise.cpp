// fuse_elementwise: every elementwise node that no anchor took becomes an `elementwise` node
// (ops/elementwise/fused.cpp), and swallows the elementwise nodes that use up its result.
//
// Only values of one shape are fused: a small operand that is broadcast is computed once, not per element.
#include "passes/fuse.h"
#include "passes/passes.h"

namespace sinter {

bool fuse_elementwise(Graph& g, const PassOptions& options) {
  bool changed = false;
  Order order(g);
  for (Node* n : snapshot(g)) {
    if (!order.has(n) || !is_fusible(*n)) continue;
    if (!n->epilogue) {
      if (!make_elementwise(g, n)) continue;
      changed = true;
    }
    changed |= grow_epilogue(g, order, n, {8, 64}, options.exact);
  }
  g.erase_unused();
  return changed;
}

}  // namespace sinter
