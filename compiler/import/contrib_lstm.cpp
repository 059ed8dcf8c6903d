// DynamicQuantizeLSTM of domain com.microsoft: an LSTM whose weights are bytes, and whose inputs and states
// are rounded to bytes before they meet them.
//
// The inputs of all steps share one scale and zero point, as DynamicQuantizeLinear finds them; the states of
// all sequences do in each step. So it becomes an LSTM of such inputs, of weights [directions, inputs, gates]
// turned and dequantised, with the attribute `quantized_state` (ops/recurrent.h). Products are exact in
// float32 but for what the sums round.
#include "import/upgrade.h"

namespace sinter {
namespace {

Attributes to_type(DType t) {
  Attributes a;
  a.set("to", static_cast<int64_t>(onnx_of(t)));
  return a;
}

const TensorType& type_of(Rewrite& r, size_t input, const char* what) {
  Value* v = r.node.input(input);
  if (!v) r.fail(fmt::format("{} is missing", what));
  const TensorType* t = r.type(v);
  if (!t) r.fail(fmt::format("the type of {} is not known", what));
  return *t;
}

// The bytes at `weights` [directions, rows, gates], with scale and zero point at `steps` and behind it, one
// for each direction or for each of its gates, as floats [directions, gates, rows].
Value* real_weights(Rewrite& r, size_t weights, size_t steps, const char* what) {
  const TensorType& w = type_of(r, weights, what);
  if (w.shape.size() != 3 || (w.dtype != DType::kI8 && w.dtype != DType::kU8))
    r.fail(fmt::format("{} is not of bytes with three axes", what));
  // Against the weights: [directions, 1, 1 or gates].
  const auto spread = [&](size_t i) {
    const size_t rank = type_of(r, i, "a scale or zero point").shape.size();
    if (rank != 1 && rank != 2) r.fail(fmt::format("a scale or zero point of {} has {} axes", what, rank));
    return r.before("Unsqueeze",
                    {r.node.input(i), rank == 1 ? r.constant({1, 2}, "axes") : r.constant({1}, "axes")});
  };
  Value* real = r.before("Cast", {r.node.input(weights)}, to_type(DType::kF32));
  if (r.node.input(steps + 1))
    real = r.before("Sub", {real, r.before("Cast", {spread(steps + 1)}, to_type(DType::kF32))});
  Attributes turn;
  turn.set("perm", std::vector<int64_t>{0, 2, 1});
  return r.before("Transpose", {r.before("Mul", {real, spread(steps)})}, turn);
}

// x rounded to the 256 steps of DynamicQuantizeLinear.
Value* in_steps(Rewrite& r, Value* x) {
  const auto number = [&](float v, const char* name) { return r.constant(Tensor::scalar(v), name); };
  Attributes whole;
  whole.set("keepdims", int64_t{0});
  Value* none = number(0, "zero");
  Value* low = r.before("Min", {r.before("ReduceMin", {x}, whole), none});
  Value* high = r.before("Max", {r.before("ReduceMax", {x}, whole), none});
  Value *range = r.before("Sub", {high, low}), *most = number(255, "most");
  Value* scale =
      r.before("Where", {r.before("Equal", {range, none}), number(1, "one"), r.before("Div", {range, most})});
  Value* zero = r.before("Clip", {r.before("Neg", {r.before("Div", {low, scale})}), none, most});
  zero = r.before("Cast", {r.before("Round", {zero})}, to_type(DType::kU8));
  Value* bytes = r.before("QuantizeLinear", {x, scale, zero});
  return r.before("DequantizeLinear", {bytes, scale, zero});
}

}  // namespace

bool lower_contrib_lstm(Rewrite& r) {
  if (r.node.op != "DynamicQuantizeLSTM") return false;
  if (r.node.inputs.size() != 12) r.fail(fmt::format("it has {} inputs, not 12", r.node.inputs.size()));
  const TensorType& x = type_of(r, 0, "X");
  if (x.dtype != DType::kF32) r.fail("X is not of float32");
  const bool one = x.shape.size() == 3 && x.shape[1].is(1);
  if (r.node.input(4) && !one) r.fail("sequence_lens of more than one sequence are not supported");
  std::vector<Value*> in{in_steps(r, r.node.input(0)), real_weights(r, 1, 8, "W"),
                         real_weights(r, 2, 10, "R")};
  for (size_t i = 3; i < 8; ++i) in.push_back(r.node.input(i));
  r.node.op = "LSTM";
  r.node.domain.clear();
  r.node.inputs = std::move(in);
  r.node.attributes.set("quantized_state", int64_t{1});
  return true;
}

}  // namespace sinter
