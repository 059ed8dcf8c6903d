// Models of one layer and one constant, for every shape that broadcasts to the layer's result.
//
// All extents of a result are the same, so that a constant for one axis has as many elements as one for any
// other: what takes a constant by its count takes it along the wrong axis here. One model has a layer, with
// weights of its own, for each shape and each operator that combines the two.
#pragma once
#include <random>

#include "model_text.h"

namespace sinter {

// A layer that makes `a` of x; {w} and {v} are weights of its own, {c} is the constant.
struct ConstantAnchor {
  const char *name, *x, *nodes;
  const char *w = nullptr, *v = nullptr;  // their types
  std::vector<int64_t> result = {};       // 1 where the result is one wide; what the constant broadcasts to
};

inline std::ostream& operator<<(std::ostream& out, const ConstantAnchor& a) { return out << a.name; }

constexpr int64_t kSame = 4;

inline const std::vector<ConstantAnchor>& constant_anchors() {
  const std::vector<int64_t> matrix{kSame, kSame}, stack{kSame, kSame, kSame},
      image{kSame, kSame, kSame, kSame};
  static const std::vector<ConstantAnchor> all = {
      {"gemm", "float[4,4]", "{a} = Gemm(x, {w})", "float[4,4]", nullptr, matrix},
      {"matmul", "float[4,4]", "{a} = MatMul(x, {w})", "float[4,4]", nullptr, matrix},
      {"matmul_of_images", "float[4,4,4,4]", "{a} = MatMul(x, {w})", "float[4,4]", nullptr, image},
      {"matmul_computed", "float[4,4,4]", "{a} = MatMul(x, x)", nullptr, nullptr, stack},
      {"conv", "float[4,4,4,4]", "{a} = Conv<pads = [1, 1, 1, 1]>(x, {w}, {v})", "float[4,4,3,3]", "float[4]",
       image},
      {"conv_pixel", "float[4,4,4,4]", "{a} = Conv(x, {w})", "float[4,4,1,1]", nullptr, image},
      {"conv_line", "float[4,4,4]", "{a} = Conv<pads = [1, 1]>(x, {w})", "float[4,4,3]", nullptr, stack},
      {"conv_depthwise", "float[4,4,4,4]", "{a} = Conv<pads = [1, 1, 1, 1], group = 4>(x, {w})",
       "float[4,1,3,3]", nullptr, image},
      {"conv_transpose", "float[4,4,4,4]", "{a} = ConvTranspose<pads = [1, 1, 1, 1]>(x, {w})",
       "float[4,4,3,3]", nullptr, image},
      {"conv_with_norm", "float[4,4,4,4]",
       "{a}_c = Conv(x, {w})  {a} = BatchNormalization({a}_c, {v}, {v}, {v}, one)", "float[4,4,1,1]",
       "float[4]", image},
      {"batch_norm", "float[4,4,4,4]", "{a} = BatchNormalization(x, {v}, {v}, {v}, one)", nullptr, "float[4]",
       image},
      {"instance_norm", "float[4,4,4,4]", "{a} = InstanceNormalization(x, {v}, {v})", nullptr, "float[4]",
       image},
      {"group_norm", "float[4,4,4,4]",
       "{a}_g = Reshape(x, groups)  {a}_n = InstanceNormalization({a}_g, two, {v})  {a} = Reshape({a}_n, "
       "back)",
       nullptr, "float[2]", image},
      {"layer_norm", "float[4,4,4]", "{a} = LayerNormalization(x, {v})", nullptr, "float[4]", stack},
      {"layer_norm_spelled", "float[4,4,4]",
       "{a}_m = ReduceMean(x, last)  {a}_d = Sub(x, {a}_m)  {a}_s = Mul({a}_d, {a}_d)  {a}_v = "
       "ReduceMean({a}_s, last)"
       "{a}_e = Add({a}_v, tiny)  {a}_r = Sqrt({a}_e)  {a} = Div({a}_d, {a}_r)",
       nullptr, nullptr, stack},
      {"softmax", "float[4,4,4]", "{a} = Softmax<axis = 1>(x)", nullptr, nullptr, stack},
      {"max_pool", "float[4,4,4,4]", "{a} = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)", nullptr,
       nullptr, image},
      {"global_pool", "float[4,4,4,4]", "{a} = GlobalAveragePool(x)", nullptr, nullptr, {kSame, kSame, 1, 1}},
      {"squeeze_excite", "float[4,4,4,4]",
       "{a}_p = GlobalAveragePool(x)  {a}_s = Conv({a}_p, {w}, {v})  {a}_r = Relu({a}_s)  {a}_e = "
       "Conv({a}_r, {w})"
       "{a}_h = Sigmoid({a}_e)  {a} = Mul(x, {a}_h)",
       "float[4,4,1,1]", "float[4]", image},
      {"quantised_matmul", "float[4,4]",
       "{a}_q = QuantizeLinear(x, s, u)  {a}_d = DequantizeLinear({a}_q, s, u)  {a}_w = "
       "DequantizeLinear({w}, t, z)"
       "{a} = MatMul({a}_d, {a}_w)",
       "int8[4,4]", nullptr, matrix},
      {"quantised_conv", "float[4,4,4,4]",
       "{a}_q = QuantizeLinear(x, s, u)  {a}_d = DequantizeLinear({a}_q, s, u)  {a}_w = "
       "DequantizeLinear<axis = 0>({w}, "
       "t4, z4)  {a} = Conv({a}_d, {a}_w, {v})",
       "int8[4,4,1,1]", "float[4]", image},
  };
  return all;
}

// Layers whose own input is the constant: Gemm's C in all its forms, the scale of a norm, PRelu's slope.
inline const std::vector<ConstantAnchor>& constant_operands() {
  const std::vector<int64_t> matrix{kSame, kSame}, stack{kSame, kSame, kSame},
      image{kSame, kSame, kSame, kSame};
#define BYTES                                                                                                \
  "{a}_q = QuantizeLinear(x, s, u)  {a}_d = DequantizeLinear({a}_q, s, u)  {a}_w = DequantizeLinear<axis = " \
  "0>({w}, "                                                                                                 \
  "t4, z4)  "
  static const std::vector<ConstantAnchor> all = {
      {"c", "float[4,4]", "{a} = Gemm(x, {w}, {c})", "float[4,4]", nullptr, matrix},
      {"c_scaled", "float[4,4]", "{a} = Gemm<alpha = 0.5, beta = 2.0>(x, {w}, {c})", "float[4,4]", nullptr,
       matrix},
      {"c_transposed", "float[4,4]", "{a} = Gemm<transA = 1, transB = 1, beta = -0.3>(x, {w}, {c})",
       "float[4,4]", nullptr, matrix},
      {"c_computed", "float[4,4]", "{a} = Gemm<transB = 1>({w}, x, {c})", "float[4,4]", nullptr, matrix},
      {"c_then_scale", "float[4,4]", "{a}_g = Gemm(x, {w}, {c})  {a} = Mul({a}_g, {v})", "float[4,4]",
       "float[4]", matrix},
      {"quantised_c", "float[4,4]", BYTES "{a} = Gemm<transB = 1>({a}_d, {a}_w, {c})", "int8[4,4]", nullptr,
       matrix},
      {"quantised_c_to_bytes", "float[4,4]",
       BYTES
       "{a}_g = Gemm<transB = 1>({a}_d, {a}_w, {c})  {a}_r = Relu({a}_g)  {a}_b = QuantizeLinear({a}_r, s, u)"
       "{a} = DequantizeLinear({a}_b, s, u)",
       "int8[4,4]", nullptr, matrix},
      {"prelu", "float[4,4,4,4]", "{a}_c = Conv(x, {w})  {a} = PRelu({a}_c, {c})", "float[4,4,1,1]", nullptr,
       image},
      {"chain", "float[4,4,4,4]",
       "{a}_c = Conv(x, {w})  {a}_m = Mul({a}_c, {c})  {a}_s = Add({c}, {a}_m)  {a} = "
       "Relu({a}_s)",
       "float[4,4,1,1]", nullptr, image},
      {"spelled_norm", "float[4,4,4]",
       "{a}_s = Pow(x, squared)  {a}_v = ReduceMean({a}_s, last)  {a}_e = Add({a}_v, tiny)  {a}_r = "
       "Sqrt({a}_e)"
       "{a}_i = Reciprocal({a}_r)  {a}_n = Mul(x, {a}_i)  {a} = Mul({c}, {a}_n)",
       nullptr, nullptr, stack},
      {"embedding", "float[4,4,4]",
       "{a}_i = Cast<to = 7>(small)  {a}_g = Gather({w}, {a}_i)  {a}_x = Add({a}_g, x)  {a}_c = Add({a}_x, "
       "{c})"
       "{a} = LayerNormalization({a}_c, {v})",
       "float[4,4]", "float[4]", stack},
      {"attention", "float[4,4,4]",
       "{a}_k = Transpose<perm = [0, 2, 1]>(x)  {a}_m = MatMul(x, {a}_k)  {a}_c = Add({a}_m, {c})"
       "{a}_p = Softmax({a}_c)  {a} = MatMul({a}_p, x)",
       nullptr, nullptr, stack},
  };
#undef BYTES
  return all;
}

// All shapes that broadcast to `result`, of any number of axes up to its own.
inline std::vector<std::vector<int64_t>> broadcast_shapes(const std::vector<int64_t>& result) {
  std::vector<std::vector<int64_t>> all{{}};
  for (size_t rank = 1; rank <= result.size(); ++rank)
    for (unsigned wide = 0; wide < 1u << rank; ++wide) {
      std::vector<int64_t> shape;
      bool fits = true;
      for (size_t a = 0; a < rank; ++a) {
        shape.push_back(wide >> a & 1 ? kSame : 1);
        fits &= shape.back() == 1 || result[result.size() - rank + a] != 1;
      }
      if (fits) all.push_back(shape);
    }
  return all;
}

// The model of an anchor: with each shape, each of `ends` ("{y} = Add({a}, {c})"); every `step`-th of them.
inline std::unique_ptr<Graph> constant_model(const ConstantAnchor& anchor,
                                             const std::vector<std::string>& ends, size_t step = 1) {
  std::string
      inputs = std::string(anchor.x) + " x, int32[4,4] small",
      outputs,
      nodes =
          "s = Constant<value = float {0.125}>()  t = Constant<value = float {0.25}>()  "
          "u = Constant<value = uint8 {130}>()  z = Constant<value = int8 {0}>()  "
          "t4 = Constant<value = float[4] {0.25, 0.5, 0.125, 1.0}>()  z4 = Constant<value = int8[4] {0, 0, "
          "0, 0}>()"
          "one = Constant<value = float[4] {1.0, 2.0, 0.5, 1.5}>()  two = Constant<value = float[2] {1.5, "
          "-2.0}>()"
          "groups = Constant<value = int64[3] {4, 2, -1}>()  back = Constant<value = int64[4] {4, 4, 4, 4}>()"
          "last = Constant<value = int64[1] {-1}>()  tiny = Constant<value = float {0.01}>()"
          "squared = Constant<value = float {2.0}>()";
  ImportOptions options;
  std::mt19937 random(17);
  const auto add = [&](const std::string& name, const std::string& type, const std::vector<int64_t>& shape) {
    Tensor t(type == "int8" ? DType::kI8 : DType::kF32, shape);
    for (int64_t i = 0; i < t.size(); ++i) {
      const double r = static_cast<double>(random() % 2001) / 1000 - 1;
      t.set_real(i, type == "int8" ? std::floor(r * 127)
                    : r < 0        ? r - 0.1
                                   : r + 0.1);  // far from 0: a divisor
    }
    options.constants[name] = t;
    inputs += fmt::format(", {}[{}] {}", type, fmt::join(shape, ","), name);
    if (shape.empty()) inputs.replace(inputs.size() - name.size() - 3, 3, " ");
  };
  const auto add_typed = [&](const std::string& name, const char* type) {
    const std::string text = type;
    std::vector<int64_t> shape;
    std::istringstream extents(text.substr(text.find('[') + 1));
    for (int64_t e = 0; extents >> e; extents.ignore()) shape.push_back(e);
    add(name, text.substr(0, text.find('[')), shape);
  };
  const auto shapes = broadcast_shapes(anchor.result);
  size_t count = 0;
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t k = 0; k < ends.size(); ++k) {
      if ((i * ends.size() + k + i / 2) % step != 0) continue;
      const size_t n = count++;
      std::string text = std::string(anchor.nodes) + "  " + ends[k] + "  ";
      add(fmt::format("c{}", n), "float", shapes[i]);
      if (anchor.w) add_typed(fmt::format("w{}", n), anchor.w);
      if (anchor.v) add_typed(fmt::format("v{}", n), anchor.v);
      for (const char* name : {"a", "c", "w", "v", "y"})
        for (size_t at; (at = text.find(fmt::format("{{{}}}", name))) != std::string::npos;)
          text.replace(at, 3, fmt::format("{}{}", name, n));
      nodes += text;
      outputs += fmt::format("{}float[] y{}", n ? ", " : "", n);
    }
  // The outputs' shapes are left to inference.
  for (size_t at; (at = outputs.find("[]")) != std::string::npos;) outputs.erase(at, 2);
  const std::string text = fmt::format("<ir_version: 8, opset_import: [\"\" : 18]> g ({}) => ({}) {{ {} }}",
                                       inputs, outputs, nodes);
  onnx::ModelProto proto = parse_text(text);
  for (auto& v : *proto.mutable_graph()->mutable_output())
    v.mutable_type()->mutable_tensor_type()->clear_shape();
  return std::move(import_model(proto, {}, options).graph);
}

}  // namespace sinter
