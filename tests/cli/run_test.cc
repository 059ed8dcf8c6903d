// sinter run: from files to files through the C++ compiler.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

#include "driver/options.h"
#include "input_file.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

class Run : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  void write(const std::string& name, const Tensor& t) { write_input(path(name), t); }
  TemporaryFolder folder_;
};

TEST_F(Run, TensorFilesOfBothKinds) {
  save_text("g (float[N,3] x, float[3] b) => (float[N,3] y, float[N,3] z) { y = Add(x, b) z = Neg(x) }",
            path("m.onnx"));
  write("x.pb", Tensor::of(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}));
  write("b.npy", Tensor::of(std::vector<float>{10, 20, 30}, {3}));
  // By name in any order; an output without a file is printed.
  expect({"run", path("m.onnx"), "--in", "b=" + path("b.npy"), "--in", path("x.pb"), "--out", path("y.npy")},
         0, "z float32[2,3]: -1 -2 -3 -4 -5 -6");
  const Tensor y = read_tensor_file(path("y.npy"));
  EXPECT_EQ(y.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(y.reals(), (std::vector<double>{11, 22, 33, 14, 25, 36}));
  expect({"run", path("m.onnx"), "--in", path("x.pb"), "--in", path("x.pb")}, 2, "\"b\"");
  expect({"run", path("m.onnx"), "--in", path("x.pb")}, 2, "no --in for the input \"b\"");
  expect({"run", path("m.onnx"), "--in", path("x.pb"), "--in", path("b.npy"), "--in", path("b.npy")}, 2,
         "no input is left");
}

// What all programs have in common is compiled once, and again for other flags. No cache, or one that can't
// be written, changes nothing but time.
TEST_F(Run, CommonPartIsKept) {
  save_text("g (float[2] x) => (float[2] y) { y = Neg(x) }", path("m.onnx"));
  write("x.npy", Tensor::of(std::vector<float>{1, 2}, {2}));
  namespace fs = std::filesystem;
  const fs::path cache = path("cache");
  const auto run_with = [&](const std::string& folder, const char* target) {
    ASSERT_EQ(setenv("SINTER_CACHE_DIR", folder.c_str(), 1), 0);
    expect({"run", path("m.onnx"), "--target", target, "--in", path("x.npy")}, 0, "y float32[2]: -1 -2");
  };
  const char* const before = std::getenv("SINTER_CACHE_DIR");
  const std::string usual = before ? before : "";
  const auto kept = [&] {
    std::map<fs::path, fs::file_time_type> files;
    for (const auto& f : fs::directory_iterator(cache)) files[f.path()] = f.last_write_time();
    return files;
  };
  run_with(cache.string(), "scalar");
  const auto first = kept();
  ASSERT_EQ(first.size(), 1u);
  run_with(cache.string(), "scalar");
  EXPECT_EQ(kept(), first);
  run_with(cache.string(), "host");
  EXPECT_EQ(kept().size(), 2u);
  std::ofstream(path("file")) << "no folder";
  run_with(path("file") + "/cache", "scalar");
  run_with("", "scalar");
  EXPECT_EQ(kept().size(), 2u);
  if (before)
    setenv("SINTER_CACHE_DIR", usual.c_str(), 1);
  else
    unsetenv("SINTER_CACHE_DIR");
}

