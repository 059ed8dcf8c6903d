// Quantised operators of the domain com.microsoft (ONNX Runtime's contrib operators, version 1) that are an
// operator between dequantised inputs and a quantised result, and MatMulNBits. Products of integers are in
// qlinear.cpp.
//
// Zero points may be absent: 0.
#include "ops/elementwise/quantize.h"
#include "ops/products/codes.h"

namespace sinter {
namespace {

constexpr const char* kDomain = "com.microsoft";

void require_bytes(const Lowering& l, const Value* v) {
  const DType t = dtype_of(v);
  l.require(t == DType::kI8 || t == DType::kU8, fmt::format("only for int8 and uint8, not {}", name_of(t)));
}

// Inputs i, i+1, i+2: data, scale, zero point, both for the whole tensor.
Value* real_input(Lowering& l, size_t i) {
  l.require(l.has(i) && l.has(i + 1), fmt::format("input {} is missing", l.has(i) ? i + 1 : i));
  Value* x = l.in(i);
  require_bytes(l, x);
  l.require(!l.has(i + 2) || dtype_of(l.in(i + 2)) == dtype_of(x),
            "a zero point has another type than its data");
  Value* zero = l.has(i + 2) ? scalar_of(l, l.in(i + 2), "a zero point") : nullptr;
  return dequantized(l, x, scalar_of(l, l.in(i + 1), "a scale"), zero);
}

// y by the scale and zero point at inputs i and i + 1; without a zero point of the type of input 0.
void set_result(Lowering& l, Value* y, size_t i) {
  l.require(l.has(i), fmt::format("input {} is missing", i));
  Value* zero = l.has(i + 1) ? scalar_of(l, l.in(i + 1), "the zero point of y") : nullptr;
  const DType to = zero ? dtype_of(zero) : dtype_of(l.in(0));
  l.require(to == DType::kI8 || to == DType::kU8, fmt::format("to {} is not supported", name_of(to)));
  l.results[0] = quantized(l, y, scalar_of(l, l.in(i), "the scale of y"), zero, to);
}

// A, B and C each as data, scale, zero point.
template <const char* kOp>
void lower_binary(Lowering& l) {
  Value* a = real_input(l, 0);
  set_result(l, l(kOp, {a, real_input(l, 3)}), 6);
}
constexpr char kAdd[] = "Add", kMul[] = "Mul";

void lower_sigmoid(Lowering& l) { set_result(l, l("Sigmoid", {real_input(l, 0)}), 3); }

void lower_leaky_relu(Lowering& l) {
  const float alpha = l.attributes().real("alpha", 0.01f);
  set_result(l, l("LeakyRelu", {real_input(l, 0)}, {{"alpha", alpha}}), 3);
}

// condition, X, scale, zero, Y, scale, zero, scale of Z, zero of Z.
void lower_where(Lowering& l) {
  Value* x = real_input(l, 1);
  Value* z = l("Where", {l.in(0), x, real_input(l, 4)});
  l.require(l.has(7) && l.has(8), "scale or zero point of z is missing");
  Value* zero = scalar_of(l, l.in(8), "the zero point of z");
  require_bytes(l, zero);
  l.results[0] = quantized(l, z, scalar_of(l, l.in(7), "the scale of z"), zero, dtype_of(zero));
}

// An operator on [N, C, spatial...]; channels_last: on [N, spatial..., C].
Value* on_channels(Lowering& l, const char* op, Value* x, const Lowering::AttributeList& attributes) {
  if (l.attributes().integer("channels_last", 0) == 0) return l(op, {x}, attributes);
  const int64_t rank = rank_of(x);
  l.require(rank >= 3, fmt::format("input {}", text(shape_of(x))));
  std::vector<int64_t> to{0, rank - 1}, back{0};
  for (int64_t i = 1; i + 1 < rank; ++i) to.push_back(i), back.push_back(i + 1);
  back.push_back(1);
  Value* y = l(op, {l("Transpose", {x}, {{"perm", to}})}, attributes);
  return l("Transpose", {y}, {{"perm", back}});
}

void lower_global_average_pool(Lowering& l) {
  set_result(l, on_channels(l, "GlobalAveragePool", real_input(l, 0), {}), 3);
}

void lower_average_pool(Lowering& l) {
  Lowering::AttributeList attributes = l.attributes().all();
  attributes.erase("channels_last");
  set_result(l, on_channels(l, "AveragePool", real_input(l, 0), attributes), 3);
}

// Before opset 13 Softmax was over all axes from `axis` on as one.
void lower_softmax(Lowering& l) {
  Value* x = real_input(l, 0);
  const int64_t axis = l.axis("axis", -1, rank_of(x));
  Value* y = nullptr;
  if (l.attributes().integer("opset", 13) >= 13) {
    y = l("Softmax", {x}, {{"axis", axis}});
  } else {
    y = l("Softmax", {l("Flatten", {x}, {{"axis", axis}})}, {{"axis", int64_t{1}}});
    y = l("Reshape", {y, l("Shape", {x})});
  }
  set_result(l, y, 3);
}

// Scale and zero point of Y, then data, scale, zero point of each input.
void lower_concat(Lowering& l) {
  l.require(l.node.inputs.size() >= 5 && (l.node.inputs.size() - 2) % 3 == 0,
            fmt::format("{} inputs are not whole triples", l.node.inputs.size() - 2));
  std::vector<Value*> parts;
  for (size_t i = 2; i < l.node.inputs.size(); i += 3) parts.push_back(real_input(l, i));
  const int64_t axis = l.axis("axis", 1, rank_of(parts[0]));
  Value* y = l("Concat", parts, {{"axis", axis}});
  l.require(l.has(0) && l.has(1), "scale or zero point of y is missing");
  Value* zero = scalar_of(l, l.in(1), "the zero point of y");
  require_bytes(l, zero);
  l.results[0] = quantized(l, y, scalar_of(l, l.in(0), "the scale of y"), zero, dtype_of(zero));
}

// --- weights of a few bits, which stay so (codes.h)

// The attributes of our operators on the matrix at inputs `at` to `at` + 2: codes, scales, zero points.
Lowering::AttributeList coded(const Lowering& l, const CodeForm& f, size_t at) {
  const Value *codes = l.in(at), *scales = l.in(at + 1), *zeros = l.in(at + 2);
  l.require(codes->data && scales->data && (!zeros || zeros->data), "the weights must be constants");
  const std::string wrong = wrong_codes(f, *codes->data, *scales->data, zeros ? &*zeros->data : nullptr);
  l.require(wrong.empty(), wrong);
  return attributes_of(f).all();
}

bool is_power_of_two(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

// MatMulNBits: A [.., K] times the transpose of B [N, K], whose K are quantised in blocks.
void lower_matmul_nbits(Lowering& l) {
  const CodeForm f = code_form(l.attributes());
  l.require(f.block >= 16 && f.block <= (1 << 20) && is_power_of_two(f.block),
            fmt::format("block_size is {}", f.block));
  l.require(!l.in(4), "g_idx is not supported");
  const DType t = dtype_of(l.in(0));
  l.require(is_float(t), fmt::format("not for {}", name_of(t)));
  Lowering::AttributeList attributes = coded(l, f, 1);
  attributes["accuracy_level"] = l.attributes().integer("accuracy_level", 0);
  Value* x = l.cast(l.in(0), DType::kF32);
  const bool row = rank_of(x) == 1;
  if (row) x = l.reshape(x, {1, -1});
  Value* y = l.ours("product_of_codes", {x, l.in(1), l.in(2), l.in(3)}, attributes);
  if (row) y = l.reshape(y, {-1});
  y = l.cast(y, t);
  l.results[0] = l.in(5) ? l("Add", {y, l.in(5)}) : y;
}

// Bytes of several unsigned codes along the last axis, as many as `extent` there, one element each.
Tensor spread_codes(const Tensor& bytes, int64_t bits, int64_t extent) {
  std::vector<int64_t> shape = bytes.shape();
  const int64_t row = shape.back(), each = 8 / bits;
  shape.back() = extent;
  Tensor codes(bits == 4 ? DType::kU4 : DType::kU2, shape);
  for (int64_t i = 0; i < codes.size(); ++i) {
    const int64_t at = i % extent;
    codes.set_integer(
        i, (bytes.as<uint8_t>()[i / extent * row + at / each] >> (at % each * bits)) & ((1 << bits) - 1));
  }
  return codes;
}

// GatherBlockQuantized: Gather of data that is dequantised in blocks. Of uint8, data have `bits` each,
// several in a byte along the last axis, as have zero points, and 0 is in their middle where there are none.
void lower_gather_block_quantized(Lowering& l) {
  Value *data = l.in(0), *scales = l.in(2), *zeros = l.in(3);
  const int64_t bits = l.attributes().integer("bits", 4), block = l.attributes().integer("block_size", 128);
  l.require(block >= 16 && is_power_of_two(block), fmt::format("block_size is {}", block));
  const DType t = dtype_of(data);
  l.require(t == DType::kU8 || t == DType::kI4 || t == DType::kU4, fmt::format("not for {}", name_of(t)));
  l.require(rank_of(data) > 0 && rank_of(scales) == rank_of(data),
            fmt::format("scales {} for {}", text(shape_of(scales)), text(shape_of(data))));
  const int64_t axis = l.axis("quantize_axis", 1, rank_of(data)),
                gather = l.axis("gather_axis", 0, rank_of(data));
  if (t == DType::kU8) {
    l.require(bits == 2 || bits == 4 || bits == 8, fmt::format("{} bits are not supported", bits));
    if (bits < 8) {
      l.require(axis == rank_of(data) - 1 && gather != axis,
                "several codes in a byte along another axis than the last");
      l.require(data->data && (!zeros || zeros->data), "the weights must be constants");
      const int64_t row = data->data->dim(axis) * 8 / bits, blocks = (row + block - 1) / block;
      l.require(!zeros || (zeros->data->dtype() == t && zeros->data->rank() == rank_of(data) &&
                           zeros->data->dim(axis) == (blocks * bits + 7) / 8),
                fmt::format("zero points {} for {} blocks", zeros ? text(shape_of(zeros)) : "", blocks));
      data = l.constant(spread_codes(*data->data, bits, row));
      if (zeros) zeros = l.constant(spread_codes(*zeros->data, bits, blocks));
    }
    if (!zeros) {
      Tensor middle(dtype_of(data), {1});
      middle.set_integer(0, int64_t{1} << (bits - 1));
      zeros = l("Expand", {l.constant(middle), l("Shape", {scales})});
    }
  }
  Value* floats = l("DequantizeLinear", {data, scales, zeros}, {{"axis", axis}, {"block_size", block}});
  l.results[0] = l("Gather", {floats, l.in(1)}, {{"axis", gather}});
}

}  // namespace

const std::vector<Op>& ops_microsoft() {
  static const std::vector<Op> table = {
      {.name = "QLinearAdd",
       .domain = kDomain,
       .min_inputs = 2,
       .max_inputs = 8,
       .lower = lower_binary<kAdd>},
      {.name = "QLinearMul",
       .domain = kDomain,
       .min_inputs = 2,
       .max_inputs = 8,
       .lower = lower_binary<kMul>},
      {.name = "QLinearSigmoid", .domain = kDomain, .min_inputs = 2, .max_inputs = 5, .lower = lower_sigmoid},
      {.name = "QLinearLeakyRelu",
       .domain = kDomain,
       .min_inputs = 2,
       .max_inputs = 5,
       .lower = lower_leaky_relu},
      {.name = "QLinearWhere", .domain = kDomain, .min_inputs = 9, .max_inputs = 9, .lower = lower_where},
      {.name = "QLinearGlobalAveragePool",
       .domain = kDomain,
       .min_inputs = 2,
       .max_inputs = 5,
       .lower = lower_global_average_pool},
      {.name = "QLinearAveragePool",
       .domain = kDomain,
       .min_inputs = 2,
       .max_inputs = 5,
       .lower = lower_average_pool},
      {.name = "QLinearSoftmax", .domain = kDomain, .min_inputs = 2, .max_inputs = 5, .lower = lower_softmax},
      {.name = "QLinearConcat", .domain = kDomain, .min_inputs = 5, .max_inputs = -1, .lower = lower_concat},
      {.name = "MatMulNBits",
       .domain = kDomain,
       .min_inputs = 3,
       .max_inputs = 6,
       .lower = lower_matmul_nbits,
       .note = "2, 4 and 8 bits, constant weights; without g_idx"},
      {.name = "GatherBlockQuantized",
       .domain = kDomain,
       .min_inputs = 3,
       .max_inputs = 4,
       .lower = lower_gather_block_quantized},
  };
  return table;
}

}  // namespace sinter
