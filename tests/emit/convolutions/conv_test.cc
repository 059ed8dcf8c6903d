// Convolutions on channels-last floats: direct, by columns, depthwise, Winograd and transposed, over shapes
// that leave tails of lanes, of channel panels, of pixels and of tiles; symbolic extents; epilogues; every
// target.
#include <gtest/gtest.h>

#include "emit/layer.h"
#include "emit/sheet.h"
#include "kernels/convolutions/winograd_choice.h"
#include "plan/plan.h"

namespace sinter {
namespace {

using E = Expr;

struct Case {
  Shape spatial;
  int64_t in, out, group;
  Ints kernel;
  AttributeList attributes;
};

Node* add_conv(Sheet& s, const Dim& n, const Case& c, bool bias, unsigned seed) {
  Shape x{n};
  x.insert(x.end(), c.spatial.begin(), c.spatial.end());
  x.push_back(Dim(c.in));
  Ints w{c.out, c.in / c.group};
  w.insert(w.end(), c.kernel.begin(), c.kernel.end());
  std::vector<Arg> args{floats(x), constant(random_constant(DType::kF32, w, seed))};
  if (bias) args.push_back(constant(random_constant(DType::kF32, {c.out}, seed + 1)));
  AttributeList a = c.attributes;
  a.push_back({"channels_last", int64_t{1}});
  if (c.group > 1) a.push_back({"group", c.group});
  return s.add("Conv", args, a);
}

// acc with a residual of the result's shape and an activation, as fuse_epilogue makes it.
void add_epilogue(Sheet& s) {
  const Node& n = *s.graph().nodes.back();
  const ExprPtr sum = E::call("add", {E::accumulator(DType::kF32), E::input(0, DType::kF32)});
  s.epilogue(E::call("relu", {sum}), {floats(n.outputs[0]->type.shape)});
}

AttributeList pads(Ints p, Ints strides = {}, Ints dilations = {}) {
  AttributeList a{{"pads", std::move(p)}};
  if (!strides.empty()) a.push_back({"strides", std::move(strides)});
  if (!dilations.empty()) a.push_back({"dilations", std::move(dilations)});
  return a;
}

void add_direct(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 3, 12);
  const Case cases[] = {
      {{9, 9}, 5, 7, 1, {1, 1}, {}},
      {{7, 7}, 16, 32, 1, {1, 1}, {}},
      {{8, 9}, 6, 20, 1, {1, 1}, pads({0, 0, 0, 0}, {2, 2})},
      {{7, 7}, 24, 40, 1, {3, 3}, pads({1, 1, 1, 1})},
      {{6, 15}, 3, 17, 1, {3, 3}, pads({1, 1, 1, 1}, {2, 2})},
      {{14, 14}, 16, 64, 1, {3, 3}, pads({1, 1, 1, 1}, {2, 2})},
      {{11, 10}, 4, 9, 1, {5, 3}, pads({2, 0, 1, 2}, {1, 2})},
      {{10, 13}, 8, 12, 1, {3, 3}, pads({2, 2, 2, 2}, {1, 1}, {2, 2})},
      {{10, 9}, 3, 24, 1, {7, 7}, pads({3, 3, 3, 3}, {2, 2})},
      {{4, 2}, 7, 5, 1, {3, 3}, pads({1, 1, 1, 1})},
      {{1, 1}, 40, 33, 1, {3, 3}, pads({1, 1, 1, 1})},
      {{9, 8}, 8, 12, 2, {3, 3}, pads({1, 1, 1, 1})},
      {{13}, 6, 10, 1, {3}, pads({1, 1})},
      {{4, 5, 6}, 4, 6, 1, {2, 3, 3}, pads({1, 1, 1, 0, 1, 1})},
      {{h, 9}, 8, 20, 1, {3, 3}, pads({1, 1, 1, 1})},
      {{9, h}, 8, 20, 1, {3, 3}, pads({1, 1, 1, 1}, {2, 2})},
      {{h, h}, 4, 8, 1, {1, 1}, {}},
      // more weights than a first-level cache has, fewer than some second level gives at once
      {{5, 6}, 60, 232, 1, {1, 1}, {}},
      {{6, 5}, 60, 232, 1, {1, 1}, {}},
  };
  unsigned i = 0;
  for (const Case& c : cases) {
    add_conv(s, i % 3 == 0 ? Dim(1) : n, c, i % 2 == 0, i);
    if (i % 3 != 1) add_epilogue(s);
    ++i;
  }
  s.into(batch, "direct", {{{"N", 1}, {"H", 3}}, {{"N", 2}, {"H", 12}}, {{"N", 3}, {"H", 7}}});
}

// Few output channels: input columns by all taps of a kernel row.
void add_columns(GeneratedBatch& batch, const Target& t) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 15, 40);
  const Case cases[] = {
      {{13, 30}, 24, 3, 1, {9, 9}, pads({4, 4, 4, 4})},
      {{24, 17}, 40, 1, 1, {3, 3}, pads({1, 1, 1, 1})},
      {{20, 21}, 33, 1, 1, {5, 3}, pads({2, 0, 1, 2}, {2, 1})},
      {{30, 19}, 24, 1, 1, {3, 3}, pads({2, 2, 2, 2}, {1, 1}, {2, 2})},
      {{20, 2}, 64, 1, 1, {3, 5}, pads({1, 3, 1, 3})},  // windows that reach beyond both ends
      {{9, 8, 11}, 16, 1, 1, {2, 3, 3}, pads({1, 1, 0, 0, 1, 1})},
      {{h, 33}, 24, 1, 1, {3, 3}, pads({1, 1, 1, 1})},
      {{18, h}, 24, 1, 1, {3, 3}, pads({1, 1, 1, 1})},
      {{40, 20}, 32, 9, 1, {3, 3}, pads({1, 1, 1, 1})},
      {{40, 20}, 32, 11, 1, {3, 5}, pads({1, 0, 1, 0})},
  };
  unsigned i = 0;
  for (const Case& c : cases) {
    const Node* node = add_conv(s, i % 3 == 0 ? n : Dim(1), c, i % 2 == 0, i);
    if (c.out == 1 && t.lanes > 1) {  // of others it depends on the lanes
      EXPECT_EQ(std::string(find_kernel(*node, {t, s.decisions})->name), "conv_columns")
          << t.name << ", case " << i;
    }
    if (i % 3 != 1) add_epilogue(s);
    ++i;
  }
  s.into(batch, "columns", {{{"N", 1}, {"H", 15}}, {{"N", 2}, {"H", 40}}, {{"N", 3}, {"H", 22}}});
}

