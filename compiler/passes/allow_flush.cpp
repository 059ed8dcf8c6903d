// allow_flush: layers in which subnormal floats, those closer to zero than 2^-126, may count as zero get the
// freedom `subnormals` (runtime/sinter/subnormals.h): zeros those that multiply, which gain by it, either
// those for which it is all the same. It moves a product by less than 2^-126 times its other factor, but it
// is not what the model rounds to, so --exact forbids it.
//
// Nothing in such a layer may make more of that than it was, as 0/0, log(0) and a comparison with zero would:
// an expression has such functions only whose value moves by a small multiple of what their arguments move.
#include <algorithm>
#include <array>
#include <string_view>

#include "ops/op.h"
#include "passes/passes.h"

namespace sinter {
namespace {

constexpr Subnormals kNumbers = Subnormals::kNumbers, kEither = Subnormals::kEither,
                     kGains = Subnormals::kZeros;

constexpr std::array<std::string_view, 8> kProducts = {"Conv", "ConvTranspose", "MatMul", "Gemm",
                                                       "LSTM", "GRU",           "RNN",    "Attention"};
constexpr std::array<std::string_view, 19> kSteadyOps = {
    "MaxPool",    "AveragePool",  "GlobalMaxPool", "GlobalAveragePool",
    "ReduceMean", "ReduceSum",    "ReduceMax",     "Softmax",
    "Concat",     "Slice",        "Split",         "Transpose",
    "Reshape",    "Pad",          "Resize",        "Gather",
    "Expand",     "DepthToSpace", "SpaceToDepth"};
constexpr std::array<std::string_view, 4> kNorms = {"LayerNormalization", "RMSNormalization",
                                                    "InstanceNormalization", "GroupNormalization"};
constexpr std::array<std::string_view, 26> kSteadyFunctions = {
    "add", "sub",  "mul",          "neg",        "abs",  "min",        "max",     "clamp",    "exp",
    "sin", "cos",  "tanh",         "erf",        "relu", "leaky_relu", "sigmoid", "softplus", "softsign",
    "elu", "selu", "hard_sigmoid", "hard_swish", "silu", "mish",       "gelu",    "gelu_tanh"};

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Computed in 32 bits; doubles have their own smallest normal number, far below.
bool is_single(DType t) { return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16; }

bool is_steady(const Expr& e) {
  return is_single(e.dtype) && (e.kind != Expr::Kind::kCall || is_among(kSteadyFunctions, e.fn->name)) &&
         std::all_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return is_steady(*a); });
}

// Of the anchor alone.
Subnormals flush_of_op(const Node& n) {
  if (n.op == find_op("sinter", "elementwise") || n.op == find_op("sinter", "product_of_codes"))
    return kGains;
  if (n.op == find_op("sinter", "copy")) return kEither;
  if (n.op->domain[0] != 0) return kNumbers;
  if (is_among(kProducts, n.op->name)) return kGains;
  constexpr float kLeast = 1e-12f;  // beside such an epsilon no square of a subnormal float counts
  if (is_among(kNorms, n.op->name)) return n.attributes.real("epsilon", 1e-5f) >= kLeast ? kEither : kNumbers;
  return is_among(kSteadyOps, n.op->name) ? kEither : kNumbers;
}

Subnormals flush_of(const Node& n) {
  if (n.epilogue && !is_steady(*n.epilogue)) return kNumbers;
  for (const Value* v : n.outputs)
    if (v && !is_single(v->type.dtype)) return kNumbers;
  return flush_of_op(n);
}

}  // namespace

bool allow_flush(Graph& g, const PassOptions& options) {
  if (options.exact) return false;
  bool changed = false;
  for (const auto& n : g.nodes) {
    const Subnormals flush = flush_of(*n);
    if (flush == kNumbers || n->freedom.subnormals != kNumbers) continue;
    n->freedom.subnormals = flush;
    changed = true;
  }
  return changed;
}

}  // namespace sinter
