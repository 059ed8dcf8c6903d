// Products by Strassen's seven products of quarters: shapes that leave tails of lanes, of panels and of
// tiles, odd counts of rows, groups of unequal size; every form of the operands; epilogues; every target that
// uses it; and where it is not used.
#include "kernels/products/strassen.h"

#include <gtest/gtest.h>

#include <regex>

#include "emit/layer.h"
#include "emit/products/row_products.h"
#include "passes/passes.h"
#include "plan/plan.h"

namespace sinter {
namespace {

const RowProductCase kCases[] = {
    {"MatMul", {Dim(64), Dim(256)}, 320, false, false, 0},
    {"MatMul", {Dim(3), Dim(33), Dim(300)}, 262, false, false, 0},  // 99 rows, tails of lanes
    {"MatMul", {Dim(197), Dim(192)}, 576, false, false, 70000},     // groups of 65 and 66 rows
    {"Gemm", {Dim(101), Dim(254)}, 1000, true, true, 0},
    {"Gemm", {Dim(80), Dim(512)}, 130, false, true, 60000},
    {"Conv", {Dim(1), Dim(13), Dim(13), Dim(240)}, 250, false, true, 0},
    {"Conv", {Dim(2), Dim(7), Dim(7), Dim(320)}, 640, false, false, 100000},  // pictures as one long column
    {"MatMul", {Dim(2), Dim(1), Dim(40), Dim(256)}, 320, false, false, 0},
    {"MatMul", {Dim(64), Dim(1), Dim(256)}, 320, false, false, 0},  // steps before the batch
};

// Of two levels: rows that leave 0 to 3 over in four parts, tails of lanes, pieces of different sizes.
const RowProductCase kTwice[] = {
    {"MatMul", {Dim(64), Dim(256)}, 320, false, false, 0},
    {"MatMul", {Dim(3), Dim(33), Dim(300)}, 260, false, false, 0},  // 99 rows
    {"MatMul", {Dim(197), Dim(192)}, 576, false, false, 50000},
    {"Gemm", {Dim(101), Dim(252)}, 1000, true, true, 60000},
    {"Gemm", {Dim(82), Dim(512)}, 132, false, true, 60000},
    {"Gemm", {Dim(5), Dim(64)}, 64, false, false, 0},
    {"Conv", {Dim(1), Dim(13), Dim(13), Dim(240)}, 252, false, true, 0},
    {"Conv", {Dim(2), Dim(7), Dim(7), Dim(320)}, 640, false, false, 60000},
};

// As if it had been measured that this many levels are faster.
void tune(Sheet& s, Node* n, int levels) {
  n->freedom.strassen = true;
  s.decide(n).strassen.tuned = true;
  s.decide(n).strassen.levels = levels;
}
Node* add(Sheet& s, const RowProductCase& c, unsigned seed) {
  Node* n = add_row_product(s, c, seed, [](Decision& d) -> Limit& { return d.strassen; });
  tune(s, n, 1);
  return n;
}

// How the node is cut, if it is computed so.
std::optional<StrassenChoice> strassen_choice(const Node& n, const Context& context) {
  return choose(n, context).candidates.front().as<StrassenChoice>();
}

template <size_t N>
void run_cases(const RowProductCase (&cases)[N], int levels, const char* name, const BuildOptions& options) {
  const Target& t = target(name);
  GeneratedBatch batch;
  Sheet s;
  unsigned i = 0;
  for (const RowProductCase& c : cases) {
    Node* n = add(s, c, i);
    tune(s, n, levels);
    const Kernel* k = find_kernel(*n, {t, s.decisions});
    const auto choice = strassen_choice(*n, {t, s.decisions});
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->levels, levels) << name << ", case " << i;
    if (levels == 2 && c.bytes > 0) {
      EXPECT_GT(choice->pieces, 1) << name << ", case " << i;
    }
    ASSERT_TRUE(k);
    EXPECT_EQ(std::string(k->name), "gemm_strassen") << name << ", case " << i;
    if (i % 2 == 0) add_row_epilogue(s);
    ++i;
  }
  s.into(batch, "strassen", {{}}, {1e-4, 3e-4});
  expect_good(batch.run(t, options), name);
}

void run(const char* name, const BuildOptions& options = {}) {
  run_cases(kCases, 1, name, options);
  run_cases(kTwice, 2, name, options);
}

TEST(Strassen, Avx512) { run("avx512", {.flags = "-O2"}); }
TEST(Strassen, Avx2) { run("avx2"); }
TEST(Strassen, Sse42) { run("x86-64-v2"); }
TEST(Strassen, Scalar) { run("scalar"); }
TEST(Strassen, CortexA53) { run("cortex-a53", {.flags = "-O2"}); }
TEST(Strassen, CortexA72) { run("cortex-a72", {.flags = "-O2"}); }
TEST(Strassen, CortexA76) { run("cortex-a76"); }
TEST(Strassen, Sanitizers) { run("host", {.sanitize = true}); }
TEST(Strassen, Clang) { run("host", {.clang = true}); }
TEST(Strassen, Threads) { run("host", {.threads = 3}); }

// Pieces of two levels are what threads take: with three for two threads one would wait for the other.
TEST(Strassen, AsManyPiecesForEachThread) {
  RowProductCase c = kTwice[2];
  for (const int64_t bytes : {60000, 80000, 120000, 200000})
    for (const int threads : {2, 3, 4}) {
      c.bytes = bytes;
      Sheet s;
      Node* n = add(s, c, 1);
      tune(s, n, 2);
      WeightStore store;
      const Context context{target("avx512"), s.decisions};
      LayerWriter w(*n, context, store, "f", threads);
      find_kernel(*n, context)->emit(w);
      const std::string body = w.finish("gemm_strassen").body;
      std::smatch m;
      ASSERT_TRUE(std::regex_search(body, m, std::regex("run_parts\\(pool, \\d+, (\\d+),"))) << body;
      EXPECT_EQ(std::stoi(m[1]) % threads, 0) << m[1] << " pieces for " << threads << " threads";
    }
}

// Its error is some times that of the plain sum, and below what a layer may have.
TEST(Strassen, ErrorIsSmall) {
  for (const RowProductCase& c : kTwice) {
    Sheet s;
    const auto p = row_product(*add(s, c, 5));
    ASSERT_TRUE(p);
    const double one = strassen_error(*p, 1), two = strassen_error(*p, 2);
    EXPECT_GT(one, 0);
    EXPECT_LT(one, 5e-6);
    EXPECT_GT(two, one);
    EXPECT_LT(two, 1e-5);
  }
}

TEST(Strassen, TwoLevelsOnlyWhereFaster) {
  Sheet s;
  const auto levels = [&](const RowProductCase& c, const char* name, int most) {
    Node* n = add(s, c, 1);
    s.decide(n).strassen.tuned = false;
    s.decide(n).strassen.levels = most;
    const auto choice = strassen_choice(*n, {target(name), s.decisions});
    return choice ? choice->levels : 0;
  };
  RowProductCase large = kTwice[2], odd = kTwice[2];
  large.bytes = odd.bytes = 0;
  odd.n = 574;
  EXPECT_EQ(levels(large, "avx512", 2), 2);
  EXPECT_EQ(levels(large, "avx512", 1), 1);
  EXPECT_EQ(levels(large, "cortex-a72", 2), 1) << "does not ask ahead";
  EXPECT_EQ(levels(large, "cortex-a53", 2), 0) << "in order";
  EXPECT_EQ(levels(odd, "avx512", 2), 1) << "n is no multiple of four";
}

TEST(Strassen, OnlyWhereAllowedAndFaster) {
  Sheet s;
  const RowProductCase plain = kCases[0];
  const auto kernel_of = [&](Node* n, const char* name) {
    return std::string(find_kernel(*n, {target(name), s.decisions})->name);
  };
  const auto marked = [&](const RowProductCase& c, bool allowed) {
    Node* n = add(s, c, 1);
    n->freedom.strassen = allowed;
    s.decide(n).strassen = {};
    return n;
  };
  EXPECT_EQ(kernel_of(marked(plain, true), "avx512"), "gemm_strassen");
  EXPECT_EQ(kernel_of(marked(plain, true), "cortex-a72"), "gemm_strassen");
  EXPECT_EQ(kernel_of(marked(plain, true), "cortex-a53"), "gemm") << "in order";
  EXPECT_EQ(kernel_of(marked(plain, false), "avx512"), "gemm");
  RowProductCase odd = plain, narrow = plain, few = plain;
  odd.x = {Dim(64), Dim(255)};
  narrow.n = 16;
  few.x = {Dim(4), Dim(256)};
  for (const RowProductCase& c : {odd, narrow, few}) EXPECT_EQ(kernel_of(marked(c, true), "avx512"), "gemm");
}

// Weights of a small net come from the third level on a core that keeps them there: then more of them pay.
TEST(Strassen, MoreWeightsWhereTheyStayNear) {
  const auto kernel_of = [](int64_t k, int64_t n, const char* name) {
    Sheet s;
    Node* node = add(s, {"MatMul", {Dim(49), Dim(k)}, n, false, false, 0}, 1);
    s.decide(node).strassen = {};
    tell_near_weights(s.graph(), target(name), s.decisions);
    return std::string(find_kernel(*node, {target(name), s.decisions})->name) +
           (s.decisions.of(*node).weights.near ? " near" : "");
  };
  EXPECT_EQ(kernel_of(320, 1280, "zen5"), "gemm_strassen near");
  EXPECT_EQ(kernel_of(2048, 2048, "zen5"), "gemm");
  EXPECT_EQ(kernel_of(320, 1280, "avx512vnni"), "gemm_strassen")
      << "a multiply-add takes twice as long beside a byte";
}

// --exact leaves sums as the model has them.
TEST(Strassen, NeverExact) {
  for (const bool exact : {false, true}) {
    Sheet s;
    add(s, kCases[0], 1)->freedom.strassen = false;
    PassOptions options;
    options.exact = exact;
    EXPECT_EQ(allow_strassen(s.graph(), options), !exact);
    EXPECT_EQ(s.graph().nodes.back()->freedom.strassen, !exact);
  }
}

}  // namespace
}  // namespace sinter
