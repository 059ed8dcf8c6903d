// sinter run: compile, build, execute as three processes; the compiler itself never computes with the data.
#include <memory>

#include "cli/command.h"
#include "cli/model_options.h"
#include "driver/build.h"
#include "driver/bundle_reader.h"
#include "driver/compile.h"
#include "driver/errors.h"
#include "driver/frames.h"
#include "driver/inputs.h"
#include "driver/machine.h"
#include "driver/process.h"
#include "driver/state_names.h"
#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

struct Options : ModelOptions {
  std::string bundle, keep, on;
  std::vector<std::string> in, out, images;
  int steps = 1;
  std::string seed;
};

// Builds the bundle's program where it isn't there already, and returns its path. It is linked in `objects`,
// a folder of this process's own; where the bundle can't be written to, it stays there.
fs::path built_program(const Bundle& b, const Toolchain& tc, const fs::path& objects) {
  const fs::path program = b.dir / (b.name + "_main"), fresh = objects / (b.name + "_main");
  if (is_current(program, b)) return program;
  build_program(b.dir, b.name, tc, objects, fresh);
  return put_in_place(fresh, program) ? program : fresh;
}

void execute(const Bundle& b, const fs::path& objects, const InputFiles& inputs, const Options& o,
             std::unique_ptr<FolderLock> reading) {
  const Toolchain tc = toolchain_of(b, !is_elsewhere(o.on));
  const std::unique_ptr<Machine> machine = machine_of(o.on, tc, o.say);
  const fs::path program = built_program(b, tc, objects);
  reading.reset();
  ProgramRun r;
  for (size_t i = 0; i < inputs.files.size(); ++i) r.in.push_back({b.input_members[i], inputs.files[i]});
  const std::vector<std::string> outs = pair_files(o.out, b.outputs, "output");
  for (size_t i = 0; i < outs.size(); ++i)
    if (!outs[i].empty()) r.out.push_back({b.output_members[i], fs::absolute(outs[i]).string()});
  r.steps = o.steps;
  r.seed = o.seed;
  if (b.weights_in_file) r.weights = (b.dir / (b.name + ".weights")).string();
  fmt::print("{}", machine->execute(program, r));
}

int run(const Options& o) {
  if (o.model.empty() == o.bundle.empty()) throw UsageError("run: give a MODEL or --bundle DIR");
  if (!o.seed.empty() && o.bundle.empty() && o.random != "state")
    throw UsageError("--seed: random numbers are the same in every run without --random state");
  const TemporaryFolder temporary;
  if (!o.bundle.empty()) {
    if (!o.keep.empty()) throw UsageError("--keep: a bundle is kept already");
    // No compile replaces the bundle until its program is built.
    std::unique_ptr<FolderLock> reading;
    if (std::error_code ec; fs::is_directory(o.bundle, ec))
      reading = std::make_unique<FolderLock>(o.bundle, FolderLock::Mode::kShared);
    const Bundle b = open_bundle(o.bundle);
    if (b.models > 1)
      throw UsageError(
          fmt::format("{} holds a bundle of {} models: build it (c++ -std=c++17 -O2 -I. *.cpp *.S) and "
                      "give its program a model's name first",
                      o.bundle, b.models));
    execute(b, temporary.path(), read_inputs(b.inputs, o.in, o.images, temporary.path(), o.steps), o,
            std::move(reading));
    return kExitOk;
  }
  ImportOptions import = import_options(o);
  // A model that can't be read is import's to refuse, before its files are missed.
  const std::vector<DeclaredInput> declared = caller_inputs(o, import);
  InputFiles inputs;
  if (!declared.empty()) inputs = read_inputs(declared, o.in, o.images, temporary.path(), o.steps);
  for (size_t i = 0; i < inputs.inputs.size(); ++i)
    import.input_shapes[inputs.inputs[i].name] = inputs.tensors[i].shape();
  const Compiled c = compile_model(o, import);
  check_inputs(inferred_inputs(*c.graph, c.plan.states), inputs.tensors);
  const fs::path dir = o.keep.empty() ? temporary.path() / "bundle" : fs::path(o.keep);
  write_bundle(c.files, dir);
  Bundle b;
  b.dir = fs::absolute(dir);
  b.name = c.options.name;
  b.target = c.target->name;
  b.weights_in_file = c.options.weights_in_file;
  for (const auto& [file, text] : c.files) b.files.push_back(file);
  for (const Member& m : input_members(*c.graph, c.plan.states)) b.input_members.push_back(m.name);
  for (const Member& m : output_members(*c.graph, c.plan.states)) {
    b.outputs.push_back(m.model_name);
    b.output_members.push_back(m.name);
  }
  execute(b, temporary.path(), inputs, o, nullptr);
  return kExitOk;
}

}  // namespace

std::function<int()> declare_run(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_model_options(app, *o, false);
  app.add_option("--bundle", o->bundle, "a folder that sinter compile wrote, instead of MODEL");
  app.add_option("--in", o->in, "[NAME=]FILE for the next input: .npy, .pb, .png or .jpg")
      ->allow_extra_args(false);
  app.add_option("--out", o->out,
                 "[NAME=]FILE for the next output: .npy or .pb; without it the output is printed")
      ->allow_extra_args(false);
  app.add_option(
         "--image", o->images,
         "how a picture becomes an input: \"NAME: resize=stretch|crop|letterbox order=rgb|bgr|gray "
         "scale=1/255\n"
         "mean=a,b,c std=a,b,c\"; each pixel becomes (byte*scale-mean)/std. Or a picture's file, as for --in")
      ->allow_extra_args(false);
  app.add_option(
         "--steps", o->steps,
         "how often the model runs, each time with the states (--state) that the run before has left.\n% in "
         "a file's name is the number of the step, from 0; without it, a file holds one tensor for all "
         "steps,\n"
         "or a row for each: one more axis in front")
      ->check(CLI::Range(1, 1000000))
      ->option_text("N [1]");
  app.add_option("--seed", o->seed,
                 "with --random state: what the numbers of the first run and all others follow from")
      ->check(CLI::Range(uint64_t{0}, UINT64_MAX))
      ->option_text("N [0]");
  app.add_option("--keep", o->keep, "write the bundle and the program to this folder and leave them there");
  add_on_option(app, o->on);
  return [o, &app] {
    if (o->bundle.empty()) require_target(app, o->on);
    return run(*o);
  };
}

}  // namespace sinter
