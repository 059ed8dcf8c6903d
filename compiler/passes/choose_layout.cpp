// choose_layout: convolution-like float nodes work on [N, spatial.., C] ("channels last", attribute
// channels_last), and so does everything around them that would otherwise need a Transpose.
//
// A graph without convolutions stays as it is. See permute_region.cpp for how the region's border is found.
#include <algorithm>

#include "passes/passes.h"
#include "passes/permute.h"
#include "passes/rewrite.h"

namespace sinter {

bool choose_layout(Graph& g, const PassOptions& options) {
  if (!options.channels_last) return false;
  size_t highest = 0;
  for (const auto& n : g.nodes)
    if ((is_op(n.get(), "Conv") || is_op(n.get(), "ConvTranspose")) && wants_channels_last(*n))
      highest = std::max(highest, n->inputs[0]->type.shape.size());
  if (highest == 0) return false;
  for (const auto& n : g.nodes)
    if (wants_channels_last(*n)) highest = std::max(highest, n->inputs[0]->type.shape.size());
  bool changed = false;
  for (size_t rank = 3; rank <= highest; ++rank) changed |= permute_region(g, channels_last_perm(rank), true);
  return changed;
}

}  // namespace sinter
