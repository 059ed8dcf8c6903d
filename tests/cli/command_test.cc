// Exit codes and messages of the command line.
#include <gtest/gtest.h>

#include "program.h"

namespace sinter {
namespace {

const char* const kRelu = "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }";
const char* const kFree = "g (float[N,3] x, float[M] z) => (float[N,3] y) { y = Relu(x) }";

class Command : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  std::string model(const char* graph) {
    save_text(graph, path("m.onnx"));
    return path("m.onnx");
  }
  TemporaryFolder folder_;
};

TEST_F(Command, HelpAndVersion) {
  expect({"--help"}, 0, "Exit codes");
  expect({"--version"}, 0, "sinter 0.");
  expect({"compile", "--help"}, 0, "--dim");
  expect({"targets"}, 0, "cortex-a72");
  expect({"ops"}, 0, "Softmax");
  expect({"passes"}, 0, "fold_constants");
}

TEST_F(Command, WrongUsage) {
  const std::string m = model(kRelu), out = path("out");
  expect({}, 2, "subcommand");
  expect({"frobnicate"}, 2, "subcommand");
  expect({"compile"}, 2, "MODEL");
  expect({"compile", m}, 2, "--output");
  expect({"compile", m, "-o", out, "--nonsense"}, 2, "--nonsense");
  expect({"compile", m, "-o", out, "--target", "z80"}, 2, "cortex-a53");
  expect({"compile", m, "-o", out, "--dim", "N"}, 2, "NAME=4");
  expect({"compile", m, "-o", out, "--dim", "N=x"}, 2, "\"x\" is no whole number");
  expect({"compile", m, "-o", out, "--dim", "N=9..3"}, 2, "no range");
  expect({"compile", m, "-o", out, "--threads", "0"}, 2, "--threads");
  expect({"compile", m, "-o", out, "--weights", "lost"}, 2, "weights");
  expect({"compile", m, "-o", out, "--max-ram", "much"}, 2, "--max-ram");
  expect({"compile", m, "-o", out, "--name", "a b"}, 2, "a_b would be");
  expect({"compile", m, "-o", out, "--skip-pass", "magic"}, 2, "no pass \"magic\"");
  expect({"compile", m, "-o", out, "--const", "q=1"}, 2, "the inputs are \"x\"");
  expect({"run"}, 2, "--bundle");
  expect({"run", m}, 2, "no --in for the input \"x\"");
  expect({"run", m, "--in", path("nothing.npy")}, 2, "nothing.npy");
  expect({"run", "--bundle", path("nowhere")}, 2, "no bundle");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(Command, Refusals) {
  const std::string out = path("out");
  expect({"compile", path("none.onnx"), "-o", out}, 3, "none.onnx: ");
  put(path("broken.onnx"), "\x0a\xff\xff\xff\xff garbage");
  expect({"compile", path("broken.onnx"), "-o", out}, 3, "broken.onnx: ");
  // Every problem in one run, each with node and op.
  const std::string m =
      model("g (float[2] x) => (float[2] y) { a = Frobnicate(x) b = Twiddle(a) y = Add(a, b) }");
  expect({"compile", m, "-o", out}, 3, "(Frobnicate): ");
  expect({"compile", m, "-o", out}, 3, "(Twiddle): ");
  const std::string f = model(kFree);
  expect({"compile", f, "-o", out}, 3, "--dim \"N<=MAX\"");
  expect({"compile", f, "-o", out}, 3, "--dim M=VALUE");
  expect({"compile", f, "-o", out, "--dim", "K=3"}, 3, "\"K\"");
  expect({"verify", f}, 3, "--dim");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(Command, Budgets) {
  const std::string m =
      model("g (float[64,64] x) => (float[64,64] y) { a = MatMul(x, x) b = MatMul(a, x) y = MatMul(b, a) }");
  const std::string out = path("out");
  expect({"compile", m, "-o", out, "--max-ram", "1K"}, 3, "--max-ram allows 1024");
  EXPECT_FALSE(std::filesystem::exists(out));
  expect({"compile", m, "-o", out, "--target", "scalar", "--max-ram", "1M", "--max-stack", "64K",
          "--max-flash", "1M"},
         0, "");
  expect({"compile", m, "-o", path("p"), "--target", "scalar", "--max-flash", "100"}, 3,
         "--max-flash allows 100");
  expect({"compile", m, "-o", path("p"), "--target", "scalar", "--max-stack", "8"}, 3,
         "--max-stack allows 8");
  EXPECT_FALSE(std::filesystem::exists(path("p")));
}

TEST_F(Command, SmallWeights) {
  // 17 columns take two vectors of 16, of which the second is stored without what it lacks.
  const std::string narrow = model(
      "g (float[4,640] x) => (float[4,17] y) { k = Constant <value = float[2] {1.0, 2.0}> () s = Constant "
      "<value_ints = "
      "[640, 17]> () h = Constant <value_ints = [5440, 1]> () r = Expand(k, h) w = Reshape(r, s) y = "
      "MatMul(x, "
      "w) }");
  const std::string out = path("out");
  expect({"compile", narrow, "-o", out, "--target", "avx512", "--small-weights"}, 0, "");
  EXPECT_LT(
      std::filesystem::file_size(path("out/" + std::filesystem::path(narrow).stem().string() + ".weights")),
      640 * 17 * 4 * 11 / 10);
  // 17 neurons of an RNN take two vectors: more than a tenth beyond the model's.
  const std::string wide = model(
      "g (float[4,1,640] x) => (float[4,1,1,17] y) { k = Constant <value = float[1] {1.0}> () s = Constant "
      "<value_ints = [1, 17, 640]> () t = Constant <value_ints = [1, 17, 17]> () w = Expand(k, s) r = "
      "Expand(k, t) y = RNN <hidden_size = 17> (x, w, r) }");
  expect({"compile", wide, "-o", out, "--target", "avx512", "--small-weights"}, 0, "more than the budget");
  // Bytes stay bytes on processors without their dot products, too.
  const std::string bytes = model(
      "g (float[4,640] x) => (float[4,32] y) { k = Constant <value = int8[2] {1, -2}> () s = Constant "
      "<value_ints = [640, 32]> () h = Constant <value_ints = [10240, 1]> () r = Expand(k, h) w = Reshape(r, "
      "s) f = Constant <value = float {0.5}> () z = Constant <value = int8 {3}> () q = QuantizeLinear(x, f, "
      "z) d = DequantizeLinear(q, f, z) e = DequantizeLinear(w, f) y = MatMul(d, e) }");
  for (const char* target : {"cortex-a72", "avx2", "scalar"}) {
    expect({"compile", bytes, "-o", out, "--target", target, "--small-weights", "--name", "bytes"}, 0, "");
    EXPECT_LT(std::filesystem::file_size(path("out/bytes.weights")), 640 * 32 * 11 / 10) << target;
  }
  const std::string gemv = model("g (float[4,64] x, float[64,17] w) => (float[4,17] y) { y = MatMul(x, w) }");
  expect({"compile", gemv, "-o", out, "--target", "avx512", "--small-weights"}, 0, "");
}

// Winograd's weights are several times the model's: within a budget, by default twice that, or without one.
TEST_F(Command, BudgetOfWeights) {
  onnx::ModelProto two = parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,64,32,32] x) => (float[1,64,32,32] y) { a = "
      "Conv <pads = "
      "[1, 1, 1, 1]> (x, w) y = Conv <pads = [1, 1, 1, 1]> (a, v) }");
  for (const char* name : {"w", "v"}) {
    onnx::TensorProto& t = *two.mutable_graph()->add_initializer();
    t.set_name(name);
    t.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t d : {64, 64, 3, 3}) t.add_dims(d);
    for (int i = 0; i < 64 * 64 * 9; ++i)
      t.add_float_data(static_cast<float>((i * 37 + name[0]) % 101) / 101 - 0.5F);
  }
  save(two, path("two.onnx"));
  const std::string m = path("two.onnx");
  const auto weights = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"compile",    m,        "-o", path("out"), "--target",
                                        "cortex-a72", "--name", "net"};
    command.insert(command.end(), more.begin(), more.end());
    expect(command, 0, "times the model's)");
    return std::filesystem::file_size(path("out/net.weights"));
  };
  const size_t own = 2 * 64 * 64 * 9 * 4;
  const size_t usual = weights({}), fast = weights({"--fast-weights"});
  EXPECT_GT(fast, 2 * own + 4096 + 64);
  EXPECT_LE(usual, 2 * own + 4096 + 64);
  EXPECT_GT(usual, own + 64);
  EXPECT_LE(weights({"--max-weights", "1.2x"}), own + own / 5 + 4096);
  EXPECT_LE(weights({"--max-weights", "400K"}), 400u << 10);
  EXPECT_EQ(weights({"--max-weights", "9x"}), fast);
  expect({"compile", m, "-o", path("out"), "--max-weights", "0.05x"}, 2, "0.1x to 1000x");
  expect({"compile", m, "-o", path("out"), "--max-weights", "many"}, 2, "no size");
  expect({"compile", m, "-o", path("out"), "--small-weights", "--fast-weights"}, 2, "excludes");
}

