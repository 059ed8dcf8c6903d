// --cache: caches in the state that are stored as halves, or as bytes with a scale for each row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "driver/inputs.h"
#include "driver/interrupt.h"
#include "driver/options.h"
#include "driver/process.h"
#include "input_file.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

// Grouped heads, causal, with the past of the operator's own.
const char* const kOwn =
    "g (float[1,s,48] x, float[1,2,p,12] pk, float[1,2,p,12] pv, float[48,24] wk, float[48,24] wv)\n"
    "=> (float[1,s,48] y, float[1,2,t,12] nk, float[1,2,t,12] nv)\n"
    "{ k = MatMul(x, wk)  v = MatMul(x, wv)\n"
    "  y, nk, nv = Attention<q_num_heads=4, kv_num_heads=2, is_causal=1>(x, k, v, , pk, pv) }";

// Old and new rows joined by Concat; keys longer than values.
const char* const kJoined =
    "g (float[2,3,s,20] x, float[2,3,p,20] pk, float[2,3,p,7] pv, float[20,7] wv)\n"
    "=> (float[2,3,s,7] y, float[2,3,t,20] nk, float[2,3,t,7] nv)\n"
    "{ k = Neg(x)  v = MatMul(x, wv)  nk = Concat<axis=2>(pk, k)  nv = Concat<axis=2>(pv, v)\n"
    "  y = Attention(x, nk, nv) }";

// A cache of a fixed size; the caller says where new rows go.
const char* const kFixed =
    "g (float[1,2,s,16] x, int64[1] at, float[1,2,40,16] pk, float[1,2,40,16] pv)\n"
    "=> (float[1,2,s,16] y, float[1,2,40,16] nk, float[1,2,40,16] nv)\n"
    "{ k = Neg(x)  v = Abs(x)  nk = TensorScatter<axis=2>(pk, k, at)  nv = TensorScatter<axis=2>(pv, v, at)\n"
    "  l = Shape<start=2, end=3>(x)  valid = Add(at, l)  y = Attention<is_causal=1>(x, nk, nv, , , , valid) "
    "}";

// The same, all heads in a row: halves only.
const char* const kFlat =
    "g (float[1,s,32] x, int64[1] at, float[1,40,32] pk, float[1,40,32] pv)\n"
    "=> (float[1,s,32] y, float[1,40,32] nk, float[1,40,32] nv)\n"
    "{ k = Neg(x)  v = Abs(x)  nk = TensorScatter(pk, k, at)  nv = TensorScatter(pv, v, at)\n"
    "  l = Shape<start=1, end=2>(x)  valid = Add(at, l)\n"
    "  y = Attention<is_causal=1, q_num_heads=4, kv_num_heads=4>(x, nk, nv, , , , valid) }";

struct Net {
  const char* name;
  const char* text;
  std::vector<int64_t> x;  // of a step; 0: its rows
  std::vector<std::string> dims;
  int64_t elements;  // in a row of keys and of values together
  int64_t heads;     // all of them, of the whole batch
  int64_t rows;      // that have room
  int64_t long_step, steps;
  const char* target;  // beside this machine
};

