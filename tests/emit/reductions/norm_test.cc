// Normalisations: rows and columns, tails, operands of every shape, symbolic extents, epilogues, every type.
#include <gtest/gtest.h>

#include "emit/layer.h"
#include "emit/sheet.h"

namespace sinter {
namespace {

using E = Expr;

// Far from zero, so that a variance as difference of squares would show.
void shifted(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, 100 + static_cast<double>(random() % 4000) / 1000);
}

const ExprPtr kAcc = E::accumulator(DType::kF32), kIn = E::input(0, DType::kF32);

void add_layer(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 40);
  const std::vector<bool> all{true, true, true};
  for (int64_t width : {1, 5, 16, 64, 77}) {
    s.add("LayerNormalization", {floats({3, width}), floats({width}), floats({width})});
    s.add("RMSNormalization", {floats({3, width}), floats({width})});
  }
  s.add("LayerNormalization", {floats({4, 50}, shifted), floats({50})}, {}, all);
  s.add("LayerNormalization", {floats({2, 3, 21}), floats({3, 21}), floats({3, 21})}, {{"axis", int64_t{1}}},
        all);
  s.add("LayerNormalization", {floats({2, 3, 21}), floats({21}), floats({3, 1})}, {{"axis", int64_t{1}}});
  s.add("LayerNormalization", {floats({2, 3, 21}), floats({2, 1, 21}), floats({1})}, {{"epsilon", 0.1f}});
  s.add("LayerNormalization", {floats({n, 33}), floats({33}), floats({33})});
  s.add("LayerNormalization", {floats({2, n}), floats({n}), floats({n})}, {}, all);
  s.add("LayerNormalization", {floats({2, n, 7}), floats({n, 7})}, {{"axis", int64_t{1}}});
  s.add("LayerNormalization", {floats({3, 9}), floats({9})}, {}, {false, true, true});
  s.add("RMSNormalization", {floats({n, 3, 8}), floats({8})}, {{"axis", int64_t{1}}});
  s.add("RMSNormalization", {values(DType::kF16, {3, 8}), floats({8})});
  s.add("LayerNormalization", {floats({2, 3, 21}), floats({21}), floats({21})});
  s.epilogue(E::call("gelu", {E::call("add", {kAcc, kIn})}), {floats({2, 3, 21})});
  s.add("LayerNormalization", {floats({2, 3, 21}), floats({3, 21}), floats({3, 21})}, {{"axis", int64_t{1}}});
  s.epilogue(E::call("mul", {kAcc, kIn}), {floats({3, 1})});
  for (DType t : {DType::kF64, DType::kF16, DType::kBF16})
    s.add("LayerNormalization", {values(t, {3, 9}), values(t, {9}), values(t, {9})}, {}, all);
  s.into(batch, "layer", {{{"N", 1}}, {{"N", 40}}, {{"N", 17}}}, {-1, -1});
}

void add_groups(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 1, 9);
  const AttributeList last{{"channels_last", int64_t{1}}};
  const auto operands = [](Shape shape, int64_t c) {
    return std::vector<Arg>{floats(std::move(shape)), floats({c}), floats({c})};
  };
  for (int64_t c : {1, 3, 16, 35}) {
    s.add("InstanceNormalization", operands({2, c, 5, 7}, c));
    s.add("InstanceNormalization", operands({2, 5, 7, c}, c), last);
  }
  s.add("InstanceNormalization", operands({n, 6, h, 4}, 6));
  s.add("InstanceNormalization", operands({n, h, 4, 20}, 20), last);
  s.add("InstanceNormalization", operands({2, 4, 30}, 4));
  s.add("InstanceNormalization", {floats({2, 4, 30}, shifted), floats({4}), floats({4})});
  s.add("GroupNormalization", operands({2, 6, 5, 7}, 6), {{"num_groups", int64_t{3}}});
  s.add("GroupNormalization", operands({n, 32, h, 4}, 32), {{"num_groups", int64_t{4}}});
  s.add("GroupNormalization", operands({2, 6}, 6), {{"num_groups", int64_t{2}}});
  for (const int64_t groups : {1, 2, 6, 24, 48}) {
    s.add("GroupNormalization", operands({2, 5, 7, 48}, 48),
          {{"num_groups", groups}, {"channels_last", int64_t{1}}});
    s.add("GroupNormalization", operands({n, h, 4, 48}, 48),
          {{"num_groups", groups}, {"channels_last", int64_t{1}}});
  }
  s.add("GroupNormalization", operands({1, 300, 9}, 9),
        {{"num_groups", int64_t{3}}, {"channels_last", int64_t{1}}});
  s.add("GroupNormalization", operands({2, 6, 9}, 6), {{"num_groups", int64_t{6}}});
  s.add("GroupNormalization", operands({2, 6, 5, 7}, 6), {{"num_groups", int64_t{3}}});
  s.epilogue(E::call("silu", {E::call("mul", {kAcc, kIn})}), {floats({6, 1, 7})});
  s.add("GroupNormalization", operands({2, 6, 20}, 6), {{"num_groups", int64_t{3}}});
  s.epilogue(E::call("add", {kAcc, kIn}), {floats({2, 6, 20})});
  s.add("InstanceNormalization", operands({2, 6, 5, 7}, 6));
  s.epilogue(E::call("add", {kAcc, kIn}), {floats({6, 5, 1})});
  s.add("InstanceNormalization", operands({2, 5, 7, 21}, 21), last);
  s.epilogue(E::call("add", {kAcc, kIn}), {floats({2, 5, 7, 21})});
  s.add("InstanceNormalization", operands({2, 5, 7, 21}, 21), last);
  s.epilogue(E::call("add", {kAcc, kIn}), {floats({5, 1, 21})});
  for (DType t : {DType::kF64, DType::kF16}) {
    s.add("InstanceNormalization", {values(t, {2, 3, 10}), values(t, {3}), values(t, {3})});
    s.add("GroupNormalization", {values(t, {2, 4, 10}), values(t, {4}), values(t, {4})},
          {{"num_groups", int64_t{2}}});
    s.epilogue(E::call("relu", {E::accumulator(t)}));
  }
  s.into(batch, "groups", {{{"N", 1}, {"H", 1}}, {{"N", 3}, {"H", 9}}}, {1e-3, 3e-5});
}

