// widen_floats: what a model computes in 16-bit floats is computed in float32, and rounded where a 16-bit
// tensor leaves the graph.
//
// Few of the targets multiply 16-bit floats, and a chain of layers that each round to 11 bits drifts: of
// SqueezeNet's softmax the first element is 2.5e-3 off. So every node with a 16-bit operand takes it as
// float32; weights are converted now, graph inputs by a Cast in front of their first use. Values keep their
// 16-bit form for whoever needs it (graph outputs, Casts' own meaning, custom operators, bodies): a Cast
// behind the node makes it. Nodes that only move 16-bit elements of the caller's stay as they are. A Cast of
// float32 that the model itself has rounds for whoever wants the 16-bit value, another Cast among them;
// arithmetic goes on with what it was made from.
#include <set>
#include <string_view>
#include <unordered_map>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

bool is_half(const Value* v) { return v && (v->type.dtype == DType::kF16 || v->type.dtype == DType::kBF16); }

// Their meaning is the type, or the type of one operand decides another's.
bool is_about_types(const Node& n) {
  static const std::set<std::string_view> kOps = {
      "BitCast", "Cast", "CastLike", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear"};
  return kOps.count(n.op->name) != 0;
}

bool only_moves(const Node& n) {
  static const std::set<std::string_view> kOps = {
      "CenterCropPad",   "Compress",        "Concat",    "DepthToSpace",
      "Expand",          "Flatten",         "Gather",    "GatherElements",
      "GatherND",        "Identity",        "Pad",       "Reshape",
      "ReverseSequence", "ScatterElements", "ScatterND", "Slice",
      "SpaceToDepth",    "Split",           "Squeeze",   "Tile",
      "Transpose",       "Trilu",           "Unsqueeze", "Where"};
  return kOps.count(n.op->name) != 0;
}

class Widening {
 public:
  explicit Widening(Graph& g) : g_(g) {}

  bool run() {
    bool changed = false;
    for (Node* n : snapshot(g_)) changed |= is_op(n, "Cast") ? read_wide(n) : wants(*n) && widen(n);
    g_.erase_unused();
    return changed;
  }

 private:
  bool wants(const Node& n) const {
    if (n.op->domain[0] != '\0' || n.epilogue || !n.bodies.empty() || is_about_types(n)) return false;
    bool half = false, computed = false;
    for (const Value* v : n.inputs) {
      half |= is_half(v);
      computed |= v && (wide_.count(v) != 0 || unrounded_.count(v) != 0);
    }
    return half && (computed || !only_moves(n));
  }

  // A Cast of something computed in float32 reads that.
  bool read_wide(Node* n) {
    const auto it = wide_.find(n->inputs[0]);
    if (it != wide_.end()) g_.set_input(n, 0, it->second);
    if (is_half(n->outputs[0]) && n->inputs[0]->type.dtype == DType::kF32)
      unrounded_[n->outputs[0]] = n->inputs[0];
    return it != wide_.end();
  }

  Value* wide(Value* v, Node* user) {
    if (const auto it = unrounded_.find(v); it != unrounded_.end()) return it->second;
    Value*& w = wide_[v];
    if (w) return w;
    if (v->data) return w = g_.add_constant(v->name, v->data->converted(DType::kF32));
    w = g_.add_value(v->name, {});
    Node* cast = g_.add_node(find_op("", "Cast"), w->name, {v}, {w}, user);
    cast->attributes.set("to", static_cast<int64_t>(onnx_of(DType::kF32)));
    cast->sources = user->sources;
    w->origin = v->origin;
    w->perm = v->perm;
    infer(g_, *cast);
    return w;
  }

  bool widen(Node* n) {
    for (size_t i = 0; i < n->inputs.size(); ++i)
      if (is_half(n->inputs[i])) g_.set_input(n, i, wide(n->inputs[i], n));
    std::vector<TensorType> before;
    for (const Value* y : n->outputs) before.push_back(y ? y->type : TensorType{});
    infer(g_, *n);
    for (size_t j = 0; j < n->outputs.size(); ++j) {
      Value* y = n->outputs[j];
      if (!y) continue;
      const DType now = y->type.dtype;
      y->type = before[j];  // the same extents, as the rest of the graph spells them
      if (now == before[j].dtype) continue;
      SINTER_CHECK(is_half(y) && now == DType::kF32, "widening made another type");
      narrow(n, j);
    }
    return true;
  }

  // Output j becomes float32; a Cast behind the node makes the 16-bit Value of it.
  void narrow(Node* n, size_t j) {
    Value* y = n->outputs[j];
    Value* w = g_.add_value(y->name, {DType::kF32, y->type.shape});
    w->origin = y->origin;
    w->perm = y->perm;
    w->producer = n;
    n->outputs[j] = w;
    y->producer = nullptr;
    Node* cast = g_.add_node(find_op("", "Cast"), y->name, {w}, {y}, node_after(g_, n));
    cast->attributes.set("to", static_cast<int64_t>(onnx_of(y->type.dtype)));
    cast->sources = n->sources;
    wide_[y] = w;
  }

  Graph& g_;
  std::unordered_map<const Value*, Value*> wide_;  // the float32 form of a 16-bit value
  std::unordered_map<const Value*, Value*>
      unrounded_;  // what a Cast of the model's made the 16-bit value from
};

}  // namespace

bool widen_floats(Graph& g, const PassOptions& options) { return !options.exact && Widening(g).run(); }

}  // namespace sinter
