// Pools against their definitions, and the corners of ceil_mode, count_include_pad and Indices.
#include <cmath>
#include <limits>

#include "ops/one_node.h"

namespace sinter {
namespace {

using Ints = std::vector<int64_t>;

struct Case {
  const char* what;
  Ints x = {}, kernel = {}, strides = {}, dilations = {}, pads = {}, out = {};  // out: spatial extents
  bool ceil = false;
  const char* auto_pad = "NOTSET";
  Ints begin = {};  // resolved pads, where auto_pad decides
};

const Case kCases[] = {
    {"2x2/2", {2, 3, 6, 6}, {2, 2}, {2, 2}, {}, {}, {3, 3}},
    {"3x3/2 padded", {1, 2, 7, 8}, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}, {4, 4}},
    {"1-D dilated", {1, 2, 12}, {3}, {2}, {2}, {1, 2}, {6}},
    {"3-D", {1, 2, 4, 5, 6}, {2, 2, 3}, {1, 2, 2}, {}, {0, 0, 1, 1, 0, 1}, {4, 2, 3}},
    {"ceil adds a window", {1, 1, 5, 6}, {2, 3}, {2, 2}, {}, {}, {3, 3}, true},
    {"ceil drops a window in the padding", {1, 1, 2, 2}, {1, 2}, {2, 2}, {}, {0, 0, 0, 1}, {1, 1}, true},
    {"ceil, pads and dilation", {1, 1, 9, 9}, {3, 2}, {3, 4}, {2, 3}, {1, 1, 2, 0}, {4, 3}, true},
    {"ceil, less input than kernel", {1, 1, 3}, {4}, {2}, {}, {}, {1}, true},
    {"SAME_UPPER", {1, 2, 6, 7}, {3, 2}, {2, 3}, {}, {}, {3, 3}, false, "SAME_UPPER", {0, 0}},
    {"SAME_LOWER", {1, 2, 6, 7}, {3, 4}, {2, 3}, {}, {}, {3, 3}, false, "SAME_LOWER", {1, 2}},
    {"VALID", {1, 2, 6, 7}, {3, 2}, {2, 3}, {}, {}, {2, 2}, false, "VALID"},
};

Attributes attributes_of(const Case& c) {
  Attributes a;
  a.set("kernel_shape", c.kernel);
  if (!c.strides.empty()) a.set("strides", c.strides);
  if (!c.dilations.empty()) a.set("dilations", c.dilations);
  if (!c.pads.empty()) a.set("pads", c.pads);
  a.set("ceil_mode", static_cast<int64_t>(c.ceil));
  a.set("auto_pad", std::string(c.auto_pad));
  return a;
}

struct Taps {
  std::vector<double> inside;
  std::vector<int64_t> index;  // within the whole tensor
  int64_t in_pads = 0;         // taps in the given pads
};

// Visits every tap of every window by brute force.
std::vector<Taps> taps_of(const Case& c, const Tensor& x) {
  const size_t n = c.kernel.size();
  Ints begin = c.begin.empty() ? Ints(n, 0) : c.begin, end(n, 0);
  for (size_t i = 0; i < n && !c.pads.empty(); ++i) begin[i] = c.pads[i], end[i] = c.pads[i + n];
  int64_t outputs = 1, taps = 1, plane = 1;
  for (size_t i = 0; i < n; ++i) outputs *= c.out[i], taps *= c.kernel[i], plane *= c.x[i + 2];
  std::vector<Taps> all;
  for (int64_t p = 0; p < c.x[0] * c.x[1]; ++p)
    for (int64_t o = 0; o < outputs; ++o) {
      all.emplace_back();
      for (int64_t k = 0; k < taps; ++k) {
        int64_t at = 0, scale = 1, ro = o, rk = k;
        bool in_image = true, in_pads = true;
        for (size_t i = n; i-- > 0;) {
          const int64_t d = c.dilations.empty() ? 1 : c.dilations[i],
                        s = c.strides.empty() ? 1 : c.strides[i];
          const int64_t q = ro % c.out[i] * s + rk % c.kernel[i] * d - begin[i];
          ro /= c.out[i], rk /= c.kernel[i];
          in_image = in_image && q >= 0 && q < c.x[i + 2];
          in_pads = in_pads && q < c.x[i + 2] + end[i];
          at += q * scale, scale *= c.x[i + 2];
        }
        if (in_image) {
          all.back().inside.push_back(x.real(p * plane + at));
          all.back().index.push_back(p * plane + at);
        }
        all.back().in_pads += in_pads && !in_image;
      }
    }
  return all;
}

TEST(Pool, MatchesItsDefinition) {
  for (const Case& c : kCases)
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kU8}) {
      SCOPED_TRACE(c.what);
      std::mt19937 random(11);
      const Tensor x = random_tensor(dtype, c.x, random);
      const std::vector<Taps> taps = taps_of(c, x);
      Attributes a = attributes_of(c);
      const double tolerance = dtype == DType::kF16 ? 2e-3 : 1e-6;
      const std::vector<Tensor> max = run_node("MaxPool", {x}, a, 2);
      Ints shape{c.x[0], c.x[1]};
      shape.insert(shape.end(), c.out.begin(), c.out.end());
      ASSERT_EQ(max[0].shape(), shape);
      for (size_t i = 0; i < taps.size(); ++i) {
        const auto best = std::max_element(taps[i].inside.begin(), taps[i].inside.end());
        EXPECT_EQ(max[0].real(static_cast<int64_t>(i)), *best);
        EXPECT_EQ(max[1].integer(static_cast<int64_t>(i)),
                  taps[i].index[static_cast<size_t>(best - taps[i].inside.begin())]);
      }
      if (dtype == DType::kU8) continue;
      const Tensor average = run_node("AveragePool", {x}, a)[0];
      a.set("count_include_pad", int64_t{1});
      const Tensor padded = run_node("AveragePool", {x}, a)[0];
      a.set("p", int64_t{3});
      const Tensor lp = run_node("LpPool", {x}, a)[0];
      for (size_t i = 0; i < taps.size(); ++i) {
        double sum = 0, cubes = 0;
        for (double v : taps[i].inside) sum += v, cubes += std::abs(v * v * v);
        const double n = static_cast<double>(taps[i].inside.size());
        const int64_t at = static_cast<int64_t>(i);
        EXPECT_NEAR(average.real(at), sum / n, tolerance);
        if (c.begin.empty()) {
          EXPECT_NEAR(padded.real(at), sum / (n + static_cast<double>(taps[i].in_pads)), tolerance);
        }
        EXPECT_NEAR(lp.real(at), std::cbrt(cubes), 2 * tolerance);
      }
      a.set("channels_last", int64_t{1});
      for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
        Attributes first = a;
        first.erase("channels_last");
        expect_near(run_node(op, {to_channels_last(x)}, a)[0], to_channels_last(run_node(op, {x}, first)[0]),
                    0);
      }
    }
}

