// Products by register tiles: columns that have the same weights get the same bits, whichever panel they are
// in and however many vectors it has. A classifier whose weights are all equal shows it: its Softmax tells a
// difference in the last bit of a large sum.
#include <gtest/gtest.h>

#include "emit/sheet.h"
#include "kernels/products/tiles.h"

namespace sinter {
namespace {

// A random weight of `shape` that is the same for every index of its column axis.
Arg equal_columns(const Ints& shape, size_t column_axis, unsigned seed) {
  Ints one = shape;
  one[column_axis] = 1;
  const Tensor inner = random_constant(DType::kF32, one, seed);
  Tensor t(DType::kF32, shape);
  int64_t after = 1;
  for (size_t a = column_axis + 1; a < shape.size(); ++a) after *= shape[a];
  for (int64_t i = 0; i < t.size(); ++i)
    t.as<float>()[i] = inner.as<float>()[i / (after * shape[column_axis]) * after + i % after];
  return constant(std::move(t));
}

// A node on the last output, in whose place its result comes.
void then(Sheet& s, const char* op, const AttributeList& attributes, const Tensor& constant = {}) {
  Graph& g = s.graph();
  const std::string name = g.outputs.back()->name + "_" + op;
  std::vector<Value*> in{g.outputs.back()};
  if (constant.size() > 0) in.push_back(g.add_constant(name + "_c", constant));
  g.outputs.back() = g.add_value(name, {});
  Node* n = g.add_node(find_op("", op), name, in, {g.outputs.back()});
  for (const auto& [key, value] : attributes) n->attributes.set(key, value);
  infer(g, *n);
}

// What must come out is given: evaluate() sums in an order of its own.
void into(GeneratedBatch& batch, const std::string& name, Sheet& s) {
  const auto zeros = [](const Value* v) {
    Ints dims;
    for (const Dim& d : v->type.shape) dims.push_back(d.value());
    return Tensor(v->type.dtype, dims);
  };
  DataSet d;
  std::mt19937 random(1);
  for (const Value* v : s.graph().inputs) {
    d.inputs.push_back(zeros(v));
    random_fill(d.inputs.back(), random);
  }
  for (const Value* v : s.graph().outputs) d.expected.push_back(zeros(v));
  batch.add(name, s.graph().clone(), {d});
}

GeneratedBatch batch_of() {
  GeneratedBatch batch;
  Sheet rows, convs;
  unsigned seed = 0;
  for (const int64_t columns : {3, 17, 40, 65, 88, 104, 260}) {
    for (const int64_t m : {1, 9}) {
      rows.add("MatMul", {floats({m, 301}), equal_columns({301, columns}, 1, ++seed)});
      then(rows, "ArgMax", {{"axis", int64_t{1}}});
    }
    rows.add("Gemm", {floats({1, 1030}), equal_columns({columns, 1030}, 0, ++seed)},
             {{"transB", int64_t{1}}, {"alpha", 3.0f}});
    then(rows, "ArgMax", {{"axis", int64_t{1}}});
    // From planes, which makes the sums at the edges tap by tap; the longer a row of taps, the more chains.
    convs.add("Transpose", {floats({1, 3, 3, 25})}, {{"perm", Ints{0, 2, 3, 1}}});
    then(convs, "Conv", {{"channels_last", int64_t{1}}, {"pads", Ints{0, 5, 0, 5}}},
         equal_columns({columns, 3, 1, 11}, 0, ++seed).constant);
    then(convs, "ArgMax", {{"axis", int64_t{3}}});
  }
  into(batch, "rows", rows);
  into(batch, "convs", convs);
  return batch;
}

void run(const char* name) { expect_good(batch_of().run(target(name)), name); }

TEST(Gemm, EqualColumnsAvx512) { run("avx512"); }
TEST(Gemm, EqualColumnsAvx2) { run("avx2"); }
TEST(Gemm, EqualColumnsSse42) { run("x86-64-v2"); }
TEST(Gemm, EqualColumnsScalar) { run("scalar"); }
TEST(Gemm, EqualColumnsCortexA53) { run("cortex-a53"); }
TEST(Gemm, EqualColumnsCortexA76) { run("cortex-a76"); }

// Weights that more than one tile reads and that the second level can't hold come in narrower panels.
TEST(Panels, StayInTheSecondLevel) {
  const Target& t = target("cascadelake");  // 1 MB
  EXPECT_EQ(panels_of(t, 512, 6).vectors, 4);
  EXPECT_EQ(panels_of(t, 512, 6, {.k = 512, .rows = 7}).vectors, 4);
  EXPECT_EQ(panels_of(t, 512, 6, {.k = 4608, .rows = 7}).vectors, 2);
  EXPECT_EQ(panels_of(t, 512, 6, {.k = 4608}).vectors, 4) << "one tile reads them once";
  EXPECT_GT(panels_cost(t, 512, 100, {.k = 4608}), panels_cost(t, 512, 100));
}

}  // namespace
}  // namespace sinter
