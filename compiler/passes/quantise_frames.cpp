// quantise_frames: a camera's frame whose picture is quantised at once becomes bytes as it is read, so that
// no floats lie between.
//
// frame_to_tensor, Transposes and Reshapes, QuantizeLinear, each read by the next one alone: the steps' size
// goes into the frame's factors, and rounding to even and the zero point are its own.
#include "passes/quantise_frames.h"

#include "ops/vision/frame.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

const Tensor* one_number(const Node& n, size_t i) {
  const Value* v = n.input(i);
  return v && v->data && v->data->size() == 1 ? &*v->data : nullptr;
}

// A QuantizeLinear of whole tensors to bytes by constants, or what it is lowered to
// (ops/elementwise/quantize.h).
bool quantises(const Node& n) {
  const bool lowered = n.op == find_op("sinter", "quantize") && !n.epilogue;
  if (!(lowered || is_op(&n, "QuantizeLinear")) || !one_number(n, 1) || (n.input(2) && !one_number(n, 2)))
    return false;
  const DType t = n.outputs[0]->type.dtype;
  return (t == DType::kU8 || t == DType::kI8) && one_number(n, 1)->dtype() == DType::kF32 &&
         one_number(n, 1)->real(0) > 0;
}

// The QuantizeLinear that alone reads what `frame` makes; `moves`: the Values up to it.
Node* quantiser(const Graph& g, Node& frame, std::vector<Value*>& moves) {
  moves = {frame.outputs[0]};
  for (;;) {
    Value* v = moves.back();
    if (v->users.size() != 1 || g.is_output(v)) return nullptr;
    Node* user = v->users[0];
    if (user->inputs[0] != v) return nullptr;
    if (quantises(*user)) return user;
    if (!is_op(user, "Transpose") && !is_op(user, "Reshape")) return nullptr;
    moves.push_back(user->outputs[0]);
  }
}

void quantise(Graph& g, Node& frame, FrameRule rule, Node& q, const std::vector<Value*>& moves) {
  const double step = one_number(q, 1)->real(0);
  for (std::vector<float>* list : {&rule.factor, &rule.offset, &rule.border})
    for (float& v : *list) v = static_cast<float>(static_cast<double>(v) / step);
  rule.dtype = q.outputs[0]->type.dtype;
  rule.zero = q.input(2) ? static_cast<int64_t>(one_number(q, 2)->real(0)) : 0;
  rule.even = true;
  set_frame_rule(frame.attributes, rule);
  for (Value* v : moves) {
    v->type.dtype = rule.dtype;
    v->origin.clear();
    v->range.reset();
  }
  moves.back()->origin = q.outputs[0]->origin;
  moves.back()->perm = q.outputs[0]->perm;
  frame.sources.insert(frame.sources.end(), q.sources.begin(), q.sources.end());
  g.replace_uses(q.outputs[0], moves.back());
}

}  // namespace

bool quantise_frames(Graph& g, const PassOptions& options) {
  if (options.exact) return false;
  bool changed = false;
  for (Node* n : snapshot(g)) {
    if (n->op != find_op("sinter", "frame_to_tensor") || n->epilogue) continue;
    const FrameRule rule = frame_rule(n->attributes);
    std::vector<Value*> moves;
    Node* q = rule.dtype == DType::kF32 ? quantiser(g, *n, moves) : nullptr;
    if (!q || g.is_output(q->outputs[0])) continue;
    quantise(g, *n, rule, *q, moves);
    changed = true;
  }
  if (changed) g.erase_unused();
  return changed;
}

}  // namespace sinter
