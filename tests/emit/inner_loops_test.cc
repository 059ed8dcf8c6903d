// The inner loops of the kernels, as the compiler makes them: no register of theirs lives in memory, and most
// of their instructions are multiply-adds.
//
// A loop is what lies between the target of a backward branch and the branch, without another one inside.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <regex>

#include "cli/build.h"
#include "emit/bundle.h"
#include "emit/sheet.h"
#include "plan/plan.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

struct Instruction {
  uint64_t address;
  std::string text;  // "fmla\tv0.4s, v1.4s, v2.s[0]"
};

std::vector<Instruction> disassemble(const fs::path& object, bool aarch64) {
  const std::string command = fmt::format("{} -d --no-show-raw-insn '{}'",
                                          aarch64 ? "aarch64-linux-gnu-objdump" : "objdump", object.string());
  std::vector<Instruction> code;
  FILE* f = popen(command.c_str(), "r");
  char line[512];
  static const std::regex kLine("^\\s*([0-9a-f]+):\\s+(.*?)\\s*$");
  while (std::fgets(line, sizeof line, f)) {
    std::cmatch m;
    if (std::regex_match(line, m, kLine)) code.push_back({std::stoull(m[1], nullptr, 16), m[2]});
  }
  pclose(f);
  return code;
}

struct Loop {
  size_t instructions = 0, multiply_adds = 0, stack = 0;
  std::string text;
};

// The innermost loops with as many multiply-adds as the smallest whole register tile has; Winograd's
// transforms have fewer, and the exponential function's is known by the power of two that it makes.
std::vector<Loop> hot_loops(const std::vector<Instruction>& code) {
  static const std::regex kJump("^(?:j[a-z]+|b\\.[a-z]+|b|cbn?z|tbn?z)\\s+(?:[^<]*[ ,])?([0-9a-f]+) <.*");
  static const std::regex kFma("^(?:vfn?madd|fmla|fmls|sdot|vpdpbusd).*"),
      kStack(".*(?:\\[sp|\\(%rsp|\\(%rbp).*"), kPower("^(?:vscalefps|vpslld|shl\\s+v).*");
  std::vector<Loop> loops;
  size_t previous = 0;  // the branch behind which no loop that ends later is innermost
  for (size_t i = 0; i < code.size(); ++i) {
    std::smatch m;
    if (!std::regex_match(code[i].text, m, kJump)) continue;
    const uint64_t to = std::stoull(m[1], nullptr, 16);
    if (to > code[i].address || to < code[previous].address) continue;
    Loop loop;
    bool product = true;
    for (size_t k = i + 1; k-- > 0 && code[k].address >= to;) {
      ++loop.instructions;
      loop.multiply_adds += std::regex_match(code[k].text, kFma);
      loop.stack += std::regex_match(code[k].text, kStack);
      product = product && !std::regex_match(code[k].text, kPower);
      loop.text = code[k].text + "\n" + loop.text;
    }
    previous = i;
    if (product && loop.multiply_adds >= 12) loops.push_back(loop);
  }
  return loops;
}

// Layers of every kernel that is made of register tiles.
std::unique_ptr<Graph> layers() {
  Sheet s;
  auto conv = [&](int64_t size, int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    return s.add("Conv",
                 {floats({Dim(1), Dim(size), Dim(size), Dim(in)}),
                  constant(random_constant(DType::kF32, {out, in, kernel, kernel}))},
                 {{"channels_last", int64_t{1}},
                  {"pads", Ints{kernel / 2, kernel / 2, kernel / 2, kernel / 2}},
                  {"strides", Ints{stride, stride}}});
  };
  conv(28, 64, 128, 1, 1);
  conv(28, 64, 96, 3, 2);
  conv(28, 64, 64, 3, 1)->attributes.set("winograd", int64_t{4});
  const Arg weights = constant(random_constant(DType::kF32, {256, 384}));
  s.add("MatMul", {floats({Dim(128), Dim(256)}), weights});
  s.add("MatMul", {floats({Dim(64), Dim(256)}), weights})->attributes.set("strassen", int64_t{1});
  // Beside an epilogue that needs many registers, too.
  s.add("MatMul", {floats({Dim(49), Dim(512)}), constant(random_constant(DType::kF32, {512, 2048}))})
      ->attributes.set("strassen", int64_t{1});
  const auto input = [](int i) { return Expr::input(i, DType::kF32); };
  s.epilogue(
      Expr::call("relu", {Expr::call("add", {Expr::call("add", {Expr::accumulator(DType::kF32), input(0)}),
                                             input(1)})}),
      {floats({Dim(2048)}), floats({Dim(49), Dim(2048)})});
  return s.graph().clone();
}

// Winograd of four tiles. With AVX-512 its weights are transformed beside their products.
std::unique_ptr<Graph> few_tiles() {
  Sheet s;
  const int64_t c = 256;
  Node* conv =
      s.add("Conv",
            {floats({Dim(1), Dim(7), Dim(7), Dim(c)}), constant(random_constant(DType::kF32, {c, c, 3, 3}))},
            {{"channels_last", int64_t{1}}, {"pads", Ints{1, 1, 1, 1}}});
  for (const char* of : {"winograd", "winograd_tile"}) conv->attributes.set(of, int64_t{4});
  return s.graph().clone();
}

