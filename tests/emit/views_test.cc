// Views: pieces of tensors that take neither code nor memory, and the cases where they must not be made.
#include "plan/views.h"

#include <gtest/gtest.h>

#include "emit/sheet.h"
#include "plan/plan.h"

namespace sinter {
namespace {

// A small graph built node by node; every layer of it is elementwise or a copy.
struct Net {
  std::unique_ptr<Graph> g = std::make_unique<Graph>();
  Dim n{Dim(g->symbols->fresh("N", {1, 4}, "test"))};
  Value* input(const std::string& name, Shape shape) {
    Value* v = g->add_value(name, {DType::kF32, std::move(shape)});
    g->inputs.push_back(v);
    return v;
  }
  std::vector<Value*> node(const char* op, std::vector<Value*> in, const AttributeList& attributes = {},
                           size_t outputs = 1) {
    std::vector<Value*> out;
    for (size_t i = 0; i < outputs; ++i) out.push_back(g->add_value(op, {}));
    Node* made = g->add_node(find_op("", op), op, std::move(in), out);
    for (const auto& [key, value] : attributes) made->attributes.set(key, value);
    infer(*g, *made);
    return out;
  }
  Value* one(const char* op, std::vector<Value*> in, const AttributeList& a = {}) {
    return node(op, std::move(in), a)[0];
  }
  Value* ints(const Ints& v) { return g->add_constant("c", Tensor::of(v)); }
};

struct Planned {
  size_t copies = 0, layers = 0;
  int64_t arena = 0;
};
Planned plan_of(const Graph& g) {
  auto copy = g.clone();
  separate_outputs(*copy, {});
  WeightStore store;
  const Plan plan = make_plan(*copy, target("avx512"), {}, store);
  Planned p{0, plan.layers.size(), plan.arena_bytes};
  for (const Layer& l : plan.layers) p.copies += l.kernel.rfind("copy", 0) == 0;
  return p;
}

void run(const std::string& name, Net& net) {
  GeneratedBatch batch;
  std::vector<DataSet> sets;
  std::mt19937 random(3);
  for (int64_t n : {1, 4}) {
    DataSet d;
    for (const Value* v : net.g->inputs) {
      std::vector<int64_t> dims;
      for (const Dim& e : v->type.shape) dims.push_back(e.evaluate([&](const Symbol&) { return n; }));
      Tensor t(v->type.dtype, dims);
      random_fill(t, random);
      d.inputs.push_back(std::move(t));
    }
    sets.push_back(std::move(d));
  }
  batch.add(name, std::move(net.g), std::move(sets));
  for (const char* t : {"avx512", "aarch64"}) {
    const auto results = batch.run(target(t));
    if (results[0].skipped.empty()) expect_good(results, t);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
}

TEST(Views, ConcatIsWrittenInPlace) {
  Net t;
  Value* x = t.input("x", {t.n, Dim(3)});
  Value* a = t.one("Relu", {x});
  Value* b = t.one("Reshape", {t.one("Neg", {x}), t.ints({-1, 3})});
  Value* c = t.one("Concat", {a, b}, {{"axis", int64_t{0}}});
  t.g->outputs = {t.one("Abs", {c})};
  const Planned p = plan_of(*t.g);
  EXPECT_EQ(p.copies, 0u);
  EXPECT_EQ(p.layers, 3u);
  EXPECT_EQ(p.arena, 128);  // the Concat alone: 2 * 4 * 3 floats
  run("concat", t);
}

TEST(Views, ConcatIsTheOutput) {
  Net t;
  Value* x = t.input("x", {t.n, Dim(5)});
  Value* c =
      t.one("Concat", {t.one("Relu", {x}), t.one("Neg", {x}), t.one("Abs", {x})}, {{"axis", int64_t{0}}});
  t.g->outputs = {c};
  const Planned p = plan_of(*t.g);
  EXPECT_EQ(p.copies, 0u);
  EXPECT_EQ(p.arena, 0);
  run("concat_output", t);
}

TEST(Views, MembersThatCannotMoveAreCopied) {
  Net t;
  Value* x = t.input("x", {t.n, Dim(5)});
  Value* a = t.one("Relu", {x});
  Value* k = t.g->add_constant("k", random_constant(DType::kF32, {2, 5}));
  Value* twice =
      t.one("Concat", {a, x, a, k}, {{"axis", int64_t{0}}});  // a graph input, one twice, a constant
  Value* again =
      t.one("Concat", {a, t.one("Neg", {twice})}, {{"axis", int64_t{0}}});  // a belongs to the first
  Value* out = t.one("Abs", {a});
  Value* with_output = t.one("Concat", {out, t.one("Neg", {a})}, {{"axis", int64_t{0}}});
  t.g->outputs = {t.one("Neg", {again}), out, t.one("Neg", {with_output})};
  EXPECT_EQ(plan_of(*t.g).copies, 5u);
  run("copied", t);
}

TEST(Views, ConcatAlongAnInnerAxisIsCopied) {
  Net t;
  Value* x = t.input("x", {t.n, Dim(5)});
  t.g->outputs = {t.one("Concat", {t.one("Relu", {x}), t.one("Neg", {x})}, {{"axis", int64_t{1}}})};
  EXPECT_EQ(plan_of(*t.g).copies, 1u);
  run("inner", t);
}

TEST(Views, NestedConcats) {
  Net t;
  Value* x = t.input("x", {Dim(1), t.n, Dim(7)});
  Value* a = t.one("Concat", {t.one("Relu", {x}), t.one("Neg", {x})}, {{"axis", int64_t{1}}});
  Value* b = t.one("Concat", {t.one("Abs", {x}), a, t.one("Exp", {x})}, {{"axis", int64_t{1}}});
  t.g->outputs = {t.one("Mul", {b, b}), t.one("Neg", {a})};
  EXPECT_EQ(plan_of(*t.g).copies, 0u);
  run("nested", t);
}

TEST(Views, PartsOfSplitAndSlice) {
  Net t;
  Value* x = t.input("x", {t.n * Dim(2), Dim(6)});
  Value* a = t.one("Relu", {x});
  auto parts = t.node("Split", {a}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{2}}}, 2);
  Value* row = t.one("Slice", {a, t.ints({1}), t.ints({2}), t.ints({0})});
  Value* picked =
      t.one("Gather", {a, t.g->add_constant("i", Tensor::scalar(int64_t{1}))}, {{"axis", int64_t{0}}});
  Value* sum = t.one("Add", {parts[0], parts[1]});
  t.g->outputs = {t.one("Sub", {sum, row}), t.one("Neg", {picked}), t.one("Neg", {parts[1]})};
  EXPECT_EQ(plan_of(*t.g).copies, 0u);
  run("parts", t);
}

TEST(Views, PartsOfInputsAndPartsThatAreOutputs) {
  Net t;
  Value* x = t.input("x", {t.n * Dim(2), Dim(6)});
  auto parts = t.node("Split", {x}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{2}}}, 2);
  Value* row = t.one("Slice", {t.one("Relu", {x}), t.ints({1}), t.ints({2}), t.ints({0})});
  Value* inner = t.one("Slice", {x, t.ints({1}), t.ints({3}), t.ints({1})});
  t.g->outputs = {t.one("Mul", {parts[0], parts[1]}), row, t.one("Neg", {inner})};
  EXPECT_EQ(plan_of(*t.g).copies, 2u);  // row is an output; inner is no run
  run("part_outputs", t);
}

