// What the house rules ask of files: short, opened by their idea, and listed in their table.
#include <set>

#include "house/source_tree.h"

namespace sinter::house {
namespace {

constexpr int64_t kMaxLines = 600;

TEST(Files, AreShort) {
  for (const char* folder : {"compiler", "runtime", "tests", "examples"})
    for (const std::string& file : files(folder, {".cpp", ".h", ".cc"})) {
      const std::string text = read(top() / file);
      EXPECT_LE(std::count(text.begin(), text.end(), '\n'), kMaxLines) << file;
    }
}

// A source file opens with what it is about; a .cpp may leave that to the header of its name.
TEST(Files, OpenWithTheirIdea) {
  for (const char* folder : {"compiler", "runtime"})
    for (const std::string& file : files(folder, {".cpp", ".h"})) {
      if (file.ends_with(".cpp") && fs::exists((top() / file).replace_extension(".h"))) continue;
      const std::string first = read(top() / file).substr(0, 3);
      EXPECT_TRUE(first == "// " || first == "/* ") << file;
    }
}

// The names in `table`, each once, are the files of `folder` that define the function of their name; other
// .cpp files belong to a header of their name or are `spine`.
void expect_listed(const std::string& folder, const std::vector<std::string>& table,
                   const std::string& before, const std::string& after, const std::set<std::string>& spine) {
  const std::set<std::string> listed(table.begin(), table.end());
  EXPECT_EQ(listed.size(), table.size()) << folder << ": a name is listed twice";
  std::set<std::string> there;
  for (const std::string& file : files(folder, {".cpp"})) {
    const std::string name = stem(file), text = read(top() / file);
    there.insert(name);
    if (text.find(before + name + after) != std::string::npos && !spine.count(name)) {
      EXPECT_TRUE(listed.count(name)) << file << " is not in the table";
    } else {
      EXPECT_FALSE(listed.count(name)) << file << " is listed, but does not define " << before << name;
      EXPECT_TRUE(spine.count(name) || fs::exists((top() / file).replace_extension(".h")))
          << file << " is neither in the table nor the code of a header";
    }
  }
  for (const std::string& name : listed) EXPECT_TRUE(there.count(name)) << folder << "/" << name << ".cpp";
}

TEST(Tables, EveryFileOfOps) {
  const std::string def = read(top() / "compiler/ops/ops.def");
  expect_listed("compiler/ops", all_matches(def, "^OPS\\((\\w+)\\)"), "std::vector<Op>& ops_", "()",
                {"ops", "infer", "evaluate", "ranges", "append"});
}

TEST(Tables, EveryFileOfKernels) {
  const std::string def = read(top() / "compiler/kernels/kernels.def");
  expect_listed("compiler/kernels", all_matches(def, "^KERNELS\\((\\w+)\\)"), "std::vector<Kernel>& kernels_",
                "()", {"kernels", "choose"});
}

// The table's rows end in the pass's function; some run twice under two names.
TEST(Tables, EveryFileOfPasses) {
  std::vector<std::string> table =
      all_matches(read(top() / "compiler/passes/passes.cpp"), "\\b(\\w+)\\},?(?=\\s*(?:\\{\"|\\};))");
  std::sort(table.begin(), table.end());
  table.erase(std::unique(table.begin(), table.end()), table.end());
  expect_listed("compiler/passes", table, "\nbool ", "(Graph& ", {"passes", "permute_region"});
}

// The rooms inside ops/ and kernels/ stand in docs/design.md, and their tests have the same.
TEST(Tables, EveryRoomIsTold) {
  const std::string design = read(top() / "docs/design.md");
  std::set<std::string> rooms;
  for (const char* folder : {"compiler/ops", "compiler/kernels", "tests/ops", "tests/emit"})
    for (const auto& entry : fs::directory_iterator(top() / folder)) {
      if (!entry.is_directory()) continue;
      const std::string room = entry.path().filename().string();
      if (std::string_view(folder).starts_with("compiler")) rooms.insert(room);
      EXPECT_TRUE(rooms.count(room)) << folder << "/" << room << " is no room of the compiler";
    }
  for (const std::string& room : rooms)
    EXPECT_NE(design.find("| `" + room + "/` |"), std::string::npos) << room;
}

TEST(Tables, EveryTestFolderIsBuilt) {
  const std::string cmake = read(top() / "tests/CMakeLists.txt");
  for (const std::string& file : files("tests", {".cc"})) {
    if (fs::exists(top() / fs::path(file).parent_path() / "CMakeLists.txt")) continue;
    const std::string folder = std::next(fs::path(file).begin())->string();
    EXPECT_TRUE(std::regex_search(cmake, std::regex("\\b" + folder + "\\b")))
        << file << ": tests/CMakeLists.txt does not name its folder";
  }
}

}  // namespace
}  // namespace sinter::house
