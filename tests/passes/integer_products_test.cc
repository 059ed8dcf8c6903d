// integer_products and sink_dequantize: quantised layers as exporters write them become products and moves of
// bytes that give the same values; what doesn't fit stays; other targets and --exact keep floats.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Form {
  const char* name;
  const char* signature;
  const char* nodes;
  size_t integers;    // products that work on integers behind the pass
  size_t dequantize;  // nodes that are left
};

// Steps of powers of two: every float on the way is exact.
const char* kSteps =
    "s = Constant<value = float {0.125}>()  t = Constant<value = float {0.5}>()  z = Constant<value = int8 "
    "{-3}>()  "
    "u = Constant<value = uint8 {130}>()  n = Constant<value = int8 {0}>()  "
    "ws = Constant<value = float[4] {0.25, 0.5, 0.125, 1.0}>()  "
    "wz = Constant<value = int8[4] {0, 0, 0, 0}>()  xq = QuantizeLinear(x, s, u)  xd = DequantizeLinear(xq, "
    "s, u)  ";

const char* kConv =
    "wd = DequantizeLinear<axis = 0>(w_w, ws, wz)  c = Conv<pads = [1, 1, 1, 1]>(xd, wd, w_b)  ";
const char* kImage = "(float[N,3,5,5] x, int8[4,3,3,3] w_w, float[4] w_b) => (float[N,4,5,5] y)";
const char* kRows = "(float[N,6] x, int8[6,4] w_w, int8[4,6] w_t, float[4] w_b) => (float[N,4] y)";

const Form kForms[] = {
    {"qdq_conv", kImage, "{conv} r = Relu(c)  q = QuantizeLinear(r, t, z)  y = DequantizeLinear(q, t, z)", 1,
     1},
    {"qdq_conv_clip", kImage,
     "{conv} a = Constant<value = float {0.0}>() b = Constant<value = float {6.0}>() r = Clip(c, a, b)  "
     "q = QuantizeLinear(r, t, z)  y = DequantizeLinear(q, t, z)",
     1, 1},
    {"qdq_conv_used_twice", kImage,
     "{conv} q = QuantizeLinear(c, t, z)  d = DequantizeLinear(q, t, z)  y = Add(c, d)", 1, 1},
    {"qdq_conv_to_float", kImage, "{conv} y = Sigmoid(c)", 1, 0},
    {"qdq_matmul", kRows, "wd = DequantizeLinear<axis = 1>(w_w, ws, wz)  y = MatMul(xd, wd)", 1, 0},
    {"qdq_matmul_transposed", kRows,
     "wd = DequantizeLinear<axis = 0>(w_t, ws, wz)  wt = Transpose(wd)  y = MatMul(xd, wt)", 1, 0},
    {"qdq_gemm", kRows,
     "wd = DequantizeLinear<axis = 0>(w_t, ws, wz)  g = Gemm<transB = 1>(xd, wd, w_b)  q = QuantizeLinear(g, "
     "t, z)  "
     "y = DequantizeLinear(q, t, z)",
     1, 1},
    {"qdq_bytes_less_zero", "(float[N,6] x, uint8[6,4] w_w) => (float[N,4] y)",
     "k = Constant<value = uint8 {128}>()  wd = DequantizeLinear(w_w, s, k)  y = MatMul(xd, wd)", 1, 0},
    {"qlinear_conv", "(float[N,3,5,5] x, int8[4,3,3,3] w_w, int32[4] w_b) => (int8[N,4,5,5] y)",
     "y = QLinearConv<pads = [1, 1, 1, 1]>(xq, s, u, w_w, ws, wz, t, z, w_b)", 1, 0},
    {"matmul_integer", "(float[N,6] x, int8[6,4] w_w) => (int32[N,4] y)", "y = MatMulInteger(xq, w_w, u)", 1,
     0},
    {"matmul_integer_computed_zero", "(float[N,6] x, int8[6,4] w_w) => (int32[N,4] y)",
     "dq, ds, dz = DynamicQuantizeLinear(x)  y = MatMulInteger(dq, w_w, dz)", 1, 0},
    {"matmul_integer_zero_of_rows",
     "(uint8[N,6] i, uint8[N] k, int8[6,4] w_w, float[N,6] x) => (int32[N,4] y)",
     "y = MatMulInteger(i, w_w, k)", 1, 0},
    {"pool", "(float[N,3,6,6] x) => (float[N,3,3,3] y)",
     "m = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(xd)  q = QuantizeLinear(m, s, u)  "
     "y = DequantizeLinear(q, s, u)",
     0, 1},
    {"moves", "(float[N,3,4] x) => (float[2,N,12] y)",
     "p = Transpose<perm = [1, 0, 2]>(xd)  q = QuantizeLinear(p, s, u)  d = DequantizeLinear(q, s, u)  "
     "k = Constant<value = int64[2] {-1, 12}>()  r = Reshape(d, k)  q2 = QuantizeLinear(r, s, u)  "
     "d2 = DequantizeLinear(q2, s, u)  e = Concat<axis = 0>(d2, d2)  q3 = QuantizeLinear(e, s, u)  "
     "d3 = DequantizeLinear(q3, s, u)  k3 = Constant<value = int64[3] {2, -1, 12}>()  y = Reshape(d3, k3)",
     0, 1},
    {"joins_other_steps", "(float[N,3,4] x) => (float[N,6,4] y)",
     "h = QuantizeLinear(x, t, z)  hd = DequantizeLinear(h, t, z)  e = Concat<axis = 1>(xd, hd)  "
     "q = QuantizeLinear(e, s, u)  y = DequantizeLinear(q, s, u)",
     0, 2},
    // ---- what stays
    {"stay_other_steps", "(float[N,3,6,6] x) => (float[N,3,3,3] y)",
     "m = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(xd)  q = QuantizeLinear(m, t, u)  "
     "y = DequantizeLinear(q, t, u)",
     0, 2},
    {"stay_weights_beyond_int8", "(float[N,6] x, uint8[6,4] w_w) => (float[N,4] y)",
     "k = Constant<value = uint8 {7}>()  wd = DequantizeLinear(w_w, s, k)  y = MatMul(xd, wd)", 0, 2},
    {"stay_computed_weights", "(float[N,6] x, int8[6,4] w) => (float[N,4] y)",
     "wd = DequantizeLinear(w, s, n)  y = MatMul(xd, wd)", 0, 2},
    {"stay_row_alone", "(float[4] x, int8[4,5] w_w) => (float[5] y)",
     "wd = DequantizeLinear(w_w, s, n)  y = MatMul(xd, wd)", 0, 2},
    {"stay_transpose_of_nothing", "(float[N,4] x, int8[4,4] w_w) => (float[N,4] y)",
     "wd = DequantizeLinear<axis = 0>(w_w, ws, wz)  wt = Transpose<perm = [0, 1]>(wd)  y = MatMul(xd, wt)", 0,
     2},
    {"stay_scales_along_sums", "(float[N,4] x, int8[4,5] w_w) => (float[N,5] y)",
     "wd = DequantizeLinear<axis = 0>(w_w, ws, wz)  y = MatMul(xd, wd)", 0, 2},
};

