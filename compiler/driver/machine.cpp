#include "driver/machine.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "driver/errors.h"
#include "driver/process.h"
#include "ir/error.h"
#include "sinter/runner.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string assigned(const ProgramRun::TensorFile& f, const std::string& path) {
  return f.member.empty() ? path : f.member + "=" + path;
}

// What the program's exit code means; `command` is what was started.
void check_code(int code, const std::string& command) {
  if (code == 0) return;
  if (code == 2) throw UsageError("the input or output files do not fit the model");
  if (code == 6) throw RunError("the model returned an error");
  if (code == 7) throw UsageError("--cores: the machine has no such cores");
  if (code == 127) throw ToolchainError(command + " can't be started");
  throw std::runtime_error(fmt::format("the built program ended with code {}", code));
}

class ThisMachine : public Machine {
 public:
  ThisMachine(Words before, Say say) : before_(std::move(before)), say_(std::move(say)) {}
  std::string emulator() const override {
    return before_.empty() ? "" : fs::path(before_[0]).filename().string();
  }
  std::string execute(const fs::path& program, const ProgramRun& r) override {
    Words command = before_;
    command.push_back(program.string());
    if (!r.model.empty()) command.push_back(r.model);
    for (const auto& f : r.in) command.insert(command.end(), {"--in", assigned(f, f.path)});
    for (const auto& f : r.out) command.insert(command.end(), {"--out", assigned(f, f.path)});
    const std::pair<const char*, const std::string&> files[] = {
        {"--weights", r.weights}, {"--json", r.json}, {"--trace", r.trace}};
    for (const auto& [option, file] : files)
      if (!file.empty()) command.insert(command.end(), {option, file});
    if (r.repeat > 0) command.insert(command.end(), {"--repeat", std::to_string(r.repeat)});
    if (!r.cores.empty()) command.insert(command.end(), {"--cores", r.cores});
    if (!r.seed.empty()) command.insert(command.end(), {"--seed", r.seed});
    if (r.steps > 1) command.insert(command.end(), {"--steps", std::to_string(r.steps)});
    const Finished f = run_process(command, true);
    if (f.code != 0) say_(f.output);
    check_code(f.code, command[0]);
    return f.output;
  }

 private:
  Words before_;  // an emulator
  Say say_;
};

