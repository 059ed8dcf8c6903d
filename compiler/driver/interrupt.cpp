// A signal that would end the process (Ctrl-C, kill, a terminal or a reader that is gone) first ends the
// child processes, then removes the temporary folders, then ends it as it would have.
//
// The handler may interrupt anything, so it allocates nothing: children and folders stand in arrays of fixed
// size, and folders are removed by plain system calls.
#include "driver/interrupt.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "driver/errors.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
constexpr size_t kMostChildren = 256, kMostFolders = 16, kLongestPath = 1024;
constexpr int kDeepest = 16;

struct Folder {
  std::atomic<bool> used, filled;
  char path[kLongestPath];
};
std::atomic<pid_t> children[kMostChildren];
Folder folders[kMostFolders];
std::atomic<bool> ending;

struct Entry {  // of getdents64
  ino64_t inode;
  off64_t offset;
  unsigned short size;
  unsigned char type;
  char name[1];
};

void remove_at(int parent, const char* name, int depth) noexcept {
  if (unlinkat(parent, name, 0) == 0 || depth > kDeepest) return;
  const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  alignas(Entry) char chunk[4096];
  for (int round = 0; round < 3; ++round) {  // what is removed while a folder is read may hide another entry
    lseek(fd, 0, SEEK_SET);
    long n = 0;
    while ((n = syscall(SYS_getdents64, fd, chunk, sizeof chunk)) > 0)
      for (long at = 0; at < n;) {
        const auto* e = reinterpret_cast<const Entry*>(chunk + at);
        if (std::strcmp(e->name, ".") != 0 && std::strcmp(e->name, "..") != 0)
          remove_at(fd, e->name, depth + 1);
        at += e->size;
      }
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0) break;
  }
  close(fd);
}

void end_children() {
  for (const auto& c : children)
    if (const pid_t pid = c; pid > 0) kill(-pid, SIGTERM);
  for (const auto& c : children) {
    const pid_t pid = c;
    if (pid <= 0) continue;
    const timespec moment{0, 10'000'000};
    for (int i = 0; i < 200 && waitpid(pid, nullptr, WNOHANG) == 0; ++i) nanosleep(&moment, nullptr);
    kill(-pid, SIGKILL);
  }
}

void end_by_signal(int number) {
  ending = true;
  end_children();
  remove_temporary_folders();
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(number, &usual, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  raise(number);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void handle_signals() {
  static const bool once = [] {
    for (const int s : kSignals) {
      struct sigaction now {
      }, mine{};
      if (sigaction(s, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;  // ignored, as by nohup
      mine.sa_handler = end_by_signal;
      sigfillset(&mine.sa_mask);
      sigaction(s, &mine, nullptr);
    }
    return true;
  }();
  (void)once;
}

// No folder is made without being known.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~SignalsWait() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t old_{};
};

void remember(const std::string& path) {
  if (path.size() >= kLongestPath) return;
  for (Folder& f : folders) {
    if (f.used.exchange(true)) continue;
    std::memcpy(f.path, path.c_str(), path.size() + 1);
    f.filled = true;
    return;
  }
}

void forget(const fs::path& path) {
  for (Folder& f : folders)
    if (f.filled && path == f.path) {
      f.filled = false;
      f.used = false;
    }
}

}  // namespace

void remove_temporary_folders() noexcept {
  for (Folder& f : folders)
    if (f.filled) remove_at(AT_FDCWD, f.path, 0);
}

void child_started(pid_t pid) {
  handle_signals();
  for (auto& c : children)
    if (pid_t none = 0; c.compare_exchange_strong(none, pid)) return;
}

void child_ended(pid_t pid) {
  for (auto& c : children)
    if (pid_t held = pid; c.compare_exchange_strong(held, 0)) return;
}

void wait_if_ending() {
  while (ending) pause();
}

TemporaryFolder::TemporaryFolder() {
  std::error_code ec;
  const fs::path base = fs::temp_directory_path(ec);
  std::string pattern = ((ec ? fs::path("/tmp") : base) / "sinter-XXXXXX").string();
  path_ = pattern;  // as long as what it will be: from now on nothing is allocated
  handle_signals();
  const SignalsWait wait;
  if (!mkdtemp(pattern.data()))
    throw ToolchainError("no temporary folder can be made: " + std::string(std::strerror(errno)));
  remember(pattern);
  path_ = std::move(pattern);
}

// What one failure leaves, a second attempt gets.
TemporaryFolder::~TemporaryFolder() {
  remove_at(AT_FDCWD, path_.c_str(), 0);
  remove_at(AT_FDCWD, path_.c_str(), 0);
  try {
    forget(path_);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace sinter
