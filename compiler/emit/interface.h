// NAME.h: what a caller sees of a net, or of several that share an arena (emit/pipeline.h).
#pragma once
#include <string>
#include <vector>

#include "emit/bundle.h"

namespace sinter {

// The most bytes that a Value takes.
int64_t max_bytes(const Value& v);

// NAME.h of one net. Other headers of the net have another `interface`; the code compares.
std::string interface_text(const BundlePart&, const WeightStore&);

// NAME.h of several, each of which has the face that it would have alone, but for the memory, which is all of
// theirs.
std::string interface_text(const SharedMemory&, const std::vector<BundlePart>&, const WeightStore&);

}  // namespace sinter
