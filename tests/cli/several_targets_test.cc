// One bundle for several cores: each path computes the bits that the single target's bundle does, under an
// emulator of a core of that kind; equal weights lie there once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "program.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

const std::string kExamples = SINTER_SOURCE_DIR "/examples/";

class SeveralTargets : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  nlohmann::json map_of(const std::string& folder, const std::string& name) {
    return nlohmann::json::parse(contents(path(folder + "/" + name + ".map")));
  }
  void compile(const std::string& model, const std::string& target, const std::string& to,
               const std::vector<std::string>& more) {
    std::vector<std::string> line = {"compile", kExamples + model, "--target", target, "-o", path(to)};
    line.insert(line.end(), more.begin(), more.end());
    expect(line, 0, "");
  }
  // Runs the bundle of a folder on a picture, on the machine's core or an emulated `cpu`; the first output's
  // file.
  std::string run(const std::string& folder, const std::string& picture, const std::string& options,
                  const char* cpu) {
    const std::string out = path(folder + ".npy");
    if (cpu) setenv("QEMU_CPU", cpu, 1);
    expect({"run", "--bundle", path(folder), "--in", kExamples + picture, "--image", options, "--out", out},
           0, "");
    unsetenv("QEMU_CPU");
    return contents(out);
  }
  TemporaryFolder folder_;
};

TEST_F(SeveralTargets, EachPathHasTheBitsOfItsOwnBundle) {
  if (find_program("aarch64-linux-gnu-g++").empty() || find_program("qemu-aarch64-static").empty())
    GTEST_SKIP() << "no aarch64-linux-gnu-g++ or no qemu-aarch64-static";
  const std::string image = "image: order=gray scale=1/240";
  const std::vector<std::string> options = {"--dim", "N<=4",
                                            "--fp16"};  // the paths differ, in their weights too
  compile("digits/digits.onnx", "cortex-a76,cortex-a72", "both", options);
  compile("digits/digits.onnx", "cortex-a72", "a72", options);
  compile("digits/digits.onnx", "cortex-a76", "a76", options);
  const std::string old = run("both", "digits/digit3.png", image, "cortex-a72"),
                    fresh = run("both", "digits/digit3.png", image, "cortex-a76");
  EXPECT_NE(old, fresh);
  EXPECT_EQ(old, run("a72", "digits/digit3.png", image, "cortex-a72"));
  EXPECT_EQ(fresh, run("a76", "digits/digit3.png", image, "cortex-a76"));
  EXPECT_EQ(fresh, run("both", "digits/digit3.png", image, "max"));
  const nlohmann::json map = map_of("both", "digits");
  EXPECT_EQ(map["target"], "cortex-a72,cortex-a76");
  EXPECT_EQ(map["arena_bytes"], std::max(map_of("a72", "digits")["arena_bytes"].get<int64_t>(),
                                         map_of("a76", "digits")["arena_bytes"].get<int64_t>()));
}

// Without halves the two multiply the same floats, packed alike.
TEST_F(SeveralTargets, EqualWeightsOnce) {
  for (const char* net : {"digits/digits.onnx", "segmentation/segmentation.onnx"}) {
    const std::string name = fs::path(net).stem().string();
    const std::vector<std::string> options =
        name == "digits" ? std::vector<std::string>{"--dim", "N<=4"} : std::vector<std::string>{};
    int64_t sum = 0, most = 0;
    for (const char* target : {"cortex-a53", "cortex-a76", "armv8.6-a"}) {
      compile(net, target, target, options);
      const int64_t bytes = map_of(target, name)["weights_bytes"];
      sum += bytes, most = std::max(most, bytes);
    }
    compile(net, "cortex-a53,cortex-a76,armv8.6-a", "all", options);
    const int64_t all = map_of("all", name)["weights_bytes"];
    EXPECT_LT(all, sum * 3 / 4) << net;
    EXPECT_GE(all, most);
    const auto first = files_of(path("all"));
    compile(net, "armv8.6-a,cortex-a53,cortex-a76", "all", options);
    EXPECT_EQ(files_of(path("all")), first);
  }
}