TEST(Pool, InfersUnknownExtents) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    OneNode n("MaxPool", {{DType::kF32, Shape(c.x.begin(), c.x.end())}}, attributes_of(c));
    Shape& s = n.graph.inputs[0]->type.shape;
    for (size_t i = 2; i < s.size(); ++i)
      s[i] = Dim(n.graph.symbols->fresh("D" + std::to_string(i), {1, 64}, "test"));
    const TensorType t = n.inferred();
    auto value = [&](const Symbol& v) { return c.x[static_cast<size_t>(v.name[1] - '0')]; };
    for (size_t i = 0; i < c.out.size(); ++i) EXPECT_EQ(t.shape[i + 2].evaluate(value), c.out[i]) << text(t);
    for (const Check& k : n.graph.checks) EXPECT_EQ(k.a.evaluate(value), k.b.evaluate(value)) << k.why;
  }
}

TEST(Pool, Global) {
  std::mt19937 random(3);
  const Tensor x = random_tensor(DType::kF32, {2, 3, 4, 5}, random);
  for (const char* op : {"GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"}) {
    const Tensor y = run_node(op, {x})[0];
    ASSERT_EQ(y.shape(), (Ints{2, 3, 1, 1}));
    for (int64_t p = 0; p < 6; ++p) {
      double top = -2, sum = 0, squares = 0;
      for (int64_t i = 0; i < 20; ++i) {
        const double v = x.real(p * 20 + i);
        top = std::max(top, v), sum += v, squares += v * v;
      }
      const double want = op[6] == 'M' ? top : op[6] == 'A' ? sum / 20 : std::sqrt(squares);
      EXPECT_NEAR(y.real(p), want, 1e-6) << op;
    }
    if (op[6] == 'L') continue;
    Attributes last;
    last.set("channels_last", int64_t{1});
    expect_near(run_node(op, {to_channels_last(x)}, last)[0], to_channels_last(y), 0);
  }
  OneNode symbolic("GlobalAveragePool", {{DType::kF32, {2, 3, 4, 5}}});
  symbolic.graph.inputs[0]->type.shape[3] = Dim(symbolic.graph.symbols->fresh("W", {1, 64}, "test"));
  EXPECT_EQ(text(symbolic.inferred()), "float32[2,3,1,1]");
}

