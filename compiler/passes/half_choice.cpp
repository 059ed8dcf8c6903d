// half_choice: what of a graph can be in halves.
//
// A region begins with a product (Conv, MatMul, Gemm, LSTM and its like with constant weights), and goes on
// through what reads it: activations, pools, moves. Products, activations and pools compute halves, sums of
// many values stay floats over halves that are stored (Halves::kStored). Numbers that a half can't hold, and
// functions that leave its range, keep a layer in floats.
#include "passes/half_choice.h"

#include <array>
#include <cmath>
#include <string_view>

#include "ops/sequences/attention.h"
#include "ops/sequences/recurrent.h"
#include "ops/windows/window.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

constexpr double kLargest = 65504, kSmallestNormal = 0x1p-14;

template <size_t N>
bool is_among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Functions that stay in range where their arguments do, and lose no more than they.
constexpr std::array<std::string_view, 24> kFunctions = {
    "add",  "sub",      "mul",      "neg",        "abs",  "min",  "max",        "clamp",
    "tanh", "erf",      "relu",     "sigmoid",    "elu",  "selu", "leaky_relu", "hard_sigmoid",
    "silu", "softsign", "softplus", "hard_swish", "mish", "gelu", "gelu_tanh",  "select"};
constexpr std::array<std::string_view, 4> kComparisons = {"lt", "le", "gt", "ge"};

// Nodes that move elements of any type, and do nothing else.
constexpr std::array<std::string_view, 13> kMoves = {
    "Concat",       "DepthToSpace", "Expand",  "Flatten",   "Identity",  "Reshape", "Slice",
    "SpaceToDepth", "Split",        "Squeeze", "Transpose", "Unsqueeze", "Tile"};

// Layers that sum many values, or take exponents: in floats, of halves.
constexpr std::array<std::string_view, 8> kStored = {"GroupNormalization", "InstanceNormalization",
                                                     "LayerNormalization", "LogSoftmax",
                                                     "ReduceMean",         "Resize",
                                                     "RMSNormalization",   "Softmax"};

bool fits(double constant) {
  const double size = std::abs(constant);
  return size == 0 || (size <= kLargest && size >= kSmallestNormal);
}

// Whether the expression may be computed in halves: `fits` of its constants but a clamp's bounds, which may
// be infinite.
bool may_be_halves(const Expr& e) {
  if (e.kind == Expr::Kind::kConstant) return e.dtype == DType::kF32 && fits(e.real);
  if (e.kind == Expr::Kind::kCast) return false;
  if (e.kind != Expr::Kind::kCall) return e.dtype == DType::kF32;
  const std::string_view f = e.fn->name;
  if (f == "clamp" && e.args[1]->kind == Expr::Kind::kConstant && e.args[2]->kind == Expr::Kind::kConstant)
    return may_be_halves(*e.args[0]);
  if (!is_among(kFunctions, f) && !is_among(kComparisons, f)) return false;
  if (f == "select" && (e.args[0]->kind != Expr::Kind::kCall || !is_among(kComparisons, e.args[0]->fn->name)))
    return false;
  if (f != "select" && is_among(kComparisons, f) == (e.dtype == DType::kF32)) return false;
  return std::all_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return may_be_halves(*a); });
}

bool is_constant_of_floats(const Value* v) { return v && v->data && v->type.dtype == DType::kF32; }

bool all_fit(const Tensor& t) {
  for (int64_t i = 0; i < t.size(); ++i)
    if (const float x = t.as<float>()[i]; !(std::abs(x) <= static_cast<float>(kLargest))) return false;
  return true;
}

bool moves(const Node& n) {
  return n.op->domain[0] == 0 && is_among(kMoves, n.op->name) && !n.epilogue && n.bodies.empty();
}

