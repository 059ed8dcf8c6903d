// Operators of com.microsoft, and others that import expands: the same numbers as the ONNX operators that
// they stand for, and what is refused.
#include "passes/proof.h"

namespace sinter {
namespace {

std::unique_ptr<Graph> graph_with(const char* signature, const std::string& nodes) {
  return graph_of(std::string("<ir_version: 8, opset_import: [\"\" : 18, \"com.microsoft\" : 1, "
                              "\"ai.onnx.preview\" : 1]> g ") +
                  signature + " { " + nodes + " }");
}

struct Same {
  const char* name;
  const char* signature;
  const char* contrib;
  const char* onnx;
};

#define HEADS(x, h) x "4 = Reshape(" x ", s)  " h " = Transpose<perm = [0, 2, 1, 3]>(" x "4)  "
#define JOINED "t = Transpose<perm = [0, 2, 1, 3]>(o)  y = Reshape(t, u)"
#define SHAPES "s = Constant<value = int64[4] {0, 0, 2, 4}>()  u = Constant<value = int64[3] {0, 0, 8}>()  "
#define HALF "half = Constant<value = float {0.5}>()  "

const Same kSame[] = {
    {"FusedMatMul", "(float[N,5,4] a, float[N,6,5] b) => (float[N,4,6] y)",
     "y = com.microsoft.FusedMatMul<transA = 1, transB = 1, alpha = 0.5>(a, b)",
     HALF "p = Transpose<perm = [0, 2, 1]>(a)  q = Transpose<perm = [0, 2, 1]>(b)  m = MatMul(p, q)  y = "
          "Mul(m, half)"},
    {"FusedConv",
     "(float[N,3,6,6] x, float[4,3,3,3] w_w, float[4] w_b, float[N,4,4,4] z) => (float[N,4,4,4] y)",
     "y = com.microsoft.FusedConv<activation = \"LeakyRelu\", activation_params = [0.25]>(x, w_w, w_b, z)",
     "c = Conv(x, w_w, w_b)  d = Add(c, z)  y = LeakyRelu<alpha = 0.25>(d)"},
    {"FusedConvClips", "(float[N,3,6,6] x, float[4,3,3,3] w_w) => (float[N,4,4,4] y)",
     "y = com.microsoft.FusedConv<activation = \"Clip\", activation_params = [0.0, 0.5]>(x, w_w)",
     HALF "zero = Constant<value = float {0.0}>()  c = Conv(x, w_w)  y = Clip(c, zero, half)"},
    {"FusedGemmClips", "(float[N,4] x, float[4,5] w_w) => (float[N,5] y)",
     "y = com.microsoft.FusedGemm<activation = \"Clip\", activation_alpha = 0.0, activation_beta = 0.5>(x, "
     "w_w)",
     HALF "zero = Constant<value = float {0.0}>()  g = Gemm(x, w_w)  y = Clip(g, zero, half)"},
    {"FusedGemm", "(float[N,4] x, float[5,4] w_w, float[5] w_b) => (float[N,5] y)",
     "y = com.microsoft.FusedGemm<transB = 1, activation = \"Relu\">(x, w_w, w_b)",
     "g = Gemm<transB = 1>(x, w_w, w_b)  y = Relu(g)"},
    {"QuickGelu", "(float[N,9] x) => (float[N,9] y)", "y = com.microsoft.QuickGelu<alpha = 0.5>(x)",
     HALF "h = Mul(x, half)  t = Sigmoid(h)  y = Mul(x, t)"},
    {"BiasGelu", "(float[N,9] x, float[9] w_b) => (float[N,9] y)", "y = com.microsoft.BiasGelu(x, w_b)",
     "a = Add(x, w_b)  r = Constant<value = float {0.70710678}>()  one = Constant<value = float {1.0}>()" HALF
     "m = Mul(a, r)  e = Erf(m)  f = Add(e, one)  h = Mul(a, half)  y = Mul(h, f)"},
    {"SkipLayerNormalization",
     "(float[N,5,8] x, float[N,5,8] z, float[8] w_s, float[8] w_b, float[8] w_c) => (float[N,5,8] y, "
     "float[N,5,8] t)",
     "y, m, v, t = com.microsoft.SkipLayerNormalization<epsilon = 0.01>(x, z, w_s, w_b, w_c)",
     "a = Add(x, z)  t = Add(a, w_c)  y = LayerNormalization<epsilon = 0.01>(t, w_s, w_b)"},
    {"MultiHeadAttention",
     "(float[N,3,8] q, float[N,5,8] k, float[N,5,8] v, float[N,2,3,5] mask) => (float[N,3,8] y)",
     "y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v, , , mask)",
     SHAPES HALF HEADS("q", "qh") HEADS("k", "kh")
         HEADS("v", "vh") "kt = Transpose<perm = [0, 1, 3, 2]>(kh)"
                          "m = MatMul(qh, kt)  d = Mul(m, half)  a = Add(d, mask)  p = Softmax(a)  o = "
                          "MatMul(p, vh)" JOINED},
    {"MultiHeadAttentionOfHeads", "(float[N,3,8] q, float[N,2,5,4] k, float[N,2,5,4] v) => (float[N,3,8] y)",
     "y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v)",
     SHAPES HALF HEADS("q",
                       "qh") "kt = Transpose<perm = [0, 1, 3, 2]>(k)  m = MatMul(qh, kt)  d = Mul(m, half)"
                             "p = Softmax(d)  o = MatMul(p, v)" JOINED},
    {"GroupQueryAttentionGrows",
     "(float[N,1,8] q, float[N,1,8] k, float[N,1,8] v, float[N,2,4,4] c, float[N,2,4,4] d) => "
     "(float[N,1,8] y, float[N,2,5,4] pk, float[N,2,5,4] pv)",
     "four = Constant<value = int32[1] {4}>()  b = Shape<start = 0, end = 1>(q)  n = Expand(four, b)"
     "total = Constant<value = int32 {5}>()  y, pk, pv = com.microsoft.GroupQueryAttention<num_heads = 2, "
     "kv_num_heads = 2>(q, k, v, c, d, n, total)",
     SHAPES HALF HEADS("q", "qh") HEADS("k", "kh")
         HEADS("v", "vh") "pk = Concat<axis = 2>(c, kh)  pv = Concat<axis = 2>(d, vh)"
                          "kt = Transpose<perm = [0, 1, 3, 2]>(pk)  m = MatMul(qh, kt)  e = Mul(m, half)"
                          "p = Softmax(e)  o = MatMul(p, pv)" JOINED},
    {"GroupQueryAttentionInABuffer",  // room for four, of which two count: the row goes to place 2
     "(float[N,1,8] q, float[N,1,8] k, float[N,1,8] v, float[N,2,4,4] c, float[N,2,4,4] d) => (float[N,1,8] "
     "y)",
     "two = Constant<value = int32[1] {2}>()  b = Shape<start = 0, end = 1>(q)  n = Expand(two, b)"
     "total = Constant<value = int32 {3}>()  y = com.microsoft.GroupQueryAttention<num_heads = 2, "
     "kv_num_heads = 2>(q, k, v, c, d, n, total)",
     SHAPES HALF HEADS("q", "qh") HEADS("k", "kh")
         HEADS("v", "vh") "z = Constant<value = int64[1] {0}>()  w = Constant<value = int64[1] {2}>()"
                          "cc = Slice(c, z, w, w)  dd = Slice(d, z, w, w)"
                          "pk = Concat<axis = 2>(cc, kh)  pv = Concat<axis = 2>(dd, vh)"
                          "kt = Transpose<perm = [0, 1, 3, 2]>(pk)  m = MatMul(qh, kt)  e = Mul(m, half)"
                          "p = Softmax(e)  o = MatMul(p, pv)" JOINED},
    {"FusedMatMulBatchFirst", "(float[5,N,3,4] a, float[6,N,3,4] b) => (float[N,3,5,6] y)",
     "y = com.microsoft.FusedMatMul<transBatchA = 1, transBatchB = 1, transB = 1, alpha = 0.5>(a, b)",
     "h = Constant<value = float {0.5}>()  u = Transpose<perm = [1, 2, 0, 3]>(a)"
     "v = Transpose<perm = [1, 2, 3, 0]>(b)  m = MatMul(u, v)  y = Mul(m, h)"},
    {"Attention", "(float[N,5,8] x, float[8,24] w_w, float[24] w_b, int32[N,5] mask) => (float[N,5,8] y)",
     "y = com.microsoft.Attention<num_heads = 2>(x, w_w, w_b, mask)",
     SHAPES HALF
     "l = MatMul(x, w_w)  all = Add(l, w_b)  q, k, v = Split<axis = 2, num_outputs = 3>(all)" HEADS("q", "qh")
         HEADS("k", "kh") HEADS(
             "v", "vh") "kt = Transpose<perm = [0, 1, 3, 2]>(kh)"
                        "m = MatMul(qh, kt)  d = Mul(m, half)  one = Constant<value = int64[2] {1, 2}>()  w "
                        "= Unsqueeze(mask, one)"
                        "in = Cast<to = 9>(w)  zero = Constant<value = float {0.0}>()  low = Constant<value "
                        "= float {-10000.0}>()"
                        "b = Where(in, zero, low)  a = Add(d, b)  p = Softmax(a)  o = MatMul(p, vh)" JOINED},
    {"FlexAttention", "(float[N,4,3,4] q, float[N,2,5,4] k, float[N,2,5,4] v) => (float[N,4,3,4] y)",
     "y = ai.onnx.preview.FlexAttention<score_mod = m (float[B,H,L,S] a) => (float[B,H,L,S] b) { b = Tanh(a) "
     "}>(q, k, v)",
     HALF "two = Constant<value = int64[1] {2}>()  f = Constant<value = int64[5] {1, 2, 2, 5, 4}>()"
          "r = Constant<value = int64[4] {-1, 4, 5, 4}>()  k1 = Unsqueeze(k, two)  k2 = Expand(k1, f)"
          "k3 = Reshape(k2, r)  v1 = Unsqueeze(v, two)  v2 = Expand(v1, f)  v3 = Reshape(v2, r)"
          "kt = Transpose<perm = [0, 1, 3, 2]>(k3)  m = MatMul(q, kt)  d = Mul(m, half)  c = Tanh(d)  p = "
          "Softmax(c)"
          "y = MatMul(p, v3)"},
    {"CausalConvWithState",
     "(float[N,3,6] x, float[3,1,4] w_w, float[3] w_b, float[N,3,3] past) => (float[N,3,6] y, float[N,3,3] "
     "next)",
     "y, next = CausalConvWithState<activation = \"silu\">(x, w_w, w_b, past)",
     "all = Concat<axis = 2>(past, x)  c = Conv<group = 3>(all, w_w, w_b)  t = Sigmoid(c)  y = Mul(c, t)"
     "a = Constant<value = int64[1] {6}>()  e = Constant<value = int64[1] {9}>()  x2 = Constant<value = "
     "int64[1] {2}>()"
     "next = Slice(all, a, e, x2)"},
};

// What ONNX has as well.
const Same kMoves[] = {
    {"Trilu", "(float[N,4,5] x) => (float[N,4,5] y)",
     "k = Constant<value = int64 {1}>()  y = com.microsoft.Trilu<upper = 0>(x, k)",
     "k = Constant<value = int64 {1}>()  y = Trilu<upper = 0>(x, k)"},
    {"Pad", "(float[N,3] x) => (float[M,6] y)",
     "p = Constant<value = int64[1,4] {0, 1, 1, 2}>()  v = Constant<value = float[1] {2.5}>()  y = "
     "com.microsoft.Pad<mode = \"constant\">(x, p, v)",
     "p = Constant<value = int64[4] {0, 1, 1, 2}>()  v = Constant<value = float {2.5}>()  y = Pad(x, p, v)"},
    {"PadReflects", "(float[N,3] x) => (float[N,6] y)",
     "p = Constant<value = int64[4] {0, 1, 0, 2}>()  y = com.microsoft.Pad<mode = \"reflect\">(x, p)",
     "p = Constant<value = int64[4] {0, 1, 0, 2}>()  y = Pad<mode = \"reflect\">(x, p)"},
    {"GridSample", "(float[N,2,4,5] x, float[N,3,3,2] g) => (float[N,2,3,3] y)",
     "y = com.microsoft.GridSample<mode = \"bicubic\", padding_mode = \"border\", align_corners = 1>(x, g)",
     "y = GridSample<mode = \"bicubic\", padding_mode = \"border\", align_corners = 1>(x, g)"},
    {"GridSampleByDefault", "(float[N,2,4,5] x, float[N,3,3,2] g) => (float[N,2,3,3] y)",
     "y = com.microsoft.GridSample(x, g)", "y = GridSample(x, g)"},
    {"ExpandDims", "(float[N,3] x) => (float[N,3,1] y)",
     "a = Constant<value = int32 {-1}>()  y = com.microsoft.ExpandDims(x, a)",
     "a = Constant<value = int64[1] {2}>()  y = Unsqueeze(x, a)"},
    {"NhwcMaxPool", "(uint8[N,6,5,3] x) => (uint8[N,3,3,3] y)",
     "y = com.microsoft.NhwcMaxPool<kernel_shape = [2, 3], strides = [2, 2], pads = [0, 1, 0, 1]>(x)",
     "t = Transpose<perm = [0, 3, 1, 2]>(x)  m = MaxPool<kernel_shape = [2, 3], strides = [2, 2], pads = [0, "
     "1, 0, "
     "1]>(t)  y = Transpose<perm = [0, 2, 3, 1]>(m)"},
    // Keys that take part from a start (the second half of mask_index) to an end, none at all for one
    // sequence.
    {"AttentionOfLengths", "(float[2,3,8] x, float[8,24] w_w, float[24] w_b) => (float[2,3,8] y)",
     "i = Constant<value = int32[4] {2, 0, 1, 0}>()  y = com.microsoft.Attention<num_heads = 2, "
     "unidirectional = "
     "1>(x, w_w, w_b, i)",
     "i = Constant<value = int32[2,3] {0, 1, 0, 0, 0, 0}>()  y = com.microsoft.Attention<num_heads = 2, "
     "unidirectional = 1>(x, w_w, w_b, i)"},
    {"KeyPaddingOfLengths", "(float[2,3,8] q, float[2,5,8] k, float[2,5,8] v) => (float[2,3,8] y)",
     "i = Constant<value = int32[2] {2, 5}>()  y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v, "
     ", i)",
     "i = Constant<value = int32[2,5] {1, 1, 0, 0, 0, 1, 1, 1, 1, 1}>()  y = "
     "com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v, , i)"},
};

std::ostream& operator<<(std::ostream& out, const Same& s) { return out << s.name; }

class Contrib : public testing::TestWithParam<Same> {};

TEST_P(Contrib, IsTheOnnxOperators) {
  const Same& s = GetParam();
  const auto got = graph_with(s.signature, s.contrib), want = graph_with(s.signature, s.onnx);
  for (int64_t n : {1, 3}) {
    const std::vector<Tensor> inputs = inputs_of(*want, n, 5);
    const auto a = evaluate(*got, inputs), b = evaluate(*want, inputs);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(difference_of(a[i], b[i], 1e-5), "") << "output " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Contrib, testing::ValuesIn(kSame),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Moves, Contrib, testing::ValuesIn(kMoves),
                         [](const auto& info) { return info.param.name; });

// The inverse times the matrix.
TEST(Contrib, Inverse) {
  const auto g = graph_with("(float[N,4,4] x) => (float[N,4,4] y, float[N,4,4] e)",
                            "y = com.microsoft.Inverse(x)  e = MatMul(x, y)");
  const Tensor e = evaluate(*g, inputs_of(*g, 3, 5))[1];
  for (int64_t i = 0; i < e.size(); ++i) EXPECT_NEAR(e.real(i), i % 16 / 4 == i % 4 ? 1 : 0, 1e-4) << i;
}

// As ONNX Runtime writes it into a file of opset 11 that it has optimised; the definition is opset 17's.
TEST(Contrib, LayerNormalizationBeforeItsOpset) {
  const char* signature = " (float[N,5,8] x, float[8] w_s, float[8] w_b) => (float[N,5,8] y) { ";
  const char* node = "y = LayerNormalization<axis = -1, epsilon = 0.01>(x, w_s, w_b) }";
  const auto of_opset = [&](const char* opset) {
    return graph_of(std::string("<ir_version: 8, opset_import: [\"\" : ") + opset + "]> g" + signature +
                    node);
  };
  const auto got = of_opset("11"), want = of_opset("17");
  const std::vector<Tensor> inputs = inputs_of(*want, 3, 5);
  EXPECT_EQ(difference_of(evaluate(*got, inputs)[0], evaluate(*want, inputs)[0], 0), "");
}

TEST(ContribRefusals, WhatIsNotSupported) {
  struct Case {
    const char* signature;
    const char* nodes;
    const char* why;
  };
  const Case cases[] = {
      {"(float[2,4] a, float[4,3] b) => (float[2,3] y)",
       "y = com.microsoft.FusedGemm<activation = \"Mystery\">(a, b)",
       "activation \"Mystery\" is not supported"},
      {"(float[1,3,8] q) => (float[1,3,8] y)", "y = com.microsoft.MultiHeadAttention<num_heads = 2>(q)",
       "packed keys"},
      {"(float[1,3,8] q) => (float[1,3,8] y)", "y = com.microsoft.MultiHeadAttention(q, q, q)",
       "num_heads is 0"},
      {"(float[1,3,8] x, float[8,24] w, float[2,1,2,3,4] p, int32[1] n) => (float[1,3,8] y)",
       "y = com.microsoft.Attention<num_heads = 2>(x, w, , , p, , n)", "shared buffers"},
      {"(float[1,3,8] q, float[1,3,8] k, float[1,3,8] v, float[1,2,4,4] p, int32[1] n, int32 t) => "
       "(float[1,3,8] y)",
       "y = com.microsoft.GroupQueryAttention<num_heads = 2, kv_num_heads = 2>(q, k, v, p, , n, t)",
       "must be given together"},
      {"(float[1,3,8] x) => (float[1,3,8] y)", "y = com.microsoft.Mystery(x)", "is not supported"},
  };
  for (const Case& c : cases) {
    const std::string got = refusal_of([&] { graph_with(c.signature, c.nodes); });
    EXPECT_NE(got.find(c.why), std::string::npos) << got << " for " << c.why;
  }
}

}  // namespace
}  // namespace sinter
