// A camera's frame (--pre) as the bytes that a quantised model takes.
#pragma once
#include "passes/pass.h"

namespace sinter {

bool quantise_frames(Graph&, const PassOptions&);

}  // namespace sinter