// Columns of many rows, whose statistics are those of blocks (kernels/reductions/norm_blocks.cpp): whole and
// broken blocks and vectors, rows of several axes, results written over what is normalised, means far from
// zero.
void add_blocks(GeneratedBatch& batch, const Target& t) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 2), h = s.symbol("H", 1, 101);
  const AttributeList last{{"channels_last", int64_t{1}}};
  const auto operands = [](Shape shape, int64_t c, const Fill& fill = random_fill) {
    return std::vector<Arg>{floats(std::move(shape), fill), floats({c}), floats({c})};
  };
  std::vector<Node*> nodes;
  s.add("InstanceNormalization", operands({2, 31000, 1}, 1, shifted), last);  // rows
  for (const int64_t c : {2, 3, 16, 35, 64, 150})
    nodes.push_back(s.add("InstanceNormalization", operands({2, 31000 / c, c}, c, shifted), last));
  nodes.push_back(s.add("InstanceNormalization", operands({1, 1536, 16}, 16), last));
  nodes.push_back(s.add("InstanceNormalization", operands({n, h, 40, 20}, 20), last));
  nodes.push_back(s.add("InstanceNormalization", operands({2, 40, 41, 21}, 21), last));
  s.epilogue(E::call("relu", {E::call("add", {kAcc, kIn})}), {floats({2, 40, 41, 21})});
  nodes.push_back(s.add("InstanceNormalization", operands({2, 40, 41, 21}, 21), last));
  s.epilogue(E::call("add", {kAcc, kIn}), {floats({40, 1, 21})});
  nodes.push_back(s.add("MeanVarianceNormalization", {floats({2, 40, 41, 21})}, {{"axes", Ints{0, 1, 2}}}));
  nodes.push_back(s.add("MeanVarianceNormalization", {floats({n, h, 41, 21})}, {{"axes", Ints{1, 2}}}));
  Value* tanh = s.add("Tanh", {floats({1, 70, 60, 16})})->outputs[0];
  s.graph().outputs.pop_back();
  nodes.push_back(s.add("InstanceNormalization", {made(tanh), floats({16}), floats({16})}, last));
  for (const Node* node : nodes) EXPECT_STREQ(find_kernel(*node, {t, {}})->name, "norm_blocks") << node->name;
  s.into(batch, "blocks", {{{"N", 1}, {"H", 1}}, {{"N", 2}, {"H", 101}}}, {1e-3, 3e-5});
}

