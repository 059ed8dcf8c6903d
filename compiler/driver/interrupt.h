// What a signal that ends the process leaves behind: nothing.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

namespace sinter {

// A fresh folder that goes with its owner, and also when a signal ends the process.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Child processes, each the first of a process group of its own, that end when a signal ends this one.
void child_started(pid_t pid);
void child_ended(pid_t pid);
// Doesn't return where a signal is ending the process.
void wait_if_ending();

// Of all TemporaryFolder that there are. Touches no memory but the stack, so that it is fit for any place.
void remove_temporary_folders() noexcept;

}  // namespace sinter
