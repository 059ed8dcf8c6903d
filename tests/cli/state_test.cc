// --state: what one run leaves for the next. Streams of runs are compared with the meaning of the model,
// whose states are carried by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "driver/build.h"
#include "driver/inputs.h"
#include "driver/options.h"
#include "import/onnx.h"
#include "input_file.h"
#include "ops/op.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

using Links = std::vector<std::pair<std::string, std::string>>;  // output, input

struct Net {
  const char* name;
  std::string text;
  Links links;
  std::string form;     // of the states in their order, as inspect says it
  bool copies = false;  // whether the model itself copies something
  std::map<std::string, std::vector<int64_t>> weights{};
};

const Net kNets[] = {
    {"an LSTM's step",
     "g (float[1,1,4] x, float[1,1,3] h0, float[1,1,3] c0, float[1,12,4] w, float[1,12,3] r)\n"
     "=> (float[1,1,1,3] y, float[1,1,3] hn, float[1,1,3] cn)\n"
     "{ y0, hn, cn = LSTM<hidden_size=3>(x, w, r, , , h0, c0)  y = Neg(y0) }",
     {{"hn", "h0"}, {"cn", "c0"}},
     "slot 0 of 2 in turn, slot 0 of 2 in turn",
     false,
     {{"w", {1, 12, 4}}, {"r", {1, 12, 3}}}},
    {"a causal convolution's cache",
     "g (float[1,2,3] x, float[1,2,4] cache, float[3,2,5] w) => (float[1,3,3] y, float[1,2,4] next)\n"
     "{ all = Concat<axis=2>(cache, x)  y = Conv(all, w)\n"
     "  from = Constant<value = int64[1] {3}>()  to = Constant<value = int64[1] {7}>()\n"
     "  axis = Constant<value = int64[1] {2}>()  next = Slice(all, from, to, axis) }",
     {{"next", "cache"}},
     "4 rows that slide in a buffer of 11",
     true,
     {{"w", {3, 2, 5}}}},
    {"states that feed one another",
     "g (float[2] x, float[2] a, float[2] b) => (float[2] y, float[2] p, float[2] q)\n"
     "{ p = Add(a, x)  two = Constant<value_float = 2.0>()  c = Mul(b, two)  q = Sub(c, x)  y = Sub(a, b) }",
     {{"p", "b"}, {"q", "a"}},
     ""},
    {"two that swap, and one of them grows",
     "g (float[2] x, float[2] a, float[2] b) => (float[2] y, float[2] p, float[2] q)\n"
     "{ y = Mul(a, b)  p = Add(b, x)  q = Identity(a) }",
     {{"p", "a"}, {"q", "b"}},
     "slot 1 of 2 in turn, slot 0 of 2 in turn"},
    {"names that are inputs and outputs",
     "g (float[2] x, float[2] a, float[2] b) => (float[2] y, float[2] a, float[2] b)\n"
     "{ c = Add(x, a)  y = Add(c, b) }",
     {{"a", "b"}, {"b", "a"}},
     "slot 0 of 2 in turn, slot 1 of 2 in turn"},
    {"a state that is passed through",
     "g (float[2] x, float[2] h, float[2] s) => (float[2] y, float[2] hn, float[2] sn)\n"
     "{ sn = Add(s, x)  y = Sub(sn, h)  hn = Identity(h) }",
     {{"hn", "h"}, {"sn", "s"}},
     "kept as it is, updated in place"},
    {"a line of delays",
     "g (float[2] x, float[2] d1, float[2] d2, float[2] d3) => (float[2] y, float[2] e1, float[2] e2, "
     "float[2] e3)\n"
     "{ s = Sub(d3, x)  y = Add(s, d1)  e1 = Neg(x)  e2 = Identity(d1)  e3 = Identity(d2) }",
     {{"e1", "d1"}, {"e2", "d2"}, {"e3", "d3"}},
     "of 3 in turn"},
    {"a counter",
     "g (float[2] x, int64 n) => (float[2] y, int64 next)\n"
     "{ one = Constant<value = int64 {1}>()  next = Add(n, one)  f = Cast<to=1>(n)  y = Mul(x, f) }",
     {{"next", "n"}},
     ""},
    {"what is read when it is written already",
     "g (float[3] x, float[3] h, float[3,3] w) => (float[3] y, float[3] hn)\n"
     "{ a = MatMul(h, w)  b = Add(a, x)  hn = Tanh(b)  c = MatMul(hn, w)  d = Mul(c, h)  y = Sub(d, hn) }",
     {{"hn", "h"}},
     "slot 0 of 2 in turn",
     false,
     {{"w", {3, 3}}}},
    {"a state that is an output as well",
     "g (float[3] x, float[3] h) => (float[3] y, float[3] hn) { y = Add(x, h)  hn = Identity(y) }",
     {{"hn", "h"}},
     "updated in place",
     true},
    {"the shape of another value",
     "g (float[4] x, float[2,2] h) => (float[2,2] y, float[2,2] hn) { to = Constant<value = int64[2] "
     "{2,2}>()\n"
     "  s = Reshape(x, to)  y = Add(s, h)  z = Sub(x, x)  t = Relu(x)  hn = Reshape(t, to) }",
     {{"hn", "h"}},
     ""},
    {"a state of two branches",
     "g (float[2] x, float[2] h) => (float[2] y, float[2] hn) {\n"
     "  s = ReduceSum<keepdims=0>(x)  z = Constant<value_float = 0.0>()  c = Greater(s, z)\n"
     "  hn = If(c) <then_branch = t () => (float[2] u) { u = Add(h, x) },\n"
     "              else_branch = e () => (float[2] v) { v = Neg(h) }>  y = Mul(hn, x) }",
     {{"hn", "h"}},
     ""},
};

