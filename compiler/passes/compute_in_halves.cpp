// compute_in_halves: with --fp16, layers compute and store halves (float16) where their kernels can and a
// half's range and eleven digits are enough; the tensors between them are float16.
//
// Which layers: half_choice.h. Whatever else reads a half gets floats by a Cast, as do the graph's outputs,
// so that the model's inputs and outputs keep their types. Constant operands of expressions become halves
// here, those of products and norms where they are packed.
//
// With samples of the inputs each layer's error is measured first (half_errors.h): one above the limit, or
// whose numbers leave a half's range, stays in floats. So do those that an output owes too great an error to
// (half_outputs.h). The attribute `no_halves` says of a layer why it stays.
//
// Node::freedom says what each node became; docs/decisions/0020-half-arithmetic.md has the errors of sums.
#include <unordered_map>
#include <unordered_set>

#include "ir/error.h"
#include "ops/windows/window.h"
#include "passes/half_outputs.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

ExprPtr of_halves(const ExprPtr& e) {
  Expr h = *e;
  if (h.dtype == DType::kF32) h.dtype = DType::kF16;
  for (ExprPtr& a : h.args) a = of_halves(a);
  return std::make_shared<const Expr>(std::move(h));
}

class Rewriter {
 public:
  explicit Rewriter(Graph& g, const PassOptions& options) : g_(g), options_(options) {}

  bool run() {
    if (!g_.parent && !options_.samples.empty()) measure();
    const HalfChoice choice =
        choose_halves(g_, options_, [&](const Node& n) { return n.attributes.has(kNoHalves); });
    for (Node* n : snapshot(g_)) {
      if (choice.moves.count(n) != 0)
        become(n, Halves::kNone);
      else if (const Halves h = choice.of(*n); h != Halves::kNone)
        become(n, h);
      else
        read_floats(n);
    }
    finish_outputs();
    g_.erase_unused();
    return !halves_.empty();
  }

 private:
  static constexpr const char* kNoHalves = "no_halves";  // why a layer that could be in halves is not

  bool is_half(const Value* v) const { return halves_.count(v) != 0; }

  // What halves cost each layer and the outputs, and which layers stay floats for that.
  void measure() {
    HalfReport unread, &report = options_.half_report ? *options_.half_report : unread;
    try {
      const HalfErrors errors = half_errors(g_, options_.samples);
      const HalfOutputs outputs = hold_outputs(g_, options_, errors);
      for (const auto& n : g_.nodes) {
        const auto e = errors.layers.find(n.get());
        if (e == errors.layers.end()) continue;
        n->freedom.half_error = e->second;
        if (e->second > options_.half_error)
          n->attributes.set(kNoHalves, std::string("its own error is above the limit"));
        else if (outputs.floats.count(n.get()) != 0)
          n->attributes.set(kNoHalves, std::string("its error reaches an output"));
      }
      report.outputs = outputs.errors;
    } catch (const Refusal& r) {  // what can't be evaluated can't be measured
      if (!options_.half_report) throw;
      report.unmeasured = r.what();
    }
  }

  // The first convolution of a picture that comes as planes reads them as floats (plan/in_place.cpp).
  bool reads_planes(const Node& n) const {
    const Value* x = n.inputs[0];
    return may_read_planes(n) && x->users.size() == 1 && !g_.is_output(x) && !is_half(x) &&
           x->type.dtype == DType::kF32;
  }

  void become(Node* n, Halves h) {
    for (size_t i = 0; i < n->inputs.size(); ++i) {
      Value* v = n->inputs[i];
      if (v && h != Halves::kNone && stays_float(*n, i)) {
        if (is_half(v)) g_.set_input(n, i, float_of(v));
        continue;
      }
      if (!v || is_half(v) || v->type.dtype != DType::kF32) continue;
      if (h != Halves::kNone && is_packed(*n, i)) continue;
      if (i == 0 && h == Halves::kComputed && reads_planes(*n)) continue;
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
  // A Transpose of a picture's channels can round or widen on the way (kernels/movement/copy.cpp), where
  // nobody else wants what it makes.
  bool can_convert(const Node* t) const {
    if (!t || !is_op(t, "Transpose") || t->outputs[0]->users.size() > 1) return false;
    const std::vector<int64_t> perm = transpose_perm(*t);
    const bool last = perm == std::vector<int64_t>{0, 2, 3, 1};
    if (!last && perm != std::vector<int64_t>{0, 3, 1, 2}) return false;
    const Shape& s = (last ? t->outputs[0] : t->inputs[0])->type.shape;
    return is_static(s) && s[0].is(1) && s[3].value() > 4;
  }
  // A camera's frame becomes a picture of halves as well as one of floats (ops/vision/frame.cpp).
  bool makes_picture(const Value* v) const {
    return v->producer && v->producer->op == find_op("sinter", "frame_to_tensor") && v->users.size() == 1 &&
           !g_.is_output(v) && v->type.dtype == DType::kF32;
  }
  Value* half_of(Value* v, Node* user) {
    if (makes_picture(v)) {
      v->producer->freedom.halves = Halves::kStored;
      v->producer->attributes.set("dtype", static_cast<int64_t>(onnx_of(DType::kF16)));
      v->type.dtype = DType::kF16;
      halves_.insert(v);
      return v;
    }
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
};

}  // namespace

bool compute_in_halves(Graph& g, const PassOptions& options) {
  return options.halves && !options.exact && Rewriter(g, options).run();
}

}  // namespace sinter
