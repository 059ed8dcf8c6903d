// Random operators: calls of runtime/sinter/random.h with the node's seed.
#include "ops/elementwise/random.h"

#include "kernels/movement/copies.h"
#include "kernels/nest.h"

namespace sinter {
namespace {

std::string op_of(const Node& n) { return n.op->domain[0] == '\0' && !n.epilogue ? n.op->name : ""; }
std::string start(LayerWriter& w) {
  w.include("sinter/random.h");
  w.summary(fmt::format("{} {}", w.node.op->name, text(w.node.outputs[0]->type)));
  const std::string own = fmt::format("0x{:016x}u", seed_of(w.node));
  const size_t stream = stream_input(w.node);
  return w.node.input(stream) ? fmt::format("sinter::random_seed({}, {})", w.input(stream), own) : own;
}

bool accepts_filled(const Node& n, const Context&) {
  const std::string op = op_of(n);
  return op == "RandomUniform" || op == "RandomNormal" || op == "RandomUniformLike" ||
         op == "RandomNormalLike";
}
void emit_filled(LayerWriter& w) {
  const Node& n = w.node;
  const std::string seed = start(w), size = w.dim(product(n.outputs[0]->type.shape));
  const bool normal = std::string_view(n.op->name).starts_with("RandomNormal");
  const auto number = [&](const char* name, float fallback) {
    return fmt::format("double{{{}}}", static_cast<double>(n.attributes.real(name, fallback)));
  };
  w.out.line("sinter::random_{}({}, {}, {}, {}, {});", normal ? "normal" : "uniform", seed,
             normal ? number("mean", 0) : number("low", 0), normal ? number("scale", 1) : number("high", 1),
             size, w.output(0));
}

void emit_bernoulli(LayerWriter& w) {
  const std::string seed = start(w), p = w.input(0);
  w.out.line("sinter::bernoulli({}, {}, {}, {});", seed, p, w.dim(product(w.node.outputs[0]->type.shape)),
             w.output(0));
}
void emit_multinomial(LayerWriter& w) {
  const Shape &x = w.node.inputs[0]->type.shape, &y = w.node.outputs[0]->type.shape;
  const std::string seed = start(w), p = w.input(0);
  w.out.line("sinter::multinomial({}, {}, {}, {}, {}, {});", seed, p, w.dim(x[0]), w.dim(x[1]), w.dim(y[1]),
             w.output(0));
}

void emit_stream(LayerWriter& w) {
  w.include("sinter/random.h");
  w.summary("the stream of a Loop's iterations");
  const std::string from = w.input(0);
  w.out.line("sinter::random_stream({}, 0x{:016x}u, {});", from, seed_of(w.node), w.output(0));
}

}  // namespace

const std::vector<Kernel>& kernels_random() {
  static const std::vector<Kernel> table = {
      {"random",
       "RandomUniform, RandomNormal and ...Like",
       accepts_filled,
       emit_filled,
       {.work = Work::kLoops}},
      {"bernoulli",
       "Bernoulli",
       [](const Node& n, const Context&) { return op_of(n) == "Bernoulli"; },
       emit_bernoulli,
       {.work = Work::kLoops}},
      {"multinomial",
       "Multinomial",
       [](const Node& n, const Context&) { return op_of(n) == "Multinomial"; },
       emit_multinomial,
       {.work = Work::kLoops}},
      {"random_stream",
       "what a Loop's iterations draw from",
       [](const Node& n, const Context&) { return n.op->name == std::string_view("random_stream"); },
       emit_stream,
       {.work = Work::kLoops}},
  };
  return table;
}

}  // namespace sinter
