// Lines of generated C++ as a person would have written them.
//
// Kernels compose text from extents and strides, many of which are 0 or 1 in a given model. What such factors
// leave behind is taken out of the text: `+ 0`, `* 1`, `0 * (...)`, parentheses around a name. Long lines are
// broken behind commas. Text in quotes, preprocessor lines and comments stay as they are.
#pragma once
#include <string>
#include <string_view>

namespace sinter {

// One line without indentation.
std::string tidied(std::string_view line);

// The line behind `indent` blanks, broken so that no piece is longer than `width` where that is possible;
// further pieces stand four blanks deeper. Each ends with a newline.
std::string wrapped(std::string_view line, size_t indent, size_t width);

}  // namespace sinter
