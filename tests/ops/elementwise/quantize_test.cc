// Quantised operators: QuantizeLinear and DequantizeLinear of every type and granularity, integer products
// against triple loops, the operators of com.microsoft against their formulas; casts to small types.
#include <cmath>

#include "ops/one_node.h"

namespace sinter {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

Tensor tensor(DType t, const Ints& shape, const std::vector<double>& v) {
  Tensor out(t, shape);
  for (size_t i = 0; i < v.size(); ++i) out.set_real(static_cast<int64_t>(i), v[i]);
  return out;
}
Tensor line(DType t, const std::vector<double>& v) { return tensor(t, {static_cast<int64_t>(v.size())}, v); }
Tensor one(DType t, double v) { return tensor(t, {}, {v}); }
int64_t number(DType t) { return onnx_of(t); }

TEST(QuantizeLinear, RoundsToEvenAndSaturates) {
  struct Case {
    DType to;
    double zero;
    std::vector<double> want;  // for x = -1000 -1.25 -0.75 -0.25 0 0.25 0.75 1.25 1000 by a scale of 0.5
  };
  const Case table[] = {
      {DType::kI8, 0, {-128, -2, -2, 0, 0, 0, 2, 2, 127}},
      {DType::kI8, 3, {-128, 1, 1, 3, 3, 3, 5, 5, 127}},
      {DType::kU8, 128, {0, 126, 126, 128, 128, 128, 130, 130, 255}},
      {DType::kI16, 0, {-2000, -2, -2, 0, 0, 0, 2, 2, 2000}},
      {DType::kU16, 1, {0, 0, 0, 1, 1, 1, 3, 3, 2001}},
      {DType::kI4, 1, {-8, -1, -1, 1, 1, 1, 3, 3, 7}},
      {DType::kU4, 8, {0, 6, 6, 8, 8, 8, 10, 10, 15}},
      {DType::kI2, 0, {-2, -2, -2, 0, 0, 0, 1, 1, 1}},
      {DType::kU2, 1, {0, 0, 0, 1, 1, 1, 3, 3, 3}},
      {DType::kF8E4M3FN, 0, {-448, -2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 448}},
      {DType::kF8E5M2, 0, {-2048, -2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 2048}},
      {DType::kF4E2M1, 0, {-6, -2, -1.5, -0.5, 0, 0.5, 1.5, 2, 6}},
  };
  for (const Case& c : table) {
    SCOPED_TRACE(name_of(c.to));
    const Tensor x = line(DType::kF32, {-1000, -1.25, -0.75, -0.25, 0, 0.25, 0.75, 1.25, 1000});
    const Tensor y = run_node("QuantizeLinear", {x, Tensor::scalar(0.5f), one(c.to, c.zero)})[0];
    EXPECT_EQ(y.dtype(), c.to);
    EXPECT_EQ(y.reals(), c.want);
    if (c.zero != 0) continue;
    const Tensor named = run_node("QuantizeLinear", {x, Tensor::scalar(0.5f)},
                                  attributes_of({{"output_dtype", number(c.to)}}))[0];
    EXPECT_EQ(named.reals(), c.want);
  }
}

TEST(QuantizeLinear, WithoutAZeroPointMakesUint8) {
  const Tensor y = run_node("QuantizeLinear", {line(DType::kF16, {-1, 1, 3}), one(DType::kF16, 2)})[0];
  EXPECT_EQ(y.dtype(), DType::kU8);
  EXPECT_EQ(y.reals(), (std::vector<double>{0, 0, 2}));
}

TEST(QuantizeLinear, ByAxisAndByBlock) {
  const Tensor x = tensor(DType::kF32, {2, 3}, {1, 2, 3, 10, 20, 30});
  const Tensor scale = Tensor::of(Floats{1, 10}, {2}), zero = line(DType::kI8, {1, -1});
  const Tensor rows = run_node("QuantizeLinear", {x, scale, zero}, attributes_of({{"axis", int64_t{0}}}))[0];
  EXPECT_EQ(rows.integers(), (Ints{2, 3, 4, 0, 1, 2}));
  const Tensor negative =
      run_node("QuantizeLinear", {x, scale, zero}, attributes_of({{"axis", int64_t{-2}}}))[0];
  EXPECT_EQ(negative.integers(), rows.integers());
  // Blocks of 2 along the last axis of 3: the second one is short.
  const Tensor blocks = Tensor::of(Floats{1, 2, 5, 10}, {2, 2});
  const Attributes by_two = attributes_of({{"axis", int64_t{1}}, {"block_size", int64_t{2}}});
  EXPECT_EQ(run_node("QuantizeLinear", {x, blocks}, by_two)[0].integers(), (Ints{1, 2, 2, 2, 4, 3}));
  const Tensor back =
      run_node("DequantizeLinear", {tensor(DType::kU8, {2, 3}, {1, 2, 2, 2, 4, 3}), blocks}, by_two)[0];
  EXPECT_EQ(back.reals(), (std::vector<double>{1, 2, 4, 10, 20, 30}));
}

TEST(DequantizeLinear, SubtractsAndScales) {
  for (const DType t :
       {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI4, DType::kU4, DType::kF8E4M3FN,
        DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ, DType::kI32}) {
    SCOPED_TRACE(name_of(t));
    const double zero = t == DType::kI32 ? 0 : 2;
    const Tensor y =
        run_node("DequantizeLinear", {line(t, {0, 1, 4, 6}), Tensor::scalar(0.25f), one(t, zero)})[0];
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.real(i), (line(t, {0, 1, 4, 6}).real(i) - zero) * 0.25);
    EXPECT_EQ(run_node("DequantizeLinear", {line(t, {4}), one(DType::kF16, 0.5)})[0].dtype(), DType::kF16);
  }
  const Tensor wide = run_node("DequantizeLinear", {line(DType::kI8, {4}), one(DType::kF16, 0.5)},
                               attributes_of({{"output_dtype", number(DType::kF32)}}))[0];
  EXPECT_EQ(wide.dtype(), DType::kF32);
}

