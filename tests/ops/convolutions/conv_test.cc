// Conv and ConvTranspose against their definitions, tap by tap.
#include "ops/one_node.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

using Ints = std::vector<int64_t>;

struct Case {
  const char* what;
  Ints x, w;  // shapes
  int64_t group = 1;
  Ints strides = {}, dilations = {}, pads = {};
  const char* auto_pad = "NOTSET";
  Ints output_padding = {}, output_shape = {};
  DType dtype = DType::kF32;
  bool bias = true;
};

Attributes attributes_of(const Case& c) {
  Attributes a;
  a.set("group", c.group);
  if (!c.strides.empty()) a.set("strides", c.strides);
  if (!c.dilations.empty()) a.set("dilations", c.dilations);
  if (!c.pads.empty()) a.set("pads", c.pads);
  a.set("auto_pad", std::string(c.auto_pad));
  if (!c.output_padding.empty()) a.set("output_padding", c.output_padding);
  if (!c.output_shape.empty()) a.set("output_shape", c.output_shape);
  return a;
}

// The multi-index of a flat one.
Ints unflatten(int64_t flat, const Ints& shape) {
  Ints at(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) at[i] = flat % shape[i];
  return at;
}
int64_t flatten(const Ints& at, const Ints& shape) {
  int64_t flat = 0;
  for (size_t i = 0; i < at.size(); ++i) flat = flat * shape[i] + at[i];
  return flat;
}

// Every pair (small-grid position, tap) that meets at a large-grid position, for Conv (small = y) and
// ConvTranspose (small = x).
Tensor reference(const Case& c, bool transposed, const Tensor& x, const Tensor& w, const Tensor& b,
                 const Ints& y_shape, const Ints& begin) {
  Tensor y(c.dtype, y_shape);
  std::vector<double> sum(static_cast<size_t>(y.size()));
  const size_t n = x.shape().size() - 2;
  const Ints strides = c.strides.empty() ? Ints(n, 1) : c.strides;
  const Ints dilations = c.dilations.empty() ? Ints(n, 1) : c.dilations;
  const Tensor& small = transposed ? x : y;
  const Tensor& large = transposed ? y : x;
  const int64_t out_channels = y_shape[1], per_group_out = out_channels / c.group;
  const int64_t per_group_in = x.dim(1) / c.group;
  for (int64_t s = 0; s < small.size(); ++s) {
    const Ints at = unflatten(s, small.shape());
    for (int64_t f = 0; f < w.size(); ++f) {
      const Ints tap = unflatten(f, w.shape());
      // w is [M, C/g, k] or [C, M/g, k].
      const int64_t g = at[1] / (transposed ? per_group_in : per_group_out);
      if (tap[0] != at[1]) continue;
      Ints other = at;
      other[1] = g * (transposed ? per_group_out : per_group_in) + tap[1];
      bool inside = true;
      for (size_t i = 0; i < n; ++i) {
        other[i + 2] = at[i + 2] * strides[i] + tap[i + 2] * dilations[i] - begin[i];
        inside = inside && other[i + 2] >= 0 && other[i + 2] < large.shape()[i + 2];
      }
      if (!inside) continue;
      const int64_t l = flatten(other, large.shape());
      sum[static_cast<size_t>(transposed ? l : s)] += x.real(transposed ? s : l) * w.real(f);
    }
  }
  for (int64_t i = 0; i < y.size(); ++i)
    y.set_real(i, sum[static_cast<size_t>(i)] + (b ? b.real(unflatten(i, y_shape)[1]) : 0));
  return y;
}

