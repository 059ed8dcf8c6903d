#include "ir/dtype.h"

namespace sinter {
namespace {
struct Row {
  DType dtype;
  int onnx;  // onnx.proto TensorProto.DataType
  size_t size;
  const char *name, *cpp;
};
constexpr Row kRows[] = {
    {DType::kUndefined, 0, 0, "undefined", "void"},
    {DType::kF32, 1, 4, "float32", "float"},
    {DType::kF64, 11, 8, "float64", "double"},
    {DType::kF16, 10, 2, "float16", "sinter::half"},
    {DType::kBF16, 16, 2, "bfloat16", "sinter::bfloat16"},
    {DType::kI8, 3, 1, "int8", "std::int8_t"},
    {DType::kI16, 5, 2, "int16", "std::int16_t"},
    {DType::kI32, 6, 4, "int32", "std::int32_t"},
    {DType::kI64, 7, 8, "int64", "std::int64_t"},
    {DType::kU8, 2, 1, "uint8", "std::uint8_t"},
    {DType::kU16, 4, 2, "uint16", "std::uint16_t"},
    {DType::kU32, 12, 4, "uint32", "std::uint32_t"},
    {DType::kU64, 13, 8, "uint64", "std::uint64_t"},
    {DType::kBool, 9, 1, "bool", "bool"},
    {DType::kString, 8, 0, "string", "void"},
    {DType::kI4, 22, 1, "int4", "std::int8_t"},
    {DType::kU4, 21, 1, "uint4", "std::uint8_t"},
    {DType::kI2, 26, 1, "int2", "std::int8_t"},
    {DType::kU2, 25, 1, "uint2", "std::uint8_t"},
    {DType::kF8E4M3FN, 17, 1, "float8e4m3fn", "sinter::float8e4m3fn"},
    {DType::kF8E4M3FNUZ, 18, 1, "float8e4m3fnuz", "sinter::float8e4m3fnuz"},
    {DType::kF8E5M2, 19, 1, "float8e5m2", "sinter::float8e5m2"},
    {DType::kF8E5M2FNUZ, 20, 1, "float8e5m2fnuz", "sinter::float8e5m2fnuz"},
    {DType::kF8E8M0, 24, 1, "float8e8m0", "sinter::float8e8m0"},
    {DType::kF4E2M1, 23, 1, "float4e2m1", "sinter::float4e2m1"},
    {DType::kComplex64, 14, 8, "complex64", "void"},
    {DType::kComplex128, 15, 16, "complex128", "void"},
};
const Row& row(DType t) {
  for (const Row& r : kRows)
    if (r.dtype == t) return r;
  return kRows[0];
}
}  // namespace

size_t size_of(DType t) { return row(t).size; }
int bits_of(DType t) {
  switch (t) {
    case DType::kI4:
    case DType::kU4:
    case DType::kF4E2M1: return 4;
    case DType::kI2:
    case DType::kU2: return 2;
    default: return static_cast<int>(size_of(t)) * 8;
  }
}
std::string_view name_of(DType t) { return row(t).name; }
std::string_view cpp_name(DType t) { return row(t).cpp; }
int onnx_of(DType t) { return row(t).onnx; }
DType dtype_of_onnx(int onnx) {
  for (const Row& r : kRows)
    if (r.onnx == onnx) return r.dtype;
  return DType::kUndefined;
}
bool is_float(DType t) {
  return t == DType::kF32 || t == DType::kF64 || t == DType::kF16 || t == DType::kBF16;
}
bool is_small_float(DType t) {
  return t == DType::kF8E4M3FN || t == DType::kF8E4M3FNUZ || t == DType::kF8E5M2 || t == DType::kF8E5M2FNUZ ||
         t == DType::kF8E8M0 || t == DType::kF4E2M1;
}
bool is_signed(DType t) {
  return t == DType::kI8 || t == DType::kI16 || t == DType::kI32 || t == DType::kI64 || t == DType::kI4 ||
         t == DType::kI2;
}
bool is_unsigned(DType t) {
  return t == DType::kU8 || t == DType::kU16 || t == DType::kU32 || t == DType::kU64 || t == DType::kU4 ||
         t == DType::kU2;
}

}  // namespace sinter
