// The C++ of a bundle: the layers' functions and net_run (emit/code.cpp), and the runner (emit/runner.cpp).
#pragma once
#include <map>
#include <string>

#include "emit/bundle.h"

namespace sinter {

// NAME.cpp.
std::map<std::string, std::string> code_files(const Graph&, const Plan&, const Target&, const BundleOptions&);
// NAME_main.cpp: reads input_K.pb files, runs, writes output_K.pb files; see runtime/sinter/runner.h.
std::string runner_main(const Graph&, const Plan&, const BundleOptions&);
// The line that ends a compilation with another compile's NAME.h.
std::string interface_check(const BundleOptions&);
std::string upper(std::string);
// The C type of an element.
std::string c_type(DType);
// Where a tensor lies, for NAME.map: "input", "output", "state", "weights" or "arena".
const char* where_text(const Plan&, const Place&);

}  // namespace sinter
