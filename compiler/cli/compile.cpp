// sinter compile: MODEL to a bundle in a folder.
#include "driver/compile.h"

#include <fstream>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/model_options.h"
#include "driver/build.h"
#include "driver/errors.h"
#include "driver/pipeline.h"
#include "driver/process.h"
#include "driver/several_targets.h"
#include "ir/error.h"
#include "ir/read_files.h"

namespace sinter {
namespace {

// --max-stack and --max-flash are about machine code: builds the net once, apart, and compares.
void check_code_size(const ModelOptions& o, const std::map<std::string, std::string>& files,
                     const std::string& name, const std::vector<const Target*>& targets, int64_t weights) {
  if (o.max_stack.empty() && o.max_flash.empty()) return;
  const TemporaryFolder folder;
  write_bundle(files, folder.path());
  const CodeSize size = measure_code(
      folder.path(), name,
      targets.size() == 1 ? toolchain_for(*targets[0], false) : toolchain_for(targets, false), folder.path());
  if (!o.max_stack.empty() && size.stack_bytes > parse_size("--max-stack", o.max_stack))
    refuse("a run takes {} bytes of stack, --max-stack allows {}", size.stack_bytes,
           parse_size("--max-stack", o.max_stack));
  if (!o.max_flash.empty() && size.text_bytes + weights > parse_size("--max-flash", o.max_flash))
    refuse("code takes {} and weights {} bytes, --max-flash allows {} together{}", size.text_bytes, weights,
           parse_size("--max-flash", o.max_flash),
           o.small_weights ? "" : "; --small-weights keeps the packed weights near the model's own size");
}

struct Options : ModelOptions {
  SeveralModels several;
  std::string output, depfile;
};

void write_depfile(const Options& o, const std::string& name, const ReadLog& log) {
  const std::string code = (std::filesystem::path(o.output) / (name + ".cpp")).string();
  std::ofstream f(o.depfile, std::ios::binary);
  f << dependency_rule(code, log.files());
  f.close();
  if (!f) refuse("--depfile {} can't be written", sinter::quoted(o.depfile));
}

// " (1.4 times the model's)".
std::string weight_factor(const Compiled& c) {
  if (c.stored_weights < 1024) return "";
  return fmt::format(" ({:.2f} times the model's)",
                     static_cast<double>(weights_bytes(c.weights)) / static_cast<double>(c.stored_weights));
}

int compile_one(const Options& o) {
  const ReadLog log;
  const Compiled c = compile_model(o, import_options(o));
  check_code_size(o, c.files, c.options.name, {c.target}, weights_bytes(c.weights));
  write_bundle(c.files, o.output);
  if (!o.depfile.empty()) write_depfile(o, c.options.name, log);
  fmt::print("{}: {} layers for {}, arena {} bytes, weights {} bytes{} -> {}\n", c.options.name,
             c.plan.layers.size(), c.target->name, c.plan.arena_bytes, weights_bytes(c.weights),
             weight_factor(c), o.output);
  return kExitOk;
}

int compile_several(const Options& o) {
  const ReadLog log;
  const Pipeline p = pipeline_of(o, o.several.models, o.several.alive);
  const CompiledPipeline all = compile_pipeline(p, import_options(p));
  const int64_t weights = weights_bytes(all.weights);
  check_code_size(o, all.files, p.name, {all.models[0].target}, weights);
  write_bundle(all.files, o.output);
  if (!o.depfile.empty()) write_depfile(o, p.name, log);
  int64_t alone = 0;
  for (size_t i = 0; i < p.names.size(); ++i) {
    const Compiled& c = all.models[i];
    fmt::print("{}: {} layers for {}, arena {} bytes, weights {} bytes\n", c.options.name,
               c.plan.layers.size(), c.target->name, c.plan.arena_bytes, all.model_weights[i]);
    alone += all.model_weights[i];
  }
  fmt::print("{}: {} models, arena {} bytes, weights {} bytes ({:.2f} times their sum) -> {}\n", p.name,
             p.names.size(), all.memory.arena_bytes, weights,
             alone > 0 ? static_cast<double>(weights) / static_cast<double>(alone) : 1.0, o.output);
  return kExitOk;
}

int compile_targets(const Options& o) {
  const ReadLog log;
  const CompiledTargets all = compile_for_targets(o, import_options(o));
  const int64_t weights = weights_bytes(all.weights);
  std::vector<const Target*> targets;
  for (const Compiled& c : all.targets) targets.push_back(c.target);
  check_code_size(o, all.files, all.name, targets, weights);
  write_bundle(all.files, o.output);
  if (!o.depfile.empty()) write_depfile(o, all.name, log);
  for (size_t i = 0; i < all.targets.size(); ++i)
    fmt::print("{}: {} layers for {}, arena {} bytes, weights {} bytes\n", all.name,
               all.targets[i].plan.layers.size(), targets[i]->name, all.targets[i].plan.arena_bytes,
               all.target_weights[i]);
  fmt::print("{}: {} targets, arena {} bytes, weights {} bytes -> {}\n", all.name, targets.size(),
             all.arena_bytes, weights, o.output);
  return kExitOk;
}

}  // namespace

std::function<int()> declare_compile(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_model_options(app, *o, true, &o->several);
  app.add_option("-o,--output", o->output, "folder for the files; made where it doesn't exist")->required();
  app.add_option(
      "--depfile", o->depfile,
      "write which files were read (model, external data, custom operators, tuning), as a rule of make");
  return [o] {
    if (o->several.models.size() > 1) return compile_several(*o);
    if (!o->several.alive.empty()) throw UsageError("--alive is for several models");
    return names_several(o->target) ? compile_targets(*o) : compile_one(*o);
  };
}

}  // namespace sinter
