// slide_windows(): states that are the last rows of what came so far.
//
// The cache of a causal convolution, or the keys of attention over the last positions, is a window: the model
// joins old and new rows (Concat), reads them, and hands out all but the first ones (Slice). Both copy the
// whole window with each run. Where the rows lie outermost, none of it is needed: the window lies in a buffer
// of about twice its rows, new rows are written behind it, and what the next run reads begins so much later.
// All that is read are runs of the buffer, dense as before, so that any layer can read them and computes the
// same bits. Only where the buffer ends, once in as many runs as the window has rows for, the rows that stay
// are moved back to its beginning.
//
// A ring, whose position wraps, would need half the buffer and move nothing, but every reader would have to
// see two runs of rows; convolutions can't, and attention would sum in another order.
//
// Models keep rows as a middle axis (channels or heads in front). Where all readers of the rows are
// Transposes that bring them to the front, or attention, which reads heads behind positions as well, the
// state is kept with its rows outermost; else the model's own Concat and Slice stay.
#include <algorithm>

#include "ops/movement/movement.h"
#include "ops/sequences/attention.h"
#include "passes/builder.h"
#include "plan/decision.h"
#include "plan/growth.h"
#include "plan/plan.h"
#include "plan/views.h"

namespace sinter {
namespace {

using Perm = std::vector<int64_t>;

struct Window {
  Value *past, *next, *fresh;
  Node* concat;  // of old and new rows; or, without `rest`, of the old rows that stay and the new ones
  Node* rest;    // the Slice of the rows that stay
  size_t axis;
};

size_t axis_of(const Node& concat) {
  return static_cast<size_t>(
      whole_axis(concat.attributes.integer("axis", 0), concat.outputs[0]->type.shape.size()));
}

// Whether the node takes its input's rows behind the first `rows` along the axis, and all of them.
bool skips_rows(const Node& slice, size_t axis, const Dim& rows) {
  const Shape &in = slice.inputs[0]->type.shape, &out = slice.outputs[0]->type.shape;
  const Value* axes = slice.input(3);
  if (!is_op(&slice, "Slice") || slice.epilogue || !axes || !axes->data || axes->data->size() != 1)
    return false;
  const auto read = strided_read(slice, in, out);
  if (!read) return false;
  Dim stride(1);
  for (size_t d = in.size(); d-- > 0;) {
    if (!(read->strides[d] == stride) && !out[d].is(1)) return false;
    if (!(out[d] == (d == axis ? in[d] - rows : in[d]))) return false;
    if (d == axis && !(read->offset == rows * stride)) return false;
    stride = stride * in[d];
  }
  return true;
}

bool is_outermost(const Shape& shape, size_t axis) {
  return std::all_of(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis),
                     [](const Dim& d) { return d.is(1); });
}

class Windows {
 public:
  Windows(Graph& g, const StateLinks& links, Decisions& decisions)
      : g_(g), links_(links), decisions_(decisions) {}

  void slide() {
    for (const StateLink& l : links_) {
      turn(l);
      const std::optional<Window> w = find(l, g_.inputs[l.input], g_.outputs[l.output]);
      if (!w || std::count(g_.outputs.begin(), g_.outputs.end(), w->next) != 1 || g_.is_output(w->past))
        continue;
      const std::optional<Perm> perm = layout(*w);
      if (perm) slide(*w, *perm);
    }
    g_.erase_unused();
    g_.sort();
  }

 private:
  bool is_state(const Value* v) const {
    return std::any_of(links_.begin(), links_.end(),
                       [&](const StateLink& l) { return g_.inputs[l.input] == v; });
  }

  // Where passes have turned the state to the order of axes that its window is joined in, and what stays of
  // it back, the state itself is kept so.
  void turn(const StateLink& l) {
    Value *past = g_.inputs[l.input], *next = g_.outputs[l.output];
    Node *to = past->users.size() == 1 ? past->users[0] : nullptr, *back = next->producer;
    if (!to || !back || !is_op(to, "Transpose") || !is_op(back, "Transpose")) return;
    Value *inner = back->inputs[0], *turned = to->outputs[0];
    const Perm perm = transpose_perm(*to);
    if (transpose_perm(*back) != inverse(perm) || !next->users.empty() || g_.is_output(inner) ||
        g_.is_output(turned) || g_.is_output(past) ||
        std::count(g_.outputs.begin(), g_.outputs.end(), next) != 1)
      return;
    const std::optional<Window> w = find(l, turned, inner);
    if (!w || !is_outermost(turned->type.shape, w->axis)) return;
    past->perm = composed_perm(*past, perm);
    past->type.shape = turned->type.shape;
    if (past->initial) past->initial = past->initial->transposed(perm);
    g_.replace_uses(turned, past);
    std::swap(inner->name, next->name);
    g_.replace_uses(next, inner);
    g_.erase_unused();
  }

