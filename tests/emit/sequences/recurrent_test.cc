// RNN, GRU and LSTM as generated code: every gate, direction, layout and optional tensor; odd widths, blocks
// of steps, symbolic extents, other element types and computed weights.
#include <gtest/gtest.h>

#include <cmath>

#include "emit/sheet.h"

namespace sinter {
namespace {

// Small weights: long sums stay in the activations' curved part, and long sequences don't make chaos of
// rounding errors.
Tensor weights(DType t, std::vector<int64_t> shape, unsigned seed) {
  Tensor c = random_constant(t, std::move(shape), seed);
  for (int64_t i = 0; i < c.size(); ++i)
    c.set_real(i, c.real(i) * 0.6 / std::sqrt(static_cast<double>(c.shape().back())));
  return c;
}
void lengths(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, static_cast<int64_t>(random() % 4));
}

struct Net {
  const char* op;
  int64_t inputs, hidden;
  Dim steps, batch;
  bool both = false, lengths = false, state = false, bias = true, peephole = false, computed = false;
  DType t = DType::kF32;
  AttributeList attributes = {};
  std::vector<bool> outputs = {true, true};

  void into(Sheet& s) const {
    const bool lstm = std::string(op) == "LSTM";
    const int64_t rows = hidden * (lstm ? 4 : std::string(op) == "GRU" ? 3 : 1), d = both ? 2 : 1;
    AttributeList a = attributes;
    if (both) a.push_back({"direction", "bidirectional"});
    bool last = false;
    for (const auto& [name, value] : a) last = last || (name == "layout" && std::get<int64_t>(value) == 1);
    const Shape states = last ? Shape{batch, d, hidden} : Shape{d, batch, hidden};
    std::vector<Arg> in{values(t, last ? Shape{batch, steps, inputs} : Shape{steps, batch, inputs}),
                        constant(weights(t, {d, rows, inputs}, 1)),
                        computed ? values(t, {d, rows, hidden}) : constant(weights(t, {d, rows, hidden}, 2)),
                        bias ? constant(weights(t, {d, 2 * rows}, 3)) : absent(),
                        lengths ? values(DType::kI32, {batch}, sinter::lengths) : absent(),
                        state ? values(t, states) : absent()};
    if (lstm) {
      in.push_back(state ? values(t, states) : absent());
      in.push_back(peephole ? constant(weights(t, {d, 3 * hidden}, 4)) : absent());
    }
    std::vector<bool> out = outputs;
    if (lstm && out.size() == 2) out.push_back(true);
    s.add(op, in, a, out);
  }
};

void add_sheets(GeneratedBatch& batch) {
  Sheet s;
  const Dim t = s.symbol("T", 0, 40), n = s.symbol("N", 1, 9), l = s.symbol("L", 3, 40);
  const int64_t one = 1;
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    Net{.op = op, .inputs = 5, .hidden = 19, .steps = t, .batch = n, .both = true, .state = true}.into(s);
    Net{.op = op, .inputs = 4, .hidden = 16, .steps = 3, .batch = 1, .bias = false}.into(s);
    Net{.op = op, .inputs = 6, .hidden = 21, .steps = 1, .batch = 1, .state = true}.into(s);
    Net{.op = op,
        .inputs = 7,
        .hidden = 8,
        .steps = 4,
        .batch = 3,
        .both = true,
        .lengths = true,
        .state = true}
        .into(s);
    Net{.op = op,
        .inputs = 3,
        .hidden = 9,
        .steps = l,
        .batch = n,
        .both = true,
        .lengths = true,
        .attributes = {{"layout", one}}}
        .into(s);
    Net{.op = op,
        .inputs = 3,
        .hidden = 9,
        .steps = t,
        .batch = n,
        .state = true,
        .attributes = {{"layout", one}, {"direction", "reverse"}}}
        .into(s);
    Net{.op = op,
        .inputs = 5,
        .hidden = 3,
        .steps = 6,
        .batch = 2,
        .attributes = {{"clip", 0.2f}},
        .outputs = {false, true}}
        .into(s);
    Net{.op = op, .inputs = 5, .hidden = 3, .steps = 6, .batch = 2, .outputs = {true}}.into(s);
    Net{.op = op,
        .inputs = 5,
        .hidden = 7,
        .steps = t,
        .batch = n,
        .both = true,
        .state = true,
        .computed = true}
        .into(s);
  }
  for (bool lengths : {false, true})
    Net{.op = "GRU",
        .inputs = 5,
        .hidden = 19,
        .steps = l,
        .batch = n,
        .both = true,
        .lengths = lengths,
        .attributes = {{"linear_before_reset", one}}}
        .into(s);
  Net{.op = "GRU",
      .inputs = 5,
      .hidden = 19,
      .steps = 1,
      .batch = 1,
      .state = true,
      .attributes = {{"linear_before_reset", one}}}
      .into(s);
  Net{.op = "LSTM",
      .inputs = 5,
      .hidden = 19,
      .steps = t,
      .batch = n,
      .both = true,
      .state = true,
      .peephole = true,
      .attributes = {{"input_forget", one}}}
      .into(s);
  Net{.op = "LSTM", .inputs = 5, .hidden = 10, .steps = 3, .batch = 2, .peephole = true}.into(s);
  // A block of steps is shorter than the sequence.
  Net{.op = "LSTM", .inputs = 2, .hidden = 130, .steps = 130, .batch = 1, .both = true}.into(s);
  s.into(batch, "floats",
         {{{"T", 0}, {"N", 1}, {"L", 3}}, {{"T", 3}, {"N", 9}, {"L", 5}}, {{"T", 40}, {"N", 2}, {"L", 40}}});
  // What compilers would warn of: loops for a rest that is never there, a step that nothing asks for.
  Sheet full;
  const Dim some = full.symbol("T", 1, 40);
  for (const char* op : {"GRU", "LSTM"}) {
    Net{.op = op, .inputs = 2, .hidden = 16, .steps = 16, .batch = 3}.into(full);
    Net{.op = op, .inputs = 28, .hidden = 16, .steps = 12, .batch = 1}.into(full);
    Net{.op = op, .inputs = 18, .hidden = 19, .steps = 20, .batch = 1}.into(full);
    Net{.op = op, .inputs = 18, .hidden = 19, .steps = 13, .batch = 2}.into(full);
    Net{.op = op, .inputs = 18, .hidden = 65, .steps = 61, .batch = 3}.into(full);
    Net{.op = op, .inputs = 18, .hidden = 16, .steps = some, .batch = 3}.into(full);
    Net{.op = op, .inputs = 8, .hidden = 16, .steps = 1, .batch = 1, .outputs = {false, true}}.into(full);
  }
  full.into(batch, "full", {{{"T", 11}}});
}