class StateTest : public testing::Test {
 protected:
  // Builds main.cpp with the bundle m of the folder net, under sanitizers; it ends with 0.
  void expect_program(const std::vector<std::string>& flags) {
    std::vector<std::string> build = {"c++", "-std=c++17", "-O1", "-fsanitize=address,undefined"};
    build.insert(build.end(), flags.begin(), flags.end());
    build.insert(build.end(),
                 {"-I" + path("net"), path("main.cpp"), path("net/m.cpp"), "-o", path("program")});
    if (std::filesystem::file_size(path("net/m.weights")) > 0) build.push_back(path("net/m_weights.S"));
    const Finished built = run_process(build, true);
    ASSERT_EQ(built.code, 0) << built.output;
    const Finished ran = run_process({path("program")}, true);
    EXPECT_EQ(ran.code, 0) << ran.output;
  }

  static constexpr int64_t kSteps = 7;
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }

  void write(const std::string& name, const Tensor& t) { write_input(path(name), t); }

  void save_net(const Net& m) {
    onnx::ModelProto proto = parse_text("<ir_version: 8, opset_import: [\"\" : 17]>\n" + m.text);
    add_weights(proto, m.weights, random_);
    save(proto, path("m.onnx"));
  }

  // The output "y" of each step, as rows, by the meaning of the model; "x" has a row for each.
  Tensor meant(const Links& links, const Tensor& x) {
    const Model model = import_model(path("m.onnx"), {});
    const Graph& g = *model.graph;
    std::map<std::string, Tensor> values;
    for (const Value* v : g.inputs) values[v->name] = Tensor(v->type.dtype, static_dims(v->type.shape));
    const auto outputs = declared_outputs(path("m.onnx"));
    std::vector<double> rows;
    std::vector<int64_t> shape = {kSteps};
    for (int64_t k = 0; k < kSteps; ++k) {
      Tensor& row = values["x"];
      std::memcpy(row.mutable_data(), x.data() + k * row.bytes(), static_cast<size_t>(row.bytes()));
      std::vector<Tensor> inputs;
      for (const Value* v : g.inputs) inputs.push_back(values.at(v->name));
      const std::vector<Tensor> made = evaluate(g, inputs);
      for (size_t i = 0; i < outputs.size(); ++i) {
        for (const auto& [out, in] : links)
          if (out == outputs[i]) values[in] = made[i];
        if (outputs[i] != "y") continue;
        const std::vector<double> reals = made[i].reals();
        rows.insert(rows.end(), reals.begin(), reals.end());
        shape.resize(1);
        shape.insert(shape.end(), made[i].shape().begin(), made[i].shape().end());
      }
    }
    return Tensor::of(std::vector<float>(rows.begin(), rows.end()), shape);
  }

  std::vector<std::string> with_states(std::vector<std::string> line, const Links& links) {
    for (const auto& [out, in] : links) line.insert(line.end(), {"--state", out + "=" + in});
    return line;
  }

  TemporaryFolder folder_;
  std::mt19937 random_{5};
};

