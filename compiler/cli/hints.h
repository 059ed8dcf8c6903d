// What the command line says beyond CLI11's messages: which command or option was probably meant, and
// examples.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sinter {

// Lines for the arguments that the parser has refused: words that are no command, options that the command
// doesn't have. Empty where there is nothing to add.
std::string hints(const CLI::App& app, const std::vector<std::string>& arguments);

// Command lines to begin with, for the end of a command's help; empty for an unknown command.
std::string examples_of(const std::string& command);

}  // namespace sinter
