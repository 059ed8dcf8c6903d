// sinter manual: the help as a man page and as completions of shells.
#include <regex>

#include "program.h"

namespace sinter {
namespace {

const std::vector<std::string> kCommands = {"compile", "build", "run",      "verify",  "inspect", "bench",
                                            "tune",    "ops",   "quantize", "targets", "passes",  "manual"};

std::vector<std::string> options_in_help(const std::string& command) {
  const std::string help = sinter_program({command, "--help"}).output;
  const std::regex option("^  (?:-.,)?(--[a-z][a-z0-9-]*)", std::regex::multiline);
  std::vector<std::string> all;
  for (std::sregex_iterator i(help.begin(), help.end(), option), end; i != end; ++i) all.push_back((*i)[1]);
  return all;
}

TEST(Manual, HasEveryCommandAndOption) {
  const std::string man = sinter_program({"manual", "man"}).output;
  const std::string fish = sinter_program({"manual", "fish"}).output;
  const std::string zsh = sinter_program({"manual", "zsh"}).output;
  for (const std::string& command : kCommands) {
    EXPECT_NE(man.find(".SS sinter " + command + "\n"), std::string::npos) << command;
    for (const std::string& o : options_in_help(command)) {
      if (o == "--help") continue;
      EXPECT_NE(man.find(std::regex_replace(o, std::regex("-"), "\\-")), std::string::npos) << o;
      EXPECT_NE(fish.find(fmt::format("from {}' -l {}", command, o.substr(2))), std::string::npos) << o;
      EXPECT_NE(zsh.find("'*" + o), std::string::npos) << o;
    }
  }
}

TEST(Manual, ManPageIsCleanForGroff) {
  if (find_program("groff").empty()) GTEST_SKIP() << "no groff";
  const TemporaryFolder folder;
  const std::string page = (folder.path() / "sinter.1").string();
  expect({"manual", "man", "-o", page}, 0, "");
  const Finished f = run_process({"groff", "-man", "-Tutf8", "-wall", "-z", page}, true);
  EXPECT_EQ(f.code, 0);
  EXPECT_EQ(f.output, "");
}

TEST(Manual, BashCompletes) {
  if (find_program("bash").empty()) GTEST_SKIP() << "no bash";
  const TemporaryFolder folder;
  const std::string script = (folder.path() / "sinter").string();
  expect({"manual", "bash", "-o", script}, 0, "");
  const std::pair<std::string, std::string> cases[] = {
      {"(sinter com)", "compile"},
      {"(sinter verify --see)", "--seed"},
      {"(sinter compile net.onnx --target cortex-a72)", "cortex-a72"},
      {"(sinter compile net.onnx --target cortex-a5)", "cortex-a53 cortex-a55"},
      {"(sinter run net)", ""},  // files: bash's own
  };
  for (const auto& [words, want] : cases) {
    const std::string command = ". '" + script + "'; COMP_WORDS=" + words +
                                "; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _sinter; echo \"${COMPREPLY[*]}\"";
    EXPECT_EQ(run_process({"bash", "-c", command}, true).output, want + "\n") << words;
  }
}

TEST(Manual, OtherKindsAreWrongUsage) { expect({"manual", "tcsh"}, 2, "tcsh"); }

}  // namespace
}  // namespace sinter
