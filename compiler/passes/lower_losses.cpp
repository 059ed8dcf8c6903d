// lower_loss, a part of lower_composites: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss as the
// LogSoftmax, Gathers and sums that they stand for.
//
// Targets to be ignored pick class 0 and are masked afterwards, so that what stands there (infinity, say)
// does not count.
#include "passes/lower_losses.h"

#include "passes/builder.h"

namespace sinter {
namespace {

// Targets that count nothing; null where all do.
struct Ignored {
  Value* mask = nullptr;
  Value* target;  // with 0 in their place
};
Ignored ignored(Builder& make, const Node& n, Value* target) {
  if (!n.attributes.has("ignore_index")) return {nullptr, target};
  const DType t = target->type.dtype;
  Tensor index(t, {});
  const int64_t wanted = n.attributes.integer("ignore_index", 0);
  if (t == DType::kI32 && wanted != static_cast<int32_t>(wanted)) return {nullptr, target};  // never met
  index.set_integer(0, wanted);
  Value* mask = make("Equal", {target, make.constant("ignore_index", index)});
  return {mask, make("Where", {mask, make.constant("zero", Tensor(t, {})), target})};
}

Value* loss(Builder& make, const Node& n, Value* scores, Value* labels, Value* weight) {
  const DType t = scores->type.dtype;
  const auto [mask, target] = ignored(make, n, labels);
  Value* axis = make.integers("axis", {1});
  Value* picked = make("GatherElements", {scores, make("Unsqueeze", {target, axis})}, {{"axis", int64_t{1}}});
  Value* each = make("Neg", {make("Squeeze", {picked, axis})});
  Value* zero = mask ? make.number(0, t) : nullptr;
  if (mask) each = make("Where", {mask, zero, each});
  Value* weights = nullptr;
  if (weight) weights = make("Gather", {weight, target});
  if (mask) weights = make("Where", {mask, zero, weight ? weights : make.number(1, t)});
  if (weight) each = make("Mul", {each, weights});
  const std::string how = n.attributes.text("reduction", "mean");
  if (how == "none") return each;
  const auto over_all = [&](const char* op, Value* v) { return make(op, {v}, {{"keepdims", int64_t{0}}}); };
  if (how == "sum") return over_all("ReduceSum", each);
  if (!weights) return over_all("ReduceMean", each);
  return make("Div", {over_all("ReduceSum", each), over_all("ReduceSum", weights)});
}

}  // namespace

bool lower_loss(Graph& g, Node* n) {
  const bool entropy = is_op(n, "SoftmaxCrossEntropyLoss");
  if (!entropy && !is_op(n, "NegativeLogLikelihoodLoss")) return false;
  Builder make(g, n);
  Value *scores = n->inputs[0], *weight = n->input(2);
  if (entropy) {
    scores = make("LogSoftmax", {scores}, {{"axis", int64_t{1}}});
    if (n->has_output(1)) {
      Node* made = scores->producer;
      scores = n->outputs[1];
      take_output(made, 0, n, 1);
    }
  }
  if (n->has_output(0)) take_output(loss(make, *n, scores, n->inputs[1], weight)->producer, 0, n, 0);
  return true;
}

}  // namespace sinter
