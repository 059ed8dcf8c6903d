// What the files of elementwise operators share: which element types an operator allows, and its constants.
#pragma once
#include "ops/op.h"

namespace sinter {

using Args = std::vector<ExprPtr>;

// Sets of element types, to be or-ed.
enum Types : unsigned {
  kFloats = 1,    // float32 float64 float16 bfloat16
  kSigned = 2,    // int8 to int64
  kUnsigned = 4,  // uint8 to uint64
  kBool = 8,
  kIntegers = kSigned | kUnsigned,
  kNumbers = kFloats | kIntegers,
};
inline bool belongs(DType t, unsigned types) {
  const bool packed = t == DType::kI4 || t == DType::kU4 || t == DType::kI2 || t == DType::kU2;
  return !packed && ((types & kFloats && is_float(t)) || (types & kSigned && is_signed(t)) ||
                     (types & kUnsigned && is_unsigned(t)) || (types & kBool && t == DType::kBool));
}

// Refuses arguments of a type outside `types`.
inline void allow(const Node& n, const ExprPtr& a, unsigned types) {
  if (!belongs(a->dtype, types)) refuse_node(n, fmt::format("not defined for {}", name_of(a->dtype)));
}
// Refuses absent arguments and such of a type outside `types` or of more than one type.
inline void allow_one_type(const Node& n, const Args& args, unsigned types) {
  for (const ExprPtr& a : args) {
    if (!a) refuse_node(n, "an input is missing");
    if (a->dtype != args[0]->dtype)
      refuse_node(n, fmt::format("inputs of types {} and {}", name_of(args[0]->dtype), name_of(a->dtype)));
  }
  allow(n, args[0], types);
}

// x as a `to`; what a float8 cannot hold becomes its largest value.
ExprPtr saturating_cast(const ExprPtr& x, DType to);

// Attribute `name` as a constant of x's type.
inline ExprPtr attribute(const Node& n, const char* name, float fallback, const ExprPtr& x) {
  return Expr::constant(static_cast<double>(n.attributes.real(name, fallback)), x->dtype);
}

// The row of an operator that is one scalar function of its `n` inputs, all of one type.
#define SINTER_SAME(onnx, fn, n, types)                                                                      \
  {                                                                                                          \
    .name = onnx, .min_inputs = n, .max_inputs = n, .expr = [](const Node& node, const Args& a) -> ExprPtr { \
      allow_one_type(node, a, types);                                                                        \
      return Expr::call(fn, a);                                                                              \
    }                                                                                                        \
  }

}  // namespace sinter