void check(const Case& c, bool transposed, const Ints& y_shape, const Ints& begin) {
  SCOPED_TRACE(c.what);
  std::mt19937 random(7);
  const char* op = transposed ? "ConvTranspose" : "Conv";
  const Tensor x = random_tensor(c.dtype, c.x, random), w = random_tensor(c.dtype, c.w, random);
  const Tensor b =
      c.bias ? random_tensor(c.dtype, {transposed ? c.w[1] * c.group : c.w[0]}, random) : Tensor();
  Attributes a = attributes_of(c);
  const Tensor y = run_node(op, {x, w, b}, a)[0];
  ASSERT_EQ(y.shape(), y_shape);
  const double tolerance = c.dtype == DType::kF64 ? 1e-12 : c.dtype == DType::kF32 ? 1e-5 : 0.02;
  expect_near(y, reference(c, transposed, x, w, b, y_shape, begin), tolerance);
  a.set("channels_last", int64_t{1});
  expect_near(run_node(op, {to_channels_last(x), w, b}, a)[0], to_channels_last(y), 1e-6);
  // The same with every spatial extent unknown: evaluated at the actual extents, inference must agree.
  a.set("channels_last", int64_t{0});
  OneNode symbolic(op, {type_of(x), type_of(w), b ? type_of(b) : TensorType{}}, a);
  Shape& s = symbolic.graph.inputs[0]->type.shape;
  for (size_t i = 0; i < s.size(); ++i)
    if (i != 1) s[i] = Dim(symbolic.graph.symbols->fresh("D" + std::to_string(i), {1, 512}, "test"));
  const TensorType t = symbolic.inferred();
  auto value = [&](const Symbol& v) { return c.x[static_cast<size_t>(v.name[1] - '0')]; };
  for (size_t i = 0; i < y_shape.size(); ++i) {
    EXPECT_EQ(t.shape[i].evaluate(value), y_shape[i]) << t.shape[i].text();
    EXPECT_LE(t.shape[i].lo(), y_shape[i]);
    EXPECT_GE(t.shape[i].hi(), y_shape[i]);
  }
  for (const Check& k : symbolic.graph.checks) EXPECT_EQ(k.a.evaluate(value), k.b.evaluate(value)) << k.why;
  const Window window = window_of(*symbolic.node);
  for (size_t i = 0; i < begin.size(); ++i) EXPECT_EQ(window.pads_begin[i].evaluate(value), begin[i]);
}

TEST(Conv, MatchesItsDefinition) {
  check({"1-D", {2, 3, 9}, {4, 3, 3}}, false, {2, 4, 7}, {0});
  check({"1-D strided, dilated", {1, 2, 17}, {3, 2, 3}, 1, {2}, {3}, {2, 1}}, false, {1, 3, 7}, {2});
  check({"2-D 1x1", {2, 5, 4, 3}, {6, 5, 1, 1}}, false, {2, 6, 4, 3}, {0, 0});
  check({"2-D 1x1 strided", {1, 5, 5, 4}, {6, 5, 1, 1}, 1, {2, 3}}, false, {1, 6, 3, 2}, {0, 0});
  check({"2-D padded", {2, 3, 6, 7}, {4, 3, 3, 3}, 1, {}, {}, {1, 1, 1, 1}}, false, {2, 4, 6, 7}, {1, 1});
  check({"2-D lopsided pads", {1, 3, 6, 7}, {4, 3, 3, 2}, 1, {2, 1}, {}, {0, 1, 2, 3}}, false, {1, 4, 3, 10},
        {0, 1});
  check({"groups", {2, 6, 5, 5}, {4, 3, 3, 3}, 2, {1, 1}, {}, {1, 1, 1, 1}}, false, {2, 4, 5, 5}, {1, 1});
  check({"depthwise", {2, 4, 6, 6}, {4, 1, 3, 3}, 4, {2, 2}, {}, {1, 1, 1, 1}}, false, {2, 4, 3, 3}, {1, 1});
  check({"depthwise, multiplier 2", {1, 3, 6, 6}, {6, 1, 3, 3}, 3, {1, 1}, {2, 2}}, false, {1, 6, 2, 2},
        {0, 0});
  check({"3-D", {1, 2, 4, 5, 6}, {3, 2, 2, 3, 3}, 1, {1, 2, 1}, {1, 1, 2}, {1, 0, 1, 0, 1, 2}}, false,
        {1, 3, 4, 2, 5}, {1, 0, 1});
  check({"SAME_UPPER", {1, 2, 6, 7}, {3, 2, 3, 4}, 1, {2, 3}, {}, {}, "SAME_UPPER"}, false, {1, 3, 3, 3},
        {0, 1});
  check({"SAME_LOWER", {1, 2, 6, 7}, {3, 2, 3, 4}, 1, {2, 3}, {}, {}, "SAME_LOWER"}, false, {1, 3, 3, 3},
        {1, 2});
  check({"SAME_UPPER dilated", {1, 2, 7, 7}, {3, 2, 3, 2}, 1, {1, 2}, {2, 3}, {}, "SAME_UPPER"}, false,
        {1, 3, 7, 4}, {2, 1});
  check({"SAME, stride beyond the kernel", {1, 2, 8, 9}, {3, 2, 1, 2}, 1, {3, 4}, {}, {}, "SAME_UPPER"},
        false, {1, 3, 3, 3}, {0, 0});
  check({"VALID", {1, 2, 6, 7}, {3, 2, 3, 4}, 1, {2, 1}, {}, {}, "VALID"}, false, {1, 3, 2, 4}, {0, 0});
  check({"pads wider than the kernel", {1, 1, 2, 2}, {1, 1, 2, 2}, 1, {}, {}, {3, 3, 3, 3}}, false,
        {1, 1, 7, 7}, {3, 3});
  check({"float64", {1, 3, 5, 5}, {2, 3, 3, 3}, 1, {}, {}, {}, "NOTSET", {}, {}, DType::kF64}, false,
        {1, 2, 3, 3}, {0, 0});
  check({"float16", {1, 3, 5, 5}, {2, 3, 3, 3}, 1, {}, {}, {}, "NOTSET", {}, {}, DType::kF16}, false,
        {1, 2, 3, 3}, {0, 0});
  check({"bfloat16, no bias", {1, 3, 5}, {2, 3, 3}, 1, {}, {}, {}, "NOTSET", {}, {}, DType::kBF16, false},
        false, {1, 2, 3}, {0});
}

