// Attention and RotaryEmbedding: one head against the formula, masks, windows and caches, layouts, refusals.
#include <cmath>

#include "ops/one_node.h"

namespace sinter {
namespace {

// softmax(cap(q . k * scale) + bias(i, j)) v for one head; bias NAN: the key takes no part.
template <class F>
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, double scale, double cap, F bias) {
  const int64_t n = q.dim(2), m = k.dim(2), d = q.dim(3), e = v.dim(3);
  Tensor y(DType::kF64, {1, 1, n, e});
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    std::vector<double> p(static_cast<size_t>(m), 0);
    for (int64_t j = 0; j < m; ++j) {
      const double added = bias(i, j);
      if (std::isnan(added)) continue;
      double s = 0;
      for (int64_t c = 0; c < d; ++c) s += q.real(i * d + c) * k.real(j * d + c);
      s *= scale;
      if (cap > 0) s = cap * std::tanh(s / cap);
      sum += p[static_cast<size_t>(j)] = std::exp(s + added);
    }
    for (int64_t c = 0; c < e; ++c) {
      double value = 0;
      for (int64_t j = 0; j < m; ++j) value += p[static_cast<size_t>(j)] * v.real(j * e + c);
      y.set_real(i * e + c, sum > 0 ? value / sum : 0);
    }
  }
  return y;
}

class Attention : public testing::Test {
 protected:
  std::mt19937 random_{5};
  Tensor q_ = random_tensor(DType::kF64, {1, 1, 4, 3}, random_),
         k_ = random_tensor(DType::kF64, {1, 1, 6, 3}, random_),
         v_ = random_tensor(DType::kF64, {1, 1, 6, 2}, random_);
  static double none(int64_t, int64_t) { return 0; }
  const double scale_ = 1 / std::sqrt(3.0);
};

TEST_F(Attention, FollowsItsFormula) {
  expect_near(run_node("Attention", {q_, k_, v_})[0], attend(q_, k_, v_, scale_, 0, none), 1e-9);
  expect_near(run_node("Attention", {q_, k_, v_}, attributes_of({{"scale", 0.5f}, {"softcap", 0.25f}}))[0],
              attend(q_, k_, v_, 0.5, 0.25, none), 1e-9);
}

TEST_F(Attention, CausalAndWindowsCountFromThePast) {
  const auto causal = [](int64_t i, int64_t j) { return j <= i ? 0.0 : NAN; };
  expect_near(run_node("Attention", {q_, k_, v_}, attributes_of({{"is_causal", int64_t{1}}}))[0],
              attend(q_, k_, v_, scale_, 0, causal), 1e-9);
  const auto window = [](int64_t i, int64_t j) { return j >= i - 1 && j <= i + 2 ? 0.0 : NAN; };
  expect_near(
      run_node("Attention", {q_, k_, v_},
               attributes_of({{"left_window_size", int64_t{1}}, {"right_window_size", int64_t{2}}}))[0],
      attend(q_, k_, v_, scale_, 0, window), 1e-9);
  // The first two keys are the past: queries stand two places later.
  const auto part = [](const Tensor& t, int64_t first, int64_t count) {
    Tensor out(t.dtype(), {1, 1, count, t.dim(3)});
    for (int64_t i = 0; i < out.size(); ++i) out.set_real(i, t.real(first * t.dim(3) + i));
    return out;
  };
  const auto later = [](int64_t i, int64_t j) { return j <= i + 2 ? 0.0 : NAN; };
  const auto out =
      run_node("Attention", {q_, part(k_, 2, 4), part(v_, 2, 4), {}, part(k_, 0, 2), part(v_, 0, 2)},
               attributes_of({{"is_causal", int64_t{1}}}), 3);
  expect_near(out[0], attend(q_, k_, v_, scale_, 0, later), 1e-9);
  expect_near(out[1], k_, 0);
  expect_near(out[2], v_, 0);
  // Five valid keys: queries are the last four of them.
  Tensor five(DType::kI64, {1});
  five.set_integer(0, 5);
  const auto valid = [](int64_t i, int64_t j) { return j <= i + 1 && j < 5 ? 0.0 : NAN; };
  expect_near(
      run_node("Attention", {q_, k_, v_, {}, {}, {}, five}, attributes_of({{"is_causal", int64_t{1}}}))[0],
      attend(q_, k_, v_, scale_, 0, valid), 1e-9);
}

TEST_F(Attention, Masks) {
  Tensor bits(DType::kBool, {4, 6}), added(DType::kF64, {1, 1, 4, 6}), shorter(DType::kF64, {4, 5});
  for (int64_t i = 0; i < 24; ++i) bits.set_integer(i, i >= 6 && i % 3 != 0);  // no key for query 0
  for (int64_t i = 0; i < 24; ++i)
    added.set_real(i, i % 5 == 0 ? -INFINITY : 0.1 * static_cast<double>(i % 7));
  expect_near(run_node("Attention", {q_, k_, v_, bits})[0],
              attend(q_, k_, v_, scale_, 0,
                     [&](int64_t i, int64_t j) { return bits.integer(i * 6 + j) ? 0.0 : NAN; }),
              1e-9);
  expect_near(run_node("Attention", {q_, k_, v_, added})[0],
              attend(q_, k_, v_, scale_, 0, [&](int64_t i, int64_t j) { return added.real(i * 6 + j); }),
              1e-9);
  expect_near(run_node("Attention", {q_, k_, v_, shorter})[0],
              attend(q_, k_, v_, scale_, 0, [&](int64_t, int64_t j) { return j < 5 ? 0.0 : NAN; }), 1e-9);
  // A row without keys is NaN where a Softmax of its own would have made it.
  const Tensor y = run_node("Attention", {q_, k_, v_, bits}, attributes_of({{"nan_rows", int64_t{1}}}))[0];
  EXPECT_TRUE(std::isnan(y.real(0)));
  EXPECT_FALSE(std::isnan(y.real(2)));
}

