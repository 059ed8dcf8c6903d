// The difference of two tensors, as sinter verify tells it, within a tolerance (cli/verify.cpp says which).
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
