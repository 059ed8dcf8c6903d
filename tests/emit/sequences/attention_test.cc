// Attention, RotaryEmbedding and LinearAttention as generated code: layouts, shared heads, masks, windows,
// caches, blocks of keys, symbolic extents, other types and the scores.
#include <gtest/gtest.h>

#include <cmath>

#include "emit/sheet.h"

namespace sinter {
namespace {

// About one key in three excluded, and the first row of a large mask as a whole.
void with_infinities(Tensor& t, std::mt19937& random) {
  random_fill(t, random);
  for (int64_t i = 0; i < t.size(); ++i)
    if (random() % 3 == 0 || (t.rank() > 1 && i < t.dim(t.rank() - 1))) t.set_real(i, -INFINITY);
}
void bits(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i)
    t.set_integer(i, random() % 3 != 0 && !(t.rank() > 1 && i < t.dim(t.rank() - 1)));
}
// What some exporters write for "not this one"; where it is all there is, every key counts alike.
void lowest(Tensor& t, std::mt19937&) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, -3.402823466e+38);
}
void counts(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, 1 + static_cast<int64_t>(random() % 5));
}

struct Case {
  Dim batch = 2, queries = 5, keys = 7, past = 0;
  int64_t heads = 2, kv_heads = 2, head = 8, v_head = 8;
  bool flat = false;
  Arg mask = {};
  bool has_past = false, counted = false;
  AttributeList attributes = {};
  std::vector<bool> outputs = {true};
  DType t = DType::kF32;

  void into(Sheet& s) const {
    AttributeList a = attributes;
    std::vector<Arg> in;
    if (flat) {
      in = {values(t, {batch, queries, heads * head}), values(t, {batch, keys, kv_heads * head}),
            values(t, {batch, keys, kv_heads * v_head})};
      a.push_back({"q_num_heads", heads});
      a.push_back({"kv_num_heads", kv_heads});
    } else {
      bool q = false, k = false, v = false;
      for (const auto& [name, value] : attributes)
        if (name == "positions_first") {
          const Ints flags = std::get<Ints>(value);
          q = flags[0], k = flags[1], v = flags[2];
        }
      const auto shape = [&](bool first, int64_t h, const Dim& length, int64_t e) {
        return first ? Shape{batch, length, h, e} : Shape{batch, h, length, e};
      };
      in = {values(t, shape(q, heads, queries, head)), values(t, shape(k, kv_heads, keys, head)),
            values(t, shape(v, kv_heads, keys, v_head))};
    }
    in.push_back(mask);
    in.push_back(has_past ? values(t, {batch, kv_heads, past, head}) : absent());
    in.push_back(has_past ? values(t, {batch, kv_heads, past, v_head}) : absent());
    in.push_back(counted ? values(DType::kI64, {batch}, counts) : absent());
    s.add("Attention", in, a, outputs);
  }
};

