// What states begin with: an initializer of the model, or --state-init.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "driver/inputs.h"
#include "driver/options.h"
#include "import/onnx.h"
#include "input_file.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

using Words = std::vector<std::string>;

struct Net {
  const char* name;
  const char* text;
  Words options;
  std::vector<double> y;  // of all steps, x being 1, 2, 3 ...
  Words inspected;
};

const Net kNets[] = {
    {"an initializer",
     "g (float[1] x, float[2] h = {3, 4}) => (float[2] y, float[2] hn) { y = Add(x, h)  hn = Neg(y) }",
     {"--state", "hn=h"},
     {4, 5, -2, -3, 5, 6},
     {"\"hn\", updated in place, begins with values of its own"}},
    {"one of several that a pattern names",
     "g (float[1] x, float[1] past_0, float[1] past_1 = {5}) => (float[1] y, float[1] now_0, float[1] "
     "now_1)\n"
     "{ now_0 = Add(past_0, x)  now_1 = Add(past_1, x)  y = Mul(now_0, now_1) }",
     {"--state", "now_*=past_*"},
     {6, 24, 66},
     {"\"now_0\", updated in place\n", "\"now_1\", updated in place, begins with 5\n"}},
    {"a value of the user's for all elements, before the initializer",
     "g (float[1] x, float[2] h = {3, 4}) => (float[2] y, float[2] hn) { y = Add(x, h)  hn = Neg(y) }",
     {"--state", "hn=h", "--state-init", "h=0.5"},
     {1.5, 1.5, .5, .5, 2.5, 2.5},
     {"begins with 0.5"}},
    {"zeros before the initializer",
     "g (float[1] x, float[2] h = {3, 4}) => (float[2] y, float[2] hn) { y = Add(x, h)  hn = Neg(y) }",
     {"--state", "hn=h", "--state-init", "h=0"},
     {1, 1, 1, 1, 2, 2},
     {"updated in place\n"}},
    {"slots in turn, of integers",
     "g (float[1] x, int64[2] n) => (float[2] y, int64[2] m)\n"
     "{ m = Add(n, n)  d = Sub(m, n)  f = Cast<to=1>(d)  y = Add(x, f) }",
     {"--state", "m=n", "--state-init", "n=1,-3"},
     {2, -2, 4, -4, 7, -9},
     {"begins with values of its own"}},
    {"a line of delays, each with its own",
     "g (float[1] x, float[1] a, float[1] b = {20}, float[1] c)\n"
     "=> (float[1] y, float[1] an, float[1] bn, float[1] cn)\n"
     "{ s = Add(c, x)  y = Add(s, a)  an = Neg(x)  bn = Identity(a)  cn = Identity(b) }",
     {"--state", "an=a", "--state", "bn=b", "--state", "cn=c", "--state-init", "a=10", "--state-init",
      "c=30"},
     {41, 21, 11, 0},
     {"slot 0 of 3 in turn, begins with 30", "begins with 20", "slot 2 of 3 in turn, begins with 10"}},
    {"a state that is kept",
     "g (float[1] x, float[2] h = {3, 4}) => (float[2] y, float[2] hn) { y = Add(x, h)  hn = Identity(h) }",
     {"--state", "hn=h"},
     {4, 5, 5, 6, 6, 7},
     {"kept as it is, begins with values of its own"}},
};

class InitialStateTest : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  void save_net(const std::string& text, int opset = 17) {
    save(parse_text(fmt::format("<ir_version: 10, opset_import: [\"\" : {}]>\n{}", opset, text)),
         path("m.onnx"));
  }
  static Words joined(Words a, const Words& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  // x for each step.
  void write_steps(int64_t steps) {
    std::vector<float> x;
    for (int64_t k = 1; k <= steps; ++k) x.push_back(static_cast<float>(k));
    write_input(path("x.npy"), Tensor::of(x, {steps, 1}));
  }
  TemporaryFolder folder_;
};

