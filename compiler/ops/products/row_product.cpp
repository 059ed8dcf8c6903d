#include "ops/products/row_product.h"

#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

bool is_op(const Node& n, std::string_view name) { return n.op->domain[0] == 0 && n.op->name == name; }

// Whether the epilogue can walk all rows as one long column.
bool has_mergeable_epilogue(const Node& n) {
  if (!n.epilogue) return true;
  const Shape& out = n.outputs[0]->type.shape;
  for (size_t i = n.anchor_inputs; i < n.inputs.size(); ++i) {
    const Shape& s = n.inputs[i]->type.shape;
    if (s == out) continue;
    for (size_t a = 0; a + 1 < s.size(); ++a)
      if (!s[a].is(1)) return false;
  }
  return true;
}

bool is_constant_or_absent(const Node& n, size_t input) {
  return n.anchor_inputs <= input || !n.inputs[input] || n.inputs[input]->data;
}

// A convolution of all channels, whose pixels' channels lie side by side.
bool is_whole_conv(const Node& n) {
  if (n.attributes.integer("channels_last", 0) != 1 || n.attributes.integer("group", 1) != 1) return false;
  return is_constant_or_absent(n, 2);
}

std::optional<RowProduct> product_of(const Node& n, int64_t rows) {
  const Tensor& w = *n.inputs[1]->data;
  if (is_op(n, "Conv")) {
    if (!is_whole_conv(n) || !window_of(n).is_pointwise()) return std::nullopt;
    return RowProduct{rows, w.dim(1), w.dim(0), w.as<float>(), 1, w.dim(1), 1};
  }
  if (w.rank() != 2) return std::nullopt;
  if (is_op(n, "MatMul")) return RowProduct{rows, w.dim(0), w.dim(1), w.as<float>(), w.dim(1), 1, 1};
  if (!is_op(n, "Gemm") || n.attributes.integer("transA", 0) != 0) return std::nullopt;
  if (!is_constant_or_absent(n, 2)) return std::nullopt;
  if (n.anchor_inputs > 2 && n.inputs[2]) {
    const Tensor& c = *n.inputs[2]->data;
    if (c.rank() == 0 || c.size() != c.dim(c.rank() - 1)) return std::nullopt;
  }
  const bool transposed = n.attributes.integer("transB", 0) != 0;
  RowProduct p{rows, w.dim(0), w.dim(1), w.as<float>(), w.dim(1), 1, n.attributes.real("alpha", 1)};
  if (transposed) std::swap(p.k, p.n), std::swap(p.k_stride, p.n_stride);
  return p;
}

// Floats with constant weights, a static result and an epilogue by rows.
bool has_rows(const Node& n) {
  const Value &x = *n.inputs[0], &w = *n.inputs[1], &y = *n.outputs[0];
  if (x.type.dtype != DType::kF32 || y.type.dtype != DType::kF32 || !w.data || w.type.dtype != DType::kF32)
    return false;
  return x.type.shape.size() >= 2 && is_static(y.type.shape) && has_mergeable_epilogue(n);
}

}  // namespace

std::optional<RowProduct> row_product(const Node& n) {
  if (!is_op(n, "MatMul") && !is_op(n, "Gemm") && !is_op(n, "Conv")) return std::nullopt;
  if (!has_rows(n)) return std::nullopt;
  const Value& y = *n.outputs[0];
  const int64_t columns = y.type.shape.back().value();
  const auto p = product_of(n, columns > 0 ? product(y.type.shape).value() / columns : 0);
  if (!p || p->rows < 1 || p->k < 1 || p->n < 1) return std::nullopt;
  return p;
}

std::optional<RowProduct> window_product(const Node& n, int64_t block) {
  if (!is_op(n, "Conv") || !has_rows(n) || !is_whole_conv(n)) return std::nullopt;
  const Shape &x = n.inputs[0]->type.shape, &y = n.outputs[0]->type.shape;
  if (x.size() != 4 || !is_static(x) || !x[0].is(1) || !window_of(n).is_static()) return std::nullopt;
  const StaticWindow window = window_of(n).numbers();
  const Tensor& w = *n.inputs[1]->data;
  const int64_t channels = w.dim(1), taps = window.taps();
  if (window.is_pointwise() || channels < 1 || channels % block != 0 || product(y).value() < 1)
    return std::nullopt;
  return RowProduct{window.out_size(), taps * channels, w.dim(0), w.as<float>(), 1, taps * channels, 1,
                    channels};
}

std::optional<RowProduct> amx_product(const Node& n) {
  const auto p = row_product(n);
  return p ? p : window_product(n, kAmxDepth);
}

bool may_use_strassen(const Node& n) {
  const auto p = row_product(n);
  return p && p->rows > 1 && p->k % 2 == 0 && p->n % 2 == 0;
}

bool may_use_strassen_twice(const Node& n) {
  const auto p = row_product(n);
  return p && p->rows > 3 && p->k % 4 == 0 && p->n % 4 == 0;
}

}  // namespace sinter
