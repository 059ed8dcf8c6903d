// One call that fails, or a kill, at every place: no signal of ours, and the old bundle or the new one
// (tests/cli/faults.cpp is what lets them fail). And processes that come upon each other in one folder.
#include <cstdlib>
#include <set>

#include "program.h"
#include "report/report.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

class Faults : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "AddressSanitizer wants to be loaded first";
#endif
    for (const int k : {0, 1}) {
      save_text(
          fmt::format("g (float[2] x) => (float[2] y) <float[2] w = {{{}, 3.0}}> {{ y = Mul(x, w) }}", k + 2),
          path(fmt::format("m{}.onnx", k)));
      EXPECT_EQ(sinter_program(compile(k, "whole")).code, 0);
      whole_[k] = files_of(path("whole"));
      fs::remove_all(path("whole"));
    }
    ASSERT_NE(whole_[0], whole_[1]);
  }
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  // Two bundles of one name that differ in code, weights and headers.
  std::vector<std::string> compile(int k, const std::string& to) {
    std::vector<std::string> c = {
        "compile", path(fmt::format("m{}.onnx", k)), "--name", "m", "--target", "scalar", "-o", path(to)};
    if (k == 1) c.insert(c.end(), {"--weights", "file", "--threads", "2"});
    return c;
  }
  Finished with_fault(const std::string& fault, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"env", "LD_PRELOAD=" SINTER_FAULTS, "SINTER_FAULT=" + fault,
                                         "SINTER_FAULT_COUNT=" + path("count"), SINTER_EXECUTABLE});
    return run_process(arguments, true);
  }
  int calls(const std::string& kind) {
    EXPECT_EQ(with_fault(kind + ":0", compile(0, "out")).code, 0);
    return std::stoi(contents(path("count")));
  }
  std::set<std::string> names_beside() {
    std::set<std::string> names;
    for (const auto& e : fs::directory_iterator(folder_.path())) names.insert(e.path().filename().string());
    return names;
  }
  std::map<std::string, std::string> bundle() {
    auto files = files_of(path("out"));
    files.erase("mine/notes");
    std::erase_if(files, [](const auto& f) { return f.first.rfind(".sinter-", 0) == 0; });  // of a killed one
    return files;
  }
  // Compiles the two models in turn over each other, each time with another call that fails.
  void fail(const std::string& kind, int first, int step, int most) {
    const int n = std::min(calls(kind), most);
    EXPECT_GT(n, 50);
    const auto beside = names_beside();
    for (int i = first; i <= n; i += step) {
      const auto before = bundle();
      const int k = before == whole_[0] ? 1 : 0;
      const Finished f = with_fault(fmt::format("{}:{}", kind, i), compile(k, "out"));
      const auto after = bundle();
      // 1 and 127: libraries that end the process themselves while they are loaded.
      EXPECT_TRUE(f.code == 0 || f.code == 3 || f.code == 5 || f.code == 127 || (f.code == 1 && i < 100))
          << kind << " " << i << ": " << f.code << f.output;
      EXPECT_NE(f.output, "") << kind << " " << i;
      EXPECT_TRUE(after == before || after == whole_[k]) << kind << " " << i << ": a half bundle\n"
                                                         << f.output;
      EXPECT_TRUE(f.code != 0 || after == whole_[k]) << kind << " " << i;
      EXPECT_EQ(names_beside(), beside) << kind << " " << i;
    }
  }
  void kill(int first, int step, bool at_once) {
    const int n = calls("kill");
    int old = 0, fresh = 0, unfinished = 0;
    for (int i = first; i <= n; i += step) {
      const auto before = bundle();
      const int k = before == whole_[0] ? 1 : 0;
      const Finished f = with_fault(fmt::format("kill:{}", i), compile(k, "out"));
      const auto after = bundle();
      if (after == before) {
        ++old;
      } else if (after == whole_[k]) {
        ++fresh;
      } else {  // nothing links without NAME.cpp
        EXPECT_FALSE(at_once || after.count("m.cpp")) << "killed at call " << i;
        ++unfinished;
        expect({"run", "--bundle", path("out")}, 2, "compile the model again");
        EXPECT_EQ(sinter_program(compile(k, "out")).code, 0);
        EXPECT_EQ(bundle(), whole_[k]);
      }
    }
    EXPECT_GT(old, 0);
    EXPECT_EQ(sinter_program(compile(0, "out")).code, 0);
    EXPECT_EQ(bundle(), whole_[0]);
    for (const std::string& name : names_beside())
      EXPECT_EQ(name.find(".sinter-"), std::string::npos) << name;
  }
  void pairs(int count) {
    for (int i = 0; i < count; ++i) {
      std::vector<std::vector<std::string>> both;
      for (const int k : {0, 1}) {
        both.push_back(compile(k, "out"));
        both.back().insert(both.back().begin(), SINTER_EXECUTABLE);
      }
      for (const Finished& f : run_processes(both, 2)) EXPECT_EQ(f.code, 0) << f.output;
      const auto after = bundle();
      EXPECT_TRUE(after == whole_[0] || after == whole_[1]);
      if (i % 3 == 0) fs::remove_all(path("out"));
    }
  }
  void put_folder_of_mine() {
    fs::create_directories(path("out/mine"));
    put(path("out/mine/notes"), "mine");
  }
  std::map<std::string, std::string> whole_[2];
  TemporaryFolder folder_;
};