// What an input's elements decide is bounded by --dim, and a run beyond it is an error of the run.
TEST_F(Run, ElementsOfInputsDecideExtents) {
  save_text(
      "g (float[1,3] x, int64[1] n) => (float[A,B] y) { c = Constant<value = int64[1] {3}>() "
      "s = Concat<axis = 0>(n, c) y = Expand(x, s) }",
      path("m.onnx"));
  write("x.npy", Tensor::of(std::vector<float>{1, 2, 3}, {1, 3}));
  write("n.npy", Tensor::of(std::vector<int64_t>{2}));
  expect({"run", path("m.onnx"), "--in", path("x.npy"), "--in", path("n.npy")}, 3, "give --dim \"n<=MAX\"");
  expect({"compile", path("m.onnx"), "-o", path("net"), "--dim", "n<=8"}, 0, "m: ");
  const std::vector<std::string> run = {"run",         "--bundle", path("net"),  "--in",
                                        path("x.npy"), "--in",     path("n.npy")};
  expect(run, 0, "y float32[2,3]: 1 2 3 1 2 3");
  write("n.npy", Tensor::of(std::vector<int64_t>{8}));
  expect(run, 0, "y float32[8,3]: 1 2 3 1 2 3");
  write("n.npy", Tensor::of(std::vector<int64_t>{9}));
  expect(run, 6, "error 4");
}

TEST_F(Run, OnlyWhatIsWanted) {
  save_text("g (float[2] a, float[2] b) => (float[2] sum, float[2] left) { sum = Add(a, b) left = Neg(a) }",
            path("m.onnx"));
  write("a.npy", Tensor::of(std::vector<float>{1, 2}, {2}));
  write("b.npy", Tensor::of(std::vector<float>{10, 20}, {2}));
  const std::string a = path("a.npy"), b = path("b.npy");
  expect({"run", path("m.onnx"), "--only", "left", "--in", a}, 0, "left float32[2]: -1 -2");
  expect({"run", path("m.onnx"), "--only", "left", "--in", a, "--in", b}, 0, "left float32[2]: -1 -2");
  expect({"run", path("m.onnx"), "--only", "sum", "--in", a, "--in", "b=" + b}, 0, "sum float32[2]: 11 22");
  expect({"run", path("m.onnx"), "--only", "summ", "--in", a, "--in", b}, 3, "did you mean \"sum\"?");
  expect({"compile", path("m.onnx"), "--only", "left", "-o", path("net")}, 0, "m: ");
  EXPECT_NE(contents(path("net/m.cpp")).find("--only left"), std::string::npos);
  // verify: output_1.pb is the model's second output, whatever is left.
  std::filesystem::create_directories(path("data"));
  write("data/input_0.pb", Tensor::of(std::vector<float>{1, 2}, {2}));
  write("data/output_0.pb", Tensor::of(std::vector<float>{7, 7}, {2}));
  write("data/output_1.pb", Tensor::of(std::vector<float>{-1, -2}, {2}));
  expect({"verify", path("m.onnx"), "--only", "left", "--data", path("data")}, 0,
         "1 outputs as expected, also as stored");
}

// Files are held against what the model takes before anything is built.
TEST_F(Run, FilesThatDoNotFit) {
  save_text("g (float[N,3] a, float[N,3] b) => (float[N,3] y) { y = Add(a, b) }", path("m.onnx"));
  write("a.npy", Tensor(DType::kF32, {2, 3}));
  write("double.npy", Tensor(DType::kF64, {2, 3}));
  write("wide.npy", Tensor(DType::kF32, {2, 4}));
  write("flat.npy", Tensor(DType::kF32, {6}));
  write("long.npy", Tensor(DType::kF32, {9, 3}));
  const std::string a = path("a.npy"), bounds = "N<=8";
  const auto run = [&](const std::string& b, const std::string& said) {
    expect({"run", path("m.onnx"), "--dim", bounds, "--in", a, "--in", path(b)}, 2, said);
  };
  run("double.npy", "the input \"b\" takes float32[N (1..8),3], its file has float64[2,3]");
  run("flat.npy", "its file has float32[6]");
  run("wide.npy", "its file has float32[2,4]: axis 1 is 4");
  run("long.npy", "its file has float32[9,3]: axis 0 is 9");
  write("long.npy", Tensor(DType::kF32, {3, 3}));
  run("long.npy", "axis 0 is 3, but N is 2 by \"a\" axis 0");
  expect({"compile", path("m.onnx"), "--dim", bounds, "-o", path("net")}, 0, "m: ");
  expect({"run", "--bundle", path("net"), "--in", a, "--in", path("long.npy")}, 2,
         "but N is 2 by \"a\" axis 0");
}

