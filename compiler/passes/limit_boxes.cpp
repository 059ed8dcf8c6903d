// limit_boxes: NonMaxSuppression ends where the Slice behind it does.
//
//     Slice(NonMaxSuppression(boxes, scores, 840)) of the first 100 rows  ->  NonMaxSuppression(.., 100)
//
// Rows of one class come best score first, and whether a box stays depends on better ones only: the first 100
// are the same. Detectors that keep the best of what a region proposal network finds are written like that,
// with an If for "no box at all" in between. Between the two there may be what keeps rows as they are, and
// branches of an If; nothing else may read what lies there, nor how much it is.
#include <algorithm>
#include <cstdint>
#include <set>

#include "ops/movement/movement.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

// The number of rows from the first on that a Slice takes of its input; null where it is not such a Slice.
std::optional<int64_t> first_rows(const Node& n) {
  if (!is_op(&n, "Slice") || !n.inputs[0] || !n.has_output(0)) return std::nullopt;
  const auto start = integers_of(n.input(1)), end = integers_of(n.input(2));
  const auto is_one = [](const Value* v, int64_t wanted) {
    return !v || integers_of(v) == std::vector<int64_t>{wanted};
  };
  if (start != std::vector<int64_t>{0} || !end || end->size() != 1 || end->front() < 1) return std::nullopt;
  if (!is_one(n.input(3), 0) || !is_one(n.input(4), 1)) return std::nullopt;
  return end->front();
}

// Whether row i of its output is made of row i of its first input.
bool keeps_rows(const Node& n) {
  if (!n.inputs[0] || n.inputs[0]->type.shape.empty() || n.outputs[0]->type.shape.empty()) return false;
  if (!(n.inputs[0]->type.shape[0] == n.outputs[0]->type.shape[0])) return false;
  if (is_op(&n, "Gather"))
    return whole_axis(n.attributes.integer("axis", 0), n.inputs[0]->type.shape.size()) > 0;
  return is_op(&n, "Cast") || is_op(&n, "Identity") || is_op(&n, "Reshape") || is_op(&n, "Flatten") ||
         is_op(&n, "Squeeze") || is_op(&n, "Unsqueeze");
}

// What a Slice's rows come from, as far up as rows stay rows.
class Way {
 public:
  struct End {
    Graph* graph;
    Node* suppression;
  };
  // Follows `v`, which one node or one output of a body reads.
  void follow(Graph& g, Value* v) {
    Node* n = v->producer;
    const auto outputs = static_cast<size_t>(std::count(g.outputs.begin(), g.outputs.end(), v));
    if (!n || v->users.size() + outputs != 1 || v->type.shape.empty()) return;
    if (is_op(n, "NonMaxSuppression")) {
      add(v);
      ends_.push_back({&g, n});
    } else if (is_op(n, "If")) {
      add(v);
      const auto at =
          static_cast<size_t>(std::find(n->outputs.begin(), n->outputs.end(), v) - n->outputs.begin());
      for (const auto& b : n->bodies)
        if (b->unreachable.empty()) follow(*b, b->outputs[at]);
    } else if (n->has_output(0) && n->outputs[0] == v && keeps_rows(*n)) {
      add(v);
      follow(g, n->inputs[0]);
    }
  }
  const std::vector<End>& ends() const { return ends_; }
  const std::set<Value*>& values() const { return values_; }

  // Whether nothing beside the way says how many rows there are, once there are at most `most`.
  bool is_private(const Graph& g, int64_t most) const {
    const auto same = [&](const Dim& d) {
      return d ==
             d.substitute([&](const SymbolPtr& s) { return counts_.count(s) ? min(Dim(s), most) : Dim(s); });
    };
    for (const auto& v : g.values) {
      if (values_.count(v.get())) continue;
      if (!std::all_of(v->type.shape.begin(), v->type.shape.end(), same) ||
          !std::all_of(v->elements.begin(), v->elements.end(), same))
        return false;
    }
    for (const Check& c : g.checks)
      if (!same(c.a) || !same(c.b)) return false;
    for (const auto& n : g.nodes)
      for (const auto& b : n->bodies)
        if (!is_private(*b, most)) return false;
    return true;
  }

 private:
  void add(Value* v) {
    values_.insert(v);
    std::vector<SymbolPtr> symbols;
    v->type.shape[0].collect_symbols(symbols);
    counts_.insert(symbols.begin(), symbols.end());
  }

  std::vector<End> ends_;
  std::set<Value*> values_;
  std::set<SymbolPtr> counts_;
};

// One class of one picture, whose limit is a constant above `most`.
bool can_be_limited(const Node& n, int64_t most) {
  const Shape& scores = n.inputs[1]->type.shape;
  const auto limit = integers_of(n.input(2));
  return (scores[0] * scores[1]).is(1) && limit && limit->size() == 1 && limit->front() > most;
}

Graph& outermost(Graph& g) { return g.parent ? outermost(*g.parent) : g; }

bool limit(Graph& g, const Node& slice) {
  const auto most = first_rows(slice);
  if (!most) return false;
  Way way;
  way.follow(g, slice.inputs[0]);
  const auto any = std::any_of(way.ends().begin(), way.ends().end(),
                               [&](const Way::End& e) { return can_be_limited(*e.suppression, *most); });
  if (!any || !way.is_private(outermost(g), *most)) return false;
  for (const auto& [own, n] : way.ends()) {
    if (!can_be_limited(*n, *most)) continue;
    Tensor t(DType::kI64, n->inputs[2]->data->shape());
    t.set_integer(0, *most);
    own->set_input(n, 2, own->add_constant(n->name + "/most", std::move(t)));
  }
  for (Value* v : way.values()) v->origin.clear();  // the model's has more rows
  return true;
}

}  // namespace

bool limit_boxes(Graph& g, const PassOptions&) {
  bool changed = false;
  for (const Node* n : snapshot(g)) changed |= limit(g, *n);
  g.erase_unused();
  return changed;
}

}  // namespace sinter
