// Functions of ours that the standard library has as well are called with their namespace: else a std::string
// among the arguments brings the other one in, and newer libraries make the call ambiguous.
#include <regex>

#include "house/source_tree.h"

namespace sinter::house {
namespace {

TEST(Lookup, QuotedIsOurs) {
  const std::regex plain("(^|[^:A-Za-z0-9_.>\"])quoted\\([^)]");
  for (const std::string& file : files("compiler", {".cpp", ".h"})) {
    std::istringstream lines(read(top() / file));
    int number = 1;
    for (std::string line; std::getline(lines, line); ++number) {
      if (line.rfind("std::string quoted(", 0) == 0) continue;  // what is declared and defined
      EXPECT_FALSE(std::regex_search(line, plain))
          << file << ":" << number << ": write sinter::quoted, because of std::quoted\n"
          << line;
    }
  }
}

}  // namespace
}  // namespace sinter::house
