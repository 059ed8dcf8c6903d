// The words of the runtime headers, read from their texts: every identifier outside of braces, of which a
// namespace's and an enum's don't count, and outside of parentheses and of a template's parameters; and all
// that stands in a definition of the preprocessor.
//
// More than what is declared is found, say the types of results. That costs nothing: a node of such a name
// has a function that is called a little different.
#include <cctype>
#include <vector>

#include "emit/runtime_files.h"

namespace sinter {
namespace {

class WordReader {
 public:
  WordReader(const std::string& text, std::set<std::string>& words) : text_(text), words_(words) {}

  void read() {
    while (at_ < text_.size()) {
      if (skip("//", "\n") || skip("/*", "*/")) continue;
      const char c = text_[at_];
      if (c == '#')
        definition();
      else if (c == '"' || c == '\'')
        literal(c);
      else if (starts_word(c))
        word();
      else if (std::isdigit(static_cast<unsigned char>(c)))
        number();
      else
        mark(c), ++at_;
    }
  }

 private:
  static bool starts_word(char c) { return c == '_' || std::isalpha(static_cast<unsigned char>(c)); }
  static bool in_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); }

  // What begins here and ends so, both left out but the end of a line.
  bool skip(const std::string& begin, const std::string& end) {
    if (text_.compare(at_, begin.size(), begin) != 0) return false;
    const size_t to = text_.find(end, at_ + begin.size());
    at_ = to == std::string::npos ? text_.size() : to + (end == "\n" ? 0 : end.size());
    return true;
  }
  void literal(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_)
      if (text_[at_] == '\\') ++at_;
    ++at_;
  }
  std::string take() {
    const size_t begin = at_;
    while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void number() {  // 0x1F, 1'000, 2.5f
    while (at_ < text_.size() && (in_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '\'')) ++at_;
    last_.clear();
  }

  // A line of the preprocessor, with those that continue it.
  void definition() {
    ++at_;
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const bool defines = take() == "define";
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (skip("//", "\n") || skip("/*", "*/")) continue;
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        at_ += 2;
      } else if (starts_word(text_[at_])) {
        const std::string w = take();
        if (defines) words_.insert(w);
      } else if (std::isdigit(static_cast<unsigned char>(text_[at_]))) {
        number();
      } else {
        ++at_;
      }
    }
  }

  void word() {
    const std::string w = take();
    if (w == "namespace" || w == "enum" || w == "extern") opens_ = true;
    last_ = w;
    if (inside_ == 0 && angles_ == 0 && (parentheses_ == 0 || of_macro_)) words_.insert(w);
  }

  void mark(char c) {
    switch (c) {
      case '{':
        transparent_.push_back(opens_ && parentheses_ == 0);
        if (!transparent_.back()) ++inside_;
        opens_ = false;
        break;
      case '}':
        if (transparent_.empty()) break;
        if (!transparent_.back()) --inside_;
        transparent_.pop_back();
        break;
      case '(':
      case '[':
        // SINTER_EACH(relu, ...) may define what it is given.
        if (parentheses_++ == 0) of_macro_ = shouts(last_);
        break;
      case ')':
      case ']': --parentheses_; break;
      case '<':
        if (parentheses_ == 0 && (angles_ > 0 || last_ == "template")) ++angles_;
        break;
      case '>':
        if (parentheses_ == 0 && angles_ > 0) --angles_;
        break;
      case ';': opens_ = false; break;
      default: break;
    }
    if (!std::isspace(static_cast<unsigned char>(c))) last_.clear();
  }
  static bool shouts(const std::string& w) {
    for (const char c : w)
      if (std::islower(static_cast<unsigned char>(c))) return false;
    return !w.empty();
  }

  const std::string& text_;
  std::set<std::string>& words_;
  size_t at_ = 0;
  std::vector<bool> transparent_;  // the braces that are open: of a namespace, of extern "C" or of an enum
  int inside_ = 0;                 // how many of them are none of these
  int parentheses_ = 0;
  int angles_ = 0;         // of a template's parameters
  bool of_macro_ = false;  // the outermost parenthesis is a macro's
  bool opens_ = false;     // the next brace is one of these
  std::string last_;       // the word just before
};

}  // namespace

const std::set<std::string>& runtime_words() {
  static const std::set<std::string> words = [] {
    std::set<std::string> found;
    for (const auto& [name, text] : runtime_files()) WordReader(text, found).read();
    return found;
  }();
  return words;
}

}  // namespace sinter
