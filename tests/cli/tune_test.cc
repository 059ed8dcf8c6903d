// sinter tune, on this machine and with a simulator whose cycles are the program's bytes, and --tuning.
#include <sys/stat.h>

#include "driver/errors.h"
#include "driver/testbed.h"
#include "driver/tuning_file.h"
#include "program.h"

namespace sinter {
namespace {

// A convolution that the model computes by Winograd, or two of different sizes.
std::string model_in(const std::filesystem::path& folder, bool two = false) {
  const std::string conv = "Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>";
  onnx::ModelProto m = parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[1,32,24,24] x) => (float[1,32,24,24] y" +
      std::string(two ? ", float[1,32,12,12] z" : "") + ") { y = " + conv + "(x, w) " +
      (two ? "p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(y) z = " + conv + "(p, w)" : "") + " }");
  onnx::TensorProto& w = *m.mutable_graph()->add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t d : {32, 32, 3, 3}) w.add_dims(d);
  for (int i = 0; i < 32 * 32 * 9; ++i) w.add_float_data(static_cast<float>(i * 37 % 101) / 101 - 0.5f);
  save(m, folder / "m.onnx");
  return (folder / "m.onnx").string();
}

std::string script(const std::filesystem::path& file, const std::string& text) {
  put(file, "#!/bin/sh\n" + text);
  chmod(file.c_str(), 0755);
  return file.string();
}

std::string kernels_of(const std::string& model, const std::string& tuning) {
  std::vector<std::string> command = {"inspect", model, "--target", "avx2"};
  if (!tuning.empty()) command.insert(command.end(), {"--tuning", tuning});
  return sinter_program(command).output;
}

TEST(Tune, WritesWhatWasCheapest) {
  const TemporaryFolder folder;
  const std::string model = model_in(folder.path()), file = (folder.path() / "t.json").string();
  EXPECT_NE(kernels_of(model, "").find("conv_winograd"), std::string::npos);
  // The weights of Winograd are more bytes than ONNX's.
  const std::string simulator =
      script(folder.path() / "sim", "echo \"core cycles\"; echo \"a $(stat -c %s $1)\"");
  expect({"tune", model, "--target", "avx2", "--on", "sim:" + simulator, "-o", file}, 0, "1 of 1 layers");
  EXPECT_EQ(kernels_of(model, file).find("conv_winograd"), std::string::npos);
  EXPECT_NE(kernels_of(model, file).find("conv_direct"), std::string::npos);
  // What it was told to begin with is not changed without gain.
  expect({"tune", model, "--target", "avx2", "--on", "sim:" + simulator, "-o", file, "--tuning", file}, 0,
         "0 of 1 layers");
  const Say say = [](const std::string& s) { ADD_FAILURE() << s; };
  EXPECT_EQ(read_tuning(file, *find_target("avx2"), say).size(), 1u);
  EXPECT_TRUE(read_tuning(file, *find_target("avx512"), say).empty());
}

// Ended by a signal at its second layer, it has kept the first one, and goes on behind it.
TEST(Tune, GoesOnWhereItWasInterrupted) {
  const TemporaryFolder folder;
  const std::string model = model_in(folder.path(), true), file = (folder.path() / "t.json").string();
  std::filesystem::create_directory(folder.path() / "tmp");
  const std::string simulator =
      script(folder.path() / "sim", fmt::format("if grep -q unfinished {0}; then [ -e {0}.once ] || {{ touch "
                                                "{0}.once; kill -INT $PPID; sleep 60; }}; fi\n"
                                                "echo \"cycles $(stat -c %s $1)\"",
                                                file));
  const std::vector<std::string> tune = {"tune", model, "--target", "avx2", "--on", "sim:" + simulator,
                                         "-o",   file};
  setenv("TMPDIR", (folder.path() / "tmp").c_str(), 1);
  const Finished interrupted = sinter_program(tune);
  unsetenv("TMPDIR");
  EXPECT_EQ(interrupted.code, 128 + 2) << interrupted.output;
  EXPECT_NE(interrupted.output.find("1 of 2: "), std::string::npos) << interrupted.output;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "tmp"));
  const Say say = [](const std::string& s) { ADD_FAILURE() << s; };
  EXPECT_EQ(read_tuning(file, *find_target("avx2"), say).size(), 1u);
  const Finished resumed = sinter_program(tune);
  EXPECT_EQ(resumed.code, 0) << resumed.output;
  EXPECT_NE(resumed.output.find("1 of 2 layers are measured already"), std::string::npos) << resumed.output;
  EXPECT_EQ(resumed.output.find("1 of 2: "), std::string::npos) << resumed.output;
  EXPECT_NE(resumed.output.find("2 of 2: "), std::string::npos) << resumed.output;
  EXPECT_EQ(contents(file).find("unfinished"), std::string::npos);
  expect(tune, 0, "1 of 2: ");  // what is finished begins anew
}

TEST(Tune, MeasuresOnThisMachine) {
  const TemporaryFolder folder;
  const std::string model = model_in(folder.path()), file = (folder.path() / "t.json").string();
  expect({"tune", model, "--on", "host", "--repeat", "3", "-o", file}, 0, " us, ");
  const std::string out = (folder.path() / "out").string();
  expect({"compile", model, "--tuning", file, "-o", out}, 0, "layers");
  EXPECT_NE(contents(out + "/m.h").find("for "), std::string::npos);
  EXPECT_NE(contents(out + "/m.cpp").find("--tuning t.json (sha256 "), std::string::npos);
  expect({"verify", model, "--tuning", file}, 0, "layers compared");
}

TEST(Tune, Refusals) {
  const TemporaryFolder folder;
  const std::string model = model_in(folder.path()), file = (folder.path() / "t.json").string();
  for (const char* on : {"board", "ssh:", "ssh:-oProxyCommand=x", "sim:", "sim: "})
    expect({"tune", model, "--on", on, "-o", file}, 2, "give host, ssh:HOST or sim:COMMAND");
  expect({"tune", model, "--on", "sim:true", "-o", file}, 6, "printed no cycles");
  expect({"tune", model, "--on", "sim:false", "-o", file}, 6, "ended with code 1");
  expect({"compile", model, "-o", file, "--tuning", model}, 2, "no tuning file");
  expect({"compile", model, "-o", file, "--tuning", file}, 2, "can't be read");
  put(file,
      R"({"sinter_tuning": 1, "kernels": "k", "rows": [{"target": "avx2", "layer": "l", "choice": "fast"}]})");
  expect({"compile", model, "-o", file + ".d", "--tuning", file}, 2, "\"fast\" is no choice");
  put(file,
      R"({"sinter_tuning": 1, "kernels": "k", "rows": [{"target": "avx2", "layer": "l", "choice": "direct"}]})");
  expect({"compile", model, "-o", file + ".d", "--tuning", file}, 0, "its 1 rows are ignored");
}

TEST(Tune, FindsCyclesInWhatSimulatorsPrint) {
  EXPECT_EQ(cycles_in("mix: alu 3%\n\ncore   cycles  IPC\ncortex-a72   233719   3.00\n"), 233719);
  EXPECT_EQ(cycles_in("        1,234,567      cycles      #  2 GHz\n"), 1234567);
  EXPECT_EQ(cycles_in("insns 12\ncycles: 99\n"), 99);
  EXPECT_EQ(cycles_in("blocks by cycles (cortex-a72):\n"), -1);
  EXPECT_EQ(cycles_in(""), -1);
}

}  // namespace
}  // namespace sinter
