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
  int64_t stored_weights = 0;  // bytes of the constants in the model
  bool half_weights = false;   // weights may be stored in 16 bits
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

std::vector<std::string> input_names(const Graph& g);
std::vector<std::string> output_names(const Graph& g);

}  // namespace sinter