std::ostream& operator<<(std::ostream& out, const Form& f) { return out << f.name; }

size_t integer_nodes(const Graph& g) {
  size_t count = 0;
  for (const auto& n : g.nodes) {
    const bool product = n->attributes.integer("integer", 0) != 0;
    count += product;
    if (product) {
      EXPECT_EQ(n->inputs[1]->type.dtype, DType::kI8);
      EXPECT_TRUE(n->inputs[0]->type.dtype == DType::kI8 || n->inputs[0]->type.dtype == DType::kU8);
    }
  }
  return count;
}

class IntegerForm : public testing::TestWithParam<Form> {};

TEST_P(IntegerForm, SameValues) {
  const Form& f = GetParam();
  std::string nodes = f.nodes;
  if (const size_t at = nodes.find("{conv}"); at != std::string::npos) nodes.replace(at, 6, kConv);
  const std::unique_ptr<Graph> before = graph_of(model_of(f.signature, kSteps + nodes, 19));
  run_only(*before, {"lower_ops"});
  const std::unique_ptr<Graph> after = before->clone();
  run_only(*after, {"integer_products", "sink_dequantize"}, false, true);
  expect_golden(std::string("integers_") + f.name,
                text(*before) + "-- integer_products, sink_dequantize\n" + text(*after));
  EXPECT_EQ(integer_nodes(*after), f.integers);
  EXPECT_EQ(count_op(*after, "dequantize"), f.dequantize);
  expect_same_values(*before, *after, 1e-6, {1, 3});
  const std::unique_ptr<Graph> all = before->clone();
  run_only(*all, {"all"}, false, true);
  expect_same_values(*before, *all, 1e-6, {1, 3});
  for (const auto& [exact, dot] : {std::pair(true, true), std::pair(false, false)}) {
    const std::unique_ptr<Graph> same = before->clone();
    run_only(*same, {"integer_products", "sink_dequantize"}, exact, dot);
    EXPECT_EQ(text(*same), text(*before)) << "exact " << exact << ", dot products " << dot;
  }
}

INSTANTIATE_TEST_SUITE_P(All, IntegerForm, testing::ValuesIn(kForms),
                         [](const auto& i) { return std::string(i.param.name); });

// Padding of a product of bytes is its zero point: only that goes into the convolution.
TEST(IntegerProducts, PadOfTheZeroPoint) {
  for (const int pad : {130, 0}) {
    const std::string nodes =
        std::string(kSteps) + fmt::format(
                                  "p = Constant<value = int64[8] {{0, 0, 1, 1, 0, 0, 1, 1}}>()  "
                                  "v = Constant<value = uint8 {{{}}}>()  xp = Pad(xq, p, v)  "
                                  "y = ConvInteger(xp, w_w, u)",
                                  pad);
    const std::unique_ptr<Graph> before =
        graph_of(model_of("(float[N,3,5,5] x, int8[4,3,3,3] w_w) => (int32[N,4,5,5] y)", nodes, 19));
    const std::unique_ptr<Graph> after = before->clone();
    run_only(*after, {"lower_ops", "integer_products", "fold_constants", "fold_pad"}, false, true);
    EXPECT_EQ(count_op(*after, "Pad"), pad == 130 ? 0u : 1u);
    EXPECT_EQ(integer_nodes(*after), 1u);
    expect_same_values(*before, *after, 0, {1, 2});
  }
}

}  // namespace
}  // namespace sinter
