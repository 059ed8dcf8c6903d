// lower_einsum: an Einsum of two operands that sums over labels of both is a product of matrices.
//
//     Einsum(a, b)  ->  Transpose(Reshape(MatMul(Reshape(Transpose(a)), Reshape(Transpose(b)))))
//
// The labels are in four groups: those of both operands and the result number the matrices; those of one
// operand and the result are rows (of the left one) and columns; those of both operands only are summed. The
// left operand is the one with the result's first label that isn't a matrix's number, so that the result
// mostly needs no Transpose. Transposes of constants are folded, others are left out where the labels lie in
// order, and other passes know what to do with the rest; the loops that write an Einsum know nothing of
// register tiles.
//
// What stays an Einsum: repeated labels of an operand, labels of one operand alone, products without a sum,
// extents of 1 against others, extents that aren't numbers.
#include <algorithm>

#include "ops/products/einsum.h"
#include "passes/builder.h"
#include "passes/passes.h"

namespace sinter {
namespace {

using Labels = Einsum::Labels;

bool has(const Labels& l, int label) { return std::find(l.begin(), l.end(), label) != l.end(); }

class Product {
 public:
  Product(Graph& g, Node* n) : g_(g), n_(n) {}

  bool lower() {
    if (!is_op(n_, "Einsum") || n_->inputs.size() != 2 || !is_float(n_->outputs[0]->type.dtype)) return false;
    if (!read_labels() || sums_.empty() || rows_.size() + columns_.size() == 0) return false;
    Builder make(g_, n_);
    // Without matrices to number, the rows may be several axes.
    Value* a = operand(make, left_, {numbers_, rows_, sums_}, numbers_.empty() ? rows_.size() : 1);
    Value* b = operand(make, 1 - left_, {numbers_, sums_, columns_}, 1);
    Value* y = make("MatMul", {a, b});
    Labels order = numbers_;
    order.insert(order.end(), rows_.begin(), rows_.end());
    order.insert(order.end(), columns_.begin(), columns_.end());
    y = reshaped(make, y, extents(order), "shape");
    y = transposed(make, y, order, result_);
    take_output(y->producer, 0, n_, 0);
    return true;
  }

 private:
  bool read_labels() {
    std::vector<int64_t> ranks;
    for (const Value* v : n_->inputs) ranks.push_back(static_cast<int64_t>(v->type.shape.size()));
    const Einsum q = parse_einsum(n_->attributes.text("equation", ""), ranks);
    operands_ = q.operands, result_ = q.output;
    for (size_t k = 0; k < 2; ++k)
      for (size_t d = 0; d < operands_[k].size(); ++d)
        if (!add(operands_[k][d], n_->inputs[k]->type.shape[d], k)) return false;
    for (const int l : result_) {
      if (has(operands_[0], l) && has(operands_[1], l)) numbers_.push_back(l);
    }
    const auto first = std::find_if(result_.begin(), result_.end(), [&](int l) { return !has(numbers_, l); });
    left_ = first != result_.end() && !has(operands_[0], *first) ? 1 : 0;
    for (const int l : result_)
      if (!has(numbers_, l)) (has(operands_[left_], l) ? rows_ : columns_).push_back(l);
    // In the order of the operand that isn't constant.
    const size_t leading = n_->inputs[left_]->is_constant() ? 1 - left_ : left_;
    for (const int l : operands_[leading])
      if (!has(result_, l)) sums_.push_back(l);
    for (const Labels& labels : operands_)
      for (const int l : labels)
        if (!has(result_, l) && !(has(operands_[0], l) && has(operands_[1], l))) return false;
    return true;
  }

  // Notes the extent of an operand's label; false where this is no product of matrices.
  bool add(int label, const Dim& extent, size_t operand) {
    const Labels& own = operands_[operand];
    if (!extent.is_static() || std::count(own.begin(), own.end(), label) != 1) return false;
    const auto [at, added] = extents_.emplace(label, extent.value());
    return added || at->second == extent.value();
  }

  std::vector<int64_t> extents(const Labels& labels) const {
    std::vector<int64_t> e;
    for (const int l : labels) e.push_back(extents_.at(l));
    return e;
  }

  Value* transposed(Builder& make, Value* v, const Labels& from, const Labels& to) {
    if (from == to) return v;
    std::vector<int64_t> perm;
    for (const int l : to) perm.push_back(std::find(from.begin(), from.end(), l) - from.begin());
    return make("Transpose", {v}, {{"perm", perm}});
  }
  Value* reshaped(Builder& make, Value* v, const std::vector<int64_t>& shape, const char* name) {
    const Shape& now = v->type.shape;
    const bool same = std::equal(now.begin(), now.end(), shape.begin(), shape.end(),
                                 [](const Dim& d, int64_t extent) { return d.is(extent); });
    return same ? v : make("Reshape", {v, make.integers(name, shape)}, {{"allowzero", int64_t{1}}});
  }

  // An operand as matrices: its labels in the order of `groups` (numbers, rows, columns), the last two as one
  // axis each, but for rows as `row_axes` axes.
  Value* operand(Builder& make, size_t k, const std::vector<Labels>& groups, size_t row_axes) {
    Labels order;
    for (const Labels& group : groups) order.insert(order.end(), group.begin(), group.end());
    Value* v = transposed(make, n_->inputs[k], operands_[k], order);
    std::vector<int64_t> shape = extents(groups[0]);
    const auto flat = [&](const Labels& labels) {
      int64_t n = 1;
      for (const int64_t e : extents(labels)) n *= e;
      shape.push_back(n);
    };
    if (row_axes > 1) {
      const std::vector<int64_t> rows = extents(groups[1]);
      shape.insert(shape.end(), rows.begin(), rows.end());
    } else {
      flat(groups[1]);
    }
    flat(groups[2]);
    return reshaped(make, v, shape, k == left_ ? "left" : "right");
  }

  Graph& g_;
  Node* n_;
  std::vector<Labels> operands_;
  std::map<int, int64_t> extents_;
  Labels result_, numbers_, rows_, columns_, sums_;
  size_t left_ = 0;
};

}  // namespace

bool lower_einsum(Graph& g, const PassOptions&) {
  bool changed = false;
  for (Node* n : snapshot(g)) changed |= Product(g, n).lower();
  g.erase_unused();
  return changed;
}

}  // namespace sinter
