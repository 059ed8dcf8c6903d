// Layers cut into parts: the same bits with a pool and without, for any number of threads.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "emit/bundle.h"
#include "emit/chain.h"
#include "plan/plan.h"

namespace sinter {
namespace {

// A convolution [n, size, size, in] -> out channels that is worth several threads.
Node* add_conv(Sheet& s, const Dim& n, int64_t size, int64_t in, int64_t out, int64_t kernel,
               int64_t stride = 1, int64_t group = 1) {
  const int64_t p = kernel / 2;
  return s.add("Conv",
               {floats({n, Dim(size), Dim(size), Dim(in)}),
                constant(random_constant(DType::kF32, {out, in / group, kernel, kernel})),
                constant(random_constant(DType::kF32, {out}))},
               {{"channels_last", int64_t{1}},
                {"pads", Ints{p, p, p, p}},
                {"strides", Ints{stride, stride}},
                {"group", group}});
}

// What only moves or scales, and attention.
void add_others(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3);
  auto floats_of = [](const std::vector<int64_t>& shape) {
    Shape dims;
    for (int64_t d : shape) dims.push_back(Dim(d));
    return floats(dims);
  };
  s.add("Softmax", {floats_of({1, 130, 700})}, {{"axis", int64_t{-1}}});
  s.add("Softmax", {floats_of({1, 90, 1300})}, {{"axis", int64_t{1}}});  // columns
  s.add("Softmax", {floats_of({45001, 2})}, {{"axis", int64_t{-1}}});    // short rows
  s.add("Softmax", {floats({n, Dim(50), Dim(900)})}, {{"axis", int64_t{1}}});
  s.add("LayerNormalization", {floats_of({1, 210, 500}), floats_of({500}), floats_of({500})});
  for (const bool last : {false, true})
    s.add("InstanceNormalization",
          {last ? floats_of({1, 45, 45, 70}) : floats_of({1, 70, 45, 45}), floats_of({70}), floats_of({70})},
          last ? AttributeList{{"channels_last", int64_t{1}}} : AttributeList{});
  s.add("ConvTranspose", {floats_of({1, 25, 25, 24}), constant(random_constant(DType::kF32, {24, 20, 3, 3}))},
        {{"channels_last", int64_t{1}}, {"strides", Ints{2, 2}}});
  s.add("ConvTranspose",
        {floats({n, Dim(14), Dim(14), Dim(32)}), constant(random_constant(DType::kF32, {32, 24, 2, 2}))},
        {{"channels_last", int64_t{1}}, {"strides", Ints{2, 2}}});
  s.add("Mul", {floats_of({3, 40000}), floats_of({3, 1})});  // pieces of rows
  s.add("Concat", {floats_of({9000, 1}), floats_of({9000, 1}), floats_of({9000, 1})}, {{"axis", int64_t{1}}});
  s.add("ConstantOfShape", {constant(Tensor::of(Ints{900, 901}))});
  s.add("ScatterND",
        {floats_of({300, 301}), constant(Tensor::of(Ints{7, 5}).reshaped({2, 1})), floats_of({2, 301})});
  s.add("Concat", {floats_of({70001}), floats_of({3})}, {{"axis", int64_t{0}}});  // pieces of a run
  s.add("Resize",
        {floats_of({1, 24, 40, 64}), absent(), constant(Tensor::of(std::vector<float>{1, 2, 2, 1}, {4}))},
        {{"mode", std::string("linear")}});
  const AttributeList bins{
      {"output_height", int64_t{5}}, {"output_width", int64_t{6}}, {"sampling_ratio", int64_t{2}}};
  s.add("RoiAlign", {floats_of({1, 20, 30, 30}), floats_of({41, 4}), constant(Tensor(DType::kI64, {41}))},
        bins);
  for (const int64_t most : {9, 3000})
    s.add("NonMaxSuppression", {floats_of({2, 2000, 4}), floats_of({2, 30, 2000}),
                                constant(Tensor::scalar(most)), constant(Tensor::scalar(.3f))});
  s.add("Transpose", {floats_of({1, 40, 50, 60})}, {{"perm", Ints{0, 3, 1, 2}}});
  s.add("Transpose", {floats_of({1, 60, 41, 50})}, {{"perm", Ints{0, 2, 3, 1}}});
  s.add("Transpose", {floats_of({407, 301})}, {{"perm", Ints{1, 0}}});
  s.add("Transpose", {floats_of({20, 30, 10, 20})}, {{"perm", Ints{2, 0, 1, 3}}});
  s.add("Concat", {floats_of({70, 1000}), floats_of({70, 1001}), floats_of({70, 3})}, {{"axis", int64_t{1}}});
  const AttributeList heads{{"q_num_heads", int64_t{3}}, {"kv_num_heads", int64_t{3}}};
  s.add("Attention", {floats_of({1, 70, 96}), floats_of({1, 90, 96}), floats_of({1, 90, 96})}, heads);
  const AttributeList one{{"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}};
  s.add("Attention", {floats_of({1, 73, 64}), floats_of({1, 500, 64}), floats_of({1, 500, 64})}, one);
  s.add("Attention",
        {floats({n, Dim(70), Dim(64)}), floats({n, Dim(80), Dim(64)}), floats({n, Dim(80), Dim(64)})}, one);
  s.into(batch, "others", {{{"N", 1}}, {{"N", 3}}}, {1e-4, 2e-5});
}

// Heads that threads share, as there are too few of them to have as many each.
void add_shared_heads(GeneratedBatch& batch) {
  Sheet s;
  const auto attention = [&](int64_t heads, int64_t of_keys, int64_t queries, int64_t keys, int64_t causal) {
    const auto tensor = [](int64_t rows, int64_t columns) {
      return floats({Dim(1), Dim(rows), Dim(columns)});
    };
    s.add("Attention", {tensor(queries, heads * 32), tensor(keys, of_keys * 32), tensor(keys, of_keys * 32)},
          {{"q_num_heads", heads}, {"kv_num_heads", of_keys}, {"is_causal", causal}});
  };
  attention(5, 5, 197, 197, 0);  // last tiles of fewer queries
  attention(5, 5, 192, 90, 0);   // none
  attention(6, 3, 150, 110, 0);  // two heads of queries for one of keys
  attention(5, 5, 150, 150, 1);
  attention(5, 5, 150, 1500, 0);  // several blocks of keys
  s.into(batch, "shared heads", {{}});
}

// Products with constant weights whose rows threads share, as there are too few panels of columns.
void add_shared_rows(GeneratedBatch& batch) {
  Sheet s;
  for (const int64_t rows : {100, 400, 401})
    for (const int64_t columns : {96, 128, 384})
      s.add("MatMul", {floats({Dim(rows), Dim(256)}), constant(random_constant(DType::kF32, {256, columns}))})
          ->freedom.strassen = true;
  add_conv(s, Dim(1), 12, 256, 64, 3)->freedom.winograd = 4;  // positions
  add_conv(s, Dim(1), 13, 256, 80, 3)->freedom.winograd = 4;
  add_conv(s, Dim(1), 7, 256, 270, 3)->freedom.winograd = 4;  // columns of positions
  add_conv(s, s.symbol("N", 1, 3), 10, 256, 40, 3)->freedom.winograd = 4;
  add_conv(s, Dim(1), 40, 80, 80, 3)->freedom.winograd = 4;  // groups of about as many tiles
  s.into(batch, "shared rows", {{{"N", 1}}, {{"N", 3}}}, {1e-4, 2e-5});
}

// Threads share pixels, whose channels may not fill vectors, rows where an operand is the same for all pixels
// of one, or channels where each is a picture; and the products of 576 channels.
void add_squeeze_excite(Sheet& s, const Dim& n) {
  const auto add = [&](int64_t channels, bool last) {
    s.add(
        "squeeze_excite",
        {floats(last ? Shape{n, Dim(12), Dim(11), Dim(channels)} : Shape{n, Dim(channels), Dim(12), Dim(11)}),
         constant(random_constant(DType::kF32, {channels / 4, channels})), absent(),
         constant(random_constant(DType::kF32, {channels, channels / 4})),
         constant(random_constant(DType::kF32, {channels}))},
        {{"channels_last", int64_t{last}},
         {"squeeze", std::string("relu acc")},
         {"excite", std::string("sigmoid acc")}});
  };
  for (const int64_t channels : {96, 250, 576})
    for (const bool last : {true, false}) add(channels, last);
  add(96, true);
  s.epilogue(Expr::call("mul", {Expr::accumulator(DType::kF32), Expr::input(0, DType::kF32)}),
             {floats({12, 1, 96})});
}

void run(const char* name, int threads, BuildOptions options = {}) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 1, 3);
  add_conv(s, Dim(1), 31, 24, 40, 3, 2);      // rows
  add_conv(s, n, 20, 24, 40, 3);              // pictures
  add_conv(s, Dim(1), 21, 40, 33, 1);         // tiles of one long row
  add_conv(s, Dim(1), 3, 256, 320, 1);        // panels
  add_conv(s, Dim(1), 60, 32, 1, 3);          // columns
  add_conv(s, Dim(1), 40, 48, 48, 3, 1, 48);  // depthwise
  add_conv(s, n, 40, 48, 48, 5, 2, 48);
  add_conv(s, Dim(1), 18, 32, 64, 3, 1, 2);                  // groups
  add_conv(s, Dim(1), 45, 32, 32, 3)->freedom.winograd = 4;  // groups of tiles
  add_conv(s, Dim(1), 8, 96, 160, 3)->freedom.winograd = 2;  // panels
  add_conv(s, n, 24, 32, 48, 3)->freedom.winograd = 4;
  add_conv(s, n, 12, 256, 270, 3)->freedom.winograd = 4;  // positions, with panels as parts
  for (const int64_t pictures : {2, 5, 6}) {              // as many each, or one or two left over
    add_conv(s, Dim(pictures), 24, 32, 48, 3)->freedom.winograd = 4;
    add_conv(s, Dim(pictures), 14, 64, 64, 3)->freedom.winograd = 4;
  }
  add_squeeze_excite(s, n);
  s.add("MaxPool", {floats({Dim(1), Dim(40), Dim(40), Dim(64)})},
        {{"channels_last", int64_t{1}}, {"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}});
  const Arg weights = constant(random_constant(DType::kF32, {160, 200}));
  s.add("MatMul", {floats({Dim(70), Dim(160)}), weights});
  s.add("MatMul", {floats({n, Dim(23), Dim(160)}), weights});
  s.add("MatMul", {floats({Dim(1), Dim(1024)}), constant(random_constant(DType::kF32, {1024, 300}))});
  s.add("MatMul", {floats({Dim(4), Dim(50), Dim(40)}), floats({Dim(4), Dim(40), Dim(60)})});
  s.add("MatMul", {floats({Dim(60), Dim(80)}), floats({Dim(80), Dim(150)})});
  s.add("Gelu", {floats({Dim(1), Dim(200007)})});
  s.add("byte_table",
        {values(DType::kU8, {Dim(1), Dim(500007)}), constant(random_constant(DType::kU8, {256}))});
  const auto one = [](int64_t v) { return constant(Tensor::of({v})); };
  s.add("Slice", {floats({20011, 4}), one(1), one(2), one(1)});  // a column of a narrow matrix
  s.add("Concat", std::vector<Arg>(3, floats({20011, 1})), {{"axis", int64_t{1}}});
  s.add("Mul", {floats({Dim(210), Dim(31), Dim(70)}), floats({Dim(210), Dim(1), Dim(70)})});
  s.into(batch, "threads", {{{"N", 1}}, {{"N", 3}}}, {1e-4, 2e-5});
  add_others(batch);
  add_shared_heads(batch);
  add_shared_rows(batch);
  options.threads = threads;
  expect_good(batch.run(target(name), options), name);
}

// The headers that the code of an attention includes, but those of pools.
std::set<std::string> attention_headers(int64_t heads, int threads) {
  Sheet s;
  const Arg x = floats({Dim(1), Dim(heads), Dim(96), Dim(64)});
  s.add("Attention", {x, x, x});
  separate_outputs(s.graph(), s.decisions);
  WeightStore store;
  BundleOptions o;
  o.name = "net";
  o.model_file = o.command = "test.onnx";
  o.model_hash = std::string(64, '0');
  o.threads = threads;
  const Target& t = *find_target("avx512");
  const Plan plan = make_plan(s.graph(), t, s.decisions, store, threads);
  std::istringstream code(make_bundle(s.graph(), plan, t, store, o).at("net.cpp"));
  std::set<std::string> headers;
  for (std::string line; std::getline(code, line);)
    if (line.rfind("#include \"sinter/", 0) == 0) headers.insert(line);
  headers.erase("#include \"sinter/pool.h\"");
  headers.erase("#include \"sinter/parts.h\"");
  return headers;
}

// Which words a layer computes with decides its bits, so it must not depend on the threads.
TEST(Threads, ComputeWithTheSameWords) {
  for (const int64_t heads : {1, 3})
    for (const int threads : {2, 5})
      EXPECT_EQ(attention_headers(heads, 1), attention_headers(heads, threads)) << heads << " heads";
  EXPECT_TRUE(attention_headers(3, 2).count("#include \"sinter/attention_beside.h\""));
}

TEST(Threads, Two) { run("host", 2, {.flags = "-O2"}); }
TEST(Threads, Three) { run("avx2", 3); }
TEST(Threads, CortexA72) { run("cortex-a72", 4, {.flags = "-O2"}); }
TEST(Threads, Sanitizers) { run("host", 2, {.sanitize = true}); }
TEST(Threads, Clang) { run("host", 2, {.clang = true}); }

// Of all layers' scratch the same bytes are always the same thread's, where a core's caches are its own and
// memory may be spent on it.
TEST(Threads, KeepTheirScratch) {
  struct Case {
    const char* name;
    bool spend, keep;
  };
  for (const Case& c : {Case{"avx512", true, true}, {"avx512", false, false}, {"cortex-a72", true, false}}) {
    Chain net;
    Value* v = net.input(picture(130, 130, 64));
    for (const int64_t channels : {32, 80, 48, 64}) v = net.winograd(v, channels, 3, 1);
    net.g->outputs.push_back(v);
    WeightStore store;
    const Plan plan = make_plan(*net.g, target(c.name), net.decisions, store, 2, c.spend);
    std::vector<bool> of_first(static_cast<size_t>(plan.arena_bytes)), of_second = of_first;
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      size_t number = 0;
      for (const Parameter& p : plan.layers[i].parameters) {
        if (p.kind != Parameter::Kind::kScratch) continue;
        ASSERT_EQ(p.more_parts, p.bytes / 2);
        const auto first = of_first.begin() + plan.scratch[i][number];
        std::fill_n(first, p.bytes / 2, true);
        std::fill_n(of_second.begin() + plan.scratch[i][number++] + p.bytes / 2, p.bytes / 2, true);
      }
    }
    bool shared = false;
    for (size_t i = 0; i < of_first.size(); ++i) shared = shared || (of_first[i] && of_second[i]);
    EXPECT_EQ(!shared, c.keep) << c.name << (c.spend ? "" : ", no memory");
    EXPECT_LE(plan.arena_bytes, arena_limit(plan));
  }
}

}  // namespace
}  // namespace sinter
