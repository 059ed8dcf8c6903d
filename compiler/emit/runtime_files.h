// The runtime headers, which travel inside the compiler as text (cmake/embed.cmake writes the definitions).
#pragma once
#include <map>
#include <set>
#include <string>

namespace sinter {

// "sinter/mac.h" -> its text.
const std::map<std::string, std::string>& runtime_files();

// What these headers declare where generated code sees it without a namespace: functions, types, templates,
// constants, macros. A layer's function that had such a name would hide it from the layers behind.
const std::set<std::string>& runtime_words();

}  // namespace sinter