TEST(Pool, Corners) {
  Attributes a = attributes_of({"", {}, {2, 2}, {}, {}, {}, {}});
  a.set("storage_order", int64_t{1});
  const Tensor x = Tensor::of({1, 2, 3, 4, 9, 6, 7, 8, 5}, {1, 1, 3, 3});
  EXPECT_EQ(run_node("MaxPool", {x}, a, 2)[1].integers(), (Ints{4, 4, 4, 4}));
  const Tensor y = Tensor::of({1, 2, 3, 4, 5, 6}, {1, 1, 2, 3});
  EXPECT_EQ(run_node("MaxPool", {y}, a, 2)[1].integers(), (Ints{3, 5}));
  const Tensor nan = Tensor::of({1, NAN, 3, -INFINITY}, {1, 1, 2, 2});
  EXPECT_TRUE(std::isnan(run_node("MaxPool", {nan}, a)[0].real(0)));
  // A window whose taps all miss the input, though its extent covers it.
  Attributes sparse = attributes_of({"", {}, {2}, {1}, {3}, {1, 1}, {}});
  const Tensor two = Tensor::of({1, 2}, {1, 1, 2});
  EXPECT_EQ(run_node("MaxPool", {two}, sparse)[0].reals(), (std::vector<double>{-INFINITY}));
  EXPECT_EQ(run_node("AveragePool", {two}, sparse)[0].reals(), (std::vector<double>{0}));
}

TEST(Pool, Refuses) {
  struct Bad {
    const char* op;
    DType dtype;
    Ints x;
    Case c;
    const char* why;
  };
  const Bad table[] = {
      {"MaxPool", DType::kF32, {1, 1, 4, 4}, {"", {}, {}, {}, {}, {}, {}}, "kernel_shape is missing"},
      {"MaxPool", DType::kF32, {1, 1, 4, 4}, {"", {}, {2}, {}, {}, {}, {}}, "kernel_shape has 1 entries"},
      {"MaxPool", DType::kF32, {1, 1, 4}, {"", {}, {5}, {}, {}, {}, {}}, "kernel's extent 5 exceeds"},
      {"MaxPool", DType::kF32, {1, 1, 4}, {"", {}, {2}, {}, {}, {2, 0}, {}}, "a pad of 2 is not smaller"},
      {"MaxPool", DType::kF32, {1, 1, 4}, {"", {}, {0}, {}, {}, {}, {}}, "kernel_shape holds 0"},
      {"MaxPool", DType::kI32, {1, 1, 4}, {"", {}, {2}, {}, {}, {}, {}}, "not for int32"},
      {"AveragePool", DType::kU8, {1, 1, 4}, {"", {}, {2}, {}, {}, {}, {}}, "not for uint8"},
      {"LpPool", DType::kF32, {1, 4}, {"", {}, {2}, {}, {}, {}, {}}, "spatial axis"},
  };
  for (const Bad& bad : table) {
    OneNode n(bad.op, {{bad.dtype, Shape(bad.x.begin(), bad.x.end())}}, attributes_of(bad.c));
    EXPECT_NE(n.refusal().find(bad.why), std::string::npos) << bad.why << " / " << n.refusal();
  }
}

