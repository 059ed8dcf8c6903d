#include "ir/words.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace sinter {
namespace {

const std::set<std::string_view>& words() {
  static const std::set<std::string_view> all = {
      // C and C++, up to C23 and C++26; `asm` and `typeof` are also words of compilers alone.
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case",
      "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield",
      "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit", "continue",
      "contract_assert", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
      "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int",
      "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
      "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict",
      "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
      "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof",
      "typeof_unqual", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor",
      "xor_eq",
      // What compilers define without being asked, -std=gnu++17 among their defaults.
      "i386", "linux", "mips", "sparc", "sun", "unix",
      // Not to be declared again.
      "main", "sinter", "std",
      // The types of <stdint.h> and <stddef.h>.
      "int16_t", "int32_t", "int64_t", "int8_t", "intmax_t", "intptr_t", "max_align_t", "nullptr_t",
      "ptrdiff_t", "size_t", "ssize_t", "uint16_t", "uint32_t", "uint64_t", "uint8_t", "uintmax_t",
      "uintptr_t",
      // Macros that C++ leaves, of the C library and of POSIX, and those of <complex.h> and <stdalign.h> in
      // C.
      "I", "alloca", "assert", "assert_perror", "be16toh", "be32toh", "be64toh", "complex", "errno",
      "fpclassify", "htobe16", "htobe32", "htobe64", "htole16", "htole32", "htole64", "imaginary",
      "iscanonical", "isfinite", "isinf", "isnan", "isnormal", "issubnormal", "kill_dependency", "le16toh",
      "le32toh", "le64toh", "major", "makedev", "math_errhandling", "minor", "noreturn", "offsetof",
      "pthread_cleanup_pop", "pthread_cleanup_pop_restore_np", "pthread_cleanup_push",
      "pthread_cleanup_push_defer_np", "sa_handler", "sa_sigaction", "sched_priority", "setjmp",
      "sigcontext_struct", "sigev_notify_attributes", "sigev_notify_function", "sigmask", "signbit",
      "sigsetjmp", "st_atime", "st_ctime", "st_mtime", "stderr", "stdin", "stdout", "strdupa", "strndupa",
      "timeradd", "timerclear", "timercmp", "timerisset", "timersub", "unreachable", "va_arg", "va_copy",
      "va_end", "va_start", "P_tmpdir", "L_tmpnam", "L_ctermid", "L_cuserid",
      // Of <signal.h>.
      "si_addr", "si_addr_lsb", "si_arch", "si_band", "si_call_addr", "si_fd", "si_int", "si_lower",
      "si_overrun", "si_pid", "si_pkey", "si_ptr", "si_status", "si_stime", "si_syscall", "si_timerid",
      "si_uid", "si_upper", "si_utime", "si_value"};
  return all;
}

bool begins(std::string_view name, std::string_view with) { return name.substr(0, with.size()) == with; }

// Families of macros whose members have a small letter: PRId64 and SCNu8, M_PIl and HUGE_VALF32x, SYS_read.
bool is_of_family(std::string_view name) {
  const auto small = [](char c) { return c >= 'a' && c <= 'z'; };
  if (begins(name, "SYS_")) return true;
  if (begins(name, "PRI") || begins(name, "SCN"))
    return name.size() > 4 && small(name[3]) && std::none_of(name.begin() + 4, name.end(), small);
  if (!begins(name, "M_") && !begins(name, "HUGE_VAL")) return false;
  // a type behind the name: f, l, f64, f32x
  size_t end = name.size();
  if (end > 0 && name[end - 1] == 'x') --end;
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
  if (end == 0 || (name[end - 1] != 'f' && name[end - 1] != 'l')) return false;
  return std::none_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(end) - 1, small);
}

const std::set<std::string_view>& file_names() {
  static const std::set<std::string_view> all = {
      // NAME.h of C, of POSIX and of glibc.
      "aio", "alloca", "ar", "argp", "assert", "byteswap", "complex", "cpio", "crypt", "ctype", "dirent",
      "dlfcn", "elf", "endian", "envz", "err", "errno", "error", "execinfo", "fcntl", "features", "fenv",
      "float", "fmtmsg", "fnmatch", "ftw", "getopt", "glob", "grp", "iconv", "ifaddrs", "inttypes", "iso646",
      "langinfo", "libgen", "libintl", "limits", "link", "locale", "malloc", "math", "mcheck", "memory",
      "mntent", "monetary", "mqueue", "ndbm", "netdb", "nl_types", "nss", "obstack", "paths", "poll",
      "printf", "pthread", "pty", "pwd", "regex", "regexp", "resolv", "sched", "search", "semaphore",
      "setjmp", "shadow", "signal", "spawn", "stab", "stdalign", "stdarg", "stdatomic", "stdbit", "stdbool",
      "stdckdint", "stddef", "stdint", "stdio", "stdlib", "stdnoreturn", "string", "strings", "stropts",
      "syscall", "sysexits", "syslog", "tar", "termio", "termios", "tgmath", "threads", "time", "uchar",
      "ucontext", "ulimit", "unistd", "utime", "utmp", "utmpx", "values", "wait", "wchar", "wctype",
      "wordexp",
      // Targets of CMake.
      "all", "clean", "edit_cache", "help", "install", "package", "package_source", "preinstall",
      "rebuild_cache", "test"};
  return all;
}

}  // namespace

bool is_reserved_word(std::string_view name) { return words().count(name) > 0 || is_of_family(name); }
bool is_reserved_file(std::string_view name) { return file_names().count(name) > 0; }

}  // namespace sinter
