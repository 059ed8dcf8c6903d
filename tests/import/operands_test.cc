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

}  // namespace
}  // namespace sinter
