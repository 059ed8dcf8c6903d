// --fp16 on the command line: samples that do not fit are refused, what was measured is told, and weights
// shrink.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

class HalvesOptions : public testing::Test {
 protected:
  void SetUp() override {
    std::string w;
    for (int i = 0; i < 64; ++i) w += (i > 0 ? ", " : "") + std::to_string((i * 37 % 64) / 32.0 - 1);
    save_text(
        "net (float[N,8] x) => (float[N,8] y) <float[8,8] w = {" + w + "}> { h = MatMul(x, w) y = Relu(h) }",
        model_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A sample whose input has `rows` rows of `columns`.
  std::string sample(int64_t rows, int64_t columns, int32_t type = onnx::TensorProto::FLOAT) {
    onnx::TensorProto t;
    t.set_data_type(type);
    t.add_dims(rows);
    t.add_dims(columns);
    t.set_raw_data(std::string(static_cast<size_t>(4 * rows * columns), '\0'));
    const fs::path dir = folder_ / ("sample" + std::to_string(++samples_));
    fs::create_directories(dir);
    put(dir / "input_0.pb", t.SerializeAsString());
    return dir.string();
  }
  std::vector<std::string> command(const std::string& data) const {
    return {"inspect", model_.string(), "--target", "cortex-a76", "--fp16", "--dim", "N<=4", "--data", data};
  }

  fs::path folder_ = fs::temp_directory_path() / ("sinter_halves_" + std::to_string(getpid()));
  fs::path model_ = (fs::create_directories(folder_), folder_ / "net.onnx");
  int samples_ = 0;
};

TEST_F(HalvesOptions, SamplesMustFitTheInputs) {
  expect(command(sample(3, 8)), 0, "off by");
  expect(command(sample(5, 8)), 2, "takes float32[N (1..4),8]");
  expect(command(sample(3, 7)), 2, "its file has float32[3,7]");
  expect(command(sample(3, 8, onnx::TensorProto::INT32)), 2, "its file has int32[3,8]");
  expect(command((folder_ / "nowhere").string()), 2, "No such file");
  // A folder of files: four rows are four samples.
  fs::create_directories(folder_ / "many");
  fs::rename(fs::path(sample(4, 8)) / "input_0.pb", folder_ / "many" / "rows.pb");
  expect(command((folder_ / "many").string()), 0, "off by");
  fs::rename(fs::path(sample(4, 7)) / "input_0.pb", folder_ / "many" / "rows.pb");
  expect(command((folder_ / "many").string()), 2, "float32[1,7]");
}

TEST_F(HalvesOptions, TheMapHasWhatWasMeasured) {
  const fs::path json = folder_ / "net.json";
  std::vector<std::string> arguments{"inspect", model_.string(), "--target", "cortex-a76", "--fp16",
                                     "--dim",   "N<=4",          "--json",   json.string()};
  expect(arguments, 0, "float16, off by");
  const auto map = nlohmann::json::parse(contents(json));
  EXPECT_GT(map["outputs"][0]["half_error"].get<double>(), 0);
  EXPECT_LT(map["outputs"][0]["half_error"].get<double>(), 1e-2);
  bool computes = false;
  for (const auto& l : map["layers"]) computes = computes || l.value("halves", "") == "computed";
  EXPECT_TRUE(computes);
  arguments.insert(arguments.end(), {"--fp16-error", "1e-7"});
  expect(arguments, 0, "its own error is above the limit");
}

// A core that multiplies no halves stores weights so, and computes floats.
TEST_F(HalvesOptions, WithoutTheirArithmeticWeightsAreStoredSo) {
  std::string w;
  for (int i = 0; i < 4096; ++i) w += (i > 0 ? ", " : "") + std::to_string((i * 37 % 101) / 101.0 - 0.5);
  save_text("net (float[N,64] x) => (float[N,64] y) <float[64,64] w = {" + w + "}> { y = MatMul(x, w) }",
            model_);
  const auto bytes = [&](std::vector<std::string> options) {
    std::vector<std::string> arguments{
        "inspect", model_.string(), "--target", "cortex-a72",
        "--dim",   "N<=4",          "--json",   (folder_ / "net.json").string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    expect(arguments, 0, "");
    return nlohmann::json::parse(contents(folder_ / "net.json"))["weights_bytes"].get<int64_t>();
  };
  const int64_t floats = bytes({}), halves = bytes({"--fp16"});
  EXPECT_LT(halves, floats * 11 / 20);
  EXPECT_EQ(bytes({"--fp16", "--fp16-error", "1e-9"}), floats);
  EXPECT_EQ(bytes({"--fp16", "--fast-weights"}), floats);
  expect({"inspect", model_.string(), "--target", "cortex-a72", "--dim", "N<=4", "--fp16"}, 0,
         "stores the weights of products in 16 bits");
}

}  // namespace
}  // namespace sinter
