// The C++ of a bundle: the layers' functions and net_run (emit/code.cpp), and the runner (emit/runner.cpp).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "emit/bundle.h"

namespace sinter {

// NAME.cpp, or that of one of several models.
std::string code_text(const BundlePart&);
// NAME_main.cpp: reads input_K.pb files, runs, writes output_K.pb files; see runtime/sinter/runner.h. Of
// several models, the first argument says which one runs.
std::string runner_main(const BundlePart&);
std::string runner_main(const SharedMemory&, const std::vector<BundlePart>&);

// One of the nets of a program that measures: two parts of the bundle, the second with the trace, and how its
// inputs are filled (runtime/sinter/seeded.h).
struct Filling {
  size_t seed;
  bool frame;
  std::optional<double> number;  // that all elements are
};
struct ExportedNet {
  std::string name;
  size_t plain, timed;
  std::vector<Filling> inputs;
};
// NAME_main.cpp for sinter bench --export (runtime/sinter/runner_bench.h). `threads`: how many are measured
// where nobody says it.
std::string bench_main(const SharedMemory&, const std::vector<BundlePart>&, const std::vector<ExportedNet>&,
                       const std::vector<int>& threads);
// What a layer reads and writes at the greatest extents, with its weights.
int64_t bytes_of(const Layer&);
// The function NAME_error.
// `capacity`: what E_CAPACITY says of caches, if anything.
std::string error_text(const std::string& name, bool states, const std::string& capacity);
// The line that ends a compilation with another compile's NAME.h.
std::string interface_check(const BundleOptions&);
std::string upper(std::string);
// The C type of an element.
std::string c_type(DType);
// Where a tensor lies, for NAME.map: "input", "output", "state", "weights" or "arena".
const char* where_text(const Plan&, const Place&);

}  // namespace sinter
