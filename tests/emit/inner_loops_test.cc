// The inner loops of the kernels, as the compiler makes them for each target: no register of theirs lives in
// memory, and as many of their instructions are multiply-adds as docs/targets.md says.
//
// A loop is what lies between the target of a backward branch and the branch, without another one inside.
// `ctest --test-dir build/host -R InnerLoops -V` prints what it finds.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <regex>

#include "driver/build.h"
#include "emit/bundle.h"
#include "emit/sheet.h"
#include "passes/passes.h"
#include "plan/plan.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

struct Instruction {
  uint64_t address;
  std::string text;  // "fmla\tv0.4s, v1.4s, v2.s[0]"
  std::string function;
};

std::vector<Instruction> disassemble(const fs::path& object, bool aarch64) {
  const std::string command = fmt::format("{} -d --no-show-raw-insn '{}'",
                                          aarch64 ? "aarch64-linux-gnu-objdump" : "objdump", object.string());
  std::vector<Instruction> code;
  FILE* f = popen(command.c_str(), "r");
  char line[512];
  static const std::regex kLine("^\\s*([0-9a-f]+):\\s+(.*?)\\s*$"), kFunction("^[0-9a-f]+ <(.*)>:\\s*$");
  std::string function;
  while (std::fgets(line, sizeof line, f)) {
    std::cmatch m;
    if (std::regex_match(line, m, kFunction)) function = m[1];
    if (std::regex_match(line, m, kLine)) code.push_back({std::stoull(m[1], nullptr, 16), m[2], function});
  }
  pclose(f);
  return code;
}

struct Loop {
  size_t instructions = 0, multiply_adds = 0, stack = 0;
  std::string text;
  double density() const { return static_cast<double>(multiply_adds) / static_cast<double>(instructions); }
};

// The innermost loops of `least` multiply-adds or more. Left out are Winograd's transforms, the
// exponential function, which is known by the power of two that it makes, and loops over blocks of halves,
// whose sums lie in memory: they are known by what adds them up.
std::vector<Loop> hot_loops(const std::vector<Instruction>& code, size_t least) {
  static const std::regex kJump("^(?:j[a-z]+|b\\.[a-z]+|b|cbn?z|tbn?z)\\s+(?:[^<]*[ ,])?([0-9a-f]+) <.*");
  static const std::regex kFma("^(?:vfn?madd|fmla|fmls|sdot|u?smmla|vpdpbusd|mulps|tdp).*"),
      kStack(".*(?:\\[sp|\\(%rsp|\\(%rbp).*"), kPower("^(?:vscalefps|vpslld|shl\\s+v).*"),
      kBlockEnd("^(?:fcvtl2?\\s|fadd\\s+v\\d+\\.8h).*"), kTransform("winograd_(?:input|output)");
  std::vector<Loop> loops;
  size_t previous = 0;  // the branch behind which no loop that ends later is innermost
  for (size_t i = 0; i < code.size(); ++i) {
    std::smatch m;
    if (!std::regex_match(code[i].text, m, kJump)) continue;
    const uint64_t to = std::stoull(m[1], nullptr, 16);
    if (to > code[i].address || to < code[previous].address) continue;
    Loop loop;
    bool product = !std::regex_search(code[i].function, kTransform);
    for (size_t k = i + 1; k-- > 0 && code[k].address >= to;) {
      ++loop.instructions;
      loop.multiply_adds += std::regex_match(code[k].text, kFma);
      loop.stack += std::regex_match(code[k].text, kStack);
      product =
          product && !std::regex_match(code[k].text, kPower) && !std::regex_match(code[k].text, kBlockEnd);
      loop.text = code[k].text + "\n" + loop.text;
    }
    previous = i;
    loop.text = code[i].function + ":\n" + loop.text;
    if (product && loop.multiply_adds >= least) loops.push_back(loop);
  }
  return loops;
}

// A convolution of `size` x `size` pixels, padded by half its kernel.
Node* add_conv(Sheet& s, int64_t size, int64_t in, int64_t out, int64_t kernel, int64_t stride,
               int64_t group = 1) {
  const int64_t pad = kernel / 2;
  return s.add("Conv",
               {floats({Dim(1), Dim(size), Dim(size), Dim(in)}),
                constant(random_constant(DType::kF32, {out, in / group, kernel, kernel}))},
               {{"channels_last", int64_t{1}},
                {"group", group},
                {"pads", Ints{pad, pad, pad, pad}},
                {"strides", Ints{stride, stride}}});
}