TEST(QuantizeLinear, InfersSymbolicShapes) {
  OneNode n("QuantizeLinear", {{DType::kF32, {}}, {DType::kF32, {Dim(3)}}, {DType::kI8, {Dim(3)}}});
  const Dim batch(n.graph.symbols->fresh("N", {1, 8}, "test"));
  n.graph.inputs[0]->type.shape = {batch, Dim(3), Dim(5)};
  EXPECT_EQ(n.inferred(), (TensorType{DType::kI8, {batch, Dim(3), Dim(5)}}));
}

TEST(QuantizeLinear, Refuses) {
  const TensorType x{DType::kF32, {Dim(2), Dim(3)}}, scalar{DType::kF32, {}}, two{DType::kF32, {Dim(2)}};
  const auto with = [](const char* name, int64_t v) { return attributes_of({{name, v}}); };
  struct Case {
    const char* op;
    std::vector<TensorType> in;
    Attributes attributes;
    const char* why;
  };
  const Case table[] = {
      {"QuantizeLinear", {{DType::kI8, {}}, scalar}, {}, "not for int8"},
      {"QuantizeLinear", {x, {DType::kI8, {}}}, {}, "a scale of int8"},
      {"QuantizeLinear", {x, scalar, {DType::kI32, {}}}, {}, "to int32 is not supported"},
      {"QuantizeLinear", {x, scalar, {DType::kI8, {}}}, with("output_dtype", 2), "output_dtype is uint8"},
      {"QuantizeLinear", {x, scalar}, with("output_dtype", 99), "no element type"},
      {"QuantizeLinear", {x, two}, {}, "one scale for each index"},
      {"QuantizeLinear", {x, two}, with("axis", 2), "axis 2 out of range"},
      {"QuantizeLinear", {x, two}, with("axis", INT64_MIN), "out of range"},
      {"QuantizeLinear", {x, two}, with("block_size", -1), "block_size is -1"},
      {"QuantizeLinear", {x, x}, {}, "block_size 0"},
      {"QuantizeLinear", {x, {DType::kF32, {Dim(2), Dim(3)}}}, with("block_size", 2), "number of blocks"},
      {"DequantizeLinear", {x, scalar}, {}, "not for float32"},
      {"DequantizeLinear", {{DType::kI8, {Dim(2)}}, scalar, {DType::kU8, {}}}, {}, "another type"},
      {"MatMulInteger",
       {{DType::kI8, {Dim(2), Dim(3)}}, {DType::kI8, {Dim(2), Dim(3)}}},
       {},
       "inner extents"},
      {"MatMulInteger", {x, x}, {}, "only for int8 and uint8"},
      {"ConvInteger",
       {{DType::kI8, {Dim(1), Dim(3), Dim(4)}}, {DType::kI8, {Dim(2), Dim(2), Dim(2)}}},
       {},
       "channels"},
      {"ConvInteger", {{DType::kI8, {Dim(3)}}, {DType::kI8, {Dim(2)}}}, {}, "weights [2]"},
  };
  for (const Case& c : table) {
    OneNode n(c.op, c.in, c.attributes);
    EXPECT_NE(n.refusal().find(c.why), std::string::npos) << c.why << ": " << n.refusal();
  }
}

