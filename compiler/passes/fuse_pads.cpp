// fuse_pads: what detectors write to paste a mask into an empty picture, whose place the data decide.
//
//     Concat(ConstantOfShape, x, ConstantOfShape)   ->  Pad(x)
//     Slice(Pad(x)) of the elements before a limit  ->  Pad(x), which crops behind
//     Pad(Pad(x)) of other axes                     ->  Pad(x)
//
// So the picture is written once, in place of a tensor for each step. Only where the data decide how much is
// padded: a Concat of known extents may be written in place by what computes x.
#include <algorithm>
#include <cstdint>

#include "ops/movement/movement.h"
#include "passes/builder.h"
#include "passes/passes.h"

namespace sinter {
namespace {

bool from_data(const Dim& d) {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(), [](const SymbolPtr& s) { return s->from_data; });
}

// Element k of a list of integers, as a list of one: where a Concat made it, what the Concat read.
Value* element_of(Builder& build, Value* list, int64_t k) {
  const Node* n = list->producer;
  int64_t first = 0;
  if (is_op(n, "Concat"))
    for (Value* v : n->inputs) {
      if (!v->type.shape[0].is_static()) break;
      if (first == k && v->type.shape[0].is(1)) return v;
      first += v->type.shape[0].value();
    }
  return build("Gather", {list, build.integers("element", {k})}, {{"axis", int64_t{0}}});
}

bool is_fill(const Value* v) { return is_op(v->producer, "ConstantOfShape"); }

// before [k] and behind [k] are lists of one for axes[k].
struct PadForm {
  Value* x = nullptr;
  std::vector<Value*> before, behind;
  std::vector<int64_t> axes;
  Value* value = nullptr;  // null: zero
};

class Match {
 public:
  Match(Graph& g, const Order& order) : g_(g), order_(order) {}
  bool fuse(Node* n) { return fuse_concat(n) || fuse_slice(n) || fuse_pad(n); }

 private:
  bool fuse_concat(Node* n) {
    if (!is_op(n, "Concat") || n->inputs.size() < 2 || n->inputs.size() > 3 || !n->has_output(0))
      return false;
    const Shape& out = n->outputs[0]->type.shape;
    const int64_t axis = whole_axis(n->attributes.integer("axis", 0), out.size());
    const auto x = std::find_if_not(n->inputs.begin(), n->inputs.end(), is_fill);
    if (x == n->inputs.end() || (*x)->data ||
        std::count_if(n->inputs.begin(), n->inputs.end(), is_fill) + 1 !=
            static_cast<std::ptrdiff_t>(n->inputs.size()))
      return false;
    const size_t at = static_cast<size_t>(x - n->inputs.begin());
    if (at > 1 || n->inputs.size() - at > 2) return false;
    const Node* front = at > 0 ? n->inputs[at - 1]->producer : nullptr;
    const Node* back = at + 1 < n->inputs.size() ? n->inputs[at + 1]->producer : nullptr;
    if (front && back && !same_value(*front, *back)) return false;
    const auto decided = [&](const Value* v) {
      return is_fill(v) && from_data(v->type.shape[static_cast<size_t>(axis)]);
    };
    if (!std::any_of(n->inputs.begin(), n->inputs.end(), decided)) return false;
    Builder build(g_, n);
    const auto rows = [&](const Node* fill) {
      return fill ? element_of(build, fill->inputs[0], axis) : build.integers("none", {0});
    };
    PadForm pad{*x, {rows(front)}, {rows(back)}, {axis}, nullptr};
    if (const Tensor* v = (front ? front : back)->attributes.tensor("value"))
      pad.value = build.constant("value", *v);
    become(n, pad, {n});
    return true;
  }
  static bool same_value(const Node& a, const Node& b) {
    const Tensor *x = a.attributes.tensor("value"), *y = b.attributes.tensor("value");
    return x && y ? x->same_bits(*y) : !x && !y;
  }

