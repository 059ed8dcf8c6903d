// Tensors made from nothing but a shape or bounds: ConstantOfShape, Range, EyeLike.
#include <algorithm>
#include <cmath>

#include "ops/movement/movement.h"

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

// The length of a Range over integers.
Dim integer_steps(const Inference& x, const Dim& start, const Dim& limit, const Dim& delta) {
  x.require(!delta.is(0), "its delta is 0");
  if (delta.lo() <= 0 && delta.hi() >= 0) fail_unknown(x, 2, "delta");
  const Dim n = delta.lo() > 0 ? ceildiv(limit - start, delta) : ceildiv(start - limit, Dim(0) - delta);
  return max(n, 0);
}

// What a float Range knows of an operand: its value, or the integer it was cast from (exporters write
// positions as Range(0, Cast(length), 1)).
struct RealOperand {
  std::optional<double> value;
  std::optional<Dim> integer;
};
// The integer that a float operand was cast from; nullopt where it wasn't.
std::optional<Dim> cast_integer(const Value* v) {
  while (v && v->producer && !is_integer(v->type.dtype)) {
    const std::string_view op = v->producer->op->name;
    const bool passes = v->producer->op->is_view || op == "Cast" || op == "Identity";
    v = passes && is_float(v->type.dtype) ? v->producer->input(0) : nullptr;
  }
  const auto known = v && is_integer(v->type.dtype) ? contents(v) : std::nullopt;
  return known && known->size() == 1 ? std::optional<Dim>((*known)[0]) : std::nullopt;
}
bool knows(const Inference& x, size_t i) {
  return is_float(x.dtype(i)) ? x.in[i].data || cast_integer(x.node.input(i)) : x.elements(i).has_value();
}
RealOperand real_operand(const Inference& x, size_t i, const char* what) {
  RealOperand r;
  if (x.in[i].data) {
    const double v = x.in[i].data->real(0);
    x.require(std::isfinite(v), fmt::format("its {} is not finite", what));
    r.value = v;
    if (v == std::floor(v) && std::abs(v) <= 0x1p53) r.integer = Dim(static_cast<int64_t>(v));
    return r;
  }
  r.integer = cast_integer(x.node.input(i));
  if (!r.integer) fail_unknown(x, i, what);
  if (r.integer->is_static()) r.value = static_cast<double>(r.integer->value());
  return r;
}

// The length of a float Range: max(ceil((limit - start) / delta), 0).
Dim float_steps(Inference& x) {
  const DType type = x.dtype(0);
  const char* names[] = {"start", "limit", "delta"};
  RealOperand o[3];
  for (size_t i = 0; i < 3; ++i) o[i] = real_operand(x, i, names[i]);
  x.require(o[2].value != 0, "its delta is 0");
  if (o[0].value && o[1].value && o[2].value) {
    const double limit = *o[1].value, start = *o[0].value;
    const double difference =
        type == DType::kF64 ? limit - start
                            : static_cast<double>(static_cast<float>(limit) - static_cast<float>(start));
    const double n = std::max(std::ceil(difference / *o[2].value), 0.0);
    x.require(n < 1e10, "its range is too long");
    return Dim(static_cast<int64_t>(n));
  }
  // Floats of this type count exactly as far as this.
  const Dim most(int64_t{1} << (type == DType::kF64   ? 53
                                : type == DType::kF32 ? 24
                                : type == DType::kF16 ? 11
                                                      : 8));
  for (size_t i = 0; i < 3; ++i) {
    x.require(o[i].integer.has_value(), "a float range of symbolic length needs whole numbers");
    require_le(x, *o[i].integer, most, fmt::format("its {} as {}", names[i], name_of(type)));
    require_le(x, Dim(0) - most, *o[i].integer, fmt::format("its {} as {}", names[i], name_of(type)));
  }
  return integer_steps(x, *o[0].integer, *o[1].integer, *o[2].integer);
}

// Range: start, start + delta, … before limit; three scalars of one type.
void infer_range(Inference& x) {
  for (size_t i = 0; i < 3; ++i) {
    x.require(x.dtype(i) == x.dtype(0), "start, limit and delta differ in type");
    x.require(x.rank(i) == 0 || (x.rank(i) == 1 && x.shape(i)[0].is(1)), "its operands must be scalars");
  }
  const bool known = knows(x, 0) && knows(x, 1) && knows(x, 2);
  if (!known) {
    const int64_t most = x.symbols.limit(fmt::format("{}_length", x.node.name));
    return x.set(0, x.dtype(0), {x.operand_extent("length", most)});
  }
  if (is_float(x.dtype(0))) return x.set(0, x.dtype(0), {float_steps(x)});
  x.require(is_integer(x.dtype(0)), fmt::format("not for {}", name_of(x.dtype(0))));
  const Dim start = known_elements(x, 0, "start")[0], limit = known_elements(x, 1, "limit")[0];
  const Dim delta = known_elements(x, 2, "delta")[0];
  x.set(0, x.dtype(0), {integer_steps(x, start, limit, delta)});
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