TEST_F(InitialStateTest, RunsBeginWithIt) {
  for (const Net& net : kNets) {
    SCOPED_TRACE(net.name);
    save_net(net.text);
    const int64_t each = std::string(net.text).find("float[2] y") != std::string::npos ? 2 : 1;
    const int64_t steps = static_cast<int64_t>(net.y.size()) / each;
    write_steps(steps);
    for (const char* target : {"host", "cortex-a76"}) {
      if (&net != kNets && target != std::string("host")) continue;
      expect(joined({"run", path("m.onnx"), "--target", target, "--steps", std::to_string(steps), "--in",
                     path("x.npy"), "--out", path("y.npy")},
                    net.options),
             0, "y float32");
      EXPECT_EQ(read_tensor_file(path("y.npy")).reals(), net.y) << target;
    }
    for (const std::string& said : net.inspected)
      expect(joined({"inspect", path("m.onnx")}, net.options), 0, said);
  }
}

// Steps that are stored: those of the model's own beginning, by its meaning.
TEST_F(InitialStateTest, VerifyKnowsIt) {
  save_net(kNets[0].text);
  for (const auto& [set, y] : {std::pair{0, 4.F}, std::pair{1, -2.F}}) {
    const std::string dir = path("set_" + std::to_string(set));
    std::filesystem::create_directory(dir);
    write_tensor_pb(dir + "/input_0.pb", Tensor::of(std::vector<float>{static_cast<float>(set + 1)}, {1}),
                    "x");
    write_tensor_pb(dir + "/output_0.pb", Tensor::of(std::vector<float>{y, y + (set == 0 ? 1 : -1)}, {2}),
                    "y");
  }
  expect({"verify", path("m.onnx"), "--state", "hn=h", "--data", path("set_0"), "--data", path("set_1")}, 0,
         "step 1");
  save_net(kNets[5].text);
  expect(joined({"verify", path("m.onnx")}, kNets[5].options), 0, "step 3");
}

// A cache of a fixed size that begins with rows of its own, also in fewer bytes.
TEST_F(InitialStateTest, CachesInFewerBytes) {
  save_net(
      "g (float[1,2,1,8] x, int64[1] at, float[1,2,6,8] pk, float[1,2,6,8] pv)\n"
      "=> (float[1,2,1,8] y, float[1,2,6,8] nk, float[1,2,6,8] nv)\n"
      "{ k = Neg(x)  v = Abs(x)  nk = TensorScatter<axis=2>(pk, k, at)  nv = TensorScatter<axis=2>(pv, v, "
      "at)\n"
      "  y = Attention(x, nk, nv) }",
      24);
  std::mt19937 random(7);
  const Tensor rows = random_tensor(DType::kF32, {1, 2, 6, 8}, random);
  write_input(path("rows.npy"), rows);
  write_input(path("x.npy"), random_tensor(DType::kF32, {1, 2, 1, 8}, random));
  write_input(path("at.npy"), Tensor::of(std::vector<int64_t>{2}));
  const Words options = {"--state", "n*=p*",        "--state-init",
                         "pk=0.25", "--state-init", "pv=" + path("rows.npy")};
  std::vector<double> exact;
  for (const auto& [cache, off] : {std::pair{"f32", 0.}, {"f16", 1e-3}, {"int8", 2e-2}}) {
    SCOPED_TRACE(cache);
    expect(joined({"run", path("m.onnx"), "--cache", cache, "--steps", "2", "--in", "x=" + path("x.npy"),
                   "--in", "at=" + path("at.npy"), "--out", path("y.npy")},
                  options),
           0, "y float32");
    const std::vector<double> y = read_tensor_file(path("y.npy")).reals();
    if (exact.empty()) exact = y;
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], exact[i], off) << i;
  }
  ASSERT_EQ(exact.size(), 32U);
  EXPECT_NE(exact[0], 0);
}

