// BatchNormalization that no pass could fold: an expression of one element, x * a + b, with a and b per
// channel computed now where the statistics are constants. Inference only: in training mode it also changes
// its statistics and is refused.
#include <cmath>

#include "emit/loops.h"
#include "kernels/nest.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "BatchNormalization" && n.op->domain[0] == 0 &&
         n.attributes.integer("training_mode", 0) == 0 && is_float(n.inputs[0]->type.dtype);
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const TensorType& x = n.inputs[0]->type;
  const Shape& shape = n.outputs[0]->type.shape;
  const DType wide = x.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const double epsilon = static_cast<double>(n.attributes.real("epsilon", 1e-5f));
  const size_t channel_axis = 1;
  std::vector<Strided> operands{broadcast(w, w.input(0), *n.inputs[0], shape)};
  auto per_channel = [&](const std::string& pointer, DType t) {
    std::vector<Dim> strides(shape.size(), Dim(0));
    if (shape.size() > channel_axis && !shape[channel_axis].is(1)) strides[channel_axis] = Dim(1);
    operands.push_back({pointer, t, Dim(0), strides, std::vector<Dim>(shape.size(), Dim(0))});
    const ExprPtr e = Expr::input(static_cast<int>(operands.size()) - 1, t);
    return t == wide ? e : Expr::cast(e, wide);
  };
  ExprPtr e = Expr::input(0, x.dtype);
  if (x.dtype != wide) e = Expr::cast(e, wide);
  bool constant = wide == DType::kF32;
  for (size_t i = 1; i < 5; ++i) constant = constant && n.inputs[i]->data;
  if (constant) {
    std::vector<float> a, b;
    for (int64_t c = 0; c < n.inputs[1]->data->size(); ++c) {
      const double factor = n.inputs[1]->data->real(c) / std::sqrt(n.inputs[4]->data->real(c) + epsilon);
      a.push_back(static_cast<float>(factor));
      b.push_back(static_cast<float>(n.inputs[2]->data->real(c) - n.inputs[3]->data->real(c) * factor));
    }
    const ExprPtr scale = per_channel(w.weights("scale", a, "scale / sqrt(variance + epsilon)"), wide);
    const ExprPtr shift = per_channel(w.weights("shift", b, "bias - mean * scale"), wide);
    e = Expr::call("add", {Expr::call("mul", {e, scale}), shift});
  } else {
    std::vector<ExprPtr> s;
    for (size_t i = 1; i < 5; ++i) s.push_back(per_channel(w.input(i), n.inputs[i]->type.dtype));
    const ExprPtr deviation = Expr::call("sqrt", {Expr::call("add", {s[3], Expr::constant(epsilon, wide)})});
    e = Expr::call("div", {Expr::call("sub", {e, s[2]}), deviation});
    e = Expr::call("add", {Expr::call("mul", {e, s[0]}), s[1]});
  }
  if (x.dtype != wide) e = Expr::cast(e, x.dtype);
  if (n.epilogue)
    e = rewrite_leaves(n.epilogue, [&](const Expr& leaf) -> ExprPtr {
      if (leaf.kind == Expr::Kind::kAccumulator) return e;
      if (leaf.kind != Expr::Kind::kOperand) return nullptr;
      const size_t k = static_cast<size_t>(leaf.operand);
      operands.push_back(broadcast(w, w.input(k), *n.inputs[k], shape));
      return Expr::input(static_cast<int>(operands.size()) - 1, leaf.dtype);
    });
  const Strided out{w.output(0), n.outputs[0]->type.dtype, Dim(0), dim_strides(shape), {}};
  w.summary(
      fmt::format("BatchNormalization of {}{}", text(x), n.epilogue ? ", then " + text(*n.epilogue) : ""));
  w.flops(product(shape) * Dim(2));
  emit_loops(w, shape, e, out, operands);
}

}  // namespace

const std::vector<Kernel>& kernels_batchnorm() {
  static const std::vector<Kernel> table = {
      {"batchnorm", "BatchNormalization with given statistics, as a loop nest", accepts, emit}};
  return table;
}

}  // namespace sinter