TEST(Conv, CutsBigColumnMatricesIntoBlocks) {
  check({"300 rows", {1, 16, 300, 40}, {1, 16, 5, 5}, 1, {}, {}, {2, 2, 2, 2}}, false, {1, 1, 300, 40},
        {2, 2});
}

TEST(ConvTranspose, MatchesItsDefinition) {
  check({"1-D", {2, 3, 4}, {3, 2, 3}}, true, {2, 2, 6}, {0});
  check({"2-D strided", {1, 3, 3, 4}, {3, 2, 3, 2}, 1, {2, 3}}, true, {1, 2, 7, 11}, {0, 0});
  check(
      {"pads and output_padding", {1, 3, 3, 3}, {3, 2, 3, 3}, 1, {2, 2}, {}, {1, 1, 1, 1}, "NOTSET", {1, 1}},
      true, {1, 2, 6, 6}, {1, 1});
  check({"groups, dilated", {2, 4, 3, 3}, {4, 2, 2, 2}, 2, {2, 1}, {2, 3}, {0, 1, 1, 0}}, true, {2, 4, 6, 5},
        {0, 1});
  check({"3-D", {1, 2, 2, 3, 3}, {2, 3, 2, 2, 3}, 1, {2, 1, 2}}, true, {1, 3, 4, 4, 7}, {0, 0, 0});
  check({"SAME_UPPER", {1, 1, 3, 3}, {1, 2, 3, 4}, 1, {2, 2}, {}, {}, "SAME_UPPER"}, true, {1, 2, 6, 6},
        {0, 1});
  check({"SAME_LOWER", {1, 1, 3, 3}, {1, 2, 3, 4}, 1, {2, 2}, {}, {}, "SAME_LOWER"}, true, {1, 2, 6, 6},
        {1, 1});
  check({"output_shape", {1, 1, 3, 3}, {1, 2, 3, 3}, 1, {3, 2}, {}, {}, "NOTSET", {}, {10, 8}}, true,
        {1, 2, 10, 8}, {0, 0});
  check({"output_shape cuts", {1, 1, 3, 3}, {1, 2, 3, 3}, 1, {3, 2}, {}, {}, "NOTSET", {}, {8, 4}}, true,
        {1, 2, 8, 4}, {1, 2});
  check({"output_shape SAME_UPPER", {1, 1, 3, 3}, {1, 2, 3, 3}, 1, {3, 2}, {}, {}, "SAME_UPPER", {}, {8, 4}},
        true, {1, 2, 8, 4}, {0, 1});
  check({"float16", {1, 3, 3, 3}, {3, 2, 3, 3}, 1, {2, 2}, {}, {}, "NOTSET", {}, {}, DType::kF16}, true,
        {1, 2, 7, 7}, {0, 0});
}

