// fuse_attention: attention written out as single operators becomes the operator Attention.
//
//   scores = MatMul(q, k^T) [* scale, / scale] [+ mask] [Where(mask, scores, -inf)]
//   y = MatMul(Softmax(scores), v), or its transpose MatMul(v^T, Softmax(scores)^T)
//
// The scale may stand at q, at k, at both or at the scores (before the mask); k^T may be a Transpose of its
// own, part of the one that splits heads, or one between two Reshapes. Tensors of three axes are the heads of
// one batch. Transposes that put heads in front of positions are taken in (positions_first), as are repeated
// heads of keys and values (Unsqueeze, Expand, Reshape). A constant mask that is a lower triangle becomes
// is_causal. A row that is masked as a whole stays NaN, as Softmax has it, unless a Where puts zeros there.
//
// Masks become one that is added to the scores, in their order: an Add adds, a Where takes its number for
// what the masks before it say. The number must be so low that adding it to any score gives the number: a row
// of nothing else is uniform then, as the model has it.
//
// Nothing between q k^T and y may be used elsewhere. Every Softmax that stays gets the attribute
// `no_attention`, which says why. The operator rounds in other places, so not with `exact`.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "ops/sequences/attention.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

using Perm = std::vector<int64_t>;

// A factor of attention, without the Transposes and scales that stood before it.
struct Factor {
  Value* value = nullptr;
  bool positions_first = false;
  double scale = 1;
};

// One step between the scores and the Softmax: a mask that is added, or a Where that puts `fill` for scores.
struct Masking {
  Value* mask;                 // what is added, or the condition
  std::optional<double> fill;  // none: it is added
  bool where_true = false;     // the scores stand where the condition is false
};

class Matcher {
 public:
  Matcher(Graph& g, const Order& order) : g_(g), order_(order) {}
  // Null where it has become Attention, else the condition that failed.
  const char* fuse(Node* softmax);

 private:
  Node* maker(const Value* v, const char* op) const {
    return v && is_op(v->producer, op) && order_.has(v->producer) ? v->producer : nullptr;
  }
  // What repeats elements along an axis of one.
  Node* repeater(const Value* v) const {
    Node* n = maker(v, "Expand");
    return n ? n : maker(v, "Tile");
  }
  Node* only_user(const Value* v) const {
    return v->users.size() == 1 && !g_.is_output(v) && order_.has(v->users[0]) ? v->users[0] : nullptr;
  }
  bool private_to_chain(const Value* v) const { return v->users.size() == 1 && !g_.is_output(v); }
  Value* scaled(Value* v, double& scale) const;
  Factor peel(Value* v, bool transposed);
  Value* without_flat_transpose(Value* v);
  Value* without_repeats(Value* v, const Dim& heads) const;
  const char* walk_scores(Value* v);
  const char* take_mask(Node* n, Value* mask);
  const char* take_where(Node* n, bool scores_second);
  const char* check_fills(DType t) const;
  bool leads_to_product(const Value* v) const;
  const char* check_mask(const Value* mask, const Shape& scores) const;
  bool is_lower_triangle(const Masking& m) const;
  double number_for(double fill, DType t) const;
  Value* as_numbers(Value* mask, DType t);
  Value* joined_masks(DType t);
  Value* make(const char* op, std::vector<Value*> inputs, const std::string& name, Attributes a = {});
  Value* widened(Value* v);
  void build();

  Graph& g_;
  const Order& order_;
  // weigh_: the product with the values; new nodes go before it. last_: the node whose output is y.
  Node *softmax_ = nullptr, *product_ = nullptr, *weigh_ = nullptr, *last_ = nullptr;
  std::vector<Node*> parts_;
  std::vector<Masking> masks_;  // the Softmax's side first
  double scale_ = 1;
  bool nan_rows_ = true, y_positions_first_ = false;
  bool turned_ = false;  // y is the product's transpose
  Factor q_, k_, v_;
};

// v without a multiplication by one number or a division by one.
Value* Matcher::scaled(Value* v, double& scale) const {
  if (Node* n = maker(v, "Mul")) {
    for (size_t i = 0; i < 2; ++i)
      if (const auto c = uniform_of(n->inputs[i]);
          c && n->inputs[1 - i]->type == v->type && std::isfinite(*c)) {
        scale *= *c;
        return n->inputs[1 - i];
      }
  } else if (Node* d = maker(v, "Div")) {
    if (const auto c = uniform_of(d->inputs[1]);
        c && *c != 0 && d->inputs[0]->type == v->type && std::isfinite(*c)) {
      scale /= *c;
      return d->inputs[0];
    }
  }
  return nullptr;
}

