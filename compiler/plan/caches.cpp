// store_rows(): caches that have all their rows from the beginning.
//
// Where a growing state is what attention reads (its own past and present, or old and new rows joined by a
// Concat that attention alone reads), nobody needs the rows behind one another without gaps: the state gets
// as many rows as its bound says, TensorScatter writes the new ones at their place, and attention is told how
// many are valid. The state is updated in place then, as for any other TensorScatter.
#include <algorithm>
#include <set>

#include "ir/error.h"
#include "ops/sequences/attention.h"
#include "passes/builder.h"
#include "plan/growth.h"

namespace sinter {
namespace {

constexpr size_t kRows = 2;  // the axis of a cache's rows: [batch, heads, rows, elements]

class Caches {
 public:
  Caches(Graph& g, const StateLinks& links) : g_(g), links_(links) {}

  void store() {
    find_counts();
    read_counts();
    std::vector<Node*> nodes;
    for (const auto& n : g_.nodes) nodes.push_back(n.get());
    for (Node* n : nodes)
      if (is_op(n, "Attention") && !n->has_output(kScores) && find_own(*n)) store_own(*n);
    store_joined(nodes);
    store_scattered(nodes);
    g_.erase_unused();
    g_.sort();
  }

 private:
  struct Cache {
    size_t link;
    Value* past;
    const Symbol* rows;
  };

  void find_counts() {
    for (const StateLink& l : links_)
      if (const std::optional<RowCount> c = row_count(g_, l))
        counts_[c->rows.get()] = {g_.inputs[l.input], g_.outputs[l.output]};
  }

  // What asks a cache for its extents is told the rows by their count: the cache will have more.
  void read_counts() {
    std::vector<Node*> asking;
    for (const auto& n : g_.nodes)
      if (is_op(n.get(), "Shape") && is_cache(n->inputs[0])) asking.push_back(n.get());
    for (Node* n : asking) {
      // A copy: the value that is told may be the one that counts.
      const std::vector<Dim> extents = n->outputs[0]->elements;
      Builder b(g_, n);
      if (Value* told = extents.empty() ? nullptr : tell(b, extents))
        if (told->producer != n) g_.replace_uses(n->outputs[0], told);
    }
    g_.sort();
    g_.erase_unused();
  }
  // Extents from constants, counts and other inputs; null where one is in the caches alone, or none is a
  // count.
  Value* tell(Builder& b, const std::vector<Dim>& extents) {
    std::vector<Value*> parts;
    bool counted = false;
    for (const Dim& d : extents) {
      Value* count = count_of(d);
      counted = counted || count;
      if (d.is_static()) count = b.integers("extent", {d.value()});
      if (!count) count = extent_of_input(b, d);
      if (!count) return nullptr;
      parts.push_back(count);
    }
    if (!counted) return nullptr;
    return parts.size() == 1 ? parts[0] : b("Concat", parts, {{"axis", int64_t{0}}});
  }
  Value* count_of(const Dim& d) const {
    for (const auto& [rows, count] : counts_)
      for (Value* told : {count.first, count.second})
        if (told->elements == std::vector<Dim>{d}) return told;
    return nullptr;
  }
  Value* extent_of_input(Builder& b, const Dim& extent) const {
    for (Value* v : g_.inputs) {
      if (is_cache(v)) continue;
      for (size_t d = 0; d < v->type.shape.size(); ++d)
        if (v->type.shape[d] == extent)
          return b("Shape", {v}, {{"start", static_cast<int64_t>(d)}, {"end", static_cast<int64_t>(d) + 1}});
    }
    return nullptr;
  }
  bool is_cache(const Value* v) const {
    return std::any_of(links_.begin(), links_.end(), [&](const StateLink& l) {
      return g_.inputs[l.input] == v || g_.outputs[l.output] == v;
    });
  }

  // The growing state whose input is `past` and whose output is `present`.
  std::optional<Cache> cache_of(const Value* past, const Value* present) const {
    if (!past || !present) return std::nullopt;
    for (size_t k = 0; k < links_.size(); ++k) {
      if (g_.inputs[links_[k].input] != past || g_.outputs[links_[k].output] != present) continue;
      const std::optional<Growth> growth = growth_of(g_, links_, links_[k]);
      const Shape& shape = past->type.shape;
      if (!growth || growth->axis != kRows || shape.size() != 4 || !counts_.count(growth->rows.get()))
        return std::nullopt;
      if (past->users.size() != 1 || g_.is_output(past)) return std::nullopt;
      if (std::count(g_.outputs.begin(), g_.outputs.end(), present) != 1) return std::nullopt;
      return Cache{k, g_.inputs[links_[k].input], growth->rows.get()};
    }
    return std::nullopt;
  }

