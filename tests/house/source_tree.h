// The source tree as the tests of the house rules read it: text files below the top of the repository.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace sinter::house {

namespace fs = std::filesystem;

inline fs::path top() { return SINTER_SOURCE_DIR; }

inline std::string read(const fs::path& path) {
  std::ifstream f(path, std::ios::binary);
  EXPECT_TRUE(f) << path;
  std::ostringstream s;
  s << f.rdbuf();
  return s.str();
}

// Files below `folder` (relative to the top, as results are) with one of the endings, sorted.
inline std::vector<std::string> files(const std::string& folder, const std::vector<std::string>& endings) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(top() / folder))
    if (entry.is_regular_file() &&
        std::count(endings.begin(), endings.end(), entry.path().extension().string()))
      found.push_back(fs::relative(entry.path(), top()).generic_string());
  std::sort(found.begin(), found.end());
  EXPECT_FALSE(found.empty()) << folder;
  return found;
}

// What the first group of `pattern` matches, at every place.
inline std::vector<std::string> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern, std::regex::multiline);
  std::vector<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), expression), end; i != end; ++i)
    found.push_back((*i)[1].str());
  return found;
}

inline std::string stem(const std::string& path) { return fs::path(path).stem().string(); }

}  // namespace sinter::house
