// Quantised nets as exporters write them: pairs of QuantizeLinear and DequantizeLinear around every layer,
// weights of bytes.
#include "random_graphs/productions.h"

namespace sinter::random_graphs {
namespace {

// The names of a scale and a zero point of bytes.
struct Steps {
  std::string scale, zero;
};
Steps steps(Builder& b) {
  const bool is_signed = b.chance(50);
  const auto zero = static_cast<double>(is_signed ? b.between(-20, 20) : b.between(0, 255));
  return {b.scalar(DType::kF32, b.one_of({0.1, 0.05, 0.25, 0.031})),
          b.scalar(is_signed ? DType::kI8 : DType::kU8, zero)};
}
std::string through(Builder& b, const std::string& x, const Steps& s) {
  return b.node("DequantizeLinear", {b.node("QuantizeLinear", {x, s.scale, s.zero}), s.scale, s.zero});
}

// Weights of the shape, dequantised: one scale, or one for each index of `axis`.
std::string weights(Builder& b, const std::vector<int64_t>& shape, int64_t axis, double range) {
  const std::string bytes = b.weight(DType::kI8, shape, -127, 127);
  if (b.chance(30)) return b.node("DequantizeLinear", {bytes, b.scalar(DType::kF32, range / 127)});
  const int64_t n = shape[static_cast<size_t>(axis)];
  return b.node(
      "DequantizeLinear",
      {bytes, b.weight(DType::kF32, {n}, range / 200, range / 127), b.weight(DType::kI8, {n}, 0, 0)},
      {{"axis", axis}});
}

std::string activation(Builder& b, const std::string& x) {
  switch (b.below(5)) {
    case 0: return b.node("Relu", {x});
    case 1: return b.node("Clip", {x, b.scalar(DType::kF32, 0), b.scalar(DType::kF32, 6)});
    case 2: return b.node("HardSigmoid", {x});
    default: return x;
  }
}

bool add_pair(Builder& b) {
  const Item* x = b.any([](const Item& i) { return i.dtype == DType::kF32; });
  if (!x) return false;
  through(b, x->name, steps(b));
  return true;
}

// MatMul or Gemm.
bool add_matrix(Builder& b) {
  const Item* x = b.any([](const Item& i) {
    return i.dtype == DType::kF32 && i.rank() >= 2 && i.shape.back() > 0 && i.shape.back() <= 64;
  });
  if (!x) return false;
  const int64_t k = x->shape.back(), n = b.one_of<int64_t>({1, 3, 8, 17, 33});
  const std::string in = through(b, x->name, steps(b));
  const double range = 1.6 / static_cast<double>(k);
  std::string y;
  if (x->rank() == 2 && b.chance(50))
    y = b.node("Gemm", {in, weights(b, {n, k}, 0, range), b.weight(DType::kF32, {n})},
               {{"transB", int64_t{1}}});
  else
    y = b.node("MatMul", {in, weights(b, {k, n}, 1, range)});
  through(b, activation(b, y), steps(b));
  return true;
}

// A convolution, perhaps depthwise, perhaps with a residual or a pool behind.
bool add_image(Builder& b) {
  const Item* x = b.any([](const Item& i) {
    return i.dtype == DType::kF32 && (i.rank() == 3 || i.rank() == 4) && i.shape[1] > 0 && i.shape[1] <= 48;
  });
  if (!x) return false;
  const int64_t channels = x->shape[1];
  const bool depthwise = b.chance(35), pointwise = !depthwise && b.chance(30);
  const int64_t out = depthwise || b.chance(40) ? channels : b.one_of<int64_t>({1, 4, 9, 16, 20}),
                side = pointwise ? 1 : 3;
  std::vector<int64_t> shape{out, depthwise ? 1 : channels}, pads, strides, pool;
  for (size_t d = 2; d < x->rank(); ++d) {
    shape.push_back(side);
    strides.push_back(b.chance(75) ? 1 : 2);
    pads.insert(pads.end(), 2, side / 2);
    pool.push_back(2);
  }
  const std::string in = through(b, x->name, steps(b));
  const double range = 1.6 / static_cast<double>(shape[1] * side);
  std::vector<std::string> inputs{in, weights(b, shape, 0, range)};
  if (b.chance(70)) inputs.push_back(b.weight(DType::kF32, {out}));
  const bool same = out == channels && strides == std::vector<int64_t>(strides.size(), 1);
  std::string y = b.node(
      "Conv", inputs, {{"pads", pads}, {"strides", strides}, {"group", depthwise ? channels : int64_t{1}}});
  const Steps last = steps(b);
  if (same && b.chance(50)) y = b.node("Add", {through(b, y, steps(b)), in});
  y = through(b, activation(b, y), last);
  if (b.chance(25))
    through(b, b.node("MaxPool", {y}, {{"kernel_shape", pool}, {"auto_pad", std::string("SAME_UPPER")}}),
            last);
  return true;
}

}  // namespace

const std::vector<Production>& quantised_productions() {
  static const std::vector<Production> table = {
      {"pair", 2, add_pair}, {"matrix", 4, add_matrix}, {"image", 6, add_image}};
  return table;
}

}  // namespace sinter::random_graphs
