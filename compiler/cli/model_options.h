// The words of a command line for what may be said of a model (driver/options.h).
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "driver/options.h"

namespace sinter {

// What commands take that work on several models as well as on one.
struct SeveralModels {
  std::vector<std::string> models, alive;
};

// The options that every command takes which works on a model. What the driver says goes to stderr. With
// `several`, the models are there (driver/pipeline.h); where it is one, the options have it too.
void add_model_options(CLI::App& app, ModelOptions& o, bool model_required = true,
                       SeveralModels* several = nullptr);

// --on of run, verify and bench: "host" (or nothing), or "ssh:HOST", "ssh:USER@HOST:PORT".
void add_on_option(CLI::App& app, std::string& on);
// UsageError where a board is named but no --target for it: this machine's own would be a guess.
void require_target(const CLI::App& app, const std::string& on);

// A Say that prints.
void to_stderr(const std::string& lines);

}  // namespace sinter
