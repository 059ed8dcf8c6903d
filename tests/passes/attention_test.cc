// fuse_attention on the forms that exporters write, and on what must stay: golden text and equal values.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Form {
  const char* name;
  const char* signature;
  const char* nodes;
  const char* why = nullptr;  // why it stays; null where it becomes Attention
};

// Heads split off [N,S,8] and put together again.
#define SPLIT                                                                                          \
  "s = Constant<value = int64[4] {0, 0, 2, 4}>()  u = Constant<value = int64[3] {0, 0, 8}>()"          \
  "q3 = Reshape(a, s)  k3 = Reshape(b, s)  v3 = Reshape(c, s)  q = Transpose<perm = [0, 2, 1, 3]>(q3)" \
  "v = Transpose<perm = [0, 2, 1, 3]>(v3)  eight = Constant<value = float {2.0}>()"
#define JOIN "o = MatMul(p, v)  t = Transpose<perm = [0, 2, 1, 3]>(o)  y = Reshape(t, u)"
#define INPUTS "(float[N,S,8] a, float[N,S,8] b, float[N,S,8] c"
#define OUTPUT " => (float[N,S,8] y)"

const Form kForms[] = {
    {"attention_divided", INPUTS ")" OUTPUT,
     SPLIT
     "k = Transpose<perm = [0, 2, 3, 1]>(k3)  m = MatMul(q, k)  d = Div(m, eight)  p = Softmax(d)" JOIN},
    {"attention_scaled_queries", INPUTS ")" OUTPUT,
     SPLIT
     "k1 = Transpose<perm = [0, 2, 1, 3]>(k3)  k = Transpose<perm = [0, 1, 3, 2]>(k1)  e = Mul(eight, q)"
     "m = MatMul(e, k)  p = Softmax<axis = 3>(m)" JOIN},
    {"attention_scaled_both_and_masked", INPUTS ", float[N,1,S,S] mask)" OUTPUT,
     SPLIT "k1 = Transpose<perm = [0, 2, 3, 1]>(k3)  k = Mul(k1, eight)  e = Mul(q, eight)  m = MatMul(e, k)"
           "d = Add(m, mask)  p = Softmax(d)" JOIN},
    {"attention_where", INPUTS ", bool[S,S] mask)" OUTPUT,
     SPLIT "k = Transpose<perm = [0, 2, 3, 1]>(k3)  m = MatMul(q, k)  d = Div(m, eight)"
           "low = Constant<value = float {-1000000000.0}>()  w = Where(mask, d, low)  p = Softmax(w)" JOIN},
    {"attention_where_not", INPUTS ", bool[S,S] mask, float[S] bias)" OUTPUT,
     SPLIT
     "k = Transpose<perm = [0, 2, 3, 1]>(k3)  m = MatMul(q, k)  d = Div(m, eight)"
     "low = Constant<value = float {-3.4028234663852886e38}>()  w = Where(mask, low, d)  f = Add(bias, w)"
     "p = Softmax(f)" JOIN},
    {"attention_flat_transpose",
     "(float[N,2,6,4] q, float[N,2,6,4] k0, float[N,2,6,4] v) => (float[N,2,6,4] y)",
     "z = Constant<value = int64[3] {-1, 6, 4}>()  k1 = Reshape(k0, z)  k2 = Transpose<perm = [0, 2, 1]>(k1)"
     "w = Constant<value = int64[4] {-1, 2, 4, 6}>()  k = Reshape(k2, w)  h = Constant<value = float {0.5}>()"
     "e = Mul(k, h)  m = MatMul(q, e)  p = Softmax(m)  y = MatMul(p, v)"},
    {"attention_shared_heads",
     "(float[N,4,5,4] q, float[N,2,5,4] k0, float[N,2,5,4] v0) => (float[N,4,5,4] y)",
     "two = Constant<value = int64[1] {2}>()  f = Constant<value = int64[5] {1, 2, 2, 5, 4}>()"
     "r = Constant<value = int64[4] {-1, 4, 5, 4}>()  k1 = Unsqueeze(k0, two)  k2 = Expand(k1, f)"
     "k3 = Reshape(k2, r)  v1 = Unsqueeze(v0, two)  v2 = Expand(v1, f)  v = Reshape(v2, r)"
     "k = Transpose<perm = [0, 1, 3, 2]>(k3)  m = MatMul(q, k)  p = Softmax(m)  y = MatMul(p, v)"},
    {"attention_tiled_heads",
     "(float[N,4,5,4] q, float[N,2,5,4] k0, float[N,2,5,4] v0) => (float[N,4,5,4] y)",
     "two = Constant<value = int64[1] {2}>()  f = Constant<value = int64[5] {1, 1, 2, 1, 1}>()"
     "r = Constant<value = int64[4] {-1, 4, 5, 4}>()  k1 = Unsqueeze(k0, two)  k2 = Tile(k1, f)"
     "k3 = Reshape(k2, r)  v1 = Unsqueeze(v0, two)  v2 = Tile(v1, f)  v = Reshape(v2, r)"
     "k = Transpose<perm = [0, 1, 3, 2]>(k3)  m = MatMul(q, k)  p = Softmax(m)  y = MatMul(p, v)"},
    // Not each head twice, but all heads and then all again: no shared heads.
    {"attention_heads_in_turn",
     "(float[N,4,5,4] q, float[N,2,5,4] k0, float[N,2,5,4] v0) => (float[N,4,5,4] y)",
     "one = Constant<value = int64[1] {1}>()  f = Constant<value = int64[5] {1, 2, 1, 1, 1}>()"
     "r = Constant<value = int64[4] {-1, 4, 5, 4}>()  k1 = Unsqueeze(k0, one)  k2 = Tile(k1, f)"
     "k3 = Reshape(k2, r)  v1 = Unsqueeze(v0, one)  v2 = Tile(v1, f)  v = Reshape(v2, r)"
     "k = Transpose<perm = [0, 1, 3, 2]>(k3)  m = MatMul(q, k)  p = Softmax(m)  y = MatMul(p, v)"},
    {"attention_three_axes", "(float[S,6,4] a, float[6,T,4] b, float[6,T,4] v) => (float[S,6,4] y)",
     "q = Transpose<perm = [1, 0, 2]>(a)  k = Transpose<perm = [0, 2, 1]>(b)  m = MatMul(q, k)  p = "
     "Softmax(m)"
     "o = MatMul(p, v)  y = Transpose<perm = [1, 0, 2]>(o)"},
    {"attention_lower_triangle",
     "(float[N,2,3,4] q, float[N,2,4,3] k, float[N,2,3,4] v) => (float[N,2,3,4] y)",
     "low = Constant<value = float[3,3] {0, -1000000000.0, -1000000000.0, 0, 0, -1000000000.0, 0, 0, 0}>()"
     "m = MatMul(q, k)  d = Add(m, low)  p = Softmax(d)  y = MatMul(p, v)"},
    {"attention_turned", "(float[N,4,S] a, float[N,4,S] b, float[N,5,S] v) => (float[N,5,S] y)",
     "q = Transpose<perm = [0, 2, 1]>(a)  m = MatMul(q, b)  p = Softmax(m)  t = Transpose<perm = [0, 2, "
     "1]>(p)"
     "y = MatMul(v, t)"},
    {"attention_late_values", "(float[N,3,4] q, float[N,4,5] k, float[N,5,4] v) => (float[N,3,4] y)",
     "m = MatMul(q, k)  p = Softmax(m)  w = Relu(v)  y = MatMul(p, w)"},
    {"attention_flat_keys", "(float[1,2,6,4] q, float[6,2,4] k0, float[1,2,6,4] v) => (float[1,2,6,4] y)",
     "z = Constant<value = int64[4] {-1, 2, 4, 6}>()  k1 = Transpose<perm = [1, 0, 2]>(k0)"
     "k2 = Transpose<perm = [0, 2, 1]>(k1)  k = Reshape(k2, z)  m = MatMul(q, k)  p = Softmax(m)  y = "
     "MatMul(p, v)"},
    // ---- what stays
    {"no_attention_scores_used",
     "(float[N,2,3,4] q, float[N,2,4,3] k, float[N,2,3,4] v) => (float[N,2,3,4] y, float[N,2,3,3] m)",
     "m = MatMul(q, k)  p = Softmax(m)  y = MatMul(p, v)", "its scores are used elsewhere"},
    {"no_attention_weights_used",
     "(float[N,2,3,4] q, float[N,2,4,3] k, float[N,2,3,4] v) => (float[N,2,3,4] y, float[N,2,3,3] p)",
     "m = MatMul(q, k)  p = Softmax(m)  y = MatMul(p, v)", "its result does not go to a MatMul alone"},
    {"no_attention_axis", "(float[N,2,3,4] q, float[N,2,4,3] k, float[N,2,3,4] v) => (float[N,2,3,4] y)",
     "m = MatMul(q, k)  p = Softmax<axis = 2>(m)  y = MatMul(p, v)", "it is not along the last axis"},
    {"no_attention_late_scale",
     "(float[N,2,3,4] q, float[N,2,4,3] k, float[N,2,3,4] v, float[3] mask) => (float[N,2,3,4] y)",
     "h = Constant<value = float {0.5}>()  m = MatMul(q, k)  a = Add(m, mask)  d = Mul(a, h)  p = Softmax(d) "
     " y = MatMul(p, v)",
     "its scale stands behind the mask"},
    {"no_attention_no_product", "(float[N,2,3,3] q, float[N,2,3,4] v) => (float[N,2,3,4] y)",
     "m = Relu(q)  p = Softmax(m)  y = MatMul(p, v)", "its scores do not come from a MatMul"},
    {"no_attention_broadcast", "(float[N,2,3,4] q, float[1,2,4,3] k, float[N,2,3,4] v) => (float[N,2,3,4] y)",
     "m = MatMul(q, k)  p = Softmax(m)  y = MatMul(p, v)",
     "its factors broadcast along the batch or the heads"},
    {"no_attention_near_fill",
     "(float[N,2,3,4] q, float[N,2,4,3] k, float[N,2,3,4] v, bool[3,3] mask) => (float[N,2,3,4] y)",
     "low = Constant<value = float {-5.0}>()  m = MatMul(q, k)  w = Where(mask, m, low)  p = Softmax(w)  y = "
     "MatMul(p, v)",
     "what stands for masked scores is not a number far below them"},
    {"no_attention_added_beside_a_number",
     "(float[N,2,3,4] q, float[N,2,4,3] k, float[N,2,3,4] v, bool[3,3] mask, float[3] bias) => "
     "(float[N,2,3,4] y)",
     "low = Constant<value = float {-1000000000.0}>()  m = MatMul(q, k)  w = Where(mask, m, low)  a = Add(w, "
     "bias) "
     "p = Softmax(a)  y = MatMul(p, v)",
     "a mask is added beside a number for masked scores that is not far enough below them"},
    {"no_attention_mask_widens",
     "(float[N,2,1,4] q, float[N,2,4,3] k, float[N,2,3,4] v, float[3,3] mask) => (float[N,2,3,4] y)",
     "m = MatMul(q, k)  a = Add(m, mask)  p = Softmax(a)  y = MatMul(p, v)",
     "its scores do not come from a MatMul"},
};

