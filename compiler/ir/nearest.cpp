#include "ir/nearest.h"

#include <algorithm>
#include <cctype>

#include "ir/error.h"

namespace sinter {
namespace {

// Longer names are somebody's test of us: the time grows with the square.
constexpr size_t kLongest = 200;

char small(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Edits from one to the other, a change of case half of one; row by row of the usual table.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = 2 * j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = 2 * i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const char x = a[i - 1], y = b[j - 1];
      const size_t change = x == y ? 0 : small(x) == small(y) ? 1 : 2;
      now[j] = std::min({last[j] + 2, now[j - 1] + 2, last[j - 1] + change});
      if (i > 1 && j > 1 && small(x) == small(b[j - 2]) && small(a[i - 2]) == small(y))
        now[j] = std::min(now[j], before[j - 2] + 2);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  if (word.empty() || word.size() > kLongest) return "";
  std::string best;
  // One edit of a short word, but of one or two letters only their case.
  size_t least = word.size() < 3 ? 2 : 2 * ((word.size() + 2) / 3) + 1;
  for (const std::string& n : names) {
    const size_t difference = std::max(n.size(), word.size()) - std::min(n.size(), word.size());
    if (n == word || 2 * difference >= least) continue;
    if (const size_t d = distance(word, n); d < least) best = n, least = d;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string near = nearest(word, names);
  return near.empty() ? "" : fmt::format("; did you mean {}?", sinter::quoted(near));
}

std::string joined(const std::vector<std::string>& words) {
  std::string s;
  for (const std::string& w : words) s += (s.empty() ? "" : ", ") + w;
  return s;
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  all.reserve(names.size());
  for (const std::string& n : names) all.push_back(sinter::quoted(n));
  return all.empty() ? "none" : joined(all);
}

}  // namespace sinter
