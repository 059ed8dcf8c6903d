// Rows of a cache that are stored in fewer bytes: how bytes with a scale become floats.
#pragma once
#include "ops/op.h"

namespace sinter {

constexpr int64_t kScaleBytes = 4;  // of each row, behind its elements

// The shape of what a cache holds: without the scales, where it is of bytes.
Shape stored_shape(const TensorType&);
// A cache of bytes as floats; another Tensor as it is.
Tensor read_rows(const Tensor&);

}  // namespace sinter
