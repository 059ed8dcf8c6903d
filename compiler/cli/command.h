// The commands: one file each, one row each in the table of command.cpp.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

namespace sinter {

struct Command {
  const char* name;
  const char* what;  // one line of help
  // Declares the command's options; what it returns is the command, called once they are parsed. Its result
  // is the exit code (driver/errors.h).
  std::function<int()> (*declare)(CLI::App&);
};

const std::vector<Command>& all_commands();

std::function<int()> declare_compile(CLI::App&);
std::function<int()> declare_build(CLI::App&);
std::function<int()> declare_run(CLI::App&);
std::function<int()> declare_verify(CLI::App&);
std::function<int()> declare_inspect(CLI::App&);
std::function<int()> declare_bench(CLI::App&);
std::function<int()> declare_tune(CLI::App&);
std::function<int()> declare_quantize(CLI::App&);
std::function<int()> declare_ops(CLI::App&);
std::function<int()> declare_targets(CLI::App&);
std::function<int()> declare_passes(CLI::App&);
std::function<int()> declare_manual(CLI::App&);

// Parses the command line, runs the command and turns whatever it throws into messages and an exit code.
int run_command_line(int argc, const char* const* argv);

}  // namespace sinter
