// sinter verify of models with custom operators: the C function is the meaning. And compile's --depfile,
// which names that function's source among all that is read.
#include <gtest/gtest.h>

#include "driver/options.h"
#include "ir/read_files.h"
#include "program.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

// y = alpha * x + bias of the last axis, where there is one.
const char* const kOps = R"([{"domain": "com.example", "op": "Scale", "inputs": ["x", "bias?"],
  "attributes": {"alpha": 1.5}, "function": "scale", "sources": ["scale.c"]}])";
const char* const kSource = R"(#include "scale_custom.h"
int scale(const sinter_tensor* inputs, const sinter_tensor* outputs, const scale_attributes* a) {
  const float* bias = (const float*)inputs[1].data;
  int64_t count = 1;
  const int64_t last = inputs[0].dims[inputs[0].rank - 1];
  for (int i = 0; i < inputs[0].rank; ++i) count *= inputs[0].dims[i];
  for (int64_t i = 0; i < count; ++i)
    ((float*)outputs[0].data)[i] = a->alpha * ((const float*)inputs[0].data)[i] + (bias != 0 ? bias[i % last] : 0.0f);
  return ((const float*)inputs[0].data)[0] > 1000.0f;
})";

class CustomVerify : public testing::Test {
 protected:
  CustomVerify() {
    put(path("ops.json"), kOps);
    put(path("scale.c"), kSource);
  }
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  void model(const std::string& graph) {
    save(parse_text("<ir_version: 8, opset_import: [\"\" : 17, \"com.example\" : 1]>\n" + graph),
         path("m.onnx"));
  }
  TemporaryFolder folder_;
};

TEST_F(CustomVerify, TheFunctionIsTheMeaning) {
  const char* const graphs[] = {
      "g (float[N,4] x) => (float[N,4] y) { h = Sin(x) s = com.example.Scale <alpha = 2.0> (h) y = Cos(s) }",
      // behind a picture whose channels lie last inside
      "g (float[1,3,9,9] x) => (float[1,3,9,9] y) <float[9] b = {1, 2, 3, 4, 5, 6, 7, 8, 9}> { "
      "h = LpPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x) y = com.example.Scale(h, b) }",
      // twice the same node with other attributes, and inside of a branch
      "g (float[2] x, bool c) => (float[2] y) { a = com.example.Scale <alpha = 3.0> (x) "
      "y = If (c) <then_branch = t () => (float[2] p) { p = com.example.Scale <alpha = 4.0> (a) }, "
      "else_branch = e () => (float[2] q) { q = Neg(a) }> }",
  };
  for (const char* graph : graphs) {
    model(graph);
    std::vector<std::string> command = {"verify", path("m.onnx"), "--custom-ops", path("ops.json")};
    if (std::string(graph).find("N,") != std::string::npos) command.insert(command.end(), {"--dim", "N=3"});
    expect(command, 0, "outputs as expected");
  }
}

TEST_F(CustomVerify, AFailingFunctionIsTold) {
  model("g (float[2] x) => (float[2] y) { y = com.example.Scale(x) }");
  write_tensor_pb(path("x.pb"), Tensor::of(std::vector<float>{2000, 2}, {2}), "");
  expect({"verify", path("m.onnx"), "--custom-ops", path("ops.json"), "--in", path("x.pb")}, 6, "");
}

TEST_F(CustomVerify, DepfileNamesWhatIsRead) {
  onnx::ModelProto m = parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"com.example\" : 1]>\n"
      "g (float[2] x, float[2] k) => (float[2] y) { h = Add(x, k) s = com.example.Scale(h) y = Mul(s, w) }");
  onnx::TensorProto& w = *m.mutable_graph()->add_initializer();
  w.set_name("w"), w.set_data_type(1), w.add_dims(2), w.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* place = w.add_external_data();
  place->set_key("location"), place->set_value("my weights#1.bin");
  put(path("my weights#1.bin"), std::string(8, '\0'));
  save(m, path("m.onnx"));
  put(path("t.json"), R"({"sinter_tuning": 1, "kernels": "none", "rows": []})");
  write_tensor_pb(path("k.pb"), Tensor::of(std::vector<float>{1, 1}, {2}), "");
  expect({"compile", path("m.onnx"), "-o", path("out"), "--depfile", path("m.d"), "--custom-ops",
          path("ops.json"), "--tuning", path("t.json"), "--const", "k=" + path("k.pb")},
         0, "m: ");
  const std::string rule = contents(path("m.d"));
  EXPECT_EQ(rule.rfind(path("out/m.cpp") + ":", 0), 0u) << rule;
  for (const char* file : {"m.onnx", "my\\ weights\\#1.bin", "ops.json", "scale.c", "t.json", "k.pb"})
    EXPECT_NE(rule.find("\n  " + path(file)), std::string::npos) << file << "\n" << rule;
  // Where it can't be written, that is told.
  expect({"compile", path("m.onnx"), "-o", path("out"), "--depfile", path("no/m.d"), "--custom-ops",
          path("ops.json"), "--const", "k=1"},
         3, "--depfile");
  EXPECT_EQ(dependency_rule("a b", {"/c$d", "/e"}), "a\\ b: \\\n  /c$$d \\\n  /e\n");
}

}  // namespace
}  // namespace sinter
