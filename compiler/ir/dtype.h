// Element types of tensors: ONNX's, under the names numpy gives them.
//
// Storage: one element takes size_of() bytes. 2- and 4-bit types and the small floats are kept unpacked, one
// element a byte (4-bit signed sign-extended), so that every index is a byte address; import unpacks them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sinter {

enum class DType : uint8_t {
  kUndefined,
  kF32,
  kF64,
  kF16,
  kBF16,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool,
  kString,
  kI4,
  kU4,
  kI2,
  kU2,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0,
  kF4E2M1,
  kComplex64,
  kComplex128,
};

int bits_of(DType);                // what an element needs: 4 for int4; 0 for kUndefined and kString
size_t size_of(DType);             // bytes; 0 for kUndefined and kString
std::string_view name_of(DType);   // "float32"
std::string_view cpp_name(DType);  // "float", "std::int64_t", "bool", "sinter::half"
DType dtype_of_onnx(int onnx);     // TensorProto.DataType -> DType; kUndefined where unknown
int onnx_of(DType);                // and back

bool is_float(DType);     // f32 f64 f16 bf16
bool is_signed(DType);    // signed integers
bool is_unsigned(DType);  // unsigned integers (not bool)
inline bool is_integer(DType t) { return is_signed(t) || is_unsigned(t); }
bool is_small_float(DType);       // of 8 or 4 bits
inline bool is_packed(DType t) {  // integers of 4 or 2 bits
  return t == DType::kI4 || t == DType::kU4 || t == DType::kI2 || t == DType::kU2;
}
// Storage that is computed in float: the 16-bit floats and the small ones.
inline bool is_stored_float(DType t) { return t == DType::kF16 || t == DType::kBF16 || is_small_float(t); }
// Numbers that an expression can compute with or convert.
inline bool is_number(DType t) {
  return is_float(t) || is_integer(t) || is_small_float(t) || t == DType::kBool;
}

}  // namespace sinter