void add_depthwise(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 3, 20);
  unsigned i = 0;
  for (const int64_t c : {3, 8, 16, 35, 64}) {
    const Case cases[] = {
        {{7, 7}, c, c, c, {3, 3}, pads({1, 1, 1, 1})},
        {{9, 14}, c, c, c, {3, 3}, pads({1, 1, 1, 1}, {2, 2})},
        {{8, 19}, c, c, c, {5, 5}, pads({2, 2, 2, 2})},
        {{12, 11}, c, c, c, {5, 5}, pads({2, 2, 2, 2}, {2, 2})},
        {{9, 9}, c, c, c, {3, 3}, pads({2, 2, 2, 2}, {1, 1}, {2, 2})},
        {{9, 1}, c, c, c, {5, 1}, pads({2, 0, 2, 0})},
        {{2, 2}, c, c, c, {3, 3}, pads({1, 1, 1, 1})},
        {{17}, c, c, c, {3}, pads({1, 1})},
        {{h, 8}, c, c, c, {3, 3}, pads({1, 1, 1, 1})},
        {{5, h}, c, c, c, {3, 3}, pads({1, 1, 1, 1}, {2, 2})},
    };
    for (const Case& k : cases) {
      add_conv(s, i % 2 == 0 ? n : Dim(1), k, i % 3 != 0, i);
      if (i % 4 == 0) add_epilogue(s);
      ++i;
    }
  }
  // So many channels that they are done some at a time, with a rest of a vector.
  const Case many[] = {{{7, 7}, 210, 210, 210, {3, 3}, pads({1, 1, 1, 1})},
                       {{h, 10}, 260, 260, 260, {3, 3}, pads({0, 0, 0, 0})},
                       {{6, 14}, 117, 117, 117, {5, 5}, pads({2, 2, 2, 2}, {2, 2})}};
  for (const Case& k : many) {
    add_conv(s, i % 2 == 0 ? n : Dim(1), k, true, i);
    if (i % 2 == 0) add_epilogue(s);
    ++i;
  }
  s.into(batch, "depthwise", {{{"N", 1}, {"H", 3}}, {{"N", 3}, {"H", 20}}, {{"N", 2}, {"H", 9}}});
}