// Layers whose loops do other things too: softmax between products, few taps written out.
std::unique_ptr<Graph> mixed_layers() {
  Sheet s;
  const Arg heads = floats({Dim(1), Dim(2), Dim(128), Dim(64)});
  s.add("Attention", {heads, heads, heads});
  for (const int64_t winograd : {0, 5}) {
    Node* conv = s.add(
        "Conv",
        {floats({Dim(1), Dim(56), Dim(56), Dim(3)}), constant(random_constant(DType::kF32, {64, 3, 7, 7}))},
        {{"channels_last", int64_t{1}}, {"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}});
    conv->attributes.set("planar", int64_t{1});
    conv->attributes.set("winograd", winograd);
  }
  return s.graph().clone();
}

// Products of bytes. (Of a depthwise layer the innermost loop is that over channels, most of it no products.)
std::unique_ptr<Graph> layers_of_bytes() {
  Sheet s;
  const auto conv = [&](int64_t in, int64_t out, int64_t kernel) {
    Tensor w = random_constant(DType::kI8, {out, in, kernel, kernel});
    s.add("Conv", {values(DType::kI8, {Dim(1), Dim(28), Dim(28), Dim(in)}), constant(w)},
          {{"channels_last", int64_t{1}},
           {"integer", int64_t{1}},
           {"pads", Ints{kernel / 2, kernel / 2, kernel / 2, kernel / 2}}});
    const ExprPtr real = Expr::call(
        "mul", {Expr::cast(Expr::accumulator(DType::kI32), DType::kF32), Expr::constant(0.001, DType::kF32)});
    s.epilogue(Expr::cast(
        Expr::call("quantize", {real, Expr::constant(1, DType::kF32), Expr::constant(3, DType::kF32)}),
        DType::kI8));
  };
  conv(64, 128, 1);
  conv(64, 64, 3);
  s.add("MatMul",
        {values(DType::kI8, {Dim(64), Dim(256)}), constant(random_constant(DType::kI8, {256, 384}))},
        {{"integer", int64_t{1}}});
  return s.graph().clone();
}

// `density`: multiply-adds among the instructions of a loop, at least.
void check(const char* name, std::unique_ptr<Graph> g, double density) {
  const Target& t = target(name);
  const std::string why = cannot_run(t);
  if (!why.empty() && why.find("execute") == std::string::npos) GTEST_SKIP() << why;
  separate_outputs(*g);
  WeightStore store;
  const Plan plan = make_plan(*g, t, store);
  BundleOptions o;
  o.name = "net";
  o.model_file = o.command = "test.onnx";
  o.model_hash = std::string(64, '0');
  const fs::path folder = fs::temp_directory_path() / fmt::format("sinter_loops_{}_{}", name, getpid());
  write_bundle(make_bundle(*g, plan, t, store, o), folder);
  std::string command;
  for (const std::string& w : toolchain_for(t, false).compile) command += w + " ";
  command += fmt::format("-I'{0}' -c '{0}/net.cpp' -o '{0}/net.o'", folder.string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::vector<Loop> loops = hot_loops(disassemble(folder / "net.o", t.aarch64));
  EXPECT_GE(loops.size(), g->nodes.size() / 2) << "one for each kernel at least";
  for (const Loop& l : loops) {
    EXPECT_EQ(l.stack, 0u) << name << ": registers are spilled in\n" << l.text;
    EXPECT_GE(static_cast<double>(l.multiply_adds), density * static_cast<double>(l.instructions))
        << name << ":\n"
        << l.text;
  }
  fs::remove_all(folder);
}

TEST(InnerLoops, Avx512) {
  check("avx512", layers(), 0.5);
  check("avx512", few_tiles(), 0.46);
  check("avx512", mixed_layers(), 0.3);
}
TEST(InnerLoops, Avx512Vnni) { check("avx512vnni", layers_of_bytes(), 0.3); }
TEST(InnerLoops, Avx2) {
  check("avx2", layers(), 0.43);
  check("avx2", few_tiles(), 0.43);
  check("avx2", mixed_layers(), 0.3);
}
TEST(InnerLoops, CortexA53) {
  check("cortex-a53", layers(), 0.3);
  check("cortex-a53", few_tiles(), 0.3);
  check("cortex-a53", mixed_layers(), 0.25);
}
TEST(InnerLoops, CortexA72) {
  check("cortex-a72", layers(), 0.4);
  check("cortex-a72", few_tiles(), 0.4);
  check("cortex-a72", mixed_layers(), 0.25);
}
TEST(InnerLoops, CortexA76) {
  check("cortex-a76", layers(), 0.4);
  check("cortex-a76", few_tiles(), 0.4);
  check("cortex-a76", mixed_layers(), 0.25);
  check("cortex-a76", layers_of_bytes(), 0.2);
}

}  // namespace
}  // namespace sinter
