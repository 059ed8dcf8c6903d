// States that are really several (plan/state_pieces.cpp): the graph with a state for each piece computes what
// the model does with its states carried whole, and no layer copies a piece.
#include <gtest/gtest.h>

#include <random>

#include "driver/inputs.h"
#include "driver/options.h"
#include "import/onnx.h"
#include "input_file.h"
#include "ops/op.h"
#include "plan/state.h"
#include "program.h"

namespace sinter {
namespace {

struct Net {
  const char* name;
  std::string text;   // from x and p to y and n, where n is p of the next step
  std::string forms;  // what inspect says of the states; empty: the state stays whole
  std::map<std::string, std::vector<int64_t>> weights{};
};

// Two caches of causal convolutions in one tensor, written by ScatterND as exporters of x[:, a:b] = y do.
const char* const kCaches =
    "g (float[1,4,1,5] x, float[2,1,4,3,5] p, float[4,1,2,3] w, float[4,1,3,3] v, float[4,4,1,1] u)\n"
    "=> (float[1,4,1,5] y, float[2,1,4,3,5] n)\n"
    "<int64 i0 = {0}, int64 i1 = {1}, int64[1,1] at0 = {0}, int64[1,1] at1 = {1}, int64[1] zero = {0},\n"
    " int64[1] one = {1}, int64[1] three = {3}, int64[1] end = {100}, int64[1] axis = {2},\n"
    " int64[5] whole = {1,1,4,3,5}>\n"
    "{ p0 = Gather<axis=0>(p, i0)  x0 = Conv(x, u)  a0 = Concat<axis=2>(p0, x0)\n"
    "  c0 = Conv<group=4, pads=[0,1,0,1], dilations=[3,1]>(a0, w)  s0 = Slice(a0, one, end, axis)\n"
    "  r0 = Reshape(s0, whole)  n0 = ScatterND(p, at0, r0)\n"
    "  p1 = Gather<axis=0>(n0, i1)  x1 = Relu(c0)  f1 = Conv(x1, u)  a1 = Concat<axis=2>(p1, f1)\n"
    "  t1 = Slice(a1, one, end, axis)  l1 = Slice(a1, one, end, axis)\n"
    "  y = Conv<group=4, pads=[0,1,0,1]>(l1, v)  r1 = Reshape(t1, whole)  n = ScatterND(n0, at1, r1) }";

const Net kNets[] = {
    {"two caches of convolutions",
     kCaches,
     "state  \"p[0,:,:,:,:]\" float32[1,3,5,4] <- \"n[0,:,:,:,:]\", 3 rows that slide in a buffer of 7\n"
     "state  \"p[1,:,:,:,:]\" float32[1,3,5,4] <- \"n[1,:,:,:,:]\", 3 rows that slide in a buffer of 7\n",
     {{"w", {4, 1, 2, 3}}, {"v", {4, 1, 3, 3}}, {"u", {4, 4, 1, 1}}}},
    {"hidden and cell state of an LSTM, the one beside the other in the last axis",
     "g (float[1,1,4] x, float[1,1,3,2] p, float[1,12,4] w, float[1,12,3] r) => (float[1,1,3] y, "
     "float[1,1,3,2] n)\n"
     "<int64 i0 = {0}, int64 i1 = {1}, int64[1] last = {-1}>\n"
     "{ h0 = Gather<axis=3>(p, i0)  c0 = Gather<axis=3>(p, i1)  y0, h1, c1 = LSTM<hidden_size=3>(x, w, r, , "
     ", h0, "
     "c0)\n"
     "  y = Neg(h1)  hu = Unsqueeze(h1, last)  cu = Unsqueeze(c1, last)  n = Concat<axis=-1>(hu, cu) }",
     "state  \"p[:,:,:,0]\" float32[1,1,3] <- \"n[:,:,:,0]\", slot 0 of 2 in turn\n"
     "state  \"p[:,:,:,1]\" float32[1,1,3] <- \"n[:,:,:,1]\", slot 0 of 2 in turn\n",
     {{"w", {1, 12, 4}}, {"r", {1, 12, 3}}}},
    {"elements that nothing reads or writes",
     "g (float[2] x, float[6] p) => (float[2] y, float[6] n)\n"
     "<int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[2,1] first = {0,1}, int64[2,1] "
     "last = "
     "{2,3}>\n"
     "{ a = Slice(p, zero, two)  b = Slice(p, two, four)  c = Add(a, x)  d = Sub(b, c)  y = Mul(c, d)\n"
     "  m = ScatterND(p, first, d)  n = ScatterND(m, last, c) }",
     "state  \"p[0:2]\" float32[2] <- \"n[0:2]\", updated in place\n"
     "state  \"p[2:4]\" float32[2] <- \"n[2:4]\", slot 0 of 2 in turn\n"},
    {"a piece that is read across two that are written",
     "g (float[2] x, float[4] p) => (float[2] y, float[4] n)\n"
     "<int64[1] one = {1}, int64[1] three = {3}>\n"
     "{ a = Slice(p, one, three)  y = Add(a, x)  b = Neg(y)  n = Concat<axis=0>(b, y) }",
     ""},
    {"elements that change their places",
     "g (float[2] x, float[4] p) => (float[2] y, float[4] n)\n"
     "<int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}>\n"
     "{ a = Slice(p, zero, two)  b = Slice(p, two, four)  y = Add(b, x)  n = Concat<axis=0>(y, a) }",
     ""},
    {"a piece that is read when it is written",
     "g (float[2] x, float[4] p) => (float[2] y, float[4] n)\n"
     "<int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[2,1] first = {0,1}, int64[2,1] "
     "last = "
     "{2,3}>\n"
     "{ a = Slice(p, zero, two)  c = Add(a, x)  m = ScatterND(p, first, c)  d = Slice(m, zero, two)  e = "
     "Exp(d)\n"
     "  b = Slice(m, two, four)  y = Mul(e, b)  n = ScatterND(m, last, e) }",
     ""},
    {"places that the data decide",
     "g (float[2] x, float[2,2] p, int64[1,1] i) => (float[2] y, float[2,2] n)\n"
     "<int64 zero = {0}, int64[2] shape = {1,2}>\n"
     "{ a = Gather<axis=0>(p, zero)  y = Add(a, x)  r = Reshape(y, shape)  n = ScatterND(p, i, r) }",
     ""},
};

class StatePiecesTest : public testing::TestWithParam<Net> {
 protected:
  static constexpr int kSteps = 9;

