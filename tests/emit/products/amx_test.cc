// Products on AMX's tile matrices: tails of k, of columns and of rows; one block and many; groups of rows
// with the weights split first or a panel at a time; every form of the operands; windows, with k cut and
// whole; epilogues; weights of 16 bits, or in parts; threads. And where they are used.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "emit/layer.h"
#include "emit/products/row_products.h"
#include "ops/products/row_product.h"
#include "passes/passes.h"
#include "plan/plan.h"

namespace sinter {
namespace {

constexpr const char* kTarget = "sapphirerapids-amx";

const RowProductCase kCases[] = {
    {"MatMul", {Dim(1), Dim(32)}, 16, false, false, 0},
    {"MatMul", {Dim(5), Dim(7)}, 3, false, false, 0},
    {"MatMul", {Dim(17), Dim(48)}, 33, false, false, 0},            // a row beside a tile, one column
    {"MatMul", {Dim(64), Dim(256)}, 320, false, false, 0},          // panels ahead
    {"MatMul", {Dim(3), Dim(33), Dim(300)}, 262, false, false, 0},  // 99 rows, tails everywhere
    {"MatMul", {Dim(197), Dim(192)}, 576, false, false, 160000},    // groups of rows, a panel at a time
    {"MatMul", {Dim(300), Dim(64)}, 96, false, false, 0},           // weights first, rows ahead
    {"MatMul", {Dim(301), Dim(40)}, 72, false, false, 0},           // ... a k that leaves a rest
    {"MatMul", {Dim(700), Dim(17)}, 5, false, false, 0},
    {"Gemm", {Dim(101), Dim(254)}, 1000, true, true, 0},
    {"Gemm", {Dim(80), Dim(512)}, 130, false, true, 300000},
    {"Gemm", {Dim(7), Dim(1000)}, 64, true, true, 0},
    {"Conv", {Dim(1), Dim(13), Dim(13), Dim(240)}, 250, false, true, 0},
    {"Conv", {Dim(2), Dim(7), Dim(7), Dim(320)}, 640, false, false, 700000},  // pictures as one long column
    {"Conv", {Dim(1), Dim(31), Dim(30), Dim(96)}, 24, false, true, 0},
    {"MatMul", {Dim(2), Dim(1), Dim(31), Dim(64)}, 32, false, false, 0},
    {"MatMul", {Dim(24), Dim(1), Dim(64)}, 64, false, false, 0},  // steps before the batch
};

// As if it had been measured that tile matrices are faster.
Node* tuned(Sheet& s, Node* n) {
  n->freedom.tile_matrices = s.decide(n).tile_matrices.tuned = true;
  return n;
}
Node* add(Sheet& s, const RowProductCase& c, unsigned seed, DType type = DType::kF32) {
  return tuned(s, add_row_product(
                      s, c, seed, [](Decision& d) -> Limit& { return d.tile_matrices; }, type));
}

// Convolutions whose rows are windows: pictures of h x w pixels, squares of taps, all that goes beyond the
// picture on each side `pad`; `cuts` of k where scratch is limited to `bytes`.
struct WindowCase {
  int64_t h, w, channels, n, taps, stride, pad, dilation, bytes, cuts;
};
const WindowCase kWindows[] = {
    {9, 7, 32, 40, 1, 2, 0, 1, 0, 1},          // no taps but strides, an odd panel
    {12, 11, 64, 96, 3, 2, 1, 1, 0, 2},        // padding above and on the left only, and all around
    {20, 9, 32, 64, 3, 1, 2, 2, 0, 1},         // taps that lie apart
    {14, 14, 128, 72, 3, 2, 1, 1, 270000, 6},  // sums kept between cuts, also of the odd panel
    {30, 31, 96, 64, 5, 3, 2, 1, 640000, 15},  // ... a last block of one tile
    {23, 23, 64, 33, 2, 1, 0, 1, 400000, 1},   // groups of rows
};
Node* add(Sheet& s, const WindowCase& c, unsigned seed) {
  Node* n = s.add("Conv",
                  {floats({1, c.h, c.w, c.channels}),
                   constant(random_constant(DType::kF32, {c.n, c.channels, c.taps, c.taps}, seed)),
                   constant(random_constant(DType::kF32, {c.n}, seed + 1))},
                  {{"channels_last", int64_t{1}},
                   {"strides", Ints{c.stride, c.stride}},
                   {"pads", Ints{c.pad, c.pad, c.pad, c.pad}},
                   {"dilations", Ints{c.dilation, c.dilation}}});
  if (c.bytes > 0) s.decide(n).tile_matrices.bytes = c.bytes;
  return tuned(s, n);
}

// Within what a float's sums may have: the parts lose nothing.
void run(const BuildOptions& options, DType type = DType::kF32, bool in_parts = false) {
  const Target& t = target(kTarget);
  GeneratedBatch batch;
  Sheet s;
  unsigned i = 0;
  for (const RowProductCase& c : kCases) {
    const Kernel* k = find_kernel(*add(s, c, i, type), {t, s.decisions});
    ASSERT_TRUE(k);
    EXPECT_EQ(std::string(k->name), "gemm_amx") << "case " << i;
    if (i % 2 == 0) add_row_epilogue(s);
    ++i;
  }
  for (const WindowCase& c : kWindows) {
    const Kernel* k = find_kernel(*add(s, c, i), {t, s.decisions});
    ASSERT_TRUE(k);
    EXPECT_EQ(std::string(k->name), "gemm_amx") << "case " << i;
    if (i++ % 2 == 0) add_row_epilogue(s);
  }
  if (type != DType::kF32) store_small_weights(s.graph(), true, s.decisions);
  if (in_parts) store_weight_parts(s.graph(), t, options.threads, s.decisions);
  s.into(batch, "amx", {{}}, {1e-5, 2e-5});
  expect_good(batch.run(t, options), kTarget);
}

TEST(Amx, Gcc) { run({.flags = "-O2"}); }
TEST(Amx, Clang) { run({.clang = true}); }
TEST(Amx, Sanitizers) { run({.sanitize = true}); }
TEST(Amx, Threads) { run({.threads = 3}); }
TEST(Amx, ThreadsOfATileEach) { run({.threads = 64}); }
TEST(Amx, ThreadsWithWeightsInParts) { run({.threads = 2}, DType::kF32, true); }
TEST(Amx, HalfWeights) { run({.flags = "-O2"}, DType::kF16); }

TEST(Amx, CutsKWhereRowsOfItAreLong) {
  for (const WindowCase& c : kWindows) {
    Sheet s;
    add(s, c, 1);
    WeightStore store;
    const Plan plan = make_plan(s.graph(), target(kTarget), s.decisions, store);
    const std::string& summary = plan.layers.back().summary;
    const size_t at = summary.find("k cut in ");
    EXPECT_EQ(at == std::string::npos ? 1 : std::stoll(summary.substr(at + 9)), c.cuts) << summary;
  }
}

// What the tiles don't read: channels that leave a rest, several pictures, planes of channels.
TEST(Amx, OtherWindowsAreLeft) {
  const auto kernel_of = [](bool nchw, Shape x, Ints w) {
    Sheet s;
    Node* n = s.add("Conv", {floats(std::move(x)), constant(random_constant(DType::kF32, std::move(w), 1))},
                    {{"channels_last", int64_t{1}}, {"strides", Ints{2, 2}}});
    s.decide(tuned(s, n)).reads_nchw = nchw;
    return std::string(find_kernel(*n, {target(kTarget), s.decisions})->name);
  };
  EXPECT_EQ(kernel_of(false, {1, 9, 9, 64}, {32, 64, 3, 3}), "gemm_amx");
  EXPECT_NE(kernel_of(false, {1, 9, 9, 48}, {32, 48, 3, 3}), "gemm_amx");
  EXPECT_NE(kernel_of(false, {2, 9, 9, 64}, {32, 64, 3, 3}), "gemm_amx");
  EXPECT_NE(kernel_of(true, {1, 9, 9, 64}, {32, 64, 3, 3}), "gemm_amx");
}

// Winograd keeps what it does much faster, and what reads no more weights than the model has (four tiles);
// the tiles take what has more weights than pixels otherwise.
TEST(Amx, BesideWinograd) {
  const auto kernel_of = [](int64_t side, int64_t channels, bool amx, const char* name) {
    Sheet s;
    Node* n = s.add("Conv",
                    {floats({1, side, side, channels}),
                     constant(random_constant(DType::kF32, {channels, channels, 3, 3}, 1))},
                    {{"channels_last", int64_t{1}}, {"pads", Ints{1, 1, 1, 1}}});
    n->freedom.winograd = 4;
    n->freedom.tile_matrices = amx;
    return std::string(find_kernel(*n, {target(name), s.decisions})->name);
  };
  EXPECT_EQ(kernel_of(56, 64, true, kTarget), "conv_winograd");
  EXPECT_EQ(kernel_of(7, 512, true, kTarget), "conv_winograd");
  EXPECT_EQ(kernel_of(14, 256, true, kTarget), "gemm_amx");
  EXPECT_EQ(kernel_of(14, 256, false, kTarget), "conv_winograd") << "not allowed";
  EXPECT_EQ(kernel_of(14, 256, true, "sapphirerapids"), "conv_winograd") << "has no tiles";
}

TEST(Amx, OnlyWhereAllowedAndFaster) {
  Sheet s;
  const auto kernel_of = [&](const RowProductCase& c, bool allowed, const char* name) {
    Node* n = add(s, c, 1);
    n->freedom.tile_matrices = allowed;
    s.decide(n).tile_matrices = {};
    return std::string(find_kernel(*n, {target(name), s.decisions})->name);
  };
  EXPECT_EQ(kernel_of(kCases[3], true, kTarget), "gemm_amx");
  EXPECT_EQ(kernel_of(kCases[3], false, kTarget), "gemm");
  EXPECT_EQ(kernel_of(kCases[3], true, "sapphirerapids"), "gemm") << "has no tiles";
  EXPECT_EQ(kernel_of(kCases[0], true, kTarget), "gemm") << "one row";
  EXPECT_EQ(kernel_of(kCases[8], true, kTarget), "gemm") << "half of k and most columns would be zeros";
}

std::string stored_type(const Plan& plan) {
  for (const Parameter& p : plan.layers.back().parameters)
    if (p.kind == Parameter::Kind::kWeights && p.name == "w") return p.type;
  return "";
}

// Half as many bytes again, where several threads would each split all weights, and these come in time.
TEST(Amx, WeightsInParts) {
  const auto type_of = [](int threads, Shape x, int64_t n, const char* name = kTarget) {
    Sheet s;
    add(s, RowProductCase{"MatMul", std::move(x), n, false, false, 0}, 1);
    store_weight_parts(s.graph(), target(name), threads, s.decisions);
    WeightStore store;
    return stored_type(make_plan(s.graph(), target(name), s.decisions, store, threads));
  };
  const std::string parts = "const std::uint16_t*", whole = "const float*";
  EXPECT_EQ(type_of(2, {Dim(128), Dim(256)}, 320), parts);
  EXPECT_EQ(type_of(1, {Dim(128), Dim(256)}, 320), whole);
  EXPECT_EQ(type_of(2, {Dim(48), Dim(256)}, 320), whole) << "threads have columns of their own";
  EXPECT_EQ(type_of(2, {Dim(1024), Dim(64)}, 96), whole) << "split once, before all rows";
  EXPECT_EQ(type_of(2, {Dim(128), Dim(4096)}, 4096), whole) << "comes from memory";
  EXPECT_EQ(type_of(2, {Dim(256), Dim(4096)}, 4096), parts) << "... while more rows are multiplied";
  EXPECT_EQ(type_of(2, {Dim(128), Dim(256)}, 320, "sapphirerapids"), whole);
}

// The parts of a weight make up all of its bits: high, middle and low.
TEST(Amx, PartsLoseNothing) {
  constexpr int64_t k = 64, n = 96;
  Sheet s;
  add(s, RowProductCase{"MatMul", {Dim(128), Dim(k)}, n, false, false, 0}, 1);
  store_weight_parts(s.graph(), target(kTarget), 2, s.decisions);
  WeightStore store;
  const Plan plan = make_plan(s.graph(), target(kTarget), s.decisions, store, 2);
  ASSERT_EQ(stored_type(plan), "const std::uint16_t*");
  const Tensor& w = *s.graph().nodes.back()->inputs[1]->data;
  const auto part = [&](int64_t i, int64_t j, int64_t number) {
    const int64_t panel = j / 32, block = panel * (k / 32) + i / 32,
                  tile = (block * 3 + number) * 2 + j % 32 / 16;
    const int64_t at = tile * 512 + i % 16 * 32 + j % 16 * 2 + i % 32 / 16;
    uint16_t bits = 0;
    std::memcpy(&bits, store.bytes().data() + at * 2, 2);
    return std::bit_cast<float>(uint32_t{bits} << 16);
  };
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j)
      EXPECT_EQ(part(i, j, 0) + (part(i, j, 1) + part(i, j, 2)), w.as<float>()[i * n + j]) << i << ", " << j;
}

// --exact leaves sums as the model has them; other targets have no use for the mark.
TEST(Amx, NeverExact) {
  for (const bool exact : {false, true})
    for (const bool tiles : {false, true}) {
      Sheet s;
      add(s, kCases[3], 1)->freedom.tile_matrices = false;
      PassOptions options;
      options.exact = exact;
      options.tile_matrices = tiles;
      EXPECT_EQ(allow_amx(s.graph(), options), tiles && !exact);
      EXPECT_EQ(s.graph().nodes.back()->freedom.tile_matrices, tiles && !exact);
    }
}

}  // namespace
}  // namespace sinter
