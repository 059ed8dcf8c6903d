#include "driver/testbed.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "driver/errors.h"
#include "driver/machine.h"
#include "driver/process.h"
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

class ByClock : public Testbed {
 public:
  ByClock(std::unique_ptr<Machine> machine, const std::vector<std::string>& inputs, const fs::path& folder)
      : machine_(std::move(machine)) {
    run_.json = (folder / "times.json").string();
    for (const std::string& f : inputs) run_.in.push_back({"", f});
  }
  const char* unit() const override { return "us"; }
  double cost(const fs::path& program, int repeat) override {
    run_.repeat = repeat;
    machine_->execute(program, run_);
    std::ifstream f(run_.json);
    return fastest({std::istreambuf_iterator<char>(f), {}});
  }

 private:
  std::unique_ptr<Machine> machine_;
  ProgramRun run_;
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
                                    const std::vector<std::string>& inputs, const fs::path& folder,
                                    const Say& say) {
  if (on == "host" || (is_elsewhere(on) && on.size() > 4 && on[4] != '-'))
    return std::make_unique<ByClock>(machine_of(on, toolchain, say), inputs, folder);
  if (const std::vector<std::string> command = words(on.substr(std::min<size_t>(on.size(), 4)));
      on.rfind("sim:", 0) == 0 && !command.empty())
    return std::make_unique<Simulator>(command, inputs);
  throw UsageError(fmt::format("--on {}: give host, ssh:HOST or sim:COMMAND", sinter::quoted(on)));
}

}  // namespace sinter
