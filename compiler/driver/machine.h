// Where a bundle's program is executed: on this machine, under its emulator, or on one that ssh reaches.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/options.h"

namespace sinter {

// What a bundle's program (sinter/runner.h) is asked for. Files are of this machine.
struct ProgramRun {
  struct TensorFile {
    std::string member, path;  // no member: the next tensor's
  };
  std::vector<TensorFile> in, out;
  std::string model;                 // of a bundle of several; empty: there is one
  std::string weights, json, trace;  // files; empty: none
  std::string seed;                  // of random numbers in the state; empty: 0
  std::string cores;                 // big, little or a list; empty: any
  int repeat = 0;
  int steps = 1;  // more: % in a file's name is a step's number (sinter/runner.h)
};

class Machine {
 public:
  virtual ~Machine() = default;
  // Executes a program that build_program made, and returns what it prints. UsageError, RunError or
  // ToolchainError, as its exit code says; what it printed was said before.
  virtual std::string execute(const std::filesystem::path& program, const ProgramRun&) = 0;
  // What executes the program instead of a processor: "qemu-aarch64-static"; empty where none does.
  virtual std::string emulator() const { return ""; }
};

// Whether --on names a board and not this machine.
bool is_elsewhere(const std::string& on);

// The machine that --on names, for programs of this toolchain. UsageError where it names none. What is copied
// to another machine lies in a folder of its own there, which goes with the Machine.
std::unique_ptr<Machine> machine_of(const std::string& on, const Toolchain& toolchain, Say say);

}  // namespace sinter
