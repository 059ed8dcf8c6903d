#include "kernels/products/integer.h"

#include "ops/op.h"
#include "ops/products/contraction.h"

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

bool is_matrix_product(const Node& n) { return std::string_view(n.op->name) == "MatMul"; }

ConvShape product_shape(const Node& n) {
  if (!is_matrix_product(n)) return conv_shape(n);
  return {1, n.inputs[1]->data->dim(0), n.inputs[1]->data->dim(1), 1};
}

}  // namespace sinter
