// --small-weights: layers whose panels lack the lanes that pad them, and whose weights are 16-bit floats, or
// steps of 8 bits, that are widened when they are used. Right values on every target, and no more bytes than
// the weights have.
#include <gtest/gtest.h>

#include "emit/layer.h"
#include "emit/sheet.h"
#include "plan/plan.h"

namespace sinter {
namespace {

// Bytes in steps of a scale and, of uint8, from a zero point; so that each channel has them whichever axis it
// is, the same for all.
Arg steps(DType type, std::vector<int64_t> shape, unsigned seed) {
  Tensor t(DType::kF32, std::move(shape));
  std::mt19937 random(seed);
  for (int64_t i = 0; i < t.size(); ++i) {
    const int64_t q = static_cast<int64_t>(random() % 256) - (type == DType::kI8 ? 128 : 30);
    t.as<float>()[i] = static_cast<float>(q) * 0.0137f;
  }
  return constant(std::move(t));
}

// Random weights that are all of `type`.
Arg weights(DType type, std::vector<int64_t> shape, unsigned seed) {
  if (type == DType::kI8 || type == DType::kU8) return steps(type, std::move(shape), seed);
  return constant(
      random_constant(DType::kF32, std::move(shape), seed).converted(type).converted(DType::kF32));
}

struct Conv {
  const char* op;
  Shape spatial;
  int64_t in;
  Ints weight;
  AttributeList attributes;
  int64_t winograd = 0;  // the freedom
};

// Tails of one lane and more, panels of several vectors, groups, one pixel, edges, phases, planes' 3
// channels.
void add_convs(Sheet& s, DType type) {
  const Dim n = s.symbol("N", 1, 3);
  const Ints same{1, 1, 1, 1}, twice{2, 2};
  const Conv cases[] = {
      {"Conv", {9, 9}, 5, {7, 5, 1, 1}, {}},
      {"Conv", {7, 7}, 24, {41, 24, 3, 3}, {{"pads", same}}},
      {"Conv", {6, 15}, 3, {17, 3, 3, 3}, {{"pads", same}, {"strides", twice}}},
      {"Conv", {10, 13}, 8, {12, 8, 3, 3}, {{"pads", Ints{2, 2, 2, 2}}, {"dilations", twice}}},
      {"Conv", {1, 1}, 40, {83, 40, 3, 3}, {{"pads", same}}},
      {"Conv", {9, 8}, 9, {15, 3, 3, 3}, {{"pads", same}, {"group", int64_t{3}}}},
      {"Conv", {20, 20}, 33, {19, 33, 3, 3}, {{"pads", same}}, 4},
      {"Conv", {20, 20}, 16, {32, 16, 3, 3}, {{"pads", same}}},
      {"Conv", {24, 20}, 32, {3, 32, 3, 5}, {{"pads", same}}},  // by columns
      {"ConvTranspose", {5, 6}, 6, {6, 5, 3, 3}, {}},
      {"ConvTranspose", {4, 7}, 8, {8, 22, 2, 2}, {{"strides", twice}}},
      {"ConvTranspose", {4, 5}, 6, {6, 3, 4, 3}, {{"pads", Ints{1, 1, 0, 1}}, {"group", int64_t{2}}}},
  };
  unsigned seed = 0;
  for (const Conv& c : cases) {
    Shape x{seed % 2 ? n : Dim(1)};
    x.insert(x.end(), c.spatial.begin(), c.spatial.end());
    x.push_back(Dim(c.in));
    AttributeList a = c.attributes;
    a.push_back({"channels_last", int64_t{1}});
    s.add(c.op, {floats(x), weights(type, c.weight, ++seed)}, a)->freedom.winograd = c.winograd;
  }
}

void add_products(Sheet& s, DType type) {
  const Dim n = s.symbol("M", 1, 30);
  for (const int64_t columns : {1, 5, 17, 63, 65, 130}) {
    s.add("MatMul", {floats({n, 20}), weights(type, {20, columns}, 1)});
    s.add("MatMul", {floats({1, 37}), weights(type, {37, columns}, 2)});
    s.add("Gemm", {floats({11, n}), weights(type, {columns, 11}, 3), weights(type, {columns}, 4)},
          {{"transA", int64_t{1}}, {"transB", int64_t{1}}});
  }
}

GeneratedBatch batch_of() {
  GeneratedBatch batch;
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kU8}) {
    Sheet convs, products;
    add_convs(convs, type);
    add_products(products, type);
    for (Sheet* s : {&convs, &products}) store_small_weights(s->graph(), true, s->decisions);
    const std::string name(name_of(type));
    convs.into(batch, "convs_" + name, {{{"N", 1}}, {{"N", 3}}});
    products.into(batch, "products_" + name, {{{"M", 1}}, {{"M", 13}}, {{"M", 30}}});
  }
  return batch;
}

