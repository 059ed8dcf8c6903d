// limit_boxes: NonMaxSuppression stops at what the Slice behind it takes, and nowhere else.
#include "passes/proof.h"

namespace sinter {
namespace {

// The limits of every NonMaxSuppression of a graph and its bodies.
std::vector<int64_t> limits_of(const Graph& g) {
  std::vector<int64_t> limits;
  for (const auto& n : g.nodes) {
    if (n->op->name == std::string_view("NonMaxSuppression"))
      limits.push_back(n->inputs[2]->data->integer(0));
    for (const auto& b : n->bodies)
      for (int64_t limit : limits_of(*b)) limits.push_back(limit);
  }
  return limits;
}

struct Case {
  const char* name;
  std::vector<int64_t> limits;
  const char* signature;
  std::string nodes;
};

const char* const kBoxes = "(float[1,N,4] x, float[1,1,N] s) => (int64[K] y)";
const char* const kConstants =
    "zero = Constant<value = int64[1] {0}>()  one = Constant<value = int64[1] {1}>()"
    "two = Constant<value = int64[1] {2}>()  three = Constant<value = int64[1] {3}>()"
    "minus = Constant<value = int64[1] {-1}>()  scalar = Constant<value = int64 {2}>()"
    "most = Constant<value = int64[1] {50}>()  iou = Constant<value = float[1] {0.4}>()";
const std::string kNms = std::string(kConstants) + "  n = NonMaxSuppression(x, s, most, iou)";

const Case kCases[] = {
    {"column",
     {3},
     kBoxes,
     kNms + "a = Gather<axis = 1>(n, two)  b = Squeeze(a, one)  y = Slice(b, zero, three, zero)"},
    {"from_behind", {3}, kBoxes, kNms + "a = Gather<axis = -1>(n, scalar)  y = Slice(a, zero, three)"},
    {"other_type",
     {3},
     "(float[1,N,4] x, float[1,1,N] s) => (int32[K,3] y)",
     kNms + "a = Cast<to = 6>(n)  y = Slice(a, zero, three, zero, one)"},
    {"all_but_the_last", {50}, kBoxes, kNms + "a = Gather<axis = 1>(n, scalar)  y = Slice(a, zero, minus)"},
    {"from_the_second", {50}, kBoxes, kNms + "a = Gather<axis = 1>(n, scalar)  y = Slice(a, one, three)"},
    {"backwards",
     {50},
     kBoxes,
     kNms + "a = Gather<axis = 1>(n, scalar)  y = Slice(a, zero, three, zero, minus)"},
    {"columns_only",
     {50},
     "(float[1,N,4] x, float[1,1,N] s) => (int64[K,2] y)",
     kNms + "y = Slice(n, zero, two, one)"},
    {"row_of_all",
     {50},
     "(float[1,N,4] x, float[1,1,N] s) => (int64[K,3] y)",
     kNms + "a = Gather<axis = 0>(n, zero)  y = Slice(a, zero, three)"},
    {"two_classes",
     {50},
     "(float[1,N,4] x, float[1,2,N] s) => (int64[K,3] y)",
     kNms + "y = Slice(n, zero, three)"},
    {"read_twice",
     {50},
     "(float[1,N,4] x, float[1,1,N] s) => (int64[K] y, int64[L,3] z)",
     kNms + "a = Gather<axis = 1>(n, scalar)  y = Slice(a, zero, three)  z = Neg(n)"},
    {"also_an_output",
     {50},
     "(float[1,N,4] x, float[1,1,N] s) => (int64[K] y, int64[L] a)",
     kNms + "a = Gather<axis = 1>(n, scalar)  y = Slice(a, zero, three)"},
    {"counted",
     {50},
     "(float[1,N,4] x, float[1,1,N] s) => (int64[K] y, int64[1] z)",
     kNms + "a = Gather<axis = 1>(n, scalar)  y = Slice(a, zero, three)  z = Shape<end = 1>(n)"},
    {"branch",
     {3},
     "(float[1,N,4] x, float[1,1,N] s, bool[1] c) => (int64[K] y)",
     std::string(kConstants) +
         "a = If(c) <then_branch = t () => (int64[A] p) {"
         "             m = Constant<value = int64[1] {50}>()  t = Constant<value = float[1] {0.4}>()"
         "             i = Constant<value = int64[1] {2}>()  o = Constant<value = int64[1] {1}>()"
         "             n = NonMaxSuppression(x, s, m, t)  q = Gather<axis = 1>(n, i)  p = Squeeze(q, o) },"
         "           else_branch = e () => (int64[B] q) { q = Constant<value = int64[5] {9, 8, 7, 6, 5}>() }>"
         "y = Slice(a, zero, three)"},
    {"branch_that_counts",
     {50},
     "(float[1,N,4] x, float[1,1,N] s, bool[1] c) => (int64[K] y, int64[1] z)",
     std::string(kConstants) +
         "a, z = If(c) <then_branch = t () => (int64[A] p, int64[1] k) {"
         "             m = Constant<value = int64[1] {50}>()  t = Constant<value = float[1] {0.4}>()"
         "             i = Constant<value = int64 {2}>()"
         "             n = NonMaxSuppression(x, s, m, t)  p = Gather<axis = 1>(n, i)  k = Shape(p) },"
         "           else_branch = e () => (int64[B] q, int64[1] l) {"
         "             q = Constant<value = int64[2] {9, 8}>()  l = Constant<value = int64[1] {2}>() }>"
         "y = Slice(a, zero, three)"},
};

class LimitBoxes : public testing::TestWithParam<Case> {};

TEST_P(LimitBoxes, EndsWhereTheSliceDoes) {
  const Case& c = GetParam();
  const auto before = graph_of(model_of(c.signature, c.nodes));
  auto limited = before->clone(), all = before->clone();
  run_only(*limited, {"simplify_control", "limit_boxes"});
  run_only(*all, {"all"});
  EXPECT_EQ(limits_of(*before), std::vector<int64_t>{50});
  EXPECT_EQ(limits_of(*limited), c.limits);
  EXPECT_EQ(limits_of(*all), c.limits);
  expect_same_values(*before, *limited, 0, {1, 2, 40});
  expect_same_values(*before, *all, 0, {1, 2, 40});
}

INSTANTIATE_TEST_SUITE_P(All, LimitBoxes, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sinter
