// Score: how good a model is, as a command of the user's tells.
#pragma once
#include <filesystem>
#include <string>

namespace sinter {

// Runs `command` by the shell, each {model} in it standing for the file, and reads the last word that it
// prints as a number: more is better. What it writes to stderr is told where it fails. Refused: an exit code
// but 0, or no number.
double score_of(const std::string& command, const std::filesystem::path& model);

// What may be lost of a score: "0.5", or "1%" of it.
struct AllowedLoss {
  double amount = 0;
  bool percent = false;
  double least(double score) const;  // that is enough where a float model's is this
};
// False where `text` is neither.
bool parse(const std::string& text, AllowedLoss&);

}  // namespace sinter
