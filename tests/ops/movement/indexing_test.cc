// ConstantOfShape, Range, EyeLike, OneHot, NonZero, Compress, Unique, ReverseSequence, Trilu, CenterCropPad.
#include "ops/movement/movement_trial.h"

namespace sinter::movement_test {
namespace {

TEST(ConstantOfShape, ValueAndContents) {
  Trial t("ConstantOfShape");
  t.dims({t.symbol("N"), 3});
  EXPECT_EQ(t.inferred(), "float32[N,3]");
  EXPECT_EQ(Trial("ConstantOfShape").ints({2}).set("value", Tensor::of({7})).inferred(), "int64[2]{7,7}");
  EXPECT_EQ(Trial("ConstantOfShape").ints({}).set("value", Tensor::of({7})).evaluated(), "[] 7");
  EXPECT_EQ(Trial("ConstantOfShape").ints({0, 2}).evaluated(), "[0,2]");
  EXPECT_EQ(Trial("ConstantOfShape").ints({-1}).inferred(), "its shape has the negative extent -1");
  EXPECT_EQ(Trial("ConstantOfShape").ints({1}).set("value", Tensor::of({7, 8})).inferred(),
            "its value must have one element");
  EXPECT_EQ(Trial("ConstantOfShape").input(DType::kI64, {2}).inferred(),
            "its shape is only known at run time: give it with --const \"x\"=..., or bound it with --dim "
            "\"x<=MAX\"");
}

TEST(Range, IntegersAndFloats) {
  auto range = [](int64_t a, int64_t b, int64_t c) {
    Trial t("Range");
    t.constant(scalar_of(a)).constant(scalar_of(b)).constant(scalar_of(c));
    return t.evaluated();
  };
  EXPECT_EQ(range(0, 5, 2), "[3] 0 2 4");
  EXPECT_EQ(range(5, 0, -2), "[3] 5 3 1");
  EXPECT_EQ(range(5, 0, 1), "[0]");
  EXPECT_EQ(range(0, 1, 0), "\"node\" (Range): its delta is 0");
  Trial t("Range");
  t.dims({0}, true).dims({t.symbol("N")}, true).constant(scalar_of(1));
  EXPECT_EQ(t.inferred(), "int64[N]");
  Trial u("Range");
  const Dim n = u.symbol("M");
  u.dims({n}, true).dims({n + 3}, true).constant(scalar_of(1));
  EXPECT_EQ(u.inferred(), "int64[3]{M,M+1,M+2}");
  Trial f("Range");
  f.constant(Tensor::scalar(1.f)).constant(Tensor::scalar(2.f)).constant(Tensor::scalar(0.25f));
  EXPECT_EQ(f.evaluated(), "[4] 1 1.25 1.5 1.75");
  Trial inf("Range");
  inf.constant(Tensor::scalar(1.f)).constant(Tensor::scalar(INFINITY)).constant(Tensor::scalar(1.f));
  EXPECT_EQ(inf.inferred(), "its limit is not finite");
  Trial cast("Range");
  const Dim length = cast.symbol("L");
  Value* whole = cast.graph.add_value("whole", {DType::kI64, {}});
  whole->elements = {length};
  cast.graph.inputs.push_back(whole);
  cast.constant(Tensor::scalar(0.f)).input(DType::kF32, {}).constant(Tensor::scalar(2.f));
  cast.graph.inputs.pop_back();
  Node* to_float = cast.graph.add_node(find_op("", "Cast"), "cast", {whole}, {cast.input_value(1)});
  to_float->attributes.set("to", int64_t{1});
  EXPECT_EQ(cast.inferred(), "float32[floordiv(L+1,2)]");
  EXPECT_EQ(cast.checks(), "min(16777216,L) == L");
  Trial unknown("Range");
  unknown.constant(scalar_of(0)).input(DType::kI64, {}).constant(scalar_of(1));
  EXPECT_EQ(unknown.inferred(), "int64[node_length]");  // the run tells
}

TEST(EyeLike, Diagonals) {
  auto eye = [](int64_t k) { return Trial("EyeLike").input({2, 3}).set("k", k).evaluated({iota({2, 3})}); };
  EXPECT_EQ(eye(0), "[2,3] 1 0 0 0 1 0");
  EXPECT_EQ(eye(2), "[2,3] 0 0 1 0 0 0");
  EXPECT_EQ(eye(-1), "[2,3] 0 0 0 1 0 0");
  EXPECT_EQ(eye(INT64_MAX), "[2,3] 0 0 0 0 0 0");
  EXPECT_EQ(eye(INT64_MIN), "[2,3] 0 0 0 0 0 0");
  EXPECT_EQ(Trial("EyeLike").input({2}).inferred(), "a matrix is needed, not [2]");
  EXPECT_EQ(Trial("EyeLike").input({2, 2}).set("dtype", int64_t{7}).inferred(), "int64[2,2]");
  EXPECT_EQ(Trial("EyeLike").input({2, 2}).set("dtype", int64_t{8}).inferred(),
            "its dtype 8 is not a number's");
}

TEST(OneHot, AxesAndNegatives) {
  Trial t("OneHot");
  t.input(DType::kI64, {t.symbol("N")}).constant(scalar_of(4)).constant(Tensor::of({0.f, 1.f}, {2}));
  EXPECT_EQ(t.inferred(), "float32[N,4]");
  EXPECT_EQ(t.evaluated({Tensor::of({1, -1, 4})}), "[3,4] 0 1 0 0 0 0 0 1 0 0 0 0");
  Trial u("OneHot");
  u.input(DType::kI64, {2}).constant(scalar_of(3)).constant(Tensor::of({5, 6})).set("axis", int64_t{0});
  EXPECT_EQ(u.evaluated({Tensor::of({2, 0})}), "[3,2] 5 6 5 5 6 5");
  EXPECT_EQ(Trial("OneHot").input({2}).input(DType::kI64, {}).constant(Tensor::of({5, 6})).inferred(),
            "int64[2,node_depth]");
  EXPECT_EQ(Trial("OneHot").input({2}).constant(scalar_of(3)).constant(Tensor::of({5, 6, 7})).inferred(),
            "number of values: 3 is not 2");
  EXPECT_EQ(Trial("OneHot")
                .input({2})
                .constant(scalar_of(3))
                .constant(Tensor::of({5, 6}))
                .set("axis", int64_t{2})
                .inferred(),
            "axis 2 out of range for [2]");
}

TEST(NonZero, Counts) {
  Trial t("NonZero");
  t.input({2, 3});
  EXPECT_EQ(t.inferred(), "int64[2,node_count]");
  EXPECT_EQ(t.graph.symbols->find("node_count")->range, (Interval{0, 6}));
  EXPECT_EQ(t.evaluated({Tensor::of({0.f, 2.f, -0.f, NAN, 0.f, 1.f}, {2, 3})}), "[2,3] 0 1 1 1 0 2");
  EXPECT_EQ(Trial("NonZero").input({}).evaluated({Tensor::scalar(1.f)}), "[0,1]");
  EXPECT_EQ(Trial("NonZero").input({0}).evaluated({iota({0})}), "[1,0]");
}

TEST(Compress, AxisAndFlat) {
  const Tensor x = iota({3, 2});
  EXPECT_EQ(Trial("Compress").input({3, 2}).constant(bools({0, 1, 1})).set("axis", int64_t{0}).evaluated({x}),
            "[2,2] 2 3 4 5");
  EXPECT_EQ(Trial("Compress").input({3, 2}).constant(bools({0, 1})).set("axis", int64_t{-1}).evaluated({x}),
            "[3,1] 1 3 5");
  EXPECT_EQ(Trial("Compress").input({3, 2}).constant(bools({1, 0, 0, 1})).evaluated({x}), "[2] 0 3");
  Trial t("Compress");
  t.input({t.symbol("N", 5, 9), 2}).input(DType::kBool, {4}).set("axis", int64_t{0});
  EXPECT_EQ(t.inferred(), "float32[node_count,2]");
  EXPECT_EQ(t.graph.symbols->find("node_count")->range, (Interval{0, 4}));
  EXPECT_EQ(Trial("Compress").input({3}).input(DType::kBool, {4}).inferred(),
            "length of the condition: 4 exceeds 3");
  EXPECT_EQ(Trial("Compress").input({3}).input(DType::kI64, {3}).inferred(), "its condition must be bool");
  const Tensor square =
      Tensor::of(std::vector<int64_t>{0, 1, 1, 0, 0, 1}).converted(DType::kBool).reshaped({3, 2});
  EXPECT_EQ(Trial("Compress").input({3, 2}).constant(square).evaluated({x}), "[3] 1 2 5");  // read flattened
}

TEST(Unique, SortedAndNot) {
  const Tensor x = Tensor::of({2.f, 1.f, 1.f, 3.f, 2.f}, {5});
  EXPECT_EQ(Trial("Unique", 4).input({5}).evaluated({x}), "[3] 1 2 3; [3] 1 0 3; [5] 1 0 0 2 1; [3] 2 2 1");
  EXPECT_EQ(Trial("Unique", 4).input({5}).set("sorted", int64_t{0}).evaluated({x}),
            "[3] 2 1 3; [3] 0 1 3; [5] 0 1 1 2 0; [3] 2 2 1");
  const Tensor rows = Tensor::of({1.f, 0.f, 1.f, 0.f, 0.f, 9.f}, {3, 2});
  EXPECT_EQ(Trial("Unique", 4).input({3, 2}).set("axis", int64_t{0}).evaluated({rows}),
            "[2,2] 0 9 1 0; [2] 2 0; [3] 1 1 0; [2] 1 2");
  EXPECT_EQ(Trial("Unique").input({2, 3}).set("axis", int64_t{-1}).evaluated({iota({2, 3})}),
            "[2,3] 0 1 2 3 4 5");
  EXPECT_EQ(Trial("Unique").input({0}).evaluated({iota({0})}), "[0]");
  EXPECT_EQ(Trial("Unique", 4).input({5}).inferred(),
            "float32[node_count]; int64[node_count]; int64[5]; int64[node_count]");
}

TEST(ReverseSequence, Values) {
  Trial t("ReverseSequence");
  t.input({3, 2}).ints({3, 2});
  EXPECT_EQ(t.evaluated({iota({3, 2})}), "[3,2] 4 3 2 1 0 5");
  Trial u("ReverseSequence");
  u.input({2, 3}).ints({1, 2}).set("batch_axis", int64_t{0}).set("time_axis", int64_t{1});
  EXPECT_EQ(u.evaluated({iota({2, 3})}), "[2,3] 0 1 2 4 3 5");
  EXPECT_EQ(Trial("ReverseSequence").input({3, 2}).ints({4, 0}).evaluated({iota({3, 2})}),
            "\"node\" (ReverseSequence): a sequence of length 4 in 3 steps");
  EXPECT_EQ(Trial("ReverseSequence").input({3, 2}).ints({1}).inferred(),
            "number of sequence_lens: 1 is not 2");
  EXPECT_EQ(Trial("ReverseSequence").input({3, 2}).ints({1, 1}).set("time_axis", int64_t{1}).inferred(),
            "batch_axis 1 and time_axis 1");
}

TEST(Trilu, Triangles) {
  auto trilu = [](int64_t upper, int64_t k) {
    Trial t("Trilu");
    t.input({2, 3}).constant(scalar_of(k)).set("upper", upper);
    return t.evaluated({Tensor::of({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3})});
  };
  EXPECT_EQ(trilu(1, 0), "[2,3] 1 2 3 0 5 6");
  EXPECT_EQ(trilu(1, 1), "[2,3] 0 2 3 0 0 6");
  EXPECT_EQ(trilu(0, 0), "[2,3] 1 0 0 4 5 0");
  EXPECT_EQ(trilu(0, -1), "[2,3] 0 0 0 4 0 0");
  EXPECT_EQ(trilu(0, INT64_MAX), "[2,3] 1 2 3 4 5 6");
  EXPECT_EQ(trilu(1, INT64_MIN), "[2,3] 1 2 3 4 5 6");
  EXPECT_EQ(Trial("Trilu").input({3}).inferred(), "matrices are needed, not [3]");
}

TEST(CenterCropPad, CropsAndPads) {
  auto crop = [](int64_t n, int64_t m) {
    return Trial("CenterCropPad").input({n}).ints({m}).evaluated({iota({n})});
  };
  EXPECT_EQ(crop(5, 2), "[2] 1 2");
  EXPECT_EQ(crop(4, 2), "[2] 1 2");
  EXPECT_EQ(crop(2, 5), "[5] 0 0 1 0 0");
  EXPECT_EQ(crop(2, 0), "[0]");
  Trial t("CenterCropPad");
  t.input({t.symbol("N"), 3}).ints({7}).set("axes", std::vector<int64_t>{-1});
  EXPECT_EQ(t.inferred(), "float32[N,7]");
  EXPECT_EQ(Trial("CenterCropPad").input({3, 3}).ints({7}).inferred(), "1 extents for 2 axes");
}

}  // namespace
}  // namespace sinter::movement_test