TEST(DynamicQuantizeLinear, FitsTheRange) {
  struct Case {
    std::vector<double> x;
    float scale;
    double zero;
  };
  for (const Case& c : {Case{{-1, 0, 1.55}, 2.55f / 255, 100}, Case{{1, 2, 5.1}, 5.1f / 255, 0},
                        Case{{-2.55, -1}, 2.55f / 255, 255}, Case{{0, 0}, 1, 0}}) {
    const auto y = run_node("DynamicQuantizeLinear", {line(DType::kF32, c.x)}, {}, 3);
    EXPECT_FLOAT_EQ(y[1].as<float>()[0], c.scale);
    EXPECT_EQ(y[2].real(0), c.zero);
    for (size_t i = 0; i < c.x.size(); ++i)
      EXPECT_NEAR(y[0].real(static_cast<int64_t>(i)), c.x[i] / static_cast<double>(c.scale) + c.zero, 0.51);
  }
}

// Every code of a small float to float and back; halfway values go to the even code.
TEST(Cast, SmallFloats) {
  for (const DType t : {DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ,
                        DType::kF8E8M0, DType::kF4E2M1}) {
    SCOPED_TRACE(name_of(t));
    const int64_t codes = t == DType::kF4E2M1 ? 16 : 256;
    Tensor all(t, {codes});
    for (int64_t i = 0; i < codes; ++i) all.as<uint8_t>()[i] = static_cast<uint8_t>(i);
    const Attributes back = attributes_of({{"to", number(t)}, {"saturate", int64_t{t == DType::kF8E8M0}}});
    const Tensor wide = run_node("Cast", {all}, attributes_of({{"to", number(DType::kF32)}}))[0];
    const Tensor again = run_node("Cast", {wide}, back)[0];
    double largest = 0;
    for (int64_t i = 0; i < codes; ++i) {
      const double v = wide.real(i);
      if (std::isnan(v))
        EXPECT_TRUE(std::isnan(again.real(i)));
      else
        EXPECT_EQ(again.as<uint8_t>()[i], i) << v;
      if (std::isfinite(v)) largest = std::max(largest, v);
    }
    const double want[] = {448, 240, 57344, 57344, std::ldexp(1, 127), 6};
    EXPECT_EQ(largest, want[t == DType::kF8E4M3FN     ? 0
                            : t == DType::kF8E4M3FNUZ ? 1
                            : t == DType::kF8E5M2     ? 2
                            : t == DType::kF8E5M2FNUZ ? 3
                            : t == DType::kF8E8M0     ? 4
                                                      : 5]);
    if (t == DType::kF8E8M0) continue;
    for (int64_t i = 1; i + 1 < codes / 2; ++i) {
      const double a = wide.real(i), b = wide.real(i + 1);
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      const Tensor middle = run_node("Cast", {one(DType::kF32, (a + b) / 2)}, back)[0];
      EXPECT_EQ(middle.as<uint8_t>()[0], i % 2 == 0 ? i : i + 1);
    }
  }
}

