// From a model file to the files of its bundle, in memory: what compile, run, verify, inspect and bench
// share.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "driver/options.h"
#include "emit/bundle.h"
#include "plan/plan.h"
#include "plan/tuning.h"

namespace sinter {

struct Compiled {
  const Target* target = nullptr;
  ImportOptions import;             // keeps custom operators alive
  std::unique_ptr<Graph> imported;  // the model before any pass; only if asked for
  std::unique_ptr<Graph> graph;     // after all passes; the plan's layers point into it
  Decisions decisions;              // for one thread, then for several
  WeightStore weights;
  int64_t stored_weights = 0;           // bytes of the constants in the model
  std::vector<int64_t> larger_budgets;  // of weights, that layers could be faster with (price_weights)
  bool half_weights = false;            // weights may be stored in 16 bits
  Plan plan;
  BundleOptions options;
  std::map<std::string, std::string> files;
};

// Throws Refusal with every problem. Free extents must have a bound by now (ModelOptions::dims or
// ImportOptions::input_shapes), or they are refused with the options that would give them one.
Compiled compile_model(const ModelOptions& o, const ImportOptions& import, bool keep_imported = false);
// The same with these measured choices instead of those of ModelOptions::tuning.
Compiled compile_tuned(const ModelOptions& o, const ImportOptions& import, const Tuning& tuning,
                       bool keep_imported = false);

// The same without the files of a bundle: for one of several models (driver/pipeline.h).
Compiled compile_part(const ModelOptions& o, const ImportOptions& import, bool keep_imported = false);

// The prefix of the model's files and functions: --name, or from the model's. UsageError where it isn't fit
// for that.
std::string bundle_name(const ModelOptions& o);
// The options that decide what is generated, in one fixed order and without folders. `models`: instead of the
// one.
std::string banner_command(const ModelOptions& o, const std::string& models, const std::string& target,
                           const std::string& name);
// Text, and a file's name, as banners show it: as it is where it is plain, else quoted.
std::string banner_text(const std::string& text);
std::string banner_file(const std::string& path);

std::vector<std::string> input_names(const Graph& g);
std::vector<std::string> output_names(const Graph& g);

}  // namespace sinter
