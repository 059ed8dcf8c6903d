// The file of custom operators: what it says becomes an operator, what is wrong in it is told.
#include "ops/custom.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "model_text.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

class Custom : public testing::Test {
 protected:
  Custom() {
    std::string name = (fs::temp_directory_path() / "sinter_custom_XXXXXX").string();
    if (mkdtemp(name.data())) folder_ = name;
    std::ofstream(folder_ / "f.c") << "int f;";
  }
  ~Custom() override { fs::remove_all(folder_); }
  fs::path file(const std::string& json) const {
    std::ofstream(folder_ / "ops.json") << json;
    return folder_ / "ops.json";
  }
  fs::path folder_;
};

const char* const kModel = R"(<ir_version: 8, opset_import: ["" : 17, "c" : 1]>
  g (float[N,4] x, float[2,3] z) => (y) { y = c.F <k = 3> (x, z) })";

TEST_F(Custom, InfersTypesAndShapes) {
  const struct {
    const char *rules, *expected;
  } cases[] = {
      {"", "float32[N,4]"},
      {R"#("shape": "same(1)", "dtype": "int64",)#", "int64[2,3]"},
      {R"#("shape": ["x[0]*k + 1", "min(z[-1], 2) - -5", 7, "ceildiv(x[0], 2)", "(x[1]+5)/2"],)#",
       "float32[3*N+1,7,7,floordiv(N+1,2),4]"},
      {R"#("shape": [],)#", "float32[]"},
      {R"#("shape": ["q"],)#", R"#(extent "q" cannot be understood)#"},
      {R"#("shape": ["x[5]"],)#", R"#(extent "x[5]": "x" has shape [N,4])#"},
      {R"#("shape": ["x[0"],)#", R"#(extent "x[0" cannot be understood)#"},
      {R"#("shape": ["4/(x[0]-1)"],)#", R"#(extent "4/(x[0]-1)" divides by N-1)#"},
      {R"#("shape": ["2-3"],)#", R"#(extent "2-3" is -1)#"},
  };
  for (const auto& c : cases) {
    const CustomOps ops(file(std::string(R"#([{"domain": "c", "op": "F", "inputs": ["x", "z?"],)#") +
                             c.rules +
                             R"#("attributes": {"k": 1, "s": "a"}, "function": "f", "sources": ["f.c"]}])#"));
    ImportOptions o;
    o.custom_op = [&](const std::string& d, const std::string& n) { return ops.find(d, n); };
    std::string got;
    const std::string refusal =
        refusal_of([&] { got = text(import_text(kModel, o).graph->outputs[0]->type); });
    const std::string result = refusal == "accepted" ? got : refusal;
    EXPECT_NE(result.find(c.expected), std::string::npos) << result;
  }
}

TEST_F(Custom, RefusesBrokenFiles) {
  const struct {
    const char *json, *problem;
  } cases[] = {
      {"{", "is not JSON"},
      {"{}", "a list of custom operators is expected"},
      {"[1]", "an object is expected"},
      {"[{}]", "\"op\" is missing"},
      {R"#([{"domain": "c", "op": "F", "inputs": ["x"], "function": "f()", "sources": []}])#",
       "cannot be a C function"},
      {R"#([{"domain": "", "op": "F", "inputs": ["x"], "function": "f", "sources": []}])#",
       "\"domain\" is missing"},
      {R"#([{"domain": "c", "op": "F", "inputs": [1.5], "function": "f", "sources": []}])#",
       "must be a list of strings"},
      {R"#([{"domain": "c", "op": "F", "inputs": ["x"], "function": "f", "sources": ["g.c"]}])#",
       "cannot read \"g.c\""},
      {R"#([{"domain": "c", "op": "F", "inputs": ["x"], "function": "f", "sources": ["f.o"]}])#",
       "no .c, .cc or .cpp"},
      {R"#([{"domain": "c", "op": "F", "inputs": ["x"], "function": "f", "sources": ["f.c"], "shapes": 1}])#",
       "unknown key \"shapes\""},
      {R"#([{"domain": "c", "op": "F", "inputs": ["x"], "function": "f", "sources": ["f.c"], "shape": "same(1)"}])#",
       "there are 1 inputs"},
      {R"#([{"domain": "c", "op": "F", "inputs": ["x"], "function": "f", "sources": ["f.c"], "dtype": "float"}])#",
       "neither same(K) nor"},
      {R"#([{"domain": "c", "op": "F", "inputs": ["x"], "function": "f", "sources": ["f.c"], "attributes": {"int": 1}}])#",
       "cannot be a C identifier"},
      {R"#([{"domain": "c", "op": "F", "inputs": ["x"], "function": "f", "sources": ["f.c"], "attributes": {"a": {}}}])#",
       "its default must be"},
  };
  for (const auto& c : cases) {
    const std::string all = refusal_of([&] { CustomOps ops(file(c.json)); });
    EXPECT_NE(all.find(c.problem), std::string::npos) << c.json << "\n" << all;
  }
  EXPECT_NE(refusal_of([&] { CustomOps ops(folder_ / "none.json"); }).find("cannot read"), std::string::npos);
}

TEST_F(Custom, HasNoReference) {
  const CustomOps ops(
      file(R"#([{"domain": "c", "op": "F", "inputs": ["x"], "function": "f", "sources": ["f.c"]}])#"));
  EXPECT_EQ(ops.find("c", "G"), nullptr);
  const Op* op = ops.find("c", "F");
  ASSERT_NE(op, nullptr);
  Graph g;
  Value* x = g.add_value("x", {DType::kF32, {Dim(2)}});
  Value* y = g.add_value("y", {});
  g.inputs = {x};
  g.outputs = {y};
  Node* n = g.add_node(op, "n", {x}, {y});
  infer(g);
  EXPECT_NE(custom_op_of(*n), nullptr);
  EXPECT_NE(refusal_of([&] { evaluate(g, {Tensor(DType::kF32, {2})}); }).find("no reference meaning"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter
