// fuse_rotary: rotary position embedding written out as arithmetic becomes the operator RotaryEmbedding.
//
//   y = x * cos + concat(-x2, x1) * sin                     an angle for each element
//   y = concat(x1 * cos - x2 * sin, x2 * cos + x1 * sin)    an angle for each pair
//
// x1 and x2 are the halves of x's last axis, or its even and odd elements, which are then put together pair
// by pair. x is [batch, heads, positions, elements], with the middle axes the other way round, or without
// heads; cosines and sines are constants or computed and don't differ between heads. Where only the first
// elements of a head turn, the Concat with the others is taken in. A Transpose that put heads in front of
// positions is moved behind the operator, where attention takes it in.
//
// Nothing in between may be used elsewhere. The operator rounds in other places, so not with `exact`.
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

// Elements first, first + step, .. of the last axis of `of`.
struct Part {
  Value* of = nullptr;
  int64_t first = 0, step = 1;
};

// Two values as one: one behind the other, or pair by pair.
struct Joined {
  Value *low = nullptr, *high = nullptr;
  bool interleaved = false;
};

int64_t last_extent(const Value* v) {
  const Shape& s = v->type.shape;
  return !s.empty() && s.back().is_static() ? s.back().value() : -1;
}

// Shapes equal but for the last axis, of which there may be one more.
bool same_but_last(const Shape& a, const Shape& b, size_t axes) {
  return a.size() >= axes && b.size() >= axes &&
         std::equal(a.begin(), a.begin() + static_cast<ptrdiff_t>(axes), b.begin());
}

class Matcher {
 public:
  Matcher(Graph& g, const Order& order) : g_(g), order_(order) {}
  bool fuse(Node* n) { return (match_sum(n) || match_pairs(n)) && build(); }

 private:
  Node* maker(const Value* v, const char* op) const {
    return v && is_op(v->producer, op) && order_.has(v->producer) ? v->producer : nullptr;
  }
  // The same, for what goes away with the match: used `uses` times in it and nowhere else.
  Node* own(const Value* v, const char* op, size_t uses = 1) const {
    return v && v->users.size() == uses && !g_.is_output(v) ? maker(v, op) : nullptr;
  }
  bool at_last_axis(const Node* n, int64_t axis) const;
  Part slice_of(const Value* v);
  Part split_of(const Value* v);
  Part gather_of(const Value* v);
  Part part_of(const Value* v, size_t uses);
  Value* negated(const Value* v);
  Joined joined(const Value* v);
  bool are_pairs(const Part& first, const Part& second, bool interleaved, int64_t half) const;
  bool match_sum(Node* n);
  bool match_pairs(Node* n);
  void take_in_rest();
  bool find_positions();
  bool fits(const Value* angles, size_t heads_axis, size_t positions_axis) const;
  bool used_by_match_only(const Value* v) const;
  std::optional<Tensor> halved(const Value* angles) const;
  Value* cache(Value* angles, bool half);
  Value* make(const char* op, std::vector<Value*> inputs, const char* name, Attributes a = {},
              Value* to = nullptr);
  bool build();

  Graph& g_;
  const Order& order_;
  Value *x_ = nullptr, *cosines_ = nullptr, *sines_ = nullptr;
  Node* last_ = nullptr;  // its output is y
  int64_t turned_ = 0;    // elements of a head, from the first one
  bool interleaved_ = false, full_ = false, heads_first_ = false;
  std::vector<Node*> parts_;
};

bool Matcher::at_last_axis(const Node* n, int64_t axis) const {
  return axis == -1 || axis + 1 == static_cast<int64_t>(n->inputs[0]->type.shape.size());
}

Part Matcher::slice_of(const Value* v) {
  Node* n = maker(v, "Slice");
  if (!n) return {};
  const auto starts = integers_of(n->input(1)), axes = integers_of(n->input(3)),
             steps = integers_of(n->input(4));
  const int64_t extent = last_extent(n->inputs[0]);
  if (!starts || starts->size() != 1 || !axes || !at_last_axis(n, (*axes)[0]) || extent < 0) return {};
  if (n->input(4) && (!steps || (*steps)[0] < 1)) return {};
  const int64_t start = (*starts)[0] < 0 ? (*starts)[0] + extent : (*starts)[0];
  if (start < 0 || start >= extent || last_extent(v) < 1) return {};
  parts_.push_back(n);
  return {n->inputs[0], start, steps ? (*steps)[0] : 1};
}

Part Matcher::split_of(const Value* v) {
  Node* n = maker(v, "Split");
  if (!n || !at_last_axis(n, n->attributes.integer("axis", 0))) return {};
  int64_t first = 0;
  for (const Value* y : n->outputs) {
    if (y == v) break;
    if (!y || last_extent(y) < 0) return {};
    first += last_extent(y);
  }
  parts_.push_back(n);
  return {n->inputs[0], first, 1};
}

