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

// The rows of a MatMul's result: of all matrices one column where the epilogue allows it, else those of one
// matrix after the other, in loops around.
class MatrixRows {
 public:
  MatrixRows(LayerWriter&, const Epilogue&);

  bool one_column() const { return matrices_ == 0; }
  const Dim& count() const { return count_; }  // of the column or of a matrix
  void open();
  void close();
  // What stands before a row's number to count the rows of earlier matrices too: "" or "b0 * 7 + ".
  const std::string& earlier() const { return earlier_; }
  std::vector<std::string> index(const std::string& row, const std::string& column) const;

 private:
  LayerWriter& w_;
  const Shape& out_;
  const size_t matrices_;  // axes of them
  const Dim count_;
  std::string earlier_;
};

}  // namespace sinter
