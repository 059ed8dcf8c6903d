// The C++ of a bundle: the layers' functions and net_run (emit/code.cpp), and the runner (emit/runner.cpp).
#pragma once
#include <map>
#include <string>

#include "emit/bundle.h"

namespace sinter {

// NAME.cpp.
std::map<std::string, std::string> code_files(const Graph&, const Plan&, const Target&, const BundleOptions&);
// NAME_main.cpp: reads input_K.pb files, runs, writes output_K.pb files; see runtime/sinter/runner.h.
std::string runner_main(const Graph&, const BundleOptions&);
// The line that ends a compilation with another compile's NAME.h.
std::string interface_check(const BundleOptions&);
std::string upper(std::string);
// Names that no layer's function may have: words of the runtime that generated code calls unqualified.
std::vector<std::string> reserved_function_names();
// Variables of the functions of If, Loop and Scan: neither a function nor a value in them may have such a
// name.
const std::vector<std::string>& body_variables();

}  // namespace sinter
