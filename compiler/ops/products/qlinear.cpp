// Integer products: ConvInteger (ONNX 10), MatMulInteger (10), QLinearConv (10), QLinearMatMul (21).
//
// All become a Conv or MatMul of int16 with sums of int32 (attribute `integer`): 8-bit operands less their
// zero points fit 16 bits, so that zero points of any shape cost one subtraction an element, padding is 0,
// and kernels know one form of product. The QLinear operators scale the sums in float32 by a_scale * b_scale
// / y_scale, round to even and saturate, as ONNX Runtime does. Sums wrap, as 32-bit integers do.
#include "ops/elementwise/quantize.h"

namespace sinter {
namespace {

void require_bytes(const Lowering& l, const Value* v) {
  const DType t = dtype_of(v);
  l.require(t == DType::kI8 || t == DType::kU8, fmt::format("only for int8 and uint8, not {}", name_of(t)));
}

bool is_single(const Value* v) {
  for (const Dim& d : shape_of(v))
    if (!d.is(1)) return false;
  return true;
}

// v - zero as int16; zero: null or broadcast against v.
Value* centred(Lowering& l, Value* v, Value* zero) {
  require_bytes(l, v);
  v = l.cast(v, DType::kI16);
  return zero ? l("Sub", {v, l.cast(zero, DType::kI16)}) : v;
}

void require_zero_type(const Lowering& l, const Value* zero, const Value* v) {
  l.require(!zero || dtype_of(zero) == dtype_of(v), "a zero point has another type than its data");
}

// A parameter of the weights: one element, or one for each output channel, as [M,1,..].
Value* for_each_filter(Lowering& l, Value* p, const Value* w, size_t axes, const char* what) {
  if (is_single(p)) return scalar_of(l, p, what);
  l.require(rank_of(p) == 1, fmt::format("{} has the shape {}", what, text(shape_of(p))));
  l.require_equal(shape_of(p)[0], shape_of(w)[0], fmt::format("{}: one for each output channel", what));
  std::vector<int64_t> target(axes, 1);
  target[0] = -1;
  return l.reshape(p, target);
}

Value* integer_conv(Lowering& l, Value* x, Value* x_zero, Value* w, Value* w_zero, Value* bias) {
  l.require(rank_of(w) >= 3, fmt::format("weights {}", text(shape_of(w))));
  require_bytes(l, w);
  require_zero_type(l, x_zero, x);
  require_zero_type(l, w_zero, w);
  if (x_zero) x_zero = scalar_of(l, x_zero, "the zero point of x");
  if (w_zero) w_zero = for_each_filter(l, w_zero, w, shape_of(w).size(), "the zero point of w");
  Lowering::AttributeList attributes = l.attributes().all();
  attributes.erase("channels_last");
  attributes["integer"] = int64_t{1};
  return l("Conv", {centred(l, x, x_zero), centred(l, w, w_zero), bias}, attributes);
}

// A parameter of the rows of `a`: one element, [M], or as many axes as `a` with the last one 1.
Value* for_each_row(Lowering& l, Value* p, const Value* a) {
  if (is_single(p)) return scalar_of(l, p, "a parameter of a");
  l.require(rank_of(a) >= 2, "one zero point or scale for each row of a vector");
  if (rank_of(p) != 1) return p;
  l.require_equal(shape_of(p)[0], shape_of(a)[shape_of(a).size() - 2], "one parameter for each row of a");
  return l.reshape(p, {-1, 1});
}
// Of the columns of `b`: one element, [N], or as many axes as `b` with the last but one 1.
Value* for_each_column(Lowering& l, Value* p) {
  return is_single(p) ? scalar_of(l, p, "a parameter of b") : p;
}

Value* integer_matmul(Lowering& l, Value* a, Value* a_zero, Value* b, Value* b_zero) {
  require_zero_type(l, a_zero, a);
  require_zero_type(l, b_zero, b);
  if (a_zero) a_zero = for_each_row(l, a_zero, a);
  if (b_zero) b_zero = for_each_column(l, b_zero);
  return l("MatMul", {centred(l, a, a_zero), centred(l, b, b_zero)}, {{"integer", int64_t{1}}});
}

Value* scale_of(Lowering& l, Value* v) {
  l.require(is_float(dtype_of(v)), fmt::format("a scale of {}", name_of(dtype_of(v))));
  return l.cast(v, DType::kF32);
}

// saturate(round(sums * scale) + zero) as bytes.
Value* requantized(Lowering& l, Value* sums, Value* scale, Value* zero) {
  require_bytes(l, zero);
  return quantized(l, l("Mul", {l.cast(sums, DType::kF32), scale}), l.number(1),
                   scalar_of(l, zero, "the zero point of y"), dtype_of(zero));
}

void lower_conv_integer(Lowering& l) {
  l.results[0] = integer_conv(l, l.in(0), l.in(2), l.in(1), l.in(3), nullptr);
}

void lower_qlinear_conv(Lowering& l) {
  for (size_t i = 0; i < 8; ++i) l.require(l.has(i), fmt::format("input {} is missing", i));
  Value *x = l.in(0), *w = l.in(3);
  if (l.has(8)) l.require(dtype_of(l.in(8)) == DType::kI32, "the bias is not int32");
  Value* sums = integer_conv(l, x, l.in(2), w, l.in(5), l.in(8));
  Value* x_scale = scalar_of(l, scale_of(l, l.in(1)), "the scale of x");
  Value* w_scale = for_each_filter(l, scale_of(l, l.in(4)), w, shape_of(w).size() - 1, "the scale of w");
  Value* y_scale = scalar_of(l, scale_of(l, l.in(6)), "the scale of y");
  l.results[0] = requantized(l, sums, l("Div", {l("Mul", {x_scale, w_scale}), y_scale}), l.in(7));
}

void lower_matmul_integer(Lowering& l) {
  l.results[0] = integer_matmul(l, l.in(0), l.in(2), l.in(1), l.in(3));
}

void lower_qlinear_matmul(Lowering& l) {
  Value *a = l.in(0), *b = l.in(3);
  Value* sums = integer_matmul(l, a, l.in(2), b, l.in(5));
  Value* a_scale = for_each_row(l, scale_of(l, l.in(1)), a);
  Value* b_scale = for_each_column(l, scale_of(l, l.in(4)));
  Value* y_scale = scalar_of(l, scale_of(l, l.in(6)), "the scale of y");
  l.results[0] = requantized(l, sums, l("Div", {l("Mul", {a_scale, b_scale}), y_scale}), l.in(7));
}

// --- com.microsoft: products whose result is float

// sums * scale [+ bias] in float32.
Value* scaled(Lowering& l, Value* sums, Value* scale, Value* bias) {
  Value* y = l("Mul", {l.cast(sums, DType::kF32), scale});
  return bias ? l("Add", {y, bias}) : y;
}

// A, B, a_scale, b_scale, a_zero, b_zero, bias.
void lower_matmul_integer_to_float(Lowering& l) {
  Value *a = l.in(0), *b = l.in(1);
  Value* sums = integer_matmul(l, a, l.in(4), b, l.in(5));
  Value* scale =
      l("Mul", {for_each_row(l, scale_of(l, l.in(2)), a), for_each_column(l, scale_of(l, l.in(3)))});
  l.require(!l.in(6) || dtype_of(l.in(6)) == dtype_of(l.in(2)), "the bias has another type than the scales");
  Value* bias = l.in(6) ? l.cast(l.in(6), DType::kF32) : nullptr;
  l.results[0] = l.cast(scaled(l, sums, scale, bias), dtype_of(l.in(2)));
}

// A (float32), B, b_scale, b_zero, bias.
void lower_dynamic_quantize_matmul(Lowering& l) {
  Value* a = l.in(0);
  l.require(dtype_of(a) == DType::kF32, fmt::format("not for {}", name_of(dtype_of(a))));
  const DynamicRange r = dynamic_range(l, a);
  Value* q = quantized(l, a, r.scale, r.zero, DType::kU8);
  Value* sums = integer_matmul(l, q, r.zero, l.in(1), l.in(3));
  Value* scale = l("Mul", {r.scale, for_each_column(l, scale_of(l, l.in(2)))});
  l.results[0] = scaled(l, sums, scale, l.in(4));
}

// A, a_scale, a_zero, B, b_scale, b_zero, C (int32), y_scale, y_zero: alpha * (A' B' + C), C in the product's
// scale; float32 where y has no scale.
void lower_qgemm(Lowering& l) {
  Value *a = l.in(0), *b = l.in(3);
  l.require(rank_of(a) == 2 && rank_of(b) == 2, "A and B are not both matrices");
  require_zero_type(l, l.in(2), a);
  require_zero_type(l, l.in(5), b);
  Value* a_scale = scalar_of(l, scale_of(l, l.in(1)), "the scale of a");
  Value *b_scale = scale_of(l, l.in(4)), *b_zero = l.in(5);
  Value* a_zero = l.in(2) ? scalar_of(l, l.in(2), "the zero point of a") : nullptr;
  if (l.attributes().integer("transA", 0) != 0)
    a = l("Transpose", {a}, {{"perm", std::vector<int64_t>{1, 0}}});
  if (l.attributes().integer("transB", 0) != 0)
    b = l("Transpose", {b}, {{"perm", std::vector<int64_t>{1, 0}}});
  Value* sums = integer_matmul(l, a, a_zero, b, b_zero);
  if (l.has(6)) {
    l.require(dtype_of(l.in(6)) == DType::kI32, "C is not int32");
    sums = l("Add", {sums, l.in(6)});
  }
  Value* scale = l("Mul", {a_scale, for_each_column(l, b_scale)});
  if (const float alpha = l.attributes().real("alpha", 1); alpha != 1)
    scale = l("Mul", {scale, l.number(alpha)});
  if (!l.has(7)) {
    l.require(!l.has(8), "a zero point of y without a scale");
    l.results[0] = scaled(l, sums, scale, nullptr);
    return;
  }
  l.require(l.has(8), "a scale of y without a zero point");
  Value* y_scale = scalar_of(l, scale_of(l, l.in(7)), "the scale of y");
  l.results[0] = requantized(l, sums, l("Div", {scale, y_scale}), l.in(8));
}

}  // namespace

const std::vector<Op>& ops_qlinear() {
  static const std::vector<Op> table = {
      {.name = "ConvInteger", .min_inputs = 2, .max_inputs = 4, .lower = lower_conv_integer},
      {.name = "QLinearConv", .min_inputs = 8, .max_inputs = 9, .lower = lower_qlinear_conv},
      {.name = "MatMulInteger", .min_inputs = 2, .max_inputs = 4, .lower = lower_matmul_integer},
      {.name = "QLinearMatMul",
       .min_inputs = 8,
       .max_inputs = 8,
       .lower = lower_qlinear_matmul,
       .note = "int8 and uint8"},
      {.name = "MatMulIntegerToFloat",
       .domain = "com.microsoft",
       .min_inputs = 4,
       .max_inputs = 7,
       .lower = lower_matmul_integer_to_float},
      {.name = "DynamicQuantizeMatMul",
       .domain = "com.microsoft",
       .min_inputs = 3,
       .max_inputs = 5,
       .lower = lower_dynamic_quantize_matmul},
      {.name = "QGemm", .domain = "com.microsoft", .min_inputs = 6, .max_inputs = 9, .lower = lower_qgemm},
  };
  return table;
}

}  // namespace sinter
