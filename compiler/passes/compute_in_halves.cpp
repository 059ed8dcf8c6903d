// compute_in_halves: with --fp16, layers compute and store halves (float16) where their kernels can and a
// half's range and eleven digits are enough; the tensors between them are float16.
//
// A region begins with a product (Conv, MatMul, Gemm with constant weights), and goes on through what reads
// it: activations, pools, moves. Products, activations and pools compute halves, sums of many values stay
// floats over halves that are stored (Halves::kStored). Whatever else reads a half gets floats by a Cast, as
// do the graph's outputs, so that the model's inputs and outputs keep their types. Constant operands of
// expressions become halves here, those of products and norms where they are packed. Numbers that a half
// can't hold, and functions that leave its range, keep a layer in floats.
//
// With samples of the inputs each layer's error is measured first (half_errors.h): one above the limit, or
// whose numbers leave a half's range, stays in floats.
//
// Node::freedom says what each node became; docs/decisions/0020-half-arithmetic.md has the errors of sums.
#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ops/attention.h"
#include "ops/window.h"
#include "passes/half_errors.h"
#include "passes/passes.h"
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

ExprPtr of_halves(const ExprPtr& e) {
  Expr h = *e;
  if (h.dtype == DType::kF32) h.dtype = DType::kF16;
  for (ExprPtr& a : h.args) a = of_halves(a);
  return std::make_shared<const Expr>(std::move(h));
}

bool is_constant_of_floats(const Value* v) { return v && v->data && v->type.dtype == DType::kF32; }

bool all_fit(const Tensor& t) {
  for (int64_t i = 0; i < t.size(); ++i)
    if (const float x = t.as<float>()[i]; !(std::abs(x) <= static_cast<float>(kLargest))) return false;
  return true;
}

class Rewriter {
 public:
  explicit Rewriter(Graph& g, const PassOptions& options) : g_(g), options_(options) {}

  bool run() {
    if (!g_.parent && !options_.samples.empty())
      errors_ = half_errors(g_, options_.samples, [&](const Node& n) {
        return of_anchor(n) != Halves::kNone && (!n.epilogue || may_be_halves(*n.epilogue));
      });
    for (Node* n : snapshot(g_)) {
      if (const auto e = errors_.find(n); e != errors_.end()) n->freedom.half_error = e->second;
      const Halves h = wants(*n);
      if (moves(*n) && reads_halves(*n))
        become(n, Halves::kNone);
      else if (h != Halves::kNone)
        become(n, h);
      else
        read_floats(n);
    }
    finish_outputs();
    g_.erase_unused();
    return !halves_.empty();
  }

