// The difference of two tensors, as sinter verify tells it, within a tolerance.
//
// For an element a and its reference b: |a - b| <= rtol * |b| + atol * (greatest |b| of the tensor). A model
// that computes in 16-bit floats, which round after every operation in its meaning and once a layer in the
// built one, has at least 0.02 (float16) or 0.1 (bfloat16) as rtol and atol. With --fp16 they are twice
// --fp16-error at least: what a layer loses comes to what those before it lost; and of layers that add, the
// greatest operand counts where it is greater than the results. NaN equals NaN; infinities and integers are
// exact, but for 8-bit ones, which may differ by one: sums in another order round to another side. The least
// tolerance of floats is the smallest normal one: what is below has no digits to compare, and tile matrices
// take it for zero.
#pragma once
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace sinter {

struct Tolerance {
  double rtol = 1e-3, atol = 1e-4;
};

// The worst element of a comparison; ratio <= 1 is within tolerance.
struct Difference {
  double ratio = 0, got = 0, want = 0;
  int64_t at = -1, count = 0;  // where; how many elements are outside
  std::string shape;           // other shape or dtype
  bool ok() const { return ratio <= 1 && shape.empty(); }
};

// `scale`: what tolerances are relative to where the greatest of `want` is smaller.
Difference compare(const Tensor& got, const Tensor& want, const Tolerance& o, double scale = 0);

// For people; `shape` is that of `want`.
std::string text(const Difference& d, const std::vector<int64_t>& shape);

}  // namespace sinter
