// fuse_regions and fill_regions: scattered rows, RoiAlign that writes them and fills the others;
// channels-last forms too.
#include "passes/proof.h"

namespace sinter {
namespace {

const char* const kHead = "<ir_version: 9, opset_import: [\"\" : 18]> g ";

// Each of N boxes is put where it belongs in a tensor of all.
const char* const kLevels =
    "(float[1,3,8,8] x, float[N,4] r, float[4,3,2,2] d) => (float[4,3,2,2] y) {"
    "  shape = Shape(r)  zero = Constant<value = int64 {0}>()  n = Gather(shape, zero)"
    "  axes = Constant<value = int64[1] {0}>()  many = Unsqueeze(n, axes)"
    "  b = ConstantOfShape<value = int64[1] {0}>(many)"
    "  a = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 2>(x, r, b)"
    "  one = Constant<value = int64 {1}>()  back = Constant<value = int64 {-1}>()  less = Neg(n)"
    "  i = Range(back, m, back)  m = Add(less, back)"
    "  column = Constant<value = int64[4] {-1, 1, 1, 1}>()  c = Reshape(i, column)"
    "  as = Shape(a)  e = Expand(c, as)  y = ScatterElements<axis = 0>(d, e, a) }";

TEST(FuseRegions, RoiAlignWritesItsRows) {
  const auto before = graph_of(std::string(kHead) + kLevels);
  auto after = before->clone();
  run_only(*after, {"all"});
  EXPECT_EQ(count_op(*after, "roi_rows"), 1u);
  for (const char* op : {"ScatterElements", "ScatterND", "RoiAlign", "Expand"})
    EXPECT_EQ(count_op(*after, op), 0u) << op;
  expect_same_values(*before, *after, 1e-6, {1, 4});
}

TEST(FillRegions, RowsOfATensorMadeForThem) {
  const auto once = graph_of(
      std::string(kHead) +
      "(float[1,3,8,8] x, float[N,4] r) => (float[P,3,2,2] y) {"
      "  shape = Shape(r)  axes = Constant<value = int64[1] {0}>()  zero = Constant<value = int64 {0}>()"
      "  n = Gather(shape, zero)  shape1 = Unsqueeze(n, axes)"
      "  b = ConstantOfShape<value = int64[1] {0}>(shape1)"
      "  two = Constant<value = int64[1] {2}>()  rows = Mul(shape1, two)"
      "  tail = Constant<value = int64[3] {3, 2, 2}>()  all = Concat<axis = 0>(rows, tail)"
      "  d = ConstantOfShape<value = float[1] {0.25}>(all)"
      "  a = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 2>(x, r, b)"
      "  one = Constant<value = int64 {1}>()  i = Range(zero, n, one)  m = Mul(i, two)"
      "  column = Constant<value = int64[2] {-1, 1}>()  c = Reshape(m, column)  y = ScatterND(d, c, a) }");
  auto filled = once->clone();
  run_only(*filled, {"all"});
  EXPECT_EQ(count_op(*filled, "roi_rows"), 1u);
  EXPECT_EQ(count_op(*filled, "ConstantOfShape"), 1u) << "the pictures' numbers only";
  expect_same_values(*once, *filled, 1e-6, {1, 4});
}

TEST(FuseRegions, IndicesThatDifferInARowStay) {
  const auto before = graph_of(std::string(kHead) +
                               "(float[4,3] d, int64[2,3] i, float[2,3] u) => (float[4,3] y) {"
                               "  y = ScatterElements<axis = 0>(d, i, u) }");
  auto after = before->clone();
  run_only(*after, {"all"});
  EXPECT_EQ(count_op(*after, "ScatterElements"), 1u);
  expect_same_values(*before, *after, 0, {1});
}

}  // namespace
}  // namespace sinter
