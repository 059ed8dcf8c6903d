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

TEST(Ranges, OneNumberIsKnownWhereverItIsTakenFrom) {
  const Model m = model(
      "(float[1,3] x, int64[1] i) => (float[N,3] y) { zeros = Constant<value = int64[4] {0, 0, 0, 0}>()"
      " one = Constant<value = int64[1] {1}>() from = Gather(zeros, i) to = Add(from, one)"
      " y = Slice(x, from, to) }");
  EXPECT_EQ(text(m.graph->outputs[0]->type), "float32[1,3]");
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

// By --dim: the extents it leads to, or what is said against it.
std::string bounded_by(const std::vector<DimOption>& dims) {
  std::string extents;
  const std::string refusal = refusal_of([&] {
    ImportOptions o;
    o.dims = dims;
    const Model m = import_text(
        "<ir_version: 9, opset_import: [\"\" : 18]> g (float[2] x) => (float[H,W] y) {"
        " a = Relu(x) b = Cast<to = 7>(a) one = Constant<value = int64[1] {1}>() c = Add(b, one)"
        " first = Constant<value = int64[1] {0}>() h = Slice(c, first, one)"
        " shape = Concat<axis = 0>(h, one) y = ConstantOfShape(shape) }",
        o);
    extents = text(m.graph->outputs[0]->type.shape);
    for (const Dim& d : m.graph->outputs[0]->type.shape) extents += fmt::format(" {}..{}", d.lo(), d.hi());
  });
  return refusal == "accepted" ? extents : refusal;
}

TEST(Reveal, TheUserBoundsWhatHasNoRange) {
  const std::string unbounded =
      "its shape is only known at run time (computed as \"shape\"): bound \"c\" with --dim \"c<=MAX\"";
  EXPECT_NE(bounded_by({}).find(unbounded), std::string::npos) << bounded_by({});
  EXPECT_TRUE(bounded_by({{"c", 1, 7}}).ends_with(" 0..7 1..1")) << bounded_by({{"c", 1, 7}});
  // Further up; Relu says that it is at least 0.
  EXPECT_TRUE(bounded_by({{"b", 1, 7}}).ends_with(" 1..8 1..1")) << bounded_by({{"b", 1, 7}});
  EXPECT_NE(bounded_by({{"c", 7, 7}}).find("the data decide it, it can only be bounded: \"c<=7\""),
            std::string::npos)
      << bounded_by({{"c", 7, 7}});
  // An input's extent of that name is what is meant.
  EXPECT_NE(refusal_of([] {
              ImportOptions o;
              o.dims = {{"b", 1, 7}};
              import_text(
                  "<ir_version: 9, opset_import: [\"\" : 18]> g (float[b] x) => (float[H] y) {"
                  " s = ReduceSum<keepdims = 1>(x) b = Cast<to = 7>(s) y = ConstantOfShape(b) }",
                  o);
            }).find("only known at run time"),
            std::string::npos);
  EXPECT_NE(bounded_by({{"c", 1, 7}, {"d", 1, 7}}).find("no free dim of that name"), std::string::npos);
}

}  // namespace
}  // namespace sinter