TEST_F(Run, ABundleTakesAnySizeWithinItsBounds) {
  save_text("g (float[N,3] x) => (float[N,3] y) { y = Neg(x) }", path("m.onnx"));
  expect({"compile", path("m.onnx"), "-o", path("net"), "--dim", "N<=4"}, 0, "m: ");
  for (const int64_t n : {1, 4}) {
    std::vector<float> v(static_cast<size_t>(3 * n), 0.5f);
    write("x.npy", Tensor::of(v, {n, 3}));
    expect({"run", "--bundle", path("net"), "--in", path("x.npy")}, 0,
           fmt::format("y float32[{},3]: -0.5", n));
  }
  write("x.npy", Tensor(DType::kF32, {5, 3}));
  expect({"run", "--bundle", path("net"), "--in", path("x.npy")}, 2,
         "the input \"x\" takes float32[N (0..4),3], its file has float32[5,3]: axis 0 is 5");
  write("x.npy", Tensor(DType::kF64, {2, 3}));
  expect({"run", "--bundle", path("net"), "--in", path("x.npy")}, 2, "its file has float64[2,3]");
}

TEST_F(Run, WeightsInAFile) {
  save_text("g (float[2] x) => (float[2] y) <float[2] w = {3, 5}> { y = Mul(x, w) }", path("m.onnx"));
  write("x.npy", Tensor::of(std::vector<float>{1, 2}, {2}));
  expect({"run", path("m.onnx"), "--in", path("x.npy"), "--weights", "file", "--keep", path("kept")}, 0,
         "y float32[2]: 3 10");
  EXPECT_FALSE(std::filesystem::exists(path("kept/m_weights.S")));
  expect({"verify", path("m.onnx"), "--weights", "file"}, 0, "1 outputs as expected");
  expect({"bench", path("m.onnx"), "--weights", "file", "--repeat", "2"}, 0, "min ");
  // Weights of another size are refused, not read past.
  const Finished f =
      run_process({path("kept/m_main"), "--in", path("x.npy"), "--weights", path("x.npy")}, true);
  EXPECT_EQ(f.code, 2) << f.output;
}

TEST_F(Run, ConstantsAndDims) {
  save_text("g (float[N] x, float s) => (float[N] y) { y = Mul(x, s) }", path("m.onnx"));
  write("x.npy", Tensor::of(std::vector<float>{1, 2}, {2}));
  expect({"run", path("m.onnx"), "--const", "s=2.5", "--in", path("x.npy")}, 0, "y float32[2]: 2.5 5");
  expect({"run", path("m.onnx"), "--const", "s=2.5", "--in", path("x.npy"), "--dim", "N<=8"}, 0,
         "y float32[2]: 2.5 5");
  expect({"run", path("m.onnx"), "--const", "s=2.5", "--in", path("x.npy"), "--dim", "N=3"}, 2, "[3]");
}

