// ONNX's own backend tests through import and the interpreter: one test a folder.
//
// Skipped, with the reason: what import refuses (an operator that isn't supported). Everything else must give
// the stored outputs.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cstdio>
#include <fstream>

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

// Names of the graph's inputs in file order; initializers' too, since test data may give them.
std::vector<std::string> input_names(const suite::fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  onnx::ModelProto proto;
  proto.ParseFromIstream(&stream);
  std::vector<std::string> names;
  for (const auto& i : proto.graph().input()) names.push_back(i.name());
  return names;
}

// Inputs or outputs that aren't tensors (sequences, optionals) or hold strings.
std::string unreadable(const suite::fs::path& test) {
  try {
    suite::data_sets(test);
    return "";
  } catch (const Refusal& r) {
    return r.what();
  }
}

std::string join(const Refusal& r) {
  std::string s;
  for (const std::string& p : r.problems) s += (s.empty() ? "" : "; ") + p;
  return s;
}

// Tests whose stored data are at fault, and why.
const std::map<std::string, std::string>& broken_data() {
  static const std::map<std::string, std::string> table = {
      {"test_cast_FLOAT_to_BFLOAT16", "its data are cut off, not rounded to nearest"},
      {"test_resize_downsample_scales_linear_align_corners",
       "its output is 2.4 pixels wide; we take the 2 it has"},
      {"test_resize_downsample_scales_cubic_align_corners",
       "its output is 3.2 pixels wide; we take the 3 it has"},
      {"test_castlike_FLOAT_to_BFLOAT16", "input like has another shape than the model says"},
      {"test_castlike_BFLOAT16_to_FLOAT", "input like has another shape than the model says"},
      {"test_castlike_FLOAT_to_BFLOAT16_expanded", "input like has another shape than the model says"},
      {"test_castlike_BFLOAT16_to_FLOAT_expanded", "input like has another shape than the model says"},
  };
  return table;
}

class OnnxSuite : public testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  // Some operators want an input's value at compile time. The suite has them all as inputs: then they are
  // given as constants, first all but input 0, then all.
  static Model import_as_needed(const suite::fs::path& file, const std::vector<std::string>& names,
                                const std::vector<Tensor>& inputs) {
    ImportOptions options;
    options.input_shapes = suite::shapes(names, inputs);
    for (size_t attempt = 0;; ++attempt) {
      try {
        return import_model(file, options);
      } catch (const Refusal& r) {
        const bool value_needed = join(r).find("only known at run time") != std::string::npos ||
                                  join(r).find("not known before the model runs") != std::string::npos ||
                                  join(r).find("known at compile time") != std::string::npos;
        if (!value_needed || attempt == 2) throw;
        for (size_t i = 1 - attempt; i < std::min(names.size(), inputs.size()); ++i)
          options.constants[names[i]] = inputs[i];
      }
    }
  }

  void run(const suite::fs::path& test) {
    if (const auto it = broken_data().find(GetParam().second); it != broken_data().end())
      GTEST_SKIP() << it->second;
    const auto names = input_names(test / "model.onnx");
    const std::string bad = unreadable(test);
    const auto sets = bad.empty() ? suite::data_sets(test) : std::vector<suite::DataSet>{{}};
    for (const suite::DataSet& set : sets) {
      Model model;
      try {
        model = import_as_needed(test / "model.onnx", names, set.inputs);
      } catch (const Refusal& r) {
        // Valid models, so all they can be refused for is what isn't supported.
        EXPECT_NE(join(r).find("not supported"), std::string::npos) << join(r);
        GTEST_SKIP() << join(r);
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
      FAIL() << join(r);
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
