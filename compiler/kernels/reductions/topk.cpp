// TopK: the selection of runtime/sinter/topk.h for every line along the axis; of more than a few floats by a
// tree, else by a heap.
#include "emit/layer.h"
#include "kernels/nest.h"
#include "ops/op.h"
#include "sinter/best_first.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "TopK" && n.op->domain[0] == 0 && !n.epilogue;
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& in = n.inputs[0]->type.shape;
  const Value& any = *(n.has_output(0) ? n.outputs[0] : n.outputs[1]);
  const Shape& out = any.type.shape;
  const DType t = n.inputs[0]->type.dtype;
  int64_t axis = n.attributes.integer("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(in.size());
  const auto a = static_cast<size_t>(axis);
  const bool largest = n.attributes.integer("largest", 1) != 0;
  w.include("sinter/topk.h");
  w.include("sinter/status.h");
  w.can_fail();
  w.summary(fmt::format("TopK: the {} {} of {} along axis {}", out[a].text(), largest ? "greatest" : "least",
                        text(in), axis));
  const std::string x = w.input(0), extent = w.dim(in[a]);
  const std::string inner = w.dim(product(in, a + 1)), outer = w.dim(product(in, 0, a));
  // A count that only the run knows comes from the operand; what inference knows is the extent.
  std::vector<SymbolPtr> symbols;
  out[a].collect_symbols(symbols);
  const bool counted = !n.inputs[1]->data && n.inputs[1]->elements.empty();
  if (counted) {
    w.out.line("const std::int64_t k = {}[0];", w.input(1));
    w.out.line("if (k < 0 || k > {}) return sinter::kDimError;", extent);
    if (!out[a].is_static()) w.out.line("*{} = k;", w.count(out[a]));
  } else {
    w.out.line("const std::int64_t k = {};", w.dim(out[a]));
    w.out.line("if (k < 0 || k > {}) return sinter::kDimError;", extent);
  }
  // An output that nobody wants still serves as the heap: the lines of one `o` are enough.
  const bool flat = product(in, a + 1).is(1);
  const int64_t heap = std::max<int64_t>((out[a] * product(in, a + 1)).hi(), 1);
  auto target = [&](size_t i, const char* name, const std::string& type) {
    const std::string pointer = n.has_output(i) ? w.output(i) : w.scratch(name, type, heap);
    const std::string line = !n.has_output(i) ? "" : flat ? " + o * k" : fmt::format(" + o * k * {}", inner);
    return pointer + line + (flat ? "" : " + i");
  };
  const std::string values = target(0, "values", std::string(cpp_name(t)));
  const std::string indices = target(1, "indices", "std::int64_t");
  constexpr int64_t kFew = 8;
  const bool tree = t == DType::kF32 && out[a].hi() > kFew;
  const std::string keys =
      tree ? w.scratch("keys", "std::int32_t", BestFirst::elements(in[a].hi())) : std::string();
  w.out.put(loop_text("o", outer));
  if (!flat) w.out.put(loop_text("i", inner));
  w.out.line("sinter::topk{}({} + o * {}{}, {}, {}, k, {}, {}, {}, {}{});", tree ? "_by_tree" : "", x,
             times(extent, inner), flat ? "" : " + i", extent, inner, largest, values, indices, inner,
             tree ? ", " + keys : "");
  w.out.line("}}");
  if (!flat) w.out.line("}}");
  w.out.line("return 0;");
}

}  // namespace

const std::vector<Kernel>& kernels_topk() {
  static const std::vector<Kernel> table = {
      {"topk", "TopK by a heap or a tree per line", accepts, emit, {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