// [B,H,D,S] that is Reshape(Transpose(Reshape([B,H,S,D]), 0, 2, 1)): the value before, or its Reshape's input
// where that repeats heads; null otherwise.
Value* Matcher::without_flat_transpose(Value* v) {
  Node* outer = maker(v, "Reshape");
  Node* turn = outer && v->type.shape.size() == 4 ? maker(outer->inputs[0], "Transpose") : nullptr;
  if (!turn || transpose_perm(*turn) != Perm{0, 2, 1}) return nullptr;
  const Shape &out = v->type.shape, &flat = turn->outputs[0]->type.shape;
  if (!same_extent(g_, flat[1], out[2]) || !same_extent(g_, flat[2], out[3])) return nullptr;
  const Shape want{out[0], out[1], out[3], out[2]};
  if (Node* inner = maker(turn->inputs[0], "Reshape")) {
    Value* base = inner->inputs[0];
    if (same_shape(g_, base->type.shape, want)) return base;
    const Shape& s = base->type.shape;
    const bool repeats = s.size() == 5 && same_extent(g_, s[0], out[0]) &&
                         same_extent(g_, s[1] * s[2], out[1]) && same_extent(g_, s[3], out[3]) &&
                         same_extent(g_, s[4], out[2]);
    if (repeats && repeater(base)) return base;
  }
  const auto target = reshape_target(turn->inputs[0]->type.shape, want);
  if (!target) return nullptr;
  return make("Reshape", {turn->inputs[0], constant_integers(g_, v->name + "/heads", *target)}, "/keys");
}

// [B,H,S,D] or [B,G,R,S,D] that repeats each of G heads R times: the value with G heads; null otherwise.
Value* Matcher::without_repeats(Value* v, const Dim& heads) const {
  if (Node* flat = v->type.shape.size() == 4 ? maker(v, "Reshape") : nullptr) v = flat->inputs[0];
  Node* repeats = repeater(v);
  if (!repeats || v->type.shape.size() != 5) return nullptr;
  const Value* single = repeats->inputs[0];
  const Shape &s = single->type.shape, &wide = v->type.shape;
  if (s.size() != 5 || !s[2].is(1) || !same_extent(g_, wide[1] * wide[2], heads)) return nullptr;
  for (size_t a : {0u, 1u, 3u, 4u})
    if (!same_extent(g_, s[a], wide[a])) return nullptr;
  for (const char* op : {"Unsqueeze", "Reshape"})
    if (Node* view = maker(single, op))
      if (same_shape(g_, view->inputs[0]->type.shape, {s[0], s[1], s[3], s[4]})) return view->inputs[0];
  return nullptr;
}

// v, which is [.., heads, positions, elements] (or with the last two swapped: `transposed`), without what
// stands before it. The result's value is null where k^T needs a Transpose of its own.
Factor Matcher::peel(Value* v, bool transposed) {
  const size_t rank = v->type.shape.size();
  Perm now(rank);  // v = Transpose(value, now)
  for (size_t i = 0; i < rank; ++i) now[i] = static_cast<int64_t>(i);
  Perm straight = now, swapped = now;
  std::swap(swapped[rank - 3], swapped[rank - 2]);
  if (transposed) {
    std::swap(straight[rank - 2], straight[rank - 1]);
    swapped = now;
    // elements last, then positions before heads: [h, e, s] of [s, h, e]
    swapped[rank - 3] = static_cast<int64_t>(rank) - 2;
    swapped[rank - 2] = static_cast<int64_t>(rank) - 1;
    swapped[rank - 1] = static_cast<int64_t>(rank) - 3;
  }
  Factor best, f{v, false, 1};
  for (int steps = 0; steps < 16; ++steps) {
    if (now == straight) best = {f.value, false, f.scale};
    if (now == swapped) best = {f.value, true, f.scale};
    if (Value* x = scaled(f.value, f.scale)) {
      f.value = x;
      continue;
    }
    if (Node* t = maker(f.value, "Transpose")) {
      const Perm inner = transpose_perm(*t);
      Perm joined(rank);
      for (size_t i = 0; i < rank; ++i) joined[i] = inner[static_cast<size_t>(now[i])];
      now = joined;
      f.value = t->inputs[0];
      continue;
    }
    bool identity = true;
    for (size_t i = 0; i < rank; ++i) identity = identity && now[i] == static_cast<int64_t>(i);
    Value* x = transposed && rank == 4 && identity ? without_flat_transpose(f.value) : nullptr;
    if (!x || x->type.shape.size() != 4) {
      if (x) best = {x, false, f.scale};  // five axes: the caller takes the repeats off
      break;
    }
    f.value = x;
    now = straight;
  }
  return best;
}