TEST(Cast, SmallFloatsBeyondTheirRange) {
  struct Case {
    DType to;
    double saturated, not_saturated;  // of 1e6; NaN for NaN
  };
  for (const Case& c : {Case{DType::kF8E4M3FN, 448, NAN}, Case{DType::kF8E4M3FNUZ, 240, NAN},
                        Case{DType::kF8E5M2, 57344, INFINITY}, Case{DType::kF8E5M2FNUZ, 57344, NAN},
                        Case{DType::kF4E2M1, 6, 6}})
    for (const DType from : {DType::kF32, DType::kF64, DType::kI32})
      for (const int64_t saturate : {1, 0}) {
        const Tensor y = run_node("Cast", {line(from, {1e6, -1e6})},
                                  attributes_of({{"to", number(c.to)}, {"saturate", saturate}}))[0];
        const double want = saturate ? c.saturated : c.not_saturated;
        EXPECT_TRUE(std::isnan(want) ? std::isnan(y.real(0)) : y.real(0) == want)
            << name_of(c.to) << y.real(0);
        EXPECT_TRUE(std::isnan(want) ? std::isnan(y.real(1)) : y.real(1) == -want)
            << name_of(c.to) << y.real(1);
      }
}

TEST(Cast, PackedIntegersKeepTheLowBits) {
  const std::vector<double> x{-9, -8, -1, 0, 3, 7, 8, 15};
  const auto cast = [&](DType from, DType to) {
    return run_node("Cast", {line(from, x)}, attributes_of({{"to", number(to)}}))[0].integers();
  };
  for (const DType from : {DType::kF32, DType::kF16, DType::kI8, DType::kI64}) {
    EXPECT_EQ(cast(from, DType::kI4), (Ints{7, -8, -1, 0, 3, 7, -8, -1}));
    EXPECT_EQ(cast(from, DType::kU4), (Ints{7, 8, 15, 0, 3, 7, 8, 15}));
    EXPECT_EQ(cast(from, DType::kI2), (Ints{-1, 0, -1, 0, -1, -1, 0, -1}));
    EXPECT_EQ(cast(from, DType::kU2), (Ints{3, 0, 3, 0, 3, 3, 0, 3}));
  }
}

Tensor bytes(DType t, Ints shape, std::mt19937& random) {
  Tensor out(t, std::move(shape));
  for (int64_t i = 0; i < out.size(); ++i)
    out.set_integer(i, static_cast<int64_t>(random() % 256) - (is_signed(t) ? 128 : 0));
  return out;
}

TEST(MatMulInteger, SumsWhatIsLeftOfItsZeroPoints) {
  std::mt19937 random(3);
  for (const DType ta : {DType::kI8, DType::kU8})
    for (const DType tb : {DType::kI8, DType::kU8})
      for (const bool each : {false, true}) {
        const Tensor a = bytes(ta, {3, 7}, random), b = bytes(tb, {7, 2}, random);
        const Tensor za = bytes(ta, each ? Ints{3} : Ints{}, random),
                     zb = bytes(tb, each ? Ints{2} : Ints{1}, random);
        const Tensor y = run_node("MatMulInteger", {a, b, za, zb})[0];
        ASSERT_EQ(y.dtype(), DType::kI32);
        for (int64_t i = 0; i < 3; ++i)
          for (int64_t j = 0; j < 2; ++j) {
            int64_t want = 0;
            for (int64_t k = 0; k < 7; ++k)
              want += (a.integer(i * 7 + k) - za.integer(each ? i : 0)) *
                      (b.integer(k * 2 + j) - zb.integer(each ? j : 0));
            EXPECT_EQ(y.integer(i * 2 + j), want);
          }
      }
}

