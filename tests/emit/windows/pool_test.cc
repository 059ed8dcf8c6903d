// Pools: both layouts, one to three spatial axes, pads, ceil_mode, dilations, indices, every element type.
#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

using E = Expr;

void with_nan(Tensor& t, std::mt19937& random) {
  random_fill(t, random);
  for (int64_t i = 0; i < t.size(); ++i)
    if (random() % 30 == 0) t.set_real(i, random() % 2 ? NAN : INFINITY);
}

AttributeList operator+(AttributeList a, const AttributeList& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The windows that every kind of pool is tried with: spatial extents and attributes.
struct Case {
  Shape spatial;
  AttributeList attributes;
};
std::vector<Case> cases(const Dim& h) {
  const int64_t one = 1;
  return {
      {{9}, {{"kernel_shape", Ints{3}}}},
      {{9}, {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", one}}},
      {{8, 11}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
      {{8, 11}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
      {{7, 7},
       {{"kernel_shape", Ints{3, 3}},
        {"strides", Ints{2, 2}},
        {"pads", Ints{0, 1, 1, 0}},
        {"ceil_mode", one}}},
      {{9, 12}, {{"kernel_shape", Ints{3, 2}}, {"dilations", Ints{2, 3}}, {"pads", Ints{2, 1, 2, 1}}}},
      {{7, 9}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"auto_pad", "SAME_UPPER"}}},
      {{7, 9}, {{"kernel_shape", Ints{1, 1}}, {"strides", Ints{2, 2}}}},
      {{4, 5, 6},
       {{"kernel_shape", Ints{2, 3, 2}}, {"strides", Ints{1, 2, 1}}, {"pads", Ints{0, 1, 1, 1, 1, 0}}}},
      {{h, 6}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 1, 1, 1}}}},
      {{6, h},
       {{"kernel_shape", Ints{2, 3}},
        {"strides", Ints{1, 2}},
        {"ceil_mode", one},
        {"pads", Ints{0, 1, 0, 1}}}},
      {{h, h}, {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{3, 2}}, {"auto_pad", "SAME_LOWER"}}},
  };
}

Shape shape_of(const Dim& n, const Dim& c, const Shape& spatial, bool last) {
  Shape s{n};
  if (!last) s.push_back(c);
  s.insert(s.end(), spatial.begin(), spatial.end());
  if (last) s.push_back(c);
  return s;
}

void add_sheets(GeneratedBatch& batch) {
  const struct {
    const char* op;
    AttributeList attributes;
  } kinds[] = {{"MaxPool", {}},
               {"AveragePool", {}},
               {"AveragePool", {{"count_include_pad", int64_t{1}}}},
               {"LpPool", {}},
               {"LpPool", {{"p", int64_t{1}}}},
               {"LpPool", {{"p", int64_t{3}}}}};
  for (const auto& kind : kinds)
    for (const bool last : {false, true}) {
      Sheet s;
      const Dim n = s.symbol("n", 1, 3), h = s.symbol("ox", 5, 20);
      const AttributeList layout = last ? AttributeList{{"channels_last", int64_t{1}}} : AttributeList{};
      const Ints channels{3, 16, 37, 64, 70};
      size_t i = 0;
      for (const Case& c : cases(h)) {
        const Fill fill = kind.op == std::string("MaxPool") && i % 3 == 0 ? with_nan : random_fill;
        s.add(kind.op, {floats(shape_of(i % 2 ? n : Dim(2), channels[i % 5], c.spatial, last), fill)},
              c.attributes + kind.attributes + layout);
        ++i;
      }
      s.into(batch, fmt::format("{}{}", kind.op, last ? "_last" : ""),
             {{{"n", 1}, {"ox", 5}}, {{"n", 3}, {"ox", 20}}});
    }
}

