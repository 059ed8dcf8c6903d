// sinter bench: times of the built model, whole and by layer, and what it takes of memory and code.
//
// The whole is timed in a build without --trace; the layers in a second build with it, where the clock is
// read after every layer whose result is there then. The time of others, those before the last one of a group
// in strips of rows or of the parts of a Concat, is part of the next one's; its rate counts their work too.
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/build.h"
#include "cli/command.h"
#include "cli/compiled.h"
#include "cli/errors.h"
#include "cli/inputs.h"
#include "cli/output_file.h"
#include "cli/process.h"
#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Options : ModelOptions {
  std::vector<std::string> in, images;
  std::string json;
  int repeat = 100;
};

ordered_json execute(const Compiled& c, const Options& o, const std::vector<std::string>& files,
                     const fs::path& folder, CodeSize* size) {
  const std::string kind = c.options.trace ? "traced" : "plain";
  const fs::path dir = folder / kind;
  write_bundle(c.files, dir);
  const Toolchain tc = toolchain_for(*c.target, true);
  build_program(dir, c.options.name, tc, folder, dir / "program", size);
  std::vector<std::string> arguments = {"--repeat", std::to_string(o.repeat), "--json",
                                        (dir / "times").string()};
  for (const std::string& f : files) arguments.insert(arguments.end(), {"--in", f});
  if (c.options.weights_in_file)
    arguments.insert(arguments.end(), {"--weights", (dir / (c.options.name + ".weights")).string()});
  execute_program(tc, dir / "program", arguments, true);
  std::ifstream f(dir / "times");
  return ordered_json::parse(f);
}

// The program that plays the target's processor; empty where this machine is one.
std::string emulator_of(const Target& target) {
  const Toolchain tc = toolchain_for(target, true);
  return tc.execute.empty() ? "" : fs::path(tc.execute[0]).filename().string();
}

int bench(Options& o) {
  if (o.repeat < 1) throw UsageError("--repeat: at least 1");
  ImportOptions import = import_options(o);
  const TemporaryFolder folder;
  std::vector<std::string> files;
  InputFiles given;
  if (!o.in.empty()) {
    given = read_inputs(declared_inputs(o.model, import), o.in, o.images, folder.path());
    for (size_t i = 0; i < given.inputs.size(); ++i)
      import.input_shapes[given.inputs[i].name] = given.tensors[i].shape();
    files = given.files;
  }
  o.trace = false;
  const Compiled plain = compile_model(o, import);
  if (!o.in.empty()) check_inputs(inferred_inputs(*plain.graph), given.tensors);
  if (o.in.empty())
    for (size_t i = 0; i < plain.graph->inputs.size(); ++i)
      files.push_back(random_input(*plain.graph->inputs[i], folder.path(), i));
  CodeSize size;
  const ordered_json times = execute(plain, o, files, folder.path(), &size);
  o.trace = true;
  const Compiled traced = compile_model(o, import);
  const ordered_json layer_times = execute(traced, o, files, folder.path(), nullptr);

  ordered_json j;
  j["model"] = plain.options.model_file;
  j["target"] = plain.target->name;
  if (const std::string emulator = emulator_of(*plain.target); !emulator.empty()) {
    j["emulator"] = emulator;
    fmt::print("under {}, an emulator: the times say nothing about a {}\n", emulator, plain.target->name);
  }
  j["runs"] = o.repeat;
  j["min_us"] = times["min_us"];
  j["median_us"] = times["median_us"];
  j["arena_bytes"] = plain.plan.arena_bytes;
  j["weights_bytes"] = weights_bytes(plain.weights);
  j["stack_bytes"] = size.stack_bytes;
  j["text_bytes"] = size.text_bytes;
  j["layers"] = ordered_json::array();
  const ordered_json& us = layer_times["layers_us"];
  double flops = 0;  // of this layer and of those before it whose time is part of its own
  for (size_t i = 0; i < traced.plan.layers.size(); ++i) {
    const Layer& l = traced.plan.layers[i];
    const double t = i < us.size() ? us[i].get<double>() : 0.0;
    j["layers"].push_back({{"index", i},
                           {"function", l.function},
                           {"kernel", l.kernel},
                           {"summary", l.summary},
                           {"flops", l.flops},
                           {"min_us", t}});
    flops += l.flops;
    fmt::print("{:>4}  {:<34} {:<18} ", i, l.function.substr(0, 34), l.kernel.substr(0, 18));
    if (t > 0) {
      fmt::print("{:>10.2f} us {:>8.2f} GFLOP/s\n", t, flops / t / 1e3);
      flops = 0;
    } else {  // the trace sees no result of its own: strips of rows, parts of a Concat
      fmt::print("with the next\n");
    }
  }
  fmt::print("min {:.2f} us, median {:.2f} us of {} runs\n", times["min_us"].get<double>(),
             times["median_us"].get<double>(), o.repeat);
  fmt::print("arena {} bytes, weights {}, stack {}, code {}\n", plain.plan.arena_bytes,
             weights_bytes(plain.weights), size.stack_bytes, size.text_bytes);
  if (o.json.empty()) return kExitOk;
  write_output_file(o.json, j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  return kExitOk;
}

}  // namespace

std::function<int()> declare_bench(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_model_options(app, *o);
  app.add_option("--in", o->in, "[NAME=]FILE for the next input; without any, random ones")
      ->allow_extra_args(false);
  app.add_option("--image", o->images, "how a picture becomes an input, as for sinter run")
      ->allow_extra_args(false);
  app.add_option("--repeat", o->repeat, "how often the model runs")->capture_default_str();
  app.add_option("--json", o->json, "write the figures to this file");
  return [o] { return bench(*o); };
}

}  // namespace sinter
