// fold_batchnorm: y = s*x + t per output channel, behind Conv, ConvTranspose, Gemm or MatMul with constant
// weights, is the same node with other weights and another bias: W' = s*W, b' = s*b + t.
//
// BatchNormalization (inference form) and Mul, Add, Sub, Div by constants of one number per channel are such
// maps. A whole chain of them is collected in double and rounded once, when the weights are written. The
// value in between must have no other use, and the weights no other user, else they would be stored twice.
// A BatchNormalization that can't be folded becomes Mul and Add by constants [C,1,..], which fuse as any
// elementwise node does.
#include <algorithm>
#include <cmath>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

struct Affine {
  std::vector<double> scale, shift;  // one each per channel
};

// The per-channel map of a BatchNormalization with constant statistics.
std::optional<Affine> of_batchnorm(const Node& n) {
  if (!is_op(&n, "BatchNormalization") || n.attributes.integer("training_mode", 0) != 0) return std::nullopt;
  if (n.inputs.size() != 5 || n.has_output(1) || n.has_output(2)) return std::nullopt;
  for (size_t i = 1; i < 5; ++i)
    if (!n.inputs[i] || !n.inputs[i]->data) return std::nullopt;
  const double epsilon = n.attributes.real("epsilon", 1e-5f);
  Affine a;
  for (int64_t c = 0; c < n.inputs[1]->data->size(); ++c) {
    const double s = n.inputs[1]->data->real(c) / std::sqrt(n.inputs[4]->data->real(c) + epsilon);
    a.scale.push_back(s);
    a.shift.push_back(n.inputs[2]->data->real(c) - n.inputs[3]->data->real(c) * s);
  }
  return a;
}

// A constant read per channel of a tensor [.., C at `axis`, ..] of `rank` axes; null where it has other axes.
std::optional<std::vector<double>> per_channel(const Value* v, size_t axis, size_t rank, int64_t channels) {
  if (!v || !v->data || v->data->shape().size() > rank) return std::nullopt;
  const Tensor& t = *v->data;
  const size_t offset = rank - t.shape().size();
  for (size_t i = 0; i < t.shape().size(); ++i)
    if (t.shape()[i] != 1 && i + offset != axis) return std::nullopt;
  if (t.size() != 1 && t.size() != channels) return std::nullopt;
  std::vector<double> out;
  for (int64_t c = 0; c < channels; ++c) out.push_back(t.real(t.size() == 1 ? 0 : c));
  return out;
}

// The map of `n` applied to its input x, whose channels lie along `axis`.
std::optional<Affine> of_node(const Node& n, const Value* x, size_t axis, int64_t channels) {
  const size_t rank = x->type.shape.size();
  if (axis == 1)
    if (auto a = of_batchnorm(n)) return static_cast<int64_t>(a->scale.size()) == channels ? a : std::nullopt;
  const bool add = is_op(&n, "Add"), sub = is_op(&n, "Sub"), mul = is_op(&n, "Mul"), div = is_op(&n, "Div");
  if (!(add || sub || mul || div) || !(n.outputs[0]->type == x->type)) return std::nullopt;
  const size_t k = n.inputs[0] == x ? 1 : 0;  // the constant
  if (div && k == 0) return std::nullopt;
  const auto c = per_channel(n.inputs[k], axis, rank, channels);
  if (!c) return std::nullopt;
  const size_t size = c->size();
  Affine a{std::vector<double>(size, 1), std::vector<double>(size, 0)};
  for (size_t i = 0; i < size; ++i) {
    if (mul) a.scale[i] = (*c)[i];
    if (div) a.scale[i] = 1 / (*c)[i];
    if (add) a.shift[i] = (*c)[i];
    if (sub) a.shift[i] = k == 1 ? -(*c)[i] : (*c)[i], a.scale[i] = k == 1 ? 1 : -1;
  }
  return a;
}

// How the weights of an anchor relate to its output channels.
struct Anchor {
  size_t weights = 1, bias = 2;  // inputs; bias SIZE_MAX: it can't have one
  size_t axis = 1;               // of the channels in the output
  int64_t channels = 0;
  std::function<int64_t(int64_t)> channel_of;  // element of the weights -> output channel
};

std::optional<Anchor> anchor_of(const Node& n) {
  const bool conv = is_op(&n, "Conv"), up = is_op(&n, "ConvTranspose");
  const bool gemm = is_op(&n, "Gemm"), matmul = is_op(&n, "MatMul");
  if (!(conv || up || gemm || matmul) || n.inputs.size() < 2 || !n.inputs[1]->data) return std::nullopt;
  const Tensor& w = *n.inputs[1]->data;
  if (!is_float(w.dtype()) || n.inputs[1]->users.size() != 1) return std::nullopt;
  Anchor a;
  if (conv) {
    a.channels = w.dim(0);
    const int64_t block = w.size() / std::max<int64_t>(a.channels, 1);
    a.channel_of = [block](int64_t i) { return i / block; };
  } else if (up) {  // weights [C, M/group, k..]: the group of a row of C gives the group of M
    const int64_t group = n.attributes.integer("group", 1), per = w.dim(1), rows = w.dim(0) / group;
    a.channels = per * group;
    const int64_t kernel = w.size() / std::max<int64_t>(w.dim(0) * per, 1);
    a.channel_of = [=](int64_t i) { return i / kernel / per / rows * per + i / kernel % per; };
  } else {
    if (w.rank() != 2 || n.attributes.integer("transB", 0) != 0) return std::nullopt;
    if (gemm && (n.attributes.real("alpha", 1) != 1 || n.attributes.real("beta", 1) != 1))
      return std::nullopt;
    a.channels = w.dim(1);
    a.channel_of = [columns = w.dim(1)](int64_t i) { return i % columns; };
    a.axis = n.outputs[0]->type.shape.size() - 1;
    if (matmul) a.bias = SIZE_MAX;
  }
  if (n.input(2) && a.bias == 2) {
    const Value* b = n.input(2);
    const bool plain = b->data && (b->data->size() == a.channels || b->data->size() == 1) &&
                       (b->data->rank() == 0 || b->data->shape().back() == b->data->size());
    if (!plain) return std::nullopt;
  }
  return a;
}

