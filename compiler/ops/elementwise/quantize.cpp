// QuantizeLinear and DequantizeLinear (ONNX 28), DynamicQuantizeLinear (ONNX 11).
//
// The two are elementwise once their scales and zero points have a shape that broadcasts against the data:
// our own operators `quantize` and `dequantize`, whose expressions fuse with what stands around them. Both
// compute in float32, also where scales or `precision` are 16-bit floats: never less exact than asked for.
//
//   quantize(x, scale, zero)    saturate(round(x / scale) + zero), ties to even; float8 and float4 round
//   once,
//                               when they are stored
//   dequantize(x, scale, zero)  (x - zero) * scale
#include "ops/elementwise/quantize.h"

#include <algorithm>

#include "ops/elementwise/elementwise.h"

namespace sinter {

bool is_quantized(DType t) {
  return is_small_float(t) ? t != DType::kF8E8M0 : is_integer(t) && bits_of(t) <= 16;
}

namespace {

bool has_one_element(const Value* v) {
  return std::all_of(shape_of(v).begin(), shape_of(v).end(), [](const Dim& d) { return d.is(1); });
}

// Blocks of indices: [0 0 .. 1 1 ..], one for each index of an axis of `extent`.
Tensor block_of_index(int64_t extent, int64_t block) {
  std::vector<int64_t> at;
  for (int64_t i = 0; i < extent; ++i) at.push_back(i / block);
  return Tensor::of(at);
}

}  // namespace

Value* scalar_of(Lowering& l, Value* v, const char* what) {
  l.require(has_one_element(v), fmt::format("{} has {} elements", what, text(shape_of(v))));
  return rank_of(v) == 0 ? v : l.reshape(v, {});
}

Value* spread(Lowering& l, Value* p, const Value* x, int64_t axis, int64_t block) {
  const int64_t rank = rank_of(x);
  if (rank_of(p) == 0) return p;
  l.require(block >= 0, fmt::format("block_size is {}", block));
  if (rank_of(p) == 1 && (has_one_element(p) || block == 0)) {
    if (has_one_element(p)) return l.reshape(p, {});
    l.require(axis >= -rank && axis < rank, fmt::format("axis {} out of range for {} axes", axis, rank));
    if (axis < 0) axis += rank;
    l.require_equal(shape_of(p)[0], shape_of(x)[static_cast<size_t>(axis)],
                    "one scale for each index of the axis");
    std::vector<int64_t> target(static_cast<size_t>(rank), 1);
    target[static_cast<size_t>(axis)] = -1;
    return l.reshape(p, target);
  }
  l.require(block > 0 && rank_of(p) == rank,
            fmt::format("scale {} for {} with block_size {}", text(shape_of(p)), text(shape_of(x)), block));
  l.require(axis >= -rank && axis < rank, fmt::format("axis {} out of range for {} axes", axis, rank));
  if (axis < 0) axis += rank;
  const size_t a = static_cast<size_t>(axis);
  for (size_t d = 0; d < shape_of(x).size(); ++d)
    if (d != a) l.require_equal(shape_of(p)[d], shape_of(x)[d], "extents of data and scales");
  const Dim &extent = shape_of(x)[a], &blocks = shape_of(p)[a];
  l.require(extent.is_static(), "the axis of the blocks must have a static extent");
  l.require_equal(blocks, ceildiv(extent, Dim(block)), "number of blocks");
  return l("Gather", {p, l.constant(block_of_index(extent.value(), block))}, {{"axis", axis}});
}

Value* dequantized(Lowering& l, Value* x, Value* scale, Value* zero) {
  if (zero && dtype_of(x) != DType::kI32) zero = l.cast(zero, DType::kF32);
  return l.ours("dequantize", {x, l.cast(scale, DType::kF32), zero});
}

Value* quantized(Lowering& l, Value* x, Value* scale, Value* zero, DType to, bool saturate) {
  std::vector<Value*> inputs{x, l.cast(scale, DType::kF32)};
  if (zero) inputs.push_back(l.cast(zero, DType::kF32));
  return l.ours("quantize", std::move(inputs),
                {{"to", static_cast<int64_t>(onnx_of(to))}, {"saturate", int64_t{saturate}}});
}

// scale = (max(x, 0) - min(x, 0)) / 255, 1 where all is 0; zero point = -min / scale.
DynamicRange dynamic_range(Lowering& l, Value* x) {
  Value* zero = l.number(0);
  Value* low = l("Min", {l("ReduceMin", {x}, {{"keepdims", int64_t{0}}}), zero});
  Value* high = l("Max", {l("ReduceMax", {x}, {{"keepdims", int64_t{0}}}), zero});
  Value* range = l("Sub", {high, low});
  Value* scale = l("Where", {l("Equal", {range, zero}), l.number(1), l("Div", {range, l.number(255)})});
  return {scale, quantized(l, l("Neg", {low}), scale, nullptr, DType::kU8)};
}

namespace {

DType named_dtype(const Lowering& l, const char* attribute, DType fallback) {
  const int64_t v = l.attributes().integer(attribute, 0);
  if (v == 0) return fallback;
  const DType t = v < 0 || v > 1000 ? DType::kUndefined : dtype_of_onnx(static_cast<int>(v));
  l.require(t != DType::kUndefined, fmt::format("{} is {}, which is no element type", attribute, v));
  return t;
}

// Scale and zero point of one shape, both spread against x.
struct Parameters {
  Value *scale, *zero;
};
Parameters parameters(Lowering& l, Value* x) {
  const DType t = dtype_of(l.in(1));
  l.require(is_float(t) || t == DType::kI32 || t == DType::kF8E8M0, fmt::format("a scale of {}", name_of(t)));
  const int64_t axis = l.attributes().integer("axis", 1), block = l.attributes().integer("block_size", 0);
  Parameters p{spread(l, l.in(1), x, axis, block), nullptr};
  if (l.has(2)) {
    const Shape &s = shape_of(l.in(1)), &z = shape_of(l.in(2));
    const bool single = has_one_element(l.in(1)) && has_one_element(l.in(2));
    l.require(single || s.size() == z.size(), fmt::format("scale {} and zero point {}", text(s), text(z)));
    for (size_t d = 0; !single && d < s.size(); ++d)
      l.require_equal(s[d], z[d], "extents of scale and zero point");
    p.zero = spread(l, l.in(2), x, axis, block);
  }
  return p;
}

void lower_quantize_linear(Lowering& l) {
  Value* x = l.in(0);
  l.require(is_float(dtype_of(x)) || dtype_of(x) == DType::kI32,
            fmt::format("not for {}", name_of(dtype_of(x))));
  DType to = named_dtype(l, "output_dtype", l.has(2) ? dtype_of(l.in(2)) : DType::kU8);
  l.require(!l.has(2) || dtype_of(l.in(2)) == to,
            fmt::format("output_dtype is {}, the zero point {}", name_of(to),
                        name_of(l.has(2) ? dtype_of(l.in(2)) : to)));
  l.require(is_quantized(to), fmt::format("to {} is not supported", name_of(to)));
  l.require(is_float(named_dtype(l, "precision", DType::kF32)), "precision is no float type");
  const Parameters p = parameters(l, x);
  l.results[0] = quantized(l, x, p.scale, p.zero, to, l.attributes().integer("saturate", 1) != 0);
}

void lower_dequantize_linear(Lowering& l) {
  Value* x = l.in(0);
  const DType t = dtype_of(x);
  l.require(is_quantized(t) || t == DType::kI32, fmt::format("not for {}", name_of(t)));
  l.require(!l.has(2) || dtype_of(l.in(2)) == t, "the zero point has another type than the data");
  const DType scale = dtype_of(l.in(1));
  const DType to = named_dtype(l, "output_dtype", is_float(scale) ? scale : DType::kF32);
  l.require(is_float(to) && to != DType::kF64, fmt::format("to {} is not supported", name_of(to)));
  const Parameters p = parameters(l, x);
  l.results[0] = l.cast(dequantized(l, x, p.scale, p.zero), to);
}

void lower_dynamic_quantize_linear(Lowering& l) {
  Value* x = l.in(0);
  l.require(dtype_of(x) == DType::kF32, fmt::format("not for {}", name_of(dtype_of(x))));
  const DynamicRange r = dynamic_range(l, x);
  l.results[0] = quantized(l, x, r.scale, r.zero, DType::kU8);
  if (l.wants(1)) l.results[1] = r.scale;
  if (l.wants(2)) l.results[2] = r.zero;
}

DType target(const Node& n) { return dtype_of_onnx(static_cast<int>(n.attributes.integer("to", 0))); }

ExprPtr quantize(const Node& n, const Args& a) {
  const DType to = target(n);
  const ExprPtr x = Expr::cast(a[0], DType::kF32);
  const bool saturate = n.attributes.integer("saturate", 1) != 0;
  if (is_small_float(to)) {
    ExprPtr q = Expr::call("div", {x, a[1]});
    if (a.size() > 2) q = Expr::call("add", {q, a[2]});
    return saturate ? saturating_cast(q, to) : Expr::cast(q, to);
  }
  const ExprPtr zero = a.size() > 2 ? a[2] : Expr::constant(0, DType::kF32);
  ExprPtr q = Expr::call("quantize", {x, a[1], zero});
  if (is_packed(to)) {  // casts to these keep the low bits
    const double end = static_cast<double>(1 << bits_of(to)), low = is_signed(to) ? -end / 2 : 0;
    q = Expr::call("clamp",
                   {q, Expr::constant(low, DType::kF32), Expr::constant(low + end - 1, DType::kF32)});
  }
  return Expr::cast(q, to);
}

ExprPtr dequantize(const Node&, const Args& a) {
  const bool zero = a.size() > 2;
  const bool integer = a[0]->dtype == DType::kI32;
  ExprPtr x = integer && zero ? Expr::call("sub", {a[0], a[2]}) : a[0];
  x = Expr::cast(x, DType::kF32);
  if (!integer && zero) x = Expr::call("sub", {x, a[2]});
  return Expr::call("mul", {x, a[1]});
}

}  // namespace

const std::vector<Op>& ops_quantize() {
  static const std::vector<Op> table = {
      {.name = "QuantizeLinear",
       .min_inputs = 2,
       .max_inputs = 3,
       .lower = lower_quantize_linear,
       .note = "divides in float32; blocks along an axis of static extent"},
      {.name = "DequantizeLinear",
       .min_inputs = 2,
       .max_inputs = 3,
       .lower = lower_dequantize_linear,
       .note = "blocks along an axis of static extent"},
      {.name = "DynamicQuantizeLinear",
       .min_outputs = 3,
       .max_outputs = 3,
       .lower = lower_dynamic_quantize_linear},
      {.name = "QuantizeLinear",
       .domain = "com.microsoft",
       .min_inputs = 2,
       .max_inputs = 3,
       .lower = lower_quantize_linear},
      {.name = "DequantizeLinear",
       .domain = "com.microsoft",
       .min_inputs = 2,
       .max_inputs = 3,
       .lower = lower_dequantize_linear},
      {.name = "quantize",
       .domain = "sinter",
       .min_inputs = 2,
       .max_inputs = 3,
       .expr = quantize,
       .note = "made by lowering"},
      {.name = "dequantize",
       .domain = "sinter",
       .min_inputs = 2,
       .max_inputs = 3,
       .expr = dequantize,
       .note = "made by lowering"},
  };
  return table;
}

}  // namespace sinter
