// Steps: how a tensor of floats becomes bytes; weights and activations each have their way to find them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace sinter::quantize {

// x is about (q - zero) * scale, q an uint8.
struct Steps {
  float scale = 1;
  int zero = 0;
};

// The steps in which [lo, hi], widened to hold 0, becomes 0 to 255.
Steps steps_of(double lo, double hi);
// The nearest byte, as QuantizeLinear finds it.
int quantised(double x, const Steps& s);

// Some of a tensor's values over all samples, spread evenly, and its true limits.
class Values {
 public:
  void add(const Tensor& t);
  double lo() const { return lo_; }
  double hi() const { return hi_; }
  const std::vector<float>& some() const { return some_; }

 private:
  static constexpr int64_t kOfSample = 8192;
  double lo_ = 0, hi_ = 0;
  std::vector<float> some_;
};

// One way to take a range of values, and the steps it leads to.
struct Estimate {
  std::string name;
  Steps steps;
};
// The limits; the range without 0.01 and without 0.1 percent of the values on each side; and the range of
// least squared error. Different ones only.
std::vector<Estimate> estimates_of(const Values& v);

// Weights as int8 with a scale for each index of `axis`, or one for all (axis -1), without a zero point: of
// each scale's weights the range of least squared error is taken.
struct ByteWeights {
  Tensor bytes, scales;  // int8; float32 [n] or a scalar
  Tensor values;         // what they stand for
};
ByteWeights byte_weights(const Tensor& weights, int axis);

}  // namespace sinter::quantize
