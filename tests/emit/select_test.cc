// ArgMax, ArgMin, TopK, CumSum, CumProd, MaxUnpool and Einsum in generated code.
#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

const DType kTypes[] = {DType::kF64, DType::kF16, DType::kBF16, DType::kI8,  DType::kU8,
                        DType::kI16, DType::kI32, DType::kI64,  DType::kU32, DType::kU64};

// Few different values, so that there are ties, and NaN.
void ties(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i)
    t.set_real(i, random() % 11 == 0 ? NAN : static_cast<double>(random() % 4));
}

void add_argmax(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 30);
  for (const char* op : {"ArgMax", "ArgMin"})
    for (int64_t last : {0, 1}) {
      const auto add = [&](DType t, Shape shape, int64_t axis, int64_t keep, const Fill& fill = random_fill) {
        s.add(op, {values(t, std::move(shape), fill)},
              {{"axis", axis}, {"keepdims", keep}, {"select_last_index", last}});
      };
      for (int64_t width : {1, 5, 16, 77}) {
        add(DType::kF32, {4, width}, 1, 0, ties);
        add(DType::kF32, {2, 6, width}, 1, 1, ties);
      }
      add(DType::kF32, {n, 7}, 0, 1);
      add(DType::kF32, {3, 7, n}, -2, 0);
      add(DType::kF32, {3, n}, -1, 0);
      for (DType t : kTypes) add(t, {3, 5, 2}, 1, 0);
    }
  s.into(batch, "argmax", {{{"N", 1}}, {{"N", 30}}});
}

void add_topk(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 5, 30);
  for (int64_t largest : {0, 1}) {
    const auto add = [&](DType t, Shape shape, int64_t axis, int64_t k, std::vector<bool> outputs,
                         const Fill& fill) {
      s.add("TopK", {values(t, std::move(shape), fill), constant(Tensor::of(Ints{k}))},
            {{"axis", axis}, {"largest", largest}}, outputs);
    };
    for (int64_t k : {0, 1, 3, 7}) {
      add(DType::kF32, {4, 7}, -1, k, {true, true}, ties);
      add(DType::kF32, {2, 7, 3}, 1, k, {true, true}, random_fill);
    }
    add(DType::kF32, {n, 7}, 0, 5, {true, true}, ties);
    add(DType::kF32, {3, n}, 1, 5, {false, true}, ties);
    add(DType::kF32, {3, 6}, 1, 5, {true, false}, ties);
    for (DType t : kTypes) add(t, {3, 5}, 1, 2, {true, true}, random_fill);
  }
  s.into(batch, "topk", {{{"N", 5}}, {{"N", 30}}});
  // k as an input: the extent is a count of the run; more than the axis holds is an error.
  Sheet counted;
  counted.add("TopK", {floats({3, 6}), values(DType::kI64, {1})}, {}, {true, true});
  std::vector<DataSet> sets;
  for (int64_t k : {0, 4, 6})
    sets.push_back({{random_constant(DType::kF32, {3, 6}), Tensor::of(Ints{k})}, {}, 0});
  for (int64_t k : {-1, 7})
    sets.push_back({{random_constant(DType::kF32, {3, 6}), Tensor::of(Ints{k})}, {}, 3});
  batch.add("topk_counted", counted.graph().clone(), sets);
}

void add_cumsum(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 30);
  for (const char* op : {"CumSum", "CumProd"})
    for (int64_t exclusive : {0, 1})
      for (int64_t reverse : {0, 1}) {
        const AttributeList a{{"exclusive", exclusive}, {"reverse", reverse}};
        for (int64_t axis : {0, 1, -1}) s.add(op, {floats({3, 5, 7}), constant(Tensor::scalar(axis))}, a);
        s.add(op, {floats({n, 2}), constant(Tensor::scalar(int64_t{0}))}, a);
        for (DType t : {DType::kF64, DType::kF16, DType::kI32, DType::kI64, DType::kU32, DType::kU64})
          s.add(op, {values(t, {3, 5}), constant(Tensor::scalar(int64_t{1}))}, a);
      }
  s.into(batch, "cumsum", {{{"N", 1}}, {{"N", 30}}}, {1e-3, 1e-4});
}

