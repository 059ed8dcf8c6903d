// fuse_pads: Concat with fills whose extents the data decide, and what is behind it, as one Pad; empty parts
// of a Concat.
#include "passes/proof.h"

namespace sinter {
namespace {

const char* const kHead = "<ir_version: 9, opset_import: [\"\" : 18]> g ";

// x at row p[0] and column p[1] of an empty picture of 6 x 7, of which it may stand out.
const char* const kPaste =
    "(float[5,6] x, int64[2] p) => (float[6,7] y) {"
    "  none = Constant<value = int64[1] {0}>()  one = Constant<value = int64[1] {1}>()"
    "  six = Constant<value = int64[1] {6}>()  seven = Constant<value = int64[1] {7}>()"
    "  ten = Constant<value = int64[1] {10}>()"
    "  top = Gather(p, none)  left = Gather(p, one)  below = Sub(ten, top)  right = Sub(ten, left)"
    "  s1 = Concat<axis = 0>(top, six)  f1 = ConstantOfShape(s1)"
    "  s2 = Concat<axis = 0>(below, six)  f2 = ConstantOfShape(s2)"
    "  c = Concat<axis = 0>(f1, x, f2)  d = Slice(c, none, six, none)"
    "  s3 = Concat<axis = 0>(six, left)  f3 = ConstantOfShape(s3)"
    "  s4 = Concat<axis = 0>(six, right)  f4 = ConstantOfShape(s4)"
    "  e = Concat<axis = -1>(f3, d, f4)  y = Slice(e, none, seven, one) }";

// A model before a pass and behind it.
struct Passed {
  std::unique_ptr<Graph> before, after;
  Passed(const std::string& model, const char* pass)
      : before(graph_of(std::string(kHead) + model)), after(before->clone()) {
    run_only(*after, {pass});
  }
};

TEST(FusePads, APasteIsOnePad) {
  const auto [before, after] = Passed(kPaste, "fuse_pads");
  EXPECT_EQ(count_op(*after, "Pad"), 1u);
  for (const char* op : {"Slice", "ConstantOfShape"}) EXPECT_EQ(count_op(*after, op), 0u) << op;
  for (uint32_t round = 0; round < 8; ++round) {
    for (const int64_t value : {0, 1, 3, 6, 7, 9})
      for (const int64_t column : {0, 4, 8}) {
        std::vector<Tensor> in = inputs_of(*before, 1, round);
        in[1] = Tensor::of(std::vector<int64_t>{value, column});
        EXPECT_EQ(difference_of(evaluate(*after, in)[0], evaluate(*before, in)[0], 0), "")
            << value << ", " << column;
      }
  }
}

// Behind x only, of another number; in front only; not from the first element; fills that differ; known
// extents.
TEST(FusePads, OneSideAndWhatStays) {
  const auto [before, after] = Passed(
      "(float[5,3] x, int64[1] p, float[N,3] z) => (float[A,3] a, float[B,3] b, float[C,3] c, float[D,3] d, "
      "float[E,3] e) {"
      "  three = Constant<value = int64[1] {3}>()  s = Concat<axis = 0>(p, three)"
      "  none = Constant<value = int64[1] {0}>()  one = Constant<value = int64[1] {1}>()"
      "  f = ConstantOfShape<value = float[1] {2.5}>(s)  g = ConstantOfShape(s)"
      "  a = Concat<axis = 0>(x, f)  b = Concat<axis = 0>(g, x)"
      "  k = Concat<axis = 0>(g, x)  c = Slice(k, one, three, none)"
      "  d = Concat<axis = 0>(g, x, f)"
      "  u = Constant<value = int64[2] {2, 3}>()  h = ConstantOfShape(u)  e = Concat<axis = 0>(h, z) }",
      "fuse_pads");
  EXPECT_EQ(count_op(*after, "Pad"), 3u);
  EXPECT_EQ(count_op(*after, "Slice"), 1u);
  expect_same_values(*before, *after, 0, {1, 4});
}

// The model's own Pad, which counts its axes from the end and crops in front.
TEST(FusePads, PadsOfTheModel) {
  const auto [before, after] = Passed(
      "(float[5,3] x, int64[1] p) => (float[A,3] y, float[B,3] z) {"
      "  none = Constant<value = int64[1] {0}>()  one = Constant<value = int64[1] {1}>()"
      "  three = Constant<value = int64[1] {3}>()  six = Constant<value = int64[1] {6}>()"
      "  last = Constant<value = int64[1] {-2}>()  less = Neg(p)  value = Constant<value = float {0}>()"
      "  q = Concat<axis = 0>(less, six)  a = Pad(x, q, value, last)  y = Slice(a, none, six, none)"
      "  r = Concat<axis = 0>(p, one)  b = Pad(x, r, , last)"
      "  s = Concat<axis = 0>(p, three)  g = ConstantOfShape(s)  z = Concat<axis = 0>(g, b) }",
      "fuse_pads");
  EXPECT_EQ(count_op(*after, "Pad"), 3u) << "two of one axis don't join";
  EXPECT_EQ(count_op(*after, "Slice"), 0u);
  expect_same_values(*before, *after, 0, {1});
}

TEST(RemoveIdentity, EmptyPartsOfAConcat) {
  const auto [before, after] = Passed(
      "(float[2,N] x, float[0,4] w_e) => (float[2,4] y, float[4,N] z) {"
      "  y = Concat<axis = 0>(w_e, x)"
      "  z = Concat<axis = 0>(x, w_e, x) }",
      "remove_identity");
  EXPECT_EQ(count_op(*after, "Concat"), 1u);
  EXPECT_EQ(count_op(*after, "Reshape"), 1u) << "a check has to prove its shape";
  expect_same_values(*before, *after, 0, {4});
}

}  // namespace
}  // namespace sinter