void add_activations(GeneratedBatch& batch) {
  Sheet s;
  const std::vector<std::string> names{
      "Relu",       "Tanh",        "Sigmoid", "Affine",   "LeakyRelu", "ThresholdedRelu",
      "ScaledTanh", "HardSigmoid", "Elu",     "Softsign", "Softplus"};
  for (DType t : {DType::kF32, DType::kF64})
    for (size_t i = 0; i + 1 < names.size(); ++i)
      Net{.op = "RNN",
          .inputs = 4,
          .hidden = 9,
          .steps = 2,
          .batch = 2,
          .both = true,
          .t = t,
          .attributes = {{"activations", std::vector<std::string>{names[i], names[i + 1]}},
                         {"activation_alpha", std::vector<float>{0.3f, 0.7f}},
                         {"activation_beta", std::vector<float>{0.4f, 0.6f}}}}
          .into(s);
  for (DType t : {DType::kF16, DType::kBF16, DType::kF64})
    for (const char* op : {"RNN", "GRU", "LSTM"})
      Net{.op = op,
          .inputs = 4,
          .hidden = 5,
          .steps = 3,
          .batch = 2,
          .both = true,
          .lengths = t == DType::kF64,
          .state = true,
          .peephole = true,
          .t = t,
          .attributes = {{"clip", 1.0f}}}
          .into(s);
  s.into(batch, "activations", {{}}, {.relative = -1, .of_max = -1});
}

TEST(Recurrent, Avx512) {
  GeneratedBatch batch;
  add_sheets(batch);
  add_activations(batch);
  expect_good(batch.run(target("avx512")));
}
TEST(Recurrent, Aarch64) {
  GeneratedBatch batch;
  add_sheets(batch);
  expect_good(batch.run(target("aarch64")));
}
TEST(Recurrent, CortexA53) {
  GeneratedBatch batch;
  add_sheets(batch);
  expect_good(batch.run(target("cortex-a53"), {.flags = "-O2"}));
}
TEST(Recurrent, Avx2WithSanitizers) {
  GeneratedBatch batch;
  add_sheets(batch);
  expect_good(batch.run(target("avx2"), {.sanitize = true}));
}
TEST(Recurrent, OtherCompilersAndTargets) {
  GeneratedBatch batch;
  add_sheets(batch);
  add_activations(batch);
  expect_good(batch.run(target("avx512"), {.clang = true}), "clang");
  expect_good(batch.run(target("scalar")), "scalar");
}

// A length beyond the steps is found before anything is computed with it.
TEST(Recurrent, LengthsOutsideAreErrors) {
  for (const char* op : {"LSTM", "RNN"}) {
    GeneratedBatch batch;
    Sheet s;
    Net{.op = op,
        .inputs = 3,
        .hidden = 4,
        .steps = 3,
        .batch = 1,
        .lengths = true,
        .computed = std::string(op) == "RNN"}
        .into(s);
    auto graph = s.graph().clone();
    std::vector<DataSet> sets(2);
    for (size_t i = 0; i < 2; ++i) {
      for (const Value* v : graph->inputs)
        sets[i].inputs.push_back(Tensor(v->type.dtype, static_dims(v->type.shape)));
      for (Tensor& t : sets[i].inputs)
        if (t.dtype() == DType::kI32) t.set_integer(0, i == 0 ? 4 : -1);
      sets[i].status = 5;
    }
    batch.add(op, std::move(graph), sets);
    expect_good(batch.run(target("scalar")), op);
  }
}

}  // namespace
}  // namespace sinter
