// States that are windows of rows (plan/windows.cpp): they slide over a longer buffer, and the same bits come
// out as where the model's Concat and Slice copy them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "driver/inputs.h"
#include "driver/options.h"
#include "input_file.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

using Words = std::vector<std::string>;
using Extents = std::vector<int64_t>;

struct Net {
  const char* name;
  const char* text;                        // its states are n... <- p...
  std::map<std::string, Extents> weights;  // random
  std::map<std::string, Extents> inputs;   // of a step; 0: one to three rows in turn
  int64_t rows, room;                      // of the first window
  int64_t copies;                          // layers that copy nevertheless: of one row
  Words options{};
};

const Net kNets[] = {
    {"a causal convolution",
     "g (float[1,16,1] x, float[1,16,8] p, float[32,16,9] w, float[16,32,1] v) => (float[1,16,1] y, "
     "float[1,16,8] n)\n"
     "<int64[1] one = {1}, int64[1] end = {9}, int64[1] axis = {2}>\n"
     "{ all = Concat<axis=2>(p, x)  a = Conv(all, w)  b = Relu(a)  y = Conv(b, v)  n = Slice(all, one, end, "
     "axis) }",
     {{"w", {32, 16, 9}}, {"v", {16, 32, 1}}},
     {{"x", {1, 16, 1}}},
     8,
     17,
     1},
    {"two of them, the second one's row from a layer",
     "g (float[1,8,1] x, float[1,8,4] p, float[1,8,6] p2, float[8,8,5] w, float[8,8,4] v) => (float[1,8,1] "
     "y, "
     "float[1,8,4] n, float[1,8,6] n2)\n"
     "<int64[1] one = {1}, int64[1] end = {1000}, int64[1] axis = {-1}>\n"
     "{ all = Concat<axis=2>(p, x)  a = Conv(all, w)  b = Relu(a)  two = Concat<axis=-1>(p2, b)\n"
     "  y = Conv<dilations=[2]>(two, v)  n = Slice(all, one, end, axis)  n2 = Slice(two, one, end, axis) }",
     {{"w", {8, 8, 5}}, {"v", {8, 8, 4}}},
     {{"x", {1, 8, 1}}},
     4,
     9,
     1},
    {"a convolution of frames, that begins with values of its own",
     "g (float[1,8,1,9] x, float[1,8,2,9] p, float[8,8,1,1] u, float[8,1,3,3] w) => (float[1,8,1,9] y, "
     "float[1,8,2,9] n)\n"
     "<int64[1] one = {1}, int64[1] end = {3}, int64[1] axis = {2}>\n"
     "{ z = Conv(x, u)  all = Concat<axis=2>(p, z)  y = Conv<group=8, pads=[0,1,0,1]>(all, w)\n"
     "  n = Slice(all, one, end, axis) }",
     {{"u", {8, 8, 1, 1}}, {"w", {8, 1, 3, 3}}},
     {{"x", {1, 8, 1, 9}}},
     2,
     5,
     2,
     {"--state-init", "p=0.75"}},
    {"attention over the last rows",
     "g (float[1,1,32] x, float[1,2,8,16] pk, float[1,2,8,16] pv, float[1,1,1,9] mask, float[32,32] wq, "
     "float[32,32] wk, float[32,32] wv)\n"
     "=> (float[1,1,32] y, float[1,2,8,16] nk, float[1,2,8,16] nv)\n"
     "<int64[4] heads = {1,1,2,16}, int64[3] flat = {1,1,32}, int64[1] one = {1}, int64[1] end = {9}, "
     "int64[1] "
     "axis = {2}, float scale = {0.25}>\n"
     "{ q0 = MatMul(x, wq)  k0 = MatMul(x, wk)  v0 = MatMul(x, wv)\n"
     "  q1 = Reshape(q0, heads)  k1 = Reshape(k0, heads)  v1 = Reshape(v0, heads)\n"
     "  q = Transpose<perm=[0,2,1,3]>(q1)  k = Transpose<perm=[0,2,1,3]>(k1)  v = "
     "Transpose<perm=[0,2,1,3]>(v1)\n"
     "  ka = Concat<axis=2>(pk, k)  va = Concat<axis=2>(pv, v)  kt = Transpose<perm=[0,1,3,2]>(ka)\n"
     "  s = MatMul(q, kt)  t = Mul(s, scale)  m = Add(t, mask)  e = Softmax(m)  o = MatMul(e, va)\n"
     "  o1 = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(o1, flat)\n"
     "  nk = Slice(ka, one, end, axis)  nv = Slice(va, one, end, axis) }",
     {{"wq", {32, 32}}, {"wk", {32, 32}}, {"wv", {32, 32}}},
     {{"x", {1, 1, 32}}, {"mask", {1, 1, 1, 9}}},
     8,
     17,
     0},
    {"the window that stays is what attention reads, with several new rows",
     "g (float[1,2,3,16] x, float[1,2,12,16] pk, float[1,2,12,16] pv) => (float[1,2,3,16] y, "
     "float[1,2,12,16] nk, "
     "float[1,2,12,16] nv)\n"
     "<int64[1] three = {3}, int64[1] end = {12}, int64[1] axis = {2}>\n"
     "{ k = Sin(x)  v = Cos(x)  ks = Slice(pk, three, end, axis)  vs = Slice(pv, three, end, axis)\n"
     "  nk = Concat<axis=2>(ks, k)  nv = Concat<axis=2>(vs, v)  y = Attention<scale=0.25>(x, nk, nv) }",
     {},
     {{"x", {1, 2, 3, 16}}},
     12,
     27,
     2,
     {}},
    {"a window of one row",
     "g (float[1,6] x, float[1,6] p) => (float[2,6] y, float[1,6] n)\n"
     "<int64[1] one = {1}, int64[1] end = {2}, int64[1] axis = {0}>\n"
     "{ all = Concat<axis=0>(p, x)  y = Softmax<axis=0>(all)  n = Slice(all, one, end, axis) }",
     {},
     {{"x", {1, 6}}},
     1,
     3,
     1},
    {"as many new rows as there are",
     "g (float[S,6] x, float[5,6] p, float[6,6] w) => (float[T,6] y, float[5,6] n)\n"
     "<int64[1] five = {-5}, int64[1] end = {9223372036854775807}, int64[1] axis = {0}>\n"
     "{ z = MatMul(x, w)  all = Concat<axis=0>(p, z)  y = Softmax<axis=0>(all)  n = Slice(all, five, end, "
     "axis) }",
     {{"w", {6, 6}}},
     {{"x", {0, 6}}},
     5,
     13,
     0,
     {"--dim", "S<=3"}},
};

