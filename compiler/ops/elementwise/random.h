// The seed of a random operator.
#pragma once
#include "ops/op.h"

namespace sinter {

// Of the attribute `seed`; without one, a hash of the node's name, so that nodes differ and runs do not.
uint64_t seed_of(const Node&);

}  // namespace sinter