TEST_F(Command, ToolchainFailure) {
  const std::string m = model(kRelu);
  write_tensor_pb(path("x.pb"), Tensor(DType::kF32, {2, 3}), "x");
  setenv("CXX", "/bin/false", 1);
  expect({"run", m, "--in", path("x.pb")}, 4, "compiler failed");
  setenv("CXX", "no-such-compiler", 1);
  expect({"run", m, "--in", path("x.pb")}, 4, "no-such-compiler");
  unsetenv("CXX");
}

TEST_F(Command, CompileWritesABundle) {
  const std::string m = model(kRelu);
  expect({"compile", m, "-o", path("deep/er"), "--name", "net", "--target", "scalar"}, 0,
         "net: 1 layers for scalar");
  for (const char* f :
       {"net.h", "net.cpp", "net_main.cpp", "net.weights", "net_weights.S", "net.map", "net.cmake"})
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / "deep/er" / f)) << f;
  put(path("file"), "");
  expect({"compile", m, "-o", path("file/below")}, 3, "cannot create the folder");
}

// The same bytes wherever the model lies and the bundle goes.
TEST_F(Command, OutputIsDeterministic) {
  const char* const graph =
      "g (float[N,3,9,9] x) => (float[N,4,7,7] y)\n"
      "<float[4,3,3,3] w = "
      "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,"
      "1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,"
      "7,8,9,1,2,3,4,5,6,7,8,9}>\n"
      "{ c = Conv(x, w) s = Sigmoid(c) y = Mul(c, s) }";
  for (const char* sub : {"a", "b/c"}) {
    std::filesystem::create_directories(folder_.path() / sub);
    save_text(graph, folder_.path() / sub / "m.onnx");
    expect({"compile", path(std::string(sub) + "/m.onnx"), "-o", path(std::string(sub) + "/out"), "--dim",
            "N<=4", "--target", "scalar"},
           0, "m: ");
  }
  const auto a = files_of(path("a/out")), b = files_of(path("b/c/out"));
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, bytes] : a) EXPECT_TRUE(b.count(name) && b.at(name) == bytes) << name;
}

}  // namespace
}  // namespace sinter