TEST_F(StateTest, StreamsMeanWhatTheModelDoes) {
  for (const auto& m : kNets) {
    SCOPED_TRACE(m.name);
    save_net(m);
    std::vector<int64_t> shape = {kSteps};
    const Model model = import_model(path("m.onnx"), {});
    for (const Value* v : model.graph->inputs)
      if (v->name == "x")
        for (const int64_t d : static_dims(v->type.shape)) shape.push_back(d);
    const Tensor x = random_tensor(DType::kF32, shape, random_);
    write("x.npy", x);
    expect(with_states({"run", path("m.onnx"), "--steps", std::to_string(kSteps), "--in", path("x.npy"),
                        "--out", path("y.npy")},
                       m.links),
           0, "y float32");
    const Tensor got = read_tensor_file(path("y.npy")), want = meant(m.links, x);
    ASSERT_EQ(got.shape(), want.shape());
    for (int64_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got.real(i), want.real(i), 1e-5) << i;

    const Finished inspect = sinter_program(with_states({"inspect", path("m.onnx")}, m.links));
    std::string forms;
    const std::regex line("state  \".*\\] <- \".*\", (.*)|state  \".* <- \".*\", (.*)");
    for (auto i = std::sregex_iterator(inspect.output.begin(), inspect.output.end(), line);
         i != std::sregex_iterator(); ++i)
      forms += (forms.empty() ? "" : ", ") + (*i)[1].str() + (*i)[2].str();
    EXPECT_NE(forms.find(m.form), std::string::npos) << forms << "\n" << inspect.output;
    if (!m.copies) {
      EXPECT_EQ(inspect.output.find(" copy"), std::string::npos) << inspect.output;
    }
  }
}

// Layer by layer, and on another processor.
TEST_F(StateTest, VerifyTakesSteps) {
  for (const size_t i : {0, 3, 6}) {
    save_net(kNets[i]);
    const Links& links = kNets[i].links;
    expect(with_states({"verify", path("m.onnx")}, links), 0, "step 3");
    expect(with_states({"verify", path("m.onnx"), "--target", "cortex-a76"}, links), 0,
           "1 outputs as expected");
  }
}

TEST_F(StateTest, BothOrdersAndPatterns) {
  save_text(
      "g (float[2] x, float[2] past_0_k, float[2] past_1_k) => (float[2] y, float[2] present_0_k, float[2] "
      "present_1_k)\n{ present_0_k = Add(x, past_0_k)  present_1_k = Add(x, past_1_k)  y = Sub(x, past_0_k) "
      "}",
      path("m.onnx"));
  for (const std::vector<std::string>& states :
       {std::vector<std::string>{"present_0_k=past_0_k", "present_1_k=past_1_k"},
        {"past_0_k=present_0_k", "present_1_k=past_1_k"},
        {"present_*=past_*"},
        {"past_*_k=present_*_k"}}) {
    std::vector<std::string> line = {"inspect", path("m.onnx")};
    for (const std::string& s : states) line.insert(line.end(), {"--state", s});
    expect(line, 0, "state  \"past_1_k\" float32[2] <- \"present_1_k\"");
    expect(line, 0, "state  \"past_0_k\" float32[2] <- \"present_0_k\"");
  }
  // With --only, states are wanted as well.
  expect({"inspect", path("m.onnx"), "--only", "y", "--state", "present_0_k=past_0_k"}, 0,
         "state  \"past_0_k\"");
}

