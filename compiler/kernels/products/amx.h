// How a product on AMX's tile matrices is cut, and what it would take, for the kernel that computes it and
// for those that could do so otherwise.
#pragma once
#include <optional>

#include "emit/candidate.h"
#include "ir/graph.h"
#include "ops/products/row_product.h"
#include "plan/decision.h"
#include "targets/target.h"

namespace sinter {

constexpr int64_t kAmxSteps = 6;  // of a block's products (sinter/amx.h)

// Rows are cut into tiles of `tile` rows, and those into groups of `tiles`; k, in blocks of kAmxDepth, into
// `cuts`. A panel's parts of a cut stay in the first-level cache while a group's rows meet them, and what the
// group has summed is kept between the cuts.
struct AmxChoice {
  int64_t tile, tiles, groups;
  bool once;  // the weights are split before the groups
  int64_t cuts = 1;
  int64_t rows() const { return tile * tiles; }
};

int64_t amx_blocks(int64_t k);

// How the node would be cut; none where tile matrices may not or cannot compute it.
std::optional<AmxChoice> choose_amx(const Node&, const Context&);
// The same with its modelled cycles.
std::vector<Candidate> amx_ways(const Node&, const Context&);

}  // namespace sinter
