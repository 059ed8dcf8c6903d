// The folder that a bundle lies in, alone or beside bundles of other names and files of other people.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace sinter {

// Holds a folder against others that write a bundle there (or, shared, lets them only read), until it is
// destroyed; the kernel drops it when the process ends, however it ends. Waits for its turn. File systems
// that can't lock a folder (NFS) keep nobody apart. Refuses where the folder can't be opened.
class FolderLock {
 public:
  enum class Mode { kShared, kExclusive };
  FolderLock(const std::filesystem::path& folder, Mode mode);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

// Writes a file that isn't there yet. Refuses with the system's reason; a part of it may stay.
void write_new_file(const std::filesystem::path& file, const std::string& text);

// Writes all of `text` and closes; refuses, with `file` as its name, where the system can't.
void write_and_close(int fd, const std::filesystem::path& file, const std::string& text);

// Puts the files of a bundle (make_bundle) into a folder, which is made where it doesn't exist, as a whole or
// not at all. Files of an older bundle of the same name go, all others stay. Refuses with the system's
// reason, and the older bundle is as it was.
void write_bundle(const std::map<std::string, std::string>& files, const std::filesystem::path& folder);

}  // namespace sinter
