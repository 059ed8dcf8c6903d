// Old opsets: each row is a node in an old form and a graph in today's form that must give the same values.
#include <gtest/gtest.h>

#include <random>

#include "model_text.h"
#include "onnx_suite.h"

namespace sinter {
namespace {

struct Case {
  const char* name;
  int old_opset;
  const char* signature;  // inputs => outputs
  const char* old_nodes;
  const char* new_nodes;  // opset 17, or `new_opset`
  int new_opset = 17;
};

std::string model(int opset, const std::string& signature, const std::string& nodes) {
  return "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + "]> g " + signature + " { " +
         nodes + " }";
}

// Values in [-3, 3], the same for the same seed; integers in [0, 3].
Tensor seeded(const TensorType& type, unsigned seed) {
  std::mt19937 random(seed);
  Tensor t(type.dtype, static_dims(type.shape));
  for (int64_t i = 0; i < t.size(); ++i) {
    const double unit = static_cast<double>(random() % 6001) / 6000.0;
    if (is_float(type.dtype))
      t.set_real(i, unit * 6 - 3);
    else
      t.set_integer(i, static_cast<int64_t>(unit * 3.99) % (type.dtype == DType::kBool ? 2 : 4));
  }
  return t;
}

std::vector<Tensor> values(const Model& m) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < m.graph->inputs.size(); ++i)
    inputs.push_back(seeded(m.graph->inputs[i]->type, static_cast<unsigned>(i) + 1));
  return evaluate(*m.graph, inputs);
}

