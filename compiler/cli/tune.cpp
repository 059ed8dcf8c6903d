// sinter tune: tries what the kernels' models decide on the machine itself, inside the whole net.
//
// One layer after the other, and for each all of its choices while the others stay as they are best so far: a
// choice that is only fast alone, because it leaves the caches to nobody else, doesn't win. Programs that
// come out the same are measured once.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "cli/command.h"
#include "cli/model_options.h"
#include "driver/build.h"
#include "driver/compile.h"
#include "driver/errors.h"
#include "driver/inputs.h"
#include "driver/process.h"
#include "driver/testbed.h"
#include "driver/tuning_file.h"
#include "import/sha256.h"
#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

struct Options : ModelOptions {
  std::string on, output;
  int repeat = 50;
};

// What a choice must gain to be one: less is noise. Modelled cycles have none.
constexpr double kGain = 0.01;

class Tuner {
 public:
  explicit Tuner(const Options& o)
      : o_(o),
        import_(import_options(o)),
        target_(target_of(o)),
        toolchain_(toolchain_for(target_, o.on == "host")) {}

  int run() {
    tuning_ = read_tuning(o_.tuning, target_, o_.say);
    const Compiled first = compile_tuned(o_, import_, tuning_);
    std::vector<std::string> inputs;
    for (const Member& m : input_members(*first.graph, first.plan.states))
      inputs.push_back(random_input(*m.value, folder_.path(), m.index));
    testbed_ = testbed_of(o_.on, toolchain_, inputs, folder_.path(), o_.say);
    for (const std::string& f : testbed_->flags()) toolchain_.compile.push_back(f);
    best_ = measured(first);
    const double start = best_.cost;
    fmt::print("as modelled: {:.1f} {}\n", best_.cost, testbed_->unit());
    const std::vector<TuningCandidate> candidates = tuning_candidates(first.plan);
    done_ = read_progress(o_.output, sha256_hex(best_.program + o_.on).substr(0, 16), target_);
    if (!done_.layers.empty()) resume(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (std::count(done_.layers.begin(), done_.layers.end(), candidates[i].layer) != 0) continue;
      fmt::print("{} of {}: {}\n", i + 1, candidates.size(), candidates[i].layer);
      try_choices(candidates[i]);
      done_.layers.push_back(candidates[i].layer);
      // Who interrupts keeps it. But what --tuning reads doesn't change meanwhile: its hash is in every
      // program.
      std::error_code ec;
      if (!fs::equivalent(o_.output, o_.tuning, ec)) write_tuning(o_.output, done_, false);
    }
    write_tuning(o_.output, done_, true);
    fmt::print("{:.1f} -> {:.1f} {}, {} of {} layers otherwise than modelled -> {}\n", start, best_.cost,
               testbed_->unit(), changed_, done_.rows.size(), o_.output);
    return kExitOk;
  }

 private:
  struct Measured {
    std::string program;  // the hash of its bundle
    double cost = 0;
  };

  bool by_clock() const { return std::string_view(testbed_->unit()) == "us"; }

  // Builds a program that is new. By the clock, known ones are measured again, and the least ever counts.
  Measured measured(const Compiled& c) {
    std::string text;
    for (const auto& [name, contents] : c.files) text.append(name).append("\n").append(contents);
    const std::string program = sha256_hex(text).substr(0, 16);
    const fs::path dir = folder_.path() / program;
    const bool known = costs_.count(program) != 0;
    if (!known) {
      write_bundle(c.files, dir);
      build_program(dir, c.options.name, toolchain_, dir, dir / "program", nullptr);
      costs_[program] = testbed_->cost(dir / "program", o_.repeat);
    }
    if (by_clock()) costs_[program] = std::min(costs_[program], testbed_->cost(dir / "program", o_.repeat));
    return {program, costs_[program]};
  }

  // With what an interrupted run of the same model, options and machine found.
  void resume(size_t all) {
    const std::string modelled = best_.program;
    for (const TuningRow& r : done_.rows) tuning_[r.layer] = r.choice;
    best_ = measured(compile_tuned(o_, import_, tuning_));
    changed_ = best_.program != modelled;
    fmt::print("{} of {} layers are measured already in {}: {:.1f} {}\n", done_.layers.size(), all, o_.output,
               best_.cost, testbed_->unit());
  }

  void try_choices(const TuningCandidate& c) {
    const std::string modelled = best_.program;
    std::string winner;
    for (const std::string& choice : c.choices) {
      tuning_[c.layer] = choice;
      const Measured m = measured(compile_tuned(o_, import_, tuning_));
      fmt::print("    {:<12} {:>14.1f} {}\n", choice, m.cost, testbed_->unit());
      std::cout.flush();
      const bool same = m.program == best_.program;
      if (same ? !winner.empty() : m.cost >= best_.cost * (1 - (by_clock() ? kGain : 0))) continue;
      best_ = m;
      winner = choice;
    }
    if (winner.empty()) {  // as modelled, and by none of the choices: the epilogue forbids them, say
      tuning_.erase(c.layer);
      return;
    }
    changed_ += best_.program != modelled;
    tuning_[c.layer] = winner;
    done_.rows.push_back({target_.name, c.layer, winner, best_.cost, testbed_->unit()});
  }

  const Options& o_;
  ImportOptions import_;
  const Target& target_;
  Toolchain toolchain_;
  TemporaryFolder folder_;
  std::unique_ptr<Testbed> testbed_;
  Tuning tuning_;
  std::map<std::string, double> costs_;  // by program
  Measured best_;
  TuningProgress done_;
  int changed_ = 0;
};

}  // namespace

std::function<int()> declare_tune(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_model_options(app, *o);
  app.add_option("--on", o->on,
                 "where programs run: host, ssh:HOST (reached without a password), or sim:COMMAND, which is "
                 "put before the program and prints the cycles that it counts")
      ->required();
  app.add_option("-o,--output", o->output, "the tuning file; rows that it has of other layers stay")
      ->required();
  app.add_option("--repeat", o->repeat, "how often each program runs the model")->capture_default_str();
  return [o] {
    if (o->repeat < 1) throw UsageError("--repeat: at least 1");
    if (o->weights != "embed") throw UsageError("sinter tune: only with the weights in the program");
    // A choice is measured as it is; whether its weights fit is for compile to say.
    if (!o->small_weights && o->max_weights.empty()) o->fast_weights = true;
    return Tuner(*o).run();
  };
}

}  // namespace sinter
