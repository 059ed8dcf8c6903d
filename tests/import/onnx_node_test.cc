// ONNX's own backend tests through import and the interpreter: one test a folder.
//
// Skipped, with the reason: what import refuses (an operator that isn't supported). Everything else must give
// the stored outputs.
#include <gtest/gtest.h>

#include <cstdio>

#include "onnx_suite.h"

namespace sinter {
namespace {

struct Counts {
  int passed = 0, skipped = 0, failed = 0;
};
std::map<std::string, Counts>& counts() {
  static std::map<std::string, Counts> c;
  return c;
}

class OnnxSuite : public testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  void run(const suite::fs::path& test) {
    if (const auto it = suite::broken_data().find(GetParam().second); it != suite::broken_data().end())
      GTEST_SKIP() << it->second;
    const auto names = suite::input_names(test / "model.onnx");
    const std::string bad = suite::unreadable(test);
    const auto sets = bad.empty() ? suite::data_sets(test) : std::vector<suite::DataSet>{{}};
    for (const suite::DataSet& set : sets) {
      Model model;
      try {
        model = suite::import_as_needed(test / "model.onnx", names, set.inputs);
      } catch (const Refusal& r) {
        // Valid models, so all they can be refused for is what isn't supported.
        EXPECT_NE(suite::join(r).find("not supported"), std::string::npos) << suite::join(r);
        GTEST_SKIP() << suite::join(r);
      }
      ASSERT_EQ(bad, "") << "accepted, but its data are not supported";
      check(*model.graph, names, set);
    }
  }

  static void check(const Graph& g, const std::vector<std::string>& names, const suite::DataSet& set) {
    std::vector<Tensor> inputs, got;
    for (const Value* v : g.inputs)
      for (size_t i = 0; i < names.size(); ++i)
        if (names[i] == v->name && i < set.inputs.size())
          inputs.push_back(suite::stored_as(set.inputs[i], v->type.dtype));
    try {
      got = evaluate(g, inputs);
    } catch (const Refusal& r) {
      FAIL() << suite::join(r);
    }
    ASSERT_EQ(got.size(), set.outputs.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(suite::difference(got[i], suite::stored_as(set.outputs[i], got[i].dtype())), "")
          << "output " << i;
  }
  void TearDown() override {
    Counts& c = counts()[GetParam().first];
    ++(IsSkipped() ? c.skipped : HasFailure() ? c.failed : c.passed);
  }
};

TEST_P(OnnxSuite, GivesStoredOutputs) { run(suite::root() / GetParam().first / GetParam().second); }

std::vector<std::pair<std::string, std::string>> cases() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const char* category : {"node", "simple", "pytorch-converted", "pytorch-operator"})
    for (const std::string& t : suite::tests(category)) all.emplace_back(category, t);
  return all;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OnnxSuite);
INSTANTIATE_TEST_SUITE_P(All, OnnxSuite, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param.first + "_" + info.param.second;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

class PrintCounts : public testing::Environment {
  void TearDown() override {
    for (const auto& [category, c] : counts())
      std::printf("%s: %d passed, %d skipped, %d failed\n", category.c_str(), c.passed, c.skipped, c.failed);
  }
};
[[maybe_unused]] const auto* const environment = testing::AddGlobalTestEnvironment(new PrintCounts);

}  // namespace
}  // namespace sinter
