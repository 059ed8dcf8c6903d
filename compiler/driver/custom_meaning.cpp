#include "driver/custom_meaning.h"

#include "emit/bundle.h"
#include "import/onnx.h"
#include "ir/error.h"
#include "ops/custom.h"
#include "plan/steps.h"

namespace sinter {

namespace fs = std::filesystem;

namespace {

// The node alone, its inputs as large as those that are given.
std::unique_ptr<Graph> graph_of(const Evaluation& e) {
  auto g = std::make_unique<Graph>();
  g->name = "custom";
  std::vector<Value*> inputs, outputs;
  for (size_t i = 0; i < e.in.size(); ++i) {
    inputs.push_back(nullptr);
    if (!e.has(i)) continue;
    const std::vector<int64_t>& shape = e.in[i].shape();
    inputs.back() =
        g->add_value(fmt::format("in{}", i), {e.in[i].dtype(), Shape(shape.begin(), shape.end())});
    g->inputs.push_back(inputs.back());
  }
  for (size_t i = 0; i < e.node.outputs.size(); ++i)
    outputs.push_back(g->add_value(fmt::format("out{}", i), {}));
  Node* n = g->add_node(e.node.op, "custom", inputs, outputs);
  n->attributes = e.node.attributes;
  g->outputs = outputs;
  infer(*g);
  return g;
}

}  // namespace

CustomMeaning::CustomMeaning(const Target& target, const Toolchain& toolchain, Machine& machine,
                             fs::path folder)
    : target_(target), toolchain_(toolchain), machine_(machine), folder_(std::move(folder)) {
  set_custom_meaning([this](Evaluation& e) { run(e); });
}

CustomMeaning::~CustomMeaning() { set_custom_meaning(nullptr); }

// Built once for a node and shapes of its inputs.
fs::path CustomMeaning::program_for(const Evaluation& e) {
  const std::unique_ptr<Graph> g = graph_of(e);
  const auto [at, fresh] =
      programs_.try_emplace({&e.node, text(*g)}, folder_ / fmt::format("m{}", programs_.size()));
  if (!fresh) return at->second / "program";
  const fs::path dir = at->second, objects = dir / "objects";
  Decisions decisions;
  run_steps(*g, {target_, {}}, decisions);
  WeightStore weights;
  const Plan plan = make_plan(*g, target_, decisions, weights);
  BundleOptions o;
  o.name = "custom";
  o.model_file = o.command = "one node";
  o.model_hash = std::string(64, '0');
  write_bundle(make_bundle(*g, plan, target_, weights, o), dir);
  fs::create_directories(objects);
  build_program(dir, o.name, toolchain_, objects, dir / "program");
  return dir / "program";
}

void CustomMeaning::run(Evaluation& e) {
  const fs::path program = program_for(e);
  ProgramRun r;
  for (size_t i = 0; i < e.in.size(); ++i) {
    if (!e.has(i)) continue;
    const fs::path file = folder_ / fmt::format("custom_in_{}.pb", i);
    write_tensor_pb(file, e.in[i], "");
    r.in.push_back({"", file.string()});
  }
  std::vector<fs::path> files;
  for (size_t i = 0; i < e.node.outputs.size(); ++i) {
    files.push_back(folder_ / fmt::format("custom_out_{}.pb", i));
    r.out.push_back({"", files.back().string()});
  }
  machine_.execute(program, r);
  for (size_t i = 0; i < files.size(); ++i) e.out[i] = read_tensor_pb(files[i]);
}

}  // namespace sinter
