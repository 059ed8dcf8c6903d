// Masks of attention in the forms that exporters write, with rows that are masked as a whole, for every
// number that stands for "not this one": fused or not, the values stay. A row of nothing but that number is
// the mean of the values.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Masks {
  const char* name;
  const char* nodes;  // from the scores s0 to s; m and l are masks, f the number, z 0, b a bias
  bool mixed;         // a number beside what is added: fused only where it swallows every score
};

const Masks kMasks[] = {
    {"where", "s = Where(m, s0, f)", false},
    {"where_not", "n = Not(m)  s = Where(n, f, s0)", false},
    {"where_twice", "s1 = Where(m, s0, f)  s = Where(l, s1, f)", false},
    {"where_twice_both_ways", "s1 = Where(m, s0, f)  n = Not(l)  s = Where(n, f, s1)", false},
    {"where_of_two_numbers",
     "g = Constant<value = float {-1e12}>()  s1 = Where(m, s0, f)  s = Where(l, s1, g)", false},
    {"where_and_infinity", "s1 = Where(m, s0, f)  s = Where(l, s1, i)", false},
    {"infinity_and_where", "s1 = Where(l, s0, i)  s = Where(m, s1, f)", false},
    {"added", "a = Where(m, z, f)  s = Add(s0, a)", false},
    {"added_twice", "a = Where(m, z, f)  c = Where(l, z, f)  s1 = Add(s0, a)  s = Add(c, s1)", false},
    {"added_below", "c = Where(l, z, f)  s1 = Add(s0, c)  s = Where(m, s1, f)", true},
    {"added_above", "c = Where(l, z, f)  s1 = Where(m, s0, f)  s = Add(s1, c)", true},
    {"bias_below", "s1 = Add(s0, b)  s = Where(m, s1, f)", true},
    {"bias_above", "s1 = Where(m, s0, f)  s = Add(s1, b)", true},
    {"scaled", "h = Constant<value = float {0.5}>()  s1 = Mul(s0, h)  s = Where(m, s1, f)", false},
};

// l takes key 0 from every query, of a sequence that is padded at its begin; m all keys from query 1, and
// what l leaves from query 2.
Tensor mask_of(const std::string& name) {
  const std::vector<int64_t> m{1, 0, 1, 0, 0, 0, 1, 0, 0}, l{0, 1, 1};
  Tensor t(DType::kBool, name == "m" ? std::vector<int64_t>{3, 3} : std::vector<int64_t>{1, 1, 1, 3});
  for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, (name == "m" ? m : l)[static_cast<size_t>(i)]);
  return t;
}

std::unique_ptr<Graph> masked_attention(const Masks& masks, double fill) {
  ImportOptions options;
  for (const auto& [name, value] :
       {std::pair("f", fill), std::pair("i", -double{INFINITY}), std::pair("z", 0.0)})
    options.constants[name] = Tensor::scalar(static_cast<float>(value));
  return std::move(
      import_model(parse_text(model_of("(float[1,2,3,4] q, float[1,2,4,3] k, float[1,2,3,5] v, bool[3,3] m, "
                                       "bool[1,1,1,3] l, float[2,3,3] b, float f, float i, float z) "
                                       "=> (float[1,2,3,5] y)",
                                       std::string("s0 = MatMul(q, k)  ") + masks.nodes +
                                           "  p = Softmax(s)  y = MatMul(p, v)")),
                   {}, options)
          .graph);
}

// Scores of a few, or of hundreds: beside those -1e9 isn't far enough to swallow them in a sum.
std::vector<Tensor> masked_inputs(const Graph& g, double times) {
  std::vector<Tensor> in = inputs_of(g, 1, 3);
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].dtype() == DType::kBool) in[i] = mask_of(g.inputs[i]->name);
    if (g.inputs[i]->name != "q") continue;
    for (int64_t k = 0; k < in[i].size(); ++k) in[i].set_real(k, in[i].real(k) * times);
  }
  return in;
}

class AttentionMasks : public testing::TestWithParam<Masks> {};
std::ostream& operator<<(std::ostream& out, const Masks& m) { return out << m.name; }

TEST_P(AttentionMasks, KeepRows) {
  const Masks& masks = GetParam();
  for (const double fill : {-1e4, -1e9, -1e10, -3.4028234663852886e38, -HUGE_VAL}) {
    const bool added = std::string_view(masks.name).starts_with("added") && !masks.mixed;
    const bool fused = added || fill <= (masks.mixed ? -1e30 : -1e9);
    const std::unique_ptr<Graph> before = masked_attention(masks, fill);
    for (const char* passes : {"fuse_attention", "all"}) {
      const std::unique_ptr<Graph> after = before->clone();
      run_only(*after, {passes});
      EXPECT_EQ(count_op(*after, "Attention"), fused ? 1u : 0u) << fill;
      for (const double times : {1.0, 100.0}) {
        const std::vector<Tensor> in = masked_inputs(*before, times);
        EXPECT_EQ(
            difference_of(evaluate(*after, in)[0], evaluate(*before, in)[0], fill == -1e4 ? 1e-3 : 1e-5), "")
            << masks.name << " by " << fill << ", scores times " << times << ", " << passes;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, AttentionMasks, testing::ValuesIn(kMasks),
                         [](const auto& i) { return std::string(i.param.name); });

// The mean of the values, as a user would read it.
TEST(AttentionMasks, WholeRowIsTheMean) {
  const std::unique_ptr<Graph> g = masked_attention(kMasks[0], -1e9);
  run_only(*g, {"all"});
  const std::vector<Tensor> in = masked_inputs(*g, 100);
  const Tensor y = evaluate(*g, in)[0];
  for (size_t i = 0; i < g->inputs.size(); ++i) {
    if (g->inputs[i]->name != "v") continue;
    for (int64_t e = 0; e < 5; ++e)
      EXPECT_NEAR(y.real(5 + e), (in[i].real(e) + in[i].real(5 + e) + in[i].real(10 + e)) / 3, 1e-6);
  }
}

// A Where by a constant triangle masks no row as a whole, whatever its number.
TEST(AttentionMasks, WhereOfATriangleIsCausal) {
  for (const char* where : {"s = Where(t, s0, f)", "n = Not(t)  s = Where(n, f, s0)"})
    for (const double fill : {-1e9, -HUGE_VAL}) {
      const std::string nodes =
          std::string("t = Constant<value = bool[3,3] {1, 0, 0, 1, 1, 0, 1, 1, 1}>()  ") + where;
      const std::unique_ptr<Graph> before = masked_attention({"", nodes.c_str(), false}, fill);
      run_only(*before, {"fold_constants"});
      const std::unique_ptr<Graph> after = before->clone();
      run_only(*after, {"fuse_attention"});
      ASSERT_EQ(count_op(*after, "Attention"), 1u);
      for (const auto& n : after->nodes)
        if (std::string_view(n->op->name) == "Attention") {
          EXPECT_EQ(n->attributes.integer("is_causal", 0), 1);
        }
      const std::vector<Tensor> in = masked_inputs(*before, 1);
      EXPECT_EQ(difference_of(evaluate(*after, in)[0], evaluate(*before, in)[0], 1e-5), "");
    }
}

}  // namespace
}  // namespace sinter