void add_others(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 1, 19);
  for (const Ints& axes : {Ints{0, 2, 3}, Ints{2, 3}, Ints{1}, Ints{0, 1}, Ints{0, 1, 2, 3}, Ints{1, 3}}) {
    s.add("MeanVarianceNormalization", {floats({3, 4, 5, 18})}, {{"axes", axes}});
    s.add("MeanVarianceNormalization", {floats({n, 3, h, 4})}, {{"axes", axes}});
  }
  s.add("MeanVarianceNormalization", {values(DType::kF16, {2, 3, 4, 5})});
  for (int64_t p : {1, 2})
    for (int64_t axis : {-1, 1, 0}) {
      s.add("LpNormalization", {floats({3, 4, 21})}, {{"p", p}, {"axis", axis}});
      s.add("LpNormalization", {floats({n, 3, h})}, {{"p", p}, {"axis", axis}});
      s.add("LpNormalization", {values(DType::kF64, {3, 4})}, {{"p", p}, {"axis", axis % 2}});
    }
  // Lines of zeros stay.
  s.add("LpNormalization", {floats({3, 5}, [](Tensor&, std::mt19937&) {})});
  s.add("LpNormalization", {floats({5, 3}, [](Tensor&, std::mt19937&) {})}, {{"axis", int64_t{0}}});
  s.into(batch, "others", {{{"N", 1}, {"H", 1}}, {{"N", 3}, {"H", 19}}}, {1e-3, 3e-5});
}

void positive(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, 0.5 + static_cast<double>(random() % 1000) / 1000);
}

void add_batch_and_lrn(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 1, 19);
  Tensor variance = random_constant(DType::kF32, {5});
  for (int64_t i = 0; i < 5; ++i) variance.as<float>()[i] = 0.5f + static_cast<float>(i);
  const Arg c = constant(random_constant(DType::kF32, {5}));
  for (const Shape& shape : {Shape{2, 5, 3, 9}, Shape{n, 5}, Shape{n, 5, h}}) {
    s.add("BatchNormalization", {floats(shape), c, c, c, constant(variance)});
    s.add("BatchNormalization", {floats(shape), floats({5}), floats({5}), floats({5}), floats({5}, positive)},
          {{"epsilon", 0.01f}});
    s.epilogue(E::call("relu", {E::call("add", {kAcc, kIn})}), {floats(shape)});
  }
  s.add("BatchNormalization", {floats({4}), floats({1}), floats({1}), floats({1}), floats({1}, positive)});
  s.add("BatchNormalization",
        {values(DType::kF16, {2, 5, 3}), floats({5}), floats({5}), floats({5}), constant(variance)});
  s.add("BatchNormalization",
        {values(DType::kF64, {2, 5, 3}), values(DType::kF64, {5}), values(DType::kF64, {5}),
         values(DType::kF64, {5}), values(DType::kF64, {5}, positive)});
  const AttributeList last{{"channels_last", int64_t{1}}};
  for (int64_t size : {1, 2, 5, 40})
    for (float beta : {0.75f, 0.5f, 0.6f}) {
      const AttributeList a{{"size", size}, {"beta", beta}, {"alpha", 0.1f}, {"bias", 2.0f}};
      AttributeList b = a;
      b.push_back(last[0]);
      s.add("LRN", {floats({2, 7, 3, 9})}, a);
      s.add("LRN", {floats({2, 3, 5, 37})}, b);
      s.add("LRN", {floats({n, 20, h})}, a);
      s.add("LRN", {values(DType::kF64, {2, 7, 3})}, a);
    }
  s.add("LRN", {floats({2, 7})}, {{"size", int64_t{3}}});
  s.add("LRN", {floats({2, 7, 3, 9})}, {{"size", int64_t{3}}});
  s.epilogue(E::call("mul", {kAcc, kIn}), {floats({7, 3, 1})});
  s.add("LRN", {floats({2, 3, 9, 37})}, {{"size", int64_t{3}}, last[0]});
  s.epilogue(E::call("mul", {kAcc, kIn}), {floats({3, 1, 37})});
  s.add("LRN", {values(DType::kF16, {2, 7, 3})}, {{"size", int64_t{3}}});
  s.into(batch, "batch_and_lrn", {{{"N", 1}, {"H", 1}}, {{"N", 3}, {"H", 19}}});
}

void add_all(GeneratedBatch& batch, const Target& t) {
  add_blocks(batch, t);
  add_batch_and_lrn(batch);
  add_layer(batch);
  add_groups(batch);
  add_others(batch);
}

TEST(Norm, Avx512) {
  GeneratedBatch batch;
  add_all(batch, target("avx512"));
  expect_good(batch.run(target("avx512")));
}
TEST(Norm, Aarch64) {
  GeneratedBatch batch;
  add_all(batch, target("aarch64"));
  expect_good(batch.run(target("aarch64")));
}
TEST(Norm, Avx2WithSanitizers) {
  GeneratedBatch batch;
  add_all(batch, target("avx2"));
  expect_good(batch.run(target("avx2"), {.sanitize = true}));
}
TEST(Norm, OtherCompilersAndTargets) {
  GeneratedBatch batch;
  add_all(batch, target("avx512"));
  expect_good(batch.run(target("avx512"), {.clang = true}), "clang");
  expect_good(batch.run(target("x86-64-v2")), "x86-64-v2");
  expect_good(batch.run(target("scalar")), "scalar");
}

}  // namespace
}  // namespace sinter