TEST_F(StateTest, WhatIsRefused) {
  save_text(
      "g (float[2] x, float[2] h, float[3] w, int64[2] n, float[K] d) => (float[2] hn, float[2] gn, float[K] "
      "dn)\n"
      "{ hn = Add(x, h)  f = Cast<to=1>(n)  gn = Add(f, h)  m = ReduceSum(w)  dn = Add(d, m) }",
      path("m.onnx"));
  const struct {
    std::vector<std::string> states;
    int code;
    const char* said;
  } cases[] = {
      {{"hn"}, 2, "give OUTPUT=INPUT"},
      {{"hn="}, 2, "give OUTPUT=INPUT"},
      {{"h*=h"}, 2, "one * on each side"},
      {{"h**=h*"}, 2, "one * on each side"},
      {{"hm=h"}, 3, "no output or input \"hm\""},
      {{"hn=q"}, 3, "no output or input \"q\""},
      {{"hn=gn"}, 3, "are both outputs"},
      {{"x=h"}, 3, "are both inputs"},
      {{"p*=q*"}, 3, "no output and input of the model are called so"},
      {{"hn=h", "gn=h"}, 3, "the input \"h\" is named twice"},
      {{"hn=h", "hn=x"}, 3, "the output \"hn\" is named twice"},
      {{"hn=w"}, 3, "the output is float32[2], the input float32[3]; axis 0 must stay as it is"},
      {{"hn=n"}, 3, "the output is float32[2], the input int64[2]"},
      {{"dn=d"}, 3, "fix it with --dim \"K=VALUE\""},
      {{"hn=d"}, 3, "axis 0 must stay as it is: fix it with --dim \"K=VALUE\""},
  };
  for (const auto& c : cases) {
    std::vector<std::string> line = {"compile", path("m.onnx"), "-o", path("net"), "--dim", "K<=3"};
    for (const std::string& s : c.states) line.insert(line.end(), {"--state", s});
    expect(line, c.code, c.said);
  }
  expect({"compile", path("m.onnx"), "-o", path("net"), "--state", "dn=d"}, 3, "the dim \"K\"");
  expect({"run", path("m.onnx"), "--dim", "K=1", "--state", "hn=h", "--in", "h=" + path("h.npy")}, 2, "");
}