void add_forms(GeneratedBatch& batch) {
  const int64_t one = 1;
  const AttributeList causal{{"is_causal", one}};
  Sheet s;
  const Dim b = s.symbol("B", 1, 3), q = s.symbol("Q", 1, 70), k = s.symbol("K", 1, 90),
            p = s.symbol("P", 0, 9);
  Case{}.into(s);
  Case{.queries = 33, .keys = 100, .heads = 6, .kv_heads = 3, .head = 24, .v_head = 40}.into(s);
  Case{.batch = b, .queries = q, .keys = k, .heads = 4, .kv_heads = 1, .head = 16, .v_head = 19, .flat = true}
      .into(s);
  Case{.batch = b,
       .queries = q,
       .keys = k,
       .head = 3,
       .v_head = 1,
       .mask = floats({b, 1, q, k}, with_infinities)}
      .into(s);
  Case{.queries = q, .keys = k, .mask = values(DType::kBool, {2, 1, 1, k}, bits)}.into(s);
  Case{.queries = q, .keys = k, .mask = values(DType::kBool, {q, k}, bits), .attributes = causal}.into(s);
  Case{.queries = q, .keys = 1300, .head = 16, .v_head = 20, .mask = floats({2, 1, 1300}, with_infinities)}
      .into(s);
  Case{.keys = 1201, .mask = floats({5, 1201}, with_infinities)}.into(s);
  Case{.queries = q, .keys = 21, .mask = floats({2, 1, 1, 21}, lowest)}.into(s);
  Case{.keys = 21, .mask = floats({5, 21}, lowest)}.into(s);
  Case{.queries = q, .keys = 21, .mask = floats({1, 21}), .attributes = {{"softcap", 2.0f}}}.into(s);
  Case{.queries = q,
       .keys = q,
       .past = p,
       .has_past = true,
       .attributes = causal,
       .outputs = {true, true, true}}
      .into(s);
  Case{.queries = 1, .keys = 1, .past = p, .heads = 4, .has_past = true, .attributes = causal}.into(s);
  Case{.queries = 1,
       .keys = 1700,
       .heads = 4,
       .head = 20,
       .v_head = 70,
       .mask = floats({1700}, with_infinities)}
      .into(s);
  Case{.queries = 700, .keys = 700, .attributes = {{"is_causal", one}, {"left_window_size", int64_t{40}}}}
      .into(s);
  Case{.queries = 9, .keys = 9, .attributes = {{"left_window_size", int64_t{2}}, {"right_window_size", one}}}
      .into(s);
  Case{.queries = 3, .keys = 9, .counted = true, .attributes = causal}.into(s);
  Case{.queries = q, .keys = 9, .counted = true}.into(s);
  // Whole rows of scores, tile beside tile: sizes that leave rests of heads, keys and queries.
  Case{.queries = 40, .keys = 70, .head = 20, .v_head = 24, .mask = values(DType::kBool, {2, 1, 1, 70}, bits)}
      .into(s);
  Case{.queries = 31, .keys = 300, .heads = 4, .head = 9, .v_head = 70}.into(s);
  Case{.queries = 13, .keys = 128, .head = 64, .v_head = 64, .mask = floats({2, 1, 1, 128}, with_infinities)}
      .into(s);
  Case{.queries = 24, .keys = 64, .counted = true, .attributes = {{"softcap", 2.0f}}}.into(s);
  Case{.queries = 30, .keys = k, .head = 33, .v_head = 16, .flat = true}.into(s);
  Case{.keys = 12, .mask = floats({5, 8})}.into(s);  // shorter than the keys
  Case{.attributes = {{"softcap", 2.0f}, {"scale", 0.7f}}}.into(s);
  Case{.outputs = {true, true, false}}.into(s);
  Case{.attributes = {{"positions_first", Ints{1, 1, 1, 1}}}}.into(s);
  Case{.queries = q, .keys = k, .attributes = {{"positions_first", Ints{0, 1, 0, 1}}}}.into(s);
  const Ints settings[] = {{1, 1, 1, 0}, {3, 70, 90, 9}, {2, 64, 64, 5}};
  std::vector<std::map<std::string, int64_t>> sets;
  for (const Ints& v : settings) sets.push_back({{"B", v[0]}, {"Q", v[1]}, {"K", v[2]}, {"P", v[3]}});
  s.into(batch, "forms", sets, {.relative = 1e-4, .of_max = 2e-5});
}

void add_plain(GeneratedBatch& batch) {
  Sheet s;
  for (int64_t mode : {0, 1, 2, 3})
    Case{.mask = values(DType::kBool, {5, 7}, bits),
         .attributes = {{"qk_matmul_output_mode", mode}, {"softcap", 1.5f}},
         .outputs = {true, false, false, true}}
        .into(s);
  for (DType t : {DType::kF64, DType::kF16, DType::kBF16}) {
    Case{.past = 3,
         .heads = 4,
         .mask = values(t, {5, 10}),
         .has_past = true,
         .attributes = {{"is_causal", int64_t{1}}},
         .t = t}
        .into(s);
  }
  Case{.mask = values(DType::kI32, {5, 7})}.into(s);
  s.into(batch, "plain");
}

