// What random operators draw from.
#pragma once
#include "ops/op.h"

namespace sinter {

bool is_random(const Node&);
// The input behind those of ONNX: a stream, uint64[2]. Absent: the same numbers in every run.
size_t stream_input(const Node&);
// The node's own: of the number that it has in the stream (attribute `stream`), else of the attribute `seed`;
// without one, a hash of the node's name, so that nodes differ and runs do not.
uint64_t seed_of(const Node&);

}  // namespace sinter
