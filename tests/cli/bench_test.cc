// sinter bench: several numbers of threads, chosen cores, the program that --export writes. No test depends
// on a time.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "driver/inputs.h"
#include "program.h"
#include "sinter/runner_bench.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Bench : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  void save_nets() {
    save_text(
        "g (float[1,16,24,24] x, int64[3] i) => (float[1,24,24,24] y, float[3] z)\n"
        "<int64[4] s = {24, 16, 3, 3}, float[4] t = {1, 2, 4, 8}> {\n"
        "w = ConstantOfShape<value=float[1]{0.03}>(s)\n"
        "a = Conv<pads=[1,1,1,1]>(x, w)  y = Relu(a)  z = Gather(t, i) }",
        path("a.onnx"));
    save_text("g (float[N,8] x) => (float[N,8] y) { b = Exp(x) y = Softmax(b) }", path("b.onnx"));
  }
  json read(const std::string& name) { return json::parse(contents(path(name))); }
  TemporaryFolder folder_;
};

TEST_F(Bench, SeveralNumbersOfThreadsAreColumns) {
  save_nets();
  expect({"bench", path("a.onnx"), "--threads", "1,2,3", "--repeat", "2", "--json", path("b.json")}, 0,
         "3 threads  min ");
  const json j = read("b.json");
  ASSERT_EQ(j["by_threads"].size(), 3u);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(j["by_threads"][k]["threads"], k + 1);
    EXPECT_EQ(j["by_threads"][k]["checksum"], j["checksum"]);
    EXPECT_GT(j["by_threads"][k]["times_as_fast"].get<double>(), 0);
  }
  EXPECT_EQ(j["by_threads"][0]["times_as_fast"], 1.0);
  EXPECT_EQ(j["min_us"], j["by_threads"][0]["min_us"]);
  for (const auto& l : j["layers"]) {
    EXPECT_EQ(l["min_us_by_threads"].size(), 3u) << l;
    EXPECT_EQ(l["min_us_by_threads"][0], l["min_us"]);
  }
  const std::string table =
      sinter_program({"bench", path("a.onnx"), "--threads", "1,2", "--repeat", "1"}).output;
  EXPECT_TRUE(std::regex_search(table, std::regex("layer +kernel +1 thread +2 threads"))) << table;
}

TEST_F(Bench, OneNumberIsWhatItWas) {
  save_nets();
  expect({"bench", path("b.onnx"), "--dim", "N=4", "--repeat", "2", "--json", path("b.json")}, 0, "min ");
  const json j = read("b.json");
  EXPECT_FALSE(j.contains("by_threads"));
  EXPECT_EQ(j["threads"], 1);
  EXPECT_GT(j["peak_bytes"].get<int64_t>(), j["arena_bytes"].get<int64_t>());
}

// What follows the numbers is not one of them.
TEST_F(Bench, NumbersOfThreadsEndBeforeTheModel) {
  save_nets();
  expect({"bench", "--threads", "1,2", path("a.onnx"), "--repeat", "1"}, 0, "2 threads  min ");
  expect({"bench", "--threads", "2", path("a.onnx"), "--repeat", "1"}, 0, "min ");
}

TEST_F(Bench, RunsOnTheCoresThatAreNamed) {
  save_nets();
  const std::vector<int> usable = runner::usable_cores();
  ASSERT_FALSE(usable.empty());
  const std::string core = std::to_string(usable.back());
  expect(
      {"bench", path("b.onnx"), "--dim", "N=4", "--repeat", "1", "--cores", core, "--json", path("b.json")},
      0, "on the cores " + core + "\n");
  EXPECT_EQ(read("b.json")["cores"], core);
  expect({"bench", path("b.onnx"), "--dim", "N=4", "--cores", "4001"}, 2,
         "there is no core 4001; here are cores ");
  expect({"bench", path("b.onnx"), "--dim", "N=4", "--cores", "some"}, 2,
         "give big, little or a list like 0,2-3");
}

TEST_F(Bench, WrongUsage) {
  save_nets();
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"bench", path("b.onnx"), "--dim", "N=4"});
    return more;
  };
  expect(with({"--threads", "0"}), 2, "--threads");
  expect(with({"--threads", "1,65"}), 2, "--threads");
  expect(with({"--threads", "2,1,2"}), 2, "--threads: 2 is named twice");
  expect(with({"--export", path("p"), "--on", "ssh:board"}), 2, "");
  expect(with({"--export", path("p"), "--cores", "big"}), 2, "is told --cores, --repeat and --json where it");
  expect(with({"--export", path("p"), "--target", "cortex-a72,cortex-a76"}), 2, "is for one --target");
  expect(with({"--export", path("p"), "--weights", "file"}), 2, "the weights are in the program");
  expect({"bench", path("a.onnx"), path("b.onnx")}, 2, "--export makes a program that");
  expect({"bench", path("b.onnx"), "--export", path("p")}, 3, "--dim");
  expect({"bench", path("a.onnx"), path("b.onnx"), "--export", path("p"), "--dim", "N=1"}, 2,
         "say which one");
}

