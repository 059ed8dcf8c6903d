// NAME_main.cpp: a program around net_run that reads and writes tensors as files (runtime/sinter/runner.h).
#include "emit/code.h"

namespace sinter {

std::string runner_main(const Graph&, const BundleOptions&) { return ""; }

}  // namespace sinter
