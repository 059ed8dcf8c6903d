// Matrix products for eval: f32 and f64 with the same bits on every machine (matrix_product.h), integers by
// plain loops that wrap.
#pragma once
#include <cstdint>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace sinter {

// c[m,n] = op(a)[m,k] * op(b)[k,n], all row-major; op transposes where asked (then a is stored [k,m], b
// [n,k]). lda, ldb, ldc are the strides between rows, in elements. T: float, double, or an integer type.
template <class T>
void multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
              const T* b, int64_t ldb, T* c, int64_t ldc);

// Whether a Conv or MatMul multiplies integers and sums in int32: the form that quantised products are
// lowered to. Its operands are int16; or, as pass narrow_products makes it, int8 or uint8 less the attribute
// `x_zero`
// (-128 to 255, 0 where absent) by int8.
inline bool sums_integers(const Node& n) { return n.attributes.integer("integer", 0) != 0; }
inline int64_t x_zero_of(const Node& n) { return n.attributes.integer("x_zero", 0); }
inline bool is_integer_pair(DType x, DType w) {
  return x == DType::kI16 ? w == DType::kI16 : (x == DType::kI8 || x == DType::kU8) && w == DType::kI8;
}
// The first operand of such a product as float64, less its zero point.
Tensor less_zero(const Node&, const Tensor& x);
// Integral doubles as int32 that have wrapped.
Tensor wrapped(const Tensor& sums);

// The dtype in which contractions of `t` are computed: f16 and bf16 in f32, all others in themselves.
inline DType contraction_dtype(DType t) { return t == DType::kF16 || t == DType::kBF16 ? DType::kF32 : t; }
inline Tensor converted_if(const Tensor& t, DType to) { return !t || t.dtype() == to ? t : t.converted(to); }

}  // namespace sinter