bool Matcher::leads_to_product(const Value* v) const {
  for (int steps = 0; v && steps < 16; ++steps) {
    if (maker(v, "MatMul")) return private_to_chain(v) && v->type == softmax_->inputs[0]->type;
    Node* n = v->producer;
    if (!n || !order_.has(n) || !(is_op(n, "Mul") || is_op(n, "Div") || is_op(n, "Add") || is_op(n, "Where")))
      return false;
    const Value* next = nullptr;
    for (const Value* in : n->inputs)
      if (in->type == v->type && !in->data &&
          (maker(in, "MatMul") || maker(in, "Mul") || maker(in, "Div") || maker(in, "Add") ||
           maker(in, "Where")))
        if (!next || maker(in, "MatMul")) next = in;
    v = next;
  }
  return false;
}

const char* Matcher::take_mask(Node* n, Value* mask) {
  if (scale_ != 1) return "its scale stands behind the mask";
  masks_.push_back({mask, std::nullopt});
  parts_.push_back(n);
  return nullptr;
}

// Where(condition, scores, number) or Where(condition, number, scores).
const char* Matcher::take_where(Node* n, bool scores_second) {
  if (scale_ != 1) return "its scale stands behind the mask";
  const auto fill = uniform_of(n->inputs[scores_second ? 1 : 2]);
  // So far below that its weight beside any score is 0.
  if (!fill || !(*fill <= (n->outputs[0]->type.dtype == DType::kF64 ? -1e18 : -1e9)))
    return "what stands for masked scores is not a number far below them";
  masks_.push_back({n->inputs[0], fill, scores_second});
  parts_.push_back(n);
  return nullptr;
}

// Numbers of Wheres may become others as long as their order is the same, but not beside masks that are
// added: which is the greater then depends on the numbers. Those must swallow the scores as they are.
const char* Matcher::check_fills(DType t) const {
  const auto added = [](const Masking& m) { return !m.fill; };
  const auto near = [&](const Masking& m) { return m.fill && *m.fill > (t == DType::kF64 ? -1e60 : -1e30); };
  if (std::any_of(masks_.begin(), masks_.end(), added) && std::any_of(masks_.begin(), masks_.end(), near))
    return "a mask is added beside a number for masked scores that is not far enough below them";
  return nullptr;
}

// From the Softmax's input down to the product of q and k^T.
const char* Matcher::walk_scores(Value* v) {
  for (int steps = 0; steps < 16; ++steps) {
    if (!private_to_chain(v)) return "its scores are used elsewhere";
    if (Node* n = maker(v, "MatMul")) {
      product_ = n;
      parts_.push_back(n);
      return nullptr;
    }
    if (Value* x = scaled(v, scale_)) {
      parts_.push_back(v->producer);
      v = x;
      continue;
    }
    Node* n = v->producer;
    if (Node* sum = maker(v, "Add")) {
      const size_t side = leads_to_product(sum->inputs[0]) ? 0 : 1;
      if (!leads_to_product(sum->inputs[side])) return "its scores do not come from a MatMul";
      if (const char* why = take_mask(sum, sum->inputs[1 - side])) return why;
      v = sum->inputs[side];
    } else if (Node* where = maker(v, "Where")) {
      const size_t side = leads_to_product(where->inputs[1]) ? 1 : 2;
      if (!leads_to_product(where->inputs[side])) return "its scores do not come from a MatMul";
      if (const char* why = take_where(where, side == 2)) return why;
      v = n->inputs[side];
    } else {
      return "its scores do not come from a MatMul";
    }
  }
  return "its scores are too long a chain";
}

Value* Matcher::make(const char* op, std::vector<Value*> inputs, const std::string& name, Attributes a) {
  Value* out = g_.add_value(softmax_->name + name, {});
  Node* n = g_.add_node(find_op("", op), out->name, std::move(inputs), {out}, weigh_);
  n->attributes = std::move(a);
  n->sources = softmax_->sources;
  infer(g_, *n);
  return out;
}

