// Files that commands write besides bundles: whole, or as they were.
#pragma once
#include <string>

namespace sinter {

// Writes beside `path` and renames; devices and pipes are written to directly. Refuses with the system's
// reason, and leaves what was there.
void write_output_file(const std::string& path, const std::string& text);

}  // namespace sinter