TEST_F(Faults, SomeAllocationsFail) { fail("memory", 1, 97, 6000); }
TEST_F(Faults, EachAllocationFails) { fail("memory", 1, 1, 6000); }
TEST_F(Faults, SomeCallsFail) { fail("io", 1, 7, 10000); }
TEST_F(Faults, EachCallFails) { fail("io", 1, 1, 10000); }
TEST_F(Faults, SomeCallsFailFileByFile) {
  put_folder_of_mine();
  fail("io", 2, 7, 10000);
}
TEST_F(Faults, EachCallFailsFileByFile) {
  put_folder_of_mine();
  fail("io", 1, 1, 10000);
}
TEST_F(Faults, SomeKills) { kill(1, 9, true); }
TEST_F(Faults, KillsAtEachCall) { kill(1, 1, true); }
TEST_F(Faults, SomeKillsFileByFile) {
  put_folder_of_mine();
  kill(3, 11, false);
}
TEST_F(Faults, KillsAtEachCallFileByFile) {
  put_folder_of_mine();
  kill(1, 1, false);
}
TEST_F(Faults, TwoCompilesAtOnce) { pairs(4); }
TEST_F(Faults, FortyPairsOfCompilesAtOnce) {
  pairs(40);
  put_folder_of_mine();
  pairs(10);
}

// Both build the same program.
TEST_F(Faults, TwoRunsOfOneBundleAtOnce) {
  const std::string x = path("x.npy");
  put(x, std::string("\x93NUMPY\x01\x00\x46\x00", 10) +
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" + std::string(12, ' ') + "\n" +
             std::string("\0\0\x80\x3f\0\0\x80\x3f", 8));
  ASSERT_EQ(sinter_program(compile(0, "out")).code, 0);
  const std::vector<std::string> run = {SINTER_EXECUTABLE, "run", "--bundle", path("out"), "--in", x};
  for (const Finished& f : run_processes({run, run, run}, 3)) {
    EXPECT_EQ(f.code, 0) << f.output;
    EXPECT_NE(f.output.find("2 3"), std::string::npos) << f.output;
  }
}

TEST_F(Faults, AnInterruptLeavesNothing) {
  fs::create_directory(path("tmp"));
  setenv("TMPDIR", path("tmp").c_str(), 1);
  for (const char* signal : {"INT", "TERM"}) {
    const Finished f =
        run_process({"timeout", "-s", signal, "0.4", SINTER_EXECUTABLE, "verify", path("m0.onnx")}, true);
    EXPECT_EQ(f.code, 124) << f.output;  // it was still at it
    EXPECT_TRUE(fs::is_empty(path("tmp"))) << signal;
  }
  unsetenv("TMPDIR");
}

TEST_F(Faults, AFullDeviceIsAnError) {
  const auto shell = [](const std::string& command) { return run_process({"sh", "-c", command}, true); };
  const std::string sinter = SINTER_EXECUTABLE, model = path("m0.onnx");
  for (const std::string& c : {std::string("ops"), std::string("--help"),
                               "compile " + model + " -o " + path("full"), "inspect " + model}) {
    const Finished f = shell(sinter + " " + c + " >/dev/full");
    EXPECT_EQ(f.code, 3) << c << f.output;
    EXPECT_NE(f.output.find("No space left on device"), std::string::npos) << c << f.output;
  }
  for (const char* option : {"--json", "--html"}) {
    if (option == std::string("--html") && report_file("libraries").empty()) continue;  // is refused
    const Finished f = shell(sinter + " inspect " + model + " " + option + " /dev/full");
    EXPECT_EQ(f.code, 3);
    EXPECT_NE(f.output.find("cannot write \"/dev/full\": No space left on device"), std::string::npos)
        << f.output;
    put(path("kept"), "kept");
    EXPECT_EQ(with_fault("io:0", {"inspect", model, option, path("kept")}).code, 0);
    const int n = std::stoi(contents(path("count")));
    for (int i = n; i > 0 && i > n - 12; --i) {
      put(path("kept"), "kept");
      const Finished g = with_fault(fmt::format("io:{}", i), {"inspect", model, option, path("kept")});
      EXPECT_TRUE(contents(path("kept")) == "kept" || contents(path("kept")).size() > 500) << g.output;
    }
    for (const std::string& name : names_beside())
      EXPECT_EQ(name.find(".partial"), std::string::npos) << name;
  }
}

// Neither while libraries are loaded nor later does a command wait for ever where memory is short.
TEST_F(Faults, LittleMemoryDoesNotHang) {
  for (const char* command : {"--help", "ops", "compile $M -o $O"})
    for (const int kilobytes : {100000, 150000}) {
      const Finished f =
          run_process({"env", "M=" + path("m0.onnx"), "O=" + path("little"), "timeout", "60", "sh", "-c",
                       fmt::format("ulimit -v {}; {} {} >/dev/null", kilobytes, SINTER_EXECUTABLE, command)},
                      true);
      // 1 and 127: libraries that end the process themselves while they are loaded.
      EXPECT_TRUE(f.code == 0 || f.code == 3) << command << " " << kilobytes << ": " << f.code << f.output;
    }
}

}  // namespace
}  // namespace sinter
