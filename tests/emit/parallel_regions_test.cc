// Parallel regions: which layers threads run through without waiting, and that they compute the same so.
#include <gtest/gtest.h>

#include "emit/bundle.h"
#include "emit/sheet.h"
#include "passes/passes.h"
#include "plan/plan.h"

namespace sinter {
namespace {

constexpr int64_t kRows = 132, kWidth = 256;

// A graph, a node behind the other.
struct Net {
  std::unique_ptr<Graph> g = std::make_unique<Graph>();
  unsigned seed = 1;
  Decisions decisions;

  Value* input(int64_t rows = kRows, int64_t columns = kWidth) {
    g->inputs.push_back(g->add_value("x", {DType::kF32, {Dim(rows), Dim(columns)}}));
    return g->inputs.back();
  }
  Value* weights(std::vector<int64_t> shape) {
    return g->add_constant("w", random_constant(DType::kF32, std::move(shape), seed++));
  }
  Value* node(const char* op, std::vector<Value*> in, const AttributeList& attributes = {}) {
    Node* n =
        g->add_node(find_op("", op), op + std::to_string(seed++), std::move(in), {g->add_value("y", {})});
    for (const auto& [key, value] : attributes) n->attributes.set(key, value);
    n->freedom.tile_matrices = decisions.change(*n).tile_matrices.tuned = true;
    infer(*g, *n);
    return n->outputs[0];
  }
  Value* norm(Value* x) { return node("LayerNormalization", {x, weights({kWidth}), weights({kWidth})}); }
  Value* product(Value* x, int64_t columns = kWidth) {
    const int64_t k = x->type.shape.back().value();
    return node("MatMul", {x, weights({k, columns})});
  }
  // The last node's result plus `v`, in its epilogue.
  Value* plus(Value* v) {
    Node* n = g->nodes.back().get();
    const size_t own = n->inputs.size();
    g->set_input(n, own, v);
    n->anchor_inputs = own;
    n->epilogue =
        Expr::call("add", {Expr::accumulator(DType::kF32), Expr::input(static_cast<int>(own), DType::kF32)});
    infer(*g, *n);
    return n->outputs[0];
  }
};

using Build = Value* (*)(Net&);

Value* block(Net& n) {
  Value* x = n.input();
  Value* normed = n.norm(x);
  Value* wide = n.product(normed, 2 * kWidth);
  n.product(wide);
  Value* sum = n.plus(x);
  return n.norm(sum);
}
Value* three_of_one(Net& n) {
  Value* x = n.norm(n.input());
  Value* a = n.product(x);
  Value* b = n.product(x);
  n.product(x);
  return n.node("Concat", {n.plus(a), b}, {{"axis", int64_t{0}}});
}
// A norm in which subnormal floats are numbers, between products in which they are zeros.
Value* norm_of_numbers(Net& n) {
  Value* a = n.product(n.input());
  Value* b = n.node("LayerNormalization", {a, n.weights({kWidth}), n.weights({kWidth})}, {{"epsilon", 0.0f}});
  return n.product(b);
}
// A matrix product of columns: each thread would read rows of the other.
Value* turned(Net& n) {
  Value* a = n.product(n.input(), kRows);
  return n.node("Gemm", {a, n.weights({kRows, kWidth})}, {{"transA", int64_t{1}}});
}
// The second one's bias is what the first one has of a single row.
Value* all_rows_of_one(Net& n) {
  Value* few = n.product(n.input(1, 4 * kWidth));
  n.product(n.input());
  return n.plus(few);
}
Value* other_rows(Net& n) {
  Value* a = n.product(n.input());
  return n.node("Concat", {a, n.product(n.input(kRows + 24))}, {{"axis", int64_t{0}}});
}
Value* softmax_between(Net& n) {
  Value* a = n.product(n.norm(n.input()));
  return n.product(n.node("Softmax", {a}, {{"axis", int64_t{0}}}));
}

struct Case {
  const char* name;
  Build build;
  const char* regions;  // layers of each, with two threads
};
const Case kCases[] = {
    {"block", block, "4"},
    {"three_of_one", three_of_one, "4"},
    {"norm_of_numbers", norm_of_numbers, "3"},
    {"turned", turned, "1 1"},
    {"all_rows_of_one", all_rows_of_one, "1 1"},
    {"other_rows", other_rows, "1 1"},
    {"softmax_between", softmax_between, "2 1 1"},
};

Plan planned(const Case& c, const Target& t, int threads, WeightStore& store, std::unique_ptr<Graph>& graph,
             bool regions = true) {
  Net n;
  n.g->outputs.push_back(c.build(n));
  graph = std::move(n.g);
  separate_outputs(*graph, n.decisions);
  return make_plan(*graph, t, n.decisions, store, threads, regions);
}

TEST(ParallelRegions, OfLayersThatTakeTheSameRows) {
  for (const char* name : {"avx512", "sapphirerapids-amx"})
    for (const Case& c : kCases) {
      WeightStore store;
      std::unique_ptr<Graph> graph;
      std::string regions;
      const Plan plan = planned(c, target(name), 2, store, graph);
      for (size_t i = 0; i < plan.layers.size(); i += plan.layers[i].region)
        regions += (i == 0 ? "" : " ") + std::to_string(plan.layers[i].region);
      EXPECT_EQ(regions, c.regions) << name << ", " << c.name;
      const Plan alone = planned(c, target(name), 1, store, graph);
      for (const Layer& l : alone.layers) EXPECT_EQ(l.region, 1u);
    }
}

// Where memory is short they are not made (--max-ram).
TEST(ParallelRegions, TakeMemory) {
  WeightStore store;
  std::unique_ptr<Graph> graph;
  const Target& t = target("avx512");
  const int64_t with = planned(kCases[0], t, 2, store, graph).arena_bytes;
  const Plan plan = planned(kCases[0], t, 2, store, graph, false);
  for (const Layer& l : plan.layers) EXPECT_EQ(l.region, 1u);
  EXPECT_LT(plan.arena_bytes, with);
}

// What is called back after each layer sees it finished.
TEST(ParallelRegions, NotWhereLayersAreTraced) {
  for (const bool trace : {false, true}) {
    WeightStore store;
    std::unique_ptr<Graph> graph;
    const Target& t = target("avx512");
    const Plan plan = planned(kCases[0], t, 2, store, graph);
    BundleOptions o;
    o.name = "net";
    o.model_file = o.command = "test.onnx";
    o.model_hash = std::string(64, '0');
    o.threads = 2;
    o.trace = trace;
    const std::string code = make_bundle(*graph, plan, t, store, o).at("net.cpp");
    EXPECT_EQ(code.find("run_shares") == std::string::npos, trace);
  }
}

void run(const char* name, BuildOptions options) {
  GeneratedBatch batch;
  for (const Case& c : kCases) {
    Net n;
    n.g->outputs.push_back(c.build(n));
    DataSet d;
    std::mt19937 random(3);
    for (const Value* v : n.g->inputs) {
      Tensor t(DType::kF32, {v->type.shape[0].value(), v->type.shape[1].value()});
      random_fill(t, random);
      d.inputs.push_back(std::move(t));
    }
    allow_flush(*n.g, {});
    batch.add(c.name, std::move(n.g), {std::move(d)}, {1e-3, 1e-4}, std::move(n.decisions));
  }
  expect_good(batch.run(target(name), options), name);
}

TEST(ParallelRegions, Two) { run("host", {.flags = "-O2", .threads = 2}); }
TEST(ParallelRegions, Clang) { run("host", {.clang = true, .threads = 2}); }
TEST(ParallelRegions, Three) { run("avx2", {.threads = 3}); }
TEST(ParallelRegions, CortexA72) { run("cortex-a72", {.flags = "-O2", .threads = 4}); }
TEST(ParallelRegions, TileMatrices) { run("sapphirerapids-amx", {.flags = "-O2", .threads = 3}); }
TEST(ParallelRegions, Sanitizers) { run("host", {.sanitize = true, .threads = 2}); }

}  // namespace
}  // namespace sinter
