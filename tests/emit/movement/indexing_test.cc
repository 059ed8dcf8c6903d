// Gathers, scatters, fills and counted results against the interpreter; indices outside are refused at run
// time.
#include <gtest/gtest.h>

#include "emit/sheet.h"
#include "plan/plan.h"

namespace sinter {
namespace {

const DType kSizes[] = {DType::kU8, DType::kF16, DType::kF32, DType::kF64};

void check(GeneratedBatch& batch) {
  for (const char* name : {"avx512", "aarch64", "scalar"}) {
    const auto results = batch.run(target(name));
    if (!results[0].skipped.empty()) continue;
    expect_good(results, name);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
}

// A constant of equal elements.
Arg uniform(DType t, const std::vector<int64_t>& shape) {
  Tensor all(t, shape);
  for (int64_t i = 0; i < all.size(); ++i) all.set_real(i, 3);
  return constant(std::move(all));
}
Arg ints(const Ints& v) { return constant(Tensor::of(v)); }
// Integers in [lo, hi].
Fill within(int64_t lo, int64_t hi) {
  return [lo, hi](Tensor& t, std::mt19937& random) {
    for (int64_t i = 0; i < t.size(); ++i)
      t.set_integer(i, lo + static_cast<int64_t>(random() % static_cast<uint64_t>(hi - lo + 1)));
  };
}
Fill exactly(const Ints& v) {
  return [v](Tensor& t, std::mt19937&) {
    for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, v[static_cast<size_t>(i)]);
  };
}
Arg indices(Shape shape, int64_t extent, DType t = DType::kI64) {
  return values(t, std::move(shape), within(-extent, extent - 1));
}

TEST(Gather, AllKinds) {
  GeneratedBatch batch;
  for (DType t : kSizes) {
    Sheet s;
    const Dim n = s.symbol("N", 1, 5);
    s.add("Gather", {values(t, {9, 20}), indices({4}, 9)});
    s.add("Gather", {values(t, {9, 20}), indices({2, 3}, 20, DType::kI32)}, {{"axis", int64_t{1}}});
    s.add("Gather", {values(t, {3, 7, 5}), indices({n, 2}, 7)}, {{"axis", int64_t{-2}}});
    s.add("Gather", {values(t, {n, 7}), ints({6, -7, 0})}, {{"axis", int64_t{1}}});
    s.add("Gather", {values(t, {5}), indices({}, 5)});
    s.add("Gather", {values(t, {4, n}), ints({1})});
    s.add("GatherElements", {values(t, {4, 6}), indices({3, 6}, 4)});
    s.add("GatherElements", {values(t, {4, 6}), indices({4, 11}, 6, DType::kI32)}, {{"axis", int64_t{1}}});
    s.add("GatherElements", {values(t, {n, 5, 3}), indices({n, 2, 3}, 5)}, {{"axis", int64_t{1}}});
    s.add("GatherElements", {values(t, {7}), indices({1}, 7)});
    s.add("GatherND", {values(t, {4, 5, 6}), indices({3, 2}, 4)});
    s.add("GatherND", {values(t, {4, 5, 6}), indices({2, 3, 3}, 4, DType::kI32)});
    s.add("GatherND", {values(t, {n, 5, 6}), indices({n, 3, 1}, 5)}, {{"batch_dims", int64_t{1}}});
    s.into(batch, "gather_" + std::string(name_of(t)), {{{"N", 1}}, {{"N", 5}}});
  }
  check(batch);
}

TEST(Scatter, AllReductions) {
  GeneratedBatch batch;
  for (DType t : {DType::kF32, DType::kF16, DType::kI64, DType::kU8}) {
    Sheet s;
    const Dim n = s.symbol("N", 1, 5);
    for (const char* how : {"none", "add", "mul", "max", "min"}) {
      const AttributeList a = {{"reduction", std::string(how)}};
      AttributeList last = a;
      last.push_back({"axis", int64_t{-1}});
      s.add("ScatterElements", {values(t, {4, 6}), indices({3, 5}, 4), values(t, {3, 5})}, a);
      s.add("ScatterElements", {values(t, {n, 6}), indices({n, 9}, 6, DType::kI32), values(t, {n, 9})}, last);
      s.add("ScatterND", {values(t, {4, 5, 3}), indices({n, 1}, 4), values(t, {n, 5, 3})}, a);
      s.add("ScatterND", {uniform(t, {4, 5, 3}), indices({n, 1}, 4), values(t, {n, 5, 3})}, a);
      s.add("ScatterND", {values(t, {4, 5, 3}), indices({2, 3, 3}, 3), values(t, {2, 3})}, a);
    }
    s.into(batch, "scatter_" + std::string(name_of(t)), {{{"N", 1}}, {{"N", 5}}});
  }
  check(batch);
}

// Positions that Expand repeats along the elements of a row, as those of a cache's rows: rows are copied,
// with the same result as element by element.
TEST(Scatter, RowsOfOnePosition) {
  struct Case {
    Ints data, positions, updates;
    int64_t axis;
    bool rows;
  };
  const Case cases[] = {{{2, 3, 8, 5}, {2, 1, 4, 1}, {2, 3, 4, 5}, 2, true},
                        {{2, 3, 8, 5}, {4, 1}, {2, 3, 4, 5}, -2, true},
                        {{9, 4, 3}, {6, 1, 1}, {6, 4, 3}, 0, true},
                        {{9, 4, 3}, {1, 4, 1}, {6, 4, 3}, 0, false},
                        {{4, 6}, {3, 1}, {3, 5}, 0, false},
                        {{4, 6}, {1, 6}, {4, 6}, 1, false}};
  const auto shape = [](const Ints& extents) { return Shape(extents.begin(), extents.end()); };
  GeneratedBatch batch;
  for (const Case& c : cases) {
    Sheet s;
    const auto axis = static_cast<size_t>(c.axis < 0 ? c.axis + static_cast<int64_t>(c.data.size()) : c.axis);
    Node* all = s.add("Expand", {indices(shape(c.positions), c.data[axis]), constant(Tensor::of(c.updates))});
    const Node* n =
        s.add("ScatterElements", {floats(shape(c.data)), made(all->outputs[0]), floats(shape(c.updates))},
              {{"axis", c.axis}});
    WeightStore store;
    const Plan plan = make_plan(s.graph(), target("avx2"), {}, store);
    for (const Layer& l : plan.layers)
      if (l.node == n) {
        EXPECT_EQ(l.body.find(fmt::format("i{} < ", c.data.size() - 1)) == std::string::npos, c.rows)
            << l.body;
      }
    s.into(batch, fmt::format("rows_{}", &c - cases), {{}}, {0, 0});
  }
  check(batch);
}

// All places of a slice [begin, end) by `step` along each axis, as exporters write an assignment to it.
Tensor places(const std::vector<Ints>& slices) {
  Ints all, at;
  Shape shape;
  for (const Ints& s : slices)
    shape.push_back(Dim((std::abs(s[1] - s[0]) + std::abs(s[2]) - 1) / std::abs(s[2])));
  const std::function<void(size_t)> visit = [&](size_t d) {
    if (d == slices.size()) {
      all.insert(all.end(), at.begin(), at.end());
      return;
    }
    for (int64_t i = slices[d][0]; slices[d][2] > 0 ? i < slices[d][1] : i > slices[d][1];
         i += slices[d][2]) {
      at.push_back(i);
      visit(d + 1);
      at.pop_back();
    }
  };
  visit(0);
  Ints dims;
  for (const Dim& d : shape) dims.push_back(d.value());
  dims.push_back(static_cast<int64_t>(slices.size()));
  Tensor t(DType::kI64, dims);
  std::copy(all.begin(), all.end(), t.as<int64_t>());
  return t;
}

TEST(Gather, ConstantPlaces) {
  GeneratedBatch batch;
  for (DType t : kSizes) {
    Sheet s;
    const Dim n = s.symbol("N", 1, 3);
    const auto axis = [](int64_t a) { return AttributeList{{"axis", a}}; };
    const auto at = [](const Ints& v, std::vector<int64_t> shape) {
      Tensor all(DType::kI64, std::move(shape));
      std::copy(v.begin(), v.end(), all.as<int64_t>());
      return constant(all);
    };
    s.add("Gather", {values(t, {n, 3, 6}), at({0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5}, {3, 4})},
          axis(2));                                                              // windows
    s.add("Gather", {values(t, {n, 5, 3}), at({4, 3, 2, 1, 0}, {5})}, axis(1));  // backwards
    s.add("Gather", {values(t, {6, n}), at({1, 2, 3}, {3})}, axis(0));           // rows of unknown length
    s.add("Gather", {values(t, {2, 6}), at({-1, 0, -3, 2}, {2, 2})}, axis(-1));  // from the end
    s.add("Gather", {values(t, {2, 9}), at({0, 8, 1, 7, 2, 6, 3, 3, 5, 0, 4, 8, 8, 2, 1, 6}, {16})}, axis(1));
    s.into(batch, "gather_places_" + std::string(name_of(t)), {{{"N", 1}}, {{"N", 3}}});
  }
  check(batch);
}

TEST(Scatter, ConstantPlaces) {
  GeneratedBatch batch;
  for (DType t : {DType::kF32, DType::kF16, DType::kI64, DType::kBool}) {
    Sheet s;
    const std::vector<std::vector<Ints>> slices = {
        {{0, 4, 1}, {0, 2, 1}, {0, 6, 1}},  // runs of two rows
        {{1, 3, 1}, {1, 4, 2}, {2, 5, 1}},  // two runs an outer place
        {{0, 4, 1}, {3, 4, 1}, {1, 6, 2}},  // single elements
        {{3, -1, -1}, {2, 4, 1}},           // rows, backwards
        {{-1, -4, -2}},                     // blocks, by negative numbers
        {{0, 4, 1}, {0, 5, 2}, {0, 6, 2}},  // too many rules for code
    };
    for (const auto& list : slices) {
      const Tensor at = places(list);
      Shape updates;
      for (size_t d = 0; d < 3; ++d) updates.push_back(Dim(d < list.size() ? at.dim(d) : Ints{4, 5, 6}[d]));
      s.add("ScatterND", {values(t, {4, 5, 6}), constant(at), values(t, updates)});
    }
    // A place that is written twice keeps the last.
    Tensor twice(DType::kI64, {3, 1});
    std::copy_n(Ints{2, 1, 2}.begin(), 3, twice.as<int64_t>());
    s.add("ScatterND", {values(t, {4, 5}), constant(twice), values(t, {3, 5})});
    s.into(batch, "places_" + std::string(name_of(t)));
  }
  check(batch);
}

TEST(Scatter, RowsIntoACache) {
  GeneratedBatch batch;
  for (DType t : {DType::kF32, DType::kF16, DType::kI8}) {
    Sheet s;
    const Dim n = s.symbol("N", 1, 3);
    const Fill up_to_3 = [](Tensor& v, std::mt19937& random) {
      for (int64_t i = 0; i < v.size(); ++i) v.set_integer(i, static_cast<int64_t>(random() % 4));
    };
    for (const char* mode : {"linear", "circular"}) {
      const AttributeList a = {{"mode", std::string(mode)}};
      const AttributeList axis1 = {{"mode", std::string(mode)}, {"axis", int64_t{1}}};
      s.add("TensorScatter",
            {values(t, {n, 2, 7, 3}), values(t, {n, 2, 4, 3}), values(DType::kI64, {n}, up_to_3)}, a);
      s.add("TensorScatter", {values(t, {n, 6, 5}), values(t, {n, n, 5}), values(DType::kI64, {n}, up_to_3)},
            axis1);
      s.add("TensorScatter", {values(t, {2, 5, 2}), values(t, {2, 2, 2})}, a);
    }
    s.add("TensorScatter",  // over the end and on from the beginning
          {values(t, {2, 4, 3}), values(t, {2, 3, 3}), constant(Tensor::of(Ints{3, 2}))},
          {{"mode", std::string("circular")}});
    s.into(batch, "cache_" + std::string(name_of(t)), {{{"N", 1}}, {{"N", 3}}});
  }
  check(batch);
}

TEST(Scatter, RowsBesideTheCacheAreRefused) {
  GeneratedBatch batch;
  for (const auto& [mode, at] : {std::pair{"linear", 3}, {"circular", 4}, {"linear", -1}, {"circular", -1}}) {
    Sheet s;
    s.add("TensorScatter", {floats({1, 4, 3}), floats({1, 2, 3}), values(DType::kI64, {1})},
          {{"mode", std::string(mode)}});
    batch.add(
        fmt::format("{} {}", mode, at), s.graph().clone(),
        {{{Tensor(DType::kF32, {1, 4, 3}), Tensor(DType::kF32, {1, 2, 3}), Tensor::of(Ints{at})}, {}, 5}});
  }
  expect_good(batch.run(target("host")), "host");
}

// A chain that may work in place: the data die with the scatter.
TEST(Scatter, InPlaceWhereTheDataEnd) {
  GeneratedBatch batch;
  auto g = std::make_unique<Graph>();
  Value* x = g->add_value("x", {DType::kF32, {Dim(64)}});
  Value* at = g->add_value("at", {DType::kI64, {Dim(5)}});
  Value* u = g->add_value("u", {DType::kF32, {Dim(5)}});
  g->inputs = {x, at, u};
  Value* a = g->add_value("a", {});
  Value* b = g->add_value("b", {});
  Value* y = g->add_value("y", {});
  g->add_node(find_op("", "Relu"), "relu", {x}, {a});
  g->add_node(find_op("", "ScatterElements"), "scatter", {a, at, u}, {b});
  g->add_node(find_op("", "Relu"), "relu2", {b}, {y});
  g->outputs = {y};
  infer(*g);
  WeightStore store;
  const Plan plan = make_plan(*g, target("avx512"), {}, store);
  EXPECT_EQ(plan.arena_bytes, 256);
  Tensor xs = random_constant(DType::kF32, {64}), us = random_constant(DType::kF32, {5});
  batch.add("in_place", std::move(g), {{{xs, Tensor::of(Ints{3, -1, 3, 0, 63}), us}, {}, 0}});
  check(batch);
}

TEST(Gather, RefusesIndicesOutside) {
  GeneratedBatch batch;
  const auto bad = [&](const char* op, const std::vector<Arg>& args) {
    Sheet s;
    s.add(op, args);
    std::vector<Tensor> in;
    std::mt19937 random(1);
    for (const Arg& a : args) {
      if (a.constant) continue;
      Tensor t(a.type.dtype, static_dims(a.type.shape));
      a.fill(t, random);
      in.push_back(t);
    }
    batch.add(std::string(op) + std::to_string(batch.size()), s.graph().clone(), {{in, {}, 5}});
  };
  const Arg four = values(DType::kI64, {1, 1}, exactly({4})),
            minus = values(DType::kI64, {1, 1}, exactly({-5}));
  const Arg least = values(DType::kI64, {1, 1}, exactly({INT64_MIN}));
  bad("Gather", {floats({4, 3}), least});
  bad("ScatterND", {floats({4, 3}), least, floats({1, 3})});
  for (const Arg& i : {four, minus}) {
    bad("Gather", {floats({4, 3}), i});
    bad("GatherElements", {floats({4, 3}), i});
    bad("GatherND", {floats({4, 3}), i});
    bad("ScatterElements", {floats({4, 3}), i, floats({1, 1})});
    bad("ScatterND", {floats({4, 3}), i, floats({1, 3})});
  }
  bad("ReverseSequence", {floats({4, 2}), values(DType::kI64, {2}, exactly({1, 5}))});
  bad("ReverseSequence", {floats({4, 2}), values(DType::kI64, {2}, exactly({-1, 5}))});
  expect_good(batch.run(target("host")), "host");
}

TEST(Indexing, OneHotReverseTrilu) {
  GeneratedBatch batch;
  for (DType t : kSizes) {
    Sheet s;
    const Dim n = s.symbol("N", 1, 5);
    const Arg depth = constant(Tensor::scalar(int64_t{4}));
    s.add("OneHot", {values(DType::kI64, {3, n}, within(-6, 6)), depth, values(t, {2})});
    s.add("OneHot", {values(DType::kI32, {3, n}, within(-6, 6)), depth, values(t, {2})},
          {{"axis", int64_t{0}}});
    s.add("OneHot", {values(DType::kF32, {2, 3, 4}, within(-6, 6)), depth, values(t, {2})},
          {{"axis", int64_t{1}}});
    s.add("OneHot", {values(DType::kI64, {}, within(0, 3)), depth, values(t, {2})});
    s.add("ReverseSequence", {values(t, {6, n, 3}), values(DType::kI64, {n}, within(0, 6))});
    s.add("ReverseSequence", {values(t, {n, 6}), values(DType::kI64, {n}, within(0, 6))},
          {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}});
    for (const int64_t upper : {0, 1}) {
      const AttributeList a = {{"upper", upper}};
      s.add("Trilu", {values(t, {2, 5, 7})}, a);
      s.add("Trilu", {values(t, {n, n})}, a);
      for (int64_t k : {int64_t{-3}, int64_t{2}, int64_t{100}, INT64_MIN, INT64_MAX}) {
        s.add("Trilu", {values(t, {4, n, 6}), constant(Tensor::scalar(k))}, a);
        s.add("Trilu", {values(t, {7, 6}), values(DType::kI64, {}, exactly({k}))}, a);
      }
    }
    s.into(batch, "positions_" + std::string(name_of(t)), {{{"N", 1}}, {{"N", 5}}});
  }
  check(batch);
}

TEST(Counted, NonZeroCompressUnique) {
  GeneratedBatch batch;
  for (DType t : {DType::kF32, DType::kF16, DType::kI64, DType::kBool, DType::kU8}) {
    Sheet s;
    const Dim n = s.symbol("N", 0, 6);
    const Fill few = within(0, t == DType::kBool ? 1 : 3);
    s.add("NonZero", {values(t, {n, 3, 4}, few)});
    s.add("NonZero", {values(t, {11}, few)});
    s.add("NonZero", {values(t, {}, within(1, 1))});
    const Arg keep = values(DType::kBool, {n}, within(0, 1));
    s.add("Compress", {values(t, {2, n, 5}), keep}, {{"axis", int64_t{1}}});
    s.add("Compress", {values(t, {n, 3}), keep}, {{"axis", int64_t{0}}});
    s.add("Compress", {values(t, {4, 6}), keep});
    s.add("Compress", {values(t, {4, 6}),
                       constant(Tensor::of(Ints{1, 0, 1, 1}).converted(DType::kBool).reshaped({2, 2}))});
    s.add("Compress", {values(t, {4, 3}), constant(Tensor::of(Ints{1, 0, 1}).converted(DType::kBool))},
          {{"axis", int64_t{1}}});
    for (const int64_t sorted : {0, 1}) {
      const AttributeList a = {{"sorted", sorted}};
      AttributeList rows = a, columns = a;
      rows.push_back({"axis", int64_t{0}});
      columns.push_back({"axis", int64_t{-1}});
      s.add("Unique", {values(t, {5, 4}, few)}, a, {true, true, true, true});
      s.add("Unique", {values(t, {n, 2}, few)}, rows, {true, true, true, true});
      s.add("Unique", {values(t, {2, 9}, few)}, columns, {true, false, true});
      s.add("Unique", {values(t, {7}, few)}, a, {true});
    }
    s.into(batch, "counted_" + std::string(name_of(t)), {{{"N", 0}}, {{"N", 1}}, {{"N", 6}}});
  }
  check(batch);
}

TEST(Fill, ConstantsRangesAndShapes) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 1, 6), m = s.symbol("M", 1, 4);
  for (DType t : {DType::kU8, DType::kF16, DType::kF32, DType::kF64, DType::kI64, DType::kBool, DType::kBF16,
                  DType::kI32}) {
    s.add("ConstantOfShape", {ints({3, 50})}, {{"value", random_constant(t, {1}, 5)}});
    s.add("EyeLike", {values(DType::kF32, {n, 5})}, {{"dtype", int64_t{onnx_of(t)}}, {"k", int64_t{-2}}});
    s.add("EyeLike", {values(DType::kF32, {4, m})}, {{"dtype", int64_t{onnx_of(t)}}, {"k", int64_t{1}}});
  }
  s.add("EyeLike", {values(DType::kF32, {4, m})}, {{"k", INT64_MIN}});
  s.add("ConstantOfShape", {ints({4})});
  for (DType t : {DType::kF32, DType::kF64, DType::kI32, DType::kI64}) {
    const auto number = [&](double v) {
      Tensor c(t, {});
      c.set_real(0, v);
      return constant(c);
    };
    s.add("Range", {number(3), number(99), number(2)});
    s.add("Range", {number(10), number(-95), number(-1)});
    s.add("Range", {number(5), number(1), number(1)});
  }
  s.add("Shape", {floats({n, 3, m})});
  s.add("Shape", {floats({n, 3, m})}, {{"start", int64_t{1}}});
  s.add("Size", {floats({n, 3, m})});
  s.into(batch, "fill", {{{"N", 1}, {"M", 4}}, {{"N", 6}, {"M", 1}}});
  check(batch);
}

