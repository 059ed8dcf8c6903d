// Chains of products of bytes: run a few rows at a time, written where a Concat wants them, read where they
// lie between other channels, shared by threads.
//
// Scales are powers of two, so that every float on the way is exact: results must be the same bytes.
#include <gtest/gtest.h>

#include "emit/chain.h"
#include "plan/plan.h"
#include "plan/strips.h"

namespace sinter {
namespace {

constexpr int64_t kCache = 12 << 10;

struct ByteChain : Chain {
  Value* bytes(Shape shape, DType t = DType::kU8) {
    Value* v = input(std::move(shape));
    v->type.dtype = t;
    return v;
  }
  // A product by small weights, whose sums become bytes of type `to`.
  Value* product(const char* op, Value* x, std::vector<int64_t> weights, AttributeList a, int64_t axis,
                 DType to = DType::kU8) {
    const int64_t channels = weights[static_cast<size_t>(axis)];
    std::vector<Value*> in{x, g->add_constant("w", random_constant(DType::kI8, std::move(weights), seed++))};
    if (axis == 0) in.push_back(g->add_constant("b", random_constant(DType::kI32, {channels}, seed++)));
    a.insert(a.end(), {{"integer", int64_t{1}}, {"x_zero", int64_t{3}}});
    Value* y = node(op, in, a);
    const ExprPtr real = Expr::call("mul", {Expr::cast(Expr::accumulator(DType::kI32), DType::kF32),
                                            Expr::constant(1.0 / 32, DType::kF32)}),
                  one = Expr::constant(1, DType::kF32), zero = Expr::constant(5, DType::kF32);
    Node* n = g->nodes.back().get();
    n->epilogue = Expr::cast(Expr::call("quantize", {real, one, zero}), to);
    infer(*g, *n);
    return y;
  }
  Value* byte_conv(Value* x, int64_t out, int64_t kernel, int64_t stride, int64_t pad, bool depthwise = false,
                   DType to = DType::kU8) {
    const int64_t in = x->type.shape.back().value();
    return product("Conv", x, {out, depthwise ? 1 : in, kernel, kernel},
                   {{"channels_last", int64_t{1}},
                    {"kernel_shape", Ints{kernel, kernel}},
                    {"pads", Ints(4, pad)},
                    {"strides", Ints{stride, stride}},
                    {"group", depthwise ? in : int64_t{1}}},
                   0, to);
  }
  Value* pool(Value* x, int64_t kernel, int64_t stride, int64_t pad) {
    return node("MaxPool", {x},
                {{"channels_last", int64_t{1}},
                 {"kernel_shape", Ints{kernel, kernel}},
                 {"strides", Ints{stride, stride}},
                 {"pads", Ints(4, pad)}});
  }
  Value* concat(const std::vector<Value*>& parts) { return node("Concat", parts, {{"axis", int64_t{-1}}}); }
};

bool runs_in_strips(const ByteChain& c, const char* name) {
  Decisions decisions;
  make_strips(*c.g, *find_target(name), decisions, kCache);
  return std::all_of(c.g->nodes.begin(), c.g->nodes.end(),
                     [&](const auto& n) { return decisions.of(*n).row_tile.has_value(); });
}

// Expand + depthwise + project, and two of them, with strides, kernels of 3 and 5, heights that are no
// multiple of a strip.
void add_blocks(GeneratedBatch& batch, const char* name) {
  struct Block {
    int64_t height, width, in, wide, out, kernel, stride, pad;
  };
  for (const Block& b : {Block{23, 19, 8, 35, 8, 3, 1, 1}, Block{24, 18, 6, 48, 12, 3, 2, 1},
                         Block{31, 9, 8, 64, 5, 5, 1, 2}, Block{40, 17, 4, 32, 20, 3, 1, 0}}) {
    ByteChain c;
    Value* x = c.byte_conv(c.bytes(picture(b.height, b.width, b.in)), b.wide, 1, 1, 0);
    Value* y =
        c.byte_conv(c.byte_conv(x, b.wide, b.kernel, b.stride, b.pad, true, DType::kI8), b.out, 1, 1, 0);
    EXPECT_TRUE(runs_in_strips(c, name)) << b.height << " x " << b.width;
    c.into(batch, "block", y);
  }
  ByteChain pooled;
  Value* y = pooled.pool(pooled.byte_conv(pooled.bytes(picture(45, 38, 6)), 20, 3, 1, 1), 3, 2, 1);
  EXPECT_TRUE(runs_in_strips(pooled, name));
  pooled.into(batch, "pooled", y);
  ByteChain first;
  Value* z = first.byte_conv(first.bytes(picture(47, 35, 3)), 40, 3, 2, 1);
  first.into(batch, "first", first.byte_conv(z, 40, 3, 1, 1, true));
}

// SqueezeNet's fire, with a pool; the Concat's result is written in place and read by all.
void add_joined(GeneratedBatch& batch, const char* name) {
  ByteChain c;
  Value* x = c.byte_conv(c.bytes(picture(11, 9, 20)), 24, 1, 1, 0);
  Value* all = c.concat({c.byte_conv(x, 33, 1, 1, 0), c.byte_conv(x, 40, 3, 1, 1),
                         c.byte_conv(x, 24, 3, 1, 1, true), c.pool(x, 3, 1, 1)});
  Node* concat = c.g->nodes.back().get();
  for (Value* v : {c.byte_conv(all, 12, 3, 2, 1), c.byte_conv(all, 121, 5, 1, 2, true), c.pool(all, 2, 2, 0)})
    c.g->outputs.push_back(v);
  Value* y = c.byte_conv(all, 16, 1, 1, 0);
  auto planned = c.g->clone();
  planned->outputs.push_back(planned->nodes.back()->outputs[0]);
  Decisions decisions;
  place_concats(*planned, *find_target(name), decisions);
  for (const auto& n : planned->nodes) {
    if (n->name != concat->name) continue;
    EXPECT_TRUE(decisions.of(*n).in_place);
  }
  c.into(batch, "joined", y);
  // A part that others read between the channels around it.
  ByteChain shared;
  Value* s = shared.byte_conv(shared.bytes({Dim(2), Dim(7), Dim(8), Dim(19)}), 32, 3, 1, 1);
  Value* t = shared.byte_conv(s, 48, 3, 1, 1, false, DType::kU8);
  shared.g->outputs.push_back(shared.byte_conv(s, 32, 3, 1, 1, true));
  shared.into(batch, "shared", shared.byte_conv(shared.concat({t, s}), 9, 3, 1, 1));
}

// Rows of one matrix and of several, few rows beside many columns, and one row.
void add_matrices(GeneratedBatch& batch) {
  for (const Shape& shape : {Shape{Dim(70), Dim(33)}, Shape{Dim(2), Dim(3), Dim(9), Dim(40)},
                             Shape{Dim(3), Dim(64)}, Shape{Dim(1), Dim(100)}}) {
    ByteChain c;
    Value* y = c.product("MatMul", c.bytes(shape, DType::kI8), {shape.back().value(), 150}, {}, 1);
    c.into(batch, "matrix", c.product("MatMul", y, {150, 37}, {}, 1));
  }
}

void run(const char* name, BuildOptions options = {}) {
  GeneratedBatch batch;
  const Target& t = *find_target(name);
  add_blocks(batch, t.name);
  add_joined(batch, t.name);
  add_matrices(batch);
  options.cache = kCache;
  expect_good(batch.run(t, options), name);
}

TEST(DotChains, CortexA55) { run("cortex-a55", {.flags = "-O2"}); }
TEST(DotChains, CortexA76) { run("cortex-a76", {.flags = "-O2"}); }
TEST(DotChains, Avx2) { run("avx2"); }
TEST(DotChains, Avx512Vnni) { run("avx512vnni", {.flags = "-O2"}); }
TEST(DotChains, Sanitizers) { run("host", {.sanitize = true}); }
TEST(DotChains, Threads) { run("host", {.threads = 3}); }

}  // namespace
}  // namespace sinter