  void SetUp() override {
    onnx::ModelProto m = parse_text("<ir_version: 8, opset_import: [\"\" : 17]>\n" + GetParam().text);
    add_weights(m, GetParam().weights, random_);
    save(m, path_);
  }

  // The outputs of the steps, states carried on from zeros, by the graph's links.
  std::vector<Tensor> meant(const Graph& g, const StateLinks& links) const {
    std::vector<Tensor> states, all;
    for (const StateLink& l : links)
      states.emplace_back(g.inputs[l.input]->type.dtype, static_dims(g.inputs[l.input]->type.shape));
    for (const auto& of_step : steps_) {
      std::vector<Tensor> inputs;
      for (const Value* v : g.inputs)
        inputs.push_back(of_step.count(v->name) ? of_step.at(v->name) : Tensor());
      for (size_t k = 0; k < links.size(); ++k) inputs[links[k].input] = states[k];
      const std::vector<Tensor> made = evaluate(g, inputs);
      for (size_t k = 0; k < links.size(); ++k) states[k] = made[links[k].output];
      all.push_back(made[0]);
    }
    return all;
  }

  void make_steps(const Graph& g) {
    for (int k = 0; k < kSteps; ++k) {
      auto& step = steps_.emplace_back();
      for (const Value* v : g.inputs)
        if (v->name != "p")
          step[v->name] = v->type.dtype == DType::kI64
                              ? Tensor::of(std::vector<int64_t>{k % 2}).reshaped({1, 1})
                              : random_tensor(v->type.dtype, static_dims(v->type.shape), random_);
    }
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  TemporaryFolder folder_;
  std::string path_ = path("m.onnx");
  std::mt19937 random_{3};
  std::vector<std::map<std::string, Tensor>> steps_;
};

TEST_P(StatePiecesTest, MeanWhatTheWholeStateDoes) {
  const Model whole = import_model(path_, {}), model = import_model(path_, {});
  make_steps(*whole.graph);
  size_t input = 0;
  while (whole.graph->inputs[input]->name != "p") ++input;
  StateLinks links = {{1, input, "n", "p"}};
  const std::vector<Tensor> want = meant(*whole.graph, links);
  split_states(*model.graph, links);
  model.graph->verify();
  EXPECT_EQ(links.size() > 1, !GetParam().forms.empty());
  const std::vector<Tensor> got = meant(*model.graph, links);
  for (int k = 0; k < kSteps; ++k)
    EXPECT_TRUE(got[static_cast<size_t>(k)].same_bits(want[static_cast<size_t>(k)])) << "step " << k;

  if (GetParam().forms.empty()) return;
  std::vector<std::string> words = {"run", path_, "--state", "n=p", "--steps", std::to_string(kSteps)};
  for (int k = 0; k < kSteps; ++k)
    write_input(path(fmt::format("x_{}.npy", k)), steps_[static_cast<size_t>(k)]["x"]);
  words.insert(words.end(), {"--in", path("x_%.npy"), "--out", path("y_%.npy")});
  const Finished ran = sinter_program(words);
  ASSERT_EQ(ran.code, 0) << ran.output;
  for (int k = 0; k < kSteps; ++k) {
    const Tensor y = read_tensor_file(path(fmt::format("y_{}.npy", k)));
    for (int64_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y.real(i), want[static_cast<size_t>(k)].real(i), 1e-5) << "step " << k << ", element " << i;
  }
  const Finished inspect = sinter_program({"inspect", path_, "--state", "n=p", "--target", "cortex-a76"});
  EXPECT_NE(inspect.output.find(GetParam().forms), std::string::npos) << inspect.output;
  for (const char* copying : {"copy_concat", "Slice ", "Gather ", "scatter"})
    EXPECT_EQ(inspect.output.find(copying), std::string::npos) << inspect.output;
}

INSTANTIATE_TEST_SUITE_P(Nets, StatePiecesTest, testing::ValuesIn(kNets),
                         [](const auto& i) { return "Net" + std::to_string(i.index); });

// Each piece begins with its part of the state's beginning, and verify knows the stored state's part.
TEST(StatePieces, BeginWithTheirPart) {
  const TemporaryFolder folder;
  const std::string model = (folder.path() / "m.onnx").string(), first = (folder.path() / "p.npy").string();
  save_text(kNets[2].text, model);
  write_input(first, Tensor::of(std::vector<float>{1, 2, 3, 4, 5, 6}, {6}));
  const std::vector<std::string> states = {"--state", "n=p", "--state-init", "p=" + first};
  std::vector<std::string> words = {"verify", model};
  words.insert(words.end(), states.begin(), states.end());
  expect(words, 0, "1 outputs as expected");

  const std::filesystem::path data = folder.path() / "data";
  std::filesystem::create_directory(data);
  const auto save_data = [&](const char* name, const std::vector<float>& values) {
    write_input((data / name).string(), Tensor::of(values, {static_cast<int64_t>(values.size())}));
  };
  save_data("input_0.pb", {10, 20});
  save_data("input_1.pb", {1, 2, 3, 4, 5, 6});
  save_data("output_0.pb", {-88, -396});  // (1 + 10) (3 - 11), (2 + 20) (4 - 22)
  save_data("output_1.pb", {-8, -18, 11, 22, 5, 6});
  words.insert(words.end(), {"--data", data.string()});
  expect(words, 0, "also as stored");
  save_data("input_1.pb", {1, 2, 3, 7, 5, 6});
  expect(words, 0, "the stored ones are of other states");
}

}  // namespace
}  // namespace sinter