void add_rotary(GeneratedBatch& batch) {
  Sheet s;
  const Dim b = s.symbol("B", 1, 3), n = s.symbol("N", 1, 9);
  for (int64_t interleaved : {0, 1}) {
    const AttributeList a{{"interleaved", interleaved}};
    s.add("RotaryEmbedding", {floats({b, 3, n, 38}), floats({b, n, 19}), floats({b, n, 19})}, a);
    s.add("RotaryEmbedding", {floats({b, n, 80}), floats({b, n, 4}), floats({b, n, 4})},
          {{"interleaved", interleaved}, {"num_heads", int64_t{4}}, {"rotary_embedding_dim", int64_t{8}}});
    s.add("RotaryEmbedding",
          {floats({b, 3, n, 64}), floats({6, 32}), floats({6, 32}), values(DType::kI64, {b, n}, counts)}, a);
    s.add("RotaryEmbedding",
          {values(DType::kF16, {2, 3, 4, 8}), values(DType::kF16, {2, 4, 4}), values(DType::kF16, {2, 4, 4})},
          a);
  }
  for (const int64_t interleaved : {0, 1}) {  // an angle for each element, shared by the batch
    s.add("RotaryEmbedding", {floats({b, 3, n, 38}), floats({1, n, 38}), floats({b, n, 38})},
          {{"interleaved", interleaved}, {"full_angles", int64_t{1}}});
    s.add("RotaryEmbedding", {floats({b, n, 80}), floats({1, n, 8}), floats({1, n, 8})},
          {{"interleaved", interleaved},
           {"full_angles", int64_t{1}},
           {"num_heads", int64_t{2}},
           {"rotary_embedding_dim", int64_t{8}}});
  }
  s.into(batch, "rotary", {{{"B", 1}, {"N", 9}}, {{"B", 3}, {"N", 1}}});
}

void add_linear(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 0, 9);
  for (DType t : {DType::kF32, DType::kF64, DType::kF16})
    for (const char* rule : {"linear", "gated", "delta", "gated_delta"}) {
      const std::string name = rule;
      const bool gated = name.rfind("gated", 0) == 0, delta = name.find("delta") != std::string::npos;
      const auto small = [](Tensor& x, std::mt19937& random) {
        random_fill(x, random);
        for (int64_t i = 0; i < x.size(); ++i) x.set_real(i, x.real(i) * 0.25);
      };
      s.add("LinearAttention",
            {values(t, {2, n, 12}, small), values(t, {2, n, 6}, small), values(t, {2, n, 10}, small),
             name == "delta" ? absent() : values(t, {2, 2, 3, 5}, small),
             gated ? values(t, {2, n, name == "gated" ? 6 : 2}, small) : absent(),
             delta ? values(t, {2, n, name == "delta" ? 1 : 2}, small) : absent()},
            {{"update_rule", name}, {"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}}, {true, true});
    }
  s.into(batch, "linear", {{{"N", 0}}, {{"N", 9}}});
}

void add_all(GeneratedBatch& batch) {
  add_linear(batch);
  add_forms(batch);
  add_plain(batch);
  add_rotary(batch);
}

TEST(Attention, Avx512) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(target("avx512")));
}
// Without weights beside the next tile's scores.
TEST(Attention, SapphireRapids) {
  GeneratedBatch batch;
  add_forms(batch);
  expect_good(batch.run(target("sapphirerapids")));
}
TEST(Attention, Aarch64) {
  GeneratedBatch batch;
  add_forms(batch);
  add_rotary(batch);
  expect_good(batch.run(target("aarch64")));
}
TEST(Attention, Avx2WithSanitizers) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(target("avx2"), {.sanitize = true}));
}
TEST(Attention, OtherCompilersAndTargets) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(target("avx512"), {.clang = true}), "clang");
  expect_good(batch.run(target("scalar")), "scalar");
}

// A count of valid keys beyond the keys, and a position beyond the caches.
TEST(Attention, NumbersOutsideAreErrors) {
  for (const bool rotary : {false, true}) {
    GeneratedBatch batch;
    Sheet s;
    if (rotary)
      s.add("RotaryEmbedding",
            {floats({1, 1, 1, 4}), floats({6, 2}), floats({6, 2}), values(DType::kI64, {1, 1})});
    else
      Case{.batch = 1, .keys = 5, .counted = true}.into(s);
    auto graph = s.graph().clone();
    std::vector<DataSet> sets(2);
    for (size_t i = 0; i < 2; ++i) {
      for (const Value* v : graph->inputs)
        sets[i].inputs.push_back(Tensor(v->type.dtype, static_dims(v->type.shape)));
      sets[i].inputs.back().set_integer(0, i == 0 ? 6 : -1);
      sets[i].status = 5;
    }
    batch.add("outside", std::move(graph), sets);
    expect_good(batch.run(target("scalar")));
  }
}

}  // namespace
}  // namespace sinter