const char* Matcher::check_mask(const Value* mask, const Shape& scores) const {
  const Shape& m = mask->type.shape;
  if (m.empty() || m.size() > scores.size()) return "the shape of its mask";
  if (!same_extent(g_, m.back(), scores.back())) return "its mask has another number of keys";
  for (size_t a = 0; a + 1 < m.size(); ++a)
    if (!m[a].is(1) && !same_extent(g_, m[a], scores[scores.size() - m.size() + a]))
      return "its mask broadcasts by an extent that is open";
  return nullptr;
}

// Keys up to the query's own position, for as many keys as queries.
bool Matcher::is_lower_triangle(const Masking& masking) const {
  if (!masking.mask->data || masking.mask->data->rank() < 2) return false;
  const Tensor& m = *masking.mask->data;
  const int64_t n = m.dim(m.rank() - 1);
  if (m.dim(m.rank() - 2) != n || m.size() != n * n) return false;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const double v = m.real(i * n + j);
      const bool in = masking.fill ? (v == 0) == masking.where_true : v == 0,
                 out = masking.fill ? !in : v <= -1e8;
      if (!(j <= i ? in : out)) return false;
    }
  return true;
}

Tensor number_tensor(double v, DType t) {
  Tensor number(t, {});
  number.set_real(0, v);
  return number;
}
double lowest_of(DType t) {
  if (t == DType::kF64) return std::numeric_limits<double>::lowest();
  return t == DType::kBF16 ? -0x1.fep127 : static_cast<double>(std::numeric_limits<float>::lowest());
}

// What is added in place of a Where's number: the lowest one, half of it for the second lowest, and so on.
double Matcher::number_for(double fill, DType t) const {
  std::set<double> lower;
  for (const Masking& m : masks_) {
    if (!m.fill) return fill;
    if (std::isfinite(*m.fill) && *m.fill < fill) lower.insert(*m.fill);
  }
  return std::isinf(fill) ? fill : std::ldexp(lowest_of(t), -static_cast<int>(lower.size()));
}

Value* Matcher::as_numbers(Value* mask, DType t) {
  const auto number = [&](const char* name, double v) {
    return g_.add_constant(softmax_->name + name, number_tensor(v, t));
  };
  if (!mask) return number("/zero", 0);
  if (mask->type.dtype != DType::kBool) return mask;
  return make("Where", {mask, number("/zero", 0), number("/none", -std::numeric_limits<double>::infinity())},
              "/mask");
}

// All masks as one: what is added, or true where a key takes part; null where there are none.
Value* Matcher::joined_masks(DType t) {
  Value* all = nullptr;
  for (size_t i = masks_.size(); i-- > 0;) {
    const Masking& m = masks_[i];
    if (!m.fill) {
      all = all ? make("Add", {as_numbers(all, t), m.mask}, "/masks") : m.mask;
    } else if (std::isinf(*m.fill) && (!all || all->type.dtype == DType::kBool)) {
      Value* in = m.where_true ? make("Not", {m.mask}, "/allowed") : m.mask;
      all = all ? make("And", {all, in}, "/masks") : in;
    } else {
      Value* before = as_numbers(all, t);
      Value* fill = g_.add_constant(softmax_->name + "/fill", number_tensor(number_for(*m.fill, t), t));
      all = make("Where", {m.mask, m.where_true ? fill : before, m.where_true ? before : fill}, "/mask");
    }
  }
  return all;
}

