// fuse_squeeze_excite: channels scaled by what a small net makes of their means become one node.
//
//   y = x * excite(Conv1x1(squeeze(Conv1x1(mean(x)))))
//
// The mean is a GlobalAveragePool, or a ReduceMean over height and width; the activations are elementwise
// nodes with constants of one number (ReLU, SiLU, sigmoids spelled in any way). Views may stand anywhere, as
// everything between is [N, C]. Nothing in between may be used elsewhere. Sums are taken in another order, so
// not with `exact`.
#include <algorithm>
#include <set>

#include "ops/reductions/squeeze_excite.h"
#include "passes/fuse.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

class Matcher {
 public:
  Matcher(Graph& g, const Order& order) : g_(g), order_(order) {}

  bool fuse(Node* scaling) {
    if (!is_op(scaling, "Mul") || !scaling->has_output(0)) return false;
    for (size_t side = 0; side < 2; ++side) {
      parts_ = {scaling};
      x_ = scaling->inputs[side];
      if (!(x_->type == scaling->outputs[0]->type) || x_->type.dtype != DType::kF32 ||
          x_->type.shape.size() < 3)
        continue;
      Value* gate = scaling->inputs[1 - side];
      if (!is_of_channels(gate->type.shape)) continue;
      const auto excite = stage(gate), squeeze = excite ? stage(excite->conv->inputs[0]) : std::nullopt;
      if (!squeeze || !takes_mean(squeeze->conv->inputs[0])) continue;
      if (!fits(*squeeze, *excite, gate->type.shape) || !is_private(scaling)) continue;
      build(scaling, *squeeze, *excite);
      return true;
    }
    return false;
  }

 private:
  struct Stage {
    Node* conv;
    std::string activation;
  };

  // [N, C, 1..] or [N, 1.., C], with as many axes as x has.
  bool is_of_channels(const Shape& gate) const {
    const auto ones = std::count_if(gate.begin(), gate.end(), [](const Dim& d) { return d.is(1); });
    return gate.size() == x_->type.shape.size() && ones + 2 >= static_cast<ptrdiff_t>(gate.size());
  }
  Node* ours(const Value* v) const { return v->producer && order_.has(v->producer) ? v->producer : nullptr; }
  Node* take(Node* n) {
    parts_.insert(n);
    return n;
  }
  Value* without_views(Value* v) {
    for (Node* n = ours(v); n && !n->epilogue && (n->op->is_view || is_still(n)); n = ours(v))
      v = take(n)->inputs[0];
    return v;
  }
  static bool is_still(const Node* n) {
    return is_op(n, "Transpose") && is_view(transpose_perm(*n), n->inputs[0]->type.shape);
  }

  // v as an expression of one 1x1 Conv's result, which becomes `conv`; null where it is none.
  ExprPtr expression(Value* v, Node*& conv, int depth) {
    if (v->type.dtype != DType::kF32) return nullptr;
    if (const auto number = uniform_of(v)) return Expr::constant(*number, DType::kF32);
    v = without_views(v);
    Node* n = ours(v);
    if (!n || depth > 8) return nullptr;
    if (is_op(n, "Conv")) {
      if (conv && conv != n) return nullptr;
      conv = take(n);
      return Expr::accumulator(DType::kF32);
    }
    if (n->epilogue || !n->op->expr || n->outputs.size() != 1 || !n->bodies.empty()) return nullptr;
    std::vector<ExprPtr> args;
    for (Value* in : n->inputs) {
      args.push_back(in ? expression(in, conv, depth + 1) : nullptr);
      if (in && !args.back()) return nullptr;
      if (in && !in->data && !(product(in->type.shape) == product(v->type.shape))) return nullptr;
    }
    take(n);
    return n->op->expr(*n, args);
  }

  // The activation and the product that end in v.
  std::optional<Stage> stage(Value* v) {
    Node* conv = nullptr;
    const ExprPtr e = expression(v, conv, 0);
    if (!e || !conv || !is_product(*conv)) return std::nullopt;
    const ExprPtr simple = simplified(e, false);
    const auto text = has_vector_form(*simple) ? activation_text(*simple) : std::nullopt;
    return text ? std::optional(Stage{conv, *text}) : std::nullopt;
  }
  static bool has_vector_form(const Expr& e) {
    return (e.kind != Expr::Kind::kCall || e.fn->vector) &&
           std::all_of(e.args.begin(), e.args.end(),
                       [](const ExprPtr& a) { return a && has_vector_form(*a); });
  }

