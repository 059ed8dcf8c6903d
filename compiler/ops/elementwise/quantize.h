// What the files of quantised operators share: the steps between real and quantised tensors.
#pragma once
#include "ops/lowering.h"

namespace sinter {

bool is_quantized(DType);  // integers of 2 to 16 bits and the small floats: what QuantizeLinear makes

// Parameter `p` (a scale or zero point: one element, one for each index of `axis`, or one for each block of
// `block` along it; block 0: no blocks) in a shape that broadcasts against x.
Value* spread(Lowering&, Value* p, const Value* x, int64_t axis, int64_t block);

// float32 of x; zero: of x's type, or null for 0. Both broadcast against x.
Value* dequantized(Lowering&, Value* x, Value* scale, Value* zero);
// x (any number type) in units of `scale` around `zero` (null: 0), as `to`.
Value* quantized(Lowering&, Value* x, Value* scale, Value* zero, DType to, bool saturate = true);

// Scale and zero point (uint8) that put the range of x, made to hold 0, on 0 to 255: DynamicQuantizeLinear.
struct DynamicRange {
  Value *scale, *zero;  // scalars
};
DynamicRange dynamic_range(Lowering&, Value* x);

// One element, whatever its rank, as a scalar; refuses more, naming it.
Value* scalar_of(Lowering&, Value* v, const char* what);

}  // namespace sinter
