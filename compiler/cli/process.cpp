#include "cli/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "cli/errors.h"

extern char** environ;

namespace sinter {
namespace {

namespace fs = std::filesystem;

struct Child {
  pid_t pid = -1;
  int output = -1;  // read end of its stdout and stderr; -1: not captured
};

Child start(const std::vector<std::string>& command, bool capture) {
  int ends[2] = {-1, -1};
  if (capture && pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe for a child process");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (capture) {
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  }
  std::vector<char*> argv;
  for (const std::string& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  Child child;
  if (posix_spawnp(&child.pid, argv[0], &actions, nullptr, argv.data(), environ) != 0) child.pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  if (capture) close(ends[1]);
  child.output = ends[0];
  return child;
}

Finished finish(const Child& child, const std::string& name) {
  Finished f;
  if (child.output >= 0) {
    char chunk[4096];
    ssize_t n = 0;
    while ((n = read(child.output, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR))
      if (n > 0) f.output.append(chunk, static_cast<size_t>(n));
    close(child.output);
  }
  if (child.pid < 0) return {127, name + " can't be started"};
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  f.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return f;
}

}  // namespace

Finished run_process(const std::vector<std::string>& command, bool capture) {
  return finish(start(command, capture), command[0]);
}

std::vector<Finished> run_processes(const std::vector<std::vector<std::string>>& commands, size_t width) {
  std::vector<Finished> results(commands.size());
  std::vector<std::thread> threads;
  for (size_t first = 0; first < std::min(width, commands.size()); ++first)
    threads.emplace_back([&, first] {
      for (size_t i = first; i < commands.size(); i += width) results[i] = run_process(commands[i], true);
    });
  for (std::thread& t : threads) t.join();
  return results;
}

std::string find_program(const std::string& name) {
  auto executable = [](const fs::path& p) {
    std::error_code ec;
    return access(p.c_str(), X_OK) == 0 && fs::is_regular_file(p, ec);
  };
  if (name.find('/') != std::string::npos) return executable(name) ? name : "";
  const char* path = std::getenv("PATH");
  for (std::string rest = path ? path : "/usr/bin:/bin"; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const fs::path p = fs::path(rest.substr(0, end)) / name;
    if (executable(p)) return p.string();
    rest.erase(0, end + 1);
  }
  return "";
}

TemporaryFolder::TemporaryFolder() {
  std::error_code ec;
  const fs::path base = fs::temp_directory_path(ec);
  std::string pattern = ((ec ? fs::path("/tmp") : base) / "sinter-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    throw ToolchainError("no temporary folder can be made: " + std::string(std::strerror(errno)));
  path_ = pattern;
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ec;
  fs::remove_all(path_, ec);
}

}  // namespace sinter
