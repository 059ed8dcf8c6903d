#include "driver/score.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "driver/interrupt.h"
#include "driver/process.h"
#include "ir/error.h"

namespace sinter {
namespace {

constexpr size_t kTold = 2000;  // characters of what the command said

bool number_in(const std::string& word, double& value) {
  char* end = nullptr;
  value = std::strtod(word.c_str(), &end);
  return !word.empty() && *end == '\0' && std::isfinite(value);
}

// The file's name is an argument of the shell, never a part of its text.
std::string with_argument(std::string command) {
  static const std::string kMark = "{model}";
  for (size_t at = command.find(kMark); at != std::string::npos; at = command.find(kMark, at))
    command.replace(at, kMark.size(), "\"$1\"");
  return command;
}

}  // namespace

double score_of(const std::string& command, const std::filesystem::path& model) {
  const TemporaryFolder folder;
  const std::filesystem::path printed = folder.path() / "score.txt";
  const Finished f = run_process({"sh", "-c", "exec > \"$0\"\n" + with_argument(command), printed.string(),
                                  std::filesystem::absolute(model).string()},
                                 true);
  std::ifstream in(printed);
  std::ostringstream all;
  all << in.rdbuf();
  const std::string told =
      f.output.size() > kTold ? "..." + f.output.substr(f.output.size() - kTold) : f.output;
  if (f.code != 0) refuse("--score: the command ended with code {}: {}", f.code, told + all.str());
  std::istringstream words(all.str());
  std::string last;
  for (std::string word; words >> word;) last = word;
  double value = 0;
  if (!number_in(last, value))
    refuse("--score: the last word that the command prints is no number: {}", sinter::quoted(last));
  return value;
}

double AllowedLoss::least(double score) const {
  return score - (percent ? std::abs(score) * amount / 100 : amount);
}

bool parse(const std::string& text, AllowedLoss& loss) {
  loss.percent = !text.empty() && text.back() == '%';
  return number_in(loss.percent ? text.substr(0, text.size() - 1) : text, loss.amount) && loss.amount >= 0;
}

}  // namespace sinter