// x [1,2,5], w [3,2,2], padding 1: in zero points, so that it adds nothing.
TEST(ConvInteger, PadsWithTheZeroPoint) {
  std::mt19937 random(4);
  const Tensor x = bytes(DType::kU8, {1, 2, 5}, random), w = bytes(DType::kI8, {3, 2, 2}, random);
  const Tensor zx = one(DType::kU8, 130), zw = line(DType::kI8, {1, -2, 3});
  const Attributes pads = attributes_of({{"pads", Ints{1, 1}}});
  const Tensor sums = run_node("ConvInteger", {x, w, zx, zw}, pads)[0];
  ASSERT_EQ(sums.shape(), (Ints{1, 3, 6}));
  const Tensor bias = tensor(DType::kI32, {3}, {100, -5000, 7});
  const Tensor w_scale = Tensor::of(Floats{0.5f, 0.25f, 1}, {3});
  const Tensor y = run_node(
      "QLinearConv",
      {x, Tensor::scalar(0.5f), zx, w, w_scale, zw, Tensor::scalar(64.0f), one(DType::kU8, 90), bias},
      pads)[0];
  for (int64_t m = 0; m < 3; ++m)
    for (int64_t o = 0; o < 6; ++o) {
      int64_t want = 0;
      for (int64_t c = 0; c < 2; ++c)
        for (int64_t k = 0; k < 2; ++k) {
          const int64_t i = o + k - 1;
          if (i >= 0 && i < 5)
            want += (x.integer(c * 5 + i) - 130) * (w.integer((m * 2 + c) * 2 + k) - zw.integer(m));
        }
      EXPECT_EQ(sums.integer(m * 6 + o), want);
      const double real = static_cast<double>(want + bias.integer(m)) * 0.5 * w_scale.real(m) / 64;
      EXPECT_EQ(y.real(m * 6 + o), std::clamp(std::nearbyint(real) + 90, 0.0, 255.0));
    }
}

TEST(QLinearMatMul, ScalesRoundsAndSaturates) {
  const Tensor a = tensor(DType::kI8, {2, 2}, {10, -4, 100, 100}),
               b = tensor(DType::kU8, {2, 2}, {1, 2, 3, 200});
  const Tensor y =
      run_node("QLinearMatMul", {a, Tensor::scalar(0.5f), one(DType::kI8, 0), b, Tensor::scalar(0.25f),
                                 one(DType::kU8, 1), Tensor::scalar(0.5f), one(DType::kI8, -1)})[0];
  // sums: 0*10 - 4*2 = -8, 10 - 4*199 = -786, 200, 20000; times 0.25
  EXPECT_EQ(y.integers(), (Ints{-3, -128, 49, 127}));
}

TEST(Microsoft, ElementwiseBetweenScales) {
  const Tensor a = line(DType::kU8, {0, 100, 128, 200, 255}), b = line(DType::kU8, {10, 20, 128, 3, 255});
  const Tensor sa = Tensor::scalar(0.5f), sb = Tensor::scalar(0.25f), sy = Tensor::scalar(1.5f);
  const Tensor za = one(DType::kU8, 128), zb = one(DType::kU8, 7), zy = one(DType::kU8, 100);
  const auto want = [&](auto f) {
    std::vector<double> out;
    for (int64_t i = 0; i < 5; ++i) {
      const double v = f((a.real(i) - 128) * 0.5, (b.real(i) - 7) * 0.25) / 1.5;
      out.push_back(std::clamp(std::nearbyint(v) + 100, 0.0, 255.0));
    }
    return out;
  };
  EXPECT_EQ(run_node("QLinearAdd", {a, sa, za, b, sb, zb, sy, zy})[0].reals(),
            want([](double x, double y) { return x + y; }));
  EXPECT_EQ(run_node("QLinearMul", {a, sa, za, b, sb, zb, sy, zy})[0].reals(),
            want([](double x, double y) { return x * y; }));
  EXPECT_EQ(run_node("QLinearLeakyRelu", {a, sa, za, sy, zy}, attributes_of({{"alpha", 0.5f}}))[0].reals(),
            want([](double x, double) { return x < 0 ? x / 2 : x; }));
  EXPECT_EQ(
      run_node("QLinearSigmoid", {a, sa, za, Tensor::scalar(1.0f / 256), one(DType::kU8, 0)})[0].reals(),
      (std::vector<double>{0, 0, 128, 255, 255}));
  const Tensor joined =
      run_node("QLinearConcat", {sy, zy, a, sa, za, b, sb, zb}, attributes_of({{"axis", int64_t{0}}}))[0];
  EXPECT_EQ(joined.shape(), (Ints{10}));
  EXPECT_EQ(joined.real(9), std::nearbyint(248 * 0.25 / 1.5) + 100);
}

