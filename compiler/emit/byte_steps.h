// Byte steps: an epilogue that ends in a QuantizeLinear to 8 bits, as real numbers in units of its steps.
//
// cast(quantize(x, scale, zero)) of constants is stored by one word (store_rounded of runtime/sinter/dot.h)
// that rounds, adds the zero point and saturates, where x is never NaN. Activations around x that only bound
// it become bounds of the bytes: rounding is monotone. A scale other than 1 asks for a division; where x
// depends on no more than two tensors of bytes, all their values are tried, and if multiplying by the inverse
// rounds each to the same step, it does.
#pragma once
#include <optional>

#include "ir/expr.h"

namespace sinter {

struct ByteSteps {
  ExprPtr value;        // float32, in steps
  int zero, low, high;  // of the result, within its type
};
// `most(k)`: the greatest magnitude in operand k, infinity where that is unknown. What may exceed 1e8 has no
// steps.
std::optional<ByteSteps> byte_steps(const ExprPtr& e, const std::function<double(int)>& most);

// A bound of |e| where the accumulator is at most `sums`; of sums, products, activations that bound, else
// infinity.
double magnitude(const Expr& e, double sums, const std::function<double(int)>& most);

// Whether round(x * (1 / scale)) is round(x / scale) for all values of the bytes that x depends on.
bool divides_by_inverse(const ExprPtr& x, float scale);

}  // namespace sinter
