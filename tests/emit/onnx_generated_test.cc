// ONNX's own backend tests as generated code: some forty models a program, one gtest a program.
//
// Four ways: with all passes on the best target of this machine; the same on aarch64 (under qemu; every third
// batch, or all with SINTER_TEST_ALL=1); the same under AddressSanitizer and UndefinedBehaviorSanitizer (only
// with SINTER_TEST_ALL=1); and without any pass for a seeded third of the models, so that the kernels see
// nodes as the model has them. What import or the compiler refuses is skipped, and the
// reasons are counted and printed at the end. Whatever is accepted must build, run and give the stored
// outputs.
//
// SINTER_ONNX_RESULTS=FILE, with the program run once for all host tests, writes how many tests each operator
// has right, refused and wrong: docs/onnx-tests.txt.
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "emit/generated.h"
#include "onnx_suite.h"
#include "passes/pass.h"
#include "plan/plan.h"

namespace sinter {
namespace {

enum class Way { kHost, kBoard, kSanitized, kPlain };

const std::map<Way, std::string> kNames = {{Way::kHost, "host"},
                                           {Way::kBoard, "aarch64"},
                                           {Way::kSanitized, "sanitized"},
                                           {Way::kPlain, "no_passes"}};

struct Batch {
  std::vector<std::pair<std::string, std::string>> tests;  // category, name
};

// The order is by name, so that a batch is of one kind and its name tells which.
std::vector<Batch> batches() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const char* category : {"node", "simple", "pytorch-converted", "pytorch-operator"})
    for (const std::string& t : suite::tests(category)) all.emplace_back(category, t);
  std::vector<Batch> out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 40 == 0) out.emplace_back();
    out.back().tests.push_back(all[i]);
  }
  return out;
}

enum Verdict { kRight, kRefused, kWrong };

struct Table {
  int passed = 0, failed = 0, refused = 0;
  std::map<std::string, Verdict> verdicts;                  // category/test
  std::map<std::string, std::vector<std::string>> reasons;  // reason -> tests
};
std::map<Way, Table>& tables() {
  static std::map<Way, Table> t;
  return t;
}

// A refusal without the node's own name and shapes: `"y" (Loop): why` -> `Loop: why`.
std::string reason_of(std::string problem) {
  if (problem.rfind('"', 0) == 0 && problem.find(".pb\": ") != std::string::npos)
    return "test data that are no tensors (strings, sequences, optionals)";
  const size_t operation = problem.find("\" (");
  if (problem.rfind('"', 0) == 0 && operation != std::string::npos) problem = problem.substr(operation + 3);
  if (const size_t end = problem.find("): "); operation != std::string::npos && end != std::string::npos)
    problem = problem.substr(0, end) + problem.substr(end + 1);
  if (const size_t types = problem.find(" on ("); types != std::string::npos)
    problem = problem.substr(0, types);
  return problem.substr(0, 120);
}

// A third of the models, by a hash of their names.
bool chosen(const std::string& name) {
  uint32_t h = 2166136261u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h % 3 == 0;
}

class OnnxGenerated : public testing::TestWithParam<std::pair<Batch, Way>> {
 protected:
  static const Target& target(Way way) { return *find_target(way == Way::kBoard ? "aarch64" : "host"); }

  void skip(const std::string& name, const std::string& why) {
    Table& t = tables()[GetParam().second];
    ++t.refused;
    t.verdicts[folder_] = kRefused;
    t.reasons[reason_of(why)].push_back(name);
  }

  // The model after import and passes, whose plan can be made; refuses.
  std::unique_ptr<Graph> graph_of(const suite::fs::path& file, const std::vector<std::string>& names,
                                  const suite::DataSet& set, Way way) {
    std::unique_ptr<Graph> graph;
    suite::import_as_needed(file, names, set.inputs, [&](const Model& m) {
      graph = m.graph->clone();
      PassHooks hooks;
      if (way == Way::kPlain) hooks.stop_after = "lower_ops";
      run_passes(*graph, {}, hooks);
      const auto planned = graph->clone();
      separate_outputs(*planned, {});
      WeightStore store;
      make_plan(*planned, target(way), {}, store);
    });
    return graph;
  }

  void add(GeneratedBatch& batch, const std::string& category, const std::string& name, Way way) {
    if (suite::broken_data().count(name)) return;
    const suite::fs::path folder = suite::root() / category / name;
    folder_ = folder.string();
    if (const std::string bad = suite::unreadable(folder); !bad.empty()) return skip(name, bad);
    const auto names = suite::input_names(folder / "model.onnx");
    const auto sets = suite::data_sets(folder);
    for (size_t k = 0; k < sets.size(); ++k) {
      try {
        auto graph = graph_of(folder / "model.onnx", names, sets[k], way);
        DataSet data;
        for (const Value* v : graph->inputs)
          for (size_t i = 0; i < std::min(names.size(), sets[k].inputs.size()); ++i)
            if (names[i] == v->name)
              data.inputs.push_back(suite::stored_as(sets[k].inputs[i], v->type.dtype));
        for (size_t i = 0; i < graph->outputs.size(); ++i)
          data.expected.push_back(suite::stored_as(sets[k].outputs.at(i), graph->outputs[i]->type.dtype));
        // ONNX's own tolerance for what is float32, the harness's for other types.
        const bool single = !graph->outputs.empty() && graph->outputs[0]->type.dtype == DType::kF32;
        const Tolerance tolerance = single ? Tolerance{1e-3, 1e-6} : Tolerance{};
        folders_[k == 0 ? name : name + "_set" + std::to_string(k)] = folder_;
        batch.add(k == 0 ? name : name + "_set" + std::to_string(k), std::move(graph), {data}, tolerance);
      } catch (const Refusal& r) {
        return skip(name, suite::join(r));
      }
    }
  }

