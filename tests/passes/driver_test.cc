// The pass driver's hooks, what a fused node remembers of the model, `exact`, and the minimum cut by brute
// force.
#include "passes/min_cut.h"
#include "passes/proof.h"

namespace sinter {
namespace {

constexpr char kModel[] = R"(<ir_version: 8, opset_import: ["" : 18]> g (float[N,2,4,4] x, float[3,2,1,1] w_w,
  float[3] w_s, float[3] w_b, float[3] w_m, float[3] w_var) => (float[N,3,4,4] y) {
    a = Conv(x, w_w)  b = BatchNormalization(a, w_s, w_b, w_m, w_var)  c = Sigmoid(b)  y = Mul(b, c) })";

TEST(Driver, StopsSkipsPrintsAndTimes) {
  const std::unique_ptr<Graph> g = graph_of(kModel);
  std::string printed;
  std::vector<std::string> ran;
  PassHooks hooks;
  hooks.stop_after = "fold_batchnorm";
  hooks.skip = {"merge_common"};
  hooks.print_after = {"fold_constants"};
  hooks.time = true;
  hooks.print = [&](const std::string& s) { printed += s; };
  hooks.after = [&](const Pass& p, const Graph&) { ran.push_back(p.name); };
  run_passes(*g, {}, hooks);
  EXPECT_EQ(ran, (std::vector<std::string>{"fold_constants", "remove_identity", "fuse_layernorm",
                                           "fuse_attention", "lower_composites", "fold_batchnorm"}));
  EXPECT_NE(printed.find("-- after fold_constants\ngraph"), std::string::npos);
  EXPECT_NE(printed.find("fold_batchnorm "), std::string::npos);
  EXPECT_NE(printed.find(" ms "), std::string::npos);
  EXPECT_EQ(count_op(*g, "BatchNormalization"), 0u);
}

TEST(Driver, RefusesUnknownPasses) {
  const std::unique_ptr<Graph> g = graph_of(kModel);
  PassHooks hooks;
  hooks.stop_after = "no_such_pass";
  hooks.skip = {"nor_this"};
  EXPECT_EQ(refusal_of([&] { run_passes(*g, {}, hooks); }),
            "there is no pass named \"no_such_pass\"\nthere is no pass named \"nor_this\"");
}

TEST(Driver, NamesAreUnique) {
  std::set<std::string> names;
  for (const Pass& p : all_passes()) EXPECT_TRUE(names.insert(p.name).second) << p.name;
}

TEST(Driver, FusedNodesKnowTheirSources) {
  const std::unique_ptr<Graph> g = graph_of(kModel);
  run_passes(*g, {}, {});
  const Node* conv = nullptr;
  for (const auto& n : g->nodes)
    if (n->op->name == std::string_view("Conv")) conv = n.get();
  ASSERT_NE(conv, nullptr);
  std::string all;
  for (const std::string& s : conv->sources) all += s.substr(s.find('(')) + " ";
  EXPECT_EQ(all, "(Conv) (BatchNormalization) (Sigmoid) (Mul) ");
  EXPECT_EQ(conv->outputs[0]->origin, "y");
  EXPECT_EQ(conv->outputs[0]->perm, (std::vector<int64_t>{0, 2, 3, 1}));
}

TEST(Driver, ExactKeepsEveryRounding) {
  const std::unique_ptr<Graph> before = graph_of(kModel), after = before->clone();
  run_only(*after, {"all"}, true);
  EXPECT_EQ(count_op(*after, "BatchNormalization"), 1u);
  expect_same_values(*before, *after, 0, {1, 3});
}

TEST(Driver, ChannelsLastCanBeSwitchedOff) {
  const std::unique_ptr<Graph> g = graph_of(kModel);
  PassOptions options;
  options.channels_last = false;
  run_passes(*g, options, {});
  EXPECT_EQ(count_op(*g, "Transpose"), 0u);
}

// Cuts of random graphs against all 2^n ways to cut them.
TEST(MinCut, LeastOfAllCuts) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 2 + static_cast<int>(random() % 7);
    struct Edge {
      int from, to;
      int64_t capacity;
    };
    std::vector<Edge> edges;
    MinCut most, fewest;
    for (int i = 0; i < n; ++i) most.add_vertex(), fewest.add_vertex();
    for (int i = 0; i < 3 * n; ++i) {
      const Edge e{static_cast<int>(random() % static_cast<unsigned>(n)),
                   static_cast<int>(random() % static_cast<unsigned>(n)), static_cast<int64_t>(random() % 5)};
      edges.push_back(e);
      most.add_edge(e.from, e.to, e.capacity);
      fewest.add_edge(e.from, e.to, e.capacity);
    }
    const auto cost = [&](unsigned side) {  // bit i: vertex i is at the source
      int64_t sum = 0;
      for (const Edge& e : edges)
        if ((side >> e.from & 1) && !(side >> e.to & 1)) sum += e.capacity;
      return sum;
    };
    int64_t best = INT64_MAX;
    for (unsigned side = 0; side < 1u << n; ++side)
      if ((side & 1) && !(side & 2)) best = std::min(best, cost(side));
    unsigned any = 0, all = ~0u;  // vertices at the source in some, in every minimum cut
    for (unsigned side = 0; side < 1u << n; ++side)
      if ((side & 1) && !(side & 2) && cost(side) == best) any |= side, all &= side;
    EXPECT_EQ(most.solve(0, 1, true), best);
    EXPECT_EQ(fewest.solve(0, 1, false), best);
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(most.on_source_side(i), (any >> i & 1) != 0);
      EXPECT_EQ(fewest.on_source_side(i), (all >> i & 1) != 0);
    }
  }
}

}  // namespace
}  // namespace sinter
