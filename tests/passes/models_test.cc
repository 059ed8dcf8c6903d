// All passes over whole models: the same outputs before and after, from the models' own test inputs.
//
// SINTER_MODELS names folders (separated by ':') of models, each a folder with model.onnx and
// test_data_set_0/input_K.pb; without it the test is skipped. SINTER_MODELS_FILTER: only names containing it.
#include <chrono>

#include "passes/proof.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> model_folders() {
  std::vector<fs::path> out;
  const char* list = std::getenv("SINTER_MODELS");
  const char* filter = std::getenv("SINTER_MODELS_FILTER");
  std::istringstream in(list ? list : "");
  for (std::string root; std::getline(in, root, ':');)
    for (const auto& entry : fs::directory_iterator(root))
      if (fs::exists(entry.path() / "model.onnx") &&
          (!filter || entry.path().filename().string().find(filter) != std::string::npos))
        out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Names of the inputs that the data set feeds: inputs with an initializer are not among them.
std::map<std::string, std::vector<int64_t>> input_shapes(const fs::path& folder,
                                                         const std::vector<Tensor>& inputs) {
  onnx::ModelProto proto;
  std::ifstream in(folder / "model.onnx", std::ios::binary);
  if (!proto.ParseFromIstream(&in)) return {};
  std::vector<std::string> names;
  for (const auto& v : proto.graph().input()) {
    const auto& all = proto.graph().initializer();
    if (std::none_of(all.begin(), all.end(), [&](const auto& t) { return t.name() == v.name(); }))
      names.push_back(v.name());
  }
  return suite::shapes(names, inputs);
}

// "" or what went wrong.
std::string check(const fs::path& folder, std::string& figures) {
  const bool dynamic = std::getenv("SINTER_MODELS_DYNAMIC") != nullptr;  // leave free dims free
  std::vector<Tensor> inputs;
  ImportOptions options;
  Model model;
  try {
    inputs = suite::load(folder / "test_data_set_0", "input");
    if (!dynamic) options.input_shapes = input_shapes(folder, inputs);
    model = import_model(folder / "model.onnx", options);
  } catch (const Refusal& r) {
    return "import: " + r.problems[0];
  }
  const std::unique_ptr<Graph> after = model.graph->clone();
  PassHooks hooks;
  hooks.verify_each = true;
  std::string stage = "passes: ";
  try {
    auto start = std::chrono::steady_clock::now();
    run_passes(*after, {}, hooks);
    figures = fmt::format("nodes {:4} -> {:4}, Transposes {:3} -> {:3}, {:.2f} s", model.graph->nodes.size(),
                          after->nodes.size(), count_op(*model.graph, "Transpose"),
                          count_op(*after, "Transpose"), seconds_since(start));
    stage = "before: ";
    std::map<std::string, Tensor> values;
    const std::vector<Tensor> want =
        evaluate(*model.graph, inputs, [&](const Value& v, const Tensor& t) { values[v.origin] = t; });
    stage = "after: ";
    std::string first;
    const std::vector<Tensor> got = evaluate(*after, inputs, [&](const Value& v, const Tensor& t) {
      const auto it = values.find(v.origin);
      if (!first.empty() || v.origin.empty() || it == values.end()) return;
      const Tensor original = v.perm.empty() ? it->second : it->second.transposed(v.perm);
      const std::string d = difference_of(t, original, 2e-3);
      if (!d.empty()) first = "value " + v.name + ": " + d;
    });
    for (size_t i = 0; i < want.size(); ++i) {
      const double tolerance = want[i].dtype() == DType::kF16 ? 2e-2 : 1e-3;
      const std::string d = difference_of(got[i], want[i], tolerance);
      if (!d.empty()) return fmt::format("output {}: {} ({})", i, d, first);
    }
  } catch (const Refusal& r) {
    return stage + r.problems[0];
  }
  return "";
}

TEST(Models, SameOutputsBeforeAndAfter) {
  const std::vector<fs::path> folders = model_folders();
  if (folders.empty()) GTEST_SKIP() << "SINTER_MODELS is not set";
  for (const fs::path& folder : folders) {
    std::string figures;
    const std::string problem = check(folder, figures);
    fmt::print("{:40} {} {}\n", folder.filename().string(), figures, problem);
    std::fflush(stdout);
    const bool not_ours = problem.rfind("import: ", 0) == 0 || problem.rfind("before: ", 0) == 0;
    EXPECT_TRUE(not_ours || problem.empty()) << folder.filename();
  }
}

}  // namespace
}  // namespace sinter