void add_transposed(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), w = s.symbol("W", 1, 9);
  const Case cases[] = {
      {{5, 6}, 6, 5, 1, {3, 3}, {}},
      {{4, 7}, 8, 20, 1, {2, 2}, pads({0, 0, 0, 0}, {2, 2})},
      {{4, 5}, 5, 9, 1, {4, 3}, pads({1, 1, 0, 1}, {2, 1})},
      {{6}, 3, 8, 1, {3}, pads({1, 1}, {2})},
      {{1, 1}, 16, 1, 1, {2, 3}, pads({0, 0, 1, 1})},  // each output is at an edge
      {{3, w}, 8, 8, 1, {3, 3}, pads({0, 0, 0, 0}, {1, 2})},
  };
  unsigned i = 0;
  for (const Case& c : cases) {
    Shape x{i % 2 == 0 ? n : Dim(1)};
    x.insert(x.end(), c.spatial.begin(), c.spatial.end());
    x.push_back(Dim(c.in));
    Ints weights{c.in, c.out};
    weights.insert(weights.end(), c.kernel.begin(), c.kernel.end());
    AttributeList a = c.attributes;
    a.push_back({"channels_last", int64_t{1}});
    s.add("ConvTranspose", {floats(x), constant(random_constant(DType::kF32, weights, i))}, a);
    if (i % 2 == 0) add_epilogue(s);
    ++i;
  }
  s.into(batch, "transposed", {{{"N", 1}, {"W", 1}}, {{"N", 3}, {"W", 9}}, {{"N", 2}, {"W", 2}}});
}

// Layers for which the model chooses Winograd on the target, with tiles of at most `most`.
void add_winograd(GeneratedBatch& batch, const Target& t, int64_t most) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 5, 40);
  const Case cases[] = {
      {{12, 12}, 32, 32, 1, {3, 3}, pads({1, 1, 1, 1})}, {{14, 14}, 35, 48, 1, {3, 3}, pads({1, 1, 1, 1})},
      {{13, 19}, 32, 66, 1, {3, 3}, pads({1, 1, 1, 1})}, {{15, 10}, 48, 33, 1, {3, 3}, pads({0, 0, 0, 0})},
      {{14, 13}, 32, 40, 1, {3, 3}, pads({2, 0, 0, 2})}, {{27, 38}, 64, 64, 1, {3, 3}, pads({1, 1, 1, 1})},
      {{h, 21}, 32, 32, 1, {3, 3}, pads({1, 1, 1, 1})},  {{17, h}, 34, 36, 1, {3, 3}, pads({1, 1, 1, 1})},
  };
  unsigned i = 0;
  for (const Case& c : cases) {
    Node* node = add_conv(s, i % 2 == 0 ? n : Dim(1), c, i % 3 != 1, i);
    node->freedom.winograd = most;
    const Kernel* k = find_kernel(*node, {t, s.decisions});
    ASSERT_TRUE(k);
    EXPECT_EQ(std::string(k->name), "conv_winograd") << t.name << ", tiles of " << most << ", case " << i;
    if (i % 2 == 0) add_epilogue(s);
    ++i;
  }
  s.into(batch, fmt::format("winograd{}", most),
         {{{"N", 1}, {"H", 5}}, {{"N", 3}, {"H", 40}}, {{"N", 2}, {"H", 26}}},
         {1e-4, most == 6 ? 3e-5 : 1e-5});
}