TEST_F(Run, Pictures) {
  // 2 x 1 pixels: red, then blue.
  const unsigned char pixels[] = {255, 0, 0, 0, 0, 102};
  ASSERT_TRUE(stbi_write_png(path("p.png").c_str(), 2, 1, 3, pixels, 6));
  save_text("g (float[1,3,1,2] x) => (float[1,3,1,2] y) { y = Identity(x) }", path("nchw.onnx"));
  save_text("g (float[1,4,2,3] x) => (float[1,4,2,3] y) { y = Identity(x) }", path("nhwc.onnx"));
  save_text("g (float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Identity(x) }", path("free.onnx"));
  save_text("g (uint8[1,3,2,2] x) => (uint8[1,3,2,2] y) { y = Identity(x) }", path("box.onnx"));
  const std::string in = path("p.png");
  expect({"run", path("nchw.onnx"), "--in", in}, 0, ": 255 0 0 0 0 102");
  expect({"run", path("nhwc.onnx"), "--in", in}, 0, ": 255 0 0 0 0 102 255 0 0 0 0 102 255");
  expect({"run", path("nchw.onnx"), "--in", in, "--image", "x: order=bgr"}, 0, ": 0 102 0 0 255 0");
  expect({"run", path("nchw.onnx"), "--in", in, "--image", "scale=1/255 mean=0.5 std=0.5"}, 0,
         ": 1 -1 -1 -1 -1 -0.2");
  expect({"run", path("free.onnx"), "--in", in}, 0, "y float32[1,3,1,2]: 255 0 0 0 0 102");
  expect({"run", path("box.onnx"), "--in", in, "--image", "fit=stretch"}, 0,
         ": 255 0 255 0 0 0 0 0 0 102 0 102");
  // One pixel high: scaled to cover, only the middle two of four columns stay.
  expect({"run", path("box.onnx"), "--in", in, "--image", "fit=crop"}, 0, ": 191 64 191 64");
  expect({"run", path("box.onnx"), "--in", in, "--image", "fit=letterbox"}, 0, "y uint8[1,3,2,2]");
  expect({"run", path("box.onnx"), "--in", in, "--image", "order=gray"}, 2, "3 channel");
  expect({"run", path("box.onnx"), "--in", in, "--image", "size=3"}, 2, "size=3");
  put(path("bad.png"), "\x89PNG\r\n\x1a\nno picture");
  expect({"run", path("box.onnx"), "--in", path("bad.png")}, 2, "is no picture");
}

TEST_F(Run, OperatorsOfTheUser) {
  put(path("twice.c"),
      "#include \"twice_custom.h\"\n"
      "int twice(const sinter_tensor* in, const sinter_tensor* out, const twice_attributes* a) {\n"
      "  const float* x = (const float*)in[0].data; float* y = (float*)out[0].data;\n"
      "  for (int64_t i = 0; i < in[0].dims[0]; ++i) y[i] = (float)a->factor * x[i];\n"
      "  return x[0] < 0; }\n");
  put(path("ops.json"),
      R"json([{"domain": "my.ops", "op": "Twice", "inputs": ["x"], "outputs": ["y"], "attributes": {"factor": 2},
           "shape": "same(0)", "dtype": "same(0)", "function": "twice", "sources": ["twice.c"]
}])json");
  save(parse_text("<ir_version: 8, opset_import: [\"\" : 17, \"my.ops\" : 1]>\n"
                  "g (float[3] x) => (float[3] y) { y = my.ops.Twice<factor = 3>(x) }"),
       path("m.onnx"));
  write("x.npy", Tensor::of(std::vector<float>{1, 2, 4}, {3}));
  expect({"run", path("m.onnx"), "--in", path("x.npy")}, 3, "(Twice)");
  expect({"run", path("m.onnx"), "--in", path("x.npy"), "--custom-ops", path("ops.json")}, 0, ": 3 6 12");
  write("x.npy", Tensor::of(std::vector<float>{-1, 2, 4}, {3}));
  expect({"run", path("m.onnx"), "--in", path("x.npy"), "--custom-ops", path("ops.json")}, 6,
         "a custom operator's function failed");
}