void run(const char* name, const BuildOptions& options = {}) {
  expect_good(batch_of().run(target(name), options), name);
}

TEST(SmallWeights, Avx512) { run("avx512", {.flags = "-O2"}); }
TEST(SmallWeights, Avx2) { run("avx2"); }
TEST(SmallWeights, Sse42) { run("x86-64-v2"); }
TEST(SmallWeights, Scalar) { run("scalar"); }
TEST(SmallWeights, CortexA53) { run("cortex-a53", {.flags = "-O2"}); }
TEST(SmallWeights, CortexA76) { run("cortex-a76", {.flags = "-O2"}); }
TEST(SmallWeights, Sanitizers) { run("host", {.sanitize = true}); }
TEST(SmallWeights, Clang) { run("host", {.clang = true}); }
TEST(SmallWeights, Threads) { run("host", {.threads = 3}); }

int64_t packed_bytes(Sheet& s, const char* name) {
  WeightStore store;
  make_plan(s.graph(), target(name), s.decisions, store);
  return static_cast<int64_t>(store.bytes().size());
}

TEST(SmallWeights, TakeWhatTheModelDoes) {
  for (const char* name : {"avx512", "avx2", "cortex-a76", "scalar"})
    for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kI8, DType::kU8}) {
      Sheet s;
      s.add("MatMul", {floats({40, 300}), weights(type, {300, 33}, 5)});
      const int64_t own = 300 * 33 * static_cast<int64_t>(size_of(type)), usual = packed_bytes(s, name);
      EXPECT_GE(usual, 300 * 33 * 4) << name;
      store_small_weights(s.graph(), true, s.decisions);
      const int64_t small = packed_bytes(s, name);
      EXPECT_GE(small, own) << name;
      EXPECT_LE(small, own + (size_of(type) == 1 ? 33 * 8 + 448 : 128)) << name;  // scales and offsets
    }
}

// A weight that is neither a 16-bit float nor a step of its channel's keeps all of the layer's in 32 bits;
// one that isn't finite too.
TEST(SmallWeights, OnlyExactValuesAreNarrowed) {
  for (const double odd : {1.0 / 3, 1e-30, 7e4, std::numeric_limits<double>::infinity()}) {
    Tensor w(DType::kF32, {64, 16});
    w.set_real(77, odd);
    w.set_real(77 + 16, 0.7310585);  // of the same channel: no steps of 8 bits
    w.set_real(77 + 32, 0.1234567);
    Sheet s;
    s.add("MatMul", {floats({40, 64}), constant(w)});
    store_small_weights(s.graph(), true, s.decisions);
    EXPECT_GE(packed_bytes(s, "avx512"), 64 * 16 * 4) << odd;
  }
}

// Panels that are widened count against the arena's budget: where they don't fit in, floats are stored.
TEST(SmallWeights, KeepTheArenasBudget) {
  Sheet s;
  s.add("MatMul", {floats({2, 8192}), weights(DType::kF16, {8192, 64}, 5)});
  store_small_weights(s.graph(), true, s.decisions);
  Plan plan;
  do {
    WeightStore store;
    plan = make_plan(s.graph(), target("avx512"), s.decisions, store);
  } while (drop_half_weights(s.graph(), plan, s.decisions));
  EXPECT_LE(plan.arena_bytes, arena_limit(plan));
}

}  // namespace
}  // namespace sinter