const Case kCases[] = {
    {"AddAxis", 6, "(float[2,3,4,5] a, float[3,4] b) => (float[2,3,4,5] y)",
     "y = Add<broadcast = 1, axis = 1>(a, b)",
     "s = Constant<value_ints = [3, 4, 1]>() c = Reshape(b, s) y = Add(a, c)"},
    {"MulSuffix", 6, "(float[2,3,4] a, float[3,4] b) => (float[2,3,4] y)", "y = Mul<broadcast = 1>(a, b)",
     "y = Mul(a, b)"},
    {"SubNegativeAxis", 6, "(float[2,3,4] a, float[3] b) => (float[2,3,4] y)",
     "y = Sub<broadcast = 1, axis = -2>(a, b)",
     "s = Constant<value_ints = [3, 1]>() c = Reshape(b, s) y = Sub(a, c)"},
    {"AddScalar", 6, "(float[2,3] a, float[1] b) => (float[2,3] y)", "y = Add<broadcast = 1>(a, b)",
     "y = Add(a, b)"},
    {"GreaterAxis", 6, "(float[2,3,4] a, float[2] b) => (bool[2,3,4] y)",
     "y = Greater<broadcast = 1, axis = 0>(a, b)",
     "s = Constant<value_ints = [2, 1, 1]>() c = Reshape(b, s) y = Greater(a, c)"},
    {"ConsumedInputs", 1, "(float[2,3] a, float[2,3] b) => (float[2,3] y)",
     "y = Add<consumed_inputs = [0, 0]>(a, b)", "y = Add(a, b)"},
    {"BatchNormalizationIsTest", 6,
     "(float[2,3,4] x, float[3] s, float[3] b, float[3] m) => (float[2,3,4] y)",
     "v = Abs(m) y = BatchNormalization<is_test = 1, epsilon = 0.1>(x, s, b, m, v)",
     "v = Abs(m) y = BatchNormalization<epsilon = 0.1>(x, s, b, m, v)"},
    {"BatchNormalizationNotSpatial", 8, "(float[2,3,4] x, float[3,4] s, float[3,4] b) => (float[2,3,4] y)",
     "v = Abs(s) y = BatchNormalization<spatial = 0, epsilon = 0.5>(x, s, b, b, v)",
     "v = Abs(s) h = Constant<value_float = 0.5>() w = Add(v, h) d = Sqrt(w) e = Sub(x, b) f = Div(e, d) "
     "g = Mul(f, s) y = Add(g, b)"},
    {"CastByName", 5, "(float[4] x) => (int32[4] y)", "y = Cast<to = \"INT32\">(x)", "y = Cast<to = 6>(x)"},
    {"ClipAttributes", 6, "(float[20] x) => (float[20] y)", "y = Clip<min = -1.0, max = 1.5>(x)",
     "a = Constant<value_float = -1.0>() b = Constant<value_float = 1.5>() y = Clip(x, a, b)"},
    {"ClipOnlyMax", 10, "(float[20] x) => (float[20] y)", "y = Clip<max = 0.5>(x)",
     "b = Constant<value_float = 0.5>() y = Clip(x, , b)"},
    {"ClipHalf", 10, "(float16[20] x) => (float16[20] y)", "y = Clip<min = 0.5>(x)",
     "a = Constant<value_float = 0.5>() h = Cast<to = 10>(a) y = Clip(x, h)"},
    {"ConcatDefaultAxis", 3, "(float[2,3] a, float[2,3] b) => (float[2,6] y)", "y = Concat(a, b)",
     "y = Concat<axis = 1>(a, b)"},
    {"DropoutIsIdentity", 6, "(float[2,3] x) => (float[2,3] y)", "y = Dropout<ratio = 0.9>(x)",
     "y = Identity(x)"},
    {"DropoutMaskHasTheDatasType", 7, "(float[2,3] x) => (float[2,3] y, float[2,3] m)", "y, m = Dropout(x)",
     "y = Identity(x) z = Sub(x, x) m = Exp(z)"},
    {"GemmBroadcast", 6, "(float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y)",
     "y = Gemm<broadcast = 1, alpha = 2.0>(a, b, c)", "y = Gemm<alpha = 2.0>(a, b, c)"},
    {"GlobalLpPoolFloat", 1, "(float[1,2,3,4] x) => (float[1,2,1,1] y)", "y = GlobalLpPool<p = 2.0>(x)",
     "y = GlobalLpPool<p = 2>(x)"},
    {"GroupNormalizationPerGroup", 18, "(float[2,4,3] x, float[2] s, float[2] b) => (float[2,4,3] y)",
     "y = GroupNormalization<num_groups = 2>(x, s, b)",
     "i = Constant<value_ints = [0, 0, 1, 1]>() t = Gather(s, i) c = Gather(b, i) "
     "y = GroupNormalization<num_groups = 2>(x, t, c)",
     21},
    {"HardmaxFlattens", 11, "(float[2,3,4] x) => (float[2,3,4] y)", "y = Hardmax(x)",
     "f = Flatten<axis = 1>(x) h = Hardmax(f) s = Shape(x) y = Reshape(h, s)"},
    {"LogSoftmaxLastAxis", 11, "(float[2,3,4] x) => (float[2,3,4] y)", "y = LogSoftmax<axis = 2>(x)",
     "y = LogSoftmax(x)"},
    {"SoftmaxFlattensAllAxes", 9, "(float[2,3,4] x) => (float[2,3,4] y)", "y = Softmax<axis = 0>(x)",
     "f = Flatten<axis = 0>(x) h = Softmax(f) s = Shape(x) y = Reshape(h, s)"},
    {"SoftmaxNegativeAxis", 11, "(float[2,3,4] x) => (float[2,3,4] y)", "y = Softmax<axis = -2>(x)",
     "f = Flatten<axis = 1>(x) h = Softmax(f) s = Shape(x) y = Reshape(h, s)"},
    {"SoftmaxOverOnes", 11, "(float[2,3,1,1] x) => (float[2,3,1,1] y)", "y = Softmax(x)",
     "y = Softmax<axis = 1>(x)"},
    {"PReluPerChannel", 6, "(float[2,3,4,3] x, float[3] s) => (float[2,3,4,3] y)", "y = PRelu(x, s)",
     "d = Constant<value_ints = [3, 1, 1]>() t = Reshape(s, d) y = PRelu(x, t)"},
    {"PadPaddings", 1, "(float[2,3] x) => (float[3,6] y)", "y = Pad<paddings = [0, 1, 1, 2]>(x)",
     "p = Constant<value_ints = [0, 1, 1, 2]>() y = Pad(x, p)"},
    {"PadValue", 10, "(float[2,3] x) => (float[3,6] y)", "y = Pad<pads = [0, 1, 1, 2], value = 7.5>(x)",
     "p = Constant<value_ints = [0, 1, 1, 2]>() v = Constant<value_float = 7.5>() y = Pad(x, p, v)"},
    {"ReduceMeanAxes", 13, "(float[2,3,4] x) => (float[2,4] y)",
     "y = ReduceMean<axes = [1], keepdims = 0>(x)",
     "a = Constant<value_ints = [1]>() y = ReduceMean<keepdims = 0>(x, a)", 18},
    {"ReduceSumAll", 11, "(float[2,3] x) => (float[1,1] y)", "y = ReduceSum(x)", "y = ReduceSum(x)"},
    {"ReduceMaxNegativeAxis", 11, "(float[2,3] x) => (float[2,1] y)", "y = ReduceMax<axes = [-1]>(x)",
     "a = Constant<value_ints = [1]>() y = ReduceMax(x, a)", 18},
    {"ReshapeAttribute", 4, "(float[2,6] x) => (float[3,4] y)", "y = Reshape<shape = [3, -1]>(x)",
     "s = Constant<value_ints = [3, 4]>() y = Reshape(x, s)"},
    {"Scatter", 10, "(float[4] x, float[2] u) => (float[4] y)",
     "i = Constant<value = int64[2] {1, 3}>() y = Scatter<axis = 0>(x, i, u)",
     "i = Constant<value_ints = [1, 3]>() y = ScatterElements<axis = 0>(x, i, u)"},
    {"SeluDigits", 1, "(float[20] x) => (float[20] y)", "y = Selu(x)",
     "y = Selu<alpha = 1.6732, gamma = 1.0507>(x)"},
    {"SliceAttributes", 9, "(float[4,5] x) => (float[2,3] y)",
     "y = Slice<starts = [1, -4], ends = [3, 4], axes = [0, 1]>(x)",
     "s = Constant<value_ints = [1, 1]>() e = Constant<value_ints = [3, 4]>() y = Slice(x, s, e)"},
    {"SplitAttribute", 11, "(float[2,5] x) => (float[2,2] a, float[2,3] b)",
     "a, b = Split<axis = 1, split = [2, 3]>(x)",
     "s = Constant<value_ints = [2, 3]>() a, b = Split<axis = 1>(x, s)"},
    {"SplitEqually", 13, "(float[6] x) => (float[2] b)", "a, b, c = Split(x)",
     "s = Constant<value_ints = [2]>() e = Constant<value_ints = [4]>() b = Slice(x, s, e)"},
    {"SqueezeAxes", 11, "(float[1,3,1] x) => (float[1,3] y)", "y = Squeeze<axes = [2]>(x)",
     "s = Constant<value_ints = [1, 3]>() y = Reshape(x, s)"},
    {"UnsqueezeAxes", 11, "(float[3] x) => (float[1,3,1] y)", "y = Unsqueeze<axes = [0, 2]>(x)",
     "s = Constant<value_ints = [1, 3, 1]>() y = Reshape(x, s)"},
    {"AxesAsScalar", 13, "(float[1,3] x) => (float[3,1] y)",
     "z = Constant<value_int = 0>() o = Constant<value_int = 1>() h = Squeeze(x, z) y = Unsqueeze(h, o)",
     "s = Constant<value_ints = [3, 1]>() y = Reshape(x, s)"},
    {"TileOneAxis", 1, "(float[2,3] x) => (float[2,6] y)",
     "t = Constant<value = float {2.0}>() a = Constant<value = float {1.0}>() y = Tile(x, t, a)",
     "r = Constant<value_ints = [1, 2]>() y = Tile(x, r)"},
    {"TopKAttribute", 9, "(float[2,5] x) => (float[2,2] v, int64[2,2] i)", "v, i = TopK<k = 2>(x)",
     "k = Constant<value_ints = [2]>() v, i = TopK(x, k)"},
    {"Upsample1", 1, "(float[1,1,2,3] x) => (float[1,1,4,9] y)",
     "y = Upsample<height_scale = 2.0, width_scale = 3.0, mode = \"nearest\">(x)",
     "s = Constant<value_floats = [1.0, 1.0, 2.0, 3.0]>() "
     "y = Resize<coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\">(x, , s)"},
    {"Upsample7Linear", 8, "(float[1,1,2,3] x) => (float[1,1,4,6] y)",
     "y = Upsample<scales = [1.0, 1.0, 2.0, 2.0], mode = \"linear\">(x)",
     "s = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>() "
     "y = Resize<coordinate_transformation_mode = \"asymmetric\", mode = \"linear\">(x, , s)"},
    {"Resize10Shrinks", 10, "(float[1,1,4,4] x) => (float[1,1,2,2] y)",
     "s = Constant<value = float[4] {1.0, 1.0, 0.6, 0.6}>() y = Resize(x, s)",
     "s = Constant<value_floats = [1.0, 1.0, 0.6, 0.6]>() "
     "y = Resize<coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"ceil\">(x, , s)"},
    {"Resize10Both", 10, "(float[1,1,4,4] x) => (float[1,1,8,2] y)",
     "s = Constant<value = float[4] {1.0, 1.0, 2.0, 0.6}>() y = Resize(x, s)",
     "s = Constant<value_floats = [1.0, 1.0, 1.0, 0.6]>() t = Constant<value_floats = [1.0, 1.0, 2.0, "
     "1.0]>() "
     "h = Resize<coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"ceil\">(x, , s) "
     "y = Resize<coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\">(h, , t)"},
    {"TfHalfPixelForNn", 11, "(float[1,1,4,4] x) => (float[1,1,3,2] y)",
     "r = Constant<value = float[0] {}>() s = Constant<value = float[0] {}>() "
     "z = Constant<value = int64[4] {1, 1, 3, 2}>() "
     "y = Resize<coordinate_transformation_mode = \"tf_half_pixel_for_nn\", nearest_mode = \"floor\">(x, r, "
     "s, z)",
     "h = Constant<value_ints = [0, 2, 3]>() w = Constant<value_ints = [1, 3]>() "
     "a = Gather<axis = 2>(x, h) y = Gather<axis = 3>(a, w)"},
};

