// How a bundle gets into its folder: as a whole or not at all.
//
// All files are written to a staging folder first. Where possible it stands beside the target, gets the files
// there that aren't ours as hard links, and changes places with the target in one step of the system
// (renameat2): whoever stops this process leaves the old bundle or the new one. Where that isn't possible
// (the target is a mount point or the folder we work in, it holds folders of other people, the file system
// can't), the staging folder lies in the target and files are renamed one by one: NAME.cpp goes first and
// comes last, and while it is missing nothing can be linked. What fails on the way is undone.
//
// Ours is what the older bundle's NAME.map lists, and what has a bundle's names and the mark of generated
// code.
#include "emit/bundle_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;
using FileNames = std::set<std::string>;

struct OpenFile {
  int fd;
  ~OpenFile() { close(fd); }
};

[[noreturn]] void cannot(const char* what, const fs::path& path, int error) {
  refuse("cannot {} {}: {}", what, sinter::quoted(path.string()), std::generic_category().message(error));
}

// What stands at a path, links not followed: st_mode, or 0 for nothing.
mode_t mode_at(const fs::path& p) {
  struct stat s {};
  if (lstat(p.c_str(), &s) == 0) return s.st_mode;
  if (errno != ENOENT && errno != ENOTDIR) cannot("read", p, errno);
  return 0;
}
bool is_folder(const fs::path& p) { return S_ISDIR(mode_at(p)); }
bool is_file(const fs::path& p) { return S_ISREG(mode_at(p)); }

std::string contents(const fs::path& p) {
  const int fd = open(p.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) cannot("read", p, errno);
  const OpenFile closed{fd};
  std::string text;
  char chunk[65536];
  for (;;) {
    const ssize_t n = read(fd, chunk, sizeof chunk);
    if (n == 0) return text;
    if (n > 0)
      text.append(chunk, static_cast<size_t>(n));
    else if (errno != EINTR)
      cannot("read", p, errno);
  }
}

// Whatever happens: this runs while errors are handled. What one failure leaves, a second attempt gets.
void remove_tree(const fs::path& p) noexcept {
  for (int attempt = 0; attempt < 3; ++attempt) try {
      std::error_code ec;
      fs::remove_all(p, ec);
      if (!ec) return;
    } catch (const std::bad_alloc&) {
    }
}

// Signals that would end the process wait until a bundle is written.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t set;
    sigemptyset(&set);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, s);
    pthread_sigmask(SIG_BLOCK, &set, &old_);
  }
  ~SignalsWait() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t old_{};
};

// Folders that had to be made; they go again unless the bundle gets there.
class MadeFolders {
 public:
  MadeFolders() = default;
  ~MadeFolders() {
    for (auto p = made_.rbegin(); p != made_.rend() && !kept_; ++p) rmdir(p->c_str());
  }
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;
  // With those that it lies in.
  void make(const fs::path& folder) {
    if (folder.empty() || mode_at(folder) != 0) return;
    make(folder.parent_path());
    made_.push_back(folder);
    if (mkdir(folder.c_str(), 0777) == 0) return;
    const int error = errno;
    made_.pop_back();
    if (error != EEXIST) cannot("create the folder", folder, error);
  }
  void keep() { kept_ = true; }

 private:
  std::vector<fs::path> made_;
  bool kept_ = false;
};