// What the kernel tells of cores, in a folder of ours.
TEST_F(Bench, BigAndLittleAreWhatTheKernelTells) {
  const auto board = [&](const std::string& name, const std::vector<int>& capacities, const char* file) {
    for (size_t i = 0; i < capacities.size(); ++i) {
      const fs::path at = folder_.path() / name / fmt::format("cpu{}{}", i, file);
      fs::create_directories(at.parent_path());
      put(at, std::to_string(capacities[i]) + "\n");
    }
    return path(name);
  };
  const std::vector<int> six = {0, 1, 2, 3, 4, 5};
  const struct {
    std::vector<runner::CoreKind> kinds;
    const char *words, *cores, *problem;
  } cases[] = {
      {runner::core_kinds(board("rk", {446, 446, 446, 446, 1024, 1024}, "/cpu_capacity"), six), "big", "4-5",
       ""},
      {runner::core_kinds(path("rk"), six), "little", "0-3", ""},
      {runner::core_kinds(path("rk"), {1, 2, 5}), "little", "1-2", ""},
      {runner::core_kinds(path("rk"), six), "5,0-1", "0-1,5", ""},
      {runner::core_kinds(path("rk"), six), "1-6", "",
       "--cores 1-6: there is no core 6; here are cores 0-3 (capacity 446) and 4-5 (capacity 1024)"},
      {runner::core_kinds(path("rk"), {0, 1}), "big", "",
       "--cores big: all cores are alike; here are cores 0-1"},
      {runner::core_kinds(board("old", {1800000, 1416000, 1800000}, "/cpufreq/cpuinfo_max_freq"), {0, 1, 2}),
       "big", "0,2", ""},
      {runner::core_kinds(board("three", {300, 700, 1024}, "/cpu_capacity"), {0, 1, 2}), "big", "2", ""},
      {runner::core_kinds(path("three"), {0, 1, 2}), "2-1", "", "--cores 2-1: give big, little or a list"},
      {runner::core_kinds(path("three"), {0, 1, 2}), "1,", "", "--cores 1,: give big, little or a list"},
      {runner::core_kinds(path("none"), {0, 1}), "little", "", "--cores little: all cores are alike"},
  };
  for (const auto& c : cases) {
    std::string problem;
    EXPECT_EQ(runner::list_text(runner::chosen_cores(c.words, c.kinds, problem)), c.cores) << c.words;
    EXPECT_EQ(problem.substr(0, std::string_view(c.problem).size()), c.problem);
    EXPECT_EQ(problem.empty(), std::string_view(c.problem).empty()) << problem;
  }
}

TEST_F(Bench, HeatIsWhatTheKernelTells) {
  const auto write = [&](const std::string& file, const char* text) {
    fs::create_directories((folder_.path() / file).parent_path());
    put(path(file), text);
  };
  EXPECT_EQ(runner::held_back(path("t"), path("firmware")), -1);
  EXPECT_EQ(runner::hottest(path("t")), 0);
  EXPECT_EQ(runner::throttle_count(path("c")), -1);
  write("t/cooling_device0/type", "pwm-fan\n"), write("t/cooling_device0/cur_state", "3\n");
  EXPECT_EQ(runner::held_back(path("t"), path("firmware")), -1);
  write("t/cooling_device1/type", "cpufreq-cpu0\n"), write("t/cooling_device1/cur_state", "0\n");
  EXPECT_EQ(runner::held_back(path("t"), path("firmware")), 0);
  write("firmware", "50000\n");  // it was, since it was switched on
  EXPECT_EQ(runner::held_back(path("t"), path("firmware")), 0);
  write("firmware", "50004\n");
  EXPECT_EQ(runner::held_back(path("t"), path("firmware")), 1);
  write("firmware", "0\n"), write("t/cooling_device1/cur_state", "2\n");
  EXPECT_EQ(runner::held_back(path("t"), path("firmware")), 1);
  write("t/thermal_zone0/temp", "48500\n"), write("t/thermal_zone1/temp", "61250\n");
  EXPECT_EQ(runner::hottest(path("t")), 61250);
  write("c/cpu0/thermal_throttle/core_throttle_count", "2\n");
  write("c/cpu1/thermal_throttle/core_throttle_count", "5\n");
  EXPECT_EQ(runner::throttle_count(path("c")), 7);
  const std::string lines = runner::board_lines({1500000, 1800000, 61250, 1});
  EXPECT_EQ(lines,
            "the core ran at 1500 MHz of 1800: throttled, or its governor holds it back\n"
            "the hottest place has 61.2 degrees\n"
            "the cores are held back, by heat or by a weak supply: the times say little\n");
}