bool is_embedding(const Node& n) { return n.op == find_op("sinter", "embedding") && !n.epilogue; }
// A table of an embedding: stored as halves.
bool is_table(const Node& n, size_t i) {
  return is_embedding(n) && i % 2 == 0 && static_cast<int64_t>(i) < 2 * n.attributes.integer("tables", 0);
}
bool is_attention(const Node& n) { return n.op == find_op("", "Attention"); }
bool is_elementwise(const Node& n) {
  return n.op == find_op("sinter", "elementwise") || (n.op->expr && !n.epilogue);
}
// What an elementwise node of ONNX's own computes.
ExprPtr expr_of(const Node& n) {
  if (n.epilogue) return n.epilogue;
  std::vector<ExprPtr> args;
  for (size_t i = 0; i < n.inputs.size(); ++i)
    args.push_back(n.inputs[i] ? Expr::input(static_cast<int>(i), DType::kF32) : nullptr);
  return n.op->expr(n, args);
}

bool is_product(const Node& n) {
  const std::string_view op = n.op->name;
  return n.op->domain[0] == 0 && (op == "Conv" || op == "ConvTranspose" || op == "MatMul" || op == "Gemm");
}

constexpr int64_t kMostTaps = 64;  // whose mean is a sum of halves
int64_t taps_of(const Node& n) {
  int64_t taps = 1;
  for (const int64_t k : n.attributes.integers("kernel_shape")) taps *= k;
  return taps;
}

// A product of two tensors that are both computed.
bool multiplies_tensors(const Node& n) {
  const std::string_view op = n.op->name;
  return n.op->domain[0] == 0 && (op == "MatMul" || op == "Gemm") && !n.inputs[1]->data;
}

bool may_multiply_halves(const Node& n) {
  const std::string_view op = n.op->name;
  if (n.inputs[0]->type.dtype != DType::kF32 && n.inputs[0]->type.dtype != DType::kF16) return false;
  if (n.attributes.integer("transA", 0) != 0) return false;  // a kernel of floats only, as some forms below
  if (multiplies_tensors(n)) {
    const Shape &a = n.inputs[0]->type.shape, &b = n.inputs[1]->type.shape;
    return n.anchor_inputs == 2 && !n.inputs[0]->data && n.inputs[1]->type.dtype == DType::kF32 &&
           a.size() >= 2 && b.size() >= 2 && a.back().is_static();
  }
  for (size_t i = 1; i < n.anchor_inputs; ++i)
    if (n.inputs[i] && (!is_constant_of_floats(n.inputs[i]) || !all_fit(*n.inputs[i]->data))) return false;
  if (op == "Conv" || op == "ConvTranspose")
    return n.attributes.integer("channels_last", 0) == 1 && (op == "Conv" || window_of(n).has_static_pads());
  if (n.inputs[1]->type.shape.size() != 2 || n.inputs[0]->type.shape.size() < 2) return false;
  const Value* c = n.anchor_inputs > 2 ? n.inputs[2] : nullptr;
  return !c || c->data->rank() <= 1 || c->data->dim(0) == 1;
}

// Steps in front, no lengths, weights that are constant.
bool may_recur_in_halves(const Node& n) {
  if (n.epilogue || n.input(4) || n.attributes.integer("layout", 0) != 0) return false;
  for (const size_t i : {1u, 2u, 3u, 7u})
    if (n.input(i) && !n.input(i)->data) return false;
  return n.inputs[0]->type.dtype == DType::kF32 && !recurrence_of(n).quantizes_state;
}

