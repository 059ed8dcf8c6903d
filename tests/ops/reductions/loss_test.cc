// NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss: values by hand, types and refusals. What they are
// lowered to is proved in tests/passes.
#include "ops/run_node.h"

namespace sinter::node_test {
namespace {

Attrs how(const char* reduction) { return {{"reduction", std::string(reduction)}}; }
Attrs ignoring(const char* reduction, int64_t index) {
  return {{"reduction", std::string(reduction)}, {"ignore_index", index}};
}

TEST(NegativeLogLikelihoodLoss, ReductionsWeightsAndIgnored) {
  const Tensor x = floats({-1, -2, -3, -4, -5, -6}, {2, 3}), t = ints({2, 0}), w = floats({2, 3, 4});
  const auto loss = [&](const std::vector<Tensor>& in, const Attrs& a) {
    return run("NegativeLogLikelihoodLoss", in, a);
  };
  expect_tensor(loss({x, t}, how("none")), floats({3, 4}));
  expect_tensor(loss({x, t, w}, how("none")), floats({12, 8}));
  expect_tensor(loss({x, t, w}, how("sum")), floats({20}, {}));
  expect_tensor(loss({x, t, w}, {}), floats({20.0 / 6}, {}));
  expect_tensor(loss({x, t, w}, ignoring("mean", 0)), floats({3}, {}));
  expect_tensor(loss({x, ints({2, -100})}, ignoring("none", -100)), floats({3, 0}));
  expect_tensor(loss({x, ints({-100, -100})}, ignoring("mean", -100)), floats({kNaN}, {}));
  const Tensor image = floats({-1, -2, -3, -4, -5, -6}, {1, 3, 2});
  expect_tensor(loss({image, ints({2, 0}, {1, 2})}, how("none")), floats({5, 2}, {1, 2}));
}

TEST(SoftmaxCrossEntropyLoss, IsTheLossOfTheLogarithms) {
  const Tensor x = floats({0, std::log(3.0), 1000, 1000}, {2, 2});
  const auto out = run_all("SoftmaxCrossEntropyLoss", {x, ints({1, 0})}, how("none"), 2);
  expect_tensor(out[0], floats({std::log(4.0 / 3), std::log(2.0)}));
  expect_tensor(out[1], floats({-std::log(4.0), std::log(.75), -std::log(2.0), -std::log(2.0)}, {2, 2}));
}

TEST(Losses, TypesAndRefusals) {
  for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}) {
    const std::string label = std::string("\"node\" (") + op + "): ";
    const auto type = [&](Shape x, Shape t, const Attrs& a = {}, DType classes = DType::kI64) {
      return inferred(op, {{DType::kF32, x}, {classes, t}}, a);
    };
    EXPECT_EQ(type({2, 3, 5}, {2, 5}), "float32[]");
    EXPECT_EQ(type({2, 3, 5}, {2, 5}, how("none")), "float32[2,5]");
    EXPECT_EQ(type({2, 3, 5}, {2, 4}), label + "axis 1 of the target: 5 is not 4");
    EXPECT_EQ(type({2, 3, 5}, {2}), label + "a target of shape [2] for scores of shape [2,3,5]");
    EXPECT_EQ(type({2}, {}), label + "scores of shape [2]: N and C are needed");
    EXPECT_EQ(type({2, 0}, {2}), label + "there are no classes");
    EXPECT_EQ(type({2, 3}, {2}, how("max")), label + "its reduction is \"max\"");
    EXPECT_EQ(type({2, 3}, {2}, {}, DType::kF32), label + "its target must be int32 or int64");
    EXPECT_EQ(refusal(op, {floats({1, 2}, {1, 2}), ints({2})}), label + "target 2 outside of 2 classes");
    EXPECT_EQ(refusal(op, {floats({1, 2}, {1, 2}), ints({-3})}), label + "target -3 outside of 2 classes");
    EXPECT_EQ(refusal(op, {floats({1, 2}, {1, 2}), ints({0}), floats({1})}),
              label + "elements of the weight: 1 is not 2");
  }
}

}  // namespace
}  // namespace sinter::node_test