class WindowTest : public testing::TestWithParam<Net> {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }

  void save_net(const Net& net) {
    onnx::ModelProto m = parse_text(std::string("<ir_version: 10, opset_import: [\"\" : 23]>\n") + net.text);
    add_weights(m, net.weights, random_);
    save(m, path("m.onnx"));
  }

  // Files of all steps; the words that name them.
  Words write_inputs(const Net& net, int64_t steps) {
    Words words = {"--steps", std::to_string(steps)};
    for (const auto& [name, of_step] : net.inputs) {
      for (int64_t k = 0; k < steps; ++k) {
        Extents shape = of_step;
        std::replace(shape.begin(), shape.end(), int64_t{0}, 1 + k % 3);
        write_input(path(fmt::format("{}_{}.npy", name, k)), random_tensor(DType::kF32, shape, random_));
      }
      words.insert(words.end(), {"--in", name + "=" + path(name + "_%.npy")});
    }
    words.insert(words.end(), {"--out", "y=" + path("y_%.npy")});
    return words;
  }

  std::vector<Tensor> results(int64_t steps) {
    std::vector<Tensor> all;
    for (int64_t k = 0; k < steps; ++k) {
      all.push_back(read_tensor_file(path(fmt::format("y_{}.npy", k))));
      std::filesystem::remove(path(fmt::format("y_{}.npy", k)));
    }
    return all;
  }

  Words options(const Net& net, const Words& more) const {
    Words words = {path_, "--state", "n*=p*"};
    for (const Words& w : {net.options, more}) words.insert(words.end(), w.begin(), w.end());
    return words;
  }

  std::vector<Tensor> run(const Net& net, const Words& in, int64_t steps, const Words& more) {
    Words words = {"run"};
    for (const Words& w : {options(net, more), in}) words.insert(words.end(), w.begin(), w.end());
    const Finished f = sinter_program(words);
    EXPECT_EQ(f.code, 0) << f.output;
    return results(steps);
  }

  static void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want, const char* what) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < got.size(); ++k) EXPECT_TRUE(got[k].same_bits(want[k])) << what << ", step " << k;
  }

  TemporaryFolder folder_;
  std::string path_ = path("m.onnx");
  std::mt19937 random_{11};
};

