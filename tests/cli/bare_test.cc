// Bundles without an operating system: what they want of a C library, and the digits net on a bare
// Cortex-A53.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "driver/inputs.h"
#include "driver/options.h"
#include "program.h"
#include "targets/target.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

const std::string kExamples = SINTER_SOURCE_DIR "/examples/";
const std::vector<std::string> kFree = {"-std=c++17",
                                        "-O1",
                                        "-ffreestanding",
                                        "-fno-exceptions",
                                        "-fno-rtti",
                                        "-fno-math-errno",
                                        "-fno-trapping-math",
                                        "-fno-tree-vectorize",
                                        "-Wall",
                                        "-Wextra",
                                        "-Werror"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// What an object wants from outside.
std::set<std::string> wanted(const std::string& object) {
  std::set<std::string> names;
  std::istringstream lines(run_process({"nm", "-u", object}, true).output);
  for (std::string u, name; lines >> u >> name;) names.insert(name);
  return names;
}

// memcpy and memset, and from <math.h> what a layer computes one element at a time with.
TEST(Bare, WhatBundlesWant) {
  const struct {
    const char *name, *file, *target;
    std::vector<std::string> options;
    std::set<std::string> more;
  } nets[] = {
      {"digits", "digits/digits.onnx", "cortex-a53", {"--dim", "N<=4"}, {}},
      {"segmentation",
       "segmentation/segmentation.onnx",
       "cortex-a53",
       {},
       {"expf"}},  // a sigmoid beside a Resize
      {"detection", "detection/detection.onnx", "cortex-a53", {}, {}},
      {"denoise", "audio/denoise.onnx", "avx2", {"--state", "next_state=state"}, {}},
      {"embedding", "embedding/embedding.onnx", "avx2", {"--dim", "N<=4", "--dim", "L<=8"}, {}},
      {"chat",
       "chat/chat.onnx",
       "cortex-a53",
       {"--dim", "batch_size=1", "--dim", "sequence_length<=4", "--dim", "past_sequence_length=0..8", "--dim",
        "total_sequence_length<=8", "--state", "present.*=past_key_values.*"},
       {}},
  };
  const TemporaryFolder folder;
  const std::string dir = (folder.path() / "net").string(), object = (folder.path() / "net.o").string();
  for (const auto& net : nets) {
    const bool cross = net.target[0] == 'c';
    if (cross && find_program("aarch64-linux-gnu-g++").empty()) continue;
    fs::remove_all(dir);
    expect(std::vector<std::string>{"compile", kExamples + net.file, "-o", dir, "--name", net.name,
                                    "--target", net.target} +
               net.options,
           0, "");
    const Finished built = run_process(
        std::vector<std::string>{cross ? "aarch64-linux-gnu-g++" : "c++", find_target(net.target)->cxx_flags,
                                 "-I" + dir, "-c", dir + "/" + net.name + ".cpp", "-o", object} +
            kFree,
        true);
    ASSERT_EQ(built.code, 0) << built.output;
    std::set<std::string> known = net.more;
    known.insert({"memcpy", "memset"});
    for (const std::string& name : wanted(object))
      EXPECT_TRUE(known.count(name) || name.find(std::string(net.name) + "_weights") == 0)
          << net.name << " for " << net.target << " wants " << name;
  }
}

// Start-up code, net and weights alone in a machine: it reads all ten digits right. Also with the weights as
// C.
TEST(Bare, DigitsOnACortexA53) {
  const std::string compiler = find_program("aarch64-linux-gnu-g++"),
                    machine = find_program("qemu-system-aarch64");
  if (compiler.empty()) GTEST_SKIP() << "no aarch64-linux-gnu-g++";
  if (machine.empty()) GTEST_SKIP() << "no qemu-system-aarch64 (Debian: qemu-system-arm)";
  const TemporaryFolder folder;
  const std::string dir = folder.path().string(), bare = SINTER_TESTS_DIR "/cli/bare/",
                    model = kExamples + "digits/digits.onnx";
  ModelOptions o;
  o.model = model;
  o.dims = {"N=1"};
  std::string images = "static const float images[10][64] = {\n";
  for (int k = 0; k < 10; ++k) {
    const std::string file = fmt::format("{}digits/digit{}.png", kExamples, k);
    const InputFiles read = read_inputs(declared_inputs(model, import_options(o)), {file},
                                        {"image: order=gray scale=1/240"}, folder.path());
    images += "{";
    for (const double x : read.tensors[0].reals()) images += fmt::format("{:.9g}, ", x);
    images += "},\n";
  }
  put(folder.path() / "images.h", images + "};\n");
  for (const char* weights : {"embed", "c"}) {
    expect({"compile", model, "-o", dir + "/" + weights, "--dim", "N=1", "--target", "cortex-a53",
            "--weights", weights},
           0, "");
    const std::string net = dir + "/" + weights + "/digits", program = dir + "/" + weights + ".elf";
    const bool in_c = weights == std::string("c");
    if (in_c) {
      const Finished c = run_process({compiler, "-x", "c", "-std=c99", "-pedantic-errors", "-ffreestanding",
                                      "-c", net + "_weights.c", "-o", net + "_weights.o"},
                                     true);
      ASSERT_EQ(c.code, 0) << c.output;
    }
    const Finished built = run_process(
        std::vector<std::string>{compiler, "-mcpu=cortex-a53", "-nostdlib", "-static", "-fno-pie", "-no-pie",
                                 "-fno-tree-loop-distribute-patterns", "-Wl,-T," + bare + "link.ld",
                                 "-Wl,--build-id=none", "-Wl,--no-warn-rwx-segments", "-I" + dir,
                                 "-I" + dir + "/" + weights, "-Wa,-I" + dir + "/" + weights, bare + "start.S",
                                 bare + "main.cpp", net + ".cpp",
                                 in_c ? net + "_weights.o" : net + "_weights.S", "-o", program} +
            kFree,
        true);
    ASSERT_EQ(built.code, 0) << built.output;
    const Finished ran = run_process({"timeout", "60", machine, "-M", "virt", "-cpu", "cortex-a53", "-m",
                                      "64", "-nographic", "-nic", "none", "-semihosting", "-kernel", program},
                                     true);
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_EQ(ran.output, "0123456789\n");
  }
}

// The weights as a source of C compute the same as by the assembler; too many of them are refused.
TEST(Bare, WeightsInC) {
  const TemporaryFolder folder;
  const std::string model = kExamples + "digits/digits.onnx", x = kExamples + "digits/digit3.png";
  std::string first;
  for (const char* weights : {"embed", "c"}) {
    const std::string out = (folder.path() / (std::string(weights) + ".npy")).string();
    expect({"run", model, "--in", x, "--image", "image: order=gray scale=1/240", "--out", out, "--weights",
            weights},
           0, "logits");
    if (first.empty()) first = contents(out);
    EXPECT_EQ(contents(out), first);
  }
  // With other weights behind it, a bundle of the same name leaves no old file.
  const fs::path dir = folder.path() / "net";
  for (const char* weights : {"c", "embed", "file"}) {
    expect({"compile", model, "-o", dir.string(), "--dim", "N=1", "--weights", weights}, 0, "");
    EXPECT_EQ(fs::exists(dir / "digits_weights.c"), weights == std::string("c"));
    EXPECT_EQ(fs::exists(dir / "digits_weights.S"), weights == std::string("embed"));
  }
  save_text("g (float[4] x) => (float[4] y) { y = Neg(x) }", folder.path() / "none.onnx");
  expect({"verify", (folder.path() / "none.onnx").string(), "--weights", "c"}, 0, "as expected");
  onnx::ModelProto big = parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[1,2048] x) => (float[1,8448] y) { y = MatMul(x, "
      "w) }");
  auto& w = *big.mutable_graph()->add_initializer();
  w.set_name("w");
  w.set_data_type(1);
  for (const int64_t d : {2048, 8448}) w.add_dims(d);
  w.mutable_raw_data()->resize(size_t{2048} * 8448 * 4, '\1');
  save(big, folder.path() / "big.onnx");
  expect({"compile", (folder.path() / "big.onnx").string(), "-o", dir.string(), "--weights", "c"}, 3,
         "are too many for a C compiler, 67108864 are the most");
}

}  // namespace
}  // namespace sinter