const char* Matcher::fuse(Node* softmax) {
  softmax_ = softmax;
  parts_.clear();
  masks_.clear();
  scale_ = 1;
  nan_rows_ = true;
  y_positions_first_ = false;
  const int64_t rank = static_cast<int64_t>(softmax->inputs[0]->type.shape.size());
  const int64_t axis = softmax->attributes.integer("axis", -1);
  if (rank != 3 && rank != 4) return "its scores have not three or four axes";
  if (axis != -1 && axis != rank - 1) return "it is not along the last axis";
  if (!is_float(softmax->inputs[0]->type.dtype)) return "its scores are no floats";
  if (!softmax->has_output(0)) return "nobody uses it";
  // Forward: [Where(IsNaN(p), 0, p)], MatMul with the values.
  Value* p = softmax->outputs[0];
  std::vector<Node*> behind;
  if (p->users.size() == 2 && !g_.is_output(p)) {
    for (size_t i = 0; i < 2; ++i) {
      Node *test = p->users[i], *where = p->users[1 - i];
      if (!is_op(test, "IsNaN") || !is_op(where, "Where") || only_user(test->outputs[0]) != where) continue;
      if (where->inputs[0] != test->outputs[0] || where->inputs[2] != p ||
          uniform_of(where->inputs[1]) != 0.0)
        continue;
      behind = {test, where};
      nan_rows_ = false;
    }
    if (!behind.empty()) p = behind.back()->outputs[0];
  }
  // The product with the values, or its transpose: MatMul(v^T, p^T).
  Node* weigh = only_user(p);
  Perm swap = rank == 3 ? Perm{0, 2, 1} : Perm{0, 1, 3, 2};
  turned_ = weigh && is_op(weigh, "Transpose") && transpose_perm(*weigh) == swap;
  if (turned_) {
    behind.push_back(weigh);
    p = weigh->outputs[0];
    weigh = only_user(p);
  }
  const size_t side = turned_ ? 0 : 1;  // where the values are
  if (!weigh || !is_op(weigh, "MatMul") || weigh->inputs[1 - side] != p || weigh->inputs[side] == p ||
      !weigh->has_output(0))
    return "its result does not go to a MatMul alone";
  weigh_ = weigh;
  const Shape& values = weigh->inputs[side]->type.shape;
  if (static_cast<int64_t>(values.size()) != rank) return "its values have another number of axes";
  if (const char* why = walk_scores(softmax->inputs[0])) return why;
  const Shape &scores = product_->outputs[0]->type.shape, &q = product_->inputs[0]->type.shape,
              &k = product_->inputs[1]->type.shape;
  if (!same_shape(g_, scores, softmax->inputs[0]->type.shape)) return "its mask widens the scores";
  if (q.size() != scores.size() || k.size() != scores.size())
    return "its factors have another number of axes";
  for (size_t a = 0; a + 2 < scores.size(); ++a)
    if (!same_extent(g_, q[a], k[a]) || !same_extent(g_, q[a], values[a]))
      return "its factors broadcast along the batch or the heads";
  for (const Masking& m : masks_)
    if (const char* why = check_mask(m.mask, scores)) return why;
  if (const char* why = check_fills(softmax->inputs[0]->type.dtype)) return why;
  q_ = peel(product_->inputs[0], false);
  k_ = peel(product_->inputs[1], true);
  v_ = peel(weigh->inputs[side], turned_);
  if (v_.scale != 1) v_ = turned_ ? Factor{} : Factor{weigh->inputs[side], false, 1};
  Attributes swapping;
  swapping.set("perm", swap);
  if (!k_.value) k_.value = make("Transpose", {product_->inputs[1]}, "/keys", swapping);
  if (!v_.value) v_.value = make("Transpose", {weigh->inputs[side]}, "/values", swapping);
  // Shared heads: keys and values are repeated alike.
  if (rank == 4 && !k_.positions_first && !v_.positions_first) {
    Value *of_k = without_repeats(k_.value, scores[1]), *of_v = without_repeats(v_.value, scores[1]);
    if (of_k && of_v && of_k->type.shape[1].is_static() && scores[1].is_static() &&
        of_k->type.shape[1] == of_v->type.shape[1]) {
      const double scale = k_.scale;
      k_ = peel(of_k, false);
      k_.scale *= scale;
      const Factor v = peel(of_v, false);
      v_ = v.scale == 1 ? v : Factor{of_v, false, 1};
    }
  }
  if (k_.value->type.shape.size() != scores.size() || v_.value->type.shape.size() != scores.size())
    return "its keys are repeated, its values not";
  // The attribute is a float32.
  const double scale = scale_ * q_.scale * k_.scale;
  if (softmax->inputs[0]->type.dtype == DType::kF64 &&
      static_cast<double>(static_cast<float>(scale)) != scale)
    return "its scale needs more digits than a float32 has";
  if (!std::isfinite(static_cast<float>(scale))) return "its scale is beyond a float32";
  parts_.push_back(softmax);
  parts_.insert(parts_.end(), behind.begin(), behind.end());
  parts_.push_back(weigh);
  last_ = weigh;
  const Perm back = rank == 3 ? Perm{1, 0, 2} : Perm{0, 2, 1, 3};
  if (Node* t = turned_ ? nullptr : only_user(weigh->outputs[0]);
      t && is_op(t, "Transpose") && transpose_perm(*t) == back) {
    parts_.push_back(t);
    last_ = t;
    y_positions_first_ = true;
  }
  build();
  return nullptr;
}

