#include "plan/arrange.h"

#include "plan/strips.h"

namespace sinter {

void arrange(Graph& g, const Target& target, int64_t cache, const Tuning& tuning) {
  apply_tuning(g, tuning);
  separate_outputs(g);
  schedule(g);
  read_parts(g, target);
  place_concats(g, target);
  read_planes(g, target);
  make_strips(g, target, cache, tuning);
}

}  // namespace sinter
