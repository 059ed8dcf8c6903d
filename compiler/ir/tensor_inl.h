// with_type: the one switch from DType to C++ type.
#pragma once
#include "ir/error.h"
#include "ir/tensor.h"
#include "sinter/half.h"

namespace sinter {

template <class F>
decltype(auto) with_type(DType t, F&& f) {
  switch (t) {
    case DType::kF32: return f(float{});
    case DType::kF64: return f(double{});
    case DType::kF16: return f(half{});
    case DType::kBF16: return f(bfloat16{});
    case DType::kI8:
    case DType::kI4:
    case DType::kI2: return f(int8_t{});
    case DType::kI16: return f(int16_t{});
    case DType::kI32: return f(int32_t{});
    case DType::kI64: return f(int64_t{});
    case DType::kU16: return f(uint16_t{});
    case DType::kU32: return f(uint32_t{});
    case DType::kU64: return f(uint64_t{});
    case DType::kBool: return f(bool{});
    case DType::kU8:
    case DType::kU4:
    case DType::kU2: return f(uint8_t{});
    default: break;
  }
  bug(__FILE__, __LINE__, "with_type: no C++ type for this dtype");
}

}  // namespace sinter