void add_global(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 3), h = s.symbol("H", 1, 9);
  const ExprPtr acc = E::accumulator(DType::kF32), in = E::input(0, DType::kF32);
  for (const bool last : {false, true}) {
    const AttributeList layout = last ? AttributeList{{"channels_last", int64_t{1}}} : AttributeList{};
    for (const char* op : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}) {
      s.add(op, {floats(shape_of(2, 37, {7, 7}, last))}, layout);
      s.add(op, {floats(shape_of(n, 64, {h, 5}, last))}, layout);
      s.add(op, {floats(shape_of(1, 5, {1, 1}, last))}, layout);
      s.add(op, {values(DType::kF64, shape_of(2, 3, {4}, last))}, layout);
      s.add(op, {values(DType::kF16, shape_of(2, 3, {4}, last))}, layout);
      s.add(op, {floats(shape_of(n, 20, {3, 4}, last))}, layout);
      s.epilogue(E::call("relu", {E::call("mul", {acc, in})}), {floats(shape_of(1, 20, {1, 1}, last))});
    }
    s.add("GlobalLpPool", {floats(shape_of(2, 20, {3, 4}, last))}, layout + AttributeList{{"p", int64_t{3}}});
  }
  s.into(batch, "global", {{{"N", 1}, {"H", 1}}, {{"N", 3}, {"H", 9}}});
}

// Indices in both orders, epilogues, and other element types.
void add_others(GeneratedBatch& batch) {
  Sheet s;
  const Dim h = s.symbol("H", 5, 20);
  for (const Case& c : cases(h))
    for (int64_t order : {0, 1})
      s.add("MaxPool", {floats(shape_of(2, 3, c.spatial, false))},
            c.attributes + AttributeList{{"storage_order", order}}, {true, true});
  s.into(batch, "indices", {{{"H", 5}}, {{"H", 20}}});
  const AttributeList window{
      {"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
  const AttributeList last_layout{{"channels_last", int64_t{1}}};
  for (DType t : {DType::kF64, DType::kF16})
    s.add("LpPool", {values(t, {2, 3, 7, 6})}, window + AttributeList{{"p", int64_t{3}}});
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
    for (DType t : {DType::kF64, DType::kF16, DType::kBF16}) {
      s.add(op, {values(t, {2, 3, 7, 6})}, window);
      s.add(op, {values(t, {2, 7, 6, 3})}, window + last_layout);
      s.epilogue(E::call("add", {E::accumulator(t), E::input(0, t)}), {values(t, {4, 1, 3})});
    }
    const ExprPtr acc = E::accumulator(DType::kF32), in = E::input(0, DType::kF32);
    s.add(op, {floats({2, 7, 6, 37})}, window + last_layout);
    s.epilogue(E::call("sigmoid", {E::call("add", {acc, in})}), {floats({37})});
    s.add(op, {floats({2, 7, 6, 37})}, window + last_layout);
    s.epilogue(E::call("mul", {acc, in}), {floats({2, 4, 3, 37})});
    s.add(op, {floats({2, 37, 7, 6})}, window);
    s.epilogue(E::call("mul", {acc, in}), {floats({37, 1, 1})});
    s.add(op, {floats({2, 7, 6, 37})}, window + last_layout);
    s.epilogue(E::cast(E::call("add", {E::call("mul", {acc, E::constant(7.77, DType::kF32)}),
                                       E::constant(0.1234, DType::kF32)}),
                       DType::kI32));
  }
  for (DType t : {DType::kI8, DType::kU8}) s.add("MaxPool", {values(t, {2, 3, 7, 6})}, window, {true, true});
  s.add("MaxPool", {values(DType::kU8, {2, 7, 6, 3})}, window + last_layout);
  s.into(batch, "others");
}

TEST(Pool, Avx512) {
  GeneratedBatch batch;
  add_sheets(batch);
  add_global(batch);
  add_others(batch);
  expect_good(batch.run(target("avx512")));
}
TEST(Pool, Aarch64) {
  GeneratedBatch batch;
  add_sheets(batch);
  add_global(batch);
  add_others(batch);
  expect_good(batch.run(target("aarch64")));
}
TEST(Pool, Avx2WithSanitizers) {
  GeneratedBatch batch;
  add_sheets(batch);
  add_global(batch);
  add_others(batch);
  expect_good(batch.run(target("avx2"), {.sanitize = true}));
}
TEST(Pool, OtherCompilersAndTargets) {
  GeneratedBatch batch;
  add_sheets(batch);
  add_global(batch);
  expect_good(batch.run(target("avx512"), {.clang = true}), "clang");
  expect_good(batch.run(target("x86-64-v2")), "x86-64-v2");
  expect_good(batch.run(target("scalar")), "scalar");
}

}  // namespace
}  // namespace sinter
