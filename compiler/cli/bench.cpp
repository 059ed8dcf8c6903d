// sinter bench: times of the built model, whole and by layer, and what it takes of memory and code.
//
// The whole is timed in a build without --trace; the layers in a second build with it, where the clock is
// read after every layer whose result is there then. The time of others, those before the last one of a group
// in strips of rows or of the parts of a Concat, is part of the next one's; its rate counts their work too.
// With several --threads there are both builds for each number.
#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_options.h"
#include "driver/bench_program.h"
#include "driver/build.h"
#include "driver/compile.h"
#include "driver/errors.h"
#include "driver/frames.h"
#include "driver/inputs.h"
#include "driver/machine.h"
#include "driver/output_file.h"
#include "driver/process.h"
#include "driver/several_targets.h"
#include "driver/state_names.h"
#include "emit/code.h"
#include "ir/error.h"
#include "sinter/runner_table.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Options : ModelOptions {
  SeveralModels several;
  std::vector<std::string> in, images;
  std::string json, on, cores, export_file;
  std::vector<int> counts = {1};  // of threads
  int repeat = 100, steps = 1;
};

// What runs the model, and on what.
struct Bench {
  const Options& options;
  Machine& machine;
  const Toolchain& toolchain;
  const std::vector<std::string>& files;
  const fs::path& folder;
};

ordered_json execute(const Bench& b, const Compiled& c, CodeSize* size) {
  const fs::path dir =
      b.folder / fmt::format("{}_{}", c.options.trace ? "traced" : "plain", c.options.threads);
  write_bundle(c.files, dir);
  build_program(dir, c.options.name, b.toolchain, b.folder, dir / "program", size);
  ProgramRun r;
  for (const std::string& f : b.files) r.in.push_back({"", f});
  r.repeat = b.options.repeat;
  r.steps = b.options.steps;
  r.cores = b.options.cores;
  r.json = (dir / "times").string();
  if (c.options.weights_in_file) r.weights = (dir / (c.options.name + ".weights")).string();
  b.machine.execute(dir / "program", r);
  std::ifstream f(r.json);
  return ordered_json::parse(f);
}

// What was measured with one number of threads: the whole as it is, and by layers with a clock.
struct Measured {
  Compiled plain, traced;
  ordered_json times, layer_times;
  CodeSize size;
};

// By the layers' functions, which any number of threads has.
double time_of(const Measured& m, const std::string& function) {
  const ordered_json& us = m.layer_times["layers_us"];
  const std::vector<Layer>& layers = m.traced.plan.layers;
  for (size_t i = 0; i < layers.size() && i < us.size(); ++i)
    if (layers[i].function == function) return us[i].get<double>();
  return 0;
}

// Prints the layers and adds them to `j`, by the first number of threads.
void tell_layers(const std::vector<Measured>& all, ordered_json& j) {
  double sum = 0;
  for (const auto& t : all[0].layer_times["layers_us"]) sum += t.get<double>();
  std::vector<runner::LayerTimes> rows;
  j["layers"] = ordered_json::array();
  for (const Layer& l : all[0].traced.plan.layers) {
    runner::LayerTimes& row = rows.emplace_back();
    row.function = l.function;
    row.kernel = l.kernel;
    row.flops = l.flops;
    row.bytes = static_cast<double>(bytes_of(l));
    for (const Measured& m : all) row.us.push_back(time_of(m, l.function));
    j["layers"].push_back({{"index", rows.size() - 1},
                           {"function", l.function},
                           {"kernel", l.kernel},
                           {"summary", l.summary},
                           {"flops", l.flops},
                           {"bytes", bytes_of(l)},
                           {"min_us", row.us[0]},
                           {"share", sum > 0 ? row.us[0] / sum : 0.0}});
    if (all.size() > 1) j["layers"].back()["min_us_by_threads"] = row.us;
  }
  std::vector<int> counts;
  counts.reserve(all.size());
  for (const Measured& m : all) counts.push_back(m.plain.options.threads);
  fmt::print("{}", runner::layer_table(counts, rows));
}