class Upgrade : public testing::TestWithParam<Case> {};

TEST_P(Upgrade, OldAndNewFormAgree) {
  const Case& c = GetParam();
  Model old_model, new_model;
  try {
    old_model = import_text(model(c.old_opset, c.signature, c.old_nodes));
    new_model = import_text(model(c.new_opset, c.signature, c.new_nodes));
  } catch (const Refusal& r) {
    if (std::string(r.what()).find("is not supported") != std::string::npos &&
        std::string(r.what()).find("operator ") != std::string::npos)
      GTEST_SKIP() << r.what();
    FAIL() << r.what();
  }
  const auto a = values(old_model), b = values(new_model);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(suite::difference(a[i], b[i], {1e-5, 1e-6}), "");
}
INSTANTIATE_TEST_SUITE_P(Table, Upgrade, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

struct Refused {
  const char* name;
  int opset;
  const char* signature;
  const char* nodes;
  const char* reason;
};
class UpgradeRefuses : public testing::TestWithParam<Refused> {};
TEST_P(UpgradeRefuses, WithReason) {
  const Refused& c = GetParam();
  const std::string got = refusal_of([&] { import_text(model(c.opset, c.signature, c.nodes)); });
  EXPECT_NE(got.find(c.reason), std::string::npos) << got;
}
const Refused kRefused[] = {
    {"CastToString", 5, "(float[4] x) => (float[4] y)", "y = Cast<to = \"STRING\">(x)",
     "a cast to \"STRING\""},
    {"BroadcastAxis", 6, "(float[2,3] a, float[3] b) => (float[2,3] y)",
     "y = Add<broadcast = 1, axis = 2>(a, b)", "axis 2 does not fit inputs of 2 and 1 axes"},
    {"SoftmaxAxis", 9, "(float[2,3] x) => (float[2,3] y)", "y = Softmax<axis = 2>(x)", "axis 2 out of range"},
    {"TopKWithoutK", 9, "(float[4] x) => (float[2] v, int64[2] i)", "v, i = TopK(x)",
     "attribute k is missing"},
    {"SliceWithoutEnds", 9, "(float[4] x) => (float[2] y)", "y = Slice<starts = [0]>(x)", "starts and ends"},
    {"FractionalPower", 1, "(float[1,2,3,4] x) => (float[1,2,1,1] y)", "y = GlobalLpPool<p = 2.5>(x)",
     "p = 2.5"},
    {"GroupsDoNotDivide", 18, "(float[2,5,3] x, float[2] s, float[2] b) => (float[2,5,3] y)",
     "y = GroupNormalization<num_groups = 2>(x, s, b)", "2 groups do not divide"},
    {"NewerThanKnown", 29, "(float[4] x) => (float[4] y)", "y = Relu(x)", "opset 29 is not supported"},
    {"OpsetZero", 0, "(float[4] x) => (float[4] y)", "y = Relu(x)", "opset 0 is not supported"},
};
INSTANTIATE_TEST_SUITE_P(Table, UpgradeRefuses, testing::ValuesIn(kRefused),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sinter
