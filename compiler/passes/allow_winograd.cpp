// allow_winograd: convolutions of 3x3 to 6x6 taps, of 2 to 7 in a line, or of up to 4 channels and 3 to 7
// taps in a row, and stride 1 or 2 get the freedom `winograd`, the most outputs along an axis that a kernel
// may compute at once by Winograd's filtering (with transforms of up to eight positions). Sums are rearranged
// then, with errors up to some 1e-5 of the largest output, so --exact forbids it. Whether it pays, and with
// which tile, depends on the target: the kernel decides. Where the result is rounded to the steps of a
// quantised net, an error moves some of it by a whole step, which later layers multiply: transforms of six
// positions, with a tenth of the error, are the largest there.
#include <algorithm>

#include "ops/windows/window.h"
#include "passes/passes.h"

namespace sinter {
namespace {

bool rounds(const Expr& e) {
  if (e.kind == Expr::Kind::kCast && is_integer(e.dtype)) return true;
  return std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return rounds(*a); });
}

}  // namespace

bool allow_winograd(Graph& g, const PassOptions& options) {
  if (options.exact) return false;
  bool changed = false;
  for (const auto& n : g.nodes) {
    if (!may_use_winograd(*n) && !may_use_winograd_along_rows(*n)) continue;
    if (n->freedom.winograd > 0) continue;
    const int64_t most = most_winograd_outputs(*n, n->epilogue && rounds(*n->epilogue) ? 6 : 8);
    if (most < 2) continue;
    n->freedom.winograd = most;
    changed = true;
  }
  return changed;
}

}  // namespace sinter
