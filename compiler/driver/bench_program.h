// sinter bench --export: one static program of one or several models, to be measured on a board that has
// nothing but a kernel.
//
// It is a bundle of several models (driver/pipeline.h) in which each is there twice: as it is, and with the
// trace by which layers are timed. Their weights lie there once. Its runner is another one
// (runtime/sinter/runner_bench.h), which makes its inputs itself.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/options.h"

namespace sinter {

struct BenchProgramFigures {
  std::vector<std::string> nets;  // as the program calls them
  int64_t weights_bytes = 0, arena_bytes = 0, program_bytes = 0;
};

// Writes `program`. `models`: [NAME=]FILE each; of several, options that speak of one's names have MODEL: in
// front. `threads`: the numbers that are measured; the models are compiled for the greatest. Throws what
// compile_pipeline and build_program throw.
BenchProgramFigures export_bench(const ModelOptions& o, const std::vector<std::string>& models,
                                 const std::vector<int>& threads, const std::filesystem::path& program);

}  // namespace sinter