// What a part has of the runtime is its own: the linker can't give it another part's, compiled with other
// flags.
TEST_F(SeveralTargets, PartsShareNoFunctions) {
  const std::string cross = find_program("aarch64-linux-gnu-g++");
  if (cross.empty()) GTEST_SKIP() << "no aarch64-linux-gnu-g++";
  compile("detection/detection.onnx", "cortex-a72,cortex-a76", "both", {});
  for (const char* core : {"cortex_a72", "cortex_a76"}) {
    const std::string object = path(std::string(core) + ".o");
    std::string flag = core;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const Finished built = run_process({cross, "-std=c++17", "-O2", "-mcpu=" + flag, "-I" + path("both"),
                                        "-c", path("both/detection_part_") + core + ".cpp", "-o", object},
                                       true);
    ASSERT_EQ(built.code, 0) << built.output;
    std::istringstream lines(run_process({"nm", "--defined-only", object}, true).output);
    for (std::string address, kind, name; lines >> address >> kind >> name;)
      if (kind == "W" || kind == "V" || kind == "u") {
        EXPECT_NE(name.find(std::string("sinter_for_") + core), std::string::npos) << name;
      }
  }
}

// A state, threads and weights in a file go through the choice; on x86-64 it is made by cpuid.
TEST_F(SeveralTargets, OnThisMachine) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "for x86-64";
#endif
  save_text(
      "g (float[1,64] x, float[1,64] h, float[64,64] w) => (float[1,64] y, float[1,64] hn) { m = MatMul(h, "
      "w)  a = Add(x, m)  hn = Tanh(a)  y = Neg(h) }",
      path("m.onnx"));
  const std::vector<std::string> options = {"--state",   "hn=h", "--threads", "2",
                                            "--weights", "file", "--const",   "w=0.01"};
  for (const char* target : {"x86-64-v2,avx2", "x86-64-v2", "avx2"}) {
    std::vector<std::string> line = {"compile", path("m.onnx"), "--target", target, "-o", path(target)};
    line.insert(line.end(), options.begin(), options.end());
    expect(line, 0, "");
  }
  onnx::TensorProto x;
  x.set_data_type(1);
  for (const int d : {1, 64}) x.add_dims(d);
  for (int i = 0; i < 64; ++i) x.add_float_data(0.1f * static_cast<float>(i % 7));
  std::ofstream(path("x.pb"), std::ios::binary) << x.SerializeAsString();
  const auto run = [&](const std::string& folder) {
    expect({"run", "--bundle", path(folder), "--steps", "3", "--in", path("x.pb"), "--out", path("y.npy")}, 0,
           "y float32");
    return contents(path("y.npy"));
  };
  const std::string best = run("avx2");
  EXPECT_EQ(run("x86-64-v2,avx2"), best);
  expect({"build", path("x86-64-v2,avx2")}, 0, "libm.so");
}

TEST_F(SeveralTargets, WhatIsRefused) {
  const std::string model = kExamples + "digits/digits.onnx";
  const struct {
    const char* targets;
    int code;
    const char* said;
  } cases[] = {
      {"cortex-a72,cortex-a53", 3, "cortex-a72 and cortex-a53 can't be told apart by a program"},
      {"cortex-a76,cortex-a55", 3, "they have the same instructions"},
      {"zen5,avx2,avx512vnni", 3, "zen5 and avx512vnni can't be told apart"},
      {"cortex-a72,avx2", 3, "of different architectures"},
      {"cortex-a72,scalar", 3, "scalar can't be one of several"},
      {"avx2,sapphirerapids-amx", 3, "whether it may use AMX"},
      {"cortex-a72,cortex-a72", 2, "named twice"},
      {"cortex-a72,cortex-a67", 2, "did you mean \"cortex-a76\"?"},
      {"cortex-a72,", 2, "--target \"\""},
  };
  for (const auto& c : cases)
    expect({"compile", model, "--dim", "N=1", "-o", path("net"), "--target", c.targets}, c.code, c.said);
  for (const char* command : {"verify", "inspect", "bench"})
    expect({command, model, "--dim", "N=1", "--target", "cortex-a72,cortex-a76"}, 2,
           "a list is for sinter compile of one model");
  expect(
      {"compile", model, "b=" + model, "--name", "n", "-o", path("net"), "--target", "cortex-a72,cortex-a76"},
      2, "a list is for sinter compile of one model");
}

}  // namespace
}  // namespace sinter
