// Calls f(T{}) with the type of a floating-point dtype, which inference has let through.
#pragma once
#include "ir/tensor.h"

namespace sinter {

template <class F>
void with_float(DType t, F f) {
  switch (t) {
    case DType::kF32: return f(float{});
    case DType::kF64: return f(double{});
    case DType::kF16: return f(half{});
    default: return f(bfloat16{});
  }
}

}  // namespace sinter
