// simplify_control: what moves into and out of the bodies of If, Loop and Scan; outputs stay the same.
#include "passes/proof.h"

namespace sinter {
namespace {

const char* const kHead = "<ir_version: 9, opset_import: [\"\" : 18]> g ";

std::unique_ptr<Graph> simplified_graph(const std::string& text, const std::vector<int64_t>& extents = {3}) {
  const auto before = graph_of(kHead + text);
  auto after = before->clone();
  run_only(*after, {"all"});
  expect_same_values(*before, *after, 1e-6, extents);
  return after;
}

TEST(SimplifyControl, ConditionOfShapesIsInlinedInsideOfALoop) {
  const auto g = simplified_graph(
      "(float[2,3] x, int64 n) => (float[2,3] y) { c = Constant<value = bool {1}>()"
      "  y = Loop (n, c, x) <body = b (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] so) {"
      "  shape = Shape(s)  rows = Size(shape)  two = Constant<value = int64 {2}>()  flat = Equal(rows, two)"
      "  axis = Constant<value = int64[1] {0}>()"
      "  so = If (flat) <then_branch = t () => (float[2,3] a) { a = Add(s, x) },"
      "    else_branch = e () => (float[2,3] d) { q = Squeeze(s, axis)  d = Neg(q) }>"
      "  co = Identity(ci) }> }");
  ASSERT_EQ(count_op(*g, "Loop"), 1u);
  const Graph& body = *g->nodes.back()->bodies.at(0);
  EXPECT_EQ(count_op(body, "If"), 0u);
  EXPECT_TRUE(body.outputs[0]->data) << "the condition is always true";
}

TEST(SimplifyControl, ConditionThatCountsBecomesATripCount) {
  const auto g = simplified_graph(
      "(float[9,3] x) => (float[T,3] r) { c = Constant<value = bool {1}>()  one = Constant<value = int32 "
      "{1}>()"
      "  n = Constant<value = int64 {99}>()  k, r = Loop (n, c, one) <body = b (int64 i, bool ci, int32 s) "
      "=> (bool co, int32 so, float[3] "
      "row) {"
      "  two = Constant<value = int32 {2}>()  nine = Constant<value = int32 {9}>()  so = Add(s, two)"
      "  co = Less(so, nine)  row = Gather(x, s) }> }");
  ASSERT_EQ(count_op(*g, "Loop"), 1u);
  const Node& loop = *g->nodes.back();
  ASSERT_TRUE(loop.inputs[0] && loop.inputs[0]->data);
  EXPECT_EQ(loop.inputs[0]->data->integer(0), 4);
  EXPECT_TRUE(loop.bodies.at(0)->outputs[0]->data) << "the condition is always true";
  EXPECT_EQ(text(g->outputs[0]->type), "float32[4,3]");
}

TEST(SimplifyControl, StateThatStaysBecomesACapture) {
  const auto g = simplified_graph(
      "(float[3] x, float[3] k, int64 n) => (float[3] y) { c = Constant<value = bool {1}>()"
      "  y, u = Loop (n, c, x, k) <body = b (int64 i, bool ci, float[3] s, float[3] t)"
      " => (bool co, float[3] so, float[3] to) { so = Add(s, t)  to = Identity(t)  co = Identity(ci) }> }");
  ASSERT_EQ(g->nodes.size(), 1u);
  EXPECT_EQ(g->nodes[0]->outputs.size(), 1u);
  EXPECT_EQ(g->nodes[0]->attributes.integer("captures", 0), 1);
}

TEST(SimplifyControl, UnusedRowsAndWhatMakesThemGo) {
  const auto g = simplified_graph(
      "(float[3] x, float[3] k, int64 n) => (float[3] y) { c = Constant<value = bool {1}>()"
      "  y, r = Loop (n, c, x) <body = b (int64 i, bool ci, float[3] s)"
      " => (bool co, float[3] so, float[3] row) { so = Exp(s)  row = MatMul(s, k)  co = Identity(ci) }> }");
  ASSERT_EQ(g->nodes.size(), 1u);
  EXPECT_EQ(g->nodes[0]->outputs.size(), 1u);
  EXPECT_EQ(count_op(*g->nodes[0]->bodies[0], "MatMul"), 0u);
  EXPECT_EQ(g->nodes[0]->inputs.size(), 3u) << "k is no longer captured";
}

TEST(SimplifyControl, ScanAlongOtherAxesGetsTransposes) {
  const auto g = simplified_graph(
      "(float[2] h, float[2,5] x) => (float[2] y, float[2,5] r) { y, r = Scan <num_scan_inputs = 1,"
      " scan_input_axes = [1], scan_output_axes = [-1], body = b (float[2] s, float[2] e)"
      " => (float[2] so, float[2] row) { so = Add(s, e)  row = Neg(so) }> (h, x) }");
  EXPECT_EQ(count_op(*g, "Transpose"), 2u);
}

TEST(AppendInPlace, ListsOfRowsBecomeResults) {
  const auto g = simplified_graph(
      "(float[N,3] x) => (float[N,3] y) { go = Constant<value = bool {1}>()"
      "  shape = Shape(x)  zero = Constant<value = int64 {0}>()  n = Gather(shape, zero)"
      "  axis = Constant<value = int64[1] {0}>()  empty = Constant<value = float[0,3] {}>()"
      "  y = Loop (n, go, empty) <body = b (int64 i, bool ci, float[K,3] list) => (bool co, float[L,3] more) "
      "{"
      "  row = Gather(x, i)  e = Exp(row)  u = Unsqueeze(e, axis)  more = Concat<axis = 0>(list, u)"
      "  co = Identity(ci) }> }",
      {1, 5});
  ASSERT_EQ(count_op(*g, "Loop"), 1u);
  const Graph& body = *g->nodes.back()->bodies.at(0);
  EXPECT_EQ(body.inputs.size(), 3u) << "iteration, condition, x: nothing is carried";
  EXPECT_EQ(text(g->outputs[0]->type), "float32[N,3]");
}

}  // namespace
}  // namespace sinter