TEST_F(Run, Aarch64UnderQemu) {
  if (find_program("aarch64-linux-gnu-g++").empty() ||
      (find_program("qemu-aarch64-static").empty() && find_program("qemu-aarch64").empty()))
    GTEST_SKIP() << "no aarch64-linux-gnu-g++ or no qemu-aarch64";
  save_text("g (float[5] x) => (float[5] y) { y = Relu(x) }", path("m.onnx"));
  write("x.npy", Tensor::of(std::vector<float>{-1, 2, -3, 4, NAN}, {5}));
  expect({"run", path("m.onnx"), "--in", path("x.npy"), "--target", "cortex-a53"}, 0,
         "y float32[5]: 0 2 0 4 nan");
  expect({"bench", path("m.onnx"), "--target", "cortex-a53", "--repeat", "1", "--json", path("b.json")}, 0,
         "an emulator: the times say nothing about a cortex-a53");
  EXPECT_NE(contents(path("b.json")).find("\"emulator\": \"qemu-aarch64"), std::string::npos);
}

TEST_F(Run, VerifyFindsNothingWrongAndStoredDifferences) {
  save_text("g (float[4] x) => (float[4] y) { a = Exp(x) y = Neg(a) }", path("m.onnx"));
  expect({"verify", path("m.onnx")}, 0, "1 outputs as expected");
  std::filesystem::create_directory(path("data"));
  write("data/input_0.pb", Tensor::of(std::vector<float>{0, 0, 0, 0}, {4}));
  write("data/output_0.pb", Tensor::of(std::vector<float>{-1, -1, -1, -1}, {4}));
  expect({"verify", path("m.onnx"), "--data", path("data")}, 0, "also as stored");
  write("data/output_0.pb", Tensor::of(std::vector<float>{-1, -1, -1.25, -1}, {4}));
  expect({"verify", path("m.onnx"), "--data", path("data")}, 1, "at [2] -1 instead of -1.25");
}

// 32 sums of the same numbers in other orders: which five of them are the greatest is up to rounding.
TEST_F(Run, VerifyTakesOverChoicesAmongEquals) {
  std::vector<float> numbers(64);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 1 / static_cast<float>(i + 3);
  std::vector<std::string> rows(numbers.size());
  std::mt19937 random(1);
  for (int column = 0; column < 32; ++column) {
    std::shuffle(numbers.begin(), numbers.end(), random);
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] += fmt::format("{}{:.9g}", column ? ", " : "", numbers[i]);
  }
  save_text(
      fmt::format("g (float[1,64] x) => (float[1,5] v, int64[1,5] y) <float[64,32] w = {{{}}}, int64[1] "
                  "k = {{5}}> {{ s = MatMul(x, w)  v, y = TopK(s, k) }}",
                  fmt::join(rows, ", ")),
      path("m.onnx"));
  write("x.npy", Tensor::of(std::vector<float>(64, 1), {1, 64}));
  expect({"verify", path("m.onnx"), "--in", path("x.npy")}, 0, "chooses otherwise among numbers that agree");
}

TEST_F(Run, InspectNamesABranchThatCannotRun) {
  save_text(
      "g (float[2,3] x, bool c) => (float[M,K] y) { y = If (c) <then_branch = t () => (float[P,Q] a) { a = "
      "Relu(x) }, else_branch = e () => (float[R,S] b) { b = MatMul(x, x) }> }",
      path("m.onnx"));
  expect({"inspect", path("m.onnx")}, 0,
         "its else branch is an error of the run: \"b\" (MatMul): inner extents of [2,3] and [2,3]");
}

TEST_F(Run, BenchAndInspectWriteTheirFiles) {
  save_text("g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { y = Mul(x, w) }", path("m.onnx"));
  expect({"bench", path("m.onnx"), "--repeat", "3", "--json", path("b.json")}, 0, "of 3 runs");
  const std::string j = contents(path("b.json"));
  for (const char* key :
       {"min_us", "median_us", "arena_bytes", "weights_bytes", "stack_bytes", "text_bytes", "layers"})
    EXPECT_NE(j.find(fmt::format("\"{}\"", key)), std::string::npos) << key;
  expect({"inspect", path("m.onnx"), "--json", path("i.json")}, 0, "1 layers");
  EXPECT_NE(contents(path("i.json")).find("\"layers\""), std::string::npos);
}

}  // namespace
}  // namespace sinter
