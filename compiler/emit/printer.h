// Printer: text with indentation, for generated C++.
//
// line() takes one line; a line that ends in "{" indents what follows, one that begins with "}" ends that.
// Nothing from a model reaches a Printer but through identifier(), quoted() or comment().
#pragma once
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

namespace sinter {

class Printer {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> f, Args&&... args) {
    put(fmt::format(f, std::forward<Args>(args)...));
  }
  void put(std::string_view line);  // one line or several, already formatted
  void blank() { text_ += '\n'; }
  void comment(std::string_view text);                // "// ..." wrapped at 110 columns
  void indented(std::string_view text);               // finished lines, one level deeper than here
  void raw(std::string_view text) { text_ += text; }  // as it is
  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }

 private:
  std::string text_;
  int depth_ = 0;
};

// `name` made a C++ identifier: other characters become '_', keywords and reserved names get a letter in
// front, at most 48 characters. Not unique.
std::string identifier(std::string_view name);

// Hands out identifiers, each once: "conv", "conv_2", ...
class Names {
 public:
  std::string unique(std::string_view name);
  void reserve(std::string_view name) { taken_.insert(std::string(name)); }

 private:
  std::set<std::string> taken_;
};

}  // namespace sinter
