// --random state: random numbers that differ from run to run, and follow from a seed.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "driver/interrupt.h"
#include "driver/options.h"
#include "driver/process.h"
#include "input_file.h"
#include "ir/tensor.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

// One layer of each kind; two of them have the same seed in the model.
const char* const kNoise =
    "g (float[2,500] x) => (float[2,500] a, float[2,500] b, float[2,500] c, float[2,500] d, float[2,500] e,\n"
    "float[2,200] f)\n"
    "{ a = RandomNormalLike<mean=1.0, scale=2.0>(x)  b = RandomNormal<shape=[2,500], seed=1.0>()\n"
    "  c = RandomUniform<shape=[2,500], seed=1.0, low=-1.0>()  d = RandomUniformLike(x)\n"
    "  s = Sigmoid(x)  e = Bernoulli(s)  k = Multinomial<sample_size=200>(x)  f = Cast<to=1>(k) }";

// Each iteration, and each branch, draws numbers of its own.
const char* const kBodies =
    "g (float[4] x, int64 n, float[3,2] rows, float[1] carried) => (float[k,4] a, float[3,2] b, float[4] c)\n"
    "{ yes = Constant<value = bool {1}>()\n"
    "  a = Loop(n, yes) <body = t (int64 i, bool ci) => (bool co, float[4] r)\n"
    "    { co = Identity(ci)  r = RandomUniformLike(x) }>\n"
    "  last, b = Scan(carried, rows) <num_scan_inputs = 1, body = s (float[1] h, float[2] row) =>\n"
    "    (float[1] hn, float[2] y) { hn = Identity(h)  e = RandomUniform<shape=[2]>()  y = Add(e, row) }>\n"
    "  zero = Constant<value_float = 0.0>()  sum = ReduceSum<keepdims=0>(x)  more = Greater(sum, zero)\n"
    "  c = If(more) <then_branch = u () => (float[4] p) { p = RandomUniformLike(x) },\n"
    "                else_branch = v () => (float[4] q) { q = RandomNormalLike(x) }> }";

// A speech model in small (VITS): noise in the durations decides how many frames there are, and there is
// noise in each.
const char* const kSpeech =
    "g (int64[1,n] ids, float[9,4] table, float[4,1] w) => (float[f,4] y)\n"
    "{ h3 = Gather(table, ids)  to = Constant<value = int64[2] {-1,4}>()  h = Reshape(h3, to)\n"
    "  p = MatMul(h, w)  e = RandomNormalLike(p)  half = Constant<value_float = 0.5>()  q = Mul(e, half)\n"
    "  logw = Add(p, q)  v = Exp(logw)  u = Ceil(v)  five = Constant<value_float = 5.0>()  one = "
    "Constant<value_float = 1.0>()\n"
    "  d = Clip(u, one, five)  flat = Constant<value = int64[1] {-1}>()  df = Reshape(d, flat)\n"
    "  axis = Constant<value = int64 {0}>()  ends = CumSum(df, axis)  sum = ReduceMax<keepdims=0>(ends)  "
    "frames = Cast<to=7>(sum)\n"
    "  z = Constant<value = int64 {0}>()  i = Constant<value = int64 {1}>()  t = Range(z, frames, i)\n"
    "  tf = Cast<to=1>(t)  c1 = Constant<value = int64[1] {1}>()  tc = Unsqueeze(tf, c1)\n"
    "  past = LessOrEqual(ends, tc)  pi = Cast<to=7>(past)  k = ReduceSum<keepdims=0>(pi, c1)\n"
    "  m = Gather(h, k)  noise = RandomNormalLike(m)  y = Add(m, noise) }";

class RandomTest : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }

  void write(const std::string& name, const Tensor& t) { write_input(path(name), t); }

  // The outputs of a run of the program, joined over its steps.
  std::vector<std::vector<double>> run(const std::vector<std::string>& outputs,
                                       const std::vector<std::string>& options) {
    std::vector<std::string> words = {"run", path("m.onnx"), "--random", "state"};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string& o : outputs) words.insert(words.end(), {"--out", o + "=" + path(o + ".npy")});
    const Finished f = sinter_program(words);
    EXPECT_EQ(f.code, 0) << f.output;
    std::vector<std::vector<double>> results;
    results.reserve(outputs.size());
    for (const std::string& o : outputs)
      results.push_back(f.code == 0 ? read_tensor_file(path(o + ".npy")).reals() : std::vector<double>{});
    return results;
  }

  TemporaryFolder folder_;
};

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const std::vector<double>& v) {
  Moments m;
  for (const double x : v) m.mean += x / static_cast<double>(v.size());
  for (const double x : v) m.variance += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
  return m;
}
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const Moments x = moments(a), y = moments(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - x.mean) * (b[i] - y.mean);
  return sum / static_cast<double>(a.size()) / std::sqrt(x.variance * y.variance);
}
std::vector<double> step(const std::vector<double>& all, size_t k, size_t steps) {
  const auto n = static_cast<std::ptrdiff_t>(all.size() / steps), from = n * static_cast<std::ptrdiff_t>(k);
  return {all.begin() + from, all.begin() + from + n};
}

