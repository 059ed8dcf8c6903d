#include "plan/arrange.h"

#include "plan/strips.h"

namespace sinter {

void arrange(Graph& g, const Target& target, Decisions& decisions, int64_t cache, const Tuning& tuning) {
  apply_tuning(g, tuning, decisions);
  separate_outputs(g, decisions);
  schedule(g);
  read_pieces(g, target, decisions);
  place_concats(g, target, decisions);
  read_planes(g, target, decisions);
  make_strips(g, target, decisions, cache, tuning);
}

}  // namespace sinter
