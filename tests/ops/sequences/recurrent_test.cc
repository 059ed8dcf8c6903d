// RNN, GRU and LSTM: shapes, one neuron against the equations, sequence lengths, both layouts, refusals.
#include <cmath>

#include "ops/one_node.h"

namespace sinter {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One neuron, one input, one sequence: gates' weights w, r, biases b (of W and of R) and peepholes p.
struct Neuron {
  std::vector<float> w, r, b, p;
  std::vector<float> x;
  std::vector<Tensor> run(const char* op, Attributes a, std::vector<int32_t> lengths = {}) const {
    const auto n = static_cast<int64_t>(w.size()), steps = static_cast<int64_t>(x.size());
    std::vector<Tensor> in{Tensor::of(x, {steps, 1, 1}),
                           Tensor::of(w, {1, n, 1}),
                           Tensor::of(r, {1, n, 1}),
                           Tensor::of(b, {1, 2 * n}),
                           {},
                           Tensor::of(std::vector<float>{0.25f}, {1, 1, 1})};
    if (!lengths.empty()) {
      in[4] = Tensor(DType::kI32, {1});
      in[4].set_integer(0, lengths[0]);
    }
    const bool lstm = std::string(op) == "LSTM";
    if (lstm) {
      in.push_back(Tensor::of(std::vector<float>{-0.5f}, {1, 1, 1}));
      in.push_back(p.empty() ? Tensor() : Tensor::of(p, {1, 3}));
    }
    return run_node(op, in, a, lstm ? 3 : 2);
  }
};

TEST(Recurrent, RnnFollowsItsEquation) {
  const Neuron n{{0.7f}, {-0.4f}, {0.1f, 0.2f}, {}, {1, -2, 0.5f}};
  const auto out = n.run("RNN", {});
  double h = 0.25;
  for (int t = 0; t < 3; ++t) {
    h = std::tanh(0.7 * static_cast<double>(n.x[static_cast<size_t>(t)]) - 0.4 * h + 0.3);
    EXPECT_NEAR(out[0].real(t), h, 1e-6);
  }
  EXPECT_EQ(out[1].real(0), out[0].real(2));
  EXPECT_EQ(out[0].shape(), (std::vector<int64_t>{3, 1, 1, 1}));
}

TEST(Recurrent, GruFollowsItsEquations) {
  for (int64_t linear : {0, 1}) {
    const Neuron n{
        {0.7f, 0.3f, -0.9f}, {-0.4f, 0.8f, 1.1f}, {0.1f, 0.2f, -0.3f, 0.05f, 0.4f, 0.6f}, {}, {1, -2, 0.5f}};
    const auto out = n.run("GRU", attributes_of({{"linear_before_reset", linear}}));
    double h = 0.25;
    for (int t = 0; t < 3; ++t) {
      const double x = static_cast<double>(n.x[static_cast<size_t>(t)]);
      const double z = sigmoid(0.7 * x - 0.4 * h + 0.15), r = sigmoid(0.3 * x + 0.8 * h + 0.6);
      const double of_h = linear ? r * (1.1 * h + 0.6) : 1.1 * (r * h) + 0.6;
      h = (1 - z) * std::tanh(-0.9 * x + of_h - 0.3) + z * h;
      EXPECT_NEAR(out[0].real(t), h, 1e-6) << "linear_before_reset " << linear;
    }
  }
}

TEST(Recurrent, LstmFollowsItsEquations) {
  for (int64_t coupled : {0, 1}) {
    const Neuron n{{0.7f, 0.3f, -0.9f, 0.2f},
                   {-0.4f, 0.8f, 1.1f, 0.6f},
                   {0.1f, 0.2f, -0.3f, 0.05f, 0.4f, 0.6f, 0, 1},
                   {0.3f, -0.2f, 0.1f},
                   {1, -2, 0.5f}};
    Attributes a = attributes_of({{"input_forget", coupled}, {"clip", 0.8f}});
    const auto out = n.run("LSTM", a);
    double h = 0.25, c = -0.5;
    const auto clip = [](double v) { return std::min(std::max(v, -0.8), 0.8); };
    for (int t = 0; t < 3; ++t) {
      const double x = static_cast<double>(n.x[static_cast<size_t>(t)]);
      const double i = sigmoid(clip(0.7 * x - 0.4 * h + 0.5 + 0.3 * c));
      const double f = coupled ? 1 - i : sigmoid(clip(-0.9 * x + 1.1 * h - 0.3 + 0.1 * c));
      c = f * c + i * std::tanh(clip(0.2 * x + 0.6 * h + 1.05));
      const double o = sigmoid(clip(0.3 * x + 0.8 * h + 0.8 - 0.2 * c));
      h = o * std::tanh(c);
      EXPECT_NEAR(out[0].real(t), h, 1e-6) << "input_forget " << coupled;
    }
    EXPECT_NEAR(out[2].real(0), c, 1e-6);
  }
}

TEST(Recurrent, ActivationsTakeTheirNumbersInOrder) {
  struct Case {
    const char* name;
    double (*f)(double);
  };
  const Case cases[] = {
      {"Relu", [](double x) { return x < 0 ? 0 : x; }},
      {"Sigmoid", sigmoid},
      {"Affine", [](double x) { return 0.3 * x + 0.4; }},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.3 * x : x; }},
      {"ThresholdedRelu", [](double x) { return x >= 0.3 ? x : 0; }},
      {"ScaledTanh", [](double x) { return 0.3 * std::tanh(0.4 * x); }},
      {"HardSigmoid", [](double x) { return std::min(std::max(0.3 * x + 0.4, 0.0), 1.0); }},
      {"Elu", [](double x) { return x < 0 ? 0.3 * std::expm1(x) : x; }},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"softplus", [](double x) { return std::log1p(std::exp(x)); }},
  };
  for (const Case& c : cases)
    for (float x : {-1.5f, -0.1f, 0.2f, 2.0f}) {
      const Neuron n{{1}, {0}, {0, 0}, {}, {x}};
      const auto out = n.run("RNN", attributes_of({{"activations", std::vector<std::string>{c.name}},
                                                   {"activation_alpha", std::vector<float>{0.3f}},
                                                   {"activation_beta", std::vector<float>{0.4f}}}));
      EXPECT_NEAR(out[0].real(0), c.f(static_cast<double>(x)), 1e-6) << c.name << " of " << x;
    }
}

