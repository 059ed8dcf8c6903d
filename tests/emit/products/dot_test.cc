// Products of bytes by dot products: convolutions, depthwise ones, matrices and pools over a grid of shapes
// with tails of lanes, of panels, of tiles and of four; signs and zero points; padding; every form of the
// epilogue.
//
// Scales are powers of two times small integers, so that every float on the way is exact: results must be the
// same bytes, ties included.
#include <gtest/gtest.h>

#include "emit/byte_steps.h"
#include "emit/layer.h"
#include "emit/sheet.h"

namespace sinter {
namespace {

using E = Expr;
constexpr DType kF32 = DType::kF32, kI8 = DType::kI8, kU8 = DType::kU8;

void any_byte(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i)
    t.set_integer(i, static_cast<int64_t>(random() % 256) - (is_signed(t.dtype()) ? 128 : 0));
}
void any_word(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, static_cast<int64_t>(random() % 200000) - 100000);
}
Tensor weights_of(std::vector<int64_t> shape, unsigned seed, int64_t least = -128) {
  Tensor t(kI8, std::move(shape));
  std::mt19937 random(seed);
  any_byte(t, random);
  for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, std::max(t.integer(i), least));
  return t;
}

enum class End { kSums, kBytes, kBounded, kResidual, kFloats, kShares };

struct Case {
  const char* op;
  DType x;
  int64_t zero;
  Shape shape;      // of x, channels last
  Ints weights;     // [M, C / groups, ..]; of MatMul [K, N]
  AttributeList a;  // beside integer, x_zero, channels_last
  bool bias;
  End end;
};

const Ints kPads{1, 1, 1, 1};
const AttributeList kSame{{"pads", kPads}};

