// Elementwise layers: one loop nest over the output, the expression inside.
#include "emit/loops.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool is_fused_elementwise(const Node& n) {
  return std::string_view(n.op->name) == "elementwise" && std::string_view(n.op->domain) == "sinter";
}

bool accepts(const Node& n, const Context&) {
  for (const Value* v : n.inputs)
    if (v && (size_of(v->type.dtype) == 0 || v->type.dtype == DType::kComplex64 ||
              v->type.dtype == DType::kComplex128))
      return false;
  if (is_fused_elementwise(n)) return true;
  return n.op->expr != nullptr && !n.epilogue;
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const TensorType& type = n.outputs[0]->type;
  ExprPtr e = n.epilogue;
  if (!is_fused_elementwise(n)) {
    std::vector<ExprPtr> args;
    for (size_t i = 0; i < n.inputs.size(); ++i)
      args.push_back(n.inputs[i] ? Expr::input(static_cast<int>(i), n.inputs[i]->type.dtype) : nullptr);
    e = n.op->expr(n, args);
  }
  Numbered numbered = number_operands(w, e, type.shape);
  e = numbered.value;
  for (size_t k : numbered.inputs) {
    const Value* v = n.inputs[k];
    if (!v->data && v->type.shape == type.shape && size_of(v->type.dtype) == size_of(type.dtype))
      w.may_overwrite(k);
  }
  const Strided out{w.output(0), type.dtype, Dim(0), dim_strides(type.shape), {}};
  w.summary(text(*e));
  w.flops(product(type.shape) * Dim(node_count(*e)));
  emit_loops(w, type.shape, e, out, numbered.operands);
}

}  // namespace

const std::vector<Kernel>& kernels_elementwise() {
  static const std::vector<Kernel> table = {{"elementwise",
                                             "a loop nest over the output with a scalar expression inside",
                                             accepts,
                                             emit,
                                             {.reads_apart = true}}};
  return table;
}

}  // namespace sinter
