// Products and tables of codes of 2, 4 and 8 bits: right values on every target over widths, blocks, zero
// points, types of scales and tails of rows and columns, and no more bytes in NAME.weights than the codes
// have.
#include "ops/products/codes.h"

#include <gtest/gtest.h>

#include "emit/layer.h"
#include "emit/sheet.h"
#include "plan/plan.h"

namespace sinter {
namespace {

enum class Zeros { kNone, kCodes, kFloats };

struct Form {
  int64_t k, n, bits, block;
  Zeros zeros = Zeros::kNone;
  DType scales = DType::kF32;
};

Tensor random_codes(int64_t bytes, unsigned seed) {
  Tensor t(DType::kU8, {bytes});
  std::mt19937 random(seed);
  for (int64_t i = 0; i < bytes; ++i) t.set_integer(i, static_cast<int64_t>(random() % 256));
  return t;
}

// The inputs of MatMulNBits behind its first, and its attributes.
std::vector<Arg> weights(const Form& f, unsigned seed) {
  const CodeForm c{f.n, f.k, f.bits, f.block, 0};
  Tensor scales = random_constant(DType::kF32, {f.n * c.blocks()}, seed);
  for (int64_t i = 0; i < scales.size(); ++i) scales.set_real(i, 0.01 + std::fabs(scales.real(i)) / 50);
  const DType t = f.scales;
  std::vector<Arg> out{constant(random_codes(f.n * c.row_bytes(), seed)), constant(scales.converted(t))};
  if (f.zeros == Zeros::kCodes) out.push_back(constant(random_codes(f.n * c.zero_row_bytes(), seed + 1)));
  if (f.zeros == Zeros::kFloats) out.push_back(constant(random_constant(t, {f.n * c.blocks()}, seed + 2)));
  return out;
}

AttributeList attributes(const Form& f, int64_t level = 0) {
  return {{"K", f.k}, {"N", f.n}, {"bits", f.bits}, {"block_size", f.block}, {"accuracy_level", level}};
}

Node* add(Sheet& s, const Form& f, Shape rows, unsigned seed, int64_t level = 0, Fill fill = random_fill) {
  rows.push_back(Dim(f.k));
  std::vector<Arg> args{floats(rows, std::move(fill))};
  for (Arg& a : weights(f, seed)) args.push_back(std::move(a));
  return s.add("MatMulNBits", args, attributes(f, level));
}

constexpr Zeros kNone = Zeros::kNone, kCodes = Zeros::kCodes, kFloats = Zeros::kFloats;
const Form kForms[] = {
    {64, 40, 4, 32},
    {96, 33, 4, 16, kCodes},
    {100, 19, 4, 32, kFloats},
    {288, 6, 4, 256, kCodes, DType::kF16},
    {80, 70, 8, 16, kCodes, DType::kBF16},
    {130, 17, 8, 128},
    {64, 5, 8, 64, kFloats, DType::kF16},
    {160, 24, 2, 32, kCodes},
    {50, 9, 2, 16},
};

void add_forms(Sheet& s, int64_t level) {
  const Dim m = s.symbol("M", 1, 30);
  unsigned seed = 0;
  for (const Form& f : kForms) {
    const Shape rows[] = {{Dim(1)}, {Dim(3)}, {Dim(1), Dim(1)}, {Dim(2), Dim(7)}};
    if (level == 0 || (f.bits > 2 && seed % 2 == 0)) add(s, f, rows[seed % 4], seed + 1, level);
    ++seed;
  }
  add(s, level == 0 ? kForms[1] : kForms[0], {m, Dim(2)}, 50, level);
  // Numbers of all sizes, a block of zeros, and a NaN, which reaches its whole row and no other.
  add(s, kForms[0], {Dim(4)}, 51, level, [](Tensor& t, std::mt19937& random) {
    random_fill(t, random);
    for (int64_t i = 0; i < t.size(); ++i) {
      const double size = std::pow(10.0, static_cast<double>(random() % 9) - 4);
      t.set_real(i, i % 64 < 32 && i / 64 == 1 ? 0 : i / 64 == 2 ? t.real(i) * size : t.real(i));
    }
    t.set_real(3 * 64 + 40, std::nan(""));
  });
}

Tensor integers(DType t, std::vector<int64_t> shape, unsigned seed) {
  Tensor q(t, std::move(shape));
  std::mt19937 random(seed);
  const int64_t end = int64_t{1} << bits_of(t), low = is_signed(t) ? -end / 2 : 0;
  for (int64_t i = 0; i < q.size(); ++i) q.set_integer(i, low + static_cast<int64_t>(random()) % end);
  return q;
}

// Matrices that pass keep_codes takes: of 4 bits in blocks and of 8 by channels, multiplied by and looked up.
void add_kept(Sheet& s) {
  const Dim m = s.symbol("M", 1, 9);
  const auto scales = [](std::vector<int64_t> shape) {
    return constant(random_constant(DType::kF32, std::move(shape), 4));
  };
  const auto index = [](Tensor& t, std::mt19937& random) {
    for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, static_cast<int64_t>(random() % 74) - 37);
  };
  const auto matrix = [&](const std::vector<Arg>& args, int64_t axis, int64_t block) {
    Node* n = s.add("DequantizeLinear", args, {{"axis", axis}, {"block_size", block}});
    s.graph().outputs.pop_back();
    return made(n->outputs[0]);
  };
  const Arg blocks = matrix({constant(integers(DType::kI4, {96, 20}, 1)), scales({3, 20})}, 0, 32);
  s.add("MatMul", {floats({m, 96}), blocks});
  const Arg channels = matrix(
      {constant(integers(DType::kI8, {53, 21}, 2)), scales({21}), constant(integers(DType::kI8, {21}, 3))}, 1,
      0);
  s.add("MatMul", {floats({m, 53}), channels});
  const Arg table = matrix({constant(integers(DType::kU4, {37, 48}, 5)), scales({37, 3}),
                            constant(integers(DType::kU4, {37, 3}, 6))},
                           1, 16);
  const Arg bytes = constant(random_codes(37 * 24, 9).reshaped({37, 24}));
  s.add("GatherBlockQuantized",
        {bytes, values(DType::kI64, {m}, index), scales({37, 3}),
         constant(random_codes(37 * 2, 10).reshaped({37, 2}))},
        {{"bits", int64_t{4}}, {"block_size", int64_t{16}}});
  s.add("GatherBlockQuantized", {bytes, values(DType::kI32, {Dim(3)}, index), scales({37, 2})},
        {{"bits", int64_t{8}}, {"block_size", int64_t{16}}, {"quantize_axis", int64_t{-1}}});
  s.add("Gather", {table, values(DType::kI64, {m, Dim(2)}, index)});
  s.add("Gemm", {floats({m, 48}), table, scales({37})}, {{"transB", int64_t{1}}});
}

const std::vector<std::map<std::string, int64_t>> kRows = {{{"M", 1}}, {{"M", 4}}, {{"M", 5}}, {{"M", 30}}};

GeneratedBatch batch_of() {
  GeneratedBatch batch;
  Sheet plain, bytes, fused;
  add_forms(plain, 1);
  plain.into(batch, "codes", kRows);
  add_forms(bytes, 4);
  bytes.into(batch, "codes_by_bytes", kRows, {0, 0.03});
  // A bias, an activation and a residual in the product; with and without zero points, the last operand's
  // place.
  for (const Form& f : {kForms[0], kForms[1]}) {
    const Dim m = fused.graph().symbols->all().empty() ? fused.symbol("M", 1, 30)
                                                       : Dim(fused.graph().symbols->all()[0]);
    Node* n = add(fused, f, {m}, 3);
    fused.graph().outputs.pop_back();
    Node* biased = fused.add("Add", {made(n->outputs[0]), constant(random_constant(DType::kF32, {f.n}, 8))});
    fused.graph().outputs.pop_back();
    Node* active = fused.add("Sigmoid", {made(biased->outputs[0])});
    fused.graph().outputs.pop_back();
    fused.add("Mul", {made(active->outputs[0]), floats({m, Dim(f.n)})});
  }
  fused.into(batch, "codes_fused", kRows);
  Sheet kept;
  add_kept(kept);
  kept.into(batch, "codes_kept", {{{"M", 1}}, {{"M", 9}}});
  return batch;
}

void run(const char* name, const BuildOptions& options = {}) {
  expect_good(batch_of().run(target(name), options), name);
}

TEST(Codes, Avx512) { run("avx512"); }
TEST(Codes, Avx512Vnni) { run("avx512vnni"); }
TEST(Codes, Avx2) { run("avx2"); }
TEST(Codes, Sse42) { run("x86-64-v2"); }
TEST(Codes, Scalar) { run("scalar"); }
TEST(Codes, CortexA53) { run("cortex-a53"); }
TEST(Codes, CortexA76) { run("cortex-a76"); }
TEST(Codes, Sanitizers) { run("host", {.sanitize = true}); }
TEST(Codes, Clang) { run("host", {.clang = true}); }
TEST(Codes, Threads) { run("host", {.threads = 3}); }

// NAME.weights beside what the model stores.
TEST(Codes, TakeWhatTheModelStores) {
  for (const char* name : {"avx512", "avx2", "cortex-a76", "scalar"})
    for (const int64_t level : {0, 4})
      for (const Form& f : {Form{576, 203, 4, 32}, Form{1000, 77, 4, 16, kCodes, DType::kF16},
                            Form{512, 300, 8, 128, kCodes}, Form{768, 129, 2, 64, kFloats}}) {
        Sheet s;
        Node* n = add(s, f, {Dim(4)}, 1, level);
        int64_t own = 0;
        for (size_t i = 1; i < n->inputs.size(); ++i) own += n->inputs[i]->data->bytes();
        run_passes(s.graph(), {});
        WeightStore store;
        make_plan(s.graph(), target(name), s.decisions, store);
        EXPECT_LE(static_cast<double>(store.bytes().size()), 1.01 * static_cast<double>(own) + 256)
            << name << f.k;
      }
}

}  // namespace
}  // namespace sinter
