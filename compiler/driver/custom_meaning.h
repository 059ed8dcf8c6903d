// What a custom operator means, for sinter verify: what its C function makes of the inputs.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "driver/build.h"
#include "driver/machine.h"
#include "ops/op.h"
#include "targets/target.h"

namespace sinter {

// While it lives, evaluation of a custom operator's node builds a model of that node alone and runs it on the
// inputs: no pass has seen it, and no layer around it decides how its tensors lie.
class CustomMeaning {
 public:
  CustomMeaning(const Target& target, const Toolchain& toolchain, Machine& machine,
                std::filesystem::path folder);
  ~CustomMeaning();
  CustomMeaning(const CustomMeaning&) = delete;
  CustomMeaning& operator=(const CustomMeaning&) = delete;

 private:
  void run(Evaluation& e);
  std::filesystem::path program_for(const Evaluation& e);
  const Target& target_;
  const Toolchain& toolchain_;
  Machine& machine_;
  const std::filesystem::path folder_;
  // Folders, by the node and the text of the graph that it alone is, which has the inputs' shapes.
  std::map<std::pair<const Node*, std::string>, std::filesystem::path> programs_;
};

}  // namespace sinter
