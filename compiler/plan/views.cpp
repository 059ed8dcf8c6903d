#include "plan/views.h"

#include <algorithm>

#include "ops/movement/movement.h"
#include "plan/plan.h"

namespace sinter {
namespace {

std::set<const Value*> fixed_values(const Graph& g) {
  std::set<const Value*> fixed;
  for (const Value* v : g.outputs)
    for (; v; v = v->producer && is_view(*v->producer) ? v->producer->inputs[0] : nullptr) fixed.insert(v);
  return fixed;
}

bool is_op(const Node& n, std::string_view name) { return n.op->domain[0] == '\0' && n.op->name == name; }
// Of a Concat in place: new rows behind a state's (plan/windows.cpp).
bool is_window(const Node& n) {
  return is_op(n, "Concat") && n.inputs.size() == 2 && !n.inputs[0]->producer && !n.inputs[0]->data;
}
bool from_caller(const Dim& d) {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  return std::none_of(symbols.begin(), symbols.end(), [](const SymbolPtr& s) { return s->from_data; });
}
bool from_caller(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return from_caller(d); });
}

// Row-major without gaps: axes of extent 1 may have any stride.
bool is_run(const StridedRead& read, const Shape& shape) {
  Dim stride(1);
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d].is(1)) continue;
    if (!(read.strides[d] == stride)) return false;
    stride = stride * shape[d];
  }
  return true;
}

// Whether a Concat's inputs lie behind each other in its output, at positions that are known when they are
// written.
bool is_stack(const Node& n, const Decisions& decisions) {
  if (decisions.of(n).in_place) return false;
  if (!is_op(n, "Concat") || n.epilogue || n.inputs.size() < 2) return false;
  const Shape& out = n.outputs[0]->type.shape;
  const int64_t axis = n.attributes.integer("axis", 0);
  const size_t last = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(out.size()) : axis);
  for (size_t d = 0; d < last; ++d)
    if (!out[d].is(1)) return false;
  if (!n.outputs[0]->elements.empty()) return false;
  for (const Value* v : n.inputs) {
    // Extents that only a check proves equal to the output's would give other strides.
    for (size_t d = last + 1; d < out.size(); ++d)
      if (!(v->type.shape[d] == out[d])) return false;
  }
  return from_caller(out) && std::all_of(n.inputs.begin(), n.inputs.end(),
                                         [](const Value* v) { return from_caller(v->type.shape); });
}

}  // namespace

bool is_stacked_concat(const Node& n, const Decisions& d) { return is_stack(n, d); }

namespace {

// Values that members of a Concat come from, and the Concat they belong to: the first that reads them.
class Membership {
 public:
  Membership(const Graph& g, const Decisions& decisions) : fixed_(fixed_values(g)) {
    for (const auto& n : g.nodes)
      if (is_stack(*n, decisions))
        for (const Value* v : n->inputs)
          if (can_move(*n, v)) home_.try_emplace(root_of(v), n.get());
  }
  // Whether input i of `n` is written in place.
  bool is_member(const Node& n, size_t i) const {
    const Value* root = root_of(n.inputs[i]);
    auto it = home_.find(root);
    if (it == home_.end() || it->second != &n) return false;
    for (size_t k = 0; k < i; ++k)
      if (root_of(n.inputs[k]) == root) return false;  // the same tensor twice: one of them is a copy
    return true;
  }

 private:
  bool can_move(const Node& concat, const Value* v) const {
    const Value* root = root_of(v);
    if (!root->producer || root->data || fixed_.count(root) ||
        root->type.dtype != concat.outputs[0]->type.dtype)
      return false;
    if (!root->elements.empty() || !from_caller(root->type.shape)) return false;
    // A piece of another Value has its place already.
    const Node& p = *root->producer;
    return !is_op(p, "Split") && !is_op(p, "Slice") && !is_op(p, "Gather") && p.bodies.empty();
  }
  std::set<const Value*> fixed_;
  std::map<const Value*, const Node*> home_;
};

}  // namespace