// The interface: two streams in turn, a buffer of zeros, what a run that fails leaves.
TEST_F(StateTest, SeveralStreams) {
  save_text(
      "g (float[N,2] x, float[N,2] a, float[N,2] b) => (float[N,2] y, float[N,2] an, float[N,2] bn)\n"
      "{ an = Add(a, x)  y = Add(an, b)  bn = Identity(a) }",
      path("m.onnx"));
  put(path("main.cpp"), R"(
#include <cstring>
#include "m.h"
alignas(64) static unsigned char arena[M_ARENA_BYTES + 1], one[M_STATE_BYTES], two[M_STATE_BYTES];
static float sum(void* state, float x, int& code) {
  float in_data[4] = {x, x, x, x}, out_data[4] = {};
  m_inputs in = {in_data, {2, 2}};
  m_outputs out = {out_data, {}};
  code = m_run(&in, &out, arena, state);
  return out_data[3];
}
int main() {
  int code = 0;
  std::memset(one, 0xff, sizeof one);
  m_reset(one);  // `two` is of zeros
  float total = 0, before = 0, total_two = 0, before_two = 0;
  for (int k = 0; k < 4; ++k) {
    const float x = static_cast<float>(2 * k + 1), z = static_cast<float>(10 * (k % 2 ? -1 : 2));
    const float y = sum(one, x, code);
    if (code != M_OK || y != total + x + before) return 1;
    before = total, total += x;
    const float v = sum(two, z, code);
    if (code != M_OK || v != total_two + z + before_two) return 2;
    before_two = total_two, total_two += z;
  }
  unsigned char kept[M_STATE_BYTES];
  std::memcpy(kept, one, sizeof one);
  float row[6] = {}, y[6];
  m_inputs in = {row, {3, 2}};  // the stream has two rows
  m_outputs out = {y, {}};
  if (m_run(&in, &out, arena, one) != M_E_DIM) return 3;
  in.x_dims[0] = 4;
  if (m_run(&in, &out, arena, one) != M_E_DIM) return 4;
  in.x_dims[0] = 2;
  if (m_run(&in, &out, arena, nullptr) != M_E_NULL) return 5;
  if (m_run(&in, &out, arena, one + 8) != M_E_ALIGN) return 6;
  if (std::memcmp(kept, one, sizeof one) != 0) return 7;
  m_reset(one);
  in.x_dims[0] = 3;
  if (m_run(&in, &out, arena, one) != M_OK || y[5] != 0) return 8;
  return 0;
}
)");
  expect(
      {"compile", path("m.onnx"), "-o", path("net"), "--state", "an=a", "--state", "bn=b", "--dim", "N<=3"},
      0, "m: ");
  expect_program({"-Wall", "-Wextra", "-Wconversion", "-Werror"});
}

// Steps of other extents, each with files of its own; and one file of all rows can't hold them.
TEST_F(StateTest, StepsOfOtherExtents) {
  save_text(
      "g (float[N] x, float[1] h) => (float[N] y, float[1] hn) { s = ReduceSum(x) hn = Add(h, s) y = Add(x, "
      "h) }",
      path("m.onnx"));
  write("x_0.npy", Tensor::of(std::vector<float>{1, 2}, {2}));
  write("x_1.npy", Tensor::of(std::vector<float>{5}, {1}));
  std::vector<std::string> line = {"run",  path("m.onnx"), "--state", "hn=h", "--dim",
                                   "N<=2", "--steps",      "2",       "--in", "x=" + path("x_%.npy"),
                                   "--out"};
  line.push_back("y=" + path("y_%.npy"));
  expect(line, 0, "1: y float32[1]");
  EXPECT_EQ(read_tensor_file(path("y_0.npy")).reals(), (std::vector<double>{1, 2}));
  EXPECT_EQ(read_tensor_file(path("y_1.npy")).reals(), (std::vector<double>{8}));
  line.back() = "y=" + path("y.npy");
  expect(line, 2, "has other extents in step 1");
  line.resize(line.size() - 2);
  expect(line, 0, "1: y float32[1]: 8");
  line[7] = "3";
  expect(line, 2, "x_2.npy");
}

// Caches that grow: joined by the model in the other slot, or written in place where attention reads them.
struct Cache {
  const char* name;
  const char* text;
  std::vector<int64_t> row;  // extents of x in a step, with 0 for the number of rows
  const char *form, *kernel;
};

