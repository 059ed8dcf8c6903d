// What a model declares: operands of the run that declared shapes tell, and declarations that can't be.
#include <gtest/gtest.h>

#include "import/onnx.h"
#include "model_text.h"
#include "ops/op.h"

namespace sinter {
namespace {

struct Refused {
  const char* what;
  const char* model;
  const char* why;
};

const Refused kRefused[] = {
    {"younger operator",
     R"(<ir_version: 8, opset_import: ["" : 13]> g (float[2] x) => (float[2] y) { y = Gelu(x) })",
     "Gelu came with opset 20, but the model names opset 13"},
    {"unknown attribute",
     R"(<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu<speed = 3>(x) })",
     "Relu has no attribute \"speed\""},
    {"output too many",
     R"(<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y, float[2] z) {
       y, z = Relu(x) })",
     "2 outputs, but it has at most 1"},
    {"IR of the future",
     R"(<ir_version: 99, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) })",
     "IR version 99 is not supported"},
};

TEST(Declared, ImpossibleNodesAreRefused) {
  for (const Refused& r : kRefused) {
    const std::string said = refusal_of([&] { import_text(r.model); });
    EXPECT_NE(said.find(r.why), std::string::npos) << r.what << ": " << said;
  }
}

// A linear expression of one element is solved; the run compares the element.
TEST(Operands, AreToldByDeclaredShapes) {
  const Model m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,3] x, int64[2] shape, int64[2] times) => (float[4,3] y, float[4,6] z) {
      y = Expand(x, shape) z = Tile(y, times) })");
  ASSERT_EQ(m.graph->outputs.size(), 2u);
  EXPECT_EQ(text(m.graph->outputs[0]->type), "float32[4,3]");
  EXPECT_EQ(text(m.graph->outputs[1]->type), "float32[4,6]");
  std::string checked;
  for (const ElementCheck& c : m.graph->element_checks)
    checked += m.graph->inputs[c.input]->name + "[" + std::to_string(c.element) +
               "]=" + std::to_string(c.value) + " ";
  EXPECT_EQ(checked, "shape[0]=4 times[0]=1 times[1]=2 ");
}

TEST(Operands, AxesTakeTheDeclaredExtents) {
  const Model m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[3,2,2] x, int64[1] axes) => (float[3,2] y) { y = ReduceSum<keepdims = 0>(x, axes) })");
  EXPECT_EQ(text(m.graph->outputs[0]->type), "float32[3,2]");
  const auto y = evaluate(*m.graph, {Tensor(DType::kF32, {3, 2, 2}), Tensor::of(std::vector<int64_t>{-1})});
  EXPECT_EQ(y[0].shape(), (std::vector<int64_t>{3, 2}));
}

TEST(Operands, WithoutDeclarationStaySymbols) {
  const Model m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,3] x, int64[2] shape) => (float[A,B] y) { y = Expand(x, shape) })");
  EXPECT_FALSE(m.graph->outputs[0]->type.shape[0].is_static());
  EXPECT_EQ(m.graph->outputs[0]->type.shape[0].hi(), Interval::kUnbounded);
}

// What --dim says of an input's elements: the extents of the result, or the refusal.
std::string bounded(const std::string& graph, const std::vector<DimOption>& dims) {
  std::string extents;
  const std::string refusal = refusal_of([&] {
    ImportOptions o;
    o.dims = dims;
    const Model m = import_text("<ir_version: 9, opset_import: [\"\" : 19]> g " + graph, o);
    for (const Dim& d : m.graph->outputs[0]->type.shape)
      extents += (extents.empty() ? "" : " ") +
                 (d.is_static() ? d.text()
                                : std::to_string(d.lo()) + ".." +
                                      (d.hi() == Interval::kUnbounded ? "" : std::to_string(d.hi())));
  });
  return refusal == "accepted" ? extents : refusal;
}

struct Bounded {
  const char* what;
  const char* graph;
  const char* extents;  // with n<=8
};
const Bounded kBounded[] = {
    {"Expand",
     "(float[1,3] x, int64[1] n) => (float[a,b] y) { c = Constant<value = int64[1] {3}>() "
     "s = Concat<axis = 0>(n, c) y = Expand(x, s) }",
     "0..8 3"},
    {"ConstantOfShape", "(int64[2] n) => (float[a,b] y) { y = ConstantOfShape(n) }", "0..8 0..8"},
    {"a scalar",
     "(int64 n) => (int64[a] y) { z = Constant<value = int64 {0}>() o = Constant<value = int64 {1}>() "
     "y = Range(z, n, o) }",
     "0..8"},
    {"Tile", "(float[2,3] x, int64[2] n) => (float[a,b] y) { y = Tile(x, n) }", "0..16 0..24"},
    {"OneHot",
     "(int64[4] x, int64 n) => (float[a,b] y) { v = Constant<value = float[2] {0, 1}>() "
     "y = OneHot(x, n, v) }",
     "4 0..8"},
    {"a cast",
     "(float[1,3] x, float[1] n) => (float[a,b] y) { c = Constant<value = int64[1] {3}>() "
     "i = Cast<to = 7>(n) s = Concat<axis = 0>(i, c) y = Expand(x, s) }",
     "0..8 3"},
    {"arithmetic on floats",
     "(float[2] n) => (float[a,b] y) { h = Constant<value = float {0.5}>() m = Mul(n, h) "
     "c = Ceil(m) s = Cast<to = 7>(c) y = ConstantOfShape(s) }",
     "0..4 0..4"},
    {"int32", "(int32[2] n) => (float[a,b] y) { s = Cast<to = 7>(n) y = ConstantOfShape(s) }", "0..8 0..8"},
    {"Resize",
     "(float[1,1,8,8] x, float[2] n) => (float[a,b,c,d] y) { i = Cast<to = 7>(n) "
     "o = Constant<value = int64[2] {1, 1}>() s = Concat<axis = 0>(o, i) "
     "r = Constant<value = float[0] {}>() y = Resize<mode = \"linear\">(x, r, r, s) }",
     "1 1 0..8 0..8"},
};

TEST(Operands, TheUserBoundsInputs) {
  for (const Bounded& b : kBounded) {
    EXPECT_EQ(bounded(b.graph, {{"n", 1, 8, 1, true}}), b.extents) << b.what;
    const std::string without = bounded(b.graph, {});
    EXPECT_TRUE(without.find("--dim \"n<=MAX\"") != std::string::npos ||
                without.find("..") != std::string::npos)
        << b.what << ": " << without;
  }
  const std::string pair = "(int64[2] n) => (float[a,b] y) { y = ConstantOfShape(n) }";
  EXPECT_EQ(bounded(pair, {{"n", 2, 8}}), "2..8 2..8");
  EXPECT_EQ(bounded(pair, {{"n", 4, 4}}), "4 4");
  EXPECT_EQ(bounded(pair, {{"n[0]", 4, 4}, {"n[1]", 1, 6, 1, true}}), "4 0..6");
  EXPECT_NE(bounded(pair, {{"n", 8, 64, 8}}).find("have no step"), std::string::npos);
  EXPECT_NE(bounded(pair, {{"m", 1, 8}}).find("it has \"n\""), std::string::npos)
      << bounded(pair, {{"m", 1, 8}});
}

}  // namespace
}  // namespace sinter