Halves of_anchor(const Node& n) {
  if (is_embedding(n)) return Halves::kStored;
  if (is_attention(n)) return may_attend_in_halves(n) ? Halves::kComputed : Halves::kNone;
  if (is_elementwise(n)) {
    for (const Value* v : n.inputs)
      if (v && v->type.dtype != DType::kF32 && v->type.dtype != DType::kF16) return Halves::kNone;
    return may_be_halves(*expr_of(n)) ? Halves::kComputed : Halves::kNone;
  }
  if (n.op == find_op("sinter", "squeeze_excite")) return Halves::kStored;
  if (n.op->domain[0] != 0) return Halves::kNone;
  const std::string_view op = n.op->name;
  if (is_recurrent(n)) return may_recur_in_halves(n) ? Halves::kComputed : Halves::kNone;
  if (is_product(n)) return may_multiply_halves(n) ? Halves::kComputed : Halves::kNone;
  const bool last = n.attributes.integer("channels_last", 0) == 1;
  if (op == "MaxPool" || op == "AveragePool")
    return last && !n.has_output(1) && taps_of(n) <= kMostTaps ? Halves::kComputed : Halves::kNone;
  if (op == "GlobalAveragePool" && last) return Halves::kStored;
  if (is_among(kStored, op) && n.outputs.size() == 1) return Halves::kStored;
  return Halves::kNone;
}

class Chooser {
 public:
  Chooser(const Graph& g, const PassOptions& options, const std::function<bool(const Node&)>& stays)
      : g_(g), options_(options), stays_(stays) {}

  HalfChoice run() {
    for (const auto& n : g_.nodes) {
      const Halves h = wants(*n);
      if (moves(*n) && reads_halves(*n))
        choice_.moves.insert(n.get());
      else if (h != Halves::kNone)
        choice_.layers[n.get()] = h;
      else
        continue;
      for (const Value* y : n->outputs)
        if (y && y->type.dtype == DType::kF32) choice_.values.insert(y);
    }
    return std::move(choice_);
  }

 private:
  bool is_half(const Value* v) const { return choice_.is_half(v); }
  bool reads_halves(const Node& n) const {
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](const Value* v) { return is_half(v); });
  }

  // What of the node can be in halves: the anchor, and its epilogue.
  Halves wants(const Node& n) const {
    if (!n.bodies.empty() || options_.keep_f32.count(n.name) != 0) return Halves::kNone;
    if (stays_(n)) return Halves::kNone;
    for (const Value* v : n.outputs)
      if (v && v->type.dtype != DType::kF32) return Halves::kNone;
    if (n.epilogue && !may_be_halves(*n.epilogue)) return Halves::kNone;
    for (size_t i = n.epilogue ? n.anchor_inputs : 0; i < n.inputs.size(); ++i) {
      const Value* v = n.inputs[i];
      if (n.epilogue && v && !is_half(v) && v->type.dtype != DType::kF32) return Halves::kNone;
      if (is_constant_of_floats(v) && !stays_float(n, i) && !all_fit(*v->data)) return Halves::kNone;
    }
    const bool takes_tensors =
        is_elementwise(n) || is_attention(n) || is_embedding(n) || multiplies_tensors(n) || is_recurrent(n);
    for (size_t i = 1; !takes_tensors && i < n.anchor_inputs && i < n.inputs.size(); ++i)
      if (n.inputs[i] && !n.inputs[i]->data && is_float(n.inputs[i]->type.dtype)) return Halves::kNone;
    const bool begins = (is_product(n) && !multiplies_tensors(n)) || is_embedding(n) || is_recurrent(n);
    return begins || reads_halves(n) ? of_anchor(n) : Halves::kNone;
  }

  const Graph& g_;
  const PassOptions& options_;
  const std::function<bool(const Node&)>& stays_;
  HalfChoice choice_;
};

}  // namespace

HalfChoice choose_halves(const Graph& g, const PassOptions& options,
                         const std::function<bool(const Node&)>& stays) {
  return Chooser(g, options, stays).run();
}

bool has_half_form(const Node& n) {
  return of_anchor(n) != Halves::kNone && (!n.epilogue || may_be_halves(*n.epilogue));
}

bool stays_float(const Node& n, size_t i) { return is_attention(n) && i > kV; }

bool is_packed(const Node& n, size_t i) {
  const size_t operands = n.epilogue ? n.anchor_inputs : n.inputs.size();
  const bool is_state = is_recurrent(n) && (i == 5 || i == 6);
  return n.inputs[i]->data && i < operands && !is_elementwise(n) && !is_table(n, i) && !is_state;
}

}  // namespace sinter