  // Elements [0, limit) of one axis that the Pad before it pads.
  bool fuse_slice(Node* n) {
    if (!is_op(n, "Slice") || !n->has_output(0)) return false;
    Node* before = n->inputs[0]->producer;
    auto pad = form_of(before);
    const auto starts = integers_of(n->input(1)), ends = integers_of(n->input(2)),
               axes = integers_of(n->input(3)), steps = integers_of(n->input(4));
    if (!pad || only_user(g_, order_, before) != n || !starts || !ends || !axes || axes->size() != 1)
      return false;
    if (n->input(4) && steps != std::vector<int64_t>{1}) return false;
    const int64_t axis = whole_axis((*axes)[0], n->outputs[0]->type.shape.size()), limit = (*ends)[0];
    const auto k =
        static_cast<size_t>(std::find(pad->axes.begin(), pad->axes.end(), axis) - pad->axes.begin());
    if ((*starts)[0] != 0 || limit < 0 || limit > INT32_MAX || k == pad->axes.size()) return false;
    Builder build(g_, n);
    // What is left of the limit behind the elements of x.
    Value* room = build(
        "Sub",
        {build("Sub", {build.integers("limit", {limit}), rows_of(build, pad->x, axis)}), pad->before[k]});
    pad->behind[k] = build("Min", {room, pad->behind[k]});
    become(n, *pad, {before, n});
    return true;
  }
  // The extent of x along an axis as a list, read of what its Pads don't change.
  static Value* rows_of(Builder& build, Value* x, int64_t axis) {
    for (auto pad = form_of(x->producer); pad && std::count(pad->axes.begin(), pad->axes.end(), axis) == 0;
         pad = form_of(x->producer))
      x = pad->x;
    return build("Gather", {build("Shape", {x}), build.integers("axis", {axis})}, {{"axis", int64_t{0}}});
  }

  bool fuse_pad(Node* n) {
    auto pad = form_of(n);
    if (!pad) return false;
    Node* before = pad->x->producer;
    const auto first = form_of(before);
    if (!first || only_user(g_, order_, before) != n) return false;
    const auto both = [&](int64_t a) { return std::count(first->axes.begin(), first->axes.end(), a) > 0; };
    if (std::any_of(pad->axes.begin(), pad->axes.end(), both) || !same_number(first->value, pad->value))
      return false;
    PadForm joint = *first;
    joint.before.insert(joint.before.end(), pad->before.begin(), pad->before.end());
    joint.behind.insert(joint.behind.end(), pad->behind.begin(), pad->behind.end());
    joint.axes.insert(joint.axes.end(), pad->axes.begin(), pad->axes.end());
    become(n, joint, {before, n});
    return true;
  }
  static bool same_number(const Value* a, const Value* b) {
    return a == b || (a && b && a->data && b->data && a->data->same_bits(*b->data));
  }

  // Pads, of this pass or the model, whose pads are lists of one each, joined.
  static std::optional<PadForm> form_of(const Node* n) {
    if (!is_op(n, "Pad") || n->attributes.text("mode", "constant") != "constant") return std::nullopt;
    const auto axes = integers_of(n->input(3));
    const Node* pads = n->inputs[1]->producer;
    if (!axes || !is_op(pads, "Concat") || pads->inputs.size() != 2 * axes->size()) return std::nullopt;
    for (const Value* v : pads->inputs)
      if (!(v->type.shape == Shape{Dim(1)})) return std::nullopt;
    PadForm form{n->inputs[0], {}, {}, {}, n->inputs[2]};
    for (const int64_t a : *axes) form.axes.push_back(whole_axis(a, form.x->type.shape.size()));
    const auto half = pads->inputs.begin() + static_cast<std::ptrdiff_t>(axes->size());
    form.before.assign(pads->inputs.begin(), half);
    form.behind.assign(half, pads->inputs.end());
    return form;
  }
  void become(Node* last, const PadForm& pad, const std::vector<Node*>& parts) {
    Builder build(g_, last);
    std::vector<Value*> pads = pad.before;
    pads.insert(pads.end(), pad.behind.begin(), pad.behind.end());
    Value* joined = build("Concat", pads, {{"axis", int64_t{0}}});
    fuse_into(g_, find_op("", "Pad"), last, {pad.x, joined, pad.value, build.integers("axes", pad.axes)}, {},
              parts);
  }

  Graph& g_;
  const Order& order_;
};

}  // namespace

bool fuse_pads(Graph& g, const PassOptions&) {
  bool changed = false;
  while (fuse_each<Match>(g)) changed = true;
  return changed;
}

}  // namespace sinter
