#include "cli/testbed.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/errors.h"
#include "cli/process.h"
#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words(const std::string& s) {
  std::istringstream in(s);
  return {std::istream_iterator<std::string>(in), {}};
}

std::string checked(const std::vector<std::string>& command) {
  const Finished f = run_process(command, true);
  if (f.code == 127) throw ToolchainError(command[0] + " can't be started");
  if (f.code != 0) throw RunError(fmt::format("{} ended with code {}:\n{}", command[0], f.code, f.output));
  return f.output;
}

double fastest(const std::string& json) {
  try {
    return nlohmann::json::parse(json).at("min_us").get<double>();
  } catch (const nlohmann::json::exception&) {
    throw RunError("the program gave no times: " + json.substr(0, 200));
  }
}

std::vector<std::string> run_arguments(const std::vector<std::string>& inputs, int repeat) {
  std::vector<std::string> a = {"--repeat", std::to_string(repeat)};
  for (const std::string& f : inputs) a.insert(a.end(), {"--in", f});
  return a;
}

class Host : public Testbed {
 public:
  Host(const Toolchain& tc, std::vector<std::string> inputs, fs::path folder)
      : tc_(tc), inputs_(std::move(inputs)), folder_(std::move(folder)) {}
  const char* unit() const override { return "us"; }
  double cost(const fs::path& program, int repeat) override {
    const fs::path times = folder_ / "times.json";
    std::vector<std::string> arguments = run_arguments(inputs_, repeat);
    arguments.insert(arguments.end(), {"--json", times.string()});
    execute_program(tc_, program, arguments, true);
    std::ifstream f(times);
    return fastest({std::istreambuf_iterator<char>(f), {}});
  }

 private:
  Toolchain tc_;
  std::vector<std::string> inputs_;
  fs::path folder_;
};

// A folder of its own on the other machine holds the program and the inputs, and goes with this.
class Ssh : public Testbed {
 public:
  Ssh(std::string host, const std::vector<std::string>& inputs) : host_(std::move(host)) {
    const std::vector<std::string> out = words(ssh("mktemp -d /tmp/sinter-tune-XXXXXX"));
    if (out.empty() || out.back().rfind("/tmp/sinter-tune-", 0) != 0)
      throw RunError(host_ + " gave no folder to work in");
    folder_ = out.back();
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs_.push_back(fmt::format("{}/input_{}{}", folder_, i, fs::path(inputs[i]).extension().string()));
      checked({"scp", "-q", "-o", "BatchMode=yes", inputs[i], host_ + ":" + inputs_.back()});
    }
  }
  ~Ssh() override {
    if (!folder_.empty()) run_process({"ssh", "-o", "BatchMode=yes", host_, "rm -r " + folder_}, true);
  }
  Ssh(const Ssh&) = delete;
  Ssh& operator=(const Ssh&) = delete;
  const char* unit() const override { return "us"; }
  double cost(const fs::path& program, int repeat) override {
    checked({"scp", "-q", "-o", "BatchMode=yes", program.string(), host_ + ":" + folder_ + "/program"});
    std::string command = folder_ + "/program";
    for (const std::string& a : run_arguments(inputs_, repeat)) command += " " + a;
    const std::string times = folder_ + "/times.json";
    const std::string out = ssh(fmt::format("{} --json {} >/dev/null && cat {}", command, times, times));
    const size_t begin = out.find('{');
    return fastest(begin == std::string::npos ? out : out.substr(begin));
  }

 private:
  std::string ssh(const std::string& command) {
    return checked({"ssh", "-o", "BatchMode=yes", host_, command});
  }
  std::string host_, folder_;
  std::vector<std::string> inputs_;
};

class Simulator : public Testbed {
 public:
  Simulator(std::vector<std::string> command, std::vector<std::string> inputs)
      : command_(std::move(command)), inputs_(std::move(inputs)) {}
  const char* unit() const override { return "cycles"; }
  std::vector<std::string> flags() const override { return {"-DSINTER_REGION_MARKS"}; }
  double cost(const fs::path& program, int) override {
    std::vector<std::string> command = command_;
    command.push_back(program.string());
    for (const std::string& a : run_arguments(inputs_, 2)) command.push_back(a);  // the first one warms up
    const std::string output = checked(command);
    const double cycles = cycles_in(output);
    if (cycles < 0) throw RunError(command[0] + " printed no cycles:\n" + output.substr(0, 2000));
    return cycles;
  }

 private:
  std::vector<std::string> command_, inputs_;
};

}  // namespace

double cycles_in(const std::string& output) {
  const auto number = [](std::string s) {
    std::erase(s, ',');
    const bool digits = !s.empty() && s.size() < 19 &&
                        std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isdigit(c); });
    return digits ? std::strtod(s.c_str(), nullptr) : -1.0;
  };
  std::istringstream in(output);
  size_t column = std::string::npos;
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> w = words(line);
    if (column < w.size() && number(w[column]) >= 0) return number(w[column]);
    column = std::string::npos;
    for (size_t i = 0; i < w.size(); ++i) {
      if (w[i] != "cycles" && w[i] != "cycles:") continue;
      if (i + 1 < w.size() && number(w[i + 1]) >= 0) return number(w[i + 1]);
      if (i > 0 && number(w[i - 1]) >= 0) return number(w[i - 1]);
      column = i;
    }
  }
  return -1;
}

std::unique_ptr<Testbed> testbed_of(const std::string& on, const Toolchain& toolchain,
                                    const std::vector<std::string>& inputs, const fs::path& folder) {
  if (on == "host") return std::make_unique<Host>(toolchain, inputs, folder);
  if (on.rfind("ssh:", 0) == 0 && on.size() > 4 && on[4] != '-')
    return std::make_unique<Ssh>(on.substr(4), inputs);
  if (const std::vector<std::string> command = words(on.substr(std::min<size_t>(on.size(), 4)));
      on.rfind("sim:", 0) == 0 && !command.empty())
    return std::make_unique<Simulator>(command, inputs);
  throw UsageError(fmt::format("--on {}: give host, ssh:HOST or sim:COMMAND", sinter::quoted(on)));
}

}  // namespace sinter