// A folder with a name that nobody else has, which goes with this.
class Staging {
 public:
  explicit Staging(const fs::path& prefix) : path_(prefix.string() + "XXXXXX") {
    if (!mkdtemp(path_.data())) {
      const int error = errno;
      cannot("write to", prefix.parent_path(), error);
    }
  }
  ~Staging() {
    if (!kept_) remove_tree(path_);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  fs::path path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
};

// A name of a map that is a file below the folder, not elsewhere.
bool stays_inside(const std::string& name) {
  const fs::path p(name);
  if (name.empty() || p.is_absolute()) return false;
  for (const fs::path& part : p)
    if (part == ".." || part == "." || part.empty()) return false;
  return true;
}

FileNames fixed_names(const std::string& name) {
  FileNames names;
  for (const char* end :
       {".h", ".cpp", ".weights", ".map", ".cmake", "_main.cpp", "_weights.S", "_weights.c", "_main"})
    names.insert(name + end);
  return names;
}

// The files of each bundle in a folder, as the maps list them.
std::map<std::string, FileNames> bundles_in(const fs::path& folder) {
  std::map<std::string, FileNames> bundles;
  std::error_code ec;
  for (fs::directory_iterator i(folder, ec), end; !ec && i != end; i.increment(ec)) {
    const fs::path map = i->path();
    if (map.extension() != ".map" || !is_file(map)) continue;
    const auto j = nlohmann::json::parse(contents(map), nullptr, false);
    const std::string name = map.stem().string();
    if (!j.is_object() || !j.contains("name") || j["name"] != name) continue;
    FileNames& files = bundles[name] = fixed_names(name);
    if (!j.contains("files") || !j["files"].is_array()) continue;
    for (const auto& f : j["files"])
      if (f.is_string() && stays_inside(f.get<std::string>())) files.insert(f.get<std::string>());
  }
  if (ec) cannot("read", folder, ec.value());
  return bundles;
}

// Every folder that a file of these lies in: "a/b/c.h" has "a" and "a/b".
void add_folders(const FileNames& files, FileNames& folders) {
  for (const std::string& f : files)
    for (fs::path p = fs::path(f).parent_path(); !p.empty(); p = p.parent_path()) folders.insert(p.string());
}

// What is to be done to a folder.
struct Change {
  fs::path folder;
  std::string name;  // of the bundle
  const Files& files;
  FileNames gone;     // of the older bundle, and in no other one: what `files` doesn't replace goes
  FileNames others;   // of bundles of other names: stays
  FileNames folders;  // those that bundles have files in
};

Change change_of(const Files& files, const fs::path& folder) {
  Change c{folder, "", files, {}, {}, {}};
  for (const auto& [file, text] : files)
    if (file.ends_with(".map") && files.count(file.substr(0, file.size() - 4) + ".cpp"))
      c.name = file.substr(0, file.size() - 4);
  SINTER_CHECK(!c.name.empty(), "a bundle without a map");
  FileNames all;
  for (const auto& [file, text] : files) all.insert(file);
  c.gone = fixed_names(c.name);
  for (const auto& [name, list] : bundles_in(folder)) {
    (name == c.name ? c.gone : c.others).insert(list.begin(), list.end());
    add_folders(list, c.folders);
  }
  add_folders(all, c.folders);
  std::error_code ec;
  for (fs::directory_iterator i(folder, ec), end; !ec && i != end; i.increment(ec)) {
    const std::string file = i->path().filename().string();
    if (file.rfind(c.name + "_part", 0) == 0 && file.ends_with(".cpp") && is_file(i->path()) &&
        contents(i->path()).rfind("// Generated by sinter", 0) == 0)
      c.gone.insert(file);
    if (file.rfind("." + c.name + "_main-sinter-", 0) == 0) c.gone.insert(file);  // of a killed `sinter run`
  }
  if (ec) cannot("read", folder, ec.value());
  for (const std::string& f : c.others) c.gone.erase(f);
  return c;
}

// A place that a file can't go to, or another bundle's file that would become another one.
void check_places(const Change& c) {
  for (const auto& [file, text] : c.files) {
    const fs::path place = c.folder / file;
    for (fs::path p = place.parent_path(); p != c.folder; p = p.parent_path()) {
      const mode_t m = mode_at(p);
      if (S_ISLNK(m)) refuse("cannot write {}: a symbolic link stands there", sinter::quoted(p.string()));
      if (m != 0 && !S_ISDIR(m)) cannot("create the folder", p, ENOTDIR);
    }
    const mode_t m = mode_at(place);
    if (S_ISLNK(m)) refuse("cannot write {}: a symbolic link stands there", sinter::quoted(place.string()));
    if (S_ISDIR(m)) cannot("write", place, EISDIR);
    if (m != 0 && !S_ISREG(m))
      refuse("cannot write {}: it is no regular file", sinter::quoted(place.string()));
    if (c.others.count(file) && is_file(place) && contents(place) != text)
      refuse(
          "cannot write {}: another bundle in the folder has it too, in another version; give -o a folder of "
          "its "
          "own, or compile that model again as well after removing its files",
          sinter::quoted(place.string()));
  }
}

void write_all(const Change& c, const fs::path& folder) {
  for (const std::string& f : c.folders)  // in order: parents come first
    if (mkdir((folder / f).c_str(), 0777) != 0 && errno != EEXIST)
      cannot("create the folder", folder / f, errno);
  for (const auto& [file, text] : c.files) write_new_file(folder / file, text);
}

// Entries of a folder that aren't ours, by their path in it; folders of bundles are looked into. `plain`:
// there is no other folder.
std::vector<std::string> foreign_entries(const Change& c, const fs::path& folder, bool& plain) {
  std::vector<std::string> list;
  plain = true;
  FileNames looked_into = c.folders;
  looked_into.insert("");
  for (const std::string& sub : looked_into) {
    std::error_code ec;
    if (!is_folder(folder / sub)) continue;
    for (fs::directory_iterator i(folder / sub, ec), end; !ec && i != end; i.increment(ec)) {
      const std::string name = (fs::path(sub) / i->path().filename()).string();
      if (is_folder(i->path())) {
        plain = plain && c.folders.count(name) != 0;
        continue;
      }
      if (!c.gone.count(name) && !c.files.count(name)) list.push_back(name);
    }
    if (ec) cannot("read", folder / sub, ec.value());
  }
  return list;
}

// Whether another folder can take the place of this one without anybody's noticing.
bool may_change_places(const fs::path& folder, const struct stat& now) {
  std::error_code ec;
  const fs::path here = fs::current_path(ec);
  if (ec) return false;
  for (fs::path p = here;; p = p.parent_path()) {
    if (p == folder) return false;
    if (p == p.parent_path()) break;
  }
  struct stat parent {};
  if (folder == folder.root_path() || stat(folder.parent_path().c_str(), &parent) != 0 ||
      parent.st_dev != now.st_dev || access(folder.parent_path().c_str(), W_OK | X_OK) != 0)
    return false;
  // Access lists and the like would be lost; a label of SELinux is given to any folder.
  char attributes[256];
  const ssize_t n = listxattr(folder.c_str(), attributes, sizeof attributes);
  const bool none = n <= 0 || std::string(attributes, static_cast<size_t>(n) - 1) == "security.selinux";
  return now.st_uid == geteuid() && none;
}

// In one step. False where that isn't possible, and nothing has happened.
bool change_places(const Change& c) {
  struct stat now {};
  if (stat(c.folder.c_str(), &now) != 0) cannot("write to", c.folder, errno);
  bool plain = false;
  const std::vector<std::string> foreign = foreign_entries(c, c.folder, plain);
  if (!plain || !may_change_places(c.folder, now)) return false;
  Staging staging(c.folder.parent_path() / ("." + c.folder.filename().string() + ".sinter-"));
  const fs::path fresh = staging.path();
  const FolderLock lock(fresh, FolderLock::Mode::kExclusive);  // it is the target's soon
  struct stat its {};
  if (chmod(fresh.c_str(), now.st_mode & 07777) != 0 || stat(fresh.c_str(), &its) != 0 ||
      its.st_gid != now.st_gid)
    return false;
  write_all(c, fresh);
  for (const std::string& f : foreign)
    if (link((c.folder / f).c_str(), (fresh / f).c_str()) != 0) return false;
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, c.folder.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == ENOSPC || errno == EDQUOT || errno == EIO) cannot("write to", c.folder, errno);
    return false;
  }
  // Staging holds the old folder now. What somebody put there meanwhile comes along.
  for (const std::string& f : foreign_entries(c, fresh, plain))
    if (mode_at(c.folder / f) == 0 && rename((fresh / f).c_str(), (c.folder / f).c_str()) != 0)
      staging.keep();
  for (auto f = c.folders.rbegin(); f != c.folders.rend(); ++f)
    rmdir((c.folder / *f).c_str());  // where empty
  return true;
}