TEST(Recurrent, ShortSequencesEndInZerosAndKeepTheirState) {
  const Neuron n{{0.7f}, {-0.4f}, {0.1f, 0.2f}, {}, {1, -2, 0.5f}};
  const auto whole = n.run("RNN", {}), cut = n.run("RNN", {}, {2});
  EXPECT_EQ(cut[0].real(1), whole[0].real(1));
  EXPECT_EQ(cut[0].real(2), 0);
  EXPECT_EQ(cut[1].real(0), whole[0].real(1));
  const auto none = n.run("RNN", {}, {0});
  EXPECT_EQ(none[1].real(0), 0);
  // Reversed, a sequence begins at its own last step.
  const Neuron front{{0.7f}, {-0.4f}, {0.1f, 0.2f}, {}, {1, -2}};
  const Attributes reverse = attributes_of({{"direction", "reverse"}});
  EXPECT_EQ(n.run("RNN", reverse, {2})[1].real(0), front.run("RNN", reverse)[1].real(0));
  EXPECT_THROW(n.run("RNN", {}, {4}), Refusal);
}

TEST(Recurrent, LayoutsAndDirectionsAreTheSameNumbers) {
  std::mt19937 random(3);
  for (const auto& [op, gates] : {std::pair<const char*, int64_t>{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}}) {
    const Tensor x = random_tensor(DType::kF64, {4, 3, 2}, random),
                 w = random_tensor(DType::kF64, {2, gates * 5, 2}, random),
                 r = random_tensor(DType::kF64, {2, gates * 5, 5}, random);
    const Attributes both = attributes_of({{"direction", "bidirectional"}});
    const Attributes last = attributes_of({{"direction", "bidirectional"}, {"layout", int64_t{1}}});
    const auto a = run_node(op, {x, w, r}, both, 2),
               b = run_node(op, {x.transposed({1, 0, 2}), w, r}, last, 2);
    expect_near(b[0], a[0].transposed({2, 0, 1, 3}), 0);
    expect_near(b[1], a[1].transposed({1, 0, 2}), 0);
    // Forward ends at the last step, backward at the first.
    for (int64_t i = 0; i < 15; ++i) {
      EXPECT_EQ(a[1].real(i), a[0].real((3 * 2 + 0) * 15 + i));
      EXPECT_EQ(a[1].real(15 + i), a[0].real(15 + i));
    }
  }
}