void into_winograd(Sheet& s, GeneratedBatch& batch, const char* name, int64_t positions) {
  s.into(batch, fmt::format("winograd_{}{}", name, positions),
         {{{"N", 1}, {"H", 7}}, {{"N", 3}, {"H", 40}}, {{"N", 2}, {"H", 26}}},
         {1e-4, positions == 8 ? 3e-5 : 1e-5});
}

// Kernels of 4x4 to 6x6, with every tile that they have: the freedom `winograd` lets the model choose.
void add_winograd_sizes(GeneratedBatch& batch, const Target& t, int64_t positions) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 7, 40);
  const Case cases[] = {
      {{14, 17}, 24, 32, 1, {5, 5}, pads({2, 2, 2, 2})}, {{13, 9}, 35, 50, 1, {5, 5}, pads({1, 1, 1, 1})},
      {{24, 23}, 12, 24, 1, {5, 5}, pads({0, 3, 4, 0})}, {{16, 15}, 32, 48, 1, {4, 4}, pads({1, 1, 2, 2})},
      {{h, 22}, 20, 33, 1, {4, 4}, pads({0, 0, 0, 0})},  {{19, 26}, 48, 32, 1, {6, 6}, pads({2, 2, 3, 3})},
      {{11, h}, 32, 36, 1, {6, 6}, pads({5, 0, 1, 5})},  {{h, 12}, 40, 64, 1, {5, 5}, pads({2, 2, 2, 2})},
  };
  unsigned i = 0;
  for (const Case& c : cases) {
    const int64_t most = positions - c.kernel[0] + 1;
    if (most < 2) continue;
    Node* node = add_conv(s, i % 2 == 0 ? n : Dim(1), c, i % 3 != 1, i);
    node->freedom.winograd = most;
    const Kernel* k = find_kernel(*node, {t, s.decisions});
    ASSERT_TRUE(k);
    // Six positions round little enough for all of these layers; with six taps there are eight at least, and
    // the weights decide.
    if (c.kernel[0] < 6) {
      EXPECT_EQ(std::string(k->name), "conv_winograd") << t.name << ", " << positions << ", case " << i;
    }
    if (i % 2 == 0) add_epilogue(s);
    ++i;
  }
  into_winograd(s, batch, "sizes", positions);
}

// Convolutions by their greatest tiles of so many positions, whatever the model says; direct ones where there
// is no such tile.
template <size_t Count>
void add_winograd_cases(Sheet& s, const Dim& n, const Case (&cases)[Count], const Target& t,
                        int64_t positions) {
  unsigned i = 0;
  for (const Case& c : cases) {
    Node* node = add_conv(s, i % 2 == 0 ? n : Dim(1), c, i % 3 != 1, i);
    const int64_t most = most_winograd_outputs(*node, positions);
    if (most >= 2) {
      node->freedom.winograd = most;
      s.decide(node).winograd.tile = most;
      if (positions < 8) {  // of more, the weights decide
        EXPECT_EQ(std::string(find_kernel(*node, {t, s.decisions})->name), "conv_winograd")
            << t.name << ", case " << i;
      }
    }
    if (i % 2 == 0) add_epilogue(s);
    ++i;
  }
}
// Taps in a line, along either axis of a picture or the only one, with every tile that they have.
void add_winograd_lines(GeneratedBatch& batch, const Target& t, int64_t positions) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 7, 40);
  const Case cases[] = {
      {{13, 22}, 32, 40, 1, {1, 3}, pads({0, 1, 0, 1})},
      {{22, 13}, 33, 32, 1, {3, 1}, pads({1, 0, 1, 0})},
      {{1, 50}, 24, 35, 1, {1, 5}, pads({0, 2, 0, 2})},
      {{21, 9}, 32, 48, 1, {5, 1}, pads({0, 1, 3, 0})},
      {{61}, 32, 36, 1, {3}, pads({1, 1})},
      {{40}, 40, 33, 1, {7}, pads({3, 3})},
      {{h}, 24, 32, 1, {4}, pads({0, 3})},
      {{h, 11}, 32, 32, 1, {7, 1}, pads({3, 0, 3, 0})},
      {{9, h}, 32, 24, 1, {1, 2}, pads({0, 0, 0, 1})},
  };
  add_winograd_cases(s, n, cases, t, positions);
  into_winograd(s, batch, "lines", positions);
}

