// sinter bench: times of the built model, whole and by layer, and what it takes of memory and code.
//
// The whole is timed in a build without --trace; the layers in a second build with it, where the clock is
// read after every layer whose result is there then. The time of others, those before the last one of a group
// in strips of rows or of the parts of a Concat, is part of the next one's; its rate counts their work too.
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_options.h"
#include "driver/build.h"
#include "driver/compile.h"
#include "driver/errors.h"
#include "driver/frames.h"
#include "driver/inputs.h"
#include "driver/machine.h"
#include "driver/output_file.h"
#include "driver/process.h"
#include "driver/state_names.h"
#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Options : ModelOptions {
  std::vector<std::string> in, images;
  std::string json, on;
  int repeat = 100, steps = 1;
};

ordered_json execute(const Compiled& c, const Options& o, Machine& machine, const Toolchain& tc,
                     const std::vector<std::string>& files, const fs::path& folder, CodeSize* size) {
  const std::string kind = c.options.trace ? "traced" : "plain";
  const fs::path dir = folder / kind;
  write_bundle(c.files, dir);
  build_program(dir, c.options.name, tc, folder, dir / "program", size);
  ProgramRun r;
  for (const std::string& f : files) r.in.push_back({"", f});
  r.repeat = o.repeat;
  r.steps = o.steps;
  r.json = (dir / "times").string();
  if (c.options.weights_in_file) r.weights = (dir / (c.options.name + ".weights")).string();
  machine.execute(dir / "program", r);
  std::ifstream f(r.json);
  return ordered_json::parse(f);
}

// What a layer reads and writes at the greatest extents, with its weights.
int64_t bytes_of(const Layer& l) {
  int64_t bytes = 0;
  for (const Parameter& p : l.parameters)
    if (p.kind == Parameter::Kind::kWeights)
      bytes += p.bytes;
    else if ((p.kind == Parameter::Kind::kInput || p.kind == Parameter::Kind::kOutput) && p.value)
      bytes += product(p.value->type.shape).hi() * static_cast<int64_t>(size_of(p.value->type.dtype));
  return bytes;
}

// Adds the layers to `j` and prints them: time, share, operations and bytes a second. Of layers that the
// trace sees no result of (strips of rows, parts of a Concat) time, operations and bytes are the next one's.
void tell_layers(const Compiled& traced, const ordered_json& us, ordered_json& j) {
  double sum = 0;
  for (const auto& t : us) sum += t.get<double>();
  double flops = 0, bytes = 0;
  j["layers"] = ordered_json::array();
  for (size_t i = 0; i < traced.plan.layers.size(); ++i) {
    const Layer& l = traced.plan.layers[i];
    const double t = i < us.size() ? us[i].get<double>() : 0.0;
    j["layers"].push_back({{"index", i},
                           {"function", l.function},
                           {"kernel", l.kernel},
                           {"summary", l.summary},
                           {"flops", l.flops},
                           {"bytes", bytes_of(l)},
                           {"min_us", t},
                           {"share", sum > 0 ? t / sum : 0.0}});
    flops += l.flops;
    bytes += static_cast<double>(bytes_of(l));
    fmt::print("{:>4}  {:<34} {:<18} ", i, l.function.substr(0, 34), l.kernel.substr(0, 18));
    if (t > 0) {
      fmt::print("{:>10.2f} us {:>5.1f} % {:>8.2f} GFLOP/s {:>7.2f} GB/s\n", t, 100 * t / sum,
                 flops / t / 1e3, bytes / t / 1e3);
      flops = bytes = 0;
    } else {
      fmt::print("with the next\n");
    }
  }
}

// The frequency of the core that ran, where its kernel tells; less than its greatest is heat, or a governor.
void tell_frequency(const ordered_json& times, ordered_json& j) {
  const int64_t khz = times.value("khz", int64_t{0}), most = times.value("most_khz", int64_t{0});
  if (khz <= 0) return;
  j["mhz"] = khz / 1000;
  j["most_mhz"] = most / 1000;
  fmt::print("the core ran at {} MHz{}\n", khz / 1000,
             most > khz ? fmt::format(" of {}: throttled, or its governor holds it back", most / 1000) : "");
}

int bench(Options& o) {
  if (o.repeat < 1) throw UsageError("--repeat: at least 1");
  ImportOptions import = import_options(o);
  const TemporaryFolder folder;
  std::vector<std::string> files;
  InputFiles given;
  const bool has_files = name_files(o.in, o.images);
  if (has_files) {
    given = read_inputs(caller_inputs(o, import), o.in, o.images, folder.path(), o.steps);
    for (size_t i = 0; i < given.inputs.size(); ++i)
      import.input_shapes[given.inputs[i].name] = given.tensors[i].shape();
    files = given.files;
  }
  o.trace = false;
  const Compiled plain = compile_model(o, import);
  if (has_files) check_inputs(inferred_inputs(*plain.graph, plain.plan.states), given.tensors);
  if (!has_files)
    for (const Member& m : input_members(*plain.graph, plain.plan.states))
      files.push_back(random_input(*m.value, folder.path(), m.index));
  const Toolchain tc = toolchain_for(*plain.target, !is_elsewhere(o.on));
  const std::unique_ptr<Machine> machine = machine_of(o.on, tc, o.say);
  CodeSize size;
  const ordered_json times = execute(plain, o, *machine, tc, files, folder.path(), &size);
  o.trace = true;
  const Compiled traced = compile_model(o, import);
  const ordered_json layer_times = execute(traced, o, *machine, tc, files, folder.path(), nullptr);

  ordered_json j;
  j["model"] = plain.options.model_file;
  j["target"] = plain.target->name;
  if (is_elsewhere(o.on)) j["on"] = o.on;
  if (const std::string emulator = machine->emulator(); !emulator.empty()) {
    j["emulator"] = emulator;
    fmt::print("under {}, an emulator: the times say nothing about a {}\n", emulator, plain.target->name);
  }
  j["runs"] = o.repeat;
  j["min_us"] = times["min_us"];
  j["median_us"] = times["median_us"];
  j["arena_bytes"] = plain.plan.arena_bytes;
  if (plain.plan.states.bytes > 0) j["state_bytes"] = plain.plan.states.bytes;
  j["weights_bytes"] = weights_bytes(plain.weights);
  j["stack_bytes"] = size.stack_bytes;
  j["text_bytes"] = size.text_bytes;
  tell_layers(traced, layer_times["layers_us"], j);
  fmt::print("min {:.2f} us, median {:.2f} us of {} runs\n", times["min_us"].get<double>(),
             times["median_us"].get<double>(), o.repeat);
  tell_frequency(times, j);
  const int64_t state = plain.plan.states.bytes;
  fmt::print("arena {} bytes, {}weights {}, stack {}, code {}\n", plain.plan.arena_bytes,
             state > 0 ? fmt::format("state {}, ", state) : "", weights_bytes(plain.weights),
             size.stack_bytes, size.text_bytes);
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
  app.add_option("--steps", o->steps,
                 "with --state: the step that is measured, after those before it; files as for sinter run")
      ->check(CLI::Range(1, 1000000))
      ->option_text("N [1]");
  app.add_option("--json", o->json, "write the figures to this file");
  add_on_option(app, o->on);
  return [o, &app] {
    require_target(app, o->on);
    return bench(*o);
  };
}

}  // namespace sinter
