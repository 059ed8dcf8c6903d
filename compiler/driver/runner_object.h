// The part of a program around a net that is the same for every net: sinter/runner_program.h as an object.
//
// It takes longer to compile than most nets' code, so it is compiled once for a compiler and its flags and
// kept in a cache: $SINTER_CACHE_DIR, else $XDG_CACHE_HOME/sinter, else ~/.cache/sinter. A file there is
// named by the hash of all that it follows from, and comes into being as a whole (it is renamed), so that
// nothing stale or half written is ever read. Where there is no such folder and none can be made, it is
// compiled each time.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sinter {

class RunnerObject {
 public:
  // `compile`: compiler and flags, up to -c; `bundle`: the folder whose sinter/ has the headers; `folder`
  // takes what is made.
  RunnerObject(const std::vector<std::string>& compile, const std::filesystem::path& bundle,
               const std::filesystem::path& folder);
  // The object: in the cache, or where command() puts it.
  const std::filesystem::path& path() const { return object_; }
  // What makes it; none where the cache has it.
  const std::optional<std::vector<std::string>>& command() const { return command_; }
  // Keeps what command() has made for the next time. A cache that takes no file is no error.
  void keep() const;

 private:
  std::filesystem::path object_, cached_;  // cached_: empty where there is no cache
  std::optional<std::vector<std::string>> command_;
};

// What the sources that use it are compiled with.
inline constexpr const char* kRunnerApart = "-DSINTER_RUNNER_APART";

}  // namespace sinter