void tell_totals(const std::vector<Measured>& all, int runs, ordered_json& j) {
  std::vector<runner::NetTimes> lines;
  for (const Measured& m : all) {
    const double median = m.times["median_us"].get<double>();
    lines.push_back({m.plain.options.threads, m.times["min_us"].get<double>(), median, runs});
    if (all.size() < 2) continue;
    j["by_threads"].push_back({{"threads", m.plain.options.threads},
                               {"min_us", m.times["min_us"]},
                               {"median_us", median},
                               {"times_as_fast", lines[0].median_us / median},
                               {"arena_bytes", m.plain.plan.arena_bytes},
                               {"checksum", m.times["checksum"]}});
  }
  fmt::print("{}", runner::net_lines(lines));
}

// How the machine was at the end of the first measurement, where its kernel tells.
void tell_board(const ordered_json& times, ordered_json& j) {
  runner::BoardFigures b;
  b.khz = times.value("khz", 0L);
  b.most_khz = times.value("most_khz", 0L);
  b.millidegrees = times.value("millidegrees", 0L);
  if (times.contains("throttled")) b.throttled = times["throttled"].get<bool>() ? 1 : 0;
  if (b.khz > 0) j["mhz"] = b.khz / 1000, j["most_mhz"] = b.most_khz / 1000;
  if (b.millidegrees > 0) j["millidegrees"] = b.millidegrees;
  if (b.throttled >= 0) j["throttled"] = b.throttled == 1;
  fmt::print("{}", runner::board_lines(b));
}

void tell_memory(const Measured& m, bool emulated, ordered_json& j) {
  const Plan& plan = m.plain.plan;
  const int64_t state = plan.states.bytes, weights = weights_bytes(m.plain.weights);
  j["arena_bytes"] = plan.arena_bytes;
  if (state > 0) j["state_bytes"] = state;
  j["weights_bytes"] = weights;
  j["stack_bytes"] = m.size.stack_bytes;
  j["text_bytes"] = m.size.text_bytes;
  fmt::print("arena {} bytes, {}weights {}, stack {}, code {}\n", plan.arena_bytes,
             state > 0 ? fmt::format("state {}, ", state) : "", weights, m.size.stack_bytes,
             m.size.text_bytes);
  const int64_t peak = emulated ? 0 : m.times.value("peak_bytes", int64_t{0});  // an emulator's own
  if (peak == 0) return;
  j["peak_bytes"] = peak;
  fmt::print("the program had at most {} bytes in use, with its inputs and outputs\n", peak);
}

// Inputs are the given files, else random ones of the greatest extents.
struct Inputs {
  std::vector<std::string> files;
  InputFiles given;
  bool is_given = false;
};

Inputs inputs_of(const Options& o, ImportOptions& import, const fs::path& folder) {
  Inputs inputs;
  inputs.is_given = name_files(o.in, o.images);
  if (!inputs.is_given) return inputs;
  InputFiles& given = inputs.given;
  given = read_inputs(caller_inputs(o, import), o.in, o.images, folder, o.steps);
  for (size_t i = 0; i < given.inputs.size(); ++i)
    import.input_shapes[given.inputs[i].name] = given.tensors[i].shape();
  inputs.files = given.files;
  return inputs;
}

void check_or_make(Inputs& inputs, const Compiled& c, const fs::path& folder) {
  if (inputs.is_given) return check_inputs(inferred_inputs(*c.graph, c.plan.states), inputs.given.tensors);
  for (const Member& m : input_members(*c.graph, c.plan.states))
    inputs.files.push_back(random_input(*m.value, folder, m.index));
}

Compiled compiled(Options& o, const ImportOptions& import, int threads, bool trace) {
  o.threads = threads;
  o.trace = trace;
  return compile_model(o, import);
}

