// What the kernels of integer products share: Conv and MatMul with the attribute `integer`, of int16
// (conv_integer.cpp) or of bytes (conv_dot.cpp), with constant weights and int32 sums.
#pragma once
#include <string>
#include <string_view>

#include "emit/epilogue.h"

namespace sinter {

// The operator `op` on integers of type `weights` that are constant.
bool is_integer_product(const Node& n, std::string_view op, DType weights);
// A convolution of those on channels-last tensors, with a constant bias or none.
bool is_integer_conv(const Node& n, DType weights);

struct ConvShape {
  int64_t groups, group_in, group_out, taps;

  int64_t in_channels() const { return groups * group_in; }
  int64_t out_channels() const { return groups * group_out; }
  bool is_depthwise() const { return groups > 1 && group_in == 1 && group_out == 1; }
};
ConvShape conv_shape(const Node& n);
bool is_matrix_product(const Node& n);
// The same of a MatMul by one matrix, which is a pointwise convolution of rows.
ConvShape product_shape(const Node& n);

}  // namespace sinter