// A bundle under sanitizers: NAME_reset begins again; the map says so.
TEST_F(InitialStateTest, ResetBeginsAgain) {
  save_net(kNets[5].text);
  put(path("main.cpp"), R"(
#include <cstring>
#include "m.h"
alignas(64) static unsigned char arena[M_ARENA_BYTES + 1], state[M_STATE_BYTES];
int main() {
  std::memset(state, 0xff, sizeof state);
  m_reset(nullptr);
  for (int stream = 0; stream < 3; ++stream) {
    m_reset(state);
    const float want[] = {41, 21, 11, 0};
    for (int k = 0; k < 4 - stream; ++k) {
      float x = static_cast<float>(k + 1), y = 0;
      m_inputs in = {&x};
      m_outputs out = {&y};
      if (m_run(&in, &out, arena, state) != M_OK || y != want[k]) return 10 * stream + k + 1;
    }
  }
  return 0;
}
)");
  expect(joined({"compile", path("m.onnx"), "-o", path("net"), "--name", "m"}, kNets[5].options), 0, "m: ");
  const Words build = {"c++",
                       "-std=c++17",
                       "-O1",
                       "-Wall",
                       "-Wextra",
                       "-Wconversion",
                       "-Werror",
                       "-fsanitize=address,undefined",
                       "-I" + path("net"),
                       path("main.cpp"),
                       path("net/m.cpp"),
                       "-o",
                       path("program")};
  const Finished built = run_process(build, true);
  ASSERT_EQ(built.code, 0) << built.output;
  EXPECT_EQ(run_process({path("program")}, true).code, 0);
  const auto map = nlohmann::json::parse(contents(path("net/m.map")));
  EXPECT_EQ(map["states"][1]["initial"], "begins with 20");
  EXPECT_EQ(contents(path("net/m.h")).find("bytes of zeros will do"), std::string::npos);
  // One program for several targets, whose slots may differ.
  expect(joined({"compile", path("m.onnx"), "-o", path("both"), "--name", "m", "--target",
                 "cortex-a72,cortex-a76"},
                kNets[5].options),
         0, "m: ");
  EXPECT_NE(contents(path("both/m.cpp")).find("m_reset"), std::string::npos);
}

TEST_F(InitialStateTest, WhatIsRefused) {
  save_net(
      "g (float[1,2] x, float[1,2] h = {1,2}, float[N] d, float[N] e, float[P,2] past)\n"
      "=> (float[1,2] hn, float[N] dn, float[N] z, float[R,2] now)\n"
      "{ s = Neg(h)  hn = Add(x, s)  dn = Neg(d)  z = Neg(e)  now = Concat<axis=0>(past, x) }");
  write_input(path("wrong.npy"), Tensor::of(std::vector<int64_t>{1, 2}));
  write_input(path("rows.npy"), Tensor::of(std::vector<float>{1, 2}, {1, 2}));
  const struct {
    Words options;
    int code;
    const char* said;
  } cases[] = {
      {{"--state-init", "h=1"},
       2,
       "--state-init \"h=1\": give NAME=VALUE or NAME=FILE; the states (--state) are"},
      {{"--state", "dn=d", "--state-init", "h=1"}, 2, "the states (--state) are \"d\""},
      {{"--state", "dn=d", "--state-init", "d=1", "--state-init", "d=2"}, 2, "is given twice"},
      {{"--state", "dn=d", "--state-init", "d=nothing"}, 2, "neither a number nor a file"},
      {{"--state", "dn=d", "--state-init", "d=1,2", "--dim", "N<=3", "--dim", "P=1"},
       3,
       "it begins with float32[2]"},
      {{"--state", "hn=h", "--state-init", "h=1,2,3"}, 2, "3 values for 2 elements"},
      {{"--state", "dn=d", "--state-init", "d=" + path("wrong.npy"), "--dim", "N=2"},
       3,
       "--state-init gives int64[2], the model wants float32[2]"},
      {{"--state", "now=past", "--state-init", "past=" + path("rows.npy"), "--dim", "P=0..4", "--dim", "N=1"},
       3,
       "a state that grows begins with no rows: let a run write these"},
  };
  for (const auto& c : cases)
    expect(joined({"compile", path("m.onnx"), "-o", path("net")}, c.options), c.code, c.said);
}

}  // namespace
}  // namespace sinter
