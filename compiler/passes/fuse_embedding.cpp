// fuse_embedding: rows that Gathers pick of tables, their sum with constants, and its norm become one node.
//
//   [LayerNormalization or RMSNormalization of] (Gather(words, ids) + Gather(positions, ..) + types + ..)
//
// All are float32; the Gathers pick rows of matrices. What else is added must be a constant or a view or part
// of one tensor: sums of products are the business of those products. Each operand broadcasts without a
// check. Nothing in between may be used elsewhere; a sum that is becomes a node without the norm. The norm is
// computed over the sum in one pass, in another order, so not with `exact`.
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

class Matcher {
 public:
  Matcher(Graph& g, const Order& order) : g_(g), order_(order) {}

  bool fuse(Node* n) {
    gathers_.clear();
    addends_.clear();
    parts_ = {n};
    const bool norm = is_norm(n);
    if (!norm && !(is_op(n, "Add") && is_root(n))) return false;
    const bool found = norm ? take(n->inputs[0]) : take_operands(n);
    if (!found || gathers_.empty() || gathers_.size() + addends_.size() > 8) return false;
    const Value* sum = norm ? n->inputs[0] : n->outputs[0];
    if (sum->type.dtype != DType::kF32 || !all_fit(sum->type.shape)) return false;
    build(n, norm);
    return true;
  }

 private:
  bool is_private(const Value* v) const { return v->users.size() == 1 && !g_.is_output(v) && !v->data; }

  bool is_norm(const Node* n) const {
    if (!(is_op(n, "LayerNormalization") || is_op(n, "RMSNormalization")) || !n->has_output(0) ||
        n->has_output(1) || n->has_output(2) || n->attributes.integer("stash_type", 1) != 1)
      return false;
    const int64_t axis = n->attributes.integer("axis", -1);
    const auto rank = static_cast<int64_t>(n->inputs[0]->type.shape.size());
    if (axis != -1 && axis != rank - 1) return false;
    for (size_t i = 1; i < n->inputs.size(); ++i)
      if (n->inputs[i] && (n->inputs[i]->type.dtype != DType::kF32 || n->inputs[i]->type.shape.size() != 1 ||
                           !(n->inputs[i]->type.shape[0] == n->inputs[0]->type.shape.back())))
        return false;
    return n->input(1) != nullptr;
  }

  // An Add that no other Add takes: nodes come in order, and norms and roots are asked for after their
  // operands.
  bool is_root(const Node* n) const {
    if (!n->has_output(0)) return false;
    const Value* y = n->outputs[0];
    if (y->users.size() != 1 || g_.is_output(y)) return true;
    return !is_op(y->users[0], "Add") && !is_norm(y->users[0]);
  }

  bool take_operands(const Node* n) {
    return n->inputs[0] != n->inputs[1] && take(n->inputs[0]) && take(n->inputs[1]);
  }

  // v as a summand, or as a sum of them.
  bool take(Value* v) {
    Node* n = v->producer;
    const bool ours = n && order_.has(n) && is_private(v);
    if (ours && is_op(n, "Add")) {
      parts_.push_back(n);
      return take_operands(n);
    }
    if (ours && is_op(n, "Gather") && picks_rows(n)) {
      parts_.push_back(n);
      gathers_.push_back(n);
      return true;
    }
    static const char* const kPassed[] = {"Slice", "Unsqueeze", "Squeeze", "Expand", "Reshape", "Gather"};
    const bool passed =
        v->data || !n ||
        std::any_of(std::begin(kPassed), std::end(kPassed), [&](const char* op) { return is_op(n, op); });
    addends_.push_back(v);
    return passed;
  }

  static bool picks_rows(const Node* n) {
    const TensorType &table = n->inputs[0]->type, &indices = n->inputs[1]->type;
    const int64_t axis = n->attributes.integer("axis", 0);
    return table.dtype == DType::kF32 && table.shape.size() == 2 && (axis == 0 || axis == -2) &&
           table.shape[1].lo() > 0 && !n->inputs[1]->data &&  // a constant row may be a view
           (indices.dtype == DType::kI32 || indices.dtype == DType::kI64);
  }

  // Every summand is the sum's shape, or 1 where it is repeated; the last axis is never repeated.
  bool all_fit(const Shape& sum) const {
    const auto fits = [&](const Value* v) {
      const Shape& s = v->type.shape;
      if (v->type.dtype != DType::kF32 || s.empty() || s.size() > sum.size() || !(s.back() == sum.back()))
        return false;
      for (size_t i = 0; i < s.size(); ++i)
        if (!s[i].is(1) && !same_extent(g_, s[i], sum[sum.size() - s.size() + i])) return false;
      return true;
    };
    return std::all_of(gathers_.begin(), gathers_.end(),
                       [&](const Node* n) { return fits(n->outputs[0]); }) &&
           std::all_of(addends_.begin(), addends_.end(), fits);
  }

  void build(Node* last, bool norm) {
    std::vector<Value*> inputs;
    for (const Node* n : gathers_) inputs.insert(inputs.end(), {n->inputs[0], n->inputs[1]});
    inputs.insert(inputs.end(), addends_.begin(), addends_.end());
    if (norm)
      for (size_t i = 1; i < last->inputs.size(); ++i)
        if (last->inputs[i]) inputs.push_back(last->inputs[i]);
    Attributes a;
    a.set("tables", static_cast<int64_t>(gathers_.size()));
    a.set("addends", static_cast<int64_t>(addends_.size()));
    if (norm) {
      a.set("norm", std::string(last->op->name));
      a.set("epsilon", last->attributes.real("epsilon", 1e-5f));
    }
    fuse_into(g_, find_op("sinter", "embedding"), last, std::move(inputs), std::move(a), parts_);
  }

  Graph& g_;
  const Order& order_;
  std::vector<Node*> gathers_, parts_;
  std::vector<Value*> addends_;
};

}  // namespace

bool fuse_embedding(Graph& g, const PassOptions& options) {
  if (options.exact) return false;
  return fuse_each<Matcher>(g);
}

}  // namespace sinter