  // Whether both caches of the node are states of its own past and present.
  bool find_own(const Node& n) {
    if (!n.has_output(kPresentKey) || !n.has_output(kPresentValue)) return false;
    if (!n.outputs[kPresentKey]->users.empty() || !n.outputs[kPresentValue]->users.empty()) return false;
    key_ = cache_of(n.input(kPastKey), n.outputs[kPresentKey]);
    value_ = cache_of(n.input(kPastValue), n.outputs[kPresentValue]);
    return key_ && value_ && key_->rows == value_->rows;
  }

  void store_own(Node& n) {
    const AttentionForm f = attention_form(n);
    Builder b(g_, &n);
    const bool flat = n.inputs[kQ]->type.shape.size() == 3;
    // What has the positions first as [batch, positions, heads, elements].
    const auto apart = [&](Value* v, const Dim& heads) {
      return flat ? b("Reshape", {v, b.integers("heads", {0, 0, heads.value(), -1})}) : v;
    };
    const auto heads_first = [&](Value* v, HeadLayout layout, const Dim& heads) {
      v = apart(v, heads);
      return layout == HeadLayout::kHeadsFirst
                 ? v
                 : b("Transpose", {v}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    };
    Value* rows = counts_.at(key_->rows).first;
    Value* keys = write(b, *key_, heads_first(n.inputs[kK], f.k, f.kv_heads), rows, n.outputs[kPresentKey]);
    Value* values =
        write(b, *value_, heads_first(n.inputs[kV], f.v, f.kv_heads), rows, n.outputs[kPresentValue]);
    Value* q = apart(n.inputs[kQ], f.q_heads);
    set_layouts(n, f.q, HeadLayout::kHeadsFirst, HeadLayout::kHeadsFirst, f.y);
    Value* valid = n.input(kValidKeys) ? n.inputs[kValidKeys] : valid_rows(b, *key_);
    g_.set_input(&n, kQ, q);
    read(n, keys, values, valid);
    // The copies of new rows are the node's no more.
    for (const size_t i : {kPresentKey, kPresentValue}) drop_output(n, i);
    if (flat) split_heads(n, f);
  }

  // The result with its heads apart, and as it was behind a view.
  void split_heads(Node& n, const AttentionForm& f) {
    Value* y = n.outputs[kY];
    Value* apart =
        g_.add_value(y->name + "/heads", {y->type.dtype, {f.batch, f.q_length, f.q_heads, f.v_head}});
    n.outputs[kY] = apart;
    apart->producer = &n;
    y->producer = nullptr;
    const auto at =
        std::find_if(g_.nodes.begin(), g_.nodes.end(), [&](const auto& x) { return x.get() == &n; });
    Node* behind = at + 1 == g_.nodes.end() ? nullptr : (at + 1)->get();
    Value* to = constant_integers(g_, y->name + "/flat", {0, 0, (f.q_heads * f.v_head).value()});
    Node* join = g_.add_node(find_op("", "Reshape"), y->name + "/join", {apart, to}, {y}, behind);
    join->sources = n.sources;
  }

  void drop_output(Node& n, size_t i) {
    Value* v = n.outputs[i];
    n.outputs[i] = nullptr;
    if (v) v->producer = nullptr;
  }

  // New rows into the state, which becomes one of all rows; `present` is replaced by the result.
  Value* write(Builder& b, const Cache& c, Value* fresh, Value* rows, Value* present) {
    Shape& shape = c.past->type.shape;
    Value* first = per_batch(b, rows, shape[0]);
    shape[kRows] = Dim(g_.inputs[links_[c.link].input]->type.shape[kRows].hi());
    Value* all = b("TensorScatter", {c.past, fresh, first}, {{"axis", int64_t{kRows}}});
    std::swap(all->name, present->name);
    all->origin.clear();  // not what the model has: more rows
    for (Value*& out : g_.outputs)
      if (out == present) out = all;
    return all;
  }

  Value* per_batch(Builder& b, Value* count, const Dim& batch) {
    if (batch.is(1)) return count;
    if (batch.is_static()) return b("Expand", {count, b.integers("batch", {batch.value()})});
    if (Value* extent = extent_of_input(b, batch)) return b("Expand", {count, extent});
    SINTER_CHECK(false, "no input has the extent of the batch");
    return count;
  }
  Value* valid_rows(Builder& b, const Cache& c) {
    return per_batch(b, counts_.at(c.rows).second, c.past->type.shape[0]);
  }

  void read(Node& n, Value* keys, Value* values, Value* valid) {
    g_.set_input(&n, kK, keys);
    g_.set_input(&n, kV, values);
    for (const size_t i : {kPastKey, kPastValue})
      if (n.input(i)) g_.set_input(&n, i, nullptr);
    g_.set_input(&n, kValidKeys, valid);
  }

  // ---- old and new rows, joined by Concat

  struct Joined {
    Node* concat;
    Cache cache;
  };

  std::optional<Joined> joined(const Value* v) const {
    Node* n = v ? v->producer : nullptr;
    if (!n || !is_op(n, "Concat") || n->inputs.size() != 2) return std::nullopt;
    const int64_t axis = n->attributes.integer("axis", 0);
    if (axis != static_cast<int64_t>(kRows) && axis != -2) return std::nullopt;
    const std::optional<Cache> c = cache_of(n->inputs[0], v);
    if (!c) return std::nullopt;
    return Joined{n, *c};
  }

  // Whether a node reads both of its caches so, and knows no other count of keys.
  static bool reads_plainly(const Node& n) {
    if (!is_op(&n, "Attention") || n.has_output(kScores) || n.has_output(kPresentKey) ||
        n.has_output(kPresentValue) || n.input(kPastKey) || n.input(kPastValue) || n.input(kValidKeys))
      return false;
    const AttentionForm f = attention_form(n);
    return n.inputs[kK]->type.shape.size() == 4 && f.k == HeadLayout::kHeadsFirst &&
           f.v == HeadLayout::kHeadsFirst && !f.causal && f.left < 0 && f.right < 0;
  }

  void store_joined(const std::vector<Node*>& nodes) {
    for (Node* n : nodes) {
      if (!is_op(n, "Attention") || !reads_plainly(*n)) continue;
      const std::optional<Joined> k = joined(n->inputs[kK]), v = joined(n->inputs[kV]);
      if (!k || !v || k->cache.rows != v->cache.rows || k->concat == v->concat) continue;
      if (n->inputs[kK]->users.size() != 1 || n->inputs[kV]->users.size() != 1) continue;
      Value* rows = counts_.at(k->cache.rows).first;
      Value* caches[2];
      for (const bool key : {true, false}) {
        const Joined& j = key ? *k : *v;
        Builder b(g_, j.concat);
        caches[key ? 0 : 1] = write(b, j.cache, j.concat->inputs[1], rows, j.concat->outputs[0]);
      }
      Builder b(g_, n);
      Value* valid = valid_rows(b, k->cache);
      read(*n, caches[0], caches[1], valid);
    }
  }

  // ---- old rows with room behind them, into which new ones are scattered (GroupQueryAttention)

  struct Scattered {
    Node* scatter;
    Cache cache;
  };

  // Whether the node puts rows behind its input and does nothing else.
  static bool adds_rows(const Node* pad) {
    if (!is_op(pad, "Pad") || pad->attributes.text("mode", "constant") != "constant" || pad->input(3))
      return false;
    const Shape &from = pad->inputs[0]->type.shape, &to = pad->outputs[0]->type.shape;
    const Value* pads = pad->input(1);
    if (!pads || from.size() != 4) return false;
    for (size_t d = 0; d < from.size(); ++d) {
      if (d != kRows && !(from[d] == to[d])) return false;
      const bool none_before = pads->data ? pads->data->integer(static_cast<int64_t>(d)) == 0
                                          : d < pads->elements.size() && pads->elements[d].is(0);
      if (!none_before) return false;
    }
    return true;
  }

  std::optional<Scattered> scattered(const Value* v) const {
    Node* n = v ? v->producer : nullptr;
    if (!n || !is_op(n, "ScatterElements") || n->attributes.text("reduction", "none") != "none" ||
        v->users.size() != 1)
      return std::nullopt;
    const int64_t axis = n->attributes.integer("axis", 0);
    const Node* pad = n->inputs[0]->producer;
    if ((axis != static_cast<int64_t>(kRows) && axis != -2) || n->inputs[0]->users.size() != 1 ||
        !adds_rows(pad))
      return std::nullopt;
    const std::optional<Cache> c = cache_of(pad->inputs[0], v);
    if (!c) return std::nullopt;
    return Scattered{n, *c};
  }

  void store_scattered(const std::vector<Node*>& nodes) {
    for (Node* n : nodes) {
      if (!is_op(n, "Attention") || n->has_output(kScores) || n->input(kPastKey) || !n->input(kValidKeys))
        continue;
      if (n->inputs[kK]->type.shape.size() != 4) continue;
      const AttentionForm f = attention_form(*n);
      if (f.k != HeadLayout::kHeadsFirst || f.v != HeadLayout::kHeadsFirst) continue;
      const std::optional<Scattered> k = scattered(n->inputs[kK]), v = scattered(n->inputs[kV]);
      if (!k || !v || k->cache.rows != v->cache.rows || k->scatter == v->scatter) continue;
      for (const Scattered* s : {&*k, &*v}) {
        Value *past = s->cache.past, *present = s->scatter->outputs[0];
        past->type.shape[kRows] = Dim(past->type.shape[kRows].hi());
        present->type = past->type;
        present->origin.clear();  // not what the model has: more rows
        g_.set_input(s->scatter, 0, past);
      }
    }
  }

  Graph& g_;
  const StateLinks& links_;
  std::map<const Symbol*, std::pair<Value*, Value*>> counts_;  // before and after the run
  std::optional<Cache> key_, value_;
};

}  // namespace

void store_rows(Graph& g, const StateLinks& links) {
  if (links.empty()) return;
  Caches(g, links).store();
}

}  // namespace sinter