TEST_P(WindowTest, SlidesWithTheSameBits) {
  const Net& net = GetParam();
  SCOPED_TRACE(net.name);
  save_net(net);
  const int64_t steps = 3 * net.rows + 1;
  const Words in = write_inputs(net, steps);
  const std::vector<Tensor> copied = run(net, in, steps, {"--skip-pass", "slide_windows"});
  expect_same(run(net, in, steps, {"--keep", path("net"), "--name", "m"}), copied, "host");
  const std::vector<Tensor> a76 =
      run(net, in, steps, {"--target", "cortex-a76", "--skip-pass", "slide_windows"});
  expect_same(run(net, in, steps, {"--target", "cortex-a76"}), a76, "cortex-a76");

  // The bundle's own program under sanitizers.
  const Finished ran = run_sanitized(path("net"), path("program"), in);
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(results(steps).size(), static_cast<size_t>(steps));

  // No layer writes a whole window.
  const auto map = nlohmann::json::parse(contents(path("net/m.map")));
  EXPECT_EQ(map["states"][0]["window"], (nlohmann::json{{"rows", net.rows}, {"room", net.room}}));
  int64_t copies = 0;
  for (const auto& l : map["layers"]) copies += l["kernel"].get<std::string>().rfind("copy", 0) == 0;
  EXPECT_LE(copies, net.copies) << map["layers"];
}

INSTANTIATE_TEST_SUITE_P(Nets, WindowTest, testing::ValuesIn(kNets),
                         [](const auto& i) { return "Net" + std::to_string(i.index); });

// Where something reads the rows in another order, or the window is an output as well, the model's own Concat
// and Slice stay.
TEST(Windows, ElseTheModelsOwnConcatStays) {
  const TemporaryFolder folder;
  const std::string model = (folder.path() / "m.onnx").string();
  const char* const nets[] = {
      "g (float[1,4,1] x, float[1,4,3] p) => (float[1,4,1] y, float[1,4,3] n)\n"
      "<int64[1] one = {1}, int64[1] end = {4}, int64[1] axis = {2}>\n"
      "{ all = Concat<axis=2>(p, x)  y = ReduceMax(all, axis)  n = Slice(all, one, end, axis) }",
      "g (float[1,4] x, float[3,4] p) => (float[4,4] y, float[3,4] n, float[4,4] all)\n"
      "<int64[1] one = {1}, int64[1] end = {4}, int64[1] axis = {0}>\n"
      "{ all = Concat<axis=0>(p, x)  y = Neg(all)  n = Slice(all, one, end, axis) }",
      "g (float[1,4] x, float[3,4] p) => (float[4,4] y, float[3,4] n)\n"
      "<int64[1] zero = {0}, int64[1] end = {3}, int64[1] axis = {0}>\n"
      "{ all = Concat<axis=0>(p, x)  y = Neg(all)  n = Slice(all, zero, end, axis) }",
      "g (float[1,4] x, float[3,4] p) => (float[4,4] y, float[3,4] n)\n"
      "<int64[1] one = {1}, int64[1] end = {4}, int64[1] axis = {0}>\n"
      "{ all = Concat<axis=0>(x, p)  y = Neg(all)  n = Slice(all, one, end, axis) }"};
  for (const char* text : nets) {
    save_text(text, model);
    const Finished f = sinter_program({"inspect", model, "--state", "n=p"});
    EXPECT_NE(f.output.find("state  \"p\" "), std::string::npos) << f.output;
    EXPECT_EQ(f.output.find("that slide"), std::string::npos) << f.output;
  }
}

}  // namespace
}  // namespace sinter