  // The window whose old rows are `past` and whose next ones `next`.
  std::optional<Window> find(const StateLink& l, Value* past, Value* next) const {
    Node* last = next->producer;
    if (l.random || !last || !past->elements.empty() || growth_of(g_, links_, l)) return std::nullopt;
    for (const Dim& d : past->type.shape)
      if (!d.is_static() || d.value() < 1) return std::nullopt;
    const bool joined_last = is_op(last, "Concat");
    Node* concat = joined_last ? last : is_op(last, "Slice") ? last->inputs[0]->producer : nullptr;
    if (!concat || !is_op(concat, "Concat") || concat->epilogue || concat->inputs.size() != 2)
      return std::nullopt;
    const size_t axis = axis_of(*concat);
    Value* fresh = concat->inputs[1];
    Node* rest = joined_last ? concat->inputs[0]->producer : last;
    const Dim rows = fresh->type.shape[axis];
    std::vector<SymbolPtr> symbols;
    rows.collect_symbols(symbols);
    for (const SymbolPtr& s : symbols)
      if (s->from_data) return std::nullopt;
    if (rows.hi() == Interval::kUnbounded || is_state(fresh) || !rest || !is_op(rest, "Slice"))
      return std::nullopt;
    for (size_t d = 0; d < past->type.shape.size(); ++d)
      if (d != axis && !(fresh->type.shape[d] == past->type.shape[d])) return std::nullopt;
    if (!skips_rows(*rest, axis, rows)) return std::nullopt;
    if (joined_last) {
      if (rest->inputs[0] != past || rest->outputs[0]->users.size() != 1 || !rows.is_static())
        return std::nullopt;
      return Window{past, next, fresh, concat, nullptr, axis};
    }
    if (concat->inputs[0] != past || g_.is_output(concat->outputs[0])) return std::nullopt;
    return Window{past, next, fresh, concat, rest, axis};
  }

  // The nodes that read the window, old, new or both.
  std::vector<std::pair<Node*, Value*>> readers(const Window& w) const {
    std::vector<std::pair<Node*, Value*>> all;
    std::vector<Value*> values = {w.past, w.next};
    if (w.rest) values.push_back(w.concat->outputs[0]);
    for (Value* v : values)
      for (Node* n : v->users)
        if (n != w.concat && n != w.rest && !(n == w.concat->inputs[0]->producer && v == w.past))
          all.emplace_back(n, v);
    return all;
  }

  // How attention would have to find its keys or values; nothing where it can't.
  static std::optional<Perm> layout_for(const Node& n, const Value* v) {
    if (!is_op(&n, "Attention") || v->type.shape.size() != 4 || n.input(kPastKey) || n.input(kPastValue) ||
        n.has_output(kPresentKey) || n.has_output(kPresentValue) ||
        std::count(n.inputs.begin(), n.inputs.end(), v) != 1)
      return std::nullopt;
    const AttentionForm f = attention_form(n);
    if ((n.inputs[kK] == v && f.k == HeadLayout::kHeadsFirst) ||
        (n.inputs[kV] == v && f.v == HeadLayout::kHeadsFirst))
      return Perm{0, 2, 1, 3};
    return std::nullopt;
  }

  // The order of axes in which the rows are outermost and all readers can read them; nothing where there is
  // none.
  std::optional<Perm> layout(const Window& w) const {
    Perm perm;
    for (size_t d = 0; d < w.past->type.shape.size(); ++d) perm.push_back(static_cast<int64_t>(d));
    if (is_outermost(w.past->type.shape, w.axis)) return perm;
    std::optional<Perm> common;
    for (const auto& [n, v] : readers(w)) {
      std::optional<Perm> own = layout_for(*n, v);
      if (is_op(n, "Transpose") && !n->epilogue && !g_.is_output(n->outputs[0])) own = transpose_perm(*n);
      if (!own || (common && *common != *own)) return std::nullopt;
      common = own;
    }
    if (!common || common->size() != perm.size()) return std::nullopt;
    const auto at = std::find(common->begin(), common->end(), static_cast<int64_t>(w.axis)) - common->begin();
    return is_outermost(permuted(w.past->type.shape, *common), static_cast<size_t>(at)) ? common
                                                                                        : std::nullopt;
  }

  void slide(Window w, const Perm& perm) {
    if (!w.rest || !is_identity(perm)) {
      w = rebuilt(w, perm);
      g_.erase_unused();  // the model's own Concat, which isn't one that reads the new rows any more
    }
    if (!can_move(w.fresh, w.concat)) copy_part(g_, *w.concat, 1);
    decisions_.change(*w.concat).in_place = true;
    decisions_.change(*w.rest).in_place = true;
  }