// A stride of 2 along both axes, one of them, or a line of taps, with every tile.
void add_winograd_strides(GeneratedBatch& batch, const Target& t, int64_t positions) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 7, 40);
  const Case cases[] = {
      {{24, 27}, 32, 40, 1, {3, 3}, pads({1, 1, 1, 1}, {2, 2})},
      {{23, 16}, 35, 32, 1, {3, 3}, pads({0, 1, 1, 0}, {2, 2})},
      {{26, 30}, 33, 36, 1, {4, 4}, pads({1, 1, 1, 1}, {2, 2})},
      {{21, 22}, 24, 48, 1, {6, 6}, pads({2, 2, 2, 2}, {2, 2})},
      {{h, 19}, 32, 33, 1, {3, 3}, pads({1, 1, 1, 1}, {2, 1})},
      {{18, h}, 40, 32, 1, {3, 3}, pads({1, 1, 1, 1}, {1, 2})},
      {{h, 31}, 24, 32, 1, {4, 4}, pads({0, 3, 0, 0}, {2, 2})},
      {{13, 50}, 32, 32, 1, {1, 3}, pads({0, 1, 0, 1}, {2, 2})},
      {{61}, 32, 36, 1, {4}, pads({1, 1}, {2})},
      {{h, 9}, 32, 24, 1, {6, 1}, pads({3, 0, 2, 0}, {2, 1})},
  };
  add_winograd_cases(s, n, cases, t, positions);
  into_winograd(s, batch, "strides", positions);
}

// Few tiles of many channels: the positions are outermost.
void add_winograd_positions(GeneratedBatch& batch, const Target& t) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 2);
  const Case cases[] = {{{13, 11}, 256, 270, 1, {3, 3}, pads({1, 1, 1, 1})},
                        {{9, 15}, 250, 256, 1, {3, 3}, pads({1, 0, 1, 2})},
                        {{12, 14}, 256, 259, 1, {3, 3}, pads({1, 1, 1, 1})},
                        {{13, 12}, 250, 256, 1, {3, 3}, pads({1, 1, 1, 1}, {2, 2})}};
  for (unsigned i = 0; i < std::size(cases); ++i) {
    Node* node = add_conv(s, i == 0 ? n : Dim(1), cases[i], i != 1, i);
    const int64_t most = most_winograd_outputs(*node, 6);
    // Elsewhere the direct kernel's, or of smaller tiles in groups.
    node->freedom.winograd = s.decide(node).winograd.tile = most;
    if (i != 2) add_epilogue(s);
  }
  const auto planned = s.graph().clone();
  const Decisions decisions = carried(s.decisions, s.graph(), *planned);
  separate_outputs(*planned, decisions);
  WeightStore store;
  for (const Layer& l : make_plan(*planned, t, decisions, store).layers)
    EXPECT_NE(l.summary.find(" positions of "), std::string::npos) << t.name << ": " << l.summary;
  s.into(batch, "winograd_positions", {{{"N", 1}}, {{"N", 2}}}, {1e-4, 2e-5});
}

// One to four tiles of many channels, on targets with 32 registers that multiply by an element of memory: the
// weights are transformed when they are used.
void add_winograd_few_tiles(GeneratedBatch& batch, const Target& t) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 2);
  const Case cases[] = {{{7, 7}, 256, 270, 1, {3, 3}, pads({1, 1, 1, 1})},
                        {{4, 3}, 250, 256, 1, {3, 3}, pads({1, 1, 1, 1})},
                        {{6, 10}, 250, 256, 1, {3, 3}, pads({0, 1, 0, 0})},
                        {{3, 14}, 256, 256, 1, {3, 3}, pads({2, 0, 1, 0})},
                        {{8, 6}, 256, 250, 1, {3, 3}, pads({1, 1, 1, 1})}};
  for (unsigned i = 0; i < std::size(cases); ++i) {
    Node* node = add_conv(s, i == 0 ? n : Dim(1), cases[i], i != 1, i);
    node->freedom.winograd = s.decide(node).winograd.tile = 4;
    if (i != 2) add_epilogue(s);
    const auto choice = choose(*node, {t, s.decisions}).candidates.front().as<WinogradChoice>();
    EXPECT_EQ(choice && choice->when_used, std::string_view(t.isa) == "avx512") << t.name << ", case " << i;
  }
  s.into(batch, "winograd_few_tiles", {{{"N", 1}}, {{"N", 2}}}, {1e-4, 2e-5});
}