const Cache kCaches[] = {
    {"joined and summed up",
     "<ir_version: 8, opset_import: [\"\" : 17]> g (float[S,2] x, float[P,2] past) => (float[1,2] y, "
     "float[R,2] present)\n"
     "{ present = Concat<axis=0>(past, x)  axis = Constant<value = int64[1] {0}>()  y = ReduceSum(present, "
     "axis) }",
     {0, 2},
     "float32[P,2] <- \"present\"",
     "copy"},
    {"attention with a past",
     "<ir_version: 10, opset_import: [\"\" : 23]> g (float[1,2,S,4] x, float[1,2,P,4] past_k, float[1,2,P,4] "
     "past_v)\n"
     "=> (float[1,2,S,4] y, float[1,2,R,4] present_k, float[1,2,R,4] present_v)\n"
     "{ k = Sin(x)  v = Cos(x)  y, present_k, present_v = Attention<is_causal=1>(x, k, v, , past_k, past_v) "
     "}",
     {1, 2, 0, 4},
     "\"present_k\", updated in place",
     "tensor_scatter"},
    {"attention with a past and heads behind the positions",
     "<ir_version: 10, opset_import: [\"\" : 23]> g (float[2,S,8] x, float[2,2,P,4] past_k, float[2,2,P,4] "
     "past_v)\n"
     "=> (float[2,S,8] y, float[2,2,R,4] present_k, float[2,2,R,4] present_v)\n"
     "{ k = Sin(x)  v = Cos(x)  z, present_k, present_v = Attention<is_causal=1, q_num_heads=2, "
     "kv_num_heads=2>(x, k, "
     "v, , past_k, past_v)  y = Neg(z) }",
     {2, 0, 8},
     "\"present_v\", updated in place",
     "tensor_scatter"},
    {"old and new keys joined",
     "<ir_version: 10, opset_import: [\"\" : 23]> g (float[1,2,S,4] x, float[1,2,P,4] past_k, float[1,2,P,4] "
     "past_v)\n"
     "=> (float[1,2,S,4] y, float[1,2,R,4] present_k, float[1,2,R,4] present_v)\n"
     "{ k = Sin(x)  v = Cos(x)  present_k = Concat<axis=2>(past_k, k)  present_v = Concat<axis=-2>(past_v, "
     "v)\n"
     "  y = Attention(x, present_k, present_v) }",
     {1, 2, 0, 4},
     "\"present_v\", updated in place",
     "tensor_scatter"},
    {"joined keys that are asked for their extents, for a mask",
     "<ir_version: 10, opset_import: [\"\" : 23]> g (float[1,2,S,4] x, float[1,2,P,4] past_k, float[1,2,P,4] "
     "past_v)\n"
     "=> (float[1,2,S,4] y, float[1,2,R,4] present_k, float[1,2,R,4] present_v)\n"
     "<int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[2] flat = {1,-1}, float slope = {0.3}>\n"
     "{ k = Sin(x)  v = Cos(x)  present_k = Concat<axis=2>(past_k, k)  present_v = Concat<axis=2>(past_v, "
     "v)\n"
     "  extents = Shape(present_k)  total = Gather(extents, two)  places = Range(zero, total, one)\n"
     "  before = Shape(past_v)  old = Gather(before, two)  behind = Sub(places, old)  d = "
     "Cast<to=1>(behind)\n"
     "  bias = Mul(d, slope)  mask = Reshape(bias, flat)  y = Attention(x, present_k, present_v, mask) }",
     {1, 2, 0, 4},
     "\"present_k\", updated in place",
     "tensor_scatter"},
    {"joined keys, and a mask whose length is a number of its own in the model",
     "<ir_version: 10, opset_import: [\"\" : 17]> g (float[1,2,S,4] x, float[1,1,S,M] mask, float[1,2,P,4] "
     "past_k, float[1,2,P,4] past_v)\n"
     "=> (float[1,2,S,4] y, float[1,2,R,4] present_k, float[1,2,R,4] present_v)\n"
     "{ k = Sin(x)  v = Cos(x)  present_k = Concat<axis=2>(past_k, k)  present_v = Concat<axis=2>(past_v, "
     "v)\n"
     "  t = Transpose<perm=[0,1,3,2]>(present_k)  m = MatMul(x, t)  d = Add(m, mask)  p = Softmax(d)\n"
     "  y = MatMul(p, present_v) }",
     {1, 2, 0, 4},
     "\"present_k\", updated in place",
     "tensor_scatter"},
    {"keys that something else reads",
     "<ir_version: 10, opset_import: [\"\" : 23]> g (float[1,2,S,4] x, float[1,2,P,4] past_k, float[1,2,P,4] "
     "past_v)\n"
     "=> (float[1,2,S,4] y, float[1,2,R,4] present_k, float[1,2,R,4] present_v)\n"
     "{ k = Sin(x)  v = Cos(x)  present_k = Concat<axis=2>(past_k, k)  present_v = Concat<axis=2>(past_v, "
     "v)\n"
     "  z = Attention(x, present_k, present_v)  m = ReduceMax(present_k)  y = Add(z, m) }",
     {1, 2, 0, 4},
     "slot 0 of 2 in turn",
     "copy"},
};