// Shape arithmetic that stays until run time is assignments, whatever the operators.
TEST(Fill, ElementsOfChains) {
  auto g = std::make_unique<Graph>();
  const Dim n(g->symbols->fresh("N", {1, 9}, "test"));
  Value* x = g->add_value("x", {DType::kF32, {n, Dim(3), n + Dim(1)}});
  g->inputs = {x};
  const auto node = [&](const char* op, std::vector<Value*> in, const AttributeList& attributes = {}) {
    Value* y = g->add_value(op, {});
    Node* made = g->add_node(find_op("", op), op, std::move(in), {y});
    for (const auto& [key, value] : attributes) made->attributes.set(key, value);
    infer(*g, *made);
    return y;
  };
  Value* shape = node("Shape", {x});
  Value* product = node("Mul", {shape, g->add_constant("two", Tensor::of(Ints{2, 3, -1}))});
  Value* picked =
      node("Gather", {product, g->add_constant("at", Tensor::of(Ints{2, 0}))}, {{"axis", int64_t{0}}});
  Value* both = node("Concat", {picked, shape}, {{"axis", int64_t{0}}});
  Value* narrow = node("Cast", {both}, {{"to", int64_t{6}}});
  g->outputs = {both, narrow};
  WeightStore store;
  const Plan plan = make_plan(*g, target("avx512"), {}, store);
  for (const Layer& l : plan.layers) EXPECT_EQ(l.kernel, "elements");
  GeneratedBatch batch;
  batch.add("chain", std::move(g),
            {{{Tensor(DType::kF32, {4, 3, 5})}, {}, 0}, {{Tensor(DType::kF32, {1, 3, 2})}, {}, 0}});
  check(batch);
}

}  // namespace
}  // namespace sinter