TEST(Recurrent, SymbolicExtents) {
  OneNode n("LSTM", {{}, {DType::kF32, {1, 20, 3}}, {DType::kF32, {1, 20, 5}}}, {}, 3);
  const Dim t(n.graph.symbols->fresh("T", {1, 99}, "test")), b(n.graph.symbols->fresh("B", {1, 9}, "test"));
  Value* x = n.graph.add_value("x", {DType::kF32, {t, b, 3}});
  n.graph.inputs.insert(n.graph.inputs.begin(), x);
  n.graph.set_input(n.node, 0, x);
  EXPECT_EQ(text(n.inferred(0)), "float32[T,1,B,5]");
  EXPECT_EQ(text(n.inferred(1)), "float32[1,B,5]");
  EXPECT_EQ(text(n.inferred(2)), "float32[1,B,5]");
}

TEST(Recurrent, Refusals) {
  const TensorType x{DType::kF32, {4, 2, 3}}, w{DType::kF32, {1, 5, 3}}, r{DType::kF32, {1, 5, 5}};
  struct Case {
    std::vector<TensorType> in;
    Attributes a;
    const char* why;
  };
  const Case cases[] = {
      {{{DType::kI32, {4, 2, 3}}, w, r}, {}, "not defined for int32"},
      {{{DType::kF32, {4, 3}}, w, r}, {}, "has not three axes"},
      {{x, {DType::kF32, {1, 5, 4}}, r}, {}, "axis 2 of W"},
      {{x, w, {DType::kF32, {1, 6, 5}}}, {}, "axis 1 of R"},
      {{x, w, r}, attributes_of({{"direction", "bidirectional"}}), "axis 0 of W"},
      {{x, w, r}, attributes_of({{"direction", "sideways"}}), "direction is"},
      {{x, w, r}, attributes_of({{"layout", int64_t{2}}}), "layout is 2"},
      {{x, w, r}, attributes_of({{"clip", -1.0f}}), "clip is"},
      {{x, w, r}, attributes_of({{"hidden_size", int64_t{6}}}), "hidden_size is 6"},
      {{x, w, r}, attributes_of({{"activations", std::vector<std::string>{"Sine"}}}), "no activation"},
      {{x, w, r},
       attributes_of({{"activations", std::vector<std::string>{"Tanh", "Tanh"}}}),
       "2 activations"},
      {{x, w, r, {}, {DType::kI64, {2}}}, {}, "sequence_lens is not int32"},
      {{x, w, r, {}, {}, {DType::kF32, {1, 3, 5}}}, {}, "initial state"},
  };
  for (const Case& c : cases) {
    OneNode n("RNN", c.in, c.a);
    EXPECT_NE(n.refusal().find(c.why), std::string::npos) << n.refusal() << " for " << c.why;
  }
}

}  // namespace
}  // namespace sinter
