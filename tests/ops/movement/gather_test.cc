// Gather, GatherElements, GatherND, ScatterElements, ScatterND.
#include "ops/movement/movement_trial.h"

namespace sinter::movement_test {
namespace {

TEST(Gather, Shapes) {
  Trial t("Gather");
  t.input({4, t.symbol("N"), 5}).input(DType::kI32, {2, 3}).set("axis", int64_t{1});
  EXPECT_EQ(t.inferred(), "float32[4,2,3,5]");
  EXPECT_EQ(Trial("Gather").input({4}).input(DType::kF32, {1}).inferred(),
            "indices of type float32: int32 or int64 is needed");
  EXPECT_EQ(Trial("Gather").input({}).input(DType::kI64, {1}).inferred(), "axis 0 out of range for []");
  Trial u("Gather");
  u.dims({u.symbol("M"), 3, 7}).constant(scalar_of(-1));
  EXPECT_EQ(u.inferred(), "int64[]{7}");
  Trial v("Gather");
  v.dims({v.symbol("M"), 3, 7}).ints({2, 0});
  EXPECT_EQ(v.inferred(), "int64[2]{7,M}");
  EXPECT_EQ(Trial("Gather").dims({1, 2}).ints({2}).inferred(), "index 2 out of range for an axis of 2");
}
TEST(Gather, Values) {
  const Tensor x = iota({2, 3});
  EXPECT_EQ(Trial("Gather").input({2, 3}).ints({-1, 0}).evaluated({x}), "[2,3] 3 4 5 0 1 2");
  EXPECT_EQ(Trial("Gather").input({2, 3}).ints({2, -3}).set("axis", int64_t{-1}).evaluated({x}),
            "[2,2] 2 0 5 3");
  EXPECT_EQ(Trial("Gather").input({2, 3}).ints({}).evaluated({x}), "[0,3]");
  EXPECT_EQ(Trial("Gather").input({2, 3}).ints({2}).evaluated({x}),
            "\"node\" (Gather): index 2 out of range for an axis of 2");
  EXPECT_EQ(Trial("Gather").input({2, 3}).ints({-3}).evaluated({x}),
            "\"node\" (Gather): index -3 out of range for an axis of 2");
}

TEST(GatherElements, Values) {
  const Tensor x = iota({2, 3});
  const Tensor i = matrix({0, 1, -1, 1}, {2, 2});
  EXPECT_EQ(Trial("GatherElements").input({2, 3}).constant(i).evaluated({x}), "[2,2] 0 4 3 4");
  EXPECT_EQ(Trial("GatherElements").input({2, 3}).constant(i).set("axis", int64_t{1}).evaluated({x}),
            "[2,2] 0 1 5 4");
  EXPECT_EQ(Trial("GatherElements").input({2, 3}).input(DType::kI64, {2}).inferred(),
            "indices of shape [2] for [2,3]");
  EXPECT_EQ(Trial("GatherElements").input({2, 3}).input(DType::kI64, {5, 4}).inferred(),
            "axis 1 of the indices: 4 exceeds 3");
  EXPECT_EQ(Trial("GatherElements").input({2, 3}).constant(matrix({2}, {1, 1})).evaluated({x}),
            "\"node\" (GatherElements): index 2 out of range for an axis of 2");
  Trial t("GatherElements");
  t.input({t.symbol("N"), 3}).input(DType::kI64, {4, t.symbol("K")});
  EXPECT_EQ(t.inferred(), "float32[4,K]");
  EXPECT_EQ(t.checks(), "min(3,K) == K");
}

TEST(GatherND, Values) {
  const Tensor x = iota({2, 2, 2});
  EXPECT_EQ(Trial("GatherND").input({2, 2, 2}).constant(matrix({0, 1, 1, -2}, {2, 2})).evaluated({x}),
            "[2,2] 2 3 4 5");
  EXPECT_EQ(Trial("GatherND")
                .input({2, 2, 2})
                .constant(matrix({1, 0}, {2, 1}))
                .set("batch_dims", int64_t{1})
                .evaluated({x}),
            "[2,2] 2 3 4 5");
  EXPECT_EQ(Trial("GatherND").input({2, 2}).constant(matrix({0, 2}, {1, 2})).evaluated({iota({2, 2})}),
            "\"node\" (GatherND): index 2 out of range for an axis of 2");
  EXPECT_EQ(Trial("GatherND").input({2, 2}).input(DType::kI64, {1, 3}).inferred(),
            "3 coordinates for 2 axes behind 0 batch axes");
  EXPECT_EQ(Trial("GatherND").input({2}).input(DType::kI64, {2}).set("batch_dims", int64_t{1}).inferred(),
            "batch_dims is 1");
  Trial t("GatherND");
  const Dim n = t.symbol("N");
  t.input({n, 4, 5}).input(DType::kI64, {n, 7, 1}).set("batch_dims", int64_t{1});
  EXPECT_EQ(t.inferred(), "float32[N,7,5]");
  EXPECT_EQ(Trial("GatherND").input({0, 3}).constant(Tensor(DType::kI64, {0, 1})).evaluated({iota({0, 3})}),
            "[0,3]");
}

struct ReductionCase {
  std::string reduction, expected;
};
TEST(ScatterElements, Reductions) {
  const ReductionCase table[] = {{"none", "[4] 5 1 2 7"},
                                 {"add", "[4] 5 1 2 16"},
                                 {"mul", "[4] 0 1 2 126"},
                                 {"max", "[4] 5 1 2 7"},
                                 {"min", "[4] 0 1 2 3"}};
  for (const DType type : {DType::kF32, DType::kF16, DType::kI8, DType::kU64, DType::kI32})
    for (const ReductionCase& c : table) {
      Trial t("ScatterElements");
      t.input(type, {4}).ints({0, 3, -1}).constant(Tensor::of({5, 6, 7}).converted(type));
      EXPECT_EQ(t.set("reduction", c.reduction).evaluated({iota({4}, type)}), c.expected)
          << c.reduction << " " << name_of(type);
    }
}
TEST(ScatterElements, AxesAndRefusals) {
  const Tensor i = matrix({2, 0}, {1, 2});
  Trial t("ScatterElements");
  t.input({2, 3}).constant(i).constant(Tensor::of({9.f, 8.f}, {1, 2})).set("axis", int64_t{-1});
  EXPECT_EQ(t.evaluated({iota({2, 3})}), "[2,3] 8 1 9 3 4 5");
  auto with = [](Shape indices, Shape updates, const std::string& reduction) {
    Trial x("ScatterElements");
    x.input({2, 3}).input(DType::kI64, std::move(indices)).input(std::move(updates));
    return x.set("reduction", reduction).inferred();
  };
  EXPECT_EQ(with({1, 2}, {1, 2}, "none"), "float32[2,3]");
  EXPECT_EQ(with({1, 2}, {1, 1}, "none"), "axis 1 of indices and updates: 2 is not 1");
  EXPECT_EQ(with({1, 4}, {1, 4}, "none"), "axis 1 of the indices: 4 exceeds 3");
  EXPECT_EQ(with({2}, {2}, "none"), "indices of shape [2] and updates of shape [2] for [2,3]");
  EXPECT_EQ(with({1, 2}, {1, 2}, "mean"), "its reduction is \"mean\"");
  Trial u("ScatterElements");
  u.dims({u.symbol("N"), 4}).ints({1}).dims({u.symbol("M")});
  EXPECT_EQ(u.inferred(), "int64[2]{N,M}");
}

TEST(ScatterND, Values) {
  const Tensor i = matrix({3, -4}, {2, 1});
  for (const ReductionCase& c : {ReductionCase{"none", "[4] 6 1 2 5"}, ReductionCase{"add", "[4] 6 1 2 8"},
                                 ReductionCase{"mul", "[4] 0 1 2 15"}}) {
    Trial t("ScatterND");
    t.input({4}).constant(i).constant(Tensor::of({5.f, 6.f}, {2}));
    EXPECT_EQ(t.set("reduction", c.reduction).evaluated({iota({4})}), c.expected);
  }
  Trial block("ScatterND");
  block.input({2, 2}).constant(matrix({1}, {1, 1})).constant(Tensor::of({8.f, 9.f}, {1, 2}));
  EXPECT_EQ(block.evaluated({iota({2, 2})}), "[2,2] 0 1 8 9");
  Trial bad("ScatterND");
  bad.input({4}).constant(matrix({4}, {1, 1})).constant(Tensor::of({5.f}, {1}));
  EXPECT_EQ(bad.evaluated({iota({4})}), "\"node\" (ScatterND): index 4 out of range for an axis of 4");
  EXPECT_EQ(Trial("ScatterND").input({4, 3}).input(DType::kI64, {2, 1}).input({2, 4}).inferred(),
            "axis 1 of the updates: 4 is not 3");
  EXPECT_EQ(Trial("ScatterND").input({4, 3}).input(DType::kI64, {2, 1}).input({2}).inferred(),
            "updates of shape [2], but [2,3] is needed");
  EXPECT_EQ(Trial("ScatterND").input({4}).input(DType::kI64, {2, 2}).input({2}).inferred(),
            "2 coordinates for 1 axes");
  Trial u("ScatterND");
  u.dims({u.symbol("N"), 4}).constant(matrix({0}, {1, 1})).dims({3});
  EXPECT_EQ(u.inferred(), "int64[2]{3,4}");
}

}  // namespace
}  // namespace sinter::movement_test
