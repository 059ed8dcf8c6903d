// Resize: each mode against the standard's formulas in double, the ties of nearest modes, symbolic extents
// and refusals.
#include "ops/vision/resize.h"

#include <cmath>
#include <functional>

#include "ops/one_node.h"

namespace sinter {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

Tensor ramp(int64_t n) {
  Tensor t(DType::kF32, {n});
  for (int64_t i = 0; i < n; ++i) t.as<float>()[i] = static_cast<float>(i);
  return t;
}
Tensor floats(const Floats& v) { return Tensor::of(v, {static_cast<int64_t>(v.size())}); }

std::vector<double> resized(const Tensor& x, const Attributes& a, const Tensor& scales, const Tensor& sizes,
                            const Tensor& roi = {}) {
  return run_node("Resize", {x, roi, scales, sizes}, a)[0].reals();
}

// x_original of the standard, in double.
double source(const std::string& mode, double o, double in, double out, double scale, double start,
              double end) {
  if (mode == "half_pixel") return (o + 0.5) / scale - 0.5;
  if (mode == "asymmetric") return o / scale;
  if (mode == "pytorch_half_pixel") return out > 1 ? (o + 0.5) / scale - 0.5 : 0;
  if (mode == "align_corners") return out > 1 ? o * (in - 1) / (scale * in - 1) : 0;
  if (mode == "half_pixel_symmetric") return in / 2 * (1 - out / (scale * in)) + (o + 0.5) / scale - 0.5;
  return out > 1 ? start * (in - 1) + o * (end - start) * (in - 1) / (out - 1)
                 : 0.5 * (start + end) * (in - 1);
}
const char* const kTransforms[] = {"half_pixel",    "asymmetric",           "pytorch_half_pixel",
                                   "align_corners", "half_pixel_symmetric", "tf_crop_and_resize"};

double at(const Tensor& x, double i) {
  return x.real(static_cast<int64_t>(std::min(std::max(i, 0.0), static_cast<double>(x.size() - 1))));
}
double cubic_weight(double d, double a) {
  d = std::abs(d);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

TEST(Resize, InterpolatesAsTheStandardSays) {
  std::mt19937 random(31);
  for (const std::string transform : kTransforms)
    for (const char* mode : {"linear", "cubic"})
      for (const bool exclude : {false, true})
        for (const float scale : {0.4f, 0.7f, 1.5f, 2.3f}) {
          SCOPED_TRACE(transform + " " + mode + " " + std::to_string(scale));
          const int64_t n = 9, m = resized_extent(Dim(n), scale).value();
          const Tensor x = random_tensor(DType::kF32, {n}, random);
          const Attributes a = attributes_of({{"mode", std::string(mode)},
                                              {"coordinate_transformation_mode", transform},
                                              {"exclude_outside", static_cast<int64_t>(exclude)},
                                              {"cubic_coeff_a", -0.5f},
                                              {"extrapolation_value", 5.0f}});
          const auto y = resized(x, a, floats({scale}), {}, floats({-0.1f, 0.8f}));
          ASSERT_EQ(static_cast<int64_t>(y.size()), m);
          for (int64_t o = 0; o < m; ++o) {
            const double s =
                source(transform, static_cast<double>(o), n, static_cast<double>(m), scale, -0.1f, 0.8f);
            double want = 0, sum = 0;
            const double begin = std::floor(s);
            for (double i = begin - 1; i <= begin + 2; ++i) {
              const bool linear = mode[0] == 'l';
              if (exclude && !linear && (i < 0 || i >= n)) continue;
              const double w = linear ? std::max(0.0, 1 - std::abs(i - s)) : cubic_weight(i - s, -0.5);
              want += w * at(x, i), sum += w;
            }
            want /= sum;
            if (transform[0] == 't' && (s < 0 || s > n - 1)) want = 5;
            EXPECT_NEAR(y[static_cast<size_t>(o)], want, 2e-5) << o;
          }
        }
}

TEST(Resize, AntialiasStretchesTheKernel) {
  std::mt19937 random(37);
  const Tensor x = random_tensor(DType::kF32, {13}, random);
  for (const char* mode : {"linear", "cubic"})
    for (const bool exclude : {false, true})
      for (const int64_t m : {4, 5, 12, 20}) {
        const Attributes a = attributes_of({{"mode", std::string(mode)},
                                            {"antialias", int64_t{1}},
                                            {"exclude_outside", static_cast<int64_t>(exclude)}});
        const auto y = resized(x, a, {}, Tensor::of(Ints{m}));
        const double shrink = std::min(1.0, static_cast<double>(m) / 13);
        for (int64_t o = 0; o < m; ++o) {
          const double s = (static_cast<double>(o) + 0.5) * 13 / static_cast<double>(m) - 0.5;
          double want = 0, sum = 0;
          for (double i = -20; i < 40; ++i) {
            if (exclude && (i < 0 || i >= 13)) continue;
            const double d = (i - s) * shrink;
            const double w = mode[0] == 'l' ? std::max(0.0, 1 - std::abs(d)) : cubic_weight(d, -0.75);
            want += w * at(x, i), sum += w;
          }
          EXPECT_NEAR(y[static_cast<size_t>(o)], want / sum, 2e-5) << mode << " " << m << " " << o;
        }
      }
}

TEST(Resize, NearestDecidesTies) {
  struct Case {
    const char *transform, *nearest;
    int64_t in;
    float scale;  // 0: sizes
    int64_t out;
    std::vector<double> want;
  };
  const Case table[] = {
      {"asymmetric", "floor", 3, 2, 6, {0, 0, 1, 1, 2, 2}},
      {"half_pixel", "round_prefer_floor", 3, 2, 6, {0, 0, 1, 1, 2, 2}},
      {"half_pixel", "round_prefer_floor", 6, 0.5f, 3, {0, 2, 4}},
      {"half_pixel", "round_prefer_ceil", 6, 0.5f, 3, {1, 3, 5}},
      {"half_pixel", "floor", 5, 0.6f, 3, {0, 2, 3}},
      {"half_pixel", "ceil", 6, 0.5f, 3, {1, 3, 5}},
      {"align_corners", "round_prefer_ceil", 4, 0, 7, {0, 1, 1, 2, 2, 3, 3}},
      {"align_corners", "round_prefer_floor", 4, 0, 7, {0, 0, 1, 1, 2, 2, 3}},
      {"half_pixel", "round_prefer_ceil", 20, 0, 6, {1, 5, 8, 11, 15, 18}},  // 14.5 is 14.499999 in float
      {"asymmetric", "round_prefer_ceil", 7, 0, 2, {0, 4}},                  // 3.5 is 3.4999998
      {"pytorch_half_pixel", "round_prefer_floor", 5, 0, 1, {0}},
      {"half_pixel", "round_prefer_floor", 5, 0, 1, {2}},
      {"tf_half_pixel_for_nn", "floor", 4, 0, 2, {1, 3}},
  };
  for (const Case& c : table) {
    const Attributes a = attributes_of({{"coordinate_transformation_mode", std::string(c.transform)},
                                        {"nearest_mode", std::string(c.nearest)}});
    const Tensor scales = c.scale > 0 ? floats({c.scale}) : Tensor();
    const Tensor sizes = c.scale > 0 ? Tensor() : Tensor::of(Ints{c.out});
    EXPECT_EQ(resized(ramp(c.in), a, scales, sizes), c.want)
        << c.transform << " " << c.nearest << " " << c.in;
  }
}

TEST(Resize, AxesPoliciesTypes) {
  std::mt19937 random(41);
  Tensor x = random_tensor(DType::kI8, {2, 3, 4, 6}, random);
  auto shape = [&](const Attributes& a, const Tensor& sizes) {
    return run_node("Resize", {x, {}, {}, sizes}, a)[0].shape();
  };
  Attributes a = attributes_of({{"axes", Ints{-1, 2}}});
  EXPECT_EQ(shape(a, Tensor::of(Ints{12, 5})), (Ints{2, 3, 5, 12}));
  a.set("keep_aspect_ratio_policy", std::string("not_larger"));
  EXPECT_EQ(shape(a, Tensor::of(Ints{12, 5})), (Ints{2, 3, 5, 8}));  // 1.25: 7.5 rounds up
  a.set("keep_aspect_ratio_policy", std::string("not_smaller"));
  EXPECT_EQ(shape(a, Tensor::of(Ints{12, 5})), (Ints{2, 3, 8, 12}));
  // Integers round to nearest and saturate.
  Tensor u(DType::kU8, {2});
  u.as<uint8_t>()[1] = 255;
  const Attributes cubic = attributes_of({{"mode", std::string("cubic")}});
  const auto y = resized(u, cubic, floats({4}), {});
  EXPECT_EQ(y.front(), 0);
  EXPECT_EQ(y.back(), 255);
  const Attributes linear = attributes_of({{"mode", std::string("linear")}});
  EXPECT_EQ(resized(u, linear, floats({2}), {}), (std::vector<double>{0, 64, 191, 255}));
}

// What comes out of an unknown extent is what ONNX Runtime makes of each one up to the bound, also where no
// fraction says it.
TEST(Resize, ScalesUnknownExtents) {
  const float third = 1 / 3.0f;
  for (const int64_t most : {int64_t{64}, int64_t{4096}, (int64_t{1} << 22) + 3})
    for (const float scale : {2.0f, 0.5f, 1.5f, 0.7f, third, 2.2f, 0.04f, 3.0f, 1.3f, 0.1f, 2.5f, 17.0f,
                              300.0f, 0.703125f, 0.3330001f, 12345.67f}) {
      OneNode n("Resize", {{DType::kF32, {1, 1, 1, 1}}, {}, {DType::kF32, {4}}}, {}, 1,
                {Tensor(), Tensor(), floats({1, 1, scale, 1})});
      const SymbolPtr h = n.graph.symbols->fresh("H", {1, most}, "test");
      n.graph.inputs[0]->type.shape[2] = Dim(h);
      const Dim d = n.inferred().shape[2];
      if (scale == 2 && most < 1 << 20) {
        EXPECT_EQ(d, Dim(h) * 2);
      }
      if (scale == 0.5f && most < 1 << 20) {
        EXPECT_EQ(d, floordiv(Dim(h), 2));
      }
      for (int64_t v = 1; v <= most; v += v < 4096 ? 1 : 1001) {
        const int64_t want = static_cast<int64_t>(static_cast<float>(v) * scale);
        ASSERT_EQ(d.evaluate([&](const Symbol&) { return v; }), want) << scale << " " << v << " " << d.text();
        ASSERT_EQ(resized_extent(Dim(v), scale), Dim(want));
      }
    }
}

TEST(Resize, Refuses) {
  struct Bad {
    Attributes a;
    Tensor scales, sizes;
    DType dtype;
    const char* why;
  };
  const Bad table[] = {
      {{}, {}, {}, DType::kF32, "neither scales nor sizes"},
      {{}, floats({1, 2}), Tensor::of(Ints{4, 4}), DType::kF32, "both scales and sizes"},
      {{}, floats({1}), {}, DType::kF32, "scales are not 2 floats"},
      {{}, floats({1, 0}), {}, DType::kF32, "scale 1 is 0"},
      {{}, floats({1, NAN}), {}, DType::kF32, "scale 1 is nan"},
      {{}, floats({1, 1e30f}), {}, DType::kF32, "too large"},
      {{}, {}, Tensor::of(Ints{4, -1}), DType::kF32, "a size is -1"},
      {{}, {}, Tensor::of(Ints{4}), DType::kF32, "1 sizes for 2 axes"},
      {attributes_of({{"mode", std::string("lanczos")}}),
       floats({1, 2}),
       {},
       DType::kF32,
       "mode \"lanczos\""},
      {attributes_of({{"antialias", int64_t{1}}}),
       floats({1, 2}),
       {},
       DType::kF32,
       "antialias with mode nearest"},
      {attributes_of({{"mode", std::string("linear")}}), floats({1, 2}), {}, DType::kBool, "not for bool"},
      {attributes_of({{"axes", Ints{0, -2}}}), floats({1, 2}), {}, DType::kF32, "named twice"},
      {attributes_of({{"axes", Ints{2}}}), floats({1}), {}, DType::kF32, "axis 2 out of range"},
      {attributes_of({{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}}),
       floats({1, 2}),
       {},
       DType::kF32,
       "roi is missing"},
  };
  for (const Bad& bad : table) {
    OneNode n("Resize",
              {{bad.dtype, {3, 4}},
               {},
               bad.scales ? type_of(bad.scales) : TensorType{},
               bad.sizes ? type_of(bad.sizes) : TensorType{}},
              bad.a, 1, {Tensor(), Tensor(), bad.scales, bad.sizes});
    EXPECT_NE(n.refusal().find(bad.why), std::string::npos) << bad.why << " / " << n.refusal();
  }
  OneNode late("Resize", {{DType::kF32, {3, 4}}, {}, {DType::kF32, {2}}});
  EXPECT_EQ(late.refusal(), "");  // what the model declares of its output bounds it
  OneNode empty("Resize", {{DType::kF32, {0, 4}}, {}, {}, {DType::kI64, {2}}}, {}, 1,
                {Tensor(), Tensor(), Tensor(), Tensor::of(Ints{2, 4})});
  EXPECT_NE(empty.refusal().find("without elements"), std::string::npos);
}

TEST(Resize, HostileRegionsStayInside) {
  const Attributes a = attributes_of(
      {{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}, {"extrapolation_value", 9.0f}});
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const float edge : {NAN, INFINITY, -1e30f, 1e30f}) {
      Attributes b = a;
      b.set("mode", std::string(mode));
      for (const double v : resized(ramp(4), b, {}, Tensor::of(Ints{6}), floats({edge, edge})))
        EXPECT_EQ(v, 9) << mode << " " << edge;
    }
}

}  // namespace
}  // namespace sinter
