// Channels of pixels that are written and read where they lie, between others: results that go into a Concat
// and to others too, channels taken by Slice and Split; and the cases where that must not be.
#include <gtest/gtest.h>

#include "emit/chain.h"
#include "plan/plan.h"

namespace sinter {
namespace {

constexpr const char* kTargets[] = {"scalar",     "avx2",      "avx512", "sapphirerapids-amx",
                                    "cortex-a53", "cortex-a72"};

struct Net : Chain {
  Value* concat(const std::vector<Value*>& parts) { return node("Concat", parts, {{"axis", int64_t{-1}}}); }
  Value* slice(Value* x, int64_t first, int64_t end) {
    const auto ints = [&](int64_t v) { return g->add_constant("c", Tensor::of(Ints{v})); };
    return node("Slice", {x, ints(first), ints(end), ints(-1)}, {});
  }
  std::vector<Value*> split(Value* x, const Ints& sizes) {
    std::vector<Value*> parts;
    for (size_t i = 0; i < sizes.size(); ++i) parts.push_back(g->add_value("part", {}));
    Node* n =
        g->add_node(find_op("", "Split"), "Split", {x, g->add_constant("sizes", Tensor::of(sizes))}, parts);
    n->attributes.set("axis", int64_t{-1});
    infer(*g, *n);
    return parts;
  }
  Value* pool(Value* x, const char* op, int64_t kernel) {
    return node(op, {x},
                {{"channels_last", int64_t{1}},
                 {"kernel_shape", Ints{kernel, kernel}},
                 {"pads", Ints(4, kernel / 2)}});
  }
  Value* on_tiles(Value* x, int64_t out, int64_t kernel, int64_t stride) {
    Value* y = conv(x, out, kernel, stride, kernel / 2);
    Node& n = *g->nodes.back();
    n.freedom.tile_matrices = decisions.change(n).tile_matrices.tuned = true;
    return y;
  }
};

// The halves of a convolution's result, one of which goes through others, joined again (YOLO's blocks).
Value* halves(Net& n) {
  Value* x = n.conv(n.input(picture(12, 10, 24)), 64, 1, 1, 0);
  Value* half = n.slice(x, 32, 64);
  Value* y = n.winograd(n.winograd(half, 32, 3, 1), 32, 3, 1);
  n.add_residual(half);
  Value* z = n.winograd(y, 32, 3, 1);
  return n.on_tiles(n.concat({x, y, z}), 20, 1, 1);
}
Value* pools(Net& n) {
  Value* x = n.conv(n.input(picture(9, 11, 24)), 20, 1, 1, 0);
  Value* a = n.pool(x, "MaxPool", 5);
  Value* b = n.pool(a, "MaxPool", 3);
  return n.conv(n.concat({x, a, b, n.pool(b, "AveragePool", 3)}), 8, 1, 1, 0);
}
// What is in the Concat is read by every kernel that can.
Value* readers(Net& n) {
  Value* x = n.conv(n.input({Dim(2), Dim(9), Dim(8), Dim(24)}), 32, 3, 1, 1);
  Value* y = n.conv(x, 16, 1, 1, 0);
  const auto both = n.concat({x, y});
  const std::vector<Value*> read = {n.conv(x, 12, 1, 1, 0),       n.conv(x, 12, 3, 1, 1),
                                    n.conv(x, 12, 3, 2, 1),       n.conv(x, 32, 3, 1, 1, true),
                                    n.conv(x, 32, 5, 2, 2, true), n.winograd(x, 20, 3, 1),
                                    n.node("Sigmoid", {x}, {}),   n.resized(x, "nearest", 2),
                                    n.resized(x, "linear", 2),    n.concat({n.conv(y, 5, 1, 1, 0), x})};
  for (Value* v : read) n.g->outputs.push_back(v);
  return n.conv(both, 8, 1, 1, 0);
}
// Windows and rows on tile matrices, where the target has them.
Value* on_tiles(Net& n) {
  Value* x = n.on_tiles(n.input(picture(13, 12, 32)), 64, 1, 1);
  Value* y = n.on_tiles(x, 32, 3, 1);
  for (Value* v : {n.on_tiles(x, 40, 3, 2), n.on_tiles(x, 33, 1, 1)}) n.g->outputs.push_back(v);
  return n.on_tiles(n.concat({y, x}), 20, 1, 1);
}
Value* parts_of_parts(Net& n) {
  Value* x = n.conv(n.input(picture(8, 8, 12)), 80, 1, 1, 0);
  const std::vector<Value*> outer = n.split(x, {48, 32});
  const std::vector<Value*> inner = n.split(outer[0], {16, 32});
  n.g->outputs.push_back(n.conv(inner[0], 8, 1, 1, 0));
  n.g->outputs.push_back(n.node("Sigmoid", {outer[1]}, {}));
  return n.conv(n.concat({n.conv(inner[1], 16, 3, 1, 1), x}), 8, 1, 1, 0);
}
// --- and what stays: a result of the model, too few channels, a reader that takes pixels side by side, a
// Value that is joined twice (it lies in the first Concat), one that would be kept too long there.
Value* outputs(Net& n) {
  Value* x = n.conv(n.input(picture(8, 8, 12)), 32, 1, 1, 0);
  n.g->outputs.push_back(x);
  return n.conv(n.concat({x, n.conv(x, 16, 1, 1, 0)}), 8, 1, 1, 0);
}
Value* few_channels(Net& n) {
  Value* x = n.conv(n.input(picture(8, 8, 12)), 24, 1, 1, 0);
  Value* y = n.conv(n.slice(x, 16, 24), 16, 1, 1, 0);
  return n.conv(n.concat({x, y}), 8, 1, 1, 0);
}
Value* side_by_side(Net& n) {
  Value* x = n.conv(n.input(picture(8, 8, 12)), 32, 1, 1, 0);
  n.g->outputs.push_back(n.node("Softmax", {x}, {{"axis", int64_t{-1}}}));
  return n.conv(n.concat({x, n.conv(x, 16, 1, 1, 0)}), 8, 1, 1, 0);
}
Value* joined_twice(Net& n) {
  Value* x = n.conv(n.input(picture(8, 8, 12)), 32, 1, 1, 0);
  Value* y = n.concat({x, n.conv(x, 16, 1, 1, 0)});
  Value* z = n.concat({x, n.conv(y, 16, 1, 1, 0)});
  return n.conv(z, 8, 1, 1, 0);
}
Value* kept_too_long(Net& n) {
  Value* x = n.conv(n.input(picture(16, 16, 8)), 16, 1, 1, 0);
  Value* y = n.conv(n.conv(n.conv(x, 256, 1, 1, 0), 256, 1, 1, 0), 64, 1, 1, 0);
  return n.conv(n.concat({x, n.conv(y, 128, 1, 1, 0)}), 8, 1, 1, 0);
}

struct Case {
  const char* name;
  Value* (*build)(Net&);
  int moved;  // layers that only move what is there
};
const Case kCases[] = {
    {"halves", halves, 0},
    {"pools", pools, 0},
    {"readers", readers, 1},
    {"on_tiles", on_tiles, 0},
    {"parts_of_parts", parts_of_parts, 0},
    {"outputs", outputs, 1},
    {"few_channels", few_channels, 2},
    {"side_by_side", side_by_side, 1},
    {"joined_twice", joined_twice, 1},
    {"kept_too_long", kept_too_long, 1},
};

TEST(Channels, LieWhereTheyAreReadAndWritten) {
  for (const char* name : kTargets)
    for (const Case& c : kCases) {
      Net n;
      n.g->outputs.push_back(c.build(n));
      separate_outputs(*n.g, n.decisions);
      place_concats(*n.g, target(name), n.decisions);
      WeightStore store;
      int moved = 0;
      for (const Layer& l : make_plan(*n.g, target(name), n.decisions, store).layers)
        moved += l.kernel.rfind("copy", 0) == 0;
      EXPECT_EQ(moved, c.moved) << name << ", " << c.name;
    }
}

// Winograd goes, and the kernel that takes its place reads pixels as far apart.
TEST(Channels, AreReadByWhateverKernelRuns) {
  Net n;
  n.g->outputs.push_back(halves(n));
  const Target& t = target("cortex-a72");
  place_concats(*n.g, t, n.decisions);
  for (const auto& node : n.g->nodes) node->freedom.winograd = 0;
  place_concats(*n.g, t, n.decisions);
  WeightStore store;
  for (const Layer& l : make_plan(*n.g, t, n.decisions, store).layers) EXPECT_EQ(l.kernel, "conv_direct");
}

void run(const char* name, BuildOptions options = {}) {
  GeneratedBatch batch;
  for (const Case& c : kCases) {
    Net n;
    Value* result = c.build(n);
    n.into(batch, c.name, result);
  }
  const auto results = batch.run(target(name), options);
  if (results[0].skipped.empty()) expect_good(results, name);
}

TEST(Channels, Scalar) { run("scalar"); }
TEST(Channels, Avx2) { run("avx2"); }
TEST(Channels, Avx512) { run("avx512", {.threads = 2}); }
TEST(Channels, TileMatrices) { run("sapphirerapids-amx", {.threads = 3}); }
TEST(Channels, CortexA53) { run("cortex-a53"); }
TEST(Channels, CortexA72) { run("cortex-a72", {.threads = 2}); }
TEST(Channels, Sanitizers) { run("host", {.sanitize = true}); }
TEST(Channels, Clang) { run("avx2", {.clang = true}); }

}  // namespace
}  // namespace sinter
