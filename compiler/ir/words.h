// Words that no name from a model may be. In C or C++ text, wherever it stands: keywords, and what the
// standard headers and compilers define as macros or as types that bundles use without a namespace. Of files:
// the system's headers.
#pragma once
#include <string_view>

namespace sinter {

// Keywords of C23 and C++23, alternative tokens and those of compilers' extensions among them; macros that
// the headers of C, C++ and POSIX define, the ones without a small letter excepted (identifier() keeps off
// all such names); `main`, `std`, `sinter`.
bool is_reserved_word(std::string_view name);

// Whether a bundle of that name would be in somebody's way: NAME.h hides a header of the C library or of
// POSIX from whoever has the bundle's folder among its include folders, or NAME is a target that CMake makes
// itself.
bool is_reserved_file(std::string_view name);

}  // namespace sinter
