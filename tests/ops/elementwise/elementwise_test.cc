// Elementwise operators against values computed by hand or by std::, special values, broadcasting, every
// integer width, and what they refuse.
#include <functional>

#include "ops/run_node.h"

namespace sinter {
namespace {
using namespace node_test;

struct RealCase {
  const char* op;
  Attrs attributes;
  std::vector<double> in, want;
};
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Elementwise, UnaryValues) {
  const double inf = INFINITY, nan = NAN;
  const RealCase cases[] = {
      {"Abs", {}, {-1.5, 0, 2, -inf, nan}, {1.5, 0, 2, inf, nan}},
      {"Neg", {}, {-1.5, 2, inf}, {1.5, -2, -inf}},
      {"Sign", {}, {-1.5, 0, 2, nan, -inf}, {-1, 0, 1, nan, -1}},
      {"Reciprocal", {}, {4, -0.5, 0}, {0.25, -2, inf}},
      {"Floor", {}, {-1.5, 1.5, 2}, {-2, 1, 2}},
      {"Ceil", {}, {-1.5, 1.5, 2}, {-1, 2, 2}},
      {"Round", {}, {0.5, 1.5, 2.5, -0.5, -1.5, 2.6, nan}, {0, 2, 2, 0, -2, 3, nan}},
      {"Sqrt", {}, {4, 2, -1, inf}, {2, 1.41421356, nan, inf}},
      {"Exp", {}, {0, 1, -inf, 1000}, {1, 2.71828183, 0, inf}},
      {"Log", {}, {1, 0, -1, inf}, {0, -inf, nan, inf}},
      {"Sin", {}, {0.5}, {std::sin(0.5)}},
      {"Cos", {}, {0.5}, {std::cos(0.5)}},
      {"Tan", {}, {0.5}, {std::tan(0.5)}},
      {"Asin", {}, {0.5, 2}, {std::asin(0.5), nan}},
      {"Acos", {}, {0.5, 2}, {std::acos(0.5), nan}},
      {"Atan", {}, {0.5, inf}, {std::atan(0.5), 1.57079633}},
      {"Sinh", {}, {0.5}, {std::sinh(0.5)}},
      {"Cosh", {}, {0.5}, {std::cosh(0.5)}},
      {"Tanh", {}, {0.5, inf, -inf}, {std::tanh(0.5), 1, -1}},
      {"Asinh", {}, {0.5}, {std::asinh(0.5)}},
      {"Acosh", {}, {1.5, 0.5}, {std::acosh(1.5), nan}},
      {"Atanh", {}, {0.5, 1, 2}, {std::atanh(0.5), inf, nan}},
      {"Erf", {}, {0.5, inf, -inf}, {std::erf(0.5), 1, -1}},
      {"Relu", {}, {-1, 0, 2, nan, inf}, {0, 0, 2, nan, inf}},
      {"LeakyRelu", {}, {-1, 2}, {-0.01, 2}},
      {"LeakyRelu", {{"alpha", 0.5f}}, {-1, 2, nan}, {-0.5, 2, nan}},
      {"Elu", {{"alpha", 2.0f}}, {-1, 2}, {2 * std::expm1(-1), 2}},
      {"Selu", {}, {-1, 2}, {1.05070102 * 1.67326319 * std::expm1(-1), 2.10140204}},
      {"Celu", {{"alpha", 2.0f}}, {-1, 2}, {2 * std::expm1(-0.5), 2}},
      {"Sigmoid", {}, {0, 2, -200, 200, nan}, {0.5, sigmoid(2), 0, 1, nan}},
      {"HardSigmoid", {}, {-3, 0, 1, 3}, {0, 0.5, 0.7, 1}},
      {"HardSwish", {}, {-4, -1, 1, 4}, {0, -1.0 / 3, 2.0 / 3, 4}},
      {"Swish", {}, {-1, 2}, {-sigmoid(-1), 2 * sigmoid(2)}},
      {"Swish", {{"alpha", 2.0f}}, {-1, 2}, {-sigmoid(-2), 2 * sigmoid(4)}},
      {"Softplus", {}, {0, 100, -100, nan}, {std::log(2.0), 100, 0, nan}},
      {"Softsign", {}, {-1, 3}, {-0.5, 0.75}},
      {"Mish", {}, {1}, {std::tanh(std::log1p(std::exp(1.0)))}},
      {"Gelu", {}, {-1, 0, 2}, {-0.15865525, 0, 1.95449974}},
      {"Gelu", {{"approximate", std::string("tanh")}}, {-1, 0, 2}, {-0.15880801, 0, 1.95459769}},
      {"ThresholdedRelu", {}, {0.5, 1, 1.5}, {0, 0, 1.5}},
      {"Shrink", {{"bias", 0.5f}, {"lambd", 1.5f}}, {-2, -1, 0, 2}, {-1.5, 0, 0, 1.5}},
      {"Identity", {}, {1, nan}, {1, nan}},
      {"Sum", {}, {1, 2}, {1, 2}},
      {"Dropout", {}, {1, 2}, {1, 2}},
  };
  for (const RealCase& c : cases) {
    for (DType t : {DType::kF32, DType::kF64})
      expect_tensor(run(c.op, {tensor(t, c.in)}, c.attributes), tensor(t, c.want), 2e-6, c.op);
    expect_tensor(run(c.op, {tensor(DType::kF16, c.in)}, c.attributes), tensor(DType::kF16, c.want), 2e-3,
                  c.op);
    expect_tensor(run(c.op, {tensor(DType::kBF16, c.in)}, c.attributes), tensor(DType::kBF16, c.want), 2e-2,
                  c.op);
  }
}

TEST(Elementwise, BinaryValues) {
  const double inf = INFINITY, nan = NAN;
  struct Case {
    const char* op;
    Attrs attributes;
    std::vector<double> a, b, want;
  };
  const Case cases[] = {
      {"Add", {}, {1, inf, inf}, {2, 1, -inf}, {3, inf, nan}},
      {"Sub", {}, {1, inf}, {2, inf}, {-1, nan}},
      {"Mul", {}, {3, 0}, {-2, inf}, {-6, nan}},
      {"Div", {}, {3, 1, 0}, {-2, 0, 0}, {-1.5, inf, nan}},
      {"Mod", {{"fmod", int64_t{1}}}, {5.5, -5.5, 5.5, 1}, {2, 2, -2, inf}, {1.5, -1.5, 1.5, 1}},
      {"Mod", {}, {5.5, -5.5, 5.5, 1, -1, 3}, {2, 2, -2, inf, inf, 0}, {1.5, 0.5, -0.5, 1, inf, nan}},
      {"Pow", {}, {2, -8, 0, 4}, {10, 3, 0, 0.5}, {1024, -512, 1, 2}},
      {"Max", {}, {1, nan, 3}, {2, 0, nan}, {2, nan, nan}},
      {"Min", {}, {1, nan, 3}, {2, 0, nan}, {1, nan, nan}},
      {"Mean", {}, {1, 2}, {2, 5}, {1.5, 3.5}},
      {"Sum", {}, {1, 2}, {2, 5}, {3, 7}},
      {"PRelu", {}, {-2, 3}, {0.5, 0.25}, {-1, 3}},
      {"SwiGLU", {}, {2, -1}, {3, 4}, {6 * sigmoid(2), -4 * sigmoid(-1)}},
  };
  for (const Case& c : cases)
    for (DType t : {DType::kF32, DType::kF64})
      expect_tensor(run(c.op, {tensor(t, c.a), tensor(t, c.b)}, c.attributes), tensor(t, c.want), 2e-6, c.op);
  EXPECT_TRUE(std::signbit(run("Mod", {floats({4}), floats({-2})}).real(0)));
  EXPECT_FALSE(std::signbit(run("Mod", {floats({-4}), floats({2})}).real(0)));
}

TEST(Elementwise, IntegersOfEveryWidthWrap) {
  const DType all[] = {DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                       DType::kU8, DType::kU16, DType::kU32, DType::kU64};
  for (DType t : all) {
    const std::string name(name_of(t));
    const auto two = [&](const char* op, int64_t a, int64_t b, const Attrs& attributes = {}) {
      Tensor x(t, {1}), y(t, {1});
      x.set_integer(0, a);
      y.set_integer(0, b);
      const Tensor r = run(op, {x, y}, attributes);
      EXPECT_EQ(r.dtype(), t) << op;
      return r.integer(0);
    };
    const auto as_t = [&](int64_t v) {  // v as this type holds it
      Tensor x(t, {1});
      x.set_integer(0, v);
      return x.integer(0);
    };
    const int64_t bits = static_cast<int64_t>(size_of(t)) * 8;
    const int64_t top = is_signed(t) ? (int64_t{1} << (bits - 2)) - 1 + (int64_t{1} << (bits - 2)) : -1;
    EXPECT_EQ(two("Add", top, 1), is_signed(t) ? -top - 1 : 0) << name;
    EXPECT_EQ(two("Mul", 7, 9), 63) << name;
    EXPECT_EQ(two("Sub", 3, 5), as_t(-2)) << name;
    EXPECT_EQ(two("Div", 100, 7), 14) << name;
    EXPECT_EQ(two("Div", 100, 0), 0) << name;
    EXPECT_EQ(two("Mod", 100, 7), 2) << name;
    EXPECT_EQ(two("Mod", 100, 0), 0) << name;
    EXPECT_EQ(two("Max", 3, 100), 100) << name;
    EXPECT_EQ(two("Min", 3, 100), 3) << name;
    EXPECT_EQ(two("BitwiseAnd", 12, 10), 8) << name;
    EXPECT_EQ(two("BitwiseOr", 12, 10), 14) << name;
    EXPECT_EQ(two("BitwiseXor", 12, 10), 6) << name;
    EXPECT_EQ(two("BitShift", 5, 2, {{"direction", std::string("LEFT")}}), 20) << name;
    EXPECT_EQ(two("BitShift", 20, 2, {{"direction", std::string("RIGHT")}}), 5) << name;
    EXPECT_EQ(two("BitShift", 20, bits, {{"direction", std::string("RIGHT")}}), 0) << name;
    EXPECT_EQ(two("BitShift", 20, bits, {{"direction", std::string("LEFT")}}), 0) << name;
    if (!is_signed(t)) continue;
    const int64_t least = -top - 1;
    EXPECT_EQ(two("Div", -7, 2), -3) << name;
    EXPECT_EQ(two("Div", least, -1), least) << name;
    EXPECT_EQ(two("Mod", -7, 3), 2) << name;
    EXPECT_EQ(two("Mod", 7, -3), -2) << name;
    EXPECT_EQ(two("Mod", -7, 3, {{"fmod", int64_t{1}}}), -1) << name;
    EXPECT_EQ(two("Mod", least, -1), 0) << name;
    EXPECT_EQ(two("BitShift", -20, bits, {{"direction", std::string("RIGHT")}}), -1) << name;
    EXPECT_EQ(two("BitShift", -20, -1, {{"direction", std::string("RIGHT")}}), -1) << name;
    EXPECT_EQ(two("BitShift", 20, -1, {{"direction", std::string("LEFT")}}), 0) << name;
    Tensor x(t, {1});
    x.set_integer(0, least);
    EXPECT_EQ(run("Abs", {x}).integer(0), least) << name;
    EXPECT_EQ(run("Neg", {x}).integer(0), least) << name;
    EXPECT_EQ(run("BitwiseNot", {x}).integer(0), top) << name;
    EXPECT_EQ(run("Relu", {x}).integer(0), 0) << name;
    EXPECT_EQ(run("Sign", {x}).integer(0), -1) << name;
  }
  Tensor big(DType::kU64, {2}), small(DType::kU64, {2});
  big.as<uint64_t>()[0] = big.as<uint64_t>()[1] = UINT64_MAX;
  small.as<uint64_t>()[0] = 10, small.as<uint64_t>()[1] = UINT64_MAX;
  EXPECT_EQ(static_cast<uint64_t>(run("Div", {big, small}).integer(0)), UINT64_MAX / 10);
  EXPECT_EQ(run("Greater", {big, small}).integers(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(static_cast<uint64_t>(run("Max", {small, big}).integer(0)), UINT64_MAX);
}

TEST(Elementwise, PowerOfMixedTypes) {
  expect_tensor(run("Pow", {floats({2, -1}), ints({3, (1 << 24) + 1})}), floats({8, -1}));
  expect_tensor(run("Pow", {tensor(DType::kI32, {2, 9}), floats({0.5, 0.5})}), tensor(DType::kI32, {1, 3}));
  expect_tensor(run("Pow", {tensor(DType::kI32, {3, -1}), ints({20, (1ll << 40) + 1})}),
                tensor(DType::kI32, {-808182895, -1}));
  expect_tensor(run("Pow", {ints({2, 1, -1, 0}), tensor(DType::kI8, {-1, -5, -3, 0})}), ints({0, 1, -1, 1}));
  expect_tensor(run("Pow", {tensor(DType::kF16, {-1}), ints({2049})}), tensor(DType::kF16, {-1}));
  expect_tensor(run("Pow", {ints({3}), tensor(DType::kU64, {4})}), ints({81}));
}

TEST(Elementwise, LogicAndComparison) {
  const Tensor t = tensor(DType::kBool, {0, 0, 1, 1}), u = tensor(DType::kBool, {0, 1, 0, 1});
  const auto bools = [](std::vector<double> v) { return tensor(DType::kBool, v); };
  expect_tensor(run("And", {t, u}), bools({0, 0, 0, 1}));
  expect_tensor(run("Or", {t, u}), bools({0, 1, 1, 1}));
  expect_tensor(run("Xor", {t, u}), bools({0, 1, 1, 0}));
  expect_tensor(run("Equal", {t, u}), bools({1, 0, 0, 1}));
  expect_tensor(run("Not", {u}), bools({1, 0, 1, 0}));
  const Tensor a = floats({1, 2, NAN}), b = floats({2, 2, NAN});
  expect_tensor(run("Equal", {a, b}), bools({0, 1, 0}));
  expect_tensor(run("Less", {a, b}), bools({1, 0, 0}));
  expect_tensor(run("LessOrEqual", {a, b}), bools({1, 1, 0}));
  expect_tensor(run("Greater", {a, b}), bools({0, 0, 0}));
  expect_tensor(run("GreaterOrEqual", {a, b}), bools({0, 1, 0}));
  const Tensor odd = floats({1, INFINITY, -INFINITY, NAN});
  expect_tensor(run("IsNaN", {odd}), bools({0, 0, 0, 1}));
  expect_tensor(run("IsInf", {odd}), bools({0, 1, 1, 0}));
  expect_tensor(run("IsInf", {odd}, {{"detect_negative", int64_t{0}}}), bools({0, 1, 0, 0}));
  expect_tensor(run("IsInf", {odd}, {{"detect_positive", int64_t{0}}}), bools({0, 0, 1, 0}));
  expect_tensor(run("IsInf", {odd}, {{"detect_positive", int64_t{0}}, {"detect_negative", int64_t{0}}}),
                bools({0, 0, 0, 0}));
  expect_tensor(run("Where", {bools({1, 0}), ints({1, 2}), ints({3, 4})}), ints({1, 4}));
  expect_tensor(run("Where", {bools({1}), floats({1}, {1, 1}), floats({3, 4}, {2, 1})}),
                floats({1, 1}, {2, 1}));
}

TEST(Elementwise, Broadcasts) {
  // Longer than one block of the evaluator, against plain index arithmetic.
  const std::vector<int64_t> shapes[][3] = {
      {{2, 3, 700}, {700}, {2, 3, 700}},
      {{2, 3, 700}, {3, 1}, {2, 3, 700}},
      {{4, 1, 5}, {3, 1}, {4, 3, 5}},
      {{}, {2, 2}, {2, 2}},
      {{1, 1}, {1}, {1, 1}},
      {{0, 3}, {1, 3}, {0, 3}},
      {{2, 1, 2, 1, 300}, {3, 1, 2, 1}, {2, 3, 2, 2, 300}},
      {{5, 1}, {1, 1200}, {5, 1200}},
  };
  for (const auto& [a, b, want] : shapes) {
    Tensor x(DType::kF32, a), y(DType::kI64, b);
    for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(i % 97);
    for (int64_t i = 0; i < y.size(); ++i) y.as<int64_t>()[i] = 100 * (i % 31);
    Tensor yf = y.converted(DType::kF32);
    const Tensor r = run("Add", {x, yf});
    ASSERT_EQ(r.shape(), want);
    const auto at = [&](const Tensor& t, int64_t i) {
      const std::vector<int64_t> strides = row_major_strides(t.shape()), outer = row_major_strides(want);
      int64_t k = 0;
      for (size_t d = 0; d < strides.size(); ++d) {
        const size_t o = d + want.size() - strides.size();
        if (t.shape()[d] != 1) k += i / outer[o] % want[o] * strides[d];
      }
      return t.real(k);
    };
    for (int64_t i = 0; i < r.size(); ++i) ASSERT_EQ(r.real(i), at(x, i) + at(yf, i)) << i;
  }
}

TEST(Elementwise, Clip) {
  expect_tensor(run("Clip", {floats({-2, 0, 5, NAN}), floats({-1}, {}), floats({2}, {})}),
                floats({-1, 0, 2, NAN}));
  expect_tensor(run("Clip", {floats({-2, 5}), floats({-1}, {})}), floats({-1, 5}));
  expect_tensor(run("Clip", {floats({-2, 5}), Tensor(), floats({2}, {})}), floats({-2, 2}));
  expect_tensor(run("Clip", {floats({-2, 5})}), floats({-2, 5}));
  expect_tensor(run("Clip", {floats({-2, 5}), floats({3}, {}), floats({1}, {})}), floats({1, 1}));
  expect_tensor(run("Clip", {tensor(DType::kU8, {1, 200}), tensor(DType::kU8, {5}, {})}),
                tensor(DType::kU8, {5, 200}));
  EXPECT_NE(refusal("Clip", {floats({1, 2}), floats({1, 2})}), "");
  EXPECT_NE(refusal("Clip", {floats({1, 2}), ints({1}, {})}), "");
}

TEST(Elementwise, Casts) {
  const auto to = [](DType t) { return Attrs{{"to", int64_t{onnx_of(t)}}}; };
  const Tensor f = floats({-1.9, 300, NAN, INFINITY, -INFINITY, 0.4});
  expect_tensor(run("Cast", {f}, to(DType::kI8)), tensor(DType::kI8, {-1, 127, 0, 127, -128, 0}));
  expect_tensor(run("Cast", {f}, to(DType::kU8)), tensor(DType::kU8, {0, 255, 0, 255, 0, 0}));
  expect_tensor(run("Cast", {f}, to(DType::kBool)), tensor(DType::kBool, {1, 1, 1, 1, 1, 1}));
  expect_tensor(run("Cast", {floats({0, -0.0})}, to(DType::kBool)), tensor(DType::kBool, {0, 0}));
  expect_tensor(run("Cast", {ints({200, -1, 256})}, to(DType::kI8)), tensor(DType::kI8, {-56, -1, 0}));
  expect_tensor(run("Cast", {ints({-1})}, to(DType::kF16)), tensor(DType::kF16, {-1}));
  expect_tensor(run("Cast", {tensor(DType::kBool, {0, 1})}, to(DType::kF32)), floats({0, 1}));
  expect_tensor(run("Cast", {f}, to(DType::kF32)), f);
  expect_tensor(run("Cast", {tensor(DType::kI4, {-8, 7})}, to(DType::kI32)), tensor(DType::kI32, {-8, 7}));
  EXPECT_NE(refusal("Cast", {f}, to(DType::kString)), "");
  EXPECT_NE(refusal("Cast", {f}, {{"to", int64_t{99}}}), "");
  expect_tensor(run("CastLike", {f, ints({1, 2, 3}, {3, 1})}), ints({-1, 300, 0, 9.3e18, -9.3e18, 0}));
  expect_tensor(run("BitCast", {floats({1, -2})}, to(DType::kU32)),
                tensor(DType::kU32, {0x3f800000, 0xc0000000}));
  EXPECT_NE(refusal("BitCast", {floats({1})}, to(DType::kI64)), "");
}

TEST(Elementwise, ShrinkOfIntegersComparesAsReals) {
  const Attrs a = {{"bias", 1.5f}, {"lambd", 1.5f}};
  expect_tensor(run("Shrink", {ints({-3, -1, 1, 2, 5})}, a), ints({-1, 0, 0, 0, 3}));
  expect_tensor(run("Shrink", {tensor(DType::kU8, {1, 2, 5})}, a), tensor(DType::kU8, {0, 0, 3}));
}

TEST(Elementwise, DropoutGivesAMaskAndRefusesTraining) {
  const auto r = run_all("Dropout", {floats({1, 2})}, {}, 2);
  expect_tensor(r[0], floats({1, 2}));
  expect_tensor(r[1], tensor(DType::kBool, {1, 1}));
  const Tensor on = tensor(DType::kBool, {1}, {});
  EXPECT_NE(refusal("Dropout", {floats({1, 2}), floats({0.5}, {}), on}), "");
  expect_tensor(run("Dropout", {floats({1, 2}), floats({0}, {}), on}), floats({1, 2}));
}

TEST(Elementwise, Refusals) {
  EXPECT_EQ(refusal("Add", {floats({1}), ints({1})}), "\"node\" (Add): inputs of types float32 and int64");
  EXPECT_EQ(refusal("Add", {tensor(DType::kBool, {1}), tensor(DType::kBool, {1})}),
            "\"node\" (Add): not defined for bool");
  EXPECT_NE(refusal("Add", {floats({1, 2}), floats({1, 2, 3})}), "");
  EXPECT_NE(refusal("Sum", {floats({1, 2}), Tensor(), floats({1})}), "");
  EXPECT_NE(refusal("Sqrt", {ints({1})}), "");
  EXPECT_NE(refusal("Neg", {tensor(DType::kU8, {1})}), "");
  EXPECT_NE(refusal("Relu", {tensor(DType::kI4, {1})}), "");
  EXPECT_NE(refusal("Not", {ints({1})}), "");
  EXPECT_NE(refusal("And", {ints({1}), ints({1})}), "");
  EXPECT_NE(refusal("Gelu", {floats({1})}, {{"approximate", std::string("exact")}}), "");
  EXPECT_NE(refusal("Mod", {ints({1}), ints({1})}, {{"fmod", int64_t{2}}}), "");
  EXPECT_NE(refusal("BitShift", {ints({1}), ints({1})}), "");
  EXPECT_NE(refusal("Celu", {floats({1})}, {{"alpha", 0.0f}}), "");
  EXPECT_NE(refusal("PRelu", {floats({1}), floats({1, 2})}), "");
  EXPECT_NE(refusal("PRelu", {floats({1}), floats({1}, {1, 1})}), "");
  EXPECT_NE(refusal("SwiGLU", {floats({1, 2}), floats({1})}), "");
  EXPECT_NE(refusal("Where", {ints({1}), ints({1}), ints({1})}), "");
  EXPECT_NE(refusal("Pow", {tensor(DType::kU8, {1}), ints({1})}), "");
  EXPECT_NE(refusal("Cast", {floats({1})},
                    {{"to", int64_t{onnx_of(DType::kF8E8M0)}}, {"round_mode", std::string("nearest")}}),
            "");
}

TEST(Elementwise, InfersSymbolicShapes) {
  Symbols symbols;
  const Dim n(symbols.fresh("N", {1, 8}, "test"));
  const auto f = [](Shape s) { return TensorType{DType::kF32, std::move(s)}; };
  EXPECT_EQ(inferred("Relu", {f({n, 3})}), "float32[N,3]");
  EXPECT_EQ(inferred("Add", {f({n, 3}), f({3})}), "float32[N,3]");
  EXPECT_EQ(inferred("Equal", {f({n, 3}), f({1, 1, 1})}), "bool[1,N,3]");
  EXPECT_EQ(inferred("Clip", {f({n, 3}), f({})}), "float32[N,3]");
  EXPECT_EQ(inferred("PRelu", {f({n, 3, 4}), f({3, 1})}), "float32[N,3,4]");
  EXPECT_EQ(inferred("CastLike", {f({n}), {DType::kI8, {5, 5}}}), "int8[N]");
  EXPECT_EQ(inferred("Cast", {f({n})}, {{"to", int64_t{7}}}), "int64[N]");
}

}  // namespace
}  // namespace sinter
