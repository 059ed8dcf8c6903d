// What is mistyped: the answer names what was meant, and the option that helps.
#include <gtest/gtest.h>

#include "cli/command.h"
#include "driver/options.h"
#include "ir/nearest.h"
#include "program.h"

namespace sinter {
namespace {

class Hints : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  TemporaryFolder folder_;
};

TEST(Nearest, IsWhatWasMeant) {
  const std::vector<std::string> names = {"compile", "run",  "verify",     "inspect",
                                          "bench",   "Conv", "ConvInteger"};
  const std::pair<const char*, const char*> cases[] = {{"complie", "compile"},
                                                       {"Compile", "compile"},
                                                       {"rnu", "run"},
                                                       {"verfiy", "verify"},
                                                       {"insepct", "inspect"},
                                                       {"benhc", "bench"},
                                                       {"conv", "Conv"},
                                                       {"CONV", "Conv"},
                                                       {"Cnov", "Conv"},
                                                       {"xyz", ""},
                                                       {"ru", ""},
                                                       {"", ""},
                                                       {"Elephant", ""}};
  for (const auto& [word, meant] : cases) EXPECT_EQ(nearest(word, names), meant) << word;
  EXPECT_EQ(nearest(std::string(100000, 'x'), names), "");
}

TEST_F(Hints, CommandsAndOptions) {
  save_text("g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }", path("m.onnx"));
  const std::string m = path("m.onnx"), out = path("out");
  expect({}, 2, "verify");  // all commands
  expect({"complie", m}, 2, "did you mean \"compile\"?");
  expect({"frobnicate"}, 2, "inspect");
  expect({"compile", m, "-o", out, "--dims", "batch=1"}, 2, "did you mean \"--dim\"?");
  expect({"compile", m, "-o", out, "--small-weigths"}, 2, "did you mean \"--small-weights\"?");
  expect({"compile", m, "-o", out, "--max_ram=8M"}, 2, "did you mean \"--max-ram\"?");
  expect({"compile", m, "-o", out, "--dim", "batch=1", "--target", "cortexa72"}, 2,
         "did you mean \"cortex-a72\"?");
  expect({"compile", m, "-o", out, "--dim", "bacth=1"}, 3, "did you mean \"batch\"?");
  expect({"compile", m, "-o", out, "--dim", "batch=1", "--skip-pass", "fold_constant"}, 2,
         "did you mean \"fold_constants\"?");
}

TEST_F(Hints, HelpHasExamples) {
  for (const Command& c : all_commands()) expect({c.name, "--help"}, 0, std::string("  sinter ") + c.name);
}

TEST_F(Hints, Operators) {
  const std::string out = path("out");
  const auto refused = [&](const char* domain, const char* op, const char* said) {
    onnx::ModelProto m = parse_text(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[3] x) => (float[3] y) { y = Relu(x) }");
    m.mutable_graph()->mutable_node(0)->set_op_type(op);
    m.mutable_graph()->mutable_node(0)->set_domain(domain);
    auto* opset = m.add_opset_import();
    opset->set_domain(*domain ? domain : "unused"), opset->set_version(1);
    save(m, path("m.onnx"));
    expect({"compile", path("m.onnx"), "-o", out}, 3, said);
  };
  refused("", "Rleu", "did you mean \"Relu\"?");
  refused("com.example", "Special", "--custom-ops FILE names a C function for it");
  refused("com.microsoft", "FastGleu", "did you mean \"FastGelu\"?");
  refused("com.microsoft", "Special", "--custom-ops");
  for (const char* op :
       {"com.microsoft.FusedMatMul", "com.microsoft.QGemm", "ai.onnx.ml.Scaler", "ai.onnx.ml.ZipMap"})
    expect({"ops"}, 0, op);
}

TEST_F(Hints, BudgetsNameTheOption) {
  save_text("g (float[1,64] x) => (float[1,64] y) { y = Sin(x) }", path("m.onnx"));
  expect({"compile", path("m.onnx"), "-o", path("out"), "--max-flash", "16"}, 3, "--small-weights");
}

TEST(Sizes, AreWrittenInManyWays) {
  const std::pair<const char*, int64_t> right[] = {
      {"0", 0},         {"8192", 8192},    {"8192B", 8192},    {"16K", 16384},    {"16k", 16384},
      {"16KB", 16384},  {"16 KiB", 16384}, {"8M", 8 << 20},    {"8MB", 8 << 20},  {"8 MB", 8 << 20},
      {"8mb", 8 << 20}, {"8MiB", 8 << 20}, {"8 mib", 8 << 20}, {"2G", 2ll << 30}, {"2GiB", 2ll << 30}};
  for (const auto& [text, bytes] : right) EXPECT_EQ(parse_size("--max-ram", text), bytes) << text;
  for (const char* wrong :
       {"", " ", "M", "MB", "8T", "8MX", "8.5M", "-8M", "8 M B", "M8", "0x10", "8MM", "99999999999999999999"})
    EXPECT_ANY_THROW(parse_size("--max-ram", wrong)) << wrong;
}

}  // namespace
}  // namespace sinter