void add_unpool(GeneratedBatch& batch) {
  const AttributeList window{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  Sheet s;
  s.add("MaxUnpool", {floats({1, 1, 2, 2}), values(DType::kI64, {1, 1, 2, 2})}, window);
  Sheet larger;
  larger.add("MaxUnpool",
             {values(DType::kF16, {1, 1, 2, 2}), values(DType::kI64, {1, 1, 2, 2}),
              constant(Tensor::of(Ints{1, 1, 5, 6}))},
             window);
  for (Sheet* sheet : {&s, &larger}) {
    const DType t = sheet->graph().inputs[0]->type.dtype;
    auto set = [&](Ints at, int status) {
      return DataSet{{random_constant(t, {1, 1, 2, 2}), Tensor::of(at).reshaped({1, 1, 2, 2})}, {}, status};
    };
    batch.add(
        sheet == &s ? "unpool" : "unpool_larger", sheet->graph().clone(),
        {set({5, 0, 15, 8}, 0), set({5, 7, 13, 15}, 0), set({0, 2, 13, 15}, 0),
         set({0, 0, 1, sheet == &s ? 16 : 30}, 5), set({0, 0, 1, -1}, 5), set({INT64_MAX, 0, 1, 2}, 5)});
  }
}

void add_einsum(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 20);
  const auto add = [&](const char* equation, const std::vector<Shape>& shapes, DType t = DType::kF32) {
    std::vector<Arg> args;
    for (const Shape& shape : shapes) args.push_back(values(t, shape));
    s.add("Einsum", args, {{"equation", equation}});
  };
  add("ij,jk->ik", {{3, 7}, {7, 21}});
  add("bhqd,bhkd->bhqk", {{2, 3, 5, 18}, {2, 3, 6, 18}});
  add("bhqk,bhkd->bqhd", {{2, 3, 5, 6}, {2, 3, 6, 37}});
  add("bid,bjd->bij", {{2, n, 9}, {2, 7, 9}});
  add("...ij,...jk->...ik", {{n, 3, 4}, {n, 4, 5}});
  add("...ij,...jk->...ik", {{2, 1, 3, 4}, {5, 4, 20}});
  add("ii->i", {{6, 6}});
  add("ii", {{6, 6}});
  add("ij->ji", {{3, 40}});
  add("ij->", {{3, 40}});
  add("i,j,k->ijk", {{3}, {4}, {17}});
  add("ij,ij,ij->i", {{3, 33}, {3, 33}, {3, 33}});
  add("bn,anm,bm->ba", {{2, 5}, {3, 5, 7}, {2, 7}});
  add("n d, n d -> n", {{n, 8}, {n, 8}});
  for (DType t : {DType::kF64, DType::kF16, DType::kI32, DType::kI64, DType::kU8})
    add("ij,jk->ik", {{3, 7}, {7, 5}}, t);
  s.into(batch, "einsum", {{{"N", 1}}, {{"N", 20}}});
}

void add_all(GeneratedBatch& batch) {
  add_argmax(batch);
  add_topk(batch);
  add_cumsum(batch);
  add_unpool(batch);
  add_einsum(batch);
}

TEST(Select, Avx512) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(target("avx512")));
}
TEST(Select, Aarch64) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(target("aarch64")));
}
TEST(Select, Avx2WithSanitizers) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(target("avx2"), {.sanitize = true}));
}
TEST(Select, OtherCompilersAndTargets) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(target("avx512"), {.clang = true}), "clang");
  expect_good(batch.run(target("scalar")), "scalar");
}

}  // namespace
}  // namespace sinter
