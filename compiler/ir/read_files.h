// The files that are read to compile a model: what a build has to watch (compile's --depfile).
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace sinter {

// To be called by whoever reads a file that decides about a bundle's contents.
void note_read(const std::filesystem::path& file);

// What this thread reads while this lives; of several, the innermost.
class ReadLog {
 public:
  ReadLog();
  ~ReadLog();
  ReadLog(const ReadLog&) = delete;
  ReadLog& operator=(const ReadLog&) = delete;
  // Absolute paths, each once, in the order of reading.
  const std::vector<std::string>& files() const { return files_; }

 private:
  friend void note_read(const std::filesystem::path& file);
  std::vector<std::string> files_;
  ReadLog* before_;
};

// A makefile's rule: `target` depends on these files; one a line, with what make, Ninja and CMake expect to
// be escaped.
std::string dependency_rule(const std::string& target, const std::vector<std::string>& files);

}  // namespace sinter
