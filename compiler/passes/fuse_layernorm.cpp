// fuse_layernorm: layer normalisation spelled out as arithmetic becomes the operator.
//
//   d = x - mean(x);  y = d / sqrt(mean(d^2) + epsilon)  [* scale] [+ bias]     LayerNormalization
//                     y = x / sqrt(mean(x^2) + epsilon)  [* scale]              RMSNormalization
//
// with means over the last axis that keep it, d^2 as Pow or Mul, the division also as Mul by a Reciprocal or
// by 1 / sqrt(...), and scale and bias constants of the last axis. Nothing in between may be used elsewhere.
// The operators compute in one pass with fewer rounding steps, so not with `exact`.
#include <algorithm>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

class Matcher {
 public:
  Matcher(Graph& g, const Order& order) : g_(g), order_(order) {}
  bool fuse(Node* n);

 private:
  // The maker of v if it is this operator of this graph and v is used `uses` times and by nobody outside.
  Node* maker(const Value* v, const char* op, size_t uses = 1) const {
    if (!v || !is_op(v->producer, op) || !order_.has(v->producer)) return nullptr;
    return v->users.size() == uses && !g_.is_output(v) ? v->producer : nullptr;
  }
  Node* last_axis_mean(const Value* v) const;
  Node* reciprocal(const Value* v) const;
  bool match_denominator(const Value* v);
  bool match_square(const Value* v);
  Value* factor(Node* n, const char* op, Node*& next) const;
  Value* full(const Value* v, double fallback, const std::string& name);

  Graph& g_;
  const Order& order_;
  const Value* numerator_ = nullptr;
  std::vector<Node*> parts_;
  double epsilon_ = 0;
};

Node* Matcher::last_axis_mean(const Value* v) const {
  Node* n = maker(v, "ReduceMean");
  if (!n || n->attributes.integer("keepdims", 1) == 0) return nullptr;
  const auto axes = integers_of(n->input(1));
  const int64_t rank = static_cast<int64_t>(n->inputs[0]->type.shape.size());
  return axes && axes->size() == 1 && ((*axes)[0] == -1 || (*axes)[0] == rank - 1) ? n : nullptr;
}

// The maker of v if v is 1 / its last input.
Node* Matcher::reciprocal(const Value* v) const {
  if (Node* n = maker(v, "Reciprocal")) return n;
  Node* n = maker(v, "Div");
  return n && uniform_of(n->inputs[0]) == 1.0 ? n : nullptr;
}

bool Matcher::match_square(const Value* v) {
  Node* n = maker(v, "Mul");
  if (n ? n->inputs[0] == numerator_ && n->inputs[1] == numerator_
        : (n = maker(v, "Pow")) && n->inputs[0] == numerator_ && uniform_of(n->inputs[1]) == 2.0) {
    parts_.push_back(n);
    return true;
  }
  return false;
}

// v == sqrt(mean(numerator^2) + epsilon)
bool Matcher::match_denominator(const Value* v) {
  Node* root = maker(v, "Sqrt");
  Node* sum = root ? maker(root->inputs[0], "Add") : nullptr;
  if (!sum) return false;
  const size_t constant = sum->inputs[1]->data ? 1 : 0;
  const auto epsilon = uniform_of(sum->inputs[constant]);
  Node* mean = last_axis_mean(sum->inputs[1 - constant]);
  if (!epsilon || !mean || !match_square(mean->inputs[0])) return false;
  epsilon_ = *epsilon;
  // The attribute is a float: in float64 another number would be seen.
  const DType type = sum->outputs[0]->type.dtype;
  if (type == DType::kF64 && static_cast<double>(static_cast<float>(epsilon_)) != epsilon_) return false;
  parts_.insert(parts_.end(), {mean, sum, root});
  return true;
}

// The constant that the only user of n's output, an `op`, combines it with along the last axis; `next` is
// that user.
Value* Matcher::factor(Node* n, const char* op, Node*& next) const {
  const Value* v = n->outputs[0];
  if (v->users.size() != 1 || g_.is_output(v) || !order_.has(v->users[0])) return nullptr;
  next = v->users[0];
  if (!is_op(next, op) || !next->has_output(0) || !(next->outputs[0]->type == v->type)) return nullptr;
  Value* c = next->inputs[next->inputs[0] == v ? 1 : 0];
  if (!c->data || c->type.dtype != v->type.dtype) return nullptr;
  const std::vector<int64_t>& shape = c->data->shape();
  const bool along_last = c->data->size() == 1 || shape.back() == c->data->size();
  return along_last ? c : nullptr;
}

// A constant of the last axis: v's numbers, or `fallback` all along.
Value* Matcher::full(const Value* v, double fallback, const std::string& name) {
  const Dim& extent = numerator_->type.shape.back();
  Tensor t(numerator_->type.dtype, {extent.value()});
  for (int64_t i = 0; i < t.size(); ++i)
    t.set_real(i, v ? v->data->real(v->data->size() == 1 ? 0 : i) : fallback);
  return g_.add_constant(name, std::move(t));
}

bool Matcher::fuse(Node* n) {
  const bool division = is_op(n, "Div");
  if (!(division || is_op(n, "Mul")) || !n->has_output(0) || !is_float(n->outputs[0]->type.dtype))
    return false;
  for (size_t side = division ? 1 : 0; side < 2; ++side) {
    parts_.clear();
    numerator_ = n->inputs[1 - side];
    const Value* denominator = n->inputs[side];
    Node* inverse = division ? nullptr : reciprocal(denominator);
    if (!division && !inverse) continue;
    if (inverse) denominator = inverse->inputs.back();
    if (numerator_->data || numerator_->type.shape.empty() || !numerator_->type.shape.back().is_static())
      continue;
    if (!match_denominator(denominator)) continue;
    if (inverse) parts_.push_back(inverse);
    // The numerator minus its mean makes it a LayerNormalization.
    const size_t uses = 1 + (parts_[0]->inputs.size() > 1 && parts_[0]->inputs[1] == numerator_ ? 2u : 1u);
    Node* centred = maker(numerator_, "Sub", uses);
    Node* mean = centred ? last_axis_mean(centred->inputs[1]) : nullptr;
    const bool layer = mean && mean->inputs[0] == centred->inputs[0];
    Value* x = layer ? centred->inputs[0] : n->inputs[1 - side];
    if (!(x->type == n->outputs[0]->type)) continue;
    if (layer) parts_.insert(parts_.begin(), {mean, centred});
    parts_.push_back(n);
    Node *scaling = nullptr, *adding = nullptr;
    const Value* scale = factor(n, "Mul", scaling);
    if (scale) parts_.push_back(scaling);
    const Value* bias = layer ? factor(parts_.back(), "Add", adding) : nullptr;
    if (bias) parts_.push_back(adding);
    Node* last = parts_.back();
    std::vector<Value*> inputs{x, full(scale, 1, last->name + "/scale")};
    if (bias) inputs.push_back(full(bias, 0, last->name + "/bias"));
    Attributes a;
    a.set("axis", int64_t{-1});
    a.set("epsilon", static_cast<float>(epsilon_));
    fuse_into(g_, find_op("", layer ? "LayerNormalization" : "RMSNormalization"), last, std::move(inputs),
              std::move(a), parts_);
    return true;
  }
  return false;
}

}  // namespace

bool fuse_layernorm(Graph& g, const PassOptions& options) {
  if (options.exact) return false;
  return fuse_each<Matcher>(g);
}

}  // namespace sinter