std::ostream& operator<<(std::ostream& out, const Form& f) { return out << f.name; }

class AttentionForm : public testing::TestWithParam<Form> {};

TEST_P(AttentionForm, SameTextAndValues) {
  const Form& f = GetParam();
  const ProvedForm p = prove_form({f.name, "fuse_attention", "Attention", 1e-5, {1, 6}},
                                  graph_of(model_of(f.signature, f.nodes)));
  EXPECT_EQ(count_op(*p.after, "Attention"), f.why ? 0u : 1u);
  EXPECT_EQ(count_op(*p.after, "Softmax"), f.why ? 1u : 0u);
  for (const auto& n : p.after->nodes) {
    if (std::string(n->op->name) == "Softmax") {
      EXPECT_EQ(n->attributes.text("no_attention", ""), f.why);
    }
  }
}

TEST(AttentionTransposes, AreTakenIn) {
  const std::unique_ptr<Graph> before = graph_of(
      "<ir_version: 8, opset_import: [\"\" : 23]> g (float[N,S,2,4] a, float[N,T,2,4] b, float[N,2,T,4] v) =>"
      " (float[N,S,2,4] y) { q = Transpose<perm = [0, 2, 1, 3]>(a)  k = Transpose<perm = [0, 2, 1, 3]>(b)"
      " o = Attention(q, k, v)  y = Transpose<perm = [0, 2, 1, 3]>(o) }");
  const std::unique_ptr<Graph> after = before->clone();
  run_only(*after, {"fuse_attention"}, true);
  EXPECT_EQ(count_op(*after, "Transpose"), 0u);
  EXPECT_EQ(count_op(*after, "Attention"), 1u);
  expect_same_values(*before, *after, 0, {1, 3});
}

INSTANTIATE_TEST_SUITE_P(All, AttentionForm, testing::ValuesIn(kForms),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sinter