// NAME.map says that of each cache as many rows are written as a step has at most, 3 of all.
void check_written(const std::string& map, int64_t capacity) {
  int caches = 0;
  const nlohmann::json layers = nlohmann::json::parse(contents(map))["layers"];
  for (const auto& l : layers)
    for (const auto& t : l["tensors"]) {
      if (t["role"] != "write" || t["where"] != "state" || t["name"] == "P") continue;
      if (!t.contains("written_bytes")) continue;
      EXPECT_EQ(t["written_bytes"].get<int64_t>() * capacity, t["bytes"].get<int64_t>() * 3);
      ++caches;
    }
  EXPECT_EQ(caches, 2);
}

TEST_F(StateTest, CachesThatGrow) {
  const std::vector<int64_t> steps = {3, 1, 1, 2, 1};  // 8 rows
  for (const Cache& c : kCaches) {
    SCOPED_TRACE(c.name);
    save(parse_text(c.text), path("m.onnx"));
    ImportOptions import;
    import.dims = {parse_dim("P=0..8"), parse_dim("S<=3")};
    const bool masked = std::string_view(c.text).find(",M] mask") != std::string_view::npos;
    if (masked) import.dims.push_back(parse_dim("M<=8"));
    const Model model = import_model(path("m.onnx"), import);
    const Graph& g = *model.graph;
    const std::vector<std::string> outputs = declared_outputs(path("m.onnx"));
    std::map<std::string, Tensor> values;
    for (const Value* v : g.inputs) {
      std::vector<int64_t> shape;
      for (const Dim& d : v->type.shape) shape.push_back(d.is_static() ? d.value() : 0);
      values[v->name] = Tensor(v->type.dtype, shape);
    }
    std::vector<Tensor> want;
    int64_t rows = 0;
    for (size_t k = 0; k < steps.size(); ++k) {
      std::vector<int64_t> shape = c.row;
      for (int64_t& d : shape)
        if (d == 0) d = steps[k];
      values["x"] = random_tensor(DType::kF32, shape, random_);
      write(fmt::format("x_{}.npy", k), values["x"]);
      rows += steps[k];
      if (masked) {
        values["mask"] = random_tensor(DType::kF32, {1, 1, steps[k], rows}, random_);
        write(fmt::format("mask_{}.npy", k), values["mask"]);
      }
      std::vector<Tensor> inputs;
      for (const Value* v : g.inputs) inputs.push_back(values.at(v->name));
      const std::vector<Tensor> made = evaluate(g, inputs);
      for (size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i] == "y")
          want.push_back(made[i]);
        else
          values["past" + outputs[i].substr(7)] = made[i];
    }
    for (const std::string bound : {"8", "7"}) {
      std::vector<std::string> options = {
          path("m.onnx"), "--state", "present*=past*", "--dim", "P=0.." + bound, "--dim", "S<=3"};
      if (masked) options.insert(options.end(), {"--dim", "M<=8"});
      std::vector<std::string> run = {"run"}, inspect = {"inspect"};
      run.insert(run.end(), options.begin(), options.end());
      inspect.insert(inspect.end(), options.begin(), options.end());
      run.insert(run.end(), {"--steps", "5", "--in", path("x_%.npy"), "--out", path("y_%.npy")});
      if (masked) run.insert(run.end(), {"--in", path("mask_%.npy")});
      expect(inspect, 0, c.form);
      inspect.insert(inspect.end(), {"--json", path("map.json")});
      expect(inspect, 0, c.kernel);
      if (std::string_view(c.kernel) == "tensor_scatter") check_written(path("map.json"), std::stoll(bound));
      if (bound == "8")
        expect(run, 0, "4: y");
      else
        expect(run, 6, "error 4");  // the last row has no room
    }
    if (masked) {  // one that is as long as the old rows alone
      write("short_0.npy", random_tensor(DType::kF32, {1, 1, 3, 3}, random_));
      write("short_1.npy", random_tensor(DType::kF32, {1, 1, 1, 3}, random_));
      expect({"run", path("m.onnx"), "--state", "present*=past*", "--dim", "P=0..8", "--dim", "S<=3", "--dim",
              "M<=8", "--steps", "2", "--in", path("x_%.npy"), "--in", path("short_%.npy"), "--out",
              path("z_%.npy")},
             6, "the input mask was given [1,1,1,3]");
    }
    for (size_t k = 0; k < want.size(); ++k) {
      const Tensor got = read_tensor_file(path(fmt::format("y_{}.npy", k)));
      ASSERT_EQ(got.shape(), want[k].shape());
      for (int64_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got.real(i), want[k].real(i), 1e-5) << k << ", " << i;
    }
  }
  expect({"compile", path("m.onnx"), "-o", path("net"), "--state", "present*=past*", "--dim", "P=1..8",
          "--dim", "S=1"},
         3, "begins with no rows: give --dim \"P=0..MAX\"");
}

