// The budget of weights: which of the layers' offers it takes, beside the best of all choices.
#include <gtest/gtest.h>

#include <random>

#include "emit/sheet.h"
#include "ops/op.h"
#include "plan/plan.h"

namespace sinter {
namespace {

// Layers with random offers: the first one takes most bytes and least time.
struct Net {
  Graph graph;
  Plan plan;
  explicit Net(uint32_t seed) {
    std::mt19937 random(seed);
    const size_t layers = 3 + random() % 5;
    for (size_t i = 0; i < layers; ++i) {
      Node* n = graph.add_node(find_op("", "Relu"), "n", {}, {});
      Layer l;
      l.node = n;
      l.algorithm = Algorithm::kWinograd;
      int64_t bytes = 1000 + static_cast<int64_t>(random() % 1000);
      double cycles = 1000 + static_cast<double>(random() % 20000);
      const size_t offers = 2 + random() % 3;
      for (size_t k = 0; k < offers; ++k) l.offers.push_back({bytes << (offers - k), cycles *= 1.1});
      plan.layers.push_back(std::move(l));
      plan.bodies.emplace_back();
    }
  }
  // The offer that the decisions leave a layer.
  const WeightOffer& taken(size_t layer, const Decisions& d) const {
    const Layer& l = plan.layers[layer];
    const Decision& decided = d.of(*l.node);
    if (!decided.winograd.allowed) return l.offers.back();
    for (const WeightOffer& o : l.offers)
      if (o.bytes <= decided.weights.most) return o;
    return l.offers.back();
  }
};

// The least cycles of all choices that save so many bytes; negative where none does.
double best_of_all(const Net& net, int64_t excess, size_t layer = 0) {
  if (layer == net.plan.layers.size()) return excess <= 0 ? 0 : -1;
  const std::vector<WeightOffer>& offers = net.plan.layers[layer].offers;
  double best = -1;
  for (const WeightOffer& o : offers) {
    const double rest = best_of_all(net, excess - (offers[0].bytes - o.bytes), layer + 1);
    if (rest >= 0 && (best < 0 || rest + o.cycles < best)) best = rest + o.cycles;
  }
  return best;
}

TEST(WeightBudget, IsKeptForTheLeastTime) {
  double sum = 0;
  int count = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    const Net net(seed);
    int64_t most = 0;
    for (const Layer& l : net.plan.layers) most += l.offers.front().bytes - l.offers.back().bytes;
    const int64_t excess = most * (1 + seed % 9) / 10;
    Decisions d;
    ASSERT_TRUE(shrink_weights(net.graph, net.plan, excess, d));
    int64_t saved = 0;
    double cycles = 0;
    for (size_t i = 0; i < net.plan.layers.size(); ++i) {
      saved += net.plan.layers[i].offers[0].bytes - net.taken(i, d).bytes;
      cycles += net.taken(i, d).cycles;
    }
    EXPECT_GE(saved, excess) << "seed " << seed;
    sum += cycles / best_of_all(net, excess);
    ++count;
  }
  EXPECT_LE(sum / count, 1.01);  // of the best of all choices, on average
}

// Layers of the same weights keep or give up their form together: it lies there once.
TEST(WeightBudget, CountsSharedWeightsOnce) {
  Graph g;
  Plan plan;
  Value* w = g.add_value("w", {DType::kF32, {Dim(4)}});
  Value* other = g.add_value("v", {DType::kF32, {Dim(4)}});
  for (int i = 0; i < 3; ++i) {
    Layer l;
    l.node = g.add_node(find_op("", "Relu"), "n", {w, i < 2 ? w : other}, {});
    l.algorithm = Algorithm::kWinograd;
    l.offers = {{4000, 1000}, {1000, i < 2 ? 1500.0 : 1800.0}};
    plan.layers.push_back(std::move(l));
    plan.bodies.emplace_back();
  }
  // The pair would lose 1000 cycles for 3000 bytes, the third layer alone 800.
  Decisions d;
  ASSERT_TRUE(shrink_weights(g, plan, 3000, d));
  EXPECT_TRUE(d.of(*plan.layers[0].node).winograd.allowed);
  EXPECT_TRUE(d.of(*plan.layers[1].node).winograd.allowed);
  EXPECT_FALSE(d.of(*plan.layers[2].node).winograd.allowed);
  Decisions all;
  ASSERT_TRUE(shrink_weights(g, plan, 6000, all));
  for (const Layer& l : plan.layers) EXPECT_FALSE(all.of(*l.node).winograd.allowed);
}

// Before anything is packed: products that Strassen's way would make faster take it as far as the budget
// goes.
TEST(WeightBudget, IsSharedBeforeLayersAreWritten) {
  Sheet s;
  std::vector<Node*> products;
  for (const int64_t k : {1024, 512, 768}) {
    products.push_back(s.add("MatMul", {floats({256, k}), constant(random_constant(DType::kF32, {k, 512}))}));
    products.back()->freedom.strassen = true;
  }
  const Target& t = target("cortex-a72");
  const int64_t own = (1024 + 512 + 768) * 512 * 4;
  const auto packed = [&](const Decisions& d) {
    WeightStore store;
    Decisions decided = d;
    make_plan(s.graph(), t, decided, store);
    return store.size();
  };
  const Decisions free;
  const int64_t most = packed(free);
  ASSERT_GT(most, own * 3 / 2);
  int64_t last = 0;
  for (const int64_t budget : {own, own * 5 / 4, own * 3 / 2, most}) {
    SCOPED_TRACE(budget);
    Decisions d;
    share_weights(s.graph(), t, budget, d);
    EXPECT_LE(packed(d), budget + 4096);
    EXPECT_GE(packed(d), last);
    last = packed(d);
  }
  EXPECT_EQ(last, most);  // nothing is given up that there is room for
}

TEST(WeightBudget, LeavesWhatFits) {
  const Net net(1);
  Decisions d;
  EXPECT_FALSE(shrink_weights(net.graph, net.plan, 0, d));
  EXPECT_FALSE(shrink_weights(net.graph, net.plan, -5, d));
  // More than there is to save: all that can be.
  EXPECT_TRUE(shrink_weights(net.graph, net.plan, INT64_MAX / 4, d));
  for (size_t i = 0; i < net.plan.layers.size(); ++i)
    EXPECT_EQ(net.taken(i, d).bytes, net.plan.layers[i].offers.back().bytes);
}

}  // namespace
}  // namespace sinter
