// Session: a model's program, built once for this machine and run on files again and again.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/compile.h"
#include "driver/interrupt.h"

namespace sinter {

class Session {
 public:
  // Compiles and builds. Throws what compile_model and build_program throw.
  Session(const ModelOptions& o, const ImportOptions& import);

  // Runs the model once for each element of `files`, which has a file for each of its inputs in order, as
  // many at once as there are processors, and returns the outputs of these names for each.
  std::vector<std::vector<Tensor>> run(const std::vector<std::vector<std::string>>& files,
                                       const std::vector<std::string>& outputs) const;
  std::vector<std::string> output_names() const { return outputs_; }

 private:
  TemporaryFolder folder_;
  Toolchain toolchain_;
  std::filesystem::path program_;
  std::vector<std::string> inputs_, outputs_, output_members_;
};

}  // namespace sinter
