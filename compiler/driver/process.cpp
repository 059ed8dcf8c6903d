#include "driver/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

extern char** environ;

namespace sinter {
namespace {

namespace fs = std::filesystem;

struct Child {
  pid_t pid = -1;
  int output = -1;  // read end of its stdout and stderr; -1: not captured
};

Child start(const std::vector<std::string>& command, bool capture) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  wait_if_ending();
  int ends[2] = {-1, -1};
  if (capture && pipe2(ends, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "no pipe for a child process");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int error = 0;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    if (capture && error == 0) error = posix_spawn_file_actions_adddup2(&actions, ends[1], stream);
  // A group of its own, so that all that a compiler's driver starts ends with it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  Child child;
  if (error == 0) error = posix_spawnp(&child.pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (capture) close(ends[1]);
  if (error != 0) child.pid = -1;
  if (error == ENOMEM || error == EAGAIN) {
    if (capture) close(ends[0]);
    throw std::system_error(error, std::generic_category(), command[0] + " can't be started");
  }
  if (child.pid > 0) child_started(child.pid);
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
  siginfo_t ended;
  while (waitid(P_PID, static_cast<id_t>(child.pid), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  child_ended(child.pid);
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
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr problem;
  const auto work = [&] {
    try {
      for (size_t i = 0; (i = next++) < commands.size();) results[i] = run_process(commands[i], true);
    } catch (...) {
      const std::lock_guard<std::mutex> held(mutex);
      if (!problem) problem = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(width);
  try {
    while (threads.size() + 1 < std::min(width, commands.size())) threads.emplace_back(work);
  } catch (const std::exception&) {
    // Fewer threads do the same.
  }
  work();
  for (std::thread& t : threads) t.join();
  if (problem) std::rethrow_exception(problem);
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

}  // namespace sinter