TEST_F(Attention, LayoutsAndSharedHeadsAreTheSameNumbers) {
  const Tensor q = random_tensor(DType::kF64, {2, 4, 5, 3}, random_),
               k = random_tensor(DType::kF64, {2, 2, 6, 3}, random_),
               v = random_tensor(DType::kF64, {2, 2, 6, 2}, random_);
  const Tensor y = run_node("Attention", {q, k, v})[0];
  const auto flat = [](const Tensor& t) {
    return t.transposed({0, 2, 1, 3}).reshaped({t.dim(0), t.dim(2), t.dim(1) * t.dim(3)});
  };
  expect_near(run_node("Attention", {flat(q), flat(k), flat(v)},
                       attributes_of({{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}}))[0],
              flat(y), 0);
  const auto first = [](const Tensor& t) { return t.transposed({0, 2, 1, 3}); };
  expect_near(run_node("Attention", {first(q), k, first(v)},
                       attributes_of({{"positions_first", std::vector<int64_t>{1, 0, 1, 1}}}))[0],
              first(y), 0);
}

TEST_F(Attention, Refusals) {
  const auto f = [](Shape s) { return TensorType{DType::kF32, std::move(s)}; };
  struct Case {
    std::vector<TensorType> in;
    Attributes a;
    const char* why;
  };
  const Case cases[] = {
      {{f({1, 2, 3}), f({1, 2, 3}), f({1, 2, 3})}, {}, "need q_num_heads"},
      {{f({1, 2, 3}), f({1, 2, 2, 3}), f({1, 2, 3})}, {}, "have not all three or all four axes"},
      {{f({1, 3, 2, 4}), f({1, 2, 2, 4}), f({1, 2, 2, 4})}, {}, "3 heads of queries for 2"},
      {{f({1, 2, 2, 4}), f({1, 2, 2, 5}), f({1, 2, 2, 4})}, {}, "axis 3 of K"},
      {{f({1, 2, 2, 4}), f({1, 2, 3, 4}), f({1, 2, 2, 4})}, {}, "axis 2 of V"},
      {{f({1, 2, 2, 4}), f({1, 2, 2, 4}), f({1, 2, 2, 4}), f({3, 2})}, {}, "of the mask"},
      {{f({1, 2, 2, 4}), f({1, 2, 2, 4}), f({1, 2, 2, 4}), {}, f({1, 2, 2, 4})},
       {},
       "must be given together"},
      {{f({1, 2, 2, 4}), f({1, 2, 2, 4}), f({1, 2, 2, 4})},
       attributes_of({{"scale", INFINITY}}),
       "scale is inf"},
      {{f({1, 2, 2, 4}), f({1, 2, 2, 4}), f({1, 2, 2, 4})},
       attributes_of({{"softcap", -1.0f}}),
       "softcap is"},
      {{f({1, 2, 2, 4}), f({1, 2, 2, 4}), f({1, 2, 2, 4})},
       attributes_of({{"left_window_size", int64_t{-2}}}),
       "a window of"},
      {{f({1, 2, 2, 4}), f({1, 2, 2, 4}), {DType::kI32, {1, 2, 2, 4}}}, {}, "values of type int32"},
  };
  for (const Case& c : cases) {
    OneNode n("Attention", c.in, c.a);
    EXPECT_NE(n.refusal().find(c.why), std::string::npos) << n.refusal() << " for " << c.why;
  }
}

TEST(RotaryEmbedding, TurnsPairs) {
  const Tensor x = Tensor::of({1, 2, 3, 4, 5, 6}, {1, 1, 1, 6}), c = Tensor::of({0.6f, 0}, {1, 1, 2}),
               s = Tensor::of({0.8f, 1}, {1, 1, 2});
  const Attributes four = attributes_of({{"rotary_embedding_dim", int64_t{4}}});
  expect_near(run_node("RotaryEmbedding", {x, c, s}, four)[0],
              Tensor::of({0.6f - 2.4f, -4, 0.8f + 1.8f, 2, 5, 6}, {1, 1, 1, 6}), 1e-6);
  const Attributes pairs = attributes_of({{"rotary_embedding_dim", int64_t{4}}, {"interleaved", int64_t{1}}});
  expect_near(run_node("RotaryEmbedding", {x, c, s}, pairs)[0],
              Tensor::of({0.6f - 1.6f, 0.8f + 1.2f, -4, 3, 5, 6}, {1, 1, 1, 6}), 1e-6);
  const Tensor caches_c = Tensor::of({9, 9, 0.6f, 0}, {2, 2}), caches_s = Tensor::of({9, 9, 0.8f, 1}, {2, 2});
  Tensor at(DType::kI64, {1, 1});
  at.set_integer(0, 1);
  expect_near(run_node("RotaryEmbedding", {x, caches_c, caches_s, at}, four)[0],
              Tensor::of({0.6f - 2.4f, -4, 0.8f + 1.8f, 2, 5, 6}, {1, 1, 1, 6}), 1e-6);
  at.set_integer(0, 2);
  EXPECT_THROW(run_node("RotaryEmbedding", {x, caches_c, caches_s, at}, four), Refusal);
  OneNode odd("RotaryEmbedding",
              {{DType::kF32, {1, 1, 1, 5}}, {DType::kF32, {1, 1, 2}}, {DType::kF32, {1, 1, 2}}});
  EXPECT_NE(odd.refusal().find("can't be turned in pairs"), std::string::npos);
}

}  // namespace
}  // namespace sinter
