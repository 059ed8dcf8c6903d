// Ranges of values, and operands that they bound.
#include <gtest/gtest.h>

#include "model_text.h"
#include "ops/op.h"

namespace sinter {
namespace {

Model model(const std::string& text) {
  return import_text("<ir_version: 9, opset_import: [\"\" : 18]> g " + text);
}

// "[lo, hi]" of the graph's output, or "anything".
std::string range_of(const std::string& text) {
  const Model m = model(text);
  const auto& r = m.graph->outputs[0]->range;
  return r ? fmt::format("[{}, {}]", r->lo, r->hi) : "anything";
}

TEST(Ranges, FollowArithmeticAndMovement) {
  struct Case {
    const char* nodes;
    const char* want;
  };
  const Case cases[] = {
      {"y = Identity(x)", "anything"},
      {"y = Sigmoid(x)", "[0, 1]"},
      {"y = Relu(x)", "[0, inf]"},
      {"y = Clip(x, two, eight)", "[2, 8]"},
      {"a = Max(x, two) y = Min(a, eight)", "[2, 8]"},
      {"a = Clip(x, two, eight) y = Sub(a, two)", "[0, 6]"},
      {"a = Clip(x, two, eight) y = Sub(a, a)", "[-6, 6]"},
      {"a = Clip(x, two, eight) y = Neg(a)", "[-8, -2]"},
      {"a = Clip(x, two, eight) b = Neg(a) y = Mul(a, b)", "[-64, -4]"},
      {"a = Clip(x, two, eight) y = Div(two, a)", "[0.25, 1]"},
      {"a = Sub(x, two) b = Clip(a, two, eight) c = Sub(b, eight) y = Div(two, c)", "anything"},
      {"a = Clip(x, two, eight) y = Sqrt(a)", "[1.4142135623730951, 2.8284271247461903]"},
      {"a = Clip(x, two, eight) y = Transpose(a)", "[2, 8]"},
      {"a = Clip(x, two, eight) b = Sigmoid(x) y = Concat<axis = 0>(a, b)", "[0, 8]"},
      {"a = Clip(x, two, eight) y = Concat<axis = 0>(a, x)", "anything"},
      {"a = Clip(x, two, eight) b = Greater(x, two) z = Sigmoid(x) y = Where(b, a, z)", "[0, 8]"},
      {"a = Clip(x, two, eight) y = MatMul(a, a)", "anything"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(range_of(std::string("(float[3,3] x) => (float[A,B] y) { two = Constant<value = float {2.0}>()"
                                   " eight = Constant<value = float {8.0}>() ") +
                       c.nodes + " }"),
              c.want)
        << c.nodes;
}

TEST(Ranges, CastsAreCutTowardsZero) {
  const char* text =
      "(float[3] x) => (int64[3] y) { lo = Constant<value = float {-2.7}>()"
      " hi = Constant<value = float {8.9}>() a = Clip(x, lo, hi) y = Cast<to = 7>(a) }";
  EXPECT_EQ(range_of(text), "[-2, 8]");
}

TEST(Reveal, BoundsWhatNoShapeTells) {
  const Model m = model(
      "(float[2] x) => (float[H,W] y) { lo = Constant<value = float {-3.0}>()"
      " hi = Constant<value = float {9.0}>() a = Clip(x, lo, hi) b = Cast<to = 7>(a)"
      " one = Constant<value = int64[2] {1, 1}>() c = Sub(b, one) d = Max(c, one) y = ConstantOfShape(d) }");
  const Shape& s = m.graph->outputs[0]->type.shape;
  ASSERT_EQ(s.size(), 2u);
  for (const Dim& d : s) {
    EXPECT_EQ(d.lo(), 1);
    EXPECT_EQ(d.hi(), 8);
  }
  EXPECT_FALSE(s[0] == s[1]);
}

TEST(Reveal, WithoutARangeIsRefused) {
  const std::string said = refusal_of(
      [] { model("(float[2] x) => (float[H,W] y) { b = Cast<to = 7>(x) y = ConstantOfShape(b) }"); });
  EXPECT_NE(said.find("only known at run time"), std::string::npos) << said;
}

}  // namespace
}  // namespace sinter