int bench(Options& o) {
  const TemporaryFolder folder;
  ImportOptions import = import_options(o);
  Inputs inputs = inputs_of(o, import, folder.path());
  std::vector<Measured> all;
  std::unique_ptr<Machine> machine;
  Toolchain tc;
  for (const int threads : o.counts) {
    Measured m{compiled(o, import, threads, false), {}, {}, {}, {}};
    if (!machine) {
      check_or_make(inputs, m.plain, folder.path());
      tc = toolchain_for(*m.plain.target, !is_elsewhere(o.on));
      machine = machine_of(o.on, tc, o.say);
    }
    const Bench b{o, *machine, tc, inputs.files, folder.path()};
    m.times = execute(b, m.plain, &m.size);
    m.traced = compiled(o, import, threads, true);
    m.layer_times = execute(b, m.traced, nullptr);
    all.push_back(std::move(m));
  }
  const Measured& first = all[0];
  ordered_json j;
  j["model"] = first.plain.options.model_file;
  j["target"] = first.plain.target->name;
  if (is_elsewhere(o.on)) j["on"] = o.on;
  const std::string emulator = machine->emulator();
  if (!emulator.empty()) {
    j["emulator"] = emulator;
    fmt::print("under {}, an emulator: the times say nothing about a {}\n", emulator,
               first.plain.target->name);
  }
  if (first.times.contains("cores")) j["cores"] = first.times["cores"];
  j["threads"] = first.plain.options.threads;
  j["runs"] = o.repeat;
  j["min_us"] = first.times["min_us"];
  j["median_us"] = first.times["median_us"];
  j["checksum"] = first.times["checksum"];
  tell_layers(all, j);
  tell_totals(all, o.repeat, j);
  if (j.contains("cores")) fmt::print("on the cores {}\n", j["cores"].get<std::string>());
  tell_board(first.times, j);
  tell_memory(first, !emulator.empty(), j);
  if (o.json.empty()) return kExitOk;
  write_output_file(o.json, j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  return kExitOk;
}

// --export: nothing runs here.
int write_program(const Options& o) {
  if (!o.in.empty() || !o.images.empty() || !o.on.empty() || !o.json.empty() || !o.cores.empty() ||
      o.steps > 1)
    throw UsageError(
        "--export: the program makes its inputs itself and is told --cores, --repeat and --json where it "
        "runs");
  if (names_several(o.target)) throw UsageError("--export: a program is for one --target");
  if (o.weights == "file") throw UsageError("--export: the weights are in the program, not in a file");
  const BenchProgramFigures f = export_bench(o, o.several.models, o.counts, o.export_file);
  fmt::print("{}: {} ({}), arena {} bytes, weights {} bytes, {} bytes in all\n", o.export_file,
             f.nets.size() == 1 ? "a net" : fmt::format("{} nets", f.nets.size()), fmt::join(f.nets, ", "),
             f.arena_bytes, f.weights_bytes, f.program_bytes);
  return kExitOk;
}

int run(Options& o) {
  if (o.repeat < 1) throw UsageError("--repeat: at least 1");
  for (size_t i = 0; i < o.counts.size(); ++i)
    if (std::count(o.counts.begin(), o.counts.begin() + static_cast<ptrdiff_t>(i), o.counts[i]) > 0)
      throw UsageError(fmt::format("--threads: {} is named twice", o.counts[i]));
  if (!o.export_file.empty()) return write_program(o);
  if (o.several.models.size() > 1)
    throw UsageError(
        "bench takes one model; sinter compile and sinter verify take several, and --export makes a program "
        "that measures several");
  return bench(o);
}

}  // namespace

std::function<int()> declare_bench(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_model_options(app, *o, true, &o->several);
  app.remove_option(app.get_option("--alive"));
  app.remove_option(app.get_option("--threads"));
  app.add_option("--threads", o->counts,
                 "threads that the model may run on; several numbers, with commas: each is measured, and how "
                 "many times as fast it is as the first")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, kMostThreads))
      ->option_text("N,... [1]");
  app.add_option(
      "--cores", o->cores,
      "the cores that it runs on, of the machine where that is: big, little, or a list like 0,2-3");
  app.add_option("--export", o->export_file,
                 "write a static program to this file, to be started on a board that has nothing installed: "
                 "it measures\nthe model, or several, and prints a table of them (docs/board.md)");
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
    return run(*o);
  };
}

}  // namespace sinter
