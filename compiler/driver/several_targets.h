// One model for several processors as one bundle (emit/dispatch.h): --target cortex-a72,cortex-a76.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "driver/compile.h"

namespace sinter {

// Whether --target is a list.
bool names_several(const std::string& target);
// What it lists, the least demanding first. UsageError where one is unknown or named twice, Refusal where a
// program can't tell them apart.
std::vector<const Target*> targets_of(const std::string& list);

struct CompiledTargets {
  std::vector<Compiled> targets;        // without files and weights
  std::vector<int64_t> target_weights;  // bytes that each alone would take
  std::string name;                     // of the bundle
  int64_t arena_bytes = 0;
  WeightStore weights;
  std::map<std::string, std::string> files;
};

// As compile_model, for each of the targets that ModelOptions::target lists.
CompiledTargets compile_for_targets(const ModelOptions& o, const ImportOptions& import);

}  // namespace sinter