// `few`: without Winograd's other kernels, whose words are those of 3x3.
void run(const char* name, const BuildOptions& options = {}, bool few = false) {
  GeneratedBatch batch;
  const Target& t = target(name);
  add_direct(batch);
  add_columns(batch, t);
  add_depthwise(batch);
  add_transposed(batch);
  for (const int64_t most : {2, 4, 6}) add_winograd(batch, t, most);
  if (!few) {
    for (const int64_t positions : {6, 8}) add_winograd_sizes(batch, t, positions);
    for (const int64_t positions : {4, 6, 8}) add_winograd_lines(batch, t, positions);
    for (const int64_t positions : {4, 6, 8}) add_winograd_strides(batch, t, positions);
  }
  add_winograd_positions(batch, t);
  add_winograd_few_tiles(batch, t);
  expect_good(batch.run(t, options), name);
}

TEST(Conv, Avx512) { run("avx512", {.flags = "-O2"}); }
TEST(Conv, SapphireRapids) { run("sapphirerapids", {.flags = "-O2"}, true); }
TEST(Conv, CascadeLake) { run("cascadelake", {.flags = "-O2"}, true); }
TEST(Conv, Zen5) { run("zen5", {.flags = "-O2"}, true); }
TEST(Conv, Avx2) { run("avx2"); }
TEST(Conv, Sse42) { run("x86-64-v2", {}, true); }
TEST(Conv, Scalar) { run("scalar", {}, true); }
TEST(Conv, CortexA53) { run("cortex-a53", {.flags = "-O2"}, true); }
TEST(Conv, CortexA76) { run("cortex-a76", {.flags = "-O2"}); }
TEST(Conv, Sanitizers) { run("host", {.sanitize = true}); }
TEST(Conv, Clang) { run("host", {.clang = true}, true); }

// The error that decides is the transforms' own: it grows with the tile, and is small for all of them.
TEST(Winograd, ErrorGrowsWithTheTile) {
  Sheet s;
  Node* n = add_conv(s, Dim(1), {{12, 12}, 64, 32, 1, {3, 3}, pads({1, 1, 1, 1})}, false, 3);
  const auto error = [&](int rows, int columns) {
    return winograd_error(winograd_layer(*n).weight, 32, 64, {{rows, 3, 1}, {columns, 3, 1}});
  };
  const double e2 = error(2, 2), e4 = error(4, 4), e46 = error(4, 6), e6 = error(6, 6);
  EXPECT_GT(e2, 0);
  EXPECT_LT(e2, e4);
  EXPECT_LT(e4, 5e-6);
  const double when_used = winograd_error(winograd_layer(*n).weight, 32, 64, {{4, 3, 1}, {4, 3, 1}}, true);
  EXPECT_GT(when_used, e4 / 2);
  EXPECT_LT(when_used, e4 * 2);
  EXPECT_LT(e4, e46);
  EXPECT_LT(e46, e6);
  EXPECT_LT(e6, 1e-4);
  Node* strided = add_conv(s, Dim(1), {{24, 24}, 64, 32, 1, {3, 3}, pads({1, 1, 1, 1}, {2, 2})}, false, 3);
  const auto of_stride = [&](int outputs) {
    return winograd_error(winograd_layer(*strided).weight, 32, 64, {{outputs, 3, 2}, {outputs, 3, 2}});
  };
  EXPECT_GT(of_stride(3), 0);
  EXPECT_LT(of_stride(3), of_stride(5));
  EXPECT_LT(of_stride(5), 5e-6);
  EXPECT_LT(of_stride(5), of_stride(7));
  EXPECT_LT(of_stride(7), 3e-5);
}