TEST(Conv, SamePadsOfUnknownExtentsAreBounded) {
  OneNode n("Conv", {{DType::kF32, {1, 3, 8, 8}}, {DType::kF32, {4, 3, 3, 3}}},
            attributes_of({"", {}, {}, 1, {2, 2}, {}, {}, "SAME_UPPER"}));
  n.graph.inputs[0]->type.shape[3] = Dim(n.graph.symbols->fresh("W", {1, 1000}, "test"));
  n.inferred();
  const Window w = window_of(*n.node);
  EXPECT_FALSE(w.has_static_pads());
  EXPECT_TRUE(w.pads_begin[0].is(0));
  EXPECT_TRUE(w.pads_end[0].is(1));
  EXPECT_EQ(w.pads_end[1].lo(), 0);
  EXPECT_LE(w.pads_end[1].hi(), 2);
  EXPECT_EQ(w.out[1].bounds(), (Interval{1, 500}));
}

TEST(Conv, Refuses) {
  struct Bad {
    Ints x, w;
    Attributes a;
    const char* why;
  };
  auto with = [](const char* name, Attribute v) {
    Attributes a;
    a.set(name, std::move(v));
    return a;
  };
  const Bad table[] = {
      {{1, 3, 5}, {2, 3, 3, 3}, {}, "same spatial axes"},
      {{1, 3}, {2, 3}, {}, "same spatial axes"},
      {{1, 3, 5, 5}, {2, 4, 3, 3}, {}, "channels of the input"},
      {{1, 4, 5, 5}, {3, 2, 3, 3}, with("group", int64_t{2}), "do not divide into 2 groups"},
      {{1, 4, 5, 5}, {3, 2, 3, 3}, with("group", int64_t{0}), "group is 0"},
      {{1, 4, 5, 5}, {3, 4, 0, 3}, {}, "kernel_shape holds 0"},
      {{1, 4, 5, 5}, {3, 4, 3, 3}, with("kernel_shape", Ints{2, 3}), "kernel_shape is the weights' extents"},
      {{1, 4, 5, 5}, {3, 4, 3, 3}, with("kernel_shape", Ints{3}), "kernel_shape has 1 entries"},
      {{1, 4, 5, 5}, {3, 4, 3, 3}, with("strides", Ints{1, 0}), "strides holds 0"},
      {{1, 4, 5, 5}, {3, 4, 3, 3}, with("dilations", Ints{1, -1}), "dilations holds -1"},
      {{1, 4, 5, 5}, {3, 4, 3, 3}, with("dilations", Ints{1, int64_t{1} << 40}), "dilations holds"},
      {{1, 4, 5, 5}, {3, 4, 3, 3}, with("pads", Ints{1, -1, 1, 1}), "pads holds -1"},
      {{1, 4, 5, 5}, {3, 4, 3, 3}, with("pads", Ints{1, 1}), "pads has 2 entries, 4"},
      {{1, 4, 5, 5}, {3, 4, 6, 3}, {}, "kernel's extent 6 exceeds the padded input 5"},
      {{1, 4, 5, 5}, {3, 4, 3, 3}, with("auto_pad", std::string("SOME")), "auto_pad is"},
      {{1, 4, 5, 5}, {3, 4, 3, 3}, with("strides", int64_t{1}), "strides"},
  };
  for (const Bad& bad : table) {
    OneNode n(
        "Conv",
        {{DType::kF32, Shape(bad.x.begin(), bad.x.end())}, {DType::kF32, Shape(bad.w.begin(), bad.w.end())}},
        bad.a);
    EXPECT_NE(n.refusal().find(bad.why), std::string::npos) << bad.why << " / " << n.refusal();
  }
  OneNode types("Conv", {{DType::kF32, {1, 1, 3}}, {DType::kF64, {1, 1, 3}}});
  EXPECT_NE(types.refusal().find("different types"), std::string::npos);
  OneNode integers("Conv", {{DType::kI32, {1, 1, 3}}, {DType::kI32, {1, 1, 3}}});
  EXPECT_NE(integers.refusal().find("only for floats"), std::string::npos);
  OneNode bias("Conv", {{DType::kF32, {1, 1, 3}}, {DType::kF32, {1, 1, 3}}, {DType::kF32, {2}}});
  EXPECT_NE(bias.refusal().find("length of the bias"), std::string::npos);
  OneNode cut("ConvTranspose", {{DType::kF32, {1, 1, 3}}, {DType::kF32, {1, 1, 3}}},
              with("pads", Ints{4, 4}));
  EXPECT_NE(cut.refusal().find("pads exceed the result"), std::string::npos);
}

}  // namespace
}  // namespace sinter
