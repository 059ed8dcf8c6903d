#include "emit/tidy_text.h"

#include <cctype>

namespace sinter {
namespace {

constexpr size_t kNone = std::string::npos;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The part before a comment; npos where the line is not to be touched.
size_t code_end(std::string_view line) {
  if (line.empty() || line[0] == '#' || line.find('"') != kNone || line.find('\'') != kNone) return kNone;
  return std::min(line.find("//"), line.size());
}

// Behind the word, number or parenthesis that begins at `at`, with what is called or indexed by it; npos
// where none begins there.
size_t operand_end(const std::string& s, size_t at) {
  size_t i = at;
  while (i < s.size() && (is_word(s[i]) || s[i] == ':' || s[i] == '.')) ++i;
  while (i < s.size() && (s[i] == '(' || s[i] == '[')) {
    int depth = 0;
    do {
      if (s[i] == '(' || s[i] == '[') ++depth;
      if (s[i] == ')' || s[i] == ']') --depth;
    } while (++i < s.size() && depth > 0);
    if (depth > 0) return kNone;
  }
  return i == at ? kNone : i;
}

// Whether an operand may begin at `at`: nothing before it binds stronger than its product.
bool begins_operand(const std::string& s, size_t at) {
  if (at == 0) return false;
  if (s[at - 1] == '(' || s[at - 1] == '[') return true;
  if (s[at - 1] != ' ' || at < 2) return false;
  const char before = s[at - 2];
  return before == '+' || before == ',' || before == '=' || before == '<' || before == '?' || before == ':';
}

// Whether what ends at `at` is not multiplied, divided, called or continued by what follows.
bool ends_sum(const std::string& s, size_t at) {
  if (at >= s.size()) return true;
  if (s[at] == ')' || s[at] == ',' || s[at] == ';' || s[at] == ']') return true;
  if (s[at] != ' ' || at + 1 >= s.size()) return false;
  const char next = s[at + 1];
  return next != '*' && next != '/' && next != '%';
}
bool ends_factor(const std::string& s, size_t at) {
  return at >= s.size() || s[at] == ')' || s[at] == ',' || s[at] == ';' || s[at] == ']' || s[at] == ' ';
}

bool replace(std::string& s, size_t at, size_t length, std::string_view by) {
  s.replace(at, length, by);
  return true;
}

// `0 * x` -> `0`
bool drop_zero_product(std::string& s) {
  for (size_t at = s.find("0 * "); at != kNone; at = s.find("0 * ", at + 1)) {
    if (!begins_operand(s, at)) continue;
    const size_t end = operand_end(s, at + 4);
    if (end != kNone && ends_factor(s, end)) return replace(s, at, end - at, "0");
  }
  return false;
}

// `x + 0` -> `x`, `x * 1` -> `x`
bool drop_neutral(std::string& s, std::string_view tail, bool (*ends)(const std::string&, size_t)) {
  for (size_t at = s.find(tail); at != kNone; at = s.find(tail, at + 1)) {
    const bool operand = at > 0 && (is_word(s[at - 1]) || s[at - 1] == ')' || s[at - 1] == ']');
    if (operand && ends(s, at + tail.size())) return replace(s, at, tail.size(), "");
  }
  return false;
}

// `1 * x` -> `x`, `0 + x` -> `x`
bool drop_neutral_front(std::string& s, std::string_view head) {
  for (size_t at = s.find(head); at != kNone; at = s.find(head, at + 1))
    if (begins_operand(s, at) && operand_end(s, at + head.size()) != kNone)
      return replace(s, at, head.size(), "");
  return false;
}

// `+ (x) ` -> `+ x`
bool drop_parentheses(std::string& s) {
  for (size_t at = s.find('('); at != kNone; at = s.find('(', at + 1)) {
    if (at < 2 || s[at - 1] != ' ' || (s[at - 2] != '+' && s[at - 2] != '*' && s[at - 2] != '-')) continue;
    size_t end = at + 1;
    while (end < s.size() && is_word(s[end])) ++end;
    if (end == at + 1 || end >= s.size() || s[end] != ')' || !ends_factor(s, end + 1)) continue;
    s.erase(end, 1);
    s.erase(at, 1);
    return true;
  }
  return false;
}

bool step(std::string& s) {
  return drop_zero_product(s) || drop_neutral(s, " + 0", ends_sum) || drop_neutral(s, " * 1", ends_factor) ||
         drop_neutral_front(s, "1 * ") || drop_neutral_front(s, "0 + ") || drop_parentheses(s);
}

// Where line[0, most) can be broken: behind the last of its outermost commas that leaves no short piece, else
// behind the last comma; 0 where there is none within parentheses.
size_t break_at(std::string_view line, size_t most) {
  int depth = 0, outermost = 0;
  size_t best = 0, last = 0;
  for (size_t i = 0; i + 1 < line.size() && i < most; ++i) {
    if (line[i] == '(' || line[i] == '[' || line[i] == '{') ++depth;
    if (line[i] == ')' || line[i] == ']' || line[i] == '}') --depth;
    if (line[i] != ',' || line[i + 1] != ' ' || depth == 0) continue;
    last = i + 1;
    if (i < most / 3 || (best != 0 && depth > outermost)) continue;
    best = i + 1;
    outermost = depth;
  }
  return best != 0 ? best : last;
}

}  // namespace

std::string tidied(std::string_view line) {
  const size_t end = code_end(line);
  std::string code(line.substr(0, end == kNone ? 0 : end));
  while (step(code)) {
  }
  return code + std::string(line.substr(end == kNone ? 0 : end));
}

std::string wrapped(std::string_view line, size_t indent, size_t width) {
  std::string out;
  const size_t end = code_end(line);
  while (end != kNone && indent + std::min(line.size(), line.find("//")) > width && indent + 20 < width) {
    const size_t at = break_at(line, width - indent);
    if (at == 0) break;
    out += std::string(indent, ' ') + std::string(line.substr(0, at)) + "\n";
    if (out.find('\n') == out.size() - 1) indent += 4;
    line = line.substr(at + 1);
  }
  return out + std::string(indent, ' ') + std::string(line) + "\n";
}

}  // namespace sinter
