// tabulate_bytes: the same bytes, with a table where a costly function stands between them; and what must
// stay.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Form {
  const char* name;
  const char* signature;
  const char* nodes;
  size_t tables;  // that all passes leave
};

constexpr const char* kSteps =
    "s = Constant<value = float {0.03125}>()  t = Constant<value = float {0.0078125}>()  z = Constant<value "
    "= int8 "
    "{-3}>()  u = Constant<value = uint8 {128}>()  ";

const Form kForms[] = {
    {"sigmoid", "(int8[N,7] x) => (int8[N,7] y)",
     "a = DequantizeLinear(x, s, z)  b = Sigmoid(a)  y = QuantizeLinear(b, t, z)", 1},
    {"silu", "(uint8[N,7] x) => (uint8[N,7] y)",
     "a = DequantizeLinear(x, s, u)  b = Sigmoid(a)  c = QuantizeLinear(b, t, u)  d = DequantizeLinear(c, t, "
     "u)\n"
     "e = Mul(a, d)  y = QuantizeLinear(e, s, u)",
     1},
    {"silu_of_a_table", "(uint8[N,7] x) => (uint8[N,7] y)",
     "h = DequantizeLinear(x, s, u)  i = HardSwish(h)  w = QuantizeLinear(i, s, u)\n"
     "a = DequantizeLinear(w, s, u)  b = Sigmoid(a)  c = QuantizeLinear(b, t, u)  d = DequantizeLinear(c, t, "
     "u)\n"
     "e = Mul(a, d)  y = QuantizeLinear(e, s, u)",
     2},
    {"from_int8_to_uint8", "(int8[N,7] x) => (uint8[N,7] y)",
     "a = DequantizeLinear(x, s, z)  b = Tanh(a)  y = QuantizeLinear(b, t, u)", 1},
    {"numbers_beside", "(int8[N,7] x) => (int8[N,7] y)",
     "o = Constant<value = float[1,1] {1.5}>()  a = DequantizeLinear(x, s, z)  b = Add(a, o)  c = Exp(b)\n"
     "d = Min(c, o)  y = QuantizeLinear(d, t, z)",
     1},
    // ---- what stays
    {"bounds", "(int8[N,7] x) => (int8[N,7] y)",
     "a = DequantizeLinear(x, s, z)  b = Relu(a)  y = QuantizeLinear(b, t, z)", 0},
    {"two_tensors", "(int8[N,7] x, int8[N,7] v) => (int8[N,7] y)",
     "a = DequantizeLinear(x, s, z)  b = DequantizeLinear(v, s, z)  c = Sigmoid(a)  d = Mul(c, b)\n"
     "y = QuantizeLinear(d, t, z)",
     0},
    {"broadcast", "(int8[7] x) => (int8[2,7] y)",
     "o = Constant<value = float[2,1] {1.5, 2.0}>()  a = DequantizeLinear(x, s, z)  c = Sigmoid(a)  d = "
     "Mul(c, o)\n"
     "y = QuantizeLinear(d, t, z)",
     0},
    {"steps_by_channel", "(int8[N,7] x, float[7] w_s) => (int8[N,7] y)",
     "a = DequantizeLinear<axis = 1>(x, w_s)  c = Sigmoid(a)  y = QuantizeLinear(c, t, z)", 0},
    {"floats", "(float[N,7] x) => (int8[N,7] y)", "c = Sigmoid(x)  y = QuantizeLinear(c, t, z)", 0},
};

std::ostream& operator<<(std::ostream& out, const Form& f) { return out << f.name; }

class TableForm : public testing::TestWithParam<Form> {};

TEST_P(TableForm, SameBytes) {
  const Form& f = GetParam();
  const std::unique_ptr<Graph> before =
      graph_of(model_of(f.signature, fmt::format("{}{}", kSteps, f.nodes), 20));
  const std::unique_ptr<Graph> after = before->clone();
  run_only(*after, {"all"}, false, true);
  EXPECT_EQ(count_op(*after, "byte_table"), f.tables) << text(*after);
  for (const uint32_t seed : {1u, 2u, 3u}) {
    std::vector<Tensor> inputs = inputs_of(*before, 40, seed);
    const Tensor want = evaluate(*before, inputs)[0], got = evaluate(*after, inputs)[0];
    EXPECT_TRUE(got.same_bits(want)) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TableForm, testing::ValuesIn(kForms),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace sinter
