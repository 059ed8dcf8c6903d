// Budgets of weights that are worth a look.
#pragma once
#include <vector>

#include "plan/plan.h"

namespace sinter {

// Budgets above `most`: one, two, four ... MiB more (of large nets: a sixteenth of what could be used, twice
// that ...), and the least at which each layer takes what is fastest; only those at which the layers' offers
// promise a thousandth less cycles than at the one before. To be asked before any layer has been told to do
// with less (share_weights). What they really save, a plan tells (report/weight_prices.cpp).
std::vector<int64_t> larger_budgets(const Graph&, const Target&, const Decisions&, int64_t most);

}  // namespace sinter
