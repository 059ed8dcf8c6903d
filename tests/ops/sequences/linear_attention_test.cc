// LinearAttention: every update rule against its recurrence written out for one head of one key element.
#include <cmath>

#include "ops/one_node.h"

namespace sinter {
namespace {

TEST(LinearAttention, FollowsItsRecurrence) {
  const std::vector<float> q{1, -2, 0.5f}, k{0.5f, 2, -1}, v{3, 1, -2}, g{-0.5f, -0.1f, -1},
      beta{0.5f, 0.25f, 1};
  for (const char* rule : {"linear", "gated", "delta", "gated_delta"}) {
    const std::string name = rule;
    const bool gated = name.rfind("gated", 0) == 0, delta = name.find("delta") != std::string::npos;
    const auto sequence = [](const std::vector<float>& x) { return Tensor::of(x, {1, 3, 1}); };
    const auto out =
        run_node("LinearAttention",
                 {sequence(q), sequence(k), sequence(v), Tensor::of(std::vector<float>{0.75f}, {1, 1, 1, 1}),
                  gated ? sequence(g) : Tensor(), delta ? sequence(beta) : Tensor()},
                 attributes_of({{"update_rule", name},
                                {"q_num_heads", int64_t{1}},
                                {"kv_num_heads", int64_t{1}},
                                {"scale", 0.5f}}),
                 2);
    double s = 0.75;
    for (size_t t = 0; t < 3; ++t) {
      const auto at = [&](const std::vector<float>& x) { return static_cast<double>(x[t]); };
      if (gated) s *= std::exp(at(g));
      const double value = delta ? at(beta) * (at(v) - s * at(k)) : at(v);
      s += at(k) * value;
      EXPECT_NEAR(out[0].real(static_cast<int64_t>(t)), 0.5 * at(q) * s, 1e-6) << rule;
    }
    EXPECT_NEAR(out[1].real(0), s, 1e-6) << rule;
  }
}

TEST(LinearAttention, HeadsShareStates) {
  std::mt19937 random(1);
  const Tensor q = random_tensor(DType::kF64, {2, 3, 8}, random),
               k = random_tensor(DType::kF64, {2, 3, 4}, random),
               v = random_tensor(DType::kF64, {2, 3, 6}, random),
               g = random_tensor(DType::kF64, {2, 3, 2}, random);
  const auto attributes = [](int64_t heads, int64_t kv) {
    return attributes_of({{"update_rule", "gated"}, {"q_num_heads", heads}, {"kv_num_heads", kv}});
  };
  const Tensor y = run_node("LinearAttention", {q, k, v, {}, g}, attributes(4, 2))[0];
  EXPECT_EQ(y.shape(), (std::vector<int64_t>{2, 3, 12}));
  // Keys, values and decays repeated for each head of queries.
  const auto twice = [](const Tensor& t, int64_t each) {
    Tensor out(t.dtype(), {t.dim(0), t.dim(1), t.dim(2) * 2});
    for (int64_t i = 0; i < out.size(); ++i) out.set_real(i, t.real(i / (2 * each) * each + i % each));
    return out;
  };
  expect_near(
      run_node("LinearAttention", {q, twice(k, 2), twice(v, 3), {}, twice(g, 1)}, attributes(4, 4))[0], y,
      1e-12);
}

TEST(LinearAttention, Refusals) {
  const TensorType x{DType::kF32, {1, 3, 8}};
  struct Case {
    std::vector<TensorType> in;
    const char* rule;
    int64_t heads, kv;
    const char* why;
  };
  const Case cases[] = {{{x, x, x}, "gated", 2, 2, "decay and update_rule"},
                        {{x, x, x, {}, x}, "linear", 2, 2, "decay and update_rule"},
                        {{x, x, x}, "delta", 2, 2, "beta and update_rule"},
                        {{x, x, x}, "other", 2, 2, "update_rule is"},
                        {{x, x, x}, "linear", 3, 2, "3 heads of queries for 2"},
                        {{x, x, x, {}, {DType::kF32, {1, 3, 3}}}, "gated", 2, 2, "3 decays for 2"}};
  for (const Case& c : cases) {
    OneNode n("LinearAttention", c.in,
              attributes_of({{"update_rule", c.rule}, {"q_num_heads", c.heads}, {"kv_num_heads", c.kv}}));
    EXPECT_NE(n.refusal().find(c.why), std::string::npos) << n.refusal() << " for " << c.why;
  }
}

}  // namespace
}  // namespace sinter