// The program's inputs are those of sinter bench, for each element type that it takes.
TEST(BenchProgram, FillsInputsAsTheDriverDoes) {
  for (const DType t :
       {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kU8, DType::kI16, DType::kU16,
        DType::kI32, DType::kU32, DType::kI64, DType::kU64, DType::kBool}) {
    std::mt19937 random = seeded::of_input(3);
    const Tensor want = random_tensor(t, {5, 7}, random);
    TensorFile got;
    ASSERT_TRUE(runner::fill({"x", "x", static_cast<int>(onnx_of(t)), {{0, 5}, {7, 7}}, want.bytes()},
                             {3, false, false, 0}, got));
    EXPECT_EQ(got.dims, want.shape());
    EXPECT_EQ(std::memcmp(got.data.data(), want.data(), static_cast<size_t>(want.bytes())), 0) << name_of(t);
  }
}

void check_program(const std::vector<std::string>& command, const json& want_a, const json& want_b,
                   const std::string& file) {
  std::vector<std::string> all = command;
  all.insert(all.end(), {"--repeat", "1", "--layers", "--threads", "2,1", "--json", file});
  const Finished f = run_process(all, true);
  ASSERT_EQ(f.code, 0) << f.output;
  const json j = json::parse(contents(file));
  ASSERT_EQ(j["nets"].size(), 2u);
  const std::pair<const char*, const json*> nets[] = {{"a", &want_a}, {"small", &want_b}};
  for (size_t k = 0; k < 2; ++k) {
    const json& n = j["nets"][k];
    EXPECT_EQ(n["name"], nets[k].first);
    EXPECT_EQ(n["checksum"], (*nets[k].second)["checksum"]) << n["name"];
    EXPECT_EQ(n["runs"][0]["threads"], 2);
    EXPECT_EQ(n["runs"].size(), 2u);
    ASSERT_EQ(n["layers"].size(), (*nets[k].second)["layers"].size());
    for (size_t i = 0; i < n["layers"].size(); ++i) {
      EXPECT_EQ(n["layers"][i]["min_us"].size(), 2u);
      EXPECT_EQ(n["layers"][i]["flops"], (*nets[k].second)["layers"][i]["flops"]);
    }
    EXPECT_NE(f.output.find(n["checksum"].get<std::string>()), std::string::npos) << f.output;
  }
}

TEST_F(Bench, AnExportedProgramComputesTheBundlesBits) {
  save_nets();
  std::vector<std::pair<std::string, std::vector<std::string>>> targets = {{"host", {}}};
  for (const char* emulator : {"qemu-aarch64-static", "qemu-aarch64"})
    if (!find_program("aarch64-linux-gnu-g++").empty() && !find_program(emulator).empty() &&
        targets.size() < 2)
      targets.push_back({"cortex-a72", {find_program(emulator)}});
  for (const auto& [target, before] : targets) {
    expect({"bench", path("a.onnx"), "--target", target, "--repeat", "1", "--json", path("a.json")}, 0,
           "min ");
    expect({"bench", path("b.onnx"), "--target", target, "--dim", "N<=4", "--repeat", "1", "--json",
            path("b.json")},
           0, "min ");
    expect({"bench", path("a.onnx"), "small=" + path("b.onnx"), "--dim", "small:N<=4", "--target", target,
            "--threads", "1,2", "--export", path("nets")},
           0, "2 nets (a, small), arena ");
    std::vector<std::string> command = before;
    command.push_back(path("nets"));
    check_program(command, read("a.json"), read("b.json"), path("nets.json"));
    if (!before.empty()) continue;
    // It stands alone: static, with nothing beside it.
    EXPECT_EQ(contents(path("nets")).find("libstdc++.so"), std::string::npos);
  }
}

TEST_F(Bench, AnExportedProgramTellsWhatIsWrong) {
  // Of the seeded integers, 0 and 1, one is no index.
  save_text("g (int64[40] i) => (float[40] y) <float[1] w = {2}> { y = Gather(w, i) }", path("wrong.onnx"));
  save_text("g (float[4] x) => (float[4] y) { y = Relu(x) }", path("right.onnx"));
  expect({"bench", path("wrong.onnx"), path("right.onnx"), "--export", path("nets")}, 0, "2 nets");
  const auto says = [&](std::vector<std::string> arguments, int code, const char* said) {
    arguments.insert(arguments.begin(), path("nets"));
    const Finished f = run_process(arguments, true);
    EXPECT_EQ(f.code, code) << f.output;
    EXPECT_NE(f.output.find(said), std::string::npos) << f.output << "\nwanted: " << said;
  };
  says({"--repeat", "1"}, 6, "bench_wrong: error ");
  says({"--repeat", "1"}, 6, "right    ");
  says({"--repeat", "1", "right"}, 0, "right    ");
  says({"left"}, 2, "there is no net left");
  says({"--threads", "2"}, 2, "numbers from 1 to 1");
  says({"--repeat", "0"}, 2, "--repeat: at least 1");
  says({"--json"}, 2, "unknown, or without its value: --json");
  says({"--help"}, 0, "nets for ");
  says({"--cores", "4001"}, 7, "there is no core 4001");
  says({"--repeat", "1", "right", "--json", path("no/where")}, 2, "can't be written");
}

}  // namespace
}  // namespace sinter