TEST_F(RandomTest, RunsDifferAndFollowFromTheSeed) {
  save_text(kNoise, path("m.onnx"));
  write("x.npy", Tensor(DType::kF32, {2, 500}));
  const std::vector<std::string> names = {"a", "b", "c", "d", "e", "f"};
  const std::vector<std::string> in = {"--in", "x=" + path("x.npy"), "--steps", "3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), in.begin(), in.end());
    return run(names, more);
  };
  const auto first = with({}), seven = with({"--seed", "7"});
  EXPECT_EQ(first, with({"--seed", "0"}));
  EXPECT_EQ(seven, with({"--seed", "7", "--target", "cortex-a76"}));
  const Moments want[] = {{1, 4}, {0, 1}, {0, 4.0 / 12}, {.5, 1.0 / 12}, {.5, .25}, {249.5, 20833}};
  for (size_t i = 0; i < names.size(); ++i) {
    const Moments m = moments(seven[i]);
    const double deviation = std::sqrt(want[i].variance / static_cast<double>(seven[i].size()));
    EXPECT_NEAR(m.mean, want[i].mean, 4 * deviation) << names[i];
    EXPECT_NEAR(m.variance, want[i].variance, .1 * want[i].variance) << names[i];
    EXPECT_LT(std::abs(correlation(first[i], seven[i])), .12) << names[i];
    for (size_t k = 0; k < 3; ++k)
      EXPECT_LT(std::abs(correlation(step(seven[i], k, 3), step(seven[i], (k + 1) % 3, 3))), .2) << names[i];
    for (size_t j = 0; j < i; ++j) {
      if (seven[i].size() != seven[j].size()) continue;
      EXPECT_LT(std::abs(correlation(seven[i], seven[j])), .08) << names[i] << names[j];
    }
  }
}

TEST_F(RandomTest, IterationsAndBranchesDiffer) {
  save_text(kBodies, path("m.onnx"));
  write("x.npy", Tensor::of(std::vector<float>{1, 2, 3, 4}, {4}));
  write("n.npy", Tensor::scalar(int64_t{3}));
  write("rows.npy", Tensor(DType::kF32, {3, 2}));
  write("carried.npy", Tensor(DType::kF32, {1}));
  std::vector<std::string> words = {"--max-trips", "5", "--steps", "2"};
  for (const char* name : {"x", "n", "rows", "carried"})
    words.insert(words.end(), {"--in", std::string(name) + "=" + path(std::string(name) + ".npy")});
  const auto results = run({"a", "b", "c"}, words);
  std::set<double> seen;
  size_t count = 0;
  for (const auto& r : results) {
    seen.insert(r.begin(), r.end());
    count += r.size();
  }
  EXPECT_EQ(count, size_t{2 * (12 + 6 + 4)});
  EXPECT_EQ(seen.size(), count);
  // What is generated is what the model means, step by step.
  expect({"verify", path("m.onnx"), "--random", "state", "--max-trips", "5"}, 0, "outputs as expected");
}

TEST_F(RandomTest, NoiseThatDecidesExtents) {
  onnx::ModelProto m = parse_text("<ir_version: 8, opset_import: [\"\" : 17]>\n" + std::string(kSpeech));
  for (const auto& [name, shape] :
       {std::pair("table", std::vector<int64_t>{9, 4}), std::pair("w", std::vector<int64_t>{4, 1})}) {
    auto& w = *m.mutable_graph()->add_initializer();
    w.set_name(name);
    w.set_data_type(1);
    for (const int64_t d : shape) w.add_dims(d);
    for (int64_t i = 0; i < shape[0] * shape[1]; ++i) w.add_float_data(std::sin(static_cast<float>(i + 1)));
  }
  save(m, path("m.onnx"));
  write("ids.npy", Tensor(DType::kI64, {1, 6}));
  const std::vector<std::string> bounds = {"--dim", "n<=8", "--dim", "frames<=40"};
  std::vector<std::string> words = {"verify", path("m.onnx"), "--random", "state"};
  words.insert(words.end(), bounds.begin(), bounds.end());
  expect(words, 0, "outputs as expected");
  std::set<size_t> lengths;
  for (const char* seed : {"1", "2", "3", "4"}) {
    words = bounds;
    words.insert(words.end(), {"--in", "ids=" + path("ids.npy"), "--seed", seed});
    const auto y = run({"y"}, words);
    EXPECT_EQ(y, run({"y"}, words));
    lengths.insert(y[0].size());
  }
  EXPECT_GT(lengths.size(), 1u);
}