  std::string folder_;                          // of the test being added
  std::map<std::string, std::string> folders_;  // of what the batch calls by these names
};

TEST_P(OnnxGenerated, GivesStoredOutputs) {
  const auto& [tests, way] = GetParam();
  GeneratedBatch batch;
  for (const auto& [category, name] : tests.tests)
    if (way != Way::kPlain || chosen(name)) add(batch, category, name, way);
  Table& table = tables()[way];
  for (const Result& r : batch.run(target(way), {.sanitize = way == Way::kSanitized, .together = 14})) {
    if (!r.skipped.empty()) GTEST_SKIP() << r.skipped;
    EXPECT_EQ(r.refused, "") << r.name << ": refused after it was planned";
    EXPECT_EQ(r.error, "") << r.name;
    ++(r.good() ? table.passed : table.failed);
    Verdict& v = table.verdicts[folders_.at(r.name)];
    v = std::max(v, r.good() ? kRight : kWrong);
  }
}

std::vector<std::pair<Batch, Way>> cases() {
  const bool all = std::getenv("SINTER_TEST_ALL") != nullptr;
  std::vector<std::pair<Batch, Way>> out;
  const std::vector<Batch> list = batches();
  for (const Batch& b : list) out.emplace_back(b, Way::kHost);
  for (size_t i = 0; i < list.size(); ++i)
    if (all || i % 3 == 0) out.emplace_back(list[i], Way::kBoard);
  for (const Batch& b : list)
    if (all) out.emplace_back(b, Way::kSanitized);
  // Three batches' thirds make one.
  for (size_t i = 0; i < list.size(); i += 3) {
    Batch b;
    for (size_t k = i; k < std::min(i + 3, list.size()); ++k)
      b.tests.insert(b.tests.end(), list[k].tests.begin(), list[k].tests.end());
    out.emplace_back(b, Way::kPlain);
  }
  return out;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OnnxGenerated);
INSTANTIATE_TEST_SUITE_P(All, OnnxGenerated, testing::ValuesIn(cases()), [](const auto& info) {
  const auto& first = info.param.first.tests.front();
  std::string name = kNames.at(info.param.second) + "_" + first.first + "_" + first.second;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// All operators of a graph and its bodies, with the domain in front where it isn't ONNX's own.
void collect_operators(const onnx::GraphProto& graph, std::set<std::string>& out) {
  for (const onnx::NodeProto& n : graph.node()) {
    const bool own = n.domain().empty() || n.domain() == "ai.onnx";
    out.insert(own ? n.op_type() : n.domain() + "." + n.op_type());
    for (const auto& a : n.attribute())
      if (a.has_g()) collect_operators(a.g(), out);
  }
}

void write_results(const std::map<std::string, Verdict>& verdicts, const std::string& file) {
  std::map<std::string, std::array<int, 3>> counts;
  std::array<int, 3> all{};
  for (const auto& [folder, verdict] : verdicts) {
    onnx::ModelProto proto;
    std::ifstream stream(suite::fs::path(folder) / "model.onnx", std::ios::binary);
    proto.ParseFromIstream(&stream);
    std::set<std::string> operators;
    collect_operators(proto.graph(), operators);
    for (const std::string& o : operators) ++counts[o][verdict];
    ++all[verdict];
  }
  std::ofstream out(file);
  out << "# ONNX's backend tests (node, simple, pytorch-converted, pytorch-operator) by generated code, all "
         "passes,\n"
         "# this machine: operator, tests that it occurs in: right, refused, wrong. Made by\n"
         "#   SINTER_ONNX_TESTDATA=SUITE SINTER_ONNX_RESULTS=docs/onnx-tests.txt \\\n"
         "#     build/host/tests/test_emit --gtest_filter='All/OnnxGenerated.*/host_*'\n"
         "# where SUITE holds the data of onnx 1.23 in the layout of libonnx-testdata.\n"
      << fmt::format("# {} right, {} refused, {} wrong\n", all[kRight], all[kRefused], all[kWrong]);
  for (const auto& [o, n] : counts) out << fmt::format("{} {} {} {}\n", o, n[kRight], n[kRefused], n[kWrong]);
}

class PrintTables : public testing::Environment {
  void TearDown() override {
    if (const char* file = std::getenv("SINTER_ONNX_RESULTS"))
      write_results(tables()[Way::kHost].verdicts, file);
    for (const auto& [way, t] : tables()) {
      std::printf("%s: %d passed, %d failed, %d refused\n", kNames.at(way).c_str(), t.passed, t.failed,
                  t.refused);
      for (const auto& [why, tests] : t.reasons)
        std::printf("  %4zu  %s  (%s)\n", tests.size(), why.c_str(), tests.front().c_str());
    }
  }
};
[[maybe_unused]] const auto* const environment = testing::AddGlobalTestEnvironment(new PrintTables);

}  // namespace
}  // namespace sinter
