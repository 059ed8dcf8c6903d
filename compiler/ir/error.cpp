#include "ir/error.h"

#include <cstdio>
#include <cstdlib>

namespace sinter {
namespace {
thread_local const BugContext* current = nullptr;
}  // namespace

std::string quoted(std::string_view text, size_t limit) {
  std::string out = "\"";
  const size_t n = text.size();
  for (size_t i = 0; i < n; ++i) {
    if (n > limit && i == limit / 2) {
      out += "...";
      i = n - limit / 2;
    }
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c >= 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else if (c == '/' && !out.empty() && out.back() == '*') {
      out += "\\/";  // never ends a comment
    } else if (c == '?' && !out.empty() && out.back() == '?') {
      out += "\\?";
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

BugContext::BugContext() : before_(current) { current = this; }
BugContext::~BugContext() { current = before_; }

void bug(const char* file, int line, const std::string& what) {
  const std::string text = fmt::format("sinter: a bug of ours at {}:{}: {}\n{}\n", file, line, what,
                                       current ? current->text() : "");
#ifdef SINTER_ABORT_ON_BUG
  std::fputs(text.c_str(), stderr);
  std::abort();
#else
  throw Bug{text};
#endif
}

}  // namespace sinter
