// fuse_squeeze_excite on the forms that exporters write, and on what must stay: golden text and equal values.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Form {
  const char* name;
  const char* signature;
  const char* nodes;
  bool fused = true;
};

#define WEIGHTS ", float[3,6,1,1] w_1, float[3] w_b, float[6,3,1,1] w_2, float[6] w_c)"
#define NET "a = Conv(p, w_1, w_b)  r = Relu(a)  b = Conv(r, w_2, w_c)  "

const Form kForms[] = {
    {"squeeze_excite_pool", "(float[N,6,H,5] x" WEIGHTS " => (float[N,6,H,5] y)",
     "p = GlobalAveragePool(x)  " NET "g = Sigmoid(b)  y = Mul(x, g)"},
    {"squeeze_excite_mean_and_silu",
     "(float[N,6,4,5] x, float[3,6,1,1] w_1, float[6,3,1,1] w_2) => (float[N,6,4,5] y)",
     "ax = Constant<value = int64[2] {2, -1}>()  p = ReduceMean<keepdims = 1>(x, ax)  a = Conv(p, w_1)"
     "s = Sigmoid(a)  r = Mul(a, s)  b = Conv(r, w_2)  g = Sigmoid(b)  y = Mul(g, x)"},
    {"squeeze_excite_hard_sigmoid_spelled_out", "(float[N,6,4,5] x" WEIGHTS " => (float[N,6,4,5] y)",
     "three = Constant<value = float {3.0}>()  six = Constant<value = float {6.0}>()  "
     "zero = Constant<value = float {0.0}>()  p = GlobalAveragePool(x)  " NET
     "d = Add(b, three)  e = Clip(d, zero, six)  g = Div(e, six)  y = Mul(x, g)"},
    {"squeeze_excite_views", "(float[N,6,4] x, float[3,6,1,1] w_1, float[6,3,1,1] w_2) => (float[N,6,4] y)",
     "ax = Constant<value = int64[1] {2}>()  three = Constant<value = int64[1] {3}>()"
     "q = ReduceMean<keepdims = 1>(x, ax)  p = Unsqueeze(q, three)  a = Conv(p, w_1)  r = Relu(a)  b = "
     "Conv(r, w_2)"
     "g0 = Sigmoid(b)  g = Squeeze(g0, three)  y = Mul(x, g)"},
    // ---- what stays
    {"no_squeeze_excite_gate_used", "(float[N,6,H,5] x" WEIGHTS " => (float[N,6,H,5] y, float[N,6,1,1] g)",
     "p = GlobalAveragePool(x)  " NET "g = Sigmoid(b)  y = Mul(x, g)", false},
    {"no_squeeze_excite_other_tensor", "(float[N,6,4,5] x, float[N,6,4,5] z" WEIGHTS " => (float[N,6,4,5] y)",
     "p = GlobalAveragePool(x)  " NET "g = Sigmoid(b)  y = Mul(z, g)", false},
    {"no_squeeze_excite_maximum", "(float[N,6,4,5] x" WEIGHTS " => (float[N,6,4,5] y)",
     "p = GlobalMaxPool(x)  " NET "g = Sigmoid(b)  y = Mul(x, g)", false},
    {"no_squeeze_excite_pad", "(float[N,6,4,5] x" WEIGHTS " => (float[N,6,4,5] y)",
     "p = GlobalAveragePool(x)  a = Conv<pads = [1, 1, 0, 0], strides = [2, 2]>(p, w_1, w_b)  r = Relu(a)  "
     "b = Conv(r, w_2, w_c)  g = Sigmoid(b)  y = Mul(x, g)",
     false},
    {"no_squeeze_excite_one_axis", "(float[N,6,1,5] x" WEIGHTS " => (float[N,6,1,5] y)",
     "ax = Constant<value = int64[1] {3}>()  p = ReduceMean<keepdims = 1>(x, ax)  " NET
     "g = Sigmoid(b)  y = Mul(x, g)",
     false},
};

std::ostream& operator<<(std::ostream& out, const Form& f) { return out << f.name; }

class SqueezeExciteForm : public testing::TestWithParam<Form> {};

TEST_P(SqueezeExciteForm, SameTextAndValues) {
  const Form& f = GetParam();
  const ProvedForm p =
      prove_form({f.name, "fuse_squeeze_excite", "squeeze_excite"}, graph_of(model_of(f.signature, f.nodes)));
  EXPECT_EQ(count_op(*p.after, "squeeze_excite"), f.fused ? 1u : 0u);
  EXPECT_EQ(p.after->nodes.size() == 1, f.fused);
  EXPECT_EQ(count_op(*p.all, "squeeze_excite"), f.fused ? 1u : 0u);
}

// Among convolutions it is channels-last, and takes the residual as its epilogue.
TEST(SqueezeExcite, RunsChannelsLast) {
  const std::unique_ptr<Graph> g =
      graph_of("<ir_version: 8, opset_import: [\"\" : 18]> g (float[N,6,5,5] i, float[6,6,1,1] w_k" WEIGHTS
               " => (float[N,6,5,5] y) { x = Conv(i, w_k)  p = GlobalAveragePool(x)  " NET
               " g = Sigmoid(b)  m = Mul(x, g)  s = Add(m, i)  y = Relu(s) }");
  const std::unique_ptr<Graph> all = g->clone();
  run_only(*all, {"all"});
  EXPECT_EQ(count_op(*all, "squeeze_excite"), 1u);
  EXPECT_EQ(all->nodes.size(), 4u) << text(*all);
  expect_same_values(*g, *all, 1e-5, {1, 3});
}

INSTANTIATE_TEST_SUITE_P(All, SqueezeExciteForm, testing::ValuesIn(kForms),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sinter
