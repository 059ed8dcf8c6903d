// Includes go one way: runtime <- ir, targets <- ops <- import, passes, decisions <- layers <- plan <-
// kernels
// <- bundle <- driver <- report <- cli.
//
// "decisions" is what compiler/plan/decision.h has: data that the planner settles and all behind it read.
// "layers" and "bundle" are the two halves of compiler/emit: what one layer's C++ is written with, and what
// puts the layers of a plan together.
#include <map>
#include <set>

#include "house/source_tree.h"

namespace sinter::house {
namespace {

// A room may include itself and rooms of a smaller number.
const std::map<std::string, int> kRank = {{"runtime", 0}, {"targets", 1}, {"ir", 1},        {"ops", 2},
                                          {"import", 3},  {"passes", 3},  {"decisions", 3}, {"layers", 4},
                                          {"plan", 5},    {"kernels", 6}, {"bundle", 7},    {"driver", 8},
                                          {"report", 9},  {"cli", 10},    {"quantize", 4},  {"main.cpp", 11}};

// Single includes that go the other way, from .cpp files; a header may never do so.
const std::map<std::pair<std::string, std::string>, const char*> kExceptions = {
    {{"compiler/ir/graph.cpp", "ops/op.h"}, "a node's text holds its operator's name"},
};

// The room of a file given as it is included: "emit/code.h", "sinter/mac.h".
std::string room_of(const std::string& path) {
  const std::string folder = path.substr(0, path.find('/'));
  if (folder == "sinter") return "runtime";
  if (folder == "plan" && stem(path) == "decision") return "decisions";
  if (folder != "emit") return folder;
  static const std::set<std::string> bundle = {
      "bundle",           "bundle_folder", "calls",        "class_names", "code",
      "control",          "dispatch",      "interface",    "map",         "pipeline",
      "parallel_regions", "runner",        "shared_files", "state",       "strips"};
  return bundle.count(stem(path)) ? "bundle" : "layers";
}

TEST(Includes, GoOneWay) {
  std::set<std::pair<std::string, std::string>> used;
  for (const std::string& file : files("compiler", {".cpp", ".h"})) {
    const std::string room = room_of(file.substr(std::string("compiler/").size()));
    ASSERT_TRUE(kRank.count(room)) << file << " is in a room that this test doesn't know";
    for (const std::string& header : all_matches(read(top() / file), "^#include \"([^\"]+)\"")) {
      const std::string other = room_of(header);
      ASSERT_TRUE(kRank.count(other)) << file << " includes " << header << ", of an unknown room";
      if (other == room || kRank.at(other) < kRank.at(room)) continue;
      EXPECT_TRUE(kExceptions.count({file, header}))
          << file << " (" << room << ") includes " << header << " (" << other << "), which is not below it";
      used.insert({file, header});
    }
  }
  for (const auto& [edge, why] : kExceptions)
    EXPECT_TRUE(used.count(edge)) << edge.first << " no longer includes " << edge.second
                                  << ": take it out of the exceptions";
}

// Whoever links the driver decides what is shown, and where: nothing below the command line prints or exits.
TEST(Includes, OnlyTheCommandLinePrints) {
  for (const std::string& file : files("compiler", {".cpp", ".h"})) {
    if (file.starts_with("compiler/cli/") || file == "compiler/main.cpp") continue;
    // A bug in a fuzzer's build, and a signal's last words, are no results.
    if (file == "compiler/ir/error.cpp" || file == "compiler/driver/interrupt.cpp") continue;
    for (const std::string& word :
         all_matches(read(top() / file), "\\b(std::cout|std::cerr|fmt::print|std::exit|quick_exit)\\b"))
      ADD_FAILURE() << file << " says " << word;
  }
}

TEST(Includes, RuntimeStandsAlone) {
  for (const std::string& file : files("runtime", {".h"}))
    for (const std::string& header : all_matches(read(top() / file), "^#include \"([^\"]+)\"")) {
      EXPECT_EQ(header.rfind("sinter/", 0), 0u) << file << " includes " << header;
      EXPECT_TRUE(fs::exists(top() / "runtime" / header)) << file << " includes " << header;
    }
}

// Every header names what it includes from the compiler by its path from compiler/.
TEST(Includes, Exist) {
  for (const std::string& file : files("compiler", {".cpp", ".h"}))
    for (const std::string& header : all_matches(read(top() / file), "^#include \"([^\"]+)\""))
      EXPECT_TRUE(fs::exists(top() / "compiler" / header) || fs::exists(top() / "runtime" / header))
          << file << " includes " << header;
}

}  // namespace
}  // namespace sinter::house