Views::Views(const Graph& g, const Decisions& decisions) : fixed_(fixed_values(g)) {
  const Membership members(g, decisions);
  for (const auto& n : g.nodes)
    for (const PicturePiece& piece : picture_pieces(decisions, *n)) {  // nobody reads the whole picture
      without_layer_.insert(n->inputs[0]->producer);
      if (piece.resize) without_layer_.insert(piece.resize);
    }
  for (const auto& n : g.nodes) {
    const bool in_place = decisions.of(*n).in_place;
    if (is_view(*n)) {
      views_[n->outputs[0]] = {n->inputs[0], Dim(0), false};
      without_layer_.insert(n.get());
    } else if (is_op(*n, "Split") || is_op(*n, "Slice") || is_op(*n, "Gather")) {
      if (in_place)
        find_channel_parts(*n);
      else
        find_parts(*n);
    } else if (in_place && is_op(*n, "Transpose")) {
      views_[n->outputs[0]] = {n->inputs[0], Dim(0), true};
      without_layer_.insert(n.get());
    } else if (in_place && is_window(*n)) {
      find_window(*n);
    } else if (in_place) {
      find_channels(*n);
    } else if (is_stack(*n, decisions)) {
      bool all = true;
      for (size_t i = 0; i < n->inputs.size(); ++i) all = all && members.is_member(*n, i);
      if (all) find_members(*n);
    }
  }
}

void Views::find_parts(const Node& n) {
  if (n.epilogue || !n.input(0) || n.inputs[0]->data || root_of(n.inputs[0])->data) return;
  std::vector<std::pair<const Value*, View>> found;
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    const Value* out = n.outputs[i];
    if (!out) continue;
    if (fixed_.count(out) || !out->elements.empty() || out->type.dtype != n.inputs[0]->type.dtype) return;
    const auto read = strided_read(n, n.inputs[0]->type.shape, out->type.shape, i);
    if (!read || !is_run(*read, out->type.shape)) return;
    if (!from_caller(read->offset) || !from_caller(out->type.shape)) return;
    found.emplace_back(out, View{n.inputs[0], read->offset, true});
  }
  if (found.empty()) return;
  for (const auto& [v, view] : found) views_[v] = view;
  without_layer_.insert(&n);
}

void Views::find_channel_parts(const Node& n) {
  for (size_t i = 0; i < n.outputs.size(); ++i)
    if (const Value* out = n.outputs[i])
      views_[out] = {n.inputs[0], strided_read(n, n.inputs[0]->type.shape, out->type.shape, i)->offset, true};
  without_layer_.insert(&n);
}

void Views::find_members(const Node& n) {
  Dim at(0);
  for (const Value* v : n.inputs) {
    views_[root_of(v)] = {n.outputs[0], at, true};
    at = at + product(v->type.shape);
  }
  without_layer_.insert(&n);
}

void Views::find_window(const Node& n) {
  views_[n.outputs[0]] = {n.inputs[0], Dim(0), true};
  views_[root_of(n.inputs[1])] = {n.inputs[0], product(n.inputs[0]->type.shape), true};
  without_layer_.insert(&n);
}

void Views::find_channels(const Node& n) {
  Dim at(0);
  for (const Value* v : n.inputs) {
    views_[v] = {n.outputs[0], at, true};
    at = at + v->type.shape.back();
  }
  without_layer_.insert(&n);
}

View Views::of(const Value* v) const {
  View sum{v, Dim(0), false};
  for (auto it = views_.find(v); it != views_.end(); it = views_.find(sum.host))
    sum = {it->second.host, sum.shift + it->second.shift, sum.piece || it->second.piece};
  return sum;
}

void copy_part(Graph& g, Node& concat, size_t input) {
  const Op* copy = find_op("sinter", "copy");
  SINTER_CHECK(copy);
  Value* from = concat.inputs[input];
  Value* to = g.add_value(from->name + "_part", from->type);
  to->origin = from->origin;
  to->perm = from->perm;
  g.add_node(copy, concat.name + "_part", {from}, {to}, &concat)->sources = {};
  g.set_input(&concat, input, to);
}

void separate_members(Graph& g, const Decisions& decisions) {
  const Membership members(g, decisions);
  struct Copy {
    Node* concat;
    size_t input;
  };
  std::vector<Copy> copies;
  for (const auto& n : g.nodes) {
    if (!is_stack(*n, decisions)) continue;
    std::vector<Copy> others;
    for (size_t i = 0; i < n->inputs.size(); ++i)
      if (!members.is_member(*n, i)) others.push_back({n.get(), i});
    if (others.size() < n->inputs.size()) copies.insert(copies.end(), others.begin(), others.end());
  }
  for (const auto& [concat, i] : copies) copy_part(g, *concat, i);
}

}  // namespace sinter
