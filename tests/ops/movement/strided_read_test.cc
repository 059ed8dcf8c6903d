// strided_read: the affine form says where eval's elements come from. Symbolic forms are compared with eval
// at actual sizes, too.
#include "ops/movement/movement_trial.h"

namespace sinter::movement_test {
namespace {

std::string described(Trial& t) {
  t.node();
  infer(t.graph);
  const Node& n = t.node();
  const auto r = strided_read(n, n.inputs[0]->type.shape, n.outputs[0]->type.shape);
  return r ? r->offset.text() + " + " + text(Shape(r->strides)) : "none";
}

// The read, done by hand with N = 3 and K = 2, equals eval of the same node on an input of that size.
void expect_same_elements(Trial& t, const Shape& in) {
  t.node();
  const auto actual = [](const Symbol& s) { return s.name == "N" ? int64_t{3} : int64_t{2}; };
  infer(t.graph);
  const Node& n = t.node();
  const Shape& out = n.outputs[0]->type.shape;
  const auto r = strided_read(n, in, out);
  ASSERT_TRUE(r.has_value());
  std::vector<int64_t> in_dims, out_dims;
  for (const Dim& d : in) in_dims.push_back(d.evaluate(actual));
  for (const Dim& d : out) out_dims.push_back(d.evaluate(actual));
  const Tensor x = iota(in_dims);
  std::vector<Tensor> inputs{x};
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    const auto known = contents(n.inputs[i]);
    ASSERT_TRUE(known.has_value());
    std::vector<int64_t> values;
    for (const Dim& d : *known) values.push_back(d.evaluate(actual));
    const Tensor list = Tensor::of(values);
    inputs.push_back(n.inputs[i]->type.shape.empty() ? list.reshaped({}) : list);
  }
  const Tensor want = evaluate(n, inputs)[0];
  ASSERT_EQ(want.shape(), out_dims);
  for_each_index(out_dims, [&](const std::vector<int64_t>& index, int64_t k) {
    int64_t at = r->offset.evaluate(actual);
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * r->strides[d].evaluate(actual);
    EXPECT_EQ(x.real(at), want.real(k)) << k;
  });
}

TEST(StridedRead, Transpose) {
  Trial t("Transpose");
  const Shape in{t.symbol("N"), 4, t.symbol("K")};
  t.input(in).set("perm", std::vector<int64_t>{2, 0, 1});
  EXPECT_EQ(described(t), "0 + [1,4*K,K]");
  expect_same_elements(t, in);
}
TEST(StridedRead, Slice) {
  Trial t("Slice");
  const Dim n = t.symbol("N"), k = t.symbol("K");
  const Shape in{n + 4, 6};
  t.input(in).dims({k, 5}).dims({n + 4, INT64_MIN}).ints({0, 1}).ints({2, -2});
  EXPECT_EQ(described(t), "6*min(K,N+4)+5 + [12,-2]");
  expect_same_elements(t, in);
  Trial last("Slice");
  last.input({4, 6}).ints({-1}).ints({INT64_MAX}).ints({0}).ints({INT64_MAX});
  EXPECT_EQ(described(last), "18 + [0,1]");
  Trial unknown("Slice");
  unknown.input({4, 6}).input(DType::kI64, {1}).input(DType::kI64, {1});
  EXPECT_EQ(described(unknown), "none");
}
TEST(StridedRead, Expand) {
  Trial t("Expand");
  const Dim n = t.symbol("N");
  t.input({n, 1, 2}).dims({5, n, 7, 1});
  EXPECT_EQ(described(t), "0 + [0,2,0,1]");
  expect_same_elements(t, {n, 1, 2});
  Trial open("Expand");
  const Dim k = open.symbol("K");
  open.input({k, 4}).ints({2, 4});
  EXPECT_EQ(described(open), "0 + [4*min(1,K-1),1]");
  expect_same_elements(open, {k, 4});
}
TEST(StridedRead, Gather) {
  Trial t("Gather");
  t.input({4, 3, 5}).constant(scalar_of(-1)).set("axis", int64_t{1});
  EXPECT_EQ(described(t), "10 + [15,1]");
  expect_same_elements(t, {4, 3, 5});
  Trial open("Gather");
  open.input({open.symbol("N"), 5}).constant(scalar_of(1));
  EXPECT_EQ(described(open), "none");
}
TEST(StridedRead, Views) {
  Trial t("Reshape");
  const Shape in{t.symbol("N"), 12};
  t.input(in).ints({-1, 3, 4});
  EXPECT_EQ(described(t), "0 + [12,4,1]");
  expect_same_elements(t, in);
}
TEST(StridedRead, Split) {
  Trial t("Split", 2);
  t.input({4, 6}).ints({2, 4}).set("axis", int64_t{1});
  t.node();
  infer(t.graph);
  const auto r = strided_read(t.node(), {4, 6}, {4, 4}, 1);
  ASSERT_TRUE(r.has_value());
  EXPECT_EQ(r->offset, Dim(2));
  EXPECT_EQ(text(Shape(r->strides)), "[6,1]");
}
TEST(StridedRead, NotAffine) {
  Trial t("Tile");
  t.input({2}).ints({2});
  EXPECT_EQ(described(t), "none");
}

}  // namespace
}  // namespace sinter::movement_test
