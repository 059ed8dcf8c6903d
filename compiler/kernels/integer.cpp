#include "kernels/integer.h"

#include "ops/contraction.h"
#include "ops/op.h"

namespace sinter {

bool is_integer_product(const Node& n, std::string_view op, DType weights) {
  return n.op->domain[0] == 0 && n.op->name == op && sums_integers(n) && n.inputs[1]->data &&
         n.inputs[1]->data->size() > 0 && n.inputs[1]->type.dtype == weights;
}

bool is_integer_conv(const Node& n, DType weights) {
  return is_integer_product(n, "Conv", weights) && n.attributes.integer("channels_last", 0) == 1 &&
         (n.anchor_inputs < 3 || !n.inputs[2] || n.inputs[2]->data);
}

ConvShape conv_shape(const Node& n) {
  const Tensor& w = *n.inputs[1]->data;
  const int64_t groups = n.attributes.integer("group", 1);
  return {groups, w.dim(1), w.dim(0) / groups, w.size() / (w.dim(0) * w.dim(1))};
}

MatrixRows::MatrixRows(LayerWriter& w, const Epilogue& epilogue)
    : w_(w),
      out_(w.node.outputs[0]->type.shape),
      matrices_(epilogue.can_merge(0, out_.size() - 2) ? 0 : out_.size() - 2),
      count_(product(out_, matrices_, out_.size() - 1)) {
  for (size_t a = 0; a < matrices_; ++a)
    earlier_ = a == 0 ? "b0" : fmt::format("({} * {} + b{})", earlier_, w.dim(out_[a]), a);
  if (matrices_ > 0) earlier_ += fmt::format(" * {} + ", w.dim(count_));
}

void MatrixRows::open() {
  for (size_t a = 0; a < matrices_; ++a)
    w_.out.line("for (std::int64_t b{0} = 0; b{0} < {1}; ++b{0}) {{", a, w_.dim(out_[a]));
}

void MatrixRows::close() {
  for (size_t a = 0; a < matrices_; ++a) w_.out.line("}}");
}

std::vector<std::string> MatrixRows::index(const std::string& row, const std::string& column) const {
  std::vector<std::string> index(out_.size(), "0");
  for (size_t a = 0; a < matrices_; ++a) index[a] = fmt::format("b{}", a);
  index[out_.size() - 2] = row;
  index[out_.size() - 1] = column;
  return index;
}

}  // namespace sinter
