// How commands give up, and the exit code each way has. Refusal (ir/error.h) is 3, any other exception 5.
#pragma once
#include <stdexcept>
#include <string>

namespace sinter {

enum ExitCode {
  kExitOk = 0,
  kExitDifference = 1,  // verify found one
  kExitUsage = 2,
  kExitRefused = 3,
  kExitToolchain = 4,
  kExitBug = 5,
  kExitRun = 6,
};

// The command line, or a file of data that it names, is wrong.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The C++ compiler is missing or failed.
struct ToolchainError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The built model ran and returned an error, which it has already told.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace sinter