TEST(Microsoft, PoolsAndSoftmax) {
  const Tensor x = tensor(DType::kI8, {1, 2, 2, 2}, {0, 4, 8, 12, -4, -4, -8, 0});
  const Tensor s = Tensor::scalar(0.5f), zero = one(DType::kI8, 0);
  EXPECT_EQ(run_node("QLinearGlobalAveragePool", {x, s, zero, s, zero})[0].integers(), (Ints{6, -4}));
  EXPECT_EQ(
      run_node("QLinearAveragePool", {x, s, zero, s, zero}, attributes_of({{"kernel_shape", Ints{1, 2}}}))[0]
          .integers(),
      (Ints{2, 10, -4, -4}));
  const Tensor last = to_channels_last(x);
  EXPECT_EQ(run_node("QLinearGlobalAveragePool", {last, s, zero, s, zero},
                     attributes_of({{"channels_last", int64_t{1}}}))[0]
                .shape(),
            (Ints{1, 1, 1, 2}));
  const Tensor p = run_node("QLinearSoftmax",
                            {tensor(DType::kU8, {1, 2, 2}, {0, 0, 0, 255}), s, one(DType::kU8, 0),
                             Tensor::scalar(1.0f / 256), one(DType::kU8, 0)},
                            attributes_of({{"axis", int64_t{1}}, {"opset", int64_t{12}}}))[0];
  EXPECT_EQ(p.integers(), (Ints{0, 0, 0, 255}));
}

TEST(Microsoft, Products) {
  std::mt19937 random(6);
  const Tensor a = bytes(DType::kU8, {2, 3}, random), b = bytes(DType::kI8, {3, 4}, random);
  const Tensor za = one(DType::kU8, 120), zb = line(DType::kI8, {1, 2, 3, 4}),
               bias = Tensor::of(Floats{1, 2, 3, 4}, {4});
  const Tensor sums = run_node("MatMulInteger", {a, b, za, zb})[0];
  const Tensor y =
      run_node("MatMulIntegerToFloat", {a, b, Tensor::scalar(0.5f), Tensor::scalar(0.25f), za, zb, bias})[0];
  const Tensor c = line(DType::kI32, {5, 6, 7, 8});
  const Tensor q = run_node("QGemm", {a, Tensor::scalar(0.5f), za, b, Tensor::scalar(0.25f), zb, c},
                            attributes_of({{"alpha", 2.0f}}))[0];
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(y.real(i), sums.real(i) * 0.125 + bias.real(i % 4));
    EXPECT_EQ(q.real(i), (sums.real(i) + c.real(i % 4)) * 0.25);
  }
  const Tensor x = tensor(DType::kF32, {1, 2}, {-1, 1.55}), w = tensor(DType::kI8, {2, 1}, {10, -20});
  const Tensor d = run_node("DynamicQuantizeMatMul", {x, w, Tensor::scalar(0.5f)})[0];
  EXPECT_NEAR(d.real(0), (-1 * 10 - 1.55 * 20) * 0.5, 0.1);
}