TEST(MaxUnpool, UndoesMaxPool) {
  std::mt19937 random(5);
  const Tensor x = random_tensor(DType::kF32, {2, 3, 4, 6}, random);
  Attributes a = attributes_of({"", {}, {2, 2}, {2, 2}, {}, {}, {}});
  const std::vector<Tensor> pooled = run_node("MaxPool", {x}, a, 2);
  Attributes u;
  u.set("kernel_shape", Ints{2, 2});
  u.set("strides", Ints{2, 2});
  const Tensor y = run_node("MaxUnpool", pooled, u)[0];
  ASSERT_EQ(y.shape(), x.shape());
  Tensor want(DType::kF32, x.shape());
  for (int64_t i = 0; i < pooled[0].size(); ++i) want.set_real(pooled[1].integer(i), pooled[0].real(i));
  EXPECT_TRUE(y.same_bits(want));
  const Tensor larger = run_node("MaxUnpool", {pooled[0], pooled[1], Tensor::of(Ints{2, 3, 5, 7})}, u)[0];
  ASSERT_EQ(larger.shape(), (Ints{2, 3, 5, 7}));
  EXPECT_EQ(larger.real((0 * 5 + 1) * 7 + 2), y.real(1 * 6 + 2));
  EXPECT_EQ(larger.real(((5 * 5) + 3) * 7 + 5), y.real((5 * 4 + 3) * 6 + 5));
  std::vector<Tensor> bad = pooled;
  bad[1] = Tensor(DType::kI64, pooled[1].shape());
  bad[1].as<int64_t>()[0] = 144;
  EXPECT_THROW(run_node("MaxUnpool", bad, u), Refusal);
  EXPECT_THROW(run_node("MaxUnpool", {pooled[0], pooled[1], Tensor::of(Ints{2, 3, 3, 7})}, u), Refusal);
}

// Indices of a pooled tensor of odd extents count in that, the output_shape; so do any that lie in no window.
// Those of ONNX's example count in the tensor that the windows imply.
TEST(MaxUnpool, CountsInTheOutputShape) {
  std::mt19937 random(6);
  Attributes a = attributes_of({"", {}, {2, 2}, {2, 2}, {}, {}, {}}), u;
  u.set("kernel_shape", Ints{2, 2});
  u.set("strides", Ints{2, 2});
  const Tensor x = random_tensor(DType::kF32, {2, 3, 5, 7}, random);
  const std::vector<Tensor> pooled = run_node("MaxPool", {x}, a, 2);
  const Tensor y = run_node("MaxUnpool", {pooled[0], pooled[1], Tensor::of(Ints{2, 3, 5, 7})}, u)[0];
  Tensor want(DType::kF32, x.shape());
  for (int64_t i = 0; i < pooled[0].size(); ++i) want.set_real(pooled[1].integer(i), pooled[0].real(i));
  EXPECT_TRUE(y.same_bits(want));
  const Tensor four = Tensor::of(std::vector<float>{1, 2, 3, 4}, {1, 1, 2, 2});
  const auto places = [&](Ints indices) {
    const Tensor at = Tensor::of(indices).reshaped({1, 1, 2, 2});
    const Tensor out = run_node("MaxUnpool", {four, at, Tensor::of(Ints{1, 1, 5, 5})}, u)[0];
    Ints found;
    for (double v : {1, 2, 3, 4})
      for (int64_t i = 0; i < out.size(); ++i)
        if (out.real(i) == v) found.push_back(i);
    return found;
  };
  EXPECT_EQ(places({5, 7, 13, 24}), (Ints{5, 7, 13, 24}));
  EXPECT_EQ(places({6, 8, 16, 18}), (Ints{6, 8, 16, 18}));
  EXPECT_EQ(places({5, 7, 13, 15}), (Ints{6, 8, 16, 18}));  // 4 wide
  EXPECT_THROW(places({0, 1, 2, 25}), Refusal);
}

}  // namespace
}  // namespace sinter