// File by file; each step is a rename, and undone by one.
class Renames {
 public:
  void add(fs::path from, fs::path to) { steps_.emplace_back(std::move(from), std::move(to)); }
  void run() {
    for (; done_ < steps_.size(); ++done_) {
      const auto& [from, to] = steps_[done_];
      if (rename(from.c_str(), to.c_str()) == 0) continue;
      const int error = errno;
      undo();
      cannot("write", to, error);
    }
  }

 private:
  void undo() {
    for (; done_ > 0; --done_) {
      const auto& [from, to] = steps_[done_ - 1];
      for (int attempt = 0; attempt < 3 && rename(to.c_str(), from.c_str()) != 0; ++attempt) {
      }
    }
  }
  std::vector<std::pair<fs::path, fs::path>> steps_;
  size_t done_ = 0;
};

void rename_files(const Change& c) {
  const Staging staging(c.folder / ".sinter-");
  const fs::path fresh = staging.path() / "new", old = staging.path() / "old";
  for (const fs::path& p : {fresh, old})
    if (mkdir(p.c_str(), 0777) != 0) cannot("create the folder", p, errno);
  write_all(c, fresh);
  MadeFolders made;
  for (const std::string& f : c.folders) {
    if (mkdir((old / f).c_str(), 0777) != 0 && errno != EEXIST) cannot("create the folder", old / f, errno);
    made.make(c.folder / f);
  }
  const std::string code = c.name + ".cpp", map = c.name + ".map";
  Renames steps;
  const auto away = [&](const std::string& f) {
    if (is_file(c.folder / f)) steps.add(c.folder / f, old / f);
  };
  away(code);
  for (const std::string& f : c.gone)
    if (!c.files.count(f)) away(f);
  for (const auto& [f, text] : c.files) {
    if (f == code || f == map || (c.others.count(f) && is_file(c.folder / f))) continue;
    away(f);
    steps.add(fresh / f, c.folder / f);
  }
  away(map);  // the older one's, which lists what goes, is there until all that is gone
  for (const std::string& f : {map, code}) steps.add(fresh / f, c.folder / f);
  steps.run();
  made.keep();
  for (auto f = c.folders.rbegin(); f != c.folders.rend(); ++f)
    rmdir((c.folder / *f).c_str());  // where empty
}