const Case kCases[] = {
    {"Conv", kU8, 3, {Dim(1), Dim(5), Dim(7), Dim(3)}, {5, 3, 3, 3}, kSame, true, End::kBytes},
    {"Conv", kI8, -7, {Dim(1), Dim(6), Dim(9), Dim(16)}, {35, 16, 3, 3}, kSame, true, End::kResidual},
    {"Conv", kU8, 255, {Dim(2), Dim(4), Dim(5), Dim(37)}, {16, 37, 1, 1}, {}, false, End::kBounded},
    {"Conv",
     kI8,
     0,
     {Dim(1), Dim(9), Dim(9), Dim(4)},
     {64, 4, 5, 3},
     {{"strides", Ints{2, 2}}},
     false,
     End::kSums},
    {"Conv",
     kU8,
     128,
     {Dim(1), Dim(8), Dim(8), Dim(6)},
     {8, 3, 3, 3},
     {{"group", int64_t{2}}, {"pads", kPads}},
     true,
     End::kBytes},
    {"Conv",
     kI8,
     5,
     {Dim(1), Dim(9), Dim(10), Dim(8)},
     {20, 8, 3, 3},
     {{"dilations", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}},
     false,
     End::kFloats},
    {"Conv", kU8, 9, {Dim(3), Dim(21), Dim(5)}, {18, 5, 4}, {{"pads", Ints{2, 1}}}, true, End::kBytes},
    {"Conv",
     kI8,
     -128,
     {Dim(1), Dim(4), Dim(4), Dim(4), Dim(2)},
     {7, 2, 2, 2, 2},
     {{"pads", Ints{1, 0, 1, 0, 1, 0}}},
     false,
     End::kBytes},
    {"Conv",
     kU8,
     0,
     {Dim(1), Dim(7), Dim(9), Dim(16)},
     {16, 1, 3, 3},
     {{"group", int64_t{16}}, {"pads", kPads}},
     true,
     End::kBytes},
    {"Conv",
     kI8,
     17,
     {Dim(2), Dim(8), Dim(8), Dim(83)},
     {83, 1, 3, 3},
     {{"group", int64_t{83}}, {"pads", kPads}, {"strides", Ints{2, 2}}},
     true,
     End::kBounded},
    {"Conv",
     kU8,
     77,
     {Dim(1), Dim(9), Dim(8), Dim(30)},
     {30, 1, 5, 5},
     {{"group", int64_t{30}}, {"pads", Ints{2, 2, 2, 2}}},
     false,
     End::kResidual},
    {"Conv",
     kI8,
     -1,
     {Dim(1), Dim(9), Dim(11), Dim(64)},
     {64, 1, 3, 2},
     {{"group", int64_t{64}}, {"dilations", Ints{2, 3}}},
     true,
     End::kFloats},
    {"Conv",
     kU8,
     4,
     {Dim(1), Dim(13), Dim(6)},
     {6, 1, 3},
     {{"group", int64_t{6}}, {"pads", Ints{1, 1}}},
     true,
     End::kBytes},
    {"MatMul", kU8, 100, {Dim(1), Dim(64)}, {64, 10}, {}, false, End::kBytes},
    {"MatMul", kI8, 0, {Dim(2), Dim(9), Dim(35)}, {35, 70}, {}, false, End::kFloats},
    {"MatMul", kI8, -3, {Dim(13), Dim(3)}, {3, 17}, {}, false, End::kSums},
    {"MatMul", kU8, 0, {Dim(2), Dim(9), Dim(40)}, {40, 37}, {}, false, End::kShares},
    {"MatMul", kI8, 0, {Dim(1), Dim(64)}, {64, 9}, {}, false, End::kShares},
    {"Conv", kU8, 0, {Dim(1), Dim(5), Dim(6), Dim(19)}, {18, 19, 3, 3}, kSame, true, End::kShares},
    {"MaxPool",
     kI8,
     0,
     {Dim(1), Dim(7), Dim(8), Dim(35)},
     {},
     {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", kPads}},
     false,
     End::kSums},
    {"MaxPool", kU8, 0, {Dim(2), Dim(9), Dim(16)}, {}, {{"kernel_shape", Ints{2}}}, false, End::kSums},
};

ExprPtr number(double v) { return E::constant(v, kF32); }
ExprPtr bytes_of(const ExprPtr& x, double scale, double zero, DType to) {
  return E::cast(E::call("quantize", {x, number(scale), number(zero)}), to);
}
ExprPtr reals_of(const ExprPtr& bytes, double scale, double zero) {
  return E::call("mul", {E::call("sub", {E::cast(bytes, kF32), number(zero)}), number(scale)});
}

// What integer_products and fuse_epilogue leave behind the sums.
void add_end(Sheet& s, const Case& c) {
  if (c.end == End::kSums) return;
  const Shape y = s.graph().nodes.back()->outputs[0]->type.shape;
  const int64_t channels = y.back().value();
  Tensor scale(kF32, {channels}), bias(kF32, {channels});
  for (int64_t i = 0; i < channels; ++i) {
    scale.set_real(i, static_cast<double>(i % 3 + 1) / 2048);
    bias.set_real(i, static_cast<double>(i % 37 - 18) / 2);
  }
  if (c.end == End::kShares) {  // what the zero points of a run add, of each channel and of each row
    Shape rows = y;
    rows.back() = Dim(1);
    const ExprPtr sums = E::call(
        "sub",
        {E::call("add", {E::accumulator(DType::kI32), E::input(0, DType::kI32)}), E::input(1, DType::kI32)});
    return s.epilogue(E::call("mul", {E::cast(sums, kF32), E::input(2, kF32)}),
                      {constant(random_constant(DType::kI32, {channels}, 7)),
                       values(DType::kI32, rows, any_word), constant(scale)});
  }
  const ExprPtr real = E::call(
      "add",
      {E::call("mul", {E::cast(E::accumulator(DType::kI32), kF32), E::input(0, kF32)}), E::input(1, kF32)});
  const std::vector<Arg> factors{constant(scale), constant(bias)};
  if (c.end == End::kFloats) return s.epilogue(E::call("relu", {real}), factors);
  if (c.end == End::kBytes) return s.epilogue(bytes_of(E::call("relu", {real}), 1, 10, kU8), factors);
  if (c.end == End::kBounded)
    return s.epilogue(bytes_of(E::call("clamp", {real, number(-20.5), number(31)}), 1, -5, kI8), factors);
  // Two tensors of bytes, added and quantised by steps that are no power of two.
  const ExprPtr own = reals_of(bytes_of(real, 1, 3, kI8), 0.25, 3),
                other = reals_of(E::input(2, kU8), 0.5, 128);
  s.epilogue(bytes_of(E::call("add", {own, other}), 0.7, 1, kI8),
             {factors[0], factors[1], values(kU8, y, any_byte)});
}

Node* add(Sheet& s, const Case& c, unsigned seed, int64_t least) {
  const bool conv = c.op == std::string("Conv");
  std::vector<Arg> args{values(c.x, c.shape, any_byte)};
  if (!c.weights.empty()) args.push_back(constant(weights_of(c.weights, seed, least)));
  if (c.bias) args.push_back(constant(random_constant(DType::kI32, {c.weights[0]}, seed)));
  AttributeList a = c.a;
  if (c.op != std::string("MatMul")) a.push_back({"channels_last", int64_t{1}});
  if (!c.weights.empty()) a.insert(a.end(), {{"integer", int64_t{1}}, {"x_zero", c.zero}});
  if (conv) {
    const Ints kernel(c.weights.begin() + 2, c.weights.end());
    a.push_back({"kernel_shape", kernel});
  }
  return s.add(c.op, args, a);
}

// `least`: of the weights; without -128 two products fit in 16 bits.
void run(const char* name, const BuildOptions& options = {}, int64_t least = -128) {
  const Target& t = *find_target(name);
  GeneratedBatch batch;
  unsigned i = 0;
  for (const Case& c : kCases) {
    Sheet s;
    const Node* n = add(s, c, i, least);
    const std::string kernel = find_kernel(*n, {t, {}})->name;
    EXPECT_TRUE(kernel == "conv_dot" || kernel == "conv_dot_depthwise" || kernel == "matmul_dot" ||
                kernel == "pool_bytes")
        << kernel << " for case " << i;
    add_end(s, c);
    s.into(batch, "dot" + std::to_string(i++), {{}});
  }
  expect_good(batch.run(t, options), name);
}

TEST(Dot, CortexA76) { run("cortex-a76", {.flags = "-O2", .together = 6}); }
TEST(Dot, CortexA55) { run("cortex-a55", {.flags = "-O2", .together = 6}); }
TEST(Dot, Armv86) { run("armv8.6-a", {.flags = "-O2", .together = 6}); }
TEST(Dot, CortexA72) { run("cortex-a72", {.flags = "-O2", .together = 6}, -127); }
TEST(Dot, CortexA53) { run("cortex-a53", {.flags = "-O2", .together = 6}, -127); }
TEST(Dot, Sse42) { run("x86-64-v2", {.flags = "-O2", .together = 6}); }
TEST(Dot, Aarch64) { run("aarch64", {.together = 6}); }
TEST(Dot, Avx512) { run("avx512", {.flags = "-O2", .together = 6}); }
TEST(Dot, Avx512Vnni) { run("avx512vnni", {.flags = "-O2", .together = 6}); }
TEST(Dot, Avx2) { run("avx2", {.flags = "-O2", .together = 6}); }
TEST(Dot, Scalar) { run("scalar", {.together = 6}); }
TEST(Dot, Sanitizers) { run("host", {.sanitize = true, .together = 6}); }
TEST(Dot, Clang) { run("host", {.clang = true, .together = 6}); }
TEST(Dot, Threads) { run("host", {.threads = 3, .together = 6}); }

// What no kernel of bytes takes is plain loops: channels first, stacked weights.
TEST(Dot, PlainLoops) {
  for (const char* name : {"avx512vnni", "cortex-a76"}) {
    const Target& t = *find_target(name);
    Sheet s;
    for (const int64_t zero : {0, -3, 7}) {
      const AttributeList a{{"integer", int64_t{1}}, {"x_zero", zero}};
      AttributeList window = a;
      window.push_back({"pads", kPads});
      const Node* conv = s.add(
          "Conv",
          {values(kI8, {Dim(1), Dim(3), Dim(5), Dim(6)}, any_byte), constant(weights_of({4, 3, 3, 3}, 5))},
          window);
      const Node* stacked = s.add(
          "MatMul", {values(kU8, {Dim(2), Dim(3), Dim(4)}, any_byte), constant(weights_of({2, 4, 5}, 6))}, a);
      const Node* row =
          s.add("MatMul", {values(kU8, {Dim(4)}, any_byte), constant(weights_of({4, 5}, 7))}, a);
      for (const Node* n : {conv, stacked, row}) {
        const std::string kernel = find_kernel(*n, {t, {}})->name;
        EXPECT_EQ(kernel.find("dot"), std::string::npos) << kernel;
      }
    }
    GeneratedBatch batch;
    s.into(batch, "plain", {{}});
    expect_good(batch.run(t), name);
  }
}

// Which epilogues are stored as rounded bytes.
TEST(Dot, ByteSteps) {
  const ExprPtr acc = E::cast(E::accumulator(DType::kI32), kF32),
                scaled = E::call("mul", {acc, E::input(0, kF32)});
  const auto steps = [](const ExprPtr& e, double most) { return byte_steps(e, [=](int) { return most; }); };
  const auto plain = steps(bytes_of(scaled, 1, 10, kU8), 2);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->zero, 10);
  EXPECT_EQ(plain->low, 0);
  EXPECT_EQ(plain->high, 255);
  const auto relu = steps(bytes_of(E::call("relu", {scaled}), 1, 10, kU8), 2);
  ASSERT_TRUE(relu);
  EXPECT_EQ(relu->low, 10);
  EXPECT_EQ(text(*relu->value), text(*scaled)) << "the activation became a bound";
  const auto clip = steps(bytes_of(E::call("clamp", {scaled, number(0), number(6.4)}), 1, -5, kI8), 2);
  ASSERT_TRUE(clip);
  EXPECT_EQ(clip->low, -5);
  EXPECT_EQ(clip->high, 1);
  EXPECT_FALSE(steps(bytes_of(scaled, 0.3, 0, kI8), 2)) << "sums of 32 bits divided by something else than 1";
  EXPECT_FALSE(steps(bytes_of(scaled, 1, 0, kI8), INFINITY)) << "an operand that may be anything";
  EXPECT_FALSE(steps(bytes_of(E::call("exp", {scaled}), 1, 0, kI8), 2)) << "a function that may overflow";
  EXPECT_FALSE(steps(bytes_of(scaled, 1, 0, DType::kI16), 2));
  EXPECT_TRUE(steps(bytes_of(reals_of(E::input(0, kU8), 0.013f, 128), 0.07f, 3, kI8), 2));
  // A bias of integers is added before the sum becomes a float, here behind a first byte.
  const ExprPtr biased =
      E::cast(E::call("add", {E::accumulator(DType::kI32), E::input(0, DType::kI32)}), kF32);
  const ExprPtr inner = bytes_of(E::call("mul", {biased, number(0.01)}), 1, 88, kU8);
  EXPECT_TRUE(steps(bytes_of(reals_of(inner, 0.013f, 128), 0.07f, 3, kI8), 2));
}