// The functions of the bundle: streams at once, a seed in the middle, a copy of the state.
TEST_F(RandomTest, SeedsOfStreams) {
  save_text(
      "g (float[40] x) => (float[40] y, float[40] hn) { e = RandomNormalLike(x)  y = Add(x, e)  hn = "
      "Identity(y) }",
      path("noise.onnx"));
  save_text(
      "g (float[40] x, float[40] h) => (float[40] y, float[40] hn)\n"
      "{ e = RandomNormalLike(x)  y = Add(x, e)  hn = Add(h, y) }",
      path("sum.onnx"));
  put(path("main.cpp"), R"(#include "m.h"
#include <cstdint>
#include <cstring>
alignas(64) static unsigned char arena[M_ARENA_BYTES + 64], a[M_STATE_BYTES], b[M_STATE_BYTES];
static const float x[40] = {};
struct Result { float y[40]; };
static Result run(void* state) {
  Result r;
  const m_inputs in = {x};
  m_outputs out = {};
  out.y = r.y;
  if (m_run(&in, &out, arena, state) != 0) r.y[0] = 1e9f;
  return r;
}
static bool same(const Result& p, const Result& q) { return std::memcmp(&p, &q, sizeof p) == 0; }
int main() {
  m_reset(a);
  m_reset(b);
  m_seed(b, 0);
  const Result a0 = run(a), a1 = run(a);
  if (same(a0, a1) || a0.y[0] == 1e9f) return 1;
  if (!same(a0, run(b)) || !same(a1, run(b))) return 2;        // reset is seed 0
  const std::uint64_t large = UINT64_C(0xfedcba9876543210);
  m_seed(a, large), m_seed(b, large + 1);
  const Result p = run(a), q = run(b);
  if (same(p, q) || same(p, a0) || same(q, a0)) return 3;      // others for each seed
  m_seed(b, large);
  if (!same(run(b), p) || !same(run(b), run(a))) return 4;     // the same at any place of a stream
  unsigned char copy[M_STATE_BYTES];
  std::memcpy(copy, a, sizeof copy);
  const Result next = run(a);
  std::memcpy(a, copy, sizeof copy);
  if (!same(next, run(a))) return 5;
  m_seed(nullptr, 1);
  m_reset(nullptr);
  return 0;
}
)");
  for (const auto& [model, target, state] :
       {std::tuple("noise", "host", ""), std::tuple("sum", "host", "hn=h"),
        std::tuple("sum", "x86-64-v2,avx2", "hn=h")}) {
    SCOPED_TRACE(std::string(model) + " for " + target);
    std::vector<std::string> words = {"compile",  path(std::string(model) + ".onnx"),
                                      "-o",       path("net"),
                                      "--name",   "m",
                                      "--random", "state",
                                      "--target", target,
                                      "--only",   "y"};
    if (state[0]) words.insert(words.end(), {"--state", state});
    expect(words, 0, "");
    std::vector<std::string> build = {"c++", "-std=c++17",   "-O1", "-I" + path("net"), path("main.cpp"),
                                      "-o",  path("program")};
    if (std::string(target) == "host") {
      build.insert(build.end(), {"-fsanitize=address,undefined", "-march=native", path("net/m.cpp")});
      if (std::filesystem::exists(path("net/m_weights.S"))) build.push_back(path("net/m_weights.S"));
    } else {
      expect({"build", path("net")}, 0, "libm.so");
      build.insert(build.end(), {path("net/libm.so"), "-Wl,-rpath," + path("net")});
    }
    const Finished built = run_process(build, true);
    ASSERT_EQ(built.code, 0) << built.output;
    const Finished ran = run_process({path("program")}, true);
    EXPECT_EQ(ran.code, 0) << ran.output;
  }
}

TEST_F(RandomTest, WhatIsSaid) {
  save_text("g (float[4] x) => (float[4] y) { y = Relu(x) }", path("m.onnx"));
  expect({"compile", path("m.onnx"), "-o", path("net"), "--random", "state"}, 0,
         "warning: " + path("m.onnx") + ": --random state: nothing in the model is random");
  EXPECT_EQ(contents(path("net/m.h")).find("m_seed"), std::string::npos);
  expect({"run", path("m.onnx"), "--seed", "3"}, 2, "without --random state");
  expect({"run", path("m.onnx"), "--random", "state", "--seed", "x"}, 2, "--seed");
  write("x.npy", Tensor(DType::kF32, {4}));
  expect({"run", "--bundle", path("net"), "--seed", "3", "--in", path("x.npy")}, 2,
         "it wasn't compiled with --random state");
}

}  // namespace
}  // namespace sinter
