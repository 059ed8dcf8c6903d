// An Einsum equation as lists of labels, for inference, evaluation and the code generator.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace sinter {

// A label is a letter's character, or kEllipsis + k for the k-th axis from the ellipsis's end.
struct Einsum {
  static constexpr int kEllipsis = 1000;
  using Labels = std::vector<int>;
  std::vector<Labels> operands;  // one label an axis
  Labels output;                 // each once
};

// `ranks`: of the operands. Refuses what is not an equation for them.
Einsum parse_einsum(std::string equation, const std::vector<int64_t>& ranks);

}  // namespace sinter
