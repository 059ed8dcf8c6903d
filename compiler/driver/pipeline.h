// Several models that become one bundle (emit/pipeline.h): what may be said of each, and the way of them all.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "emit/pipeline.h"

namespace sinter {

struct Pipeline {
  std::string name;                   // of the bundle
  std::vector<std::string> names;     // of the models: "A", whose functions are NAME_A_…
  std::vector<ModelOptions> options;  // of each
  std::vector<std::string> alive;     // --alive, as given
  std::string command;                // for the banner
  std::string max_ram;                // of all
};

// The options of each of `models`, files that may have NAME= in front (else a model is called as its file).
// What speaks of one model's names (--dim, --const, --only, --state, --keep-f32, --data) begins with "MODEL:"
// in `all`, unless there is one model. UsageError where it doesn't, and where two models have one name.
Pipeline pipeline_of(const ModelOptions& all, const std::vector<std::string>& models,
                     const std::vector<std::string>& alive);

struct CompiledPipeline {
  std::vector<Compiled> models;        // without files and weights
  std::vector<int64_t> model_weights;  // bytes that each alone would take
  SharedMemory memory;
  WeightStore weights;
  std::map<std::string, std::string> files;
};

// Throws Refusal with every problem, its model's file in front. `imports`: of each model, as compile_model
// takes them.
CompiledPipeline compile_pipeline(const Pipeline&, const std::vector<ImportOptions>& imports,
                                  bool keep_imported = false);
std::vector<ImportOptions> import_options(const Pipeline&);

}  // namespace sinter