// B [2 columns, 2 blocks of 16, 4 bits]: K is 20, the second block is short.
TEST(Microsoft, MatMulNBits) {
  std::mt19937 random(8);
  const Tensor x = random_tensor(DType::kF32, {3, 20}, random),
               scales = Tensor::of(Floats{1, 0.5f, 2, 0.25f}, {4});
  for (const int64_t bits : {2, 4, 8}) {
    const Tensor b = bytes(DType::kU8, {2, 2, 16 * bits / 8}, random);
    const Attributes a =
        attributes_of({{"K", int64_t{20}}, {"N", int64_t{2}}, {"bits", bits}, {"block_size", int64_t{16}}});
    const Tensor y = run_node("MatMulNBits", {x, b, scales}, a)[0];
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t n = 0; n < 2; ++n) {
        double want = 0;
        for (int64_t k = 0; k < 20; ++k) {
          const int64_t at = (n * 32 + k) * bits, byte = b.integer(at / 8);
          const int64_t q = (byte >> (at % 8)) & ((1 << bits) - 1);
          want +=
              x.real(i * 20 + k) * static_cast<double>(q - (1 << (bits - 1))) * scales.real(n * 2 + k / 16);
        }
        EXPECT_NEAR(y.real(i * 2 + n), want, 1e-4 * (1 + std::fabs(want)));
      }
  }
}

// Rows of 32 numbers in two blocks. What is expected follows onnxruntime's definition: codes of uint8 data
// have their zero point in the middle where none are given, those of uint4 and int4 at 0.
TEST(Microsoft, GatherBlockQuantized) {
  const auto counted = [](DType t, std::vector<int64_t> shape, int64_t first, int64_t end) {
    Tensor d(t, std::move(shape));
    for (int64_t i = 0; i < d.size(); ++i) d.set_integer(i, first + i % end);
    return d;
  };
  const auto zeros = [](DType t, std::vector<int64_t> shape, std::vector<int64_t> v) {
    Tensor z(t, std::move(shape));
    for (size_t i = 0; i < v.size(); ++i) z.set_integer(static_cast<int64_t>(i), v[i]);
    return z;
  };
  const Tensor scales = Tensor::of(Floats{1, 2, 0.5f, 4}, {2, 2}),
               at = Tensor::of(std::vector<int64_t>{1, -2});
  struct Case {
    Tensor data, zero;
    int64_t bits;
    double first, last;  // of row 1, with its scales
  };
  const Case cases[] = {
      {counted(DType::kU8, {2, 16}, 0, 256), {}, 4, (0 - 8) * 0.5, (1 - 8) * 4},
      {counted(DType::kU8, {2, 16}, 0, 256), zeros(DType::kU8, {2, 1}, {0x31, 0x52}), 4, (0 - 2) * 0.5,
       (1 - 5) * 4},
      {counted(DType::kU8, {2, 32}, 0, 256), {}, 8, (32 - 128) * 0.5, (63 - 128) * 4},
      {counted(DType::kU8, {2, 32}, 0, 256), zeros(DType::kU8, {2, 2}, {0, 0, 3, 60}), 8, 29 * 0.5, 3 * 4},
      {counted(DType::kU4, {2, 32}, 0, 16), {}, 4, 0, 15 * 4},
      {counted(DType::kI4, {2, 32}, -8, 16), zeros(DType::kI4, {2, 2}, {1, 2, 3, -4}), 4, -11 * 0.5, 11 * 4},
  };
  for (const Case& c : cases) {
    std::vector<Tensor> in{c.data, at, scales};
    if (c.zero) in.push_back(c.zero);
    const Tensor y = run_node("GatherBlockQuantized", in,
                              attributes_of({{"bits", c.bits}, {"block_size", int64_t{16}}}))[0];
    ASSERT_EQ(y.shape(), (std::vector<int64_t>{2, 32}));
    EXPECT_EQ(y.real(0), c.first);
    EXPECT_EQ(y.real(31), c.last);
  }
}

}  // namespace
}  // namespace sinter