// Where the next row has no room, the run says so and leaves the state as it was.
TEST_F(StateTest, FullCachesStayAsTheyAre) {
  for (const size_t i : {0, 1}) {
    SCOPED_TRACE(kCaches[i].name);
    save(parse_text(kCaches[i].text), path("m.onnx"));
    expect({"compile", path("m.onnx"), "-o", path("net"), "--state", "present*=past*", "--dim", "P=0..4",
            "--dim", "S<=3", "--target", "scalar"},
           0, "m: ");
    put(path("main.cpp"), fmt::format(R"(
#include <cstdlib>
#include <cstring>
#include "m.h"
int main() {{
  // Buffers of just the bytes, so that the sanitizer sees what goes beyond.
  auto* const arena = static_cast<unsigned char*>(std::aligned_alloc(64, M_ARENA_BYTES + 64));
  auto* const state = static_cast<unsigned char*>(std::aligned_alloc(64, M_STATE_BYTES));
  static unsigned char kept[M_STATE_BYTES];
  static float x[M_X_MAX_BYTES / 4], y[M_Y_MAX_BYTES / 4], once[M_Y_MAX_BYTES / 4];
  for (float& v : x) v = 0.5f;
  m_inputs in = {{x, {{{0}}}}};
  m_outputs out = {{}};
  out.y = y;
  m_reset(state);
  int64_t& rows = in.x_dims[{1}];
  rows = 3;
  if (m_run(&in, &out, arena, state) != M_OK) return 1;
  std::memcpy(kept, state, M_STATE_BYTES);
  rows = 2;
  if (m_run(&in, &out, arena, state) != M_E_CAPACITY) return 2;
  if (std::memcmp(kept, state, M_STATE_BYTES) != 0) return 3;
  rows = 4;
  if (m_run(&in, &out, arena, state) != M_E_DIM) return 4;
  rows = INT64_MAX;
  if (m_run(&in, &out, arena, state) != M_E_DIM) return 5;
  rows = 1;
  if (m_run(&in, &out, arena, state) != M_OK) return 6;
  std::memcpy(once, y, sizeof y);
  if (m_run(&in, &out, arena, state) != M_E_CAPACITY) return 7;
  std::memcpy(state, kept, M_STATE_BYTES);  // a copy goes on where it was taken
  if (m_run(&in, &out, arena, state) != M_OK || std::memcmp(once, y, sizeof y) != 0) return 8;
  std::free(arena), std::free(state);
  return 0;
}}
)",
                                      i == 0 ? "0, 2" : "1, 2, 0, 4", i == 0 ? 0 : 2));
    expect_program({});
  }
}

}  // namespace
}  // namespace sinter
