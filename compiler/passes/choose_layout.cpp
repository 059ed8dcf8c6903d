// choose_layout: float convolutions work on [N, spatial.., C] ("channels last", attribute channels_last), and
// so does everything around them that would otherwise need a Transpose; pools and norms rather than not.
//
// A graph without convolutions stays as it is. See permute_region.cpp for how the region's border is found.
#include <algorithm>

#include "passes/channel_shuffle.h"
#include "passes/passes.h"
#include "passes/permute.h"
#include "passes/rewrite.h"

namespace sinter {

bool choose_layout(Graph& g, const PassOptions& options) {
  if (!options.channels_last) return false;
  const bool any = std::any_of(g.nodes.begin(), g.nodes.end(), [](const auto& n) {
    return is_convolution(*n) && has_channels_last_form(*n);
  });
  if (!any) return false;
  const std::vector<ChannelShuffle> shuffles = gather_shuffles(g);
  permute_region(g, Arrangement::channels_last(), true);
  spread_shuffles(g, shuffles);
  return true;
}

}  // namespace sinter