// Element `index` of each pair: Gather from [.., pairs, 2].
Part Matcher::gather_of(const Value* v) {
  Node* n = maker(v, "Gather");
  if (!n || !at_last_axis(n, n->attributes.integer("axis", 0)) || !n->inputs[1]->type.shape.empty())
    return {};
  const auto index = integers_of(n->inputs[1]);
  Node* pairs = maker(n->inputs[0], "Reshape");
  if (!index || !pairs || last_extent(n->inputs[0]) != 2) return {};
  Value* of = pairs->inputs[0];
  const size_t rank = of->type.shape.size();
  if (n->inputs[0]->type.shape.size() != rank + 1 || last_extent(of) != 2 * last_extent(v)) return {};
  if (!same_but_last(of->type.shape, v->type.shape, rank - 1)) return {};
  parts_.insert(parts_.end(), {pairs, n});
  return {of, ((*index)[0] + 2) % 2, 2};
}

Part Matcher::part_of(const Value* v, size_t uses) {
  if (!v || v->users.size() != uses || g_.is_output(v)) return {};
  for (const Part& p : {slice_of(v), split_of(v), gather_of(v)})
    if (p.of) return p;
  return {};
}

Value* Matcher::negated(const Value* v) {
  Node* n = own(v, "Neg");
  if (n) parts_.push_back(n);
  return n ? n->inputs[0] : nullptr;
}

// What a Concat joins along the last axis; columns of one element each: pair by pair, [.., pairs, 2].
Joined Matcher::joined(const Value* v) {
  Node* n = maker(v, "Concat");
  if (!n || n->inputs.size() != 2 || !at_last_axis(n, n->attributes.integer("axis", 0))) return {};
  if (!(n->inputs[0]->type == n->inputs[1]->type)) return {};
  parts_.push_back(n);
  Joined pair{n->inputs[0], n->inputs[1], last_extent(n->inputs[0]) == 1 && last_extent(v) == 2};
  if (!pair.interleaved) return pair;
  for (Value** side : {&pair.low, &pair.high}) {
    Node* column = own(*side, "Unsqueeze");
    if (!column) column = own(*side, "Reshape");
    if (!column) return {};
    const Shape &in = column->inputs[0]->type.shape, &out = (*side)->type.shape;
    if (out.size() != in.size() + 1 || !same_but_last(in, out, in.size())) return {};
    parts_.push_back(column);
    *side = column->inputs[0];
  }
  return pair;
}

bool Matcher::are_pairs(const Part& first, const Part& second, bool interleaved, int64_t half) const {
  if (!first.of || first.of != second.of || first.first != 0) return false;
  const int64_t step = interleaved ? 2 : 1;
  return first.step == step && second.step == step && second.first == (interleaved ? 1 : half);
}

// x * cos + joined(-x2, x1) * sin
bool Matcher::match_sum(Node* n) {
  if (!is_op(n, "Add") || !n->has_output(0)) return false;
  for (size_t side = 0; side < 2; ++side)
    for (size_t i = 0; i < 4; ++i) {
      parts_.clear();
      Node *straight = own(n->inputs[side], "Mul"), *crossed = own(n->inputs[1 - side], "Mul");
      if (!straight || !crossed) return false;
      Value* turned = crossed->inputs[i & 1];
      x_ = straight->inputs[i >> 1];
      if (!(x_->type == n->outputs[0]->type) || !(turned->type == x_->type)) continue;
      if (turned->users.size() != 1 || g_.is_output(turned)) continue;
      Node* flat = own(turned, "Reshape");
      const Joined pair = joined(flat ? flat->inputs[0] : turned);
      if (pair.interleaved != (flat != nullptr)) continue;
      if (flat && (flat->inputs[0]->users.size() != 1 || g_.is_output(flat->inputs[0]))) continue;
      const Value* second = pair.low ? negated(pair.low) : nullptr;
      if (!second) continue;
      const int64_t half = last_extent(second);
      if (half < 1 || 2 * half != last_extent(x_)) continue;
      const Part a = part_of(pair.high, 1), b = part_of(second, 1);
      if (a.of != x_ || !are_pairs(a, b, pair.interleaved, half)) continue;
      cosines_ = straight->inputs[1 - (i >> 1)];
      sines_ = crossed->inputs[1 - (i & 1)];
      parts_.insert(parts_.end(), {straight, crossed, n});
      if (flat) parts_.push_back(flat);
      last_ = n;
      turned_ = 2 * half;
      interleaved_ = pair.interleaved;
      full_ = true;
      return true;
    }
  return false;
}

// joined(x1 * cos - x2 * sin, x2 * cos + x1 * sin)
bool Matcher::match_pairs(Node* n) {
  if (!is_op(n, "Concat") || !n->has_output(0)) return false;
  parts_.clear();
  const Value* y = n->outputs[0];
  const Joined pair = joined(y);
  if (!pair.low) return false;
  Node *low = own(pair.low, "Sub"), *high = own(pair.high, "Add");
  if (!low || !high) return false;
  Node *first = own(low->inputs[0], "Mul"), *second = own(low->inputs[1], "Mul");
  if (!first || !second) return false;
  for (size_t i = 0; i < 16; ++i) {
    Node *third = own(high->inputs[i & 1], "Mul"), *fourth = own(high->inputs[1 - (i & 1)], "Mul");
    if (!third || !fourth) return false;
    Value *x1 = first->inputs[i >> 1 & 1], *x2 = second->inputs[i >> 2 & 1];
    cosines_ = first->inputs[1 - (i >> 1 & 1)];
    sines_ = second->inputs[1 - (i >> 2 & 1)];
    const auto multiplies = [](const Node* m, const Value* a, const Value* b) {
      return (m->inputs[0] == a && m->inputs[1] == b) || (m->inputs[0] == b && m->inputs[1] == a);
    };
    if (!multiplies(third, x2, cosines_) || !multiplies(fourth, x1, sines_)) continue;
    const size_t before = parts_.size();
    const Part a = part_of(x1, 2), b = part_of(x2, 2);
    const int64_t half = last_extent(x1);
    const bool fits = half > 0 && are_pairs(a, b, pair.interleaved, half) && last_extent(a.of) == 2 * half;
    if (!fits) {
      parts_.resize(before);
      continue;
    }
    x_ = a.of;
    parts_.insert(parts_.end(), {first, second, third, fourth, low, high, n});
    last_ = n;
    if (pair.interleaved && y->users.size() == 1 && !g_.is_output(y) && order_.has(y->users[0]) &&
        is_op(y->users[0], "Reshape") && y->users[0]->has_output(0) &&
        y->users[0]->outputs[0]->type == x_->type)
      parts_.push_back(last_ = y->users[0]);
    turned_ = 2 * half;
    interleaved_ = pair.interleaved;
    full_ = false;
    return true;
  }
  return false;
}

// Concat(y, what is behind x in the same tensor).
void Matcher::take_in_rest() {
  const Value* y = last_->outputs[0];
  if (y->users.size() != 1 || g_.is_output(y) || !order_.has(y->users[0])) return;
  Node* n = y->users[0];
  if (!is_op(n, "Concat") || n->inputs.size() != 2 || n->inputs[0] != y || !n->has_output(0) ||
      !at_last_axis(n, n->attributes.integer("axis", 0)))
    return;
  const size_t before = parts_.size();
  const Part rest = part_of(n->inputs[1], 1),
             turned = used_by_match_only(x_) ? part_of(x_, x_->users.size()) : Part{};
  if (!turned.of || turned.of != rest.of || turned.first != 0 || rest.first != turned_ || turned.step != 1 ||
      rest.step != 1 || !(turned.of->type == n->outputs[0]->type)) {
    parts_.resize(before);
    return;
  }
  x_ = turned.of;
  last_ = n;
  parts_.push_back(n);
}

bool Matcher::used_by_match_only(const Value* v) const {
  return !g_.is_output(v) && std::all_of(v->users.begin(), v->users.end(), [&](const Node* user) {
    return std::find(parts_.begin(), parts_.end(), user) != parts_.end();
  });
}

// Whether angles lie along positions_axis of x, and along no heads.
bool Matcher::fits(const Value* angles, size_t heads_axis, size_t positions_axis) const {
  const Shape& s = x_->type.shape;
  Shape a = angles->type.shape;
  if (angles->type.dtype != x_->type.dtype || a.size() > s.size()) return false;
  a.insert(a.begin(), s.size() - a.size(), Dim(1));
  if (heads_axis != 0 && !a[heads_axis].is(1)) return false;
  return same_extent(g_, a[positions_axis], s[positions_axis]) &&
         a.back().is(full_ ? turned_ : turned_ / 2) && (a[0].is(1) || same_extent(g_, a[0], s[0]));
}

bool Matcher::find_positions() {
  const size_t rank = x_->type.shape.size();
  if (last_extent(x_) < 1 || !is_float(x_->type.dtype)) return false;
  const auto both = [&](size_t heads, size_t positions) {
    return fits(cosines_, heads, positions) && fits(sines_, heads, positions);
  };
  if (rank == 3) return heads_first_ = false, both(0, 1);
  if (rank != 4) return false;
  heads_first_ = both(1, 2);
  return heads_first_ || (x_->type.shape[2].is_static() && both(2, 1));
}

// One angle a pair, where constants have the same for both of its elements.
std::optional<Tensor> Matcher::halved(const Value* angles) const {
  if (!angles->data) return std::nullopt;
  const Tensor& t = *angles->data;
  std::vector<int64_t> shape = t.shape();
  const int64_t half = shape.back() / 2, rows = t.size() / shape.back();
  shape.back() = half;
  Tensor out(t.dtype(), shape);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < half; ++j) {
      const double a = t.real(r * 2 * half + (interleaved_ ? 2 * j : j)),
                   b = t.real(r * 2 * half + (interleaved_ ? 2 * j + 1 : j + half));
      if (!(a == b)) return std::nullopt;
      out.set_real(r * half + j, a);
    }
  return out;
}

Value* Matcher::make(const char* op, std::vector<Value*> inputs, const char* name, Attributes a, Value* to) {
  Value* out = to ? to : g_.add_value(last_->name + name, {});
  Node* n = g_.add_node(find_op("", op), to ? last_->name : out->name, std::move(inputs), {out}, last_);
  n->attributes = std::move(a);
  for (const Node* part : parts_) add_sources(*n, *part);
  infer(g_, *n);
  return out;
}

// Angles as [batch or 1, positions, angles].
Value* Matcher::cache(Value* angles, bool half) {
  if (half && full_) angles = g_.add_constant(angles->name + "/pairs", *halved(angles));
  const size_t rank = x_->type.shape.size(), missing = rank - angles->type.shape.size();
  const auto axes = [&](const std::vector<int64_t>& v) {
    return constant_integers(g_, last_->name + "/axes", v);
  };
  if (missing == 1 && rank == 4 && heads_first_) return angles;
  if (missing > 0) {
    std::vector<int64_t> added;
    for (size_t i = 0; i < missing; ++i) added.push_back(static_cast<int64_t>(i));
    angles = make("Unsqueeze", {angles, axes(added)}, "/angles");
  }
  return rank == 4 ? make("Squeeze", {angles, axes({heads_first_ ? 1 : 2})}, "/angles") : angles;
}

bool Matcher::build() {
  take_in_rest();
  if (!find_positions()) return false;
  const bool half = !full_ || (halved(cosines_) && halved(sines_));
  const Shape& s = x_->type.shape;
  Node* turn = heads_first_ && used_by_match_only(x_) ? maker(x_, "Transpose") : nullptr;
  if (turn && (transpose_perm(*turn) != std::vector<int64_t>{0, 2, 1, 3} || !s[1].is_static()))
    turn = nullptr;
  const bool flat = turn || !heads_first_;
  const int64_t heads = flat && s.size() == 4 ? s[turn ? 1 : 2].value() : 1, head = s.back().value();
  if (heads < 1) return false;
  std::vector<Value*> inputs{x_, cache(cosines_, half), cache(sines_, half)};
  Attributes a;
  a.set("interleaved", int64_t{interleaved_});
  if (turned_ < head) a.set("rotary_embedding_dim", turned_);
  if (!half) a.set("full_angles", int64_t{1});
  if (flat) a.set("num_heads", heads);
  const auto shape = [&](const std::vector<int64_t>& to) {
    return constant_integers(g_, last_->name + "/shape", to);
  };
  const bool split = flat && s.size() == 4;
  if (turn) parts_.push_back(turn), inputs[0] = turn->inputs[0];
  if (split) inputs[0] = make("Reshape", {inputs[0], shape({0, 0, heads * head})}, "/rows");
  const Shape wanted = s;
  Value* y = last_->outputs[0];
  const TensorType type = y->type;
  const bool pairs = !(type.shape.size() == wanted.size());  // [.., pairs, 2] is another view of it
  last_->outputs[0] = nullptr;
  y->producer = nullptr;
  Value* made = make("RotaryEmbedding", inputs, "/turned", a, split || pairs ? nullptr : y);
  if (split)
    made = make("Reshape", {made, shape({0, 0, heads, head})}, "/heads", {}, turn || pairs ? nullptr : y);
  Attributes back;
  back.set("perm", std::vector<int64_t>{0, 2, 1, 3});
  if (turn) made = make("Transpose", {made}, "/heads", back, pairs ? nullptr : y);
  std::vector<int64_t> columns(wanted.size() - 1, 0);
  columns.insert(columns.end(), {head / 2, 2});
  if (pairs) make("Reshape", {made, shape(columns)}, "", {}, y);
  y->type = type;
  return true;
}

}  // namespace

bool fuse_rotary(Graph& g, const PassOptions& options) {
  if (options.exact) return false;
  return fuse_each<Matcher>(g);
}

}  // namespace sinter
