// The one comparison of costs: over a grid of layers, targets and limits, what is taken is possible and no
// candidate that could be taken is cheaper; what a measurement or a budget says is followed.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "emit/layer.h"
#include "emit/sheet.h"

namespace sinter {
namespace {

const char* const kTargets[] = {"cortex-a53", "cortex-a76", "avx512", "sapphirerapids-amx", "scalar"};

Node* add_conv(Sheet& s, int64_t size, int64_t in, int64_t out) {
  Node* n = s.add("Conv",
                  {floats({Dim(1), Dim(size), Dim(size), Dim(in)}),
                   constant(random_constant(DType::kF32, {out, in, 3, 3}, static_cast<unsigned>(in + out)))},
                  {{"pads", Ints{1, 1, 1, 1}}, {"channels_last", int64_t{1}}});
  n->freedom.winograd = 6;
  n->freedom.tile_matrices = true;
  return n;
}

Node* add_product(Sheet& s, int64_t rows, int64_t k, int64_t columns) {
  Node* n =
      s.add("MatMul", {floats({Dim(rows), Dim(k)}), constant(random_constant(DType::kF32, {k, columns}, 1))});
  n->freedom.strassen = n->freedom.tile_matrices = true;
  return n;
}

void add_all(Sheet& s) {
  for (const int64_t size : {7, 14, 56})
    for (const int64_t in : {2, 16, 64})
      for (const int64_t out : {20, 64}) add_conv(s, size, in, out);
  for (const int64_t rows : {1, 49, 128})
    for (const int64_t k : {64, 256})
      for (const int64_t columns : {16, 256}) add_product(s, rows, k, columns);
}

bool can_be_taken(const Candidate& c) { return c.why_not.empty() && c.measured; }

TEST(Choose, TakesTheCheapestThatNothingForbids) {
  Sheet s;
  add_all(s);
  std::set<std::string> taken;
  for (const char* name : kTargets)
    for (const auto& n : s.graph().nodes) {
      const Choice choice = choose(*n, {target(name), s.decisions});
      ASSERT_GE(choice.candidates.size(), 1u) << name << " " << n->op->name;
      const Candidate& first = choice.candidates.front();
      EXPECT_EQ(first.kernel, choice.kernel());
      EXPECT_TRUE(can_be_taken(first)) << first.why_not;
      EXPECT_TRUE(std::isfinite(first.cycles)) << name << " " << first.kernel->name;
      EXPECT_GT(first.weight_bytes, 0) << name << " " << first.kernel->name;
      for (const Candidate& c : choice.candidates) {
        EXPECT_TRUE(!can_be_taken(c) || c.price() >= first.price()) << name << " " << c.text;
        EXPECT_TRUE(c.measured || c.price() >= first.price()) << name << " " << c.text;
      }
      taken.insert(first.kernel->name);
    }
  for (const char* kernel : {"conv_winograd", "conv_direct", "gemm", "gemm_strassen", "gemm_amx"})
    EXPECT_TRUE(taken.count(kernel)) << kernel << " is nowhere the cheapest";
}

TEST(Choose, FollowsAMeasurement) {
  Sheet s;
  Node* conv = add_conv(s, 56, 64, 64);
  for (const int64_t tile : {2, 4, 6}) {
    s.decide(conv).winograd.tile = tile;
    const Candidate taken = choose(*conv, {target("cortex-a53"), s.decisions}).candidates.front();
    EXPECT_STREQ(taken.kernel->name, "conv_winograd");
    EXPECT_TRUE(taken.tuned);
    EXPECT_EQ(taken.text.substr(0, 5), fmt::format("{} x {}", tile, tile));
  }
  s.decide(conv).winograd.tile = WinogradLimit::kNoTile;
  EXPECT_STREQ(find_kernel(*conv, {target("cortex-a53"), s.decisions})->name, "conv_direct");
}

// Whatever the budget, what is taken keeps it, or is the plain way.
TEST(Choose, KeepsToTheBudgetOfWeights) {
  Sheet s;
  Node* conv = add_conv(s, 56, 64, 64);
  Node* product = add_product(s, 128, 256, 256);
  for (const char* name : {"cortex-a72", "avx512"})
    for (Node* n : {conv, product}) {
      int64_t before = INT64_MAX;
      for (int64_t most = 4 << 20; most > 1000; most = most * 3 / 4) {
        s.decide(n).weights.most = most;
        const Choice choice = choose(*n, {target(name), s.decisions});
        const Candidate& taken = choice.candidates.front();
        const bool plain = taken.kernel->can.algorithm == Algorithm::kPlain;
        EXPECT_TRUE(plain || taken.weight_bytes <= most) << name << " " << taken.text;
        EXPECT_LE(taken.weight_bytes, before);
        before = taken.weight_bytes;
        for (const Candidate& c : choice.candidates) {
          const bool spends = c.kernel->can.algorithm != Algorithm::kPlain;
          EXPECT_EQ(spends && c.weight_bytes > most, c.why_not.find("budget") != std::string::npos) << c.text;
        }
      }
      s.decide(n).weights.most = INT64_MAX;
    }
}

// What a layer offers the budget: less weights from one to the next way of saving, the plain one last.
TEST(Choose, OffersWaysOfLessWeights) {
  Sheet s;
  add_all(s);
  int offering = 0;
  for (const char* name : kTargets)
    for (const auto& n : s.graph().nodes) {
      const Choice choice = choose(*n, {target(name), s.decisions});
      const std::vector<WeightOffer> offers = weight_offers(choice);
      if (offers.empty()) continue;
      ++offering;
      ASSERT_GE(offers.size(), 2u);
      EXPECT_EQ(offers.front().bytes, choice.candidates.front().weight_bytes);
      for (size_t k = 1; k < offers.size(); ++k) EXPECT_LT(offers[k].bytes, offers[0].bytes);
    }
  EXPECT_GT(offering, 10);
}

// Where no other algorithm may compute a node, the table's order decides, and nothing is compared.
TEST(Choose, LeavesTheRestToTheTable) {
  Sheet s;
  Node* conv = add_conv(s, 14, 16, 16);
  conv->freedom = {};
  const Choice choice = choose(*conv, {target("cortex-a76"), s.decisions});
  ASSERT_EQ(choice.candidates.size(), 1u);
  EXPECT_STREQ(choice.kernel()->name, "conv_direct");
  EXPECT_TRUE(weight_offers(choice).empty());
}

}  // namespace
}  // namespace sinter
