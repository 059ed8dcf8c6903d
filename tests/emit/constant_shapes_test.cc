// Generated code of layers with constants of every shape that broadcasts: what kernels take by its count.
#include "constant_shapes.h"

#include "emit/generated.h"
#include "ops/op.h"
#include "passes/pass.h"

namespace sinter {
namespace {

// Each layer with every fourth of its constants and operators, and each form of an operand.
void run(const char* name, const BuildOptions& options = {}) {
  const Target& target = *find_target(name);
  GeneratedBatch batch;
  const auto add = [&](const ConstantAnchor& anchor, const std::vector<std::string>& ends, size_t step) {
    std::unique_ptr<Graph> graph = constant_model(anchor, ends, step);
    DataSet data;
    std::mt19937 random(3);
    for (const Value* v : graph->inputs) {
      Tensor t(v->type.dtype, [&] {
        std::vector<int64_t> shape;
        for (const Dim& d : v->type.shape) shape.push_back(d.value());
        return shape;
      }());
      for (int64_t i = 0; i < t.size(); ++i)
        t.set_real(i, is_float(t.dtype()) ? static_cast<double>(random() % 4001) / 1000 - 2 : random() % 4);
      data.inputs.push_back(t);
    }
    data.expected = evaluate(*graph, data.inputs);
    PassOptions passes;
    passes.byte_products = true;  // as with all options but --fast-weights
    run_passes(*graph, passes);
    batch.add(anchor.name, std::move(graph), {data});
  };
  const std::vector<std::string> ends{"{y} = Add({a}, {c})", "{y} = Mul({c}, {a})", "{y} = Sub({c}, {a})",
                                      "{y} = Div({a}, {c})"};
  for (const ConstantAnchor& a : constant_anchors()) add(a, ends, 4);
  for (const ConstantAnchor& a : constant_operands()) add(a, {"{y} = Identity({a})"}, 1);
  expect_good(batch.run(target, options), name);
}

TEST(ConstantShapes, Host) { run("host", {.together = 6}); }
TEST(ConstantShapes, CortexA76) { run("cortex-a76", {.together = 6}); }

}  // namespace
}  // namespace sinter