  // The same window with its axes in this order, of which the model joins all rows and takes those that stay;
  // what reads the rows follows.
  Window rebuilt(const Window& w, const Perm& perm) {
    const std::vector<std::pair<Node*, Value*>> reading = readers(w);
    const int64_t axis = std::find(perm.begin(), perm.end(), static_cast<int64_t>(w.axis)) - perm.begin();
    Value* fresh = is_identity(perm) ? w.fresh : turned(*w.concat, w.fresh, perm);
    w.past->perm = composed_perm(*w.past, perm);
    w.past->type.shape = permuted(w.past->type.shape, perm);
    if (w.past->initial) w.past->initial = w.past->initial->transposed(perm);
    Builder b(g_, w.rest ? w.rest : w.concat);
    Value* all = b("Concat", {w.past, fresh}, {{"axis", axis}});
    Value* first = w.rest ? w.rest->inputs[1]
                          : b.integers("first", {fresh->type.shape[static_cast<size_t>(axis)].value()});
    Value* end = w.rest ? w.rest->inputs[2] : b.integers("end", {INT64_MAX});
    Value* next = b("Slice", {all, first, end, b.integers("axis", {axis})});
    next->origin = w.next->origin;
    next->perm = composed_perm(*w.next, perm);
    std::swap(next->name, w.next->name);
    const Value* joined = w.concat->outputs[0];
    for (const auto& [n, v] : reading)
      read(*n, v, v == w.past ? w.past : w.rest && v == joined ? all : next, !is_identity(perm));
    g_.replace_uses(w.next, next);
    return {w.past, next, fresh, all->producer, next->producer, static_cast<size_t>(axis)};
  }

  // Lets the node read `to` instead of `from`; `turned`: which has the rows in front.
  void read(Node& n, Value* from, Value* to, bool turned) {
    if (turned && is_op(&n, "Transpose")) return g_.replace_uses(n.outputs[0], to);
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i] != from) continue;
      if (to != from) g_.set_input(&n, i, to);
      if (turned) read_positions_first(n, i);
    }
  }

  static void read_positions_first(Node& attention, size_t input) {
    std::vector<int64_t> flags = attention.attributes.integers("positions_first", {0, 0, 0, 0});
    flags[input] = 1;
    const auto layout = [&](size_t i) {
      return flags[i] != 0 ? HeadLayout::kPositionsFirst : HeadLayout::kHeadsFirst;
    };
    set_layouts(attention, layout(0), layout(1), layout(2), layout(3));
  }

  // New rows with their axes in this order: what they were before, where they have just been turned.
  Value* turned(Node& concat, Value* v, const Perm& perm) {
    Node* n = v->producer;
    if (n && is_op(n, "Transpose") && !n->epilogue && transpose_perm(*n) == inverse(perm))
      return n->inputs[0];
    Builder b(g_, &concat);
    const Shape shape = permuted(v->type.shape, perm);
    if (is_view(perm, v->type.shape))
      if (const auto target = reshape_target(v->type.shape, shape))
        return b("Reshape", {v, b.integers("shape", *target)});
    return b("Transpose", {v}, {{"perm", perm}});
  }

  // Whether the layer that makes the rows can write them to their place.
  bool can_move(const Value* v, const Node* concat) const {
    const Value* root = root_of(v);
    const Node* n = root->producer;
    if (!n || root->data || !root->elements.empty() || !n->bodies.empty()) return false;
    for (const char* op : {"Split", "Slice", "Gather"})
      if (is_op(n, op)) return false;
    return !is_shown(root, concat);
  }
  // Whether the Value, or another shape of it, is an output or a piece of another Concat.
  bool is_shown(const Value* v, const Node* concat) const {
    if (g_.is_output(v)) return true;
    return std::any_of(v->users.begin(), v->users.end(), [&](const Node* n) {
      if (is_op(n, "Concat")) return n != concat;
      return is_view(*n) && n->inputs[0] == v && is_shown(n->outputs[0], concat);
    });
  }

  Graph& g_;
  const StateLinks& links_;
  Decisions& decisions_;
};

}  // namespace

void slide_windows(Graph& g, const StateLinks& links, Decisions& decisions) {
  if (!links.empty()) Windows(g, links, decisions).slide();
}

std::optional<StateWindow> window_of(const Graph& g, const Decisions& decisions, const StateLink& l) {
  const Node* rest = g.outputs[l.output]->producer;
  if (!rest || !is_op(rest, "Slice") || !decisions.of(*rest).in_place) return std::nullopt;
  const Node* concat = rest->inputs[0]->producer;
  const Value* past = g.inputs[l.input];
  if (!concat || !is_op(concat, "Concat") || concat->inputs[0] != past) return std::nullopt;
  const size_t axis = axis_of(*concat);
  const int64_t rows = past->type.shape[axis].value();
  const int64_t row_bytes =
      product(past->type.shape).value() / rows * static_cast<int64_t>(size_of(past->type.dtype));
  const Dim step = concat->inputs[1]->type.shape[axis];
  // Twice the rows, and room for a run's: they are moved once in so many runs that each has about as many to
  // move as it adds.
  return StateWindow{rows, 2 * rows + step.hi(), row_bytes, step, 0};
}

}  // namespace sinter