 private:
  bool is_half(const Value* v) const { return halves_.count(v) != 0; }
  bool reads_halves(const Node& n) const {
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](const Value* v) { return is_half(v); });
  }
  static bool moves(const Node& n) {
    return n.op->domain[0] == 0 && is_among(kMoves, n.op->name) && !n.epilogue && n.bodies.empty();
  }

  // What of the node can be in halves: the anchor, and its epilogue.
  Halves wants(const Node& n) const {
    if (!n.bodies.empty() || options_.keep_f32.count(n.name) != 0) return Halves::kNone;
    if (n.freedom.half_error > options_.half_error) return Halves::kNone;
    for (const Value* v : n.outputs)
      if (v && v->type.dtype != DType::kF32) return Halves::kNone;
    if (n.epilogue && !may_be_halves(*n.epilogue)) return Halves::kNone;
    for (size_t i = n.epilogue ? n.anchor_inputs : 0; i < n.inputs.size(); ++i) {
      const Value* v = n.inputs[i];
      if (n.epilogue && v && !is_half(v) && v->type.dtype != DType::kF32) return Halves::kNone;
      if (is_constant_of_floats(v) && !all_fit(*v->data)) return Halves::kNone;
    }
    const bool takes_tensors = is_elementwise(n) || is_attention(n) || is_embedding(n);
    for (size_t i = 1; !takes_tensors && i < n.anchor_inputs && i < n.inputs.size(); ++i)
      if (n.inputs[i] && !n.inputs[i]->data && is_float(n.inputs[i]->type.dtype)) return Halves::kNone;
    const bool begins = is_product(n) || is_embedding(n);
    return begins || reads_halves(n) ? of_anchor(n) : Halves::kNone;
  }

  static bool is_embedding(const Node& n) { return n.op == find_op("sinter", "embedding") && !n.epilogue; }
  // A table of an embedding: stored as halves.
  static bool is_table(const Node& n, size_t i) {
    return is_embedding(n) && i % 2 == 0 && static_cast<int64_t>(i) < 2 * n.attributes.integer("tables", 0);
  }
  static bool is_attention(const Node& n) { return n.op == find_op("", "Attention"); }
  static bool is_elementwise(const Node& n) {
    return n.op == find_op("sinter", "elementwise") || (n.op->expr && !n.epilogue);
  }
  // What an elementwise node of ONNX's own computes.
  static ExprPtr expr_of(const Node& n) {
    if (n.epilogue) return n.epilogue;
    std::vector<ExprPtr> args;
    for (size_t i = 0; i < n.inputs.size(); ++i)
      args.push_back(n.inputs[i] ? Expr::input(static_cast<int>(i), DType::kF32) : nullptr);
    return n.op->expr(n, args);
  }

  static bool is_product(const Node& n) {
    const std::string_view op = n.op->name;
    return n.op->domain[0] == 0 && (op == "Conv" || op == "ConvTranspose" || op == "MatMul" || op == "Gemm");
  }

  static Halves of_anchor(const Node& n) {
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
    if (is_product(n)) return may_multiply_halves(n) ? Halves::kComputed : Halves::kNone;
    const bool last = n.attributes.integer("channels_last", 0) == 1;
    if (op == "MaxPool" || op == "AveragePool")
      return last && !n.has_output(1) && taps_of(n) <= kMostTaps ? Halves::kComputed : Halves::kNone;
    if (op == "GlobalAveragePool" && last) return Halves::kStored;
    if (is_among(kStored, op) && n.outputs.size() == 1) return Halves::kStored;
    return Halves::kNone;
  }

  static constexpr int64_t kMostTaps = 64;  // whose mean is a sum of halves
  static int64_t taps_of(const Node& n) {
    int64_t taps = 1;
    for (const int64_t k : n.attributes.integers("kernel_shape")) taps *= k;
    return taps;
  }

  static bool may_multiply_halves(const Node& n) {
    const std::string_view op = n.op->name;
    if (n.inputs[0]->type.dtype != DType::kF32 && n.inputs[0]->type.dtype != DType::kF16) return false;
    for (size_t i = 1; i < n.anchor_inputs; ++i)
      if (n.inputs[i] && (!is_constant_of_floats(n.inputs[i]) || !all_fit(*n.inputs[i]->data))) return false;
    if (op == "Conv" || op == "ConvTranspose")
      return n.attributes.integer("channels_last", 0) == 1 &&
             (op == "Conv" || window_of(n).has_static_pads());
    // The other forms of a product have kernels of floats only.
    if (n.inputs[1]->type.shape.size() != 2 || n.inputs[0]->type.shape.size() < 2) return false;
    if (n.attributes.integer("transA", 0) != 0) return false;
    const Value* c = n.anchor_inputs > 2 ? n.inputs[2] : nullptr;
    return !c || c->data->rank() <= 1 || c->data->dim(0) == 1;
  }

  // The first convolution of a picture that comes as planes reads them as floats (plan/in_place.cpp).
  bool reads_planes(const Node& n) const {
    const Value* x = n.inputs[0];
    return may_read_planes(n) && x->users.size() == 1 && !g_.is_output(x) && !is_half(x) &&
           x->type.dtype == DType::kF32;
  }

  void become(Node* n, Halves h) {
    const size_t operands = n->epilogue ? n->anchor_inputs : n->inputs.size();
    for (size_t i = 0; i < n->inputs.size(); ++i) {
      Value* v = n->inputs[i];
      if (!v || is_half(v) || v->type.dtype != DType::kF32) continue;
      // Constants of products are rounded where they are packed.
      if (v->data && h != Halves::kNone && i < operands && !is_elementwise(*n) && !is_table(*n, i)) continue;
      if (i == 0 && h == Halves::kComputed && reads_planes(*n)) continue;
      if (is_attention(*n) && i > kV) continue;  // masks stay floats
      g_.set_input(n, i, half_of(v, n));
    }
    if (n->epilogue) n->epilogue = of_halves(n->epilogue);
    n->freedom.halves = h;
    for (size_t j = 0; j < n->outputs.size(); ++j)
      if (Value* y = n->outputs[j]; y && y->type.dtype == DType::kF32) {
        y->type.dtype = DType::kF16;
        halves_.insert(y);
      }
  }

  void read_floats(Node* n) {
    for (size_t i = 0; i < n->inputs.size(); ++i)
      if (Value* v = n->inputs[i]; is_half(v)) g_.set_input(n, i, float_of(v));
  }

  Value* cast(Value* v, DType to, Node* before) {
    Value* c = g_.add_value(v->name, {to, v->type.shape});
    Node* node = g_.add_node(find_op("", "Cast"), c->name, {v}, {c}, before);
    node->attributes.set("to", static_cast<int64_t>(onnx_of(to)));
    if (v->producer) node->sources = v->producer->sources;
    c->origin = v->origin;
    c->perm = v->perm;
    return c;
  }
  // A Transpose of a picture's channels can round or widen on the way (kernels/copy.cpp), where nobody else
  // wants what it makes.
  bool can_convert(const Node* t) const {
    if (!t || !is_op(t, "Transpose") || t->outputs[0]->users.size() > 1) return false;
    const std::vector<int64_t> perm = transpose_perm(*t);
    const bool last = perm == std::vector<int64_t>{0, 2, 3, 1};
    if (!last && perm != std::vector<int64_t>{0, 3, 1, 2}) return false;
    const Shape& s = (last ? t->outputs[0] : t->inputs[0])->type.shape;
    return is_static(s) && s[0].is(1) && s[3].value() > 4;
  }
  Value* half_of(Value* v, Node* user) {
    if (can_convert(v->producer) && !g_.is_output(v) && v->producer->inputs[0]->type.dtype == DType::kF32) {
      v->producer->freedom.halves = Halves::kStored;
      v->type.dtype = DType::kF16;
      halves_.insert(v);
      return v;
    }
    Value*& h = half_forms_[v];
    if (h) return h;
    h = v->data ? g_.add_constant(v->name, v->data->converted(DType::kF16)) : cast(v, DType::kF16, user);
    halves_.insert(h);
    return h;
  }
  Value* float_of(Value* v) {
    Value*& f = float_forms_[v];
    if (!f) f = cast(v, DType::kF32, node_after(g_, v->producer));
    return f;
  }

  // A graph output that became a half is made of it by a Cast.
  void finish_outputs() {
    for (Value*& out : g_.outputs) {
      Value* y = out;
      if (!is_half(y)) continue;
      Node* maker = y->producer;
      if (can_convert(maker) && y->users.empty() && is_half(maker->inputs[0])) {
        maker->freedom.halves = Halves::kStored;
        y->type.dtype = DType::kF32;
        halves_.erase(y);
        continue;
      }
      Value* h = g_.add_value(y->name, y->type);
      h->origin = y->origin;
      h->perm = y->perm;
      for (Value*& made : maker->outputs)
        if (made == y) made = h;
      h->producer = maker;
      for (Node* user : std::vector<Node*>(y->users))
        for (size_t i = 0; i < user->inputs.size(); ++i)
          if (user->inputs[i] == y) g_.set_input(user, i, h);
      y->type.dtype = DType::kF32;
      y->producer = nullptr;
      halves_.erase(y);
      halves_.insert(h);
      Node* node = g_.add_node(find_op("", "Cast"), y->name, {h}, {y}, node_after(g_, maker));
      node->attributes.set("to", static_cast<int64_t>(onnx_of(DType::kF32)));
      node->sources = maker->sources;
    }
  }

  Graph& g_;
  const PassOptions& options_;
  std::unordered_set<const Value*> halves_;
  std::unordered_map<const Value*, Value*> half_forms_, float_forms_;
  std::unordered_map<const Node*, double> errors_;
};

}  // namespace

bool compute_in_halves(Graph& g, const PassOptions& options) {
  return options.halves && !options.exact && Rewriter(g, options).run();
}

}  // namespace sinter
