// Where `sinter tune` runs programs, and what a run costs there.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/options.h"

namespace sinter {

// Prepared for one target and one set of input files.
class Testbed {
 public:
  virtual ~Testbed() = default;
  // What the net costs in the program that build_program made: microseconds of the fastest of `repeat` runs,
  // or modelled cycles of the last of two. RunError where it can't be measured.
  virtual double cost(const std::filesystem::path& program, int repeat) = 0;
  virtual const char* unit() const = 0;
  // Flags beside the toolchain's that its programs are compiled with.
  virtual std::vector<std::string> flags() const { return {}; }
};

// "host", "ssh:HOST" (a machine that ssh and scp reach without asking, `inputs` are copied there) or
// "sim:COMMAND" (COMMAND, split at blanks, is put before the program and its arguments, and prints the cycles
// that it counts between the hints 112 and 113, behind, before or in a table below the word "cycles").
// UsageError where it is none of these.
std::unique_ptr<Testbed> testbed_of(const std::string& on, const Toolchain& toolchain,
                                    const std::vector<std::string>& inputs,
                                    const std::filesystem::path& folder, const Say& say);

// The number that a simulator's output names cycles; negative where there is none.
double cycles_in(const std::string& output);

}  // namespace sinter