class CacheTest : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }

  void save_net(const std::string& text) {
    onnx::ModelProto m = parse_text("<ir_version: 11, opset_import: [\"\" : 24]>\n" + text);
    auto& inputs = *m.mutable_graph()->mutable_input();
    for (int i = inputs.size(); i-- > 0;) {
      if (inputs[i].name()[0] != 'w') continue;
      auto& w = *m.mutable_graph()->add_initializer();
      w.set_name(inputs[i].name());
      w.set_data_type(1);
      int64_t size = 1;
      for (const auto& d : inputs[i].type().tensor_type().shape().dim()) {
        w.add_dims(d.dim_value());
        size *= d.dim_value();
      }
      for (int64_t k = 0; k < size; ++k)
        w.add_float_data(std::uniform_real_distribution<float>(-.5f, .5f)(random_));
      inputs.DeleteSubrange(i, 1);
    }
    save(m, path("m.onnx"));
  }

  void write(const std::string& name, const Tensor& t) { write_input(path(name), t); }

  // The inputs of each step: many rows first, then one at a time.
  std::vector<std::string> write_inputs(const Net& net) {
    int64_t at = 0;
    for (int64_t k = 0; k < net.steps; ++k) {
      std::vector<int64_t> shape = net.x;
      const int64_t rows = k == 0 ? net.long_step : 1;
      std::replace(shape.begin(), shape.end(), int64_t{0}, rows);
      write(fmt::format("x_{}.npy", k), random_tensor(DType::kF32, shape, random_));
      write(fmt::format("at_{}.npy", k), Tensor::of(std::vector<int64_t>{at}));
      at += rows;
    }
    std::vector<std::string> words = {"--steps", std::to_string(net.steps), "--in", "x=" + path("x_%.npy")};
    if (std::string(net.text).find(" at,") != std::string::npos)
      words.insert(words.end(), {"--in", "at=" + path("at_%.npy")});
    return words;
  }

  std::vector<std::string> options(const Net& net, const std::string& cache) const {
    std::vector<std::string> words = {"--state", "n*=p*", "--cache", cache, "--name", "m"};
    for (const std::string& d : net.dims) words.insert(words.end(), {"--dim", d});
    return words;
  }

  std::vector<double> results(int64_t steps) {
    std::vector<double> all;
    for (int64_t k = 0; k < steps; ++k) {
      const std::vector<double> y = read_tensor_file(path(fmt::format("y_{}.npy", k))).reals();
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  }

  // What all steps give, by `sinter run` for a target; the bundle is left in net.
  std::vector<double> run(const Net& net, const std::vector<std::string>& in, const std::string& cache,
                          const std::string& target) {
    std::vector<std::string> words = {"run",    path("m.onnx"), "--target", target,
                                      "--keep", path("net"),    "--out",    "y=" + path("y_%.npy")};
    for (const auto& more : {options(net, cache), in}) words.insert(words.end(), more.begin(), more.end());
    const Finished f = sinter_program(words);
    EXPECT_EQ(f.code, 0) << f.output;
    return f.code == 0 ? results(net.steps) : std::vector<double>(1);
  }

  // The same by the program that lies in net, built with sanitizers.
  std::vector<double> sanitized(const Net& net, const std::vector<std::string>& in) {
    std::vector<std::string> words = {"--out", "y=" + path("y_%.npy")};
    words.insert(words.end(), in.begin(), in.end());
    const Finished ran = run_sanitized(path("net"), path("program"), words);
    EXPECT_EQ(ran.code, 0) << ran.output;
    return results(net.steps);
  }

  nlohmann::json map() { return nlohmann::json::parse(contents(path("net/m.map"))); }

  TemporaryFolder folder_;
  std::mt19937 random_{3};
};

// The largest difference, as a share of the largest element.
double error(const std::vector<double>& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return 1e9;
  double worst = 0, largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(got[i] - want[i]);
    worst = off <= worst ? worst : off;  // NaN stays
    largest = std::max(largest, std::abs(want[i]));
  }
  return worst / largest;
}

const Net kNets[] = {
    {"the operator's own past", kOwn, {1, 0, 48}, {"s<=9", "p=0..40"}, 24, 2, 40, 9, 8, "cortex-a76"},
    {"many keys, in blocks", kOwn, {1, 0, 48}, {"s<=700", "p=0..1500"}, 24, 2, 1500, 650, 3, "x86-64-v2"},
    {"joined by Concat", kJoined, {2, 3, 0, 20}, {"s<=5", "p=0..19"}, 27, 6, 19, 5, 9, "cortex-a76"},
    {"a step of one row", kJoined, {2, 3, 0, 20}, {"s=1", "p=0..19"}, 27, 6, 19, 1, 9, "scalar"},
    {"a fixed size", kFixed, {1, 2, 0, 16}, {"s<=17"}, 32, 2, 40, 17, 6, "cortex-a76"},
};

class CacheNets : public CacheTest, public testing::WithParamInterface<Net> {};

