// What the numbers of an output stand for, where the model has text there: a table in NAME.h.
#pragma once
#include <string>
#include <vector>

#include "emit/bundle.h"
#include "emit/printer.h"

namespace sinter {

// As a literal of C, whatever the bytes: what isn't plain ASCII becomes an octal escape.
std::string c_string(const std::string& s);

// `static const char* const NAME_OUTPUT_names[]` for each output that has names.
void declare_class_names(Printer& p, const std::vector<Member>& outputs, const BundleOptions& o);

}  // namespace sinter
