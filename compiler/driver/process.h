// Child processes: without a shell, so that no file name can be a command.
#pragma once
#include <string>
#include <vector>

#include "driver/interrupt.h"

namespace sinter {

struct Finished {
  int code = 0;        // exit code; 128 + signal where one ended it; 127 where it could not be started
  std::string output;  // stdout and stderr, if captured
};

// Runs command[0], looked up in PATH. Its output is ours, or captured.
Finished run_process(const std::vector<std::string>& command, bool capture);
// Runs all of them, at most `width` at once, capturing; results in order.
std::vector<Finished> run_processes(const std::vector<std::vector<std::string>>& commands, size_t width);
// The full path of a program in PATH; empty where there is none.
std::string find_program(const std::string& name);

}  // namespace sinter
