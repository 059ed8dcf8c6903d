// --fp16: layers that compute or store halves, against the same graph in floats. Vectors of eight with tails
// of one lane and more, edges, strides, groups, blocks of long sums, and what stays in floats beside them.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "emit/sheet.h"
#include "passes/passes.h"

namespace sinter {
namespace {

Arg weights(std::vector<int64_t> shape, unsigned seed) {
  Tensor w = random_constant(DType::kF32, std::move(shape), seed);
  for (int64_t i = 0; i < w.size(); ++i) w.set_real(i, w.real(i) / 8);
  return constant(w);
}

ExprPtr acc() { return Expr::accumulator(DType::kF32); }

struct Conv {
  const char* op;
  Shape spatial;
  int64_t in;
  Ints weight;
  AttributeList attributes;
};

// One pixel, edges, strides, dilations, groups, depthwise, phases, few channels by columns, Winograd, sums of
// one block and of many.
void add_convs(Sheet& s) {
  const Ints same{1, 1, 1, 1}, twice{2, 2};
  const Conv cases[] = {
      {"Conv", {9, 9}, 5, {7, 5, 1, 1}, {}},
      {"Conv", {7, 7}, 24, {41, 24, 3, 3}, {{"pads", same}}},
      {"Conv", {6, 15}, 3, {17, 3, 3, 3}, {{"pads", same}, {"strides", twice}}},
      {"Conv", {10, 13}, 8, {12, 8, 3, 3}, {{"pads", Ints{2, 2, 2, 2}}, {"dilations", twice}}},
      {"Conv", {3, 3}, 200, {20, 200, 1, 1}, {}},
      {"Conv", {3, 5}, 640, {9, 640, 1, 1}, {}},
      {"Conv", {9, 8}, 9, {15, 3, 3, 3}, {{"pads", same}, {"group", int64_t{3}}}},
      {"Conv", {9, 11}, 19, {19, 1, 3, 3}, {{"pads", same}, {"group", int64_t{19}}}},
      {"Conv",
       {9, 11},
       24,
       {24, 1, 5, 5},
       {{"pads", Ints{2, 2, 2, 2}}, {"group", int64_t{24}}, {"strides", twice}}},
      {"Conv", {20, 20}, 33, {19, 33, 3, 3}, {{"pads", same}}},
      {"Conv", {16, 20}, 64, {24, 64, 3, 3}, {{"pads", same}}},
      {"Conv", {24, 20}, 32, {3, 32, 3, 5}, {{"pads", same}}},
      {"ConvTranspose", {5, 6}, 6, {6, 5, 3, 3}, {}},
      {"ConvTranspose", {4, 7}, 8, {8, 22, 2, 2}, {{"strides", twice}}},
      {"ConvTranspose", {4, 5}, 6, {6, 3, 4, 3}, {{"pads", Ints{1, 1, 0, 1}}, {"group", int64_t{2}}}},
  };
  unsigned seed = 0;
  for (const Conv& c : cases) {
    Shape x{Dim(1)};
    x.insert(x.end(), c.spatial.begin(), c.spatial.end());
    x.push_back(Dim(c.in));
    AttributeList a = c.attributes;
    a.push_back({"channels_last", int64_t{1}});
    s.add(c.op, {floats(x), weights(c.weight, ++seed)}, a);
    if (seed % 2) s.epilogue(Expr::call("relu", {acc()}));
  }
}

// First convolutions, which read the caller's planes of floats: of 7x7 taps by Winograd's filtering along the
// rows, of 3x3 by gathered taps.
void add_planes(Sheet& s) {
  for (const int64_t kernel : {7, 3}) {
    const Arg x =
        made(s.add("Transpose", {floats({Dim(1), Dim(3), Dim(45), Dim(59)})}, {{"perm", Ints{0, 2, 3, 1}}})
                 ->outputs[0]);
    s.add("Conv", {x, weights({20, 3, kernel, kernel}, 5)},
          {{"channels_last", int64_t{1}},
           {"pads", Ints{kernel / 2, kernel / 2, kernel / 2, kernel / 2}},
           {"strides", Ints{2, 2}}});
    s.epilogue(Expr::call("relu", {acc()}));
  }
}

// A picture that a convolution makes.
Arg picture(Sheet& s, int64_t height, int64_t width, int64_t channels) {
  return made(s.add("Conv",
                    {floats({Dim(1), Dim(height), Dim(width), Dim(6)}), weights({channels, 6, 1, 1}, 3)},
                    {{"channels_last", int64_t{1}}})
                  ->outputs[0]);
}
Arg rows(Sheet& s, const Dim& count, int64_t width) {
  return made(s.add("MatMul", {floats({count, Dim(12)}), weights({12, width}, 4)})->outputs[0]);
}

void add_pools(Sheet& s) {
  const AttributeList three{
      {"channels_last", int64_t{1}}, {"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}};
  AttributeList strided = three;
  strided.push_back({"strides", Ints{2, 2}});
  for (const int64_t channels : {8, 13, 40}) {
    s.add("MaxPool", {picture(s, 9, 10, channels)}, strided);
    s.add("AveragePool", {picture(s, 8, 7, channels)}, three);
    s.add("GlobalAveragePool", {picture(s, 5, 7, channels)}, {{"channels_last", int64_t{1}}});
  }
}

// Products of two tensors that are both computed: batches, one row, transposed, long sums, a mask in the
// epilogue.
void add_tensor_products(Sheet& s) {
  const auto made_of = [&](Shape shape, int64_t width) {
    shape.push_back(Dim(12));
    return made(s.add("MatMul", {floats(shape), weights({12, width}, 4)})->outputs[0]);
  };
  const Dim n = s.symbol("N", 1, 20);
  for (const int64_t columns : {5, 17, 63}) {
    s.add("MatMul", {made_of({Dim(2), Dim(3), Dim(9)}, 20), made_of({Dim(2), Dim(3), Dim(20)}, columns)});
    s.add("MatMul", {made_of({Dim(3), n}, 8), made_of({Dim(8)}, columns)});
    s.add("MatMul", {made_of({Dim(1)}, 40), made_of({Dim(40)}, columns)});
    s.add("MatMul", {made_of({Dim(7)}, 300), made_of({Dim(300)}, columns)});
    s.epilogue(Expr::call("relu", {acc()}));
    s.add("Gemm", {made_of({n}, 33), made_of({Dim(columns)}, 33)},
          {{"transB", int64_t{1}}, {"alpha", 0.25f}});
  }
}

void add_rows(Sheet& s) {
  const Dim n = s.symbol("M", 1, 30);
  for (const int64_t columns : {1, 5, 17, 63, 130}) {
    s.add("MatMul", {floats({n, Dim(20)}), weights({20, columns}, 1)});
    s.epilogue(Expr::call("gelu", {acc()}));
    s.add("MatMul", {floats({1, 37}), weights({37, columns}, 2)});
    s.add("Gemm", {floats({n, Dim(300)}), weights({columns, 300}, 3), weights({columns}, 4)},
          {{"transB", int64_t{1}}});
    s.add("Softmax", {rows(s, n, columns)}, {{"axis", int64_t{-1}}});
    s.add("LayerNormalization", {rows(s, n, columns), weights({columns}, 5), weights({columns}, 6)});
    s.add("Sigmoid", {rows(s, n, columns)});
    s.add("Add", {rows(s, n, columns), weights({columns}, 7)});
  }
}

// Small enough that rounding errors do not grow from step to step.
Arg gates(std::vector<int64_t> shape, unsigned seed) {
  Tensor w = random_constant(DType::kF32, std::move(shape), seed);
  for (int64_t i = 0; i < w.size(); ++i)
    w.set_real(i, w.real(i) * 0.6 / std::sqrt(static_cast<double>(w.shape().back())));
  return constant(w);
}

struct Recurrent {
  const char* op;
  int64_t inputs, hidden, steps, batch;
  bool both = false, state = false, peephole = false;
  AttributeList attributes = {};
};

// Directions and states, one step, tails of lanes, sums of one block and of more, activations, both GRUs.
void add_recurrent(Sheet& s) {
  std::vector<Recurrent> cases;
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    cases.push_back({op, 5, 19, 7, 3, true, true});
    cases.push_back({op, 8, 16, 1, 1, false, true});
    cases.push_back({op, 4, 11, 9, 1, true});
    cases.push_back({op, 6, 24, 40, 5, false, false, false, {{"direction", "reverse"}}});
    cases.push_back({op, 300, 8, 6, 2});
    cases.push_back({op, 7, 210, 4, 2});
    cases.push_back({op, 6, 12, 5, 2, false, false, false, {{"clip", 0.5f}}});
  }
  cases.push_back({"GRU", 6, 21, 12, 2, false, true, false, {{"linear_before_reset", int64_t{1}}}});
  cases.push_back({"GRU", 6, 21, 1, 1, false, true, false, {{"linear_before_reset", int64_t{1}}}});
  cases.push_back({"LSTM", 6, 21, 12, 2, true, true, true});
  cases.push_back({"LSTM", 6, 9, 5, 2, false, true, false, {{"input_forget", int64_t{1}}}});
  for (const char* f : {"Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
                        "Softsign", "Softplus"})
    cases.push_back({"RNN",
                     6,
                     10,
                     4,
                     2,
                     false,
                     false,
                     false,
                     {{"activations", std::vector<std::string>{f}},
                      {"activation_alpha", std::vector<float>{0.5f}},
                      {"activation_beta", std::vector<float>{0.25f}}}});
  for (const Recurrent& c : cases) {
    const bool lstm = std::string_view(c.op) == "LSTM";
    const int64_t rows = c.hidden * (lstm ? 4 : std::string_view(c.op) == "GRU" ? 3 : 1), d = c.both ? 2 : 1;
    const auto state = [&] { return c.state ? floats({Dim(d), Dim(c.batch), Dim(c.hidden)}) : absent(); };
    std::vector<Arg> in{floats({Dim(c.steps), Dim(c.batch), Dim(c.inputs)}),
                        gates({d, rows, c.inputs}, 1),
                        gates({d, rows, c.hidden}, 2),
                        weights({d, 2 * rows}, 3),
                        absent(),
                        state()};
    if (lstm) {
      in.push_back(state());
      in.push_back(c.peephole ? weights({d, 3 * c.hidden}, 4) : absent());
    }
    AttributeList a = c.attributes;
    a.push_back({"hidden_size", c.hidden});
    if (c.both) a.push_back({"direction", "bidirectional"});
    std::vector<bool> outputs(lstm ? 3 : 2, true);
    s.add(c.op, in, a, outputs);
  }
}

// `masked`: what stands for "not this one" in a mask of keys and queries, one row of which has nothing else;
// nothing: no mask.
void add_attention(Sheet& s, int64_t queries, int64_t keys, std::optional<double> masked,
                   bool is_constant = false) {
  const auto heads = [&](int64_t length) {
    const Arg x =
        made(s.add("MatMul", {floats({Dim(2), Dim(length), Dim(12)}), weights({12, 40}, 8)})->outputs[0]);
    return x;
  };
  std::vector<Arg> args{heads(queries), heads(keys), heads(keys)};
  const auto fill = [masked, keys](Tensor& t, std::mt19937& random) {
    for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, random() % 3 == 0 || i / keys == 1 ? *masked : 0.0);
  };
  if (masked && is_constant) {
    Tensor t(DType::kF32, {queries, keys});
    std::mt19937 random(5);
    fill(t, random);
    args.push_back(constant(t));
  } else if (masked) {
    args.push_back(floats({Dim(queries), Dim(keys)}, fill));
  }
  s.add("Attention", args, {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}});
}

// The sheet's graph in halves; what is expected are the floats of the graph as it was.
void into(GeneratedBatch& batch, const std::string& name, Sheet& s,
          const std::vector<std::map<std::string, int64_t>>& settings = {{}}) {
  std::vector<DataSet> sets = s.data(settings);
  for (DataSet& d : sets) d.expected = evaluate(s.graph(), d.inputs);
  PassOptions options;
  options.halves = true;
  for (const DataSet& d : sets) options.samples.push_back(d.inputs);
  ASSERT_TRUE(compute_in_halves(s.graph(), options));
  for (const auto& n : s.graph().nodes)
    if (const std::string_view op = n->op->name;
        op == "Attention" || op == "MatMul" || op == "Gemm" || op == "RNN" || op == "GRU" || op == "LSTM") {
      EXPECT_EQ(n->freedom.halves, Halves::kComputed) << label(*n) << " with " << n->freedom.half_error;
    }
  allow_winograd(s.graph(), options);
  batch.add(name, s.graph().clone(), std::move(sets), {0, 1e-2});
}

void run(const char* name, const BuildOptions& options) {
  GeneratedBatch batch;
  Sheet convs, planes, pools, products, attention, tensors, recurrent;
  add_convs(convs);
  add_planes(planes);
  add_pools(pools);
  add_rows(products);
  add_tensor_products(tensors);
  add_recurrent(recurrent);
  add_attention(attention, 5, 9, {});
  add_attention(attention, 3, 300, {});
  constexpr double kLowest = -3.4028234663852886e38;
  for (const double masked : {-1e4, -65504.0, -1e9, kLowest})
    for (const bool is_constant : {false, true}) add_attention(attention, 16, 24, masked, is_constant);
  into(batch, "convs", convs);
  into(batch, "planes", planes);
  into(batch, "pools", pools);
  into(batch, "rows", products, {{{"M", 1}}, {{"M", 13}}});
  into(batch, "attention", attention);
  into(batch, "recurrent", recurrent);
  into(batch, "tensors", tensors, {{{"N", 1}}, {{"N", 11}}});
  expect_good(batch.run(target(name), options), name);
}

TEST(Halves, OutOfOrder) { run("cortex-a76", {.flags = "-O2"}); }
TEST(Halves, InOrder) { run("cortex-a55", {.flags = "-O2"}); }

// What a half can't hold, and what --keep-f32 names, stays in floats; so does a layer beyond the error that
// is allowed. Inputs and outputs keep their types.
TEST(Halves, StayInFloatsWhereTheyMust) {
  const auto halves = [](double scale, double limit, const std::string& keep) {
    Sheet s;
    Tensor w = random_constant(DType::kF32, {64, 16});
    for (int64_t i = 0; i < w.size(); ++i) w.set_real(i, w.real(i) * scale);
    Node* n = s.add("MatMul", {floats({4, 64}), constant(w)});
    PassOptions options;
    options.halves = true;
    options.half_error = limit;
    if (!keep.empty()) options.keep_f32.insert(keep);
    options.samples = {s.data({{}})[0].inputs};
    compute_in_halves(s.graph(), options);
    for (const Value* v : s.graph().inputs) EXPECT_EQ(v->type.dtype, DType::kF32);
    for (const Value* v : s.graph().outputs) EXPECT_EQ(v->type.dtype, DType::kF32);
    s.graph().verify();
    return n->freedom.halves;
  };
  EXPECT_EQ(halves(1, 1e-2, ""), Halves::kComputed);
  EXPECT_EQ(halves(1e5, 1e-2, ""), Halves::kNone) << "weights beyond 65504";
  EXPECT_EQ(halves(5e3, 1e-2, ""), Halves::kNone) << "results beyond 65504";
  EXPECT_EQ(halves(1, 1e-4, ""), Halves::kNone) << "errors above the limit";
  EXPECT_EQ(halves(1, 1e-2, "MatMul0"), Halves::kNone);
}

}  // namespace
}  // namespace sinter