// What processes that were killed have left in the folder and beside it.
void remove_leftovers(const fs::path& folder) {
  const auto clean = [](const fs::path& where, const std::string& prefix) {
    std::error_code ec;
    for (fs::directory_iterator i(where, ec), end; !ec && i != end; i.increment(ec)) {
      const std::string name = i->path().filename().string();
      if (name.rfind(prefix, 0) != 0 || name.size() != prefix.size() + 6 || !is_folder(i->path())) continue;
      const int fd = open(i->path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) remove_tree(i->path());
      if (fd >= 0) close(fd);
    }
  };
  clean(folder, ".sinter-");
  clean(folder.parent_path(), "." + folder.filename().string() + ".sinter-");
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder, Mode mode) {
  for (;;) {
    fd_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) cannot("open", folder, errno);
    int error = 0;
    do error = flock(fd_, mode == Mode::kShared ? LOCK_SH : LOCK_EX) == 0 ? 0 : errno;
    while (error == EINTR);
    struct stat held {
    }, there{};
    const bool known = fstat(fd_, &held) == 0 && stat(folder.c_str(), &there) == 0;
    if (error == EIO || error == ENOMEM) {
      close(fd_);
      cannot("lock", folder, error);
    }
    // While this one waited, another folder may have come to its place.
    if (known && held.st_ino == there.st_ino && held.st_dev == there.st_dev) return;
    close(fd_);
  }
}
FolderLock::~FolderLock() { close(fd_); }

void write_new_file(const fs::path& file, const std::string& text) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) cannot("write", file, errno);
  write_and_close(fd, file, text);
}

void write_and_close(int fd, const fs::path& file, const std::string& text) {
  int error = 0;
  for (size_t at = 0; at < text.size() && error == 0;) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n >= 0)
      at += static_cast<size_t>(n);
    else if (errno != EINTR)
      error = errno;
  }
  if (close(fd) != 0 && error == 0) error = errno;
  if (error != 0) cannot("write", file, error);
}

void write_bundle(const Files& files, const fs::path& folder) {
  std::error_code ec;
  fs::path whole = fs::absolute(folder, ec);
  if (ec) cannot("find the folder", folder, ec.value());
  if (!whole.has_filename()) whole = whole.parent_path();
  MadeFolders made;
  made.make(whole);
  const fs::path real = fs::canonical(whole, ec);
  if (ec) cannot("write to", folder, ec.value());
  const FolderLock lock(real, FolderLock::Mode::kExclusive);
  const SignalsWait wait;
  remove_leftovers(real);
  const Change change = change_of(files, real);
  check_places(change);
  if (!change_places(change)) rename_files(change);
  made.keep();
}

}  // namespace sinter