// A view of another type, of an input and of a computed value, both outputs.
TEST(Views, OfAnotherType) {
  Net t;
  Value* x = t.input("x", {t.n, Dim(5)});
  const AttributeList to_int = {{"to", int64_t{6}}};
  t.g->outputs = {t.one("BitCast", {x}, to_int), t.one("BitCast", {t.one("Neg", {x})}, to_int)};
  EXPECT_EQ(plan_of(*t.g).copies, 1u);
  run("bits", t);
}

// Nothing may be written over a tensor whose other pieces are still read.
TEST(Views, NothingIsWrittenOverPieces) {
  Net t;
  Value* x = t.input("x", {Dim(8), Dim(16)});
  Value* a = t.one("Relu", {x});
  Value* first = t.one("Slice", {a, t.ints({0}), t.ints({1}), t.ints({0})});
  Value* b = t.one("Sub", {a, first});  // reads row 0 of `a` for every row
  Value* c = t.one("Neg", {b});
  auto halves = t.node("Split", {c}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{2}}}, 2);
  Value* d = t.one("Exp", {halves[0]});
  Value* e = t.one("Concat", {d, t.one("Mul", {halves[1], d})}, {{"axis", int64_t{0}}});
  t.g->outputs = {t.one("Abs", {e})};
  run("over", t);
}

}  // namespace
}  // namespace sinter