// Halves err more than floats, longer blocks of them more than shorter ones, and one block is one however
// long it could be.
TEST(Winograd, ErrorOfHalvesGrowsWithTheirBlocks) {
  Sheet s;
  Node* n = add_conv(s, Dim(1), {{12, 12}, 128, 32, 1, {3, 3}, pads({1, 1, 1, 1})}, false, 3);
  const auto error = [&](int block) {
    return winograd_error(winograd_layer(*n).weight, 32, 128, {{4, 3, 1}, {4, 3, 1}}, false, block);
  };
  EXPECT_LT(error(0) * 100, error(16));
  EXPECT_LT(error(16), error(128));
  EXPECT_LT(error(128), 3e-2);
  EXPECT_EQ(error(128), error(256));
}

// Positions of a single tap share their weights: of 7 along an axis of stride 2 there are 5 matrices.
TEST(Winograd, StridesHavePhases) {
  const WinogradAxis three{3, 3, 2}, four{3, 4, 2}, one{1, 1, 2};
  EXPECT_EQ(three.positions(), 7);
  EXPECT_EQ(three.even(), 4);
  EXPECT_EQ(three.matrices(), 5);
  EXPECT_EQ(four.positions(), 8);
  EXPECT_EQ(four.matrices(), 8);
  EXPECT_EQ(one.positions(), 1);
  EXPECT_EQ(winograd_outputs(3, 2, 6), 5);
  EXPECT_EQ(winograd_outputs(4, 2, 6), 5);
  EXPECT_EQ(winograd_outputs(4, 2, 8), 0);
  EXPECT_EQ(winograd_outputs(6, 2, 6), 4);
  EXPECT_EQ(winograd_outputs(1, 2, 6), 1);
  EXPECT_EQ(winograd_outputs(3, 1, 6), 4);
}

// An error above the usual one is taken where the tile is faster for it, one of more than 1e-5 nowhere.
TEST(Winograd, MoreErrorOnlyWhereFaster) {
  Sheet s;
  const auto chosen = [&](int64_t size, int64_t in, int64_t most) {
    Node* n = add_conv(s, Dim(1), {{size, size}, in, 64, 1, {3, 3}, pads({1, 1, 1, 1})}, false, 3);
    n->freedom.winograd = most;
    return choose(*n, {target("avx512"), s.decisions}).candidates.front().as<WinogradChoice>();
  };
  const auto eight = chosen(96, 64, 6), six = chosen(96, 64, 4);
  ASSERT_TRUE(eight && six);
  EXPECT_EQ(eight->tile.positions(), 64);
  EXPECT_GT(eight->error, 3e-6);
  EXPECT_LE(eight->error, 1e-5);
  EXPECT_LE(six->error, 3e-6);
  EXPECT_LE(eight->cycles * 1.06, six->cycles);
  const auto deep = chosen(96, 1024, 6);  // F(6x6) errs by more
  ASSERT_TRUE(deep);
  EXPECT_LT(deep->tile.positions(), 64);
}

// Without the mark, or where it is another convolution, the direct kernel runs.
TEST(Winograd, OnlyWhereAllowed) {
  Sheet s;
  const Case plain{{28, 28}, 64, 64, 1, {3, 3}, pads({1, 1, 1, 1})};
  EXPECT_EQ(
      std::string(find_kernel(*add_conv(s, Dim(1), plain, true, 1), {target("avx512"), s.decisions})->name),
      "conv_direct");
  Case strided = plain, dilated = plain, wide = plain;
  strided.attributes = pads({1, 1, 1, 1}, {3, 3});
  dilated.attributes = pads({2, 2, 2, 2}, {1, 1}, {2, 2});
  wide.kernel = {3, 5};  // neither a square nor a line
  Case odd = strided;    // of 5 taps and a stride of 2 there are 3 even and 2 odd ones
  odd.kernel = {5, 5};
  odd.attributes = pads({2, 2, 2, 2}, {2, 2});
  for (const Case& c : {strided, dilated, wide, odd}) {
    Node* n = add_conv(s, Dim(1), c, true, 1);
    n->freedom.winograd = 6;
    EXPECT_EQ(std::string(find_kernel(*n, {target("avx512"), s.decisions})->name), "conv_direct");
  }
}

}  // namespace
}  // namespace sinter
