#include "driver/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "emit/bundle_folder.h"
#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const fs::path& file, int error) {
  refuse("cannot write {}: {}", sinter::quoted(file.string()), std::generic_category().message(error));
}

// A name beside the file that no other process writes to; nothing is left there but by a kill.
class Beside {
 public:
  explicit Beside(const fs::path& file) : path_(fmt::format("{}.partial-{}", file.string(), getpid())) {}
  ~Beside() {
    if (!renamed_) unlink(path_.c_str());
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  const std::string& path() const { return path_; }
  void rename_to(const fs::path& file) {
    if (rename(path_.c_str(), file.c_str()) != 0) cannot_write(file, errno);
    renamed_ = true;
  }

 private:
  std::string path_;
  bool renamed_ = false;
};

}  // namespace

void write_output_file(const std::string& path, const std::string& text) {
  struct stat there {};
  fs::path file = path;
  const bool exists = stat(path.c_str(), &there) == 0;
  if (exists && !S_ISREG(there.st_mode)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) cannot_write(path, errno);
    write_and_close(fd, path, text);
    return;
  }
  std::error_code ec;
  if (exists) file = fs::canonical(path, ec);  // the file that a link names
  if (ec) cannot_write(path, ec.value());
  Beside beside(file);
  unlink(beside.path().c_str());
  write_new_file(beside.path(), text);
  if (exists) chmod(beside.path().c_str(), there.st_mode & 07777);
  beside.rename_to(file);
}

}  // namespace sinter