// An inverse is only used where it rounds every value as the division does.
TEST(Dot, DividesByInverse) {
  const ExprPtr x = reals_of(E::input(0, kI8), 1, 0);
  EXPECT_TRUE(divides_by_inverse(x, 0.5f));
  int differ = 0;
  for (int i = 1; i < 400; ++i) {
    const float scale = static_cast<float>(i) / 10;  // ties: n / scale is k + 0.5 for some n
    bool same = true;
    for (int n = -128; n < 128; ++n)
      same &= std::nearbyint(static_cast<float>(n) * (1 / scale)) ==
              std::nearbyint(static_cast<float>(n) / scale);
    EXPECT_EQ(divides_by_inverse(x, scale), same) << scale;
    differ += !same;
  }
  EXPECT_GT(differ, 0) << "no scale of the list tells the two apart";
  EXPECT_FALSE(divides_by_inverse(E::input(0, kF32), 0.5f)) << "floats can't be tried one by one";
}

TEST(Dot, Magnitude) {
  const ExprPtr acc = E::cast(E::accumulator(DType::kI32), kF32);
  const auto most = [](const ExprPtr& e) { return magnitude(*e, 1000, [](int) { return 3.0; }); };
  EXPECT_EQ(most(E::call("add", {E::call("mul", {acc, E::input(0, kF32)}), number(-7)})), 3007);
  EXPECT_EQ(most(E::call("clamp", {acc, number(-5), number(4)})), 5);
  EXPECT_EQ(most(reals_of(E::input(0, kU8), 2, 128)), 766);
  EXPECT_EQ(most(E::call("tanh", {acc})), INFINITY);
}

}  // namespace
}  // namespace sinter
