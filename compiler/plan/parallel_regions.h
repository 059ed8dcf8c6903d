// Parallel regions: layers behind each other that threads run through without waiting for one another, as
// each takes the same rows of all: a Transformer's norms and products between two attentions.
//
// A layer may follow in a region if its parts are the same rows as those before (Layer::row_parts), and if of
// what layers of the region write it reads just those rows. All that a region's layers read and write lives
// while the region runs, and nothing is written over an input, as one thread may be behind the other by
// several layers. Scratch is a thread's own, one piece for all layers of the region.
#pragma once
#include "plan/plan.h"
#include "plan/views.h"

namespace sinter {

// Sets Layer::region of the first layer of each region.
void find_regions(Plan&, const Views&);
// The layer behind the region that begins with `layer`; layer + 1 where none does.
inline size_t behind_region(const Plan& plan, size_t layer) { return layer + plan.layers[layer].region; }

}  // namespace sinter
