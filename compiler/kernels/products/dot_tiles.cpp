#include "kernels/products/dot_tiles.h"

#include <algorithm>
#include <cmath>

#include "ops/products/contraction.h"

namespace sinter {

int64_t flip_of(const Node& n, MicroKernel::Sign sign) {
  const bool is_signed = n.inputs[0]->type.dtype == DType::kI8;
  if (sign == MicroKernel::Sign::kUnsigned && is_signed) return 128;
  return sign == MicroKernel::Sign::kSigned && !is_signed ? -128 : 0;
}

int64_t offset_of(const Node& n, MicroKernel::Sign sign) { return x_zero_of(n) + flip_of(n, sign); }

bool holds_lowest(const Tensor& weights) {
  const int8_t* w = weights.as<int8_t>();
  return std::find(w, w + weights.size(), int8_t{-128}) != w + weights.size();
}

std::string words(LayerWriter& w, const std::string& name, const std::vector<int32_t>& v,
                  const std::string& comment) {
  return w.weights(name, "std::int32_t", v.data(), v.size() * sizeof(int32_t), comment);
}

double most_of(const Node& n, size_t out) {
  const Tensor& w = *n.inputs[1]->data;
  const bool is_signed = n.inputs[0]->type.dtype == DType::kI8;
  const double low = (is_signed ? -128 : 0) - static_cast<double>(x_zero_of(n)), high = low + 255,
               x = std::max(std::abs(low), std::abs(high));
  std::vector<double> sums(static_cast<size_t>(w.dim(out)), 0);
  int64_t inner = 1;
  for (size_t a = out + 1; a < w.shape().size(); ++a) inner *= w.dim(a);
  for (int64_t i = 0; i < w.size(); ++i)
    sums[static_cast<size_t>(i / inner % w.dim(out))] += std::abs(w.as<int8_t>()[i]) * x;
  if (n.anchor_inputs > 2 && n.inputs[2])
    for (int64_t c = 0; c < w.dim(out); ++c)
      sums[static_cast<size_t>(c)] += std::abs(static_cast<double>(n.inputs[2]->data->as<int32_t>()[c]));
  return *std::max_element(sums.begin(), sums.end());
}

}  // namespace sinter
