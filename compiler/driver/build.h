// The C++ compiler's part: a bundle in a folder becomes a program, which is then executed.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "targets/target.h"

namespace sinter {

struct Toolchain {
  std::vector<std::string> compile;  // compiler and flags, up to -c
  std::vector<std::string> link;
  std::vector<std::string> execute;  // what goes before the program: an emulator, or nothing
  // Of a bundle for several targets: the flags of a part's file, by what stands behind NAME_part_.
  std::map<std::string, std::vector<std::string>> of_part;
};

// The compiler for a target: $CXX, c++ or g++ for this machine's own architecture, else
// aarch64-linux-gnu-g++ and qemu-aarch64. ToolchainError where it is missing. With `execute`, UsageError
// where this machine can neither execute nor emulate the target.
Toolchain toolchain_for(const Target& target, bool execute);
// The same for a bundle for several targets (emit/dispatch.h): for this machine if it can execute the first
// of them.
Toolchain toolchain_for(const std::vector<const Target*>& targets, bool execute);

// What a build tells of the generated code, without weights and runner.
struct CodeSize {
  int64_t text_bytes = 0;   // code and read-only data
  int64_t stack_bytes = 0;  // the deepest chain of calls below NAME_run
};

// Compiles every source of bundle NAME in `dir`, in parallel, and links `program`. With `size`, measures too
// (g++ only). `folder` takes the objects.
void build_program(const std::filesystem::path& dir, const std::string& name, const Toolchain& toolchain,
                   const std::filesystem::path& folder, const std::filesystem::path& program,
                   CodeSize* size = nullptr);
// The same as a shared library, which lets nothing be seen but NAME_run, NAME_error and the weights; of a net
// with
// --threads also sinter_start_pool and sinter_stop_pool, for callers that have no threads to lend (Python).
void build_library(const std::filesystem::path& dir, const std::string& name, const Toolchain& toolchain,
                   const std::filesystem::path& folder, const std::filesystem::path& library);
// The same without runner and program: only what the code takes.
CodeSize measure_code(const std::filesystem::path& dir, const std::string& name, const Toolchain& toolchain,
                      const std::filesystem::path& folder);

}  // namespace sinter