// Layers of every kernel that is made of register tiles.
Sheet layers() {
  Sheet s;
  add_conv(s, 28, 64, 128, 1, 1);
  add_conv(s, 28, 64, 96, 3, 2);
  add_conv(s, 28, 64, 64, 3, 1)->freedom.winograd = 4;
  const Arg weights = constant(random_constant(DType::kF32, {256, 384}));
  s.add("MatMul", {floats({Dim(128), Dim(256)}), weights});
  s.add("MatMul", {floats({Dim(64), Dim(256)}), weights})->freedom.strassen = true;
  // Beside an epilogue that needs many registers, too.
  s.add("MatMul", {floats({Dim(49), Dim(512)}), constant(random_constant(DType::kF32, {512, 2048}))})
      ->freedom.strassen = true;
  const auto input = [](int i) { return Expr::input(i, DType::kF32); };
  s.epilogue(
      Expr::call("relu", {Expr::call("add", {Expr::call("add", {Expr::accumulator(DType::kF32), input(0)}),
                                             input(1)})}),
      {floats({Dim(2048)}), floats({Dim(49), Dim(2048)})});
  return s;
}

// Winograd of four tiles. With AVX-512 its weights are transformed beside their products.
Sheet few_tiles() {
  Sheet s;
  Node* conv = add_conv(s, 7, 256, 256, 3, 1);
  conv->freedom.winograd = s.decide(conv).winograd.tile = 4;
  return s;
}

