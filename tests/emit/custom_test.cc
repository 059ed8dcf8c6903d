// Custom operators end to end: a user's C sources travel in the bundle and are called with the tensors, their
// extents and the attributes.
#include "ops/custom.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "driver/build.h"
#include "driver/compile.h"
#include "driver/errors.h"
#include "driver/machine.h"
#include "emit/generated.h"
#include "model_text.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

const char* const kOps = R"#([{
  "domain": "com.example", "op": "Scale", "inputs": ["x", "bias?"], "outputs": ["y"],
  "attributes": {"alpha": 1.5, "label": "it's a \"test\"?", "sizes": [], "power": 1},
  "shape": ["x[0]", "x[1] + power"], "dtype": "same(0)",
  "function": "scale", "header": "c/scale.h", "sources": ["c/scale.c"]
}])#";
const char* const kHeader = R"(#include "scale_custom.h"
#define EXTRA 100.0f
)";
// y[n][c] = alpha * x[n][c] (+ bias[c]), and behind each row the sum of `sizes`.
const char* const kSource = R"(#include "scale.h"
int scale(const sinter_tensor* inputs, const sinter_tensor* outputs, const scale_attributes* a) {
  const float* x = (const float*)inputs[0].data;
  const float* bias = (const float*)inputs[1].data;
  float* y = (float*)outputs[0].data;
  const int64_t rows = inputs[0].dims[0], columns = inputs[0].dims[1], wide = outputs[0].dims[1];
  float sum = EXTRA + (float)a->label[0];
  if (inputs[0].rank != 2 || inputs[0].dtype != 1 || wide != columns + a->power) return 1;
  if (bias != 0 && inputs[1].dims[0] != columns) return 2;
  for (int64_t i = 0; i < a->sizes_count; ++i) sum += (float)a->sizes[i];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      y[r * wide + c] = a->alpha * x[r * columns + c] + (bias != 0 ? bias[c] : 0.0f);
    for (int64_t c = columns; c < wide; ++c) y[r * wide + c] = sum;
  }
  return x[0] > 1000.0f;
}
)";
const char* const kModel = R"(<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
  g (float[N,4] x, float[4] b) => (float[N,K] y, float[N,5] z) {
    h = Relu(x)
    y = com.example.Scale <alpha = 2.0, sizes = [7, 8], power = 2> (h, b)
    z = com.example.Scale (h)
  })";

class CustomRun : public testing::Test {
 protected:
  CustomRun() {
    std::string name = (fs::temp_directory_path() / "sinter_custom_XXXXXX").string();
    if (mkdtemp(name.data())) folder_ = name;
    fs::create_directories(folder_ / "c");
    fs::create_directories(folder_ / "objects");
    std::ofstream(folder_ / "ops.json") << kOps;
    std::ofstream(folder_ / "c/scale.h") << kHeader;
    std::ofstream(folder_ / "c/scale.c") << kSource;
    std::ofstream f(folder_ / "model.onnx", std::ios::binary);
    f << parse_text(kModel).SerializeAsString();
  }
  ~CustomRun() override { fs::remove_all(folder_); }
  Compiled compile(const CustomOps& ops) const {
    ModelOptions o;
    o.model = (folder_ / "model.onnx").string();
    o.name = "net";
    ImportOptions import;
    import.dims = {{ "N", 1, 3, 1 }};
    import.custom_op = [&](const std::string& d, const std::string& n) { return ops.find(d, n);
  };
  return compile_model(o, import);
} void run(const Tensor& x, const Tensor& b) const {
  write_tensor_pb(folder_ / "x.pb", x, "x");
  write_tensor_pb(folder_ / "b.pb", b, "b");
  const auto file = [&](const char* name) { return (folder_ / name).string(); };
  ProgramRun r;
  r.in = {{"", file("x.pb")}, {"", file("b.pb")}};
  r.out = {{"", file("y.pb")}, {"", file("z.pb")}};
  machine_of("host", toolchain_for(target_, true), [](const std::string&) {
  })->execute(folder_ / "program", r);
}
fs::path folder_;
const Target& target_ = *find_target("host");
};  // namespace

TEST_F(CustomRun, CallsTheFunction) {
  const CustomOps ops(folder_ / "ops.json");
  const Compiled c = compile(ops);
  EXPECT_EQ(c.files.at("custom/scale.c"), kSource);
  for (const auto& [name, text] : c.files)
    EXPECT_EQ(text.find(folder_.string()), std::string::npos) << name << " tells where the sources were";
  write_bundle(c.files, folder_ / "bundle");
  build_program(folder_ / "bundle", "net", toolchain_for(target_, true), folder_ / "objects",
                folder_ / "program");
  const Tensor x = Tensor::of(std::vector<float>{1, -2, 3, 4, 5, 6, 7, 8}, {2, 4});
  run(x, Tensor::of(std::vector<float>{10, 20, 30, 40}, {4}));
  EXPECT_EQ(
      difference(read_tensor_pb(folder_ / "y.pb"),
                 Tensor::of(std::vector<float>{12, 20, 36, 48, 220, 220, 20, 32, 44, 56, 220, 220}, {2, 6})),
      "");
  EXPECT_EQ(difference(read_tensor_pb(folder_ / "z.pb"),
                       Tensor::of(std::vector<float>{1.5, 0, 4.5, 6, 205, 7.5, 9, 10.5, 12, 205}, {2, 5})),
            "");
  // What the function returns other than 0 is an error of the run.
  EXPECT_ANY_THROW(run(Tensor::of(std::vector<float>{2000, 0, 0, 0}, {1, 4}), Tensor(DType::kF32, {4})));
}

TEST_F(CustomRun, IsRefusedWithoutTheOption) {
  ImportOptions import;
  EXPECT_NE(refusal_of([&] { import_text(kModel, import); }).find("Scale"), std::string::npos);
}

}  // namespace sinter
}  // namespace sinter
