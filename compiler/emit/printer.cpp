#include "emit/printer.h"

#include <algorithm>

#include "emit/tidy_text.h"
#include "ir/words.h"

namespace sinter {

void Printer::put(std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    const std::string_view one = lines.substr(0, end);
    lines = end == std::string_view::npos ? std::string_view{} : lines.substr(end + 1);
    if (one.empty()) {
      blank();
      continue;
    }
    if (one[0] == '}') --depth_;
    // Two columns are left for the function around a layer's body (indented).
    text_ += wrapped(tidied(one), static_cast<size_t>(std::max(depth_, 0)) * 2, 108);
    if (one.back() == '{') ++depth_;
  }
}

void Printer::comment(std::string_view text) {
  const size_t width = 106 - static_cast<size_t>(depth_) * 2;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    if (end > width) {
      end = text.rfind(' ', width);
      if (end == std::string_view::npos || end == 0) end = width;
    }
    std::string_view one = text.substr(0, end);
    while (!one.empty() && one.back() == '\\') one.remove_suffix(1);  // no line continues a comment
    text_.append(static_cast<size_t>(std::max(depth_, 0)) * 2, ' ');
    text_ += "// ";
    text_ += one;
    text_ += '\n';
    text = text.substr(end);
    if (!text.empty() && (text[0] == ' ' || text[0] == '\n')) text = text.substr(1);
  }
}

void Printer::indented(std::string_view rest) {
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view one = rest.substr(0, end);
    if (!one.empty()) text_.append(static_cast<size_t>(std::max(depth_, 0) + 1) * 2, ' ');
    text_ += one;
    text_ += '\n';
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
}

std::string identifier(std::string_view name) {
  std::string id;
  for (char c : name) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (ok)
      id += c;
    else if (!id.empty() && id.back() != '_')
      id += '_';
    if (id.size() >= 48) break;
  }
  while (!id.empty() && id.back() == '_') id.pop_back();
  // Names without a small letter may be macros of some header (NAN, INFINITY, M_PI …).
  const bool shouts =
      id.size() > 1 && std::none_of(id.begin(), id.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (id.empty() || (id[0] >= '0' && id[0] <= '9') || shouts || is_reserved_word(id)) id = "n_" + id;
  while (!id.empty() && id.back() == '_') id.pop_back();
  return id;
}

std::string Names::unique(std::string_view name) {
  std::string id(name);
  for (int k = 2; !taken_.insert(id).second; ++k) id = fmt::format("{}_{}", name, k);
  return id;
}

}  // namespace sinter
