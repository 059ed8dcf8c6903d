// What the texts name exists: links, and paths in backquotes; the tables of targets are whole.
#include "house/source_tree.h"
#include "targets/target.h"

namespace sinter::house {
namespace {

std::vector<std::string> texts() {
  std::vector<std::string> all = files("docs", {".md"});
  for (const char* file : {"README.md", "generated/README.md"}) all.push_back(file);
  return all;
}

TEST(Docs, LinksLeadSomewhere) {
  for (const std::string& file : texts())
    for (std::string link : all_matches(read(top() / file), "\\]\\(([^)\\s]+)\\)")) {
      if (link.find("://") != std::string::npos || link[0] == '#') continue;
      link = link.substr(0, link.find('#'));
      EXPECT_TRUE(fs::exists((top() / file).parent_path() / link)) << file << " links to " << link;
    }
}

// Paths from the top of the repository; what holds NAME or a wildcard is a pattern, not a path.
TEST(Docs, PathsExist) {
  for (const std::string& file : texts())
    for (const std::string& path :
         all_matches(read(top() / file),
                     "`((?:compiler|runtime|tests|docs|cmake|examples|generated)/[\\w./*{},-]*)`")) {
      if (path.find_first_of("*{") != std::string::npos || path.find("NAME") != std::string::npos) continue;
      EXPECT_TRUE(fs::exists(top() / path)) << file << " names " << path;
    }
}

}  // namespace
}  // namespace sinter::house
