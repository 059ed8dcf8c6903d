// What layers read and write where it is: strips of rows, Concat along channels, parts and planes of a
// picture.
#include "plan/strips.h"

#include <gtest/gtest.h>

#include "emit/chain.h"
#include "ops/windows/window.h"
#include "plan/steps.h"

namespace sinter {
namespace {

constexpr int64_t kCache = 24 << 10;

Decisions strips_of(const Graph& g) {
  Decisions decisions;
  make_strips(g, target("avx512"), decisions, kCache);
  return decisions;
}
int64_t group_of(const Decisions& decisions, const Node& n) {
  const auto& tile = decisions.of(n).row_tile;
  return tile ? tile->group : -1;
}

// Blocks whose heights are no multiple of a strip, with strides, kernels of 3 and 5, residuals.
void add_blocks(GeneratedBatch& batch) {
  struct Block {
    int64_t height, width, in, wide, out, kernel, stride, pad;
  };
  const Block blocks[] = {{23, 19, 8, 20, 8, 3, 1, 1},  {24, 18, 6, 24, 12, 3, 2, 1},
                          {31, 9, 8, 32, 5, 5, 1, 2},   {29, 14, 5, 18, 9, 5, 2, 2},
                          {40, 17, 4, 16, 4, 3, 1, 0},  {37, 12, 8, 21, 8, 3, 2, 0},
                          {33, 21, 16, 16, 32, 3, 3, 1}};
  for (const Block& b : blocks) {
    Chain c;
    Value* x = c.input(picture(b.height, b.width, b.in));
    Value* y =
        c.conv(c.conv(c.conv(x, b.wide, 1, 1, 0), b.wide, b.kernel, b.stride, b.pad, true), b.out, 1, 1, 0);
    if (b.stride == 1 && b.in == b.out && b.pad * 2 + 1 == b.kernel) c.add_residual(x);
    EXPECT_EQ(group_of(strips_of(*c.g), *c.g->nodes.back()), 0) << b.height << " x " << b.width;
    c.into(batch, "block", y);
  }
}

// Two layers: a first convolution and a depthwise one; a depthwise one and a pointwise one.
void add_pairs(GeneratedBatch& batch) {
  Chain first;
  Value* x = first.input(picture(47, 35, 3));
  first.into(batch, "first_depthwise", first.conv(first.conv(x, 16, 3, 2, 1), 16, 3, 1, 1, true));
  Chain pair;
  x = pair.input(picture(30, 21, 20));
  pair.into(batch, "depthwise_pointwise", pair.conv(pair.conv(x, 20, 3, 1, 1, true), 24, 1, 1, 0));
}

// To one channel, by columns.
void add_columns(GeneratedBatch& batch) {
  Chain c;
  Value* x = c.input(picture(47, 35, 24));
  Value* y = c.conv(c.conv(x, 24, 3, 1, 1, true), 1, 3, 1, 1);
  const Decisions decisions = strips_of(*c.g);
  EXPECT_EQ(std::string(find_kernel(*c.g->nodes[1], {target("avx512"), decisions})->name), "conv_columns");
  for (const auto& n : c.g->nodes) EXPECT_EQ(group_of(decisions, *n), 0) << n->name;
  c.into(batch, "columns", y);
}

// From planes and back to planes.
void add_between_planes(GeneratedBatch& batch) {
  Chain c;
  Value* x = c.input({Dim(1), Dim(20), Dim(27), Dim(18)});
  Value* t = c.node("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}});
  Value* y = c.conv(c.conv(t, 20, 3, 1, 1, true), 24, 1, 1, 0);
  Value* out = c.node("Transpose", {y}, {{"perm", Ints{0, 3, 1, 2}}});
  const Decisions decisions = strips_of(*c.g);
  for (const auto& n : c.g->nodes) EXPECT_EQ(group_of(decisions, *n), 0) << n->name;
  c.into(batch, "between_planes", out);
}

void add_concats(GeneratedBatch& batch, const char* target_name) {
  Chain c;
  Value* x = c.input(picture(13, 11, 24));
  Value* a = c.conv(x, 10, 1, 1, 0);
  Value* b = c.conv(x, 33, 3, 1, 1);
  Value* d = c.conv(x, 24, 3, 1, 1, true);
  Value* p =
      c.node("MaxPool", {x},
             {{"channels_last", int64_t{1}}, {"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}});
  Value* all = c.node("Concat", {a, b, d, p}, {{"axis", int64_t{-1}}});
  Value* y = c.conv(all, 8, 1, 1, 0);
  auto planned = c.g->clone();
  Decisions decisions;
  place_concats(*planned, target(target_name), decisions);
  WeightStore store;
  EXPECT_EQ(make_plan(*planned, target(target_name), decisions, store).layers.size(), 5u);
  c.into(batch, "concat", y);
}

std::string kernels_of(const Graph& g, const Target& t, const Decisions& decisions) {
  WeightStore store;
  std::string kernels;
  for (const Layer& l : make_plan(g, t, decisions, store).layers) kernels += l.kernel + " ";
  return kernels;
}

// A picture that is enlarged and joined with one that others read too: the one is written in place, the other
// copied there.
void add_skip(GeneratedBatch& batch, const char* target_name, const char* mode, int64_t channels) {
  Chain c;
  Value* skip = c.conv(c.input(picture(12, 10, 4)), 5, 3, 1, 1);
  Value* up = c.resized(c.conv(skip, channels, 3, 2, 1), mode, 2);
  Value* all = c.node("Concat", {up, skip}, {{"axis", int64_t{-1}}});
  Value* y = c.conv(all, 8, 1, 1, 0);
  auto planned = c.g->clone();
  Decisions decisions;
  place_concats(*planned, target(target_name), decisions);
  EXPECT_EQ(kernels_of(*planned, target(target_name), decisions),
            "conv_direct conv_direct resize copy conv_direct ");
  c.into(batch, "skip", y);
}

// Winograd's convolutions of what is joined or enlarged, read where it lies; the same where something forbids
// it: channels that would share a vector, another scale, linear interpolation, another reader.
void add_parts(GeneratedBatch& batch, const char* target_name) {
  struct Part {
    int64_t channels;
    const char* mode = "";  // of its Resize
    float times = 2;
  };
  struct Picture {
    int64_t batch, height, width, kernel, pad;
    std::vector<Part> parts;
    const char* kernels;  // of all layers
  };
  const Picture pictures[] = {
      {1, 12, 14, 3, 1, {{16, "nearest"}, {5}}, "conv_direct conv_direct conv_winograd "},
      {2, 10, 12, 5, 2, {{32}, {20, "nearest"}}, "conv_direct conv_direct conv_winograd "},
      {1, 14, 10, 4, 1, {{24, "nearest"}}, "conv_direct conv_winograd "},
      {3,
       8,
       16,
       3,
       0,
       {{16}, {16, "nearest"}, {16}, {3, "nearest"}},
       "conv_direct conv_direct conv_direct conv_direct conv_winograd "},
      {1, 12, 14, 3, 1, {{16, "linear"}, {5}}, "conv_direct conv_direct resize conv_winograd "},
      {1, 12, 12, 3, 1, {{16, "nearest", 4}, {5}}, "conv_direct conv_direct resize conv_winograd "},
      {1, 12, 14, 3, 1, {{17, "nearest"}, {5}}, "conv_direct conv_direct resize copy conv_winograd "},
  };
  for (const Picture& p : pictures) {
    Chain c;
    Value* x = c.input({Dim(p.batch), Dim(p.height), Dim(p.width), Dim(4)});
    std::vector<Value*> parts;
    for (const Part& part : p.parts) {
      const auto stride = *part.mode ? static_cast<int64_t>(part.times) : 1;
      parts.push_back(c.conv(x, part.channels, stride == 1 ? 1 : stride, stride, 0));
      if (stride == 1) c.g->outputs.push_back(parts.back());
    }
    for (size_t i = 0; i < parts.size(); ++i)
      if (*p.parts[i].mode) parts[i] = c.resized(parts[i], p.parts[i].mode, p.parts[i].times);
    Value* all = parts.size() == 1 ? parts[0] : c.node("Concat", parts, {{"axis", int64_t{-1}}});
    Value* y = c.winograd(all, 20, p.kernel, p.pad);
    auto planned = c.g->clone();
    planned->outputs.push_back(planned->nodes.back()->outputs[0]);
    const Target& t = target(target_name);
    Decisions decisions = carried(c.decisions, *c.g, *planned);
    read_pieces(*planned, t, decisions);
    place_concats(*planned, t, decisions);
    if (t.lanes > 1 || p.parts[0].channels % 2 == 0) {  // 17 channels are whole vectors of one
      EXPECT_EQ(kernels_of(*planned, t, decisions), p.kernels)
          << p.height << " x " << p.width << ", " << p.kernel;
    }
    c.into(batch, "parts", y);
  }
}

// Where Winograd goes, all that was skipped comes back.
TEST(Parts, ComeBackWithAnotherKernel) {
  Chain c;
  Value* skip = c.conv(c.input(picture(12, 10, 4)), 5, 3, 1, 1);
  Value* low = c.conv(skip, 16, 3, 2, 1);
  c.g->outputs.push_back(
      c.winograd(c.node("Concat", {c.resized(low, "nearest", 2), skip}, {{"axis", int64_t{-1}}}), 20, 3, 1));
  const Target& t = target("avx2");
  read_pieces(*c.g, t, c.decisions);
  place_concats(*c.g, t, c.decisions);
  EXPECT_EQ(kernels_of(*c.g, t, c.decisions), "conv_direct conv_direct conv_winograd ");
  c.g->nodes.back()->freedom.winograd = 0;
  read_pieces(*c.g, t, c.decisions);
  EXPECT_EQ(kernels_of(*c.g, t, c.decisions), "conv_direct conv_direct resize copy_concat conv_direct ");
  place_concats(*c.g, t, c.decisions);
  EXPECT_EQ(kernels_of(*c.g, t, c.decisions), "conv_direct conv_direct resize copy conv_direct ");
}

void add_planes(GeneratedBatch& batch) {
  for (const int64_t kernel : {3, 11, 18}) {
    Chain c;
    Value* x = c.input({Dim(1), Dim(3), Dim(19), Dim(23)});
    Value* t = c.node("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}});
    Value* y = c.conv(t, 20, kernel, 2, kernel / 2);
    for (const char* name : {"avx512", "cortex-a53", "cortex-a72"}) {
      auto planned = c.g->clone();
      Decisions decisions;
      read_planes(*planned, target(name), decisions);
      EXPECT_TRUE(decisions.of(*planned->nodes.back()).reads_nchw);
    }
    c.into(batch, "planes", y);
  }
  struct Picture {
    int64_t batch, channels, height, width, out, kernel, stride, pad;
  };
  const Picture pictures[] = {{2, 1, 9, 8, 7, 3, 1, 1},    {1, 4, 12, 15, 33, 3, 2, 0},
                              {1, 3, 2, 2, 12, 5, 1, 2},   {3, 2, 10, 3, 16, 4, 3, 1},
                              {1, 3, 30, 28, 64, 3, 2, 2}, {1, 2, 5, 1, 4, 2, 1, 3}};
  for (const Picture& p : pictures) {
    Chain c;
    Value* x = c.input({Dim(p.batch), Dim(p.channels), Dim(p.height), Dim(p.width)});
    Value* y =
        c.conv(c.node("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}}), p.out, p.kernel, p.stride, p.pad);
    c.into(batch, "pictures", y);
  }
}

// Pictures of few channels by Winograd's filtering along their rows, with every tile; behind one a pool, with
// which it runs in strips.
void add_planes_winograd(GeneratedBatch& batch, const char* name) {
  struct Picture {
    int64_t batch, channels, height, width, out;
    Ints kernel, strides, pads;
    int64_t bytes = 0;  // of scratch; 0: as many as the cache has
  };
  const Picture pictures[] = {{1, 3, 30, 28, 64, {7, 7}, {2, 2}, {3, 3, 3, 3}},
                              {2, 1, 19, 20, 7, {5, 7}, {1, 1}, {2, 3, 1, 3}, 48 << 10},
                              {1, 4, 12, 15, 33, {3, 5}, {2, 2}, {0, 0, 0, 0}},
                              {3, 2, 10, 33, 16, {2, 4}, {3, 1}, {1, 1, 0, 2}, 32 << 10},
                              {1, 3, 2, 2, 12, {7, 7}, {1, 1}, {3, 3, 3, 3}},
                              {1, 2, 45, 1, 4, {3, 5}, {1, 2}, {1, 4, 1, 4}, 12 << 10},
                              {1, 1, 1, 61, 40, {1, 7}, {1, 2}, {0, 5, 0, 0}},
                              {1, 3, 61, 47, 9, {7, 7}, {2, 2}, {3, 2, 3, 3}}};
  for (const Picture& p : pictures)
    for (const int64_t positions : {4, 6, 8}) {
      Chain c;
      Value* x = c.input({Dim(p.batch), Dim(p.channels), Dim(p.height), Dim(p.width)});
      Value* t = c.node("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}});
      const Ints weights{p.out, p.channels, p.kernel[0], p.kernel[1]};
      Value* w = c.g->add_constant("w", random_constant(DType::kF32, weights, c.seed++));
      Value* y =
          c.node("Conv", {t, w}, {{"channels_last", int64_t{1}}, {"pads", p.pads}, {"strides", p.strides}});
      Node& node = *c.g->nodes.back();
      const int64_t outputs = most_winograd_outputs(node, positions);
      if (outputs < 2) continue;
      node.freedom.winograd = c.decisions.change(node).winograd.tile = outputs;
      if (p.bytes > 0) c.decisions.change(node).winograd.bytes = p.bytes;
      if (p.height == 61)
        y = c.node("MaxPool", {y},
                   {{"channels_last", int64_t{1}}, {"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}});
      if (positions == 6 && p.height != 61) c.add_residual(c.input(y->type.shape));
      auto planned = c.g->clone();
      planned->outputs.push_back(planned->nodes.back()->outputs[0]);
      Decisions decisions = carried(c.decisions, *c.g, *planned);
      run_steps(*planned, {target(name), {}, kCache}, decisions);
      const Node& conv = *planned->nodes[1];
      EXPECT_EQ(std::string(find_kernel(conv, {target(name), decisions})->name), "conv_planes_winograd")
          << p.kernel[1];
      EXPECT_EQ(decisions.of(conv).row_tile.has_value(), p.height == 61);
      c.into(batch, "planes_winograd", y);
    }
}

// Long kernels are worth the transforms, short ones are not; nothing without the mark.
TEST(InPlace, PlanesByWinogradWhereItPays) {
  for (const char* name : {"avx512", "avx2", "cortex-a53", "cortex-a55", "cortex-a76"})
    for (const int64_t kernel : {3, 7})
      for (const int64_t mark : {0, 5}) {
        Chain c;
        Value* x = c.input({Dim(1), Dim(3), Dim(224), Dim(224)});
        c.conv(c.node("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}}), 64, kernel, 2, kernel / 2);
        Node& conv = *c.g->nodes.back();
        c.decisions.change(conv).reads_nchw = true;
        conv.freedom.winograd = mark;
        const Kernel* k = find_kernel(conv, {target(name), c.decisions});
        const bool pays = std::string_view(k->name) == "conv_planes_winograd";
        EXPECT_EQ(pays, kernel == 7 && mark > 0) << name << ", " << kernel;
        if (!target(name).features.halves) continue;
        // The same of floats where halves are computed.
        conv.freedom.halves = Halves::kComputed;
        conv.outputs[0]->type.dtype = DType::kF16;
        const Kernel* of_halves = find_kernel(conv, {in_halves(target(name)), c.decisions});
        EXPECT_STREQ(of_halves->name, pays ? "conv_planes_winograd" : "conv_planes")
            << name << ", " << kernel;
      }
}

// A convolution and the pool behind it.
void add_pooled(GeneratedBatch& batch) {
  struct Pool {
    const char* op;
    int64_t kernel, stride, pad, ceil;
  };
  for (const Pool& p : {Pool{"MaxPool", 3, 2, 0, 1}, Pool{"MaxPool", 3, 1, 1, 0},
                        Pool{"AveragePool", 3, 2, 1, 0}, Pool{"MaxPool", 2, 2, 0, 0}}) {
    Chain c;
    Value* x = c.input(picture(45, 38, 6));
    Value* y = c.node(p.op, {c.conv(x, 20, 3, 1, 1)},
                      {{"channels_last", int64_t{1}},
                       {"kernel_shape", Ints{p.kernel, p.kernel}},
                       {"strides", Ints{p.stride, p.stride}},
                       {"pads", Ints{p.pad, p.pad, p.pad, p.pad}},
                       {"ceil_mode", p.ceil}});
    const auto tile = strips_of(*c.g).of(*c.g->nodes.back()).row_tile;
    EXPECT_TRUE(tile && tile->rows > 0);
    c.into(batch, "pooled", y);
  }
}

// Where the arena has no room for all the tiles that fit the cache, Winograd takes fewer at once.
TEST(Budget, LimitsWinogradBeforeItIsDropped) {
  Chain c;
  Value* v = c.input(picture(56, 56, 64));
  for (int i = 0; i < 3; ++i) {
    v = c.conv(v, 64, 3, 1, 1);
    c.g->nodes.back()->freedom.winograd = 6;
  }
  c.g->outputs.push_back(v);
  for (const char* name : {"cortex-a53", "cortex-a72", "avx512"}) {
    Decisions decisions = c.decisions;
    Plan plan;
    do {
      WeightStore store;
      plan = make_plan(*c.g, target(name), decisions, store);
    } while (limit_scratch(*c.g, plan, decisions));
    EXPECT_LE(plan.arena_bytes, arena_limit(plan));
    for (const Layer& l : plan.layers) EXPECT_EQ(l.kernel, "conv_winograd") << name;
  }
}

// --small-weights: transformed weights go until the rest fits, first where the picture is small.
TEST(Budget, SmallWeightsTakeWinogradFromSmallPicturesFirst) {
  Chain c;
  Value* v = c.conv(c.input(picture(56, 56, 32)), 32, 3, 1, 1);
  c.g->nodes.back()->freedom.winograd = 4;
  v = c.conv(c.conv(v, 256, 3, 4, 1), 256, 3, 1, 1);
  c.g->nodes.back()->freedom.winograd = 4;
  c.g->outputs.push_back(v);
  const int64_t model = constant_bytes(*c.g);
  for (const char* name : {"cortex-a72", "avx512"}) {
    auto plan_within = [&](int64_t most, std::string* kernels) {
      Decisions decisions = c.decisions;
      for (int tries = 0;; ++tries) {
        WeightStore store;
        const Plan plan = make_plan(*c.g, target(name), decisions, store);
        const auto bytes = static_cast<int64_t>(store.bytes().size());
        if (tries < 3 && shrink_weights(*c.g, plan, bytes - most, decisions)) continue;
        kernels->clear();
        for (const Layer& l : plan.layers) *kernels += l.kernel + " ";
        return bytes;
      }
    };
    std::string kernels;
    EXPECT_GT(plan_within(model * 10, &kernels), model * 2) << name;
    EXPECT_EQ(kernels, "conv_winograd conv_direct conv_winograd ");
    EXPECT_LE(plan_within(model / 10 * 11, &kernels), model / 10 * 11) << name;
    EXPECT_EQ(kernels, "conv_winograd conv_direct conv_direct ");
    EXPECT_LE(plan_within(model / 100 * 101, &kernels), model / 100 * 101) << name;
    EXPECT_EQ(kernels, "conv_direct conv_direct conv_direct ");
  }
}

void run(const char* name, BuildOptions options = {}) {
  GeneratedBatch batch;
  add_blocks(batch);
  add_pairs(batch);
  add_columns(batch);
  add_between_planes(batch);
  add_concats(batch, name);
  add_skip(batch, name, "nearest", 20);
  add_skip(batch, name, "linear", 7);
  add_parts(batch, name);
  add_planes(batch);
  add_planes_winograd(batch, name);
  add_pooled(batch);
  options.cache = kCache;
  expect_good(batch.run(target(name), options), name);
}

// Each thread has buffers of its own, and about as many turns as another; where turns are too few, or of one
// row, the layers run apart.
TEST(Strips, AreSharedByThreads) {
  struct Row {
    int threads;
    int64_t rows, parts,
        bytes;  // bytes: of the buffer between the layers, of a part with what keeps it apart
  };
  constexpr int64_t kRow = 18 * 90 * 4;
  for (const Row& row : {Row{1, 14, 1, 14 * kRow}, Row{2, 10, 2, 10 * kRow + 32 + 8192},
                         Row{3, 14, 3, 14 * kRow + 32 + 8192}, Row{64, 0, 1, 0}}) {
    Chain c;
    Value* x = c.input(picture(40, 18, 90));
    Value* y = c.conv(c.conv(x, 90, 3, 1, 1, true), 24, 1, 1, 0);
    c.g->outputs.push_back(y);
    make_strips(*c.g, target("avx512"), c.decisions, 160 << 10);
    share_strips(*c.g, target("avx512"), c.decisions, row.threads, 160 << 10);
    const RowTile first = c.decisions.of(*c.g->nodes[0]).row_tile.value_or(RowTile{}),
                  last = c.decisions.of(*c.g->nodes.back()).row_tile.value_or(RowTile{});
    EXPECT_EQ(last.rows, row.rows) << row.threads;
    EXPECT_EQ(first.work_items, row.parts) << row.threads;
    EXPECT_EQ(first.bytes, row.bytes) << row.threads;
  }
}

TEST(InPlace, Avx512) { run("avx512", {.flags = "-O2"}); }
TEST(InPlace, Avx2) { run("avx2"); }
TEST(InPlace, Scalar) { run("scalar"); }
TEST(InPlace, CortexA53) { run("cortex-a53", {.flags = "-O2"}); }
TEST(InPlace, CortexA72) { run("cortex-a72", {.flags = "-O2"}); }
TEST(InPlace, Sanitizers) { run("host", {.sanitize = true}); }
TEST(InPlace, Threads) { run("host", {.threads = 3}); }
TEST(InPlace, Clang) { run("host", {.clang = true}); }

}  // namespace
}  // namespace sinter