  // A Conv of one pixel by constants.
  static bool is_product(const Node& n) {
    const Value *x = n.inputs[0], *w = n.inputs[1], *b = n.input(2);
    if (!w->data || (b && !b->data) || n.attributes.integer("group", 1) != 1 ||
        n.attributes.integer("integer", 0) != 0)
      return false;
    for (const int64_t p : n.attributes.integers("pads", {}))
      if (p != 0) return false;
    const Tensor& weights = *w->data;
    const auto one_pixel = [&](const Value* v, int64_t channels) {
      return v->type.shape.size() >= 3 && product(v->type.shape) == v->type.shape[0] * Dim(channels);
    };
    return weights.dtype() == DType::kF32 && weights.size() == weights.dim(0) * weights.dim(1) &&
           one_pixel(x, weights.dim(1)) && one_pixel(n.outputs[0], weights.dim(0));
  }

  // v is x's mean over all axes but the batch and the channels; sets last_.
  bool takes_mean(Value* v) {
    v = without_views(v);
    Node* n = ours(v);
    if (!n || n->epilogue || n->inputs.empty() || n->inputs[0] != x_) return false;
    const auto rank = static_cast<int64_t>(x_->type.shape.size());
    last_ = n->attributes.integer("channels_last", 0) != 0;
    take(n);
    if (is_op(n, "GlobalAveragePool")) return true;
    auto axes = is_op(n, "ReduceMean") ? integers_of(n->input(1)) : std::nullopt;
    if (!axes || static_cast<int64_t>(axes->size()) != rank - 2) return false;
    for (int64_t& a : *axes) a = a < 0 ? a + rank : a;
    std::sort(axes->begin(), axes->end());
    last_ = (*axes)[0] == 1;
    for (size_t i = 0; i < axes->size(); ++i)
      if ((*axes)[i] != static_cast<int64_t>(i) + (last_ ? 1 : 2)) return false;
    return true;
  }

  bool fits(const Stage& squeeze, const Stage& excite, const Shape& gate) const {
    const Tensor &w1 = *squeeze.conv->inputs[1]->data, &w2 = *excite.conv->inputs[1]->data;
    const Shape& s = x_->type.shape;
    const size_t rank = s.size(), channels = last_ ? rank - 1 : 1;
    if (!s[channels].is(w1.dim(1)) || w2.dim(0) != w1.dim(1) || w2.dim(1) != w1.dim(0) || gate.size() != rank)
      return false;
    for (size_t a = 0; a < rank; ++a)
      if (a == 0 || a == channels ? !same_extent(g_, gate[a], s[a]) : !gate[a].is(1)) return false;
    return true;
  }

  // What the parts make is used by parts only, but for the last one's result.
  bool is_private(const Node* scaling) const {
    return std::all_of(parts_.begin(), parts_.end(), [&](const Node* n) {
      if (n == scaling) return true;
      return std::all_of(n->outputs.begin(), n->outputs.end(), [&](const Value* v) {
        return !v || (!g_.is_output(v) && std::all_of(v->users.begin(), v->users.end(),
                                                      [&](Node* user) { return parts_.count(user) != 0; }));
      });
    });
  }

  Value* matrix(const Node& conv) {
    const Tensor& w = *conv.inputs[1]->data;
    return g_.add_constant(conv.inputs[1]->name + "/matrix", w.reshaped({w.dim(0), w.dim(1)}));
  }

  void build(Node* scaling, const Stage& squeeze, const Stage& excite) {
    Attributes a;
    a.set("squeeze", squeeze.activation);
    a.set("excite", excite.activation);
    if (last_) a.set("channels_last", int64_t{1});
    std::vector<Node*> parts = snapshot(g_);
    std::erase_if(parts, [&](Node* n) { return parts_.count(n) == 0; });
    fuse_into(
        g_, find_op("sinter", "squeeze_excite"), scaling,
        {x_, matrix(*squeeze.conv), squeeze.conv->input(2), matrix(*excite.conv), excite.conv->input(2)},
        std::move(a), parts);
  }

  Graph& g_;
  const Order& order_;
  Value* x_ = nullptr;
  bool last_ = false;
  std::set<Node*> parts_;
};

}  // namespace

bool fuse_squeeze_excite(Graph& g, const PassOptions& options) {
  if (options.exact) return false;
  return fuse_each<Matcher>(g);
}

}  // namespace sinter