// [heads, positions, elements] as one batch.
Value* Matcher::widened(Value* v) {
  if (v->type.shape.size() == 4) return v;
  return make("Unsqueeze", {v, constant_integers(g_, v->name + "/axes", {0})}, "/batch");
}

void Matcher::build() {
  const bool flat = product_->outputs[0]->type.shape.size() == 3;
  scale_ *= q_.scale * k_.scale;
  const bool causal = masks_.size() == 1 && is_lower_triangle(masks_[0]);
  Value* mask = causal ? nullptr : joined_masks(softmax_->inputs[0]->type.dtype);
  std::vector<Value*> inputs{widened(q_.value), widened(k_.value), widened(v_.value)};
  if (mask) inputs.push_back(mask);
  Value* y = last_->outputs[0];
  const TensorType type = y->type;
  last_->outputs[0] = nullptr;
  y->producer = nullptr;
  Value* made = flat || turned_ ? g_.add_value(softmax_->name + "/heads", {}) : y;
  Node* n = g_.add_node(find_op("", "Attention"), softmax_->name, std::move(inputs), {made}, last_);
  n->attributes.set("scale", static_cast<float>(scale_));
  n->attributes.set("positions_first", std::vector<int64_t>{q_.positions_first, k_.positions_first,
                                                            v_.positions_first, y_positions_first_});
  if (causal) n->attributes.set("is_causal", int64_t{1});
  if (nan_rows_) n->attributes.set("nan_rows", int64_t{1});
  for (const Node* part : parts_) add_sources(*n, *part);
  infer(g_, *n);
  const auto behind = [&](const char* op, std::vector<Value*> in, Value* out) {
    Node* view = g_.add_node(find_op("", op), out->name, std::move(in), {out}, last_);
    if (turned_ && out == y) view->attributes.set("perm", flat ? Perm{0, 2, 1} : Perm{0, 1, 3, 2});
    view->sources = n->sources;
    infer(g_, *view);
  };
  if (flat) {
    Value* out = turned_ ? g_.add_value(softmax_->name + "/batch", {}) : y;
    behind("Squeeze", {made, constant_integers(g_, y->name + "/axes", {0})}, out);
    made = out;
  }
  if (turned_) behind("Transpose", {made}, y);
  y->type = type;
}

// Transposes that put heads in front of positions, around an Attention of the model's own.
bool take_in_transposes(Graph& g, Node* n) {
  if (n->inputs[kQ]->type.shape.size() != 4) return false;
  const Perm swap{0, 2, 1, 3};
  std::vector<int64_t> flags = n->attributes.integers("positions_first", {0, 0, 0, 0});
  bool changed = false;
  for (size_t i : {kQ, kK, kV}) {
    Node* t = n->inputs[i]->producer;
    if (flags[i] || !t || !is_op(t, "Transpose") || transpose_perm(*t) != swap) continue;
    add_sources(*n, *t);
    g.set_input(n, i, t->inputs[0]);
    flags[i] = 1;
    changed = true;
  }
  Value* y = n->outputs[kY];
  Node* t = !flags[3] && y && y->users.size() == 1 && !g.is_output(y) ? y->users[0] : nullptr;
  if (t && is_op(t, "Transpose") && transpose_perm(*t) == swap && t->has_output(0)) {
    add_sources(*n, *t);
    take_output(n, kY, t, 0);
    flags[3] = 1;
    changed = true;
  }
  if (changed) n->attributes.set("positions_first", flags);
  return changed;
}

}  // namespace

bool fuse_attention(Graph& g, const PassOptions& options) {
  bool changed = false;
  for (Node* n : snapshot(g))
    if (is_op(n, "Attention")) changed |= take_in_transposes(g, n);
  g.erase_unused();  // so that no Softmax is erased below but the one at hand
  std::vector<Node*> all;
  for (Node* n : snapshot(g))
    if (is_op(n, "Softmax")) all.push_back(n);
  std::optional<Order> order;  // as the graph is since the last match
  for (Node* n : all) {
    if (options.exact) {
      n->attributes.set("no_attention", std::string("other roundings are not allowed"));
      continue;
    }
    if (!order) order.emplace(g);
    if (const char* why = Matcher(g, *order).fuse(n)) {
      n->attributes.set("no_attention", std::string(why));
      continue;
    }
    changed = true;
    order.reset();
    g.erase_unused();
  }
  return changed;
}

}  // namespace sinter
