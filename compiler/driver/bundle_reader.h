// A bundle that lies in a folder, as its .map tells it: what `run --bundle` and `build` start from.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/options.h"

namespace sinter {

struct Bundle {
  std::filesystem::path dir;  // absolute
  std::string name, target;
  bool weights_in_file = false;
  size_t models = 0;               // several, whose inputs and outputs are not here; 0: one
  std::vector<std::string> files;  // what compile wrote, by its path in `dir`
  std::vector<DeclaredInput> inputs;
  std::vector<std::string> outputs, input_members, output_members;
};

// The only bundle of a folder. UsageError where there is none, or more than one.
Bundle open_bundle(const std::filesystem::path& dir);

// The compiler for the bundle's target, or targets. UsageError where one is unknown.
Toolchain toolchain_of(const Bundle&, bool execute);

// Whether `product`, a program or library of the bundle, is there and no file of the bundle is newer.
bool is_current(const std::filesystem::path& product, const Bundle&);

// Brings a file that was just built to its place in one step: others may build or execute it at the same
// time. False where the place can't be written to.
bool put_in_place(const std::filesystem::path& fresh, const std::filesystem::path& place);

}  // namespace sinter