// For the shell over there.
std::string in_quotes(const std::string& word) {
  std::string s = "'";
  for (const char c : word) s += c == '\'' ? "'\\''" : std::string(1, c);
  return s + "'";
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// The ending by which the program knows a tensor file's kind.
std::string ending(const std::string& path) {
  const std::string e = fs::path(path).extension().string();
  return e == ".npy" || e == ".pb" ? e : "";
}

// A file here and its name over there; or one for each step.
struct StepFiles {
  std::string name;                                        // with % where there are several
  std::vector<std::pair<std::string, std::string>> pairs;  // here, there
  StepFiles(const std::string& path, const std::string& stem, int steps) {
    const bool each = steps > 1 && runner::number_in(path) != std::string::npos;
    name = stem + (each ? "_%" : "") + ending(path);
    for (int k = 0; k < (each ? steps : 1); ++k)
      pairs.emplace_back(runner::file_of_step(path, k, steps), runner::file_of_step(name, k, steps));
  }
};

class SshMachine : public Machine {
 public:
  SshMachine(std::string address, Say say) : host_(std::move(address)), say_(std::move(say)) {
    // HOST:PORT, but neither an IPv6 address nor what ~/.ssh/config calls so.
    const size_t colon = host_.rfind(':');
    const bool several = colon != std::string::npos && host_.find(':') != colon && host_[colon - 1] != ']';
    if (colon == std::string::npos || several || colon + 1 == host_.size() ||
        host_.find_first_not_of("0123456789", colon + 1) != std::string::npos)
      return;
    port_ = host_.substr(colon + 1);
    host_.resize(colon);
  }
  SshMachine(const SshMachine&) = delete;
  SshMachine& operator=(const SshMachine&) = delete;
  ~SshMachine() override {
    if (folder_.empty()) return;
    try {
      run_process(ssh_command("rm -r " + in_quotes(folder_)), true);
    } catch (const std::exception&) {  // what lies there is all that is lost
    }
  }

  std::string execute(const fs::path& program, const ProgramRun& r) override {
    make_folder();
    std::vector<std::pair<std::string, std::string>> names;  // there and here, for what is printed
    std::string command = in_quotes(put(program.string(), "program"));
    if (!r.model.empty()) command += " " + in_quotes(r.model);
    const auto say = [&](const char* option, const std::string& value) {
      command += fmt::format(" {} {}", option, in_quotes(value));
    };
    for (size_t i = 0; i < r.in.size(); ++i) {
      const StepFiles f(r.in[i].path, fmt::format("in_{}", i), r.steps);
      for (const auto& [here, name] : f.pairs) names.emplace_back(put(here, name), here);
      say("--in", assigned(r.in[i], folder_ + "/" + f.name));
    }
    if (!r.weights.empty()) say("--weights", put(r.weights, "weights"));
    std::vector<std::pair<std::string, std::string>> results;
    const auto bring_back = [&](const std::string& path, const std::string& name) {
      const StepFiles f(path, name, r.steps);
      for (const auto& [here, there] : f.pairs) results.emplace_back(folder_ + "/" + there, here);
      return folder_ + "/" + f.name;
    };
    for (size_t i = 0; i < r.out.size(); ++i)
      say("--out", assigned(r.out[i], bring_back(r.out[i].path, fmt::format("out_{}", i))));
    if (!r.trace.empty()) say("--trace", bring_back(r.trace, "trace"));
    if (!r.json.empty()) say("--json", bring_back(r.json, "json"));
    if (r.repeat > 0) say("--repeat", std::to_string(r.repeat));
    if (!r.cores.empty()) say("--cores", r.cores);
    if (!r.seed.empty()) say("--seed", r.seed);
    if (r.steps > 1) say("--steps", std::to_string(r.steps));
    // The shell stays, so that it tells of a signal; ssh's own 255 would hide which.
    Finished f = run_process(ssh_command(command + "; exit $?"), true);
    names.insert(names.end(), results.begin(), results.end());
    for (const auto& [there, here] : names) replace_all(f.output, there, here);
    check(f);
    for (const auto& [there, here] : results) copy(host_for_scp() + ":" + there, here);
    return f.output;
  }

 private:
  void check(const Finished& f) const {
    if (f.code == 0) return;
    say_(f.output);
    if (f.code == 255) throw RunError(fmt::format("{} can't be reached by ssh", host_));
    if (f.code == 126 || f.code == 127)
      throw RunError(fmt::format("{} can't execute the program: is it what --target names?", host_));
    if (f.code == 128 + 4) throw RunError(fmt::format("{} has not all instructions of --target", host_));
    check_code(f.code, "ssh");
  }
  Words options(const char* program, const char* port) const {
    Words w = {program, "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"};
    if (!port_.empty()) w.insert(w.end(), {port, port_});
    return w;
  }
  Words ssh_command(const std::string& command) const {
    Words w = options("ssh", "-p");
    const bool brackets = host_.size() > 2 && host_.back() == ']';  // scp wants them, ssh doesn't
    std::string host = host_;
    if (brackets) std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
    w.insert(w.end(), {host, command});
    return w;
  }
  std::string host_for_scp() const {
    const bool address = std::count(host_.begin(), host_.end(), ':') > 1 && host_.back() != ']';
    if (!address) return host_;
    const size_t user = host_.find('@');
    const size_t begin = user == std::string::npos ? 0 : user + 1;
    return host_.substr(0, begin) + "[" + host_.substr(begin) + "]";
  }

  void make_folder() {
    if (!folder_.empty()) return;
    const Finished f = run_process(ssh_command("mktemp -d \"${TMPDIR:-/tmp}/sinter-board-XXXXXX\""), true);
    if (f.code == 127) throw ToolchainError("ssh can't be started");
    std::istringstream words(f.output);
    const Words out{std::istream_iterator<std::string>(words), {}};
    const std::string path = out.empty() ? "" : out.back();
    const bool plain = std::all_of(path.begin(), path.end(), [](unsigned char c) {
      return std::isalnum(c) || c == '/' || c == '_' || c == '-' || c == '.';
    });
    if (f.code != 0 || !plain || path.find("/sinter-board-") == std::string::npos)
      throw RunError(fmt::format("{} gave no folder to work in:\n{}", host_, f.output));
    folder_ = path;
  }
  // Copies a file of this machine, once while it stays the same, and returns its path there.
  std::string put(const std::string& path, const std::string& name) {
    std::error_code ec;
    const auto written = fs::last_write_time(path, ec);
    const std::pair<std::string, fs::file_time_type> version = {path, written};
    std::string there = folder_ + "/" + name;
    if (const auto at = there_.find(name); at != there_.end() && at->second == version) return there;
    copy(path, host_for_scp() + ":" + there);
    there_[name] = version;
    return there;
  }
  void copy(const std::string& from, const std::string& to) const {
    Words w = options("scp", "-P");
    w.insert(w.end(), {"-q", "--", from, to});
    const Finished f = run_process(w, true);
    if (f.code == 127) throw ToolchainError("scp can't be started");
    if (f.code != 0) throw RunError(fmt::format("scp {} {}:\n{}", from, to, f.output));
  }

  std::string host_, port_, folder_;
  Say say_;
  std::map<std::string, std::pair<std::string, fs::file_time_type>> there_;
};

}  // namespace

bool is_elsewhere(const std::string& on) { return on.rfind("ssh:", 0) == 0; }

std::unique_ptr<Machine> machine_of(const std::string& on, const Toolchain& toolchain, Say say) {
  if (on.empty() || on == "host") return std::make_unique<ThisMachine>(toolchain.execute, std::move(say));
  if (is_elsewhere(on) && on.size() > 4 && on[4] != '-')
    return std::make_unique<SshMachine>(on.substr(4), std::move(say));
  throw UsageError(fmt::format("--on {}: give host or ssh:HOST", sinter::quoted(on)));
}

}  // namespace sinter
