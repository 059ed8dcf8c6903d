// Tensors made from nothing but a shape or bounds: ConstantOfShape, Range, EyeLike.
#include <algorithm>
#include <cmath>

#include "ops/movement.h"

namespace sinter {
namespace {

// ConstantOfShape: `value` (one element, float 0 by default) in every place of the shape given as int64[n].
void infer_constant_of_shape(Inference& x) {
  const Tensor* value = x.attributes().tensor("value");
  x.require(!value || value->size() == 1, "its value must have one element");
  operand_length(x, 0, "shape");
  Shape shape = known_elements(x, 0, "shape");
  for (const Dim& d : shape)
    x.require(d.hi() >= 0, fmt::format("its shape has the negative extent {}", d.text()));
  const DType type = value ? value->dtype() : DType::kF32;
  const bool integral = is_integer(type) || type == DType::kBool;
  Fact& out = x.out[0];
  x.set(0, type, std::move(shape));
  if (!integral || !is_static(out.type.shape)) return;
  const Dim size = product(out.type.shape);
  if (size.value() <= Fact::kMaxElements)
    out.elements.assign(static_cast<size_t>(size.value()), Dim(value->integer(0)));
}
void eval_constant_of_shape(Evaluation& e) {
  if (const Tensor* value = e.attributes().tensor("value")) fill_with(e.out[0], *value, 0);
}

// The number of steps of a float Range; limits as in ONNX: max(ceil((limit - start) / delta), 0).
int64_t float_steps(const Inference& x) {
  double v[3];
  const char* names[] = {"start", "limit", "delta"};
  for (size_t i = 0; i < 3; ++i) {
    if (!x.in[i].data) fail_unknown(x, i, names[i]);
    v[i] = x.in[i].data->real(0);
    x.require(std::isfinite(v[i]), fmt::format("its {} is not finite", names[i]));
  }
  x.require(v[2] != 0, "its delta is 0");
  const double difference = x.dtype(0) == DType::kF32
                                ? static_cast<double>(static_cast<float>(v[1]) - static_cast<float>(v[0]))
                                : v[1] - v[0];
  const double n = std::max(std::ceil(difference / v[2]), 0.0);
  x.require(n < 1e10, "its range is too long");
  return static_cast<int64_t>(n);
}

// Range: start, start + delta, … before limit; three scalars of one type.
void infer_range(Inference& x) {
  for (size_t i = 0; i < 3; ++i) {
    x.require(x.dtype(i) == x.dtype(0), "start, limit and delta differ in type");
    x.require(x.rank(i) == 0 || (x.rank(i) == 1 && x.shape(i)[0].is(1)), "its operands must be scalars");
  }
  if (is_float(x.dtype(0))) return x.set(0, x.dtype(0), {Dim(float_steps(x))});
  x.require(is_integer(x.dtype(0)), fmt::format("not for {}", name_of(x.dtype(0))));
  const Dim start = known_elements(x, 0, "start")[0], limit = known_elements(x, 1, "limit")[0];
  const Dim delta = known_elements(x, 2, "delta")[0];
  x.require(!delta.is(0), "its delta is 0");
  if (delta.lo() <= 0 && delta.hi() >= 0) fail_unknown(x, 2, "delta");
  const Dim n = delta.lo() > 0 ? ceildiv(limit - start, delta) : ceildiv(start - limit, Dim(0) - delta);
  x.set(0, x.dtype(0), {max(n, 0)});
  const Dim& length = x.out[0].type.shape[0];
  if (length.is_static() && length.value() <= Fact::kMaxElements)
    for (int64_t i = 0; i < length.value(); ++i) x.out[0].elements.push_back(start + delta * i);
}
void eval_range(Evaluation& e) {
  const Tensor &start = e.in[0], &delta = e.in[2];
  for (int64_t i = 0; i < e.out[0].size(); ++i) {
    if (is_float(start.dtype()))
      e.out[0].set_real(i, start.real(0) + static_cast<double>(i) * delta.real(0));
    else
      e.out[0].set_integer(i, start.integer(0) + i * delta.integer(0));
  }
}

// EyeLike: 1 on the k-th diagonal of a matrix shaped like the input.
void infer_eye_like(Inference& x) {
  x.require(x.rank(0) == 2, fmt::format("a matrix is needed, not {}", text(x.shape(0))));
  const int64_t wanted = x.attributes().integer("dtype", onnx_of(x.dtype(0)));
  const DType type = dtype_of_onnx(static_cast<int>(std::clamp<int64_t>(wanted, 0, 1000)));
  x.require(is_float(type) || is_integer(type) || type == DType::kBool,
            fmt::format("its dtype {} is not a number's", wanted));
  x.set(0, type, x.shape(0));
}
void eval_eye_like(Evaluation& e) {
  Tensor& out = e.out[0];
  const int64_t rows = out.dim(0), columns = out.dim(1), k = e.attributes().integer("k", 0);
  if (k <= -rows || k >= columns) return;
  for (int64_t r = std::max<int64_t>(0, -k); r < rows && r + k < columns; ++r)
    out.set_integer(r * columns + r + k, 1);
}

}  // namespace

const std::vector<Op>& ops_constant() {
  static const std::vector<Op> table = {
      {.name = "ConstantOfShape", .infer = infer_constant_of_shape, .eval = eval_constant_of_shape},
      {.name = "Range", .min_inputs = 3, .max_inputs = 3, .infer = infer_range, .eval = eval_range},
      {.name = "EyeLike", .infer = infer_eye_like, .eval = eval_eye_like},
  };
  return table;
}

}  // namespace sinter
