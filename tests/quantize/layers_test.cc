// Which layers and tensors become bytes.
#include "quantize/layers.h"

#include <algorithm>

#include "driver/interrupt.h"
#include "model_text.h"
#include "quantize/written.h"

namespace sinter::quantize {
namespace {

// A model with weights "w" float32[4,4,3,3] and "m" float32[4,4], whose file is read.
FloatModel model_of(const std::string& nodes, const std::string& opset = "17") {
  onnx::ModelProto proto = parse_text("<ir_version: 8, opset_import: [\"\" : " + opset +
                                      "]>\ng (float[1,4,8,8] x) => (float[] y) {" + nodes + "}");
  for (const std::string name : {"w", "m", "scale", "shift", "mean", "variance"}) {
    onnx::TensorProto& t = *proto.mutable_graph()->add_initializer();
    t.set_name(name);
    t.set_data_type(onnx::TensorProto::FLOAT);
    const std::vector<int64_t> shape = name[0] == 'w' ? std::vector<int64_t>{4, 4, 3, 3}
                                       : name == "m"  ? std::vector<int64_t>{4, 4}
                                                      : std::vector<int64_t>{4};
    int64_t size = 1;
    for (const int64_t d : shape) t.add_dims(d), size *= d;
    for (int64_t i = 0; i < size; ++i) t.add_float_data(0.5F + static_cast<float>(i % 7) / 8);
  }
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "m.onnx";
  std::ofstream(file, std::ios::binary) << proto.SerializeAsString();
  return FloatModel(file);
}

// "Conv(x) MaxPool(r) | x, r+p": nodes with the inputs that are bytes, then the sites.
std::string text(const FloatModel& m, const Layers& l) {
  std::string s;
  for (const Layer& layer : l.layers) {
    s += m.node(layer.node).op_type() + "(";
    for (const int k : layer.bytes) s += (s.back() == '(' ? "" : ", ") + m.node(layer.node).input(k);
    s += ") ";
  }
  s += "|";
  for (const Site& site : l.sites) {
    std::vector<std::string> tensors = site.tensors;
    std::sort(tensors.begin(), tensors.end());
    std::string all;
    for (const std::string& t : tensors) all += (all.empty() ? "" : "+") + t;
    s += " " + all;
  }
  return s;
}

const std::string kConv = "Conv<pads = [1, 1, 1, 1]>";

TEST(Layers, Chosen) {
  struct Row {
    std::string nodes, want;
  };
  const std::vector<Row> rows = {
      // Activations go with the product; only what products read is bytes, so the last result stays floats.
      {"c = " + kConv + "(x, w) r = Relu(c) y = " + kConv + "(r, w)", "Conv(x) Conv(r) | r x"},
      // A pool between products is one site with what it makes.
      {"c = " + kConv + "(x, w) p = MaxPool<kernel_shape = [2, 2]>(c) y = " + kConv + "(p, w)",
       "Conv(x) MaxPool(c) Conv(p) | c+p x"},
      // A residual block: the sum of the convolution and the bytes that it read.
      {"c = " + kConv + "(x, w) r = Relu(c) d = " + kConv + "(r, w) s = Add(d, r) t = Relu(s) y = " + kConv +
           "(t, w)",
       "Conv(x) Conv(r) Add(r) Conv(t) | r t x"},
      // Both operands of the sum are convolutions: one is fused.
      {"a = " + kConv + "(x, w) b = " + kConv + "(x, w) s = Add(a, b) y = " + kConv + "(s, w)",
       "Conv(x) Conv(x) Add(b) Conv(s) | b s x"},
      // What is joined shares its steps.
      {"a = Sigmoid(x) b = Tanh(x) c = Concat<axis = 1>(a, b) f = Flatten(c) q = Slice(f, z, e, o) y = "
       "MatMul(q, m)",
       "Concat(a, b) Flatten(c) Slice(f) MatMul(q) | a+b+c+f+q"},
      // SiLU stays in registers, in floats.
      {"c = " + kConv + "(x, w) s = Sigmoid(c) p = Mul(c, s) y = " + kConv + "(p, w)",
       "Conv(x) Conv(p) | p x"},
      // A pool in front of the classifier reads bytes; in front of floats it doesn't.
      {"c = " + kConv + "(x, w) p = GlobalAveragePool(c) f = Flatten(p) y = Gemm(f, m)",
       "Conv(x) GlobalAveragePool(c) Flatten(p) Gemm(f) | c f+p x"},
      {"c = " + kConv + "(x, w) y = GlobalAveragePool(c)", "Conv(x) | x"},
      {"y = Relu(x)", "|"},
  };
  for (const Row& r : rows) {
    const FloatModel m = model_of(
        "z = Constant<value = int64[2] {0, 0}>() e = Constant<value = int64[2] {1, 4}>() o = Constant<value "
        "= "
        "int64[2] {0, 1}>() " +
        r.nodes);
    EXPECT_EQ(text(m, choose_layers(m, {})), r.want) << r.nodes;
  }
}

TEST(Layers, KeptOnesAreFloats) {
  const FloatModel m = model_of("a = " + kConv + "(x, w) b = " + kConv + "(a, w) y = " + kConv + "(b, w)");
  EXPECT_EQ(text(m, choose_layers(m, {"b"})), "Conv(x) Conv(b) | b x");
}

// Read from a file: what is bytes on all sides that matter, whoever asked for it.
TEST(Written, LayersOfBytes) {
  const std::string bytes =
      "xb = QuantizeLinear(x, s, z) xd = DequantizeLinear(xb, s, z) "
      "wd = DequantizeLinear(w, s, z) ";
  struct Row {
    std::string nodes;
    std::set<std::string> want;
  };
  const std::vector<Row> rows = {
      {bytes + "y = Conv(xd, wd)", {"y"}},
      {bytes + "y = Conv(xd, v)", {}},
      {bytes + "y = Conv(x, wd)", {}},
      {bytes + "y = MatMul(xd, wd)", {"y"}},
      {bytes + "y = GlobalAveragePool(xd)", {}},
      {bytes + "p = GlobalAveragePool(xd) y = QuantizeLinear(p, s, z)", {"p"}},
      {bytes + "p = Add(xd, v) r = Relu(p) y = QuantizeLinear(r, s, z)", {"p"}},
      {bytes + "p = Add(x, v) r = Relu(p) y = QuantizeLinear(r, s, z)", {}},
      {bytes + "p = Add(xd, v) r = Exp(p) y = QuantizeLinear(r, s, z)", {}},
  };
  for (const Row& r : rows) {
    const onnx::ModelProto m = parse_text(
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "g (float[1,4,8,8] x) => (float[] y) {" +
        r.nodes + "}");
    EXPECT_EQ(layers_of_bytes(m.graph()), r.want) << r.nodes;
  }
}

// The normalisation behind a convolution is part of it, and old opsets are brought to 13.
TEST(FloatModel, FoldsBatchNormAndRaisesTheOpset) {
  const std::string nodes =
      "c = " + kConv + "(x, w) n = BatchNormalization(c, scale, shift, mean, variance) y = Relu(n)";
  for (const char* opset : {"9", "12", "17"}) {
    const FloatModel m = model_of(nodes, opset);
    ASSERT_EQ(m.graph().node_size(), 2) << opset;
    EXPECT_EQ(m.node(0).op_type(), "Conv");
    EXPECT_EQ(m.node(0).output(0), "n");
    EXPECT_GE(m.proto().opset_import(0).version(), 13);
    const Tensor w = m.constant(m.node(0).input(1)), b = m.constant(m.node(0).input(2));
    // Channel 1: weights from element 36 on; all four parameters are 0.5 + 1/8.
    const double f = 0.625 / std::sqrt(0.625 + 1e-5);
    EXPECT_NEAR(w.real(36), (0.5 + 1.0 / 8) * f, 1e-6);
    EXPECT_NEAR(b.real(1), -0.625 * f + 0.625, 1e-6);
  }
}

}  // namespace
}  // namespace sinter::quantize
