// A library for LD_PRELOAD that lets one call fail, or ends the process at it, by SINTER_FAULT:
//
//   memory:N   the N-th allocation finds no memory
//   io:N       the N-th call that has to do with files or folders fails: no space where it writes, else an
//   I/O error kill:N     SIGKILL in place of that call
//
// With SINTER_FAULT_COUNT=FILE the number of calls of that kind is written there at the end. Calls go to the
// kernel and to glibc's own allocator directly: nothing here allocates or waits for another library.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
extern char** environ;
}

namespace {

enum Kind { kUnknown, kNone, kMemory, kIo, kKill };
std::atomic<int> kind{kUnknown};
std::atomic<long> left{0}, calls{0};

// Not getenv: the first call comes before libc is ready for it.
const char* variable(const char* name) {
  const size_t n = std::strlen(name);
  for (char** e = environ; e && *e; ++e)
    if (std::strncmp(*e, name, n) == 0 && (*e)[n] == '=') return *e + n + 1;
  return nullptr;
}

int wanted() {
  if (kind != kUnknown || !environ) return kind;
  const char* text = variable("SINTER_FAULT");
  int k = kNone;
  for (const auto& [word, value] : {std::pair{"memory:", kMemory}, {"io:", kIo}, {"kill:", kKill}})
    if (text && std::strncmp(text, word, std::strlen(word)) == 0) {
      k = value;
      left = std::strtol(text + std::strlen(word), nullptr, 10);
    }
  kind = k;
  return k;
}

bool fails(bool memory) {
  const int k = wanted();
  if (memory ? k != kMemory : k != kIo && k != kKill) return false;
  ++calls;
  if (--left != 0) return false;
  if (k == kKill) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  return true;
}

bool no_memory() {
  if (!fails(true)) return false;
  errno = ENOMEM;
  return true;
}
bool fails_with(int error) {
  if (!fails(false)) return false;
  errno = error;
  return true;
}

[[gnu::destructor]] void tell() {
  const char* file = variable("SINTER_FAULT_COUNT");
  if (!file) return;
  char text[32];
  const int n = std::snprintf(text, sizeof text, "%ld\n", calls.load());
  const long fd = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  syscall(SYS_write, fd, text, n);
  syscall(SYS_close, fd);
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

int open_file(int folder, const char* path, int flags, mode_t mode) {
  if (fails_with(flags & O_CREAT ? ENOSPC : EIO)) return -1;
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

}  // namespace

extern "C" {

void* malloc(size_t n) { return no_memory() ? nullptr : __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return no_memory() ? nullptr : __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return no_memory() ? nullptr : __libc_realloc(p, n); }
void* memalign(size_t a, size_t n) { return no_memory() ? nullptr : __libc_memalign(a, n); }
void* aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void** p, size_t a, size_t n) {
  void* const q = memalign(a, n);
  if (q) *p = q;
  return q ? 0 : ENOMEM;
}

#define MODE_OF(flags)           \
  mode_t mode = 0;               \
  if ((flags)&O_CREAT) {         \
    va_list list;                \
    va_start(list, flags);       \
    mode = va_arg(list, mode_t); \
    va_end(list);                \
  }
int open(const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_file(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_file(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_file(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_file(folder, path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  return fails_with(EIO) ? nullptr : next<FILE*(const char*, const char*)>("fopen")(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return fails_with(EIO) ? nullptr : next<FILE*(const char*, const char*)>("fopen64")(path, mode);
}
DIR* opendir(const char* path) {
  return fails_with(EIO) ? nullptr : next<DIR*(const char*)>("opendir")(path);
}
char* mkdtemp(char* pattern) { return fails_with(ENOSPC) ? nullptr : next<char*(char*)>("mkdtemp")(pattern); }
ssize_t write(int fd, const void* p, size_t n) {
  return fails_with(ENOSPC) ? -1 : syscall(SYS_write, fd, p, n);
}
ssize_t read(int fd, void* p, size_t n) { return fails_with(EIO) ? -1 : syscall(SYS_read, fd, p, n); }
int close(int fd) {
  const bool failed = fails_with(EIO);
  const long r = syscall(SYS_close, fd);  // closed it is
  if (failed) errno = EIO;
  return failed ? -1 : static_cast<int>(r);
}

#define CALL(name, error, parameters, ...) \
  int name parameters { return fails_with(error) ? -1 : static_cast<int>(syscall(__VA_ARGS__)); }
CALL(rename, EIO, (const char* a, const char* b), SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 0)
CALL(renameat2, EIO, (int d, const char* a, int e, const char* b, unsigned f), SYS_renameat2, d, a, e, b, f)
CALL(link, EIO, (const char* a, const char* b), SYS_linkat, AT_FDCWD, a, AT_FDCWD, b, 0)
CALL(mkdir, ENOSPC, (const char* p, mode_t m), SYS_mkdirat, AT_FDCWD, p, m)
CALL(rmdir, EIO, (const char* p), SYS_unlinkat, AT_FDCWD, p, AT_REMOVEDIR)
CALL(unlink, EIO, (const char* p), SYS_unlinkat, AT_FDCWD, p, 0)
CALL(unlinkat, EIO, (int d, const char* p, int f), SYS_unlinkat, d, p, f)
CALL(chmod, EIO, (const char* p, mode_t m), SYS_fchmodat, AT_FDCWD, p, m)
CALL(flock, EIO, (int fd, int how), SYS_flock, fd, how)
CALL(fsync, EIO, (int fd), SYS_fsync, fd)
CALL(stat, EIO, (const char* p, struct stat* s), SYS_newfstatat, AT_FDCWD, p, s, 0)
CALL(lstat, EIO, (const char* p, struct stat* s), SYS_newfstatat, AT_FDCWD, p, s, AT_SYMLINK_NOFOLLOW)
CALL(fstat, EIO, (int fd, struct stat* s), SYS_fstat, fd, s)

}  // extern "C"
