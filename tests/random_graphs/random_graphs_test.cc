// A few hundred random graphs by the interpreter, and some of them as programs; `./dev fuzz` runs thousands.
#include <gtest/gtest.h>

#include "emit/generated.h"
#include "ir/error.h"
#include "ops/op.h"
#include "random_graphs/generate.h"

namespace sinter::random_graphs {
namespace {

TEST(RandomGraphs, PassesKeepValues) {
  size_t nodes = 0, refused = 0, rejected = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Sample s = generate(seed);
    nodes += static_cast<size_t>(s.model.graph().node_size());
    for (const auto& [why, n] : s.rejected)
      (why.find(": refused: ") == std::string::npos ? rejected : refused) += static_cast<size_t>(n);
    EXPECT_EQ(check_passes(s), "") << "seed " << seed;
  }
  // What the generator means to be valid is, with few exceptions.
  EXPECT_GT(nodes, 2500u);
  EXPECT_LT(refused, nodes / 15);
}

TEST(RandomGraphs, SameForTheSameSeed) {
  EXPECT_EQ(generate(7).model.SerializeAsString(), generate(7).model.SerializeAsString());
  EXPECT_NE(generate(7).model.SerializeAsString(), generate(8).model.SerializeAsString());
}

TEST(RandomGraphs, GeneratedCodeGivesTheSameValues) {
  GeneratedBatch batch;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    const Sample s = generate(seed);
    const auto as_given = std::move(import_model(s.model, {}, s.options).graph);
    std::vector<DataSet> sets;
    for (const auto& inputs : s.inputs) sets.push_back({inputs, evaluate(*as_given, inputs), 0});
    for (const Passes passes : {Passes::kNeeded, Passes::kAll}) {
      auto g = graph_of(s, passes);
      const double tolerance = output_tolerance(s, *g);
      batch.add("seed" + std::to_string(seed), std::move(g), sets, {0, tolerance});
    }
  }
  BuildOptions build;
  build.together = 8;
  expect_good(batch.run(*find_target("host"), build));
}

}  // namespace
}  // namespace sinter::random_graphs