TEST_P(CacheNets, AreStoredInFewerBytes) {
  const Net& net = GetParam();
  SCOPED_TRACE(net.name);
  save_net(net.text);
  const std::vector<std::string> in = write_inputs(net);
  const std::vector<double> exact = run(net, in, "f32", "host");
  const int64_t whole = map()["state_bytes"];
  for (const auto& [cache, most] : {std::pair("f16", 1e-3), std::pair("int8", 2e-2)}) {
    SCOPED_TRACE(cache);
    const bool bytes = std::string(cache) == "int8";
    const std::vector<double> got = run(net, in, cache, "host");
    const double off = error(got, exact);
    EXPECT_LT(off, most);
    EXPECT_GT(off, 0);
    // A row of a head: 2 bytes an element, or one and a scale.
    const int64_t row = bytes ? net.elements + 2 * 4 : 2 * net.elements;
    EXPECT_NEAR(static_cast<double>(whole - map()["state_bytes"].get<int64_t>()),
                static_cast<double>(net.rows * net.heads * (4 * net.elements - row)), 256);
    for (const auto& s : map()["states"])
      EXPECT_TRUE(s["name"] != "pk" || s["dtype"] == (bytes ? "int8" : "float16")) << s;
    EXPECT_TRUE(!bytes || error(sanitized(net, in), got) < 1e-5);
    EXPECT_LT(error(run(net, in, cache, net.target), got), 1e-4) << net.target;
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, CacheNets, testing::ValuesIn(kNets),
                         [](const auto& i) { return "Net" + std::to_string(i.index); });

TEST_F(CacheTest, HeadsInARow) {
  const Net net = {"flat", kFlat, {1, 0, 32}, {"s<=9"}, 64, 1, 40, 9, 6, "host"};
  save_net(net.text);
  const std::vector<std::string> in = write_inputs(net);
  const std::vector<double> exact = run(net, in, "f32", "host");
  EXPECT_LT(error(run(net, in, "f16", "host"), exact), 1e-3);
  expect(
      {"compile", path("m.onnx"), "-o", path("net"), "--state", "n*=p*", "--dim", "s<=9", "--cache", "int8"},
      3,
      "--cache int8: the cache \"pk\" can't be stored so: it is float32[1,40,32], without an axis of heads");
}

// Rows of zeros, and what is no number, are what they were.
TEST_F(CacheTest, ZerosAndNoNumbers) {
  const Net net = {"fixed", kFixed, {1, 2, 0, 16}, {"s=1"}, 32, 2, 40, 1, 2, "host"};
  save_net(net.text);
  const std::vector<std::string> in = write_inputs(net);
  write("x_0.npy", Tensor(DType::kF32, {1, 2, 1, 16}));
  for (const char* cache : {"f16", "int8"}) {
    const std::vector<double> y = run(net, in, cache, "host");
    for (size_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], 0) << cache;
    for (size_t i = 32; i < 64; ++i) EXPECT_TRUE(std::isfinite(y[i])) << cache;
  }
  std::vector<float> bad(32, 1);
  bad[3] = NAN;
  write("x_0.npy", Tensor::of(bad, {1, 2, 1, 16}));
  for (const char* cache : {"f16", "int8"}) EXPECT_TRUE(std::isnan(run(net, in, cache, "host")[3])) << cache;
}

// A run for whose rows a cache has no room says which cache, and what gives it more.
TEST_F(CacheTest, NoRoomIsSaid) {
  Net net = kNets[0];
  net.dims = {"s<=3", "p=0..4"};
  net.long_step = 3;
  net.steps = 3;
  save_net(net.text);
  std::vector<std::string> words = {"run", path("m.onnx")};
  for (const auto& more : {options(net, "f16"), write_inputs(net)})
    words.insert(words.end(), more.begin(), more.end());
  expect(words, 6,
         "the cache \"pk\", \"pv\" has room for 4 rows, and this run's are too many (compile with a greater "
         "--dim "
         "\"p=0..MAX\")");
}

TEST_F(CacheTest, WhatCannotBe) {
  struct Case {
    const char *text, *cache, *said;
    std::vector<std::string> more;
  };
  const Case cases[] = {
      {"g (float[2] x, float[2] p) => (float[2] y, float[2] n) { n = Add(x, p)  y = Neg(n) }",
       "f16",
       "--cache f16: no state is a cache",
       {}},
      {"g (float[1,2,1,8] x, float[1,2,p,8] pk, float[1,2,p,8] pv)\n"
       "=> (float[1,2,1,8] y, float[1,2,t,8] nk, float[1,2,t,8] nv, float[1,2,t,8] z)\n"
       "{ nk = Concat<axis=2>(pk, x)  nv = Concat<axis=2>(pv, x)  y = Attention(x, nk, nv)  z = Neg(nk) }",
       "int8",
       "the cache \"pk\" can't be stored so: its rows are joined anew in each run",
       {"--dim", "p=0..9"}},
      {"g (float[1,2,1,8] x, int64[1] at, float[1,2,9,8] pk, float[1,2,9,8] pv)\n"
       "=> (float[1,2,1,8] y, float[1,2,9,8] nk, float[1,2,9,8] nv, float[1,2,9,8] z)\n"
       "{ nk = TensorScatter(pk, x, at)  nv = TensorScatter(pv, x, at)  y = Attention(x, nk, nv)  z = "
       "Neg(nk) }",
       "int8",
       "the cache \"pk\" can't be stored so: \"z\" (elementwise) reads it, too, which is no attention",
       {}},
  };
  for (const Case& c : cases) {
    save_net(c.text);
    std::vector<std::string> words = {"compile", path("m.onnx"), "-o",      path("net"),
                                      "--state", "n*=p*",        "--cache", c.cache};
    words.insert(words.end(), c.more.begin(), c.more.end());
    expect(words, 3, c.said);
  }
  expect({"compile", path("m.onnx"), "-o", path("net"), "--cache", "f8"}, 2, "--cache");
}

}  // namespace
}  // namespace sinter
