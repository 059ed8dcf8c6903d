// What the fuzzers have found once, and a few thousand mutations of ONNX's own small models: a short, seeded
// run of tests/fuzz that needs no libFuzzer. A finding ends the process.
//
// SINTER_FUZZ_MUTATIONS=N: another number of them. SINTER_FUZZ_LAST=FILE: each is written there before it is
// tried.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "fuzz/chain.h"
#include "fuzz/mutate.h"
#include "onnx_suite.h"

namespace sinter::fuzz {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Every file in crashes/ was a crash, a hang or a leak. Now each is compiled or refused.
TEST(Replay, EarlierFindings) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(SINTER_TESTS_DIR) / "fuzz" / "crashes"))
    if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) {
    SCOPED_TRACE(file.filename().string());
    const std::string bytes = content(file);
    onnx::ModelProto model;
    ASSERT_TRUE(parse(bytes, model)) << "no model of at most " << kMaxBytes << " bytes";
    // The choice of the run that found it, and others.
    compile(model, choice_of(bytes));
    for (uint32_t choice = 0; choice < 8; ++choice) compile(model, choice * 5);
  }
}

TEST(Replay, MutatedNodeTests) {
  std::vector<onnx::ModelProto> seeds;
  for (const std::string& name : suite::tests("node")) {
    onnx::ModelProto model;
    if (parse(content(suite::root() / "node" / name / "model.onnx"), model))
      seeds.push_back(std::move(model));
  }
  if (seeds.empty()) GTEST_SKIP() << "libonnx-testdata isn't installed";
  const char* wanted = std::getenv("SINTER_FUZZ_MUTATIONS");
  const char* last = std::getenv("SINTER_FUZZ_LAST");
  const int mutations = wanted ? std::atoi(wanted) : 3000;
  Random random(static_cast<uint32_t>(mutations));
  size_t compiled = 0, refused = 0;
  for (int k = 0; k < mutations; ++k) {
    onnx::ModelProto model = seeds[random() % seeds.size()];
    mutate(model, random, &seeds[random() % seeds.size()]);
    const std::string bytes = model.SerializeAsString();
    if (bytes.size() > kMaxBytes) continue;
    if (last) std::ofstream(last, std::ios::binary) << bytes;
    ++(compile(model, choice_of(bytes)).refused.empty() ? compiled : refused);
  }
  // Mutations that are all refused at the door would prove nothing.
  EXPECT_GT(compiled, 300u);
  EXPECT_GT(refused, 300u);
}

}  // namespace
}  // namespace sinter::fuzz
