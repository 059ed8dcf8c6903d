// What a layer costs without a faster algorithm: the candidate that Winograd's filtering, Strassen's product
// and tile matrices are held against (kernels/choose.cpp).
#pragma once
#include <vector>

#include "emit/candidate.h"
#include "plan/decision.h"

namespace sinter {

// One way, with the modelled cycles of register tiles and the bytes of its packed weights; none where no
// other algorithm is allowed for the node, so that nothing is to be compared. `share`: of the multiply-adds
// that its taps make.
std::vector<Candidate> direct_ways(const Node&, const Context&, double share);
std::vector<Candidate> direct_ways(const Node&, const Context&);  // all of them

}  // namespace sinter
