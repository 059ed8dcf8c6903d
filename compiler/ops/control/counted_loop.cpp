// The trip count of a Loop that counts: `i = 0; while (i < 20) { ...; i = i + 1; }`, as TensorFlow's loops
// are exported. They have no trip count of their own, only a condition.
//
// What the condition is made of is run ahead: the nodes of the body that it needs, and those that its carried
// values need. Where all of them are small tensors of integers and bools that begin as constants, the
// iteration after which the condition ends the Loop is known before the model runs. Floats may only be
// compared (TensorFlow Lite's converter casts both sides): what rounds might end elsewhere on the device.
#include "ops/control/counted_loop.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/budget.h"
#include "ir/error.h"
#include "ops/control/bodies.h"

namespace sinter {
namespace {

// Evaluations of a node take some microseconds each, and a Loop is looked at a dozen times.
constexpr int64_t kMostTrips = 4096, kMostElements = 64, kMostEvaluations = 16384;
constexpr size_t kMostNodes = 64;

bool is_small(const Tensor& t) { return t.size() <= kMostElements; }
bool counts(const Tensor& t) { return is_small(t) && (is_integer(t.dtype()) || t.dtype() == DType::kBool); }

// What the condition of one Loop is made of.
class Counter {
 public:
  explicit Counter(const Node& loop) : loop_(loop), form_(loop_form(loop)), body_(*loop.bodies[0]) {}

  std::optional<int64_t> trips() {
    if (!body_.unreachable.empty() || !need(body_.outputs[0])) return std::nullopt;
    Budget ahead;  // what runs ahead is part of inference
    try {
      const int64_t nodes = std::max<int64_t>(1, static_cast<int64_t>(nodes_.size()));
      for (int64_t i = 0; i < std::min(kMostTrips, kMostEvaluations / nodes); ++i) {
        spend_inference(Budget::kStepsOfEvaluation * static_cast<double>(nodes));
        const Budget::Use apart(ahead);
        if (!iterate(i)) return std::nullopt;
        const Tensor& go = values_.at(body_.outputs[0]);
        if (go.size() != 1) return std::nullopt;
        if (go.integer(0) == 0) return i + 1;
        step();
      }
    } catch (const Refusal&) {  // what the interpreter refuses is for the run to meet
    }
    return std::nullopt;
  }

 private:
  // Whether `v` can be computed ahead; notes what that takes.
  bool need(const Value* v) {
    if (v->data) return is_small(*v->data);
    if (!needed_.insert(v).second) return true;
    if (const Node* n = v->producer) {
      if (!n->bodies.empty() || n->op->impure || nodes_.size() >= kMostNodes) return false;
      nodes_.insert(n);
      for (const Value* in : n->inputs)
        if (in && !need(in)) return false;
      return true;
    }
    for (size_t i = 0; i < body_.inputs.size(); ++i)
      if (body_.inputs[i] == v) return i < form_.first || begins(v, i);
    return false;
  }
  // Body input i, a carried value or a capture, is known at first.
  bool begins(const Value* v, size_t i) {
    const std::optional<Tensor> first = known_contents(*loop_.inputs[i]);
    if (!first || !counts(*first)) return false;
    values_.insert_or_assign(v, *first);
    const size_t k = i - form_.first;
    if (k >= form_.states) return true;
    states_[v] = body_.outputs[form_.body_output(k)];
    return need(states_.at(v));
  }

  bool iterate(int64_t i) {
    for (size_t k = 0; k < form_.first; ++k) {
      const Value* v = body_.inputs[k];
      Tensor t(k == 0 ? DType::kI64 : DType::kBool, std::vector<int64_t>(v->type.shape.size(), 1));
      t.set_integer(0, k == 0 ? i : 1);
      values_.insert_or_assign(v, std::move(t));
    }
    for (const auto& n : body_.nodes) {
      if (!nodes_.count(n.get())) continue;
      std::vector<Tensor> in;
      for (const Value* v : n->inputs) in.push_back(v ? value(v) : Tensor());
      std::vector<Tensor> out = evaluate(*n, std::move(in), kMostElements);
      for (size_t o = 0; o < out.size(); ++o) {
        if (!n->outputs[o]) continue;
        if (!counts(out[o]) && n->op != find_op("", "Cast")) return false;
        values_.insert_or_assign(n->outputs[o], std::move(out[o]));
      }
    }
    return values_.count(body_.outputs[0]) != 0 || body_.outputs[0]->data;
  }
  // What an iteration made is what the next one finds.
  void step() {
    std::map<const Value*, Tensor> next;
    for (const auto& [in, made] : states_) next.emplace(in, value(made));
    for (auto& [in, t] : next) values_.insert_or_assign(in, std::move(t));
  }
  const Tensor& value(const Value* v) const { return v->data ? *v->data : values_.at(v); }

  const Node& loop_;
  const LoopForm form_;
  const Graph& body_;
  std::set<const Value*> needed_;
  std::set<const Node*> nodes_;
  std::map<const Value*, const Value*> states_;  // body input: what the body makes of it
  std::map<const Value*, Tensor> values_;        // of the iteration that is run
};

}  // namespace

std::optional<int64_t> counted_trips(const Node& loop) {
  if (loop.inputs[1]) {
    const std::optional<Tensor> begins = known_contents(*loop.inputs[1]);
    if (!begins || begins->size() != 1) return std::nullopt;
    if (begins->integer(0) == 0) return 0;
  }
  if (loop.bodies[0]->outputs[0]->data) return std::nullopt;  // it doesn't count
  return Counter(loop).trips();
}

}  // namespace sinter
