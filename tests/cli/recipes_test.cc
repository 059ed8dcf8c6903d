// The pages on other systems' builds: their snippets compile, where the packages are there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "program.h"

namespace sinter {
namespace {

std::string page(const std::string& name) { return contents(SINTER_SOURCE_DIR "/docs/" + name); }

// The blocks of a language.
std::vector<std::string> snippets(const std::string& text, const std::string& language) {
  std::vector<std::string> blocks;
  const std::string begin = "```" + language + "\n";
  for (size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    const size_t end = text.find("```", at);
    blocks.push_back(text.substr(at, end - at));
    at = end;
  }
  return blocks;
}

class Recipes : public testing::Test {
 protected:
  void SetUp() override {
    expect({"compile", SINTER_SOURCE_DIR "/examples/digits/digits.onnx", "-o", path("net"), "--dim", "N=1"},
           0, "");
  }
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  // The page's only program, with these flags; it must compile without a warning.
  void expect_program(const std::string& name, const std::vector<std::string>& flags) {
    const std::vector<std::string> programs = snippets(page(name), "cpp");
    ASSERT_EQ(programs.size(), 1u) << name;
    put(path("main.cpp"), programs[0]);
    std::vector<std::string> line = {"c++",     "-std=c++17",       "-Wall", "-Wextra",
                                     "-Werror", "-I" + path("net"), "-c",    path("main.cpp"),
                                     "-o",      path("main.o")};
    line.insert(line.end(), flags.begin(), flags.end());
    const Finished f = run_process(line, true);
    EXPECT_EQ(f.code, 0) << f.output;
  }
  TemporaryFolder folder_;
};

TEST_F(Recipes, Zephyr) {
  expect_program("zephyr.md", {});  // it includes nothing of Zephyr
  // What the module compiles is there.
  const std::string cmake = snippets(page("zephyr.md"), "cmake").at(0);
  for (const char* file : {"digits.cpp", "digits_weights.S"}) {
    EXPECT_NE(cmake.find(file), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(path(std::string("net/") + file)));
  }
}

TEST_F(Recipes, GStreamer) {
  const Finished found =
      run_process({"pkg-config", "--cflags", "gstreamer-app-1.0", "gstreamer-video-1.0"}, true);
  if (found.code != 0) GTEST_SKIP() << "no gstreamer-app-1.0 (Debian: libgstreamer-plugins-base1.0-dev)";
  std::istringstream words(found.output);
  expect_program("gstreamer.md", {std::istream_iterator<std::string>(words), {}});
}

TEST_F(Recipes, Ros2) {
  const char* prefix = std::getenv("AMENT_PREFIX_PATH");
  const std::string root = prefix ? std::string(prefix).substr(0, std::string(prefix).find(':')) : "";
  if (root.empty() || !std::filesystem::exists(root + "/include/rclcpp"))
    GTEST_SKIP() << "no ROS 2 (source its setup.bash first)";
  std::vector<std::string> flags = {"-isystem", root + "/include"};
  for (const auto& e : std::filesystem::directory_iterator(root + "/include"))
    if (e.is_directory()) flags.insert(flags.end(), {"-isystem", e.path().string()});
  expect_program("ros2.md", flags);
}

TEST_F(Recipes, Yocto) {
  const Finished sum = run_process({"md5sum", SINTER_SOURCE_DIR "/LICENSE"}, true);
  ASSERT_EQ(sum.code, 0) << sum.output;
  EXPECT_NE(page("yocto.md").find("md5=" + sum.output.substr(0, 32)), std::string::npos) << sum.output;
}

}  // namespace
}  // namespace sinter