// Layers whose loops do other things too: softmax between products, few taps written out.
Sheet mixed_layers() {
  Sheet s;
  const Arg heads = floats({Dim(1), Dim(2), Dim(128), Dim(64)});
  s.add("Attention", {heads, heads, heads});
  for (const int64_t winograd : {0, 5}) {
    Node* conv = s.add(
        "Conv",
        {floats({Dim(1), Dim(56), Dim(56), Dim(3)}), constant(random_constant(DType::kF32, {64, 3, 7, 7}))},
        {{"channels_last", int64_t{1}}, {"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}});
    s.decide(conv).reads_nchw = true;
    conv->freedom.winograd = winograd;
  }
  return s;
}

// Depthwise, few channels, groups, transposed ones, one row, operands that are no constants, recurrent
// layers.
Sheet further_layers() {
  Sheet s;
  add_conv(s, 28, 96, 96, 3, 1, 96);
  add_conv(s, 28, 96, 96, 3, 2, 96);
  add_conv(s, 28, 96, 96, 5, 1, 96);
  add_conv(s, 56, 16, 3, 9, 1);
  add_conv(s, 28, 64, 64, 3, 1, 4);
  for (const int64_t kernel : {2, 3})
    s.add("ConvTranspose",
          {floats({Dim(1), Dim(20), Dim(20), Dim(64)}),
           constant(random_constant(DType::kF32, {64, 64, kernel, kernel}))},
          {{"channels_last", int64_t{1}}, {"strides", Ints{2, 2}}});
  s.add("MatMul", {floats({Dim(1), Dim(1024)}), constant(random_constant(DType::kF32, {1024, 1024}))});
  s.add("MatMul", {floats({Dim(4), Dim(64), Dim(128)}), floats({Dim(4), Dim(128), Dim(96)})});
  for (const auto& [op, gates] : {std::pair("LSTM", 4), std::pair("GRU", 3)})
    s.add(op,
          {floats({Dim(20), Dim(1), Dim(64)}), constant(random_constant(DType::kF32, {1, gates * 128, 64})),
           constant(random_constant(DType::kF32, {1, gates * 128, 128}))});
  return s;
}

// Products of bytes. (Of a depthwise layer the innermost loop is that over channels, most of it no products.)
Sheet layers_of_bytes() {
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
  return s;
}

// The same kernels in halves: products by lane (.8h) of direct, strided, pointwise, depthwise and Winograd's
// convolutions, of matrices, attention and recurrent layers.
Sheet layers_of_halves() {
  Sheet s = layers();
  add_conv(s, 28, 96, 96, 3, 1, 96);
  const Arg x = made(
      s.add("MatMul", {floats({Dim(2), Dim(64), Dim(96)}), constant(random_constant(DType::kF32, {96, 128}))})
          ->outputs[0]);
  s.add("Attention", {x, x, x}, {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}});
  s.add("MatMul", {x, floats({Dim(2), Dim(128), Dim(96)})});
  s.add("LSTM", {floats({Dim(20), Dim(8), Dim(64)}), constant(random_constant(DType::kF32, {1, 512, 64})),
                 constant(random_constant(DType::kF32, {1, 512, 128}))});
  PassOptions options;
  options.halves = true;
  compute_in_halves(s.graph(), options);
  return s;
}

// A target and how dense the loops of each kind of layers are at least: what g++ 12 makes (docs/targets.md)
// is 1 to 6 hundredths more.
struct Row {
  const char* target;
  size_t least;  // multiply-adds of a whole tile's loop; transforms that stand in their layer have fewer
  double tiles, few_tiles, mixed, further, bytes;
  double stack = 0;   // the part of a loop's instructions that may use the stack
  double halves = 0;  // of layers that compute them; 0: the target has none
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.target; }

const Row kRows[] = {
    {"cortex-a53", 12, 0.48, 0.48, 0.28, 0.42, 0},
    {"cortex-a55", 12, 0.48, 0.48, 0.28, 0.42, 0.2, 0, 0.5},
    {"cortex-a72", 12, 0.76, 0.76, 0.3, 0.42, 0},
    {"cortex-a76", 12, 0.76, 0.76, 0.3, 0.42, 0.42, 0, 0.8},
    {"cortex-a78ae", 12, 0.76, 0.76, 0.3, 0.42, 0.42, 0, 0.8},
    {"armv8.6-a", 12, 0.76, 0.76, 0.3, 0.42, 0.42, 0, 0.8},
    {"aarch64", 12, 0.76, 0.76, 0.3, 0.42, 0},
    // A product is two instructions here, and each needs a copy; one tile of seven taps keeps sums in memory.
    {"x86-64-v2", 8, 0.22, 0.22, 0.16, 0.16, 0, 0.02},
    {"avx2", 8, 0.4, 0.38, 0.32, 0.38, 0},
    {"avx512", 12, 0.54, 0.46, 0.3, 0.52, 0},
    {"avx512vnni", 12, 0.54, 0.46, 0.3, 0.52, 0.45},
    {"cascadelake", 12, 0.54, 0.46, 0.3, 0.52, 0.45},
    {"zen5", 12, 0.54, 0.46, 0.3, 0.52, 0.45},
    {"sapphirerapids-amx", 12, 0.5, 0.46, 0.3, 0.52, 0.45},
    {"sapphirerapids", 12, 0.5, 0.46, 0.3, 0.52, 0.45},
};

std::vector<Loop> loops_of(Sheet& s, const Row& row) {
  Graph& g = s.graph();
  const Target& t = target(row.target);
  separate_outputs(g, s.decisions);
  WeightStore store;
  const Plan plan = make_plan(g, t, s.decisions, store);
  BundleOptions o;
  o.name = "net";
  o.model_file = o.command = "test.onnx";
  o.model_hash = std::string(64, '0');
  const fs::path folder = fs::temp_directory_path() / fmt::format("sinter_loops_{}_{}", row.target, getpid());
  write_bundle(make_bundle(g, plan, t, store, o), folder);
  std::string command;
  for (const std::string& w : toolchain_for(t, false).compile) command += w + " ";
  command += fmt::format("-Werror -I'{0}' -c '{0}/net.cpp' -o '{0}/net.o'", folder.string());
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::vector<Loop> loops = hot_loops(disassemble(folder / "net.o", t.aarch64), row.least);
  fs::remove_all(folder);
  return loops;
}

void check(const Row& row, const char* kind, Sheet s, double density) {
  const std::vector<Loop> loops = loops_of(s, row);
  const auto kernels = std::count_if(s.graph().nodes.begin(), s.graph().nodes.end(),
                                     [](const auto& n) { return n->op->name != std::string_view("Cast"); });
  EXPECT_GE(loops.size(), static_cast<size_t>(kernels) / 2) << kind << ": one for each kernel at least";
  double least = 1, most = 0;
  for (const Loop& l : loops) {
    EXPECT_LE(static_cast<double>(l.stack), row.stack * static_cast<double>(l.instructions))
        << kind << ": registers are spilled in " << l.text;
    EXPECT_GE(l.density(), density) << kind << ": " << l.text;
    least = std::min(least, l.density());
    most = std::max(most, l.density());
  }
  fmt::print("{}, {}: {} loops, {:.0f} to {:.0f} % multiply-adds\n", row.target, kind, loops.size(),
             100 * least, 100 * most);
}

class InnerLoops : public testing::TestWithParam<Row> {};

TEST_P(InnerLoops, KeepRegisters) {
  const Row& row = GetParam();
  const std::string why = cannot_run(target(row.target));
  if (!why.empty() && why.find("execute") == std::string::npos) GTEST_SKIP() << why;
  check(row, "tiles", layers(), row.tiles);
  check(row, "few tiles", few_tiles(), row.few_tiles);
  check(row, "mixed", mixed_layers(), row.mixed);
  check(row, "further", further_layers(), row.further);
  if (row.bytes > 0) check(row, "bytes", layers_of_bytes(), row.bytes);
  EXPECT_EQ(row.halves > 0, target(row.target).features.halves);
  Row of_halves = row;  // whose loops are eight products of a sum long; what is left of k is one at a time
  of_halves.least = 32;
  if (row.halves > 0) check(of_halves, "halves", layers_of_halves(), row.halves);
}

INSTANTIATE_TEST_SUITE_P(Targets, InnerLoops, testing::ValuesIn(kRows), [](const auto& info) {
  std::string name = info.param.target;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(InnerLoopsOfTargets, AllAreChecked) {
  for (const Target* t : all_targets()) {
    const bool vectors = t->lanes > 1,
               found = std::any_of(std::begin(kRows), std::end(kRows),
                                   [&](const Row&r) { return std::string(r.target) == t->name; });
    EXPECT_EQ(found, vectors) << t->name;
  }
}

}  // namespace
}  // namespace sinter