bool all_finite(const Tensor& t) {
  for (int64_t i = 0; i < t.size(); ++i)
    if (!std::isfinite(t.real(i))) return false;
  return true;
}

// Rewrites the weights; false where a factor can't be represented.
bool apply(Graph& g, Node& n, const Anchor& a, const Affine& f) {
  const Tensor& w = *n.inputs[a.weights]->data;
  Tensor scaled(w.dtype(), w.shape());
  const bool scales = std::any_of(f.scale.begin(), f.scale.end(), [](double s) { return s != 1; });
  const bool shifts = std::any_of(f.shift.begin(), f.shift.end(), [](double t) { return t != 0; });
  for (int64_t i = 0; i < w.size(); ++i)
    scaled.set_real(i, w.real(i) * f.scale[static_cast<size_t>(a.channel_of(i))]);
  const Value* old = a.bias == 2 ? n.input(2) : nullptr;
  Tensor bias(w.dtype(), {a.channels});
  for (int64_t c = 0; c < a.channels; ++c) {
    const double b = !old ? 0 : old->data->real(old->data->size() == 1 ? 0 : c);
    bias.set_real(c, b * f.scale[static_cast<size_t>(c)] + f.shift[static_cast<size_t>(c)]);
  }
  if (!all_finite(scaled) || !all_finite(bias)) return false;
  const std::string name = n.inputs[a.weights]->name, bias_name = old ? old->name : n.name + "/bias";
  if (scales) g.set_input(&n, a.weights, g.add_constant(name + "/folded", std::move(scaled)));
  if (shifts || (scales && old)) g.set_input(&n, 2, g.add_constant(bias_name + "/folded", std::move(bias)));
  return true;
}

// Folds the chain of maps behind `n`.
bool fold_behind(Graph& g, const Order& order, Node* n) {
  const auto a = n->outputs.size() == 1 && n->outputs[0] ? anchor_of(*n) : std::nullopt;
  if (!a) return false;
  Affine total{std::vector<double>(static_cast<size_t>(a->channels), 1),
               std::vector<double>(static_cast<size_t>(a->channels), 0)};
  std::vector<Node*> chain;
  for (const Value* v = n->outputs[0]; v->users.size() == 1 && !g.is_output(v);) {
    Node* user = v->users[0];
    if (!order.has(user) || !user->has_output(0)) break;
    const auto f = of_node(*user, v, a->axis, a->channels);
    if (!f) break;
    const bool shifts = std::any_of(f->shift.begin(), f->shift.end(), [](double t) { return t != 0; });
    if (shifts && a->bias == SIZE_MAX) break;
    for (size_t c = 0; c < f->scale.size(); ++c) {
      total.scale[c] *= f->scale[c];
      total.shift[c] = total.shift[c] * f->scale[c] + f->shift[c];
    }
    chain.push_back(user);
    v = user->outputs[0];
  }
  if (chain.empty() || !apply(g, *n, *a, total)) return false;
  for (Node* m : chain) add_sources(*n, *m);
  take_output(n, 0, chain.back(), 0);
  infer(g, *n);
  return true;
}

// A BatchNormalization on its own: Mul and Add by [C,1,..].
bool lower(Graph& g, Node* n) {
  const auto a = of_batchnorm(*n);
  if (!a) return false;
  const Value* x = n->inputs[0];
  const DType t = x->type.dtype;
  std::vector<int64_t> shape(x->type.shape.size() > 2 ? x->type.shape.size() - 1 : 1, 1);
  shape[0] = static_cast<int64_t>(a->scale.size());
  Tensor scale(t, shape), shift(t, shape);
  for (int64_t c = 0; c < shape[0]; ++c) {
    scale.set_real(c, a->scale[static_cast<size_t>(c)]);
    shift.set_real(c, a->shift[static_cast<size_t>(c)]);
  }
  if (!all_finite(scale) || !all_finite(shift)) return false;
  Value* scaled = g.add_value(n->name + "/scaled", n->outputs[0]->type);
  Node* mul = g.add_node(find_op("", "Mul"), n->name,
                         {n->inputs[0], g.add_constant(n->name + "/scale", std::move(scale))}, {scaled}, n);
  Value* y = n->outputs[0];
  n->outputs[0] = nullptr;
  y->producer = nullptr;
  Node* add = g.add_node(find_op("", "Add"), n->name + "/shift",
                         {scaled, g.add_constant(n->name + "/offset", std::move(shift))}, {y}, n);
  mul->sources = add->sources = n->sources;
  infer(g, *mul);
  infer(g, *add);
  return true;
}

}  // namespace

bool fold_batchnorm(Graph& g, const PassOptions& options) {
  if (options.exact) return false;
  bool changed = false;
  const Order order(g);
  for (Node* n : snapshot(g)) changed |= fold_behind(g, order, n);
  g.erase_unused();
  for (Node* n : snapshot(g)) changed |= lower(g, n);
  g.erase_unused();
  return changed;
}

}  // namespace sinter
