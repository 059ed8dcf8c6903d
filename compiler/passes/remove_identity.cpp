// remove_identity: nodes whose output is their input go; a view of a view and a Transpose of a Transpose
// become one, parts of a Value that a Concat joins again the Value; empty parts go. A Transpose that undoes
// another behind a view that splits or joins axes leaves a view.
//
// "Is its input" needs more than equal types: a Slice backwards, a Pad by +1 and -1 or a Resize with a scale
// of 1.01 keep the shape too. Extents are compared as Dims, so dynamic shapes count where they are proved.
#include <algorithm>
#include <cmath>

#include "ops/movement/movement.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

bool same_type(const Node& n, size_t input = 0) {
  return n.inputs[input] && n.has_output(0) && n.inputs[input]->type == n.outputs[0]->type;
}

bool all_are(const Value* v, double wanted) {
  const auto u = uniform_of(v);
  return u && *u == wanted;
}

bool positive_steps(const Node& n) {
  if (!n.input(4)) return true;
  const auto steps = integers_of(n.input(4));
  return steps && std::all_of(steps->begin(), steps->end(), [](int64_t s) { return s > 0; });
}

bool identity_resize(const Node& n) {
  if (n.attributes.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") return false;
  const bool by_sizes = n.input(3) != nullptr;
  return by_sizes || all_are(n.input(2), 1);
}

// x op c == x for all x, c being the constant input `k`. Zeros count with their sign: -0.0 + 0.0 is 0.0.
bool neutral(const Node& n, size_t k, double c) {
  if (n.inputs.size() != 2 || !all_are(n.inputs[k], c) || !same_type(n, 1 - k)) return false;
  return !is_float(n.inputs[k]->type.dtype) || std::signbit(n.inputs[k]->data->real(0)) == std::signbit(c);
}

// Whether a Gather takes element 0 of an axis that has no other.
bool takes_the_only_one(const Node& n) {
  if (!is_op(&n, "Gather") || n.epilogue || !n.inputs[0] || !all_are(n.input(1), 0)) return false;
  const Shape& x = n.inputs[0]->type.shape;
  return x[static_cast<size_t>(whole_axis(n.attributes.integer("axis", 0), x.size()))].is(1) &&
         product(n.inputs[1]->type.shape).is(1);
}

// The input that output 0 equals; null where it doesn't equal one.
Value* unchanged(const Node& n) {
  const auto is = [&](const char* name) { return is_op(&n, name); };
  if (n.inputs.empty() || !n.has_output(0) || !n.inputs[0]) return nullptr;
  Value* x = n.inputs[0];
  if (is("Identity")) return x;
  if (is("Dropout")) return !n.input(2) || integers_of(n.input(2)) == std::vector<int64_t>{0} ? x : nullptr;
  if (is("Concat") && n.inputs.size() == 1) return x;
  if (is("Mul")) return neutral(n, 1, 1) ? x : neutral(n, 0, 1) ? n.inputs[1] : nullptr;
  if (is("Add")) {
    const double none = is_float(x->type.dtype) ? -0.0 : 0.0;
    return neutral(n, 1, none) ? x : neutral(n, 0, none) ? n.inputs[1] : nullptr;
  }
  if (is("Div") || is("Pow")) return neutral(n, 1, 1) ? x : nullptr;
  if (is("Sub")) return neutral(n, 1, 0) ? x : nullptr;
  if (!same_type(n)) return nullptr;
  if (is("Cast") || is("CastLike") || is("Reshape") || is("Flatten") || is("Squeeze") || is("Unsqueeze") ||
      is("Expand") || is("Tile"))
    return x;
  if (is("Slice")) return positive_steps(n) ? x : nullptr;
  if (is("Pad")) return all_are(n.input(1), 0) ? x : nullptr;
  if (is("Gather")) return takes_the_only_one(n) ? x : nullptr;
  if (is("Transpose")) return is_identity(transpose_perm(n)) ? x : nullptr;
  if (is("Resize")) return identity_resize(n) ? x : nullptr;
  return nullptr;
}

bool is_reshaping(const Node* n) {
  return is_op(n, "Reshape") || is_op(n, "Flatten") || is_op(n, "Squeeze") || is_op(n, "Unsqueeze");
}

// Makes n a Reshape from `from` to its present type. False where no constant target says that.
bool become_reshape(Graph& g, Node* n, Value* from) {
  const TensorType type = n->outputs[0]->type;
  const auto target = reshape_target(from->type.shape, type.shape);
  if (!target) return false;
  const Node old = [&] {  // to go back
    Node o;
    o.op = n->op, o.inputs = n->inputs, o.attributes = n->attributes;
    return o;
  }();
  const std::vector<Dim> elements = n->outputs[0]->elements;
  while (!n->inputs.empty()) g.remove_input(n, n->inputs.size() - 1);
  n->op = find_op("", "Reshape");
  n->attributes = {};
  g.set_input(n, 0, from);
  g.set_input(n, 1, constant_integers(g, n->name + "/shape", *target));
  infer(g, *n);
  if (n->outputs[0]->type == type) {
    if (n->outputs[0]->elements.empty()) n->outputs[0]->elements = elements;
    return true;
  }
  while (!n->inputs.empty()) g.remove_input(n, n->inputs.size() - 1);
  n->op = old.op;
  n->attributes = old.attributes;
  for (size_t i = 0; i < old.inputs.size(); ++i) g.set_input(n, i, old.inputs[i]);
  n->outputs[0]->type = type;
  n->outputs[0]->elements = elements;
  return false;
}

// Such a Gather by a scalar is a view without that axis.
bool gather_to_squeeze(Graph& g, Node* n) {
  if (!takes_the_only_one(*n) || !n->inputs[1]->type.shape.empty()) return false;
  const int64_t axis = n->attributes.integer("axis", 0);
  const TensorType type = n->outputs[0]->type;
  n->op = find_op("", "Squeeze");
  n->attributes = {};
  g.set_input(n, 1, constant_integers(g, n->name + "/axes", {axis}));
  infer_as(g, *n, type);
  return true;
}

bool merge_views(Graph& g, Node* n) {
  if (!is_reshaping(n) || !n->has_output(0) || !n->inputs[0]) return false;
  Node* before = n->inputs[0]->producer;
  if (!is_reshaping(before) || !before->inputs[0]) return false;
  return become_reshape(g, n, before->inputs[0]);
}

// The extents that both sides of a view are made of, numbered in order: the numbers of each axis, none for an
// axis of 1. [12, 64] to [3, 4, 64] has {0, 1}, {2} and {0}, {1}, {2}.
struct Factors {
  std::vector<std::vector<size_t>> from, to;
};

// Null where an axis is neither kept nor split nor joined of whole ones.
std::optional<Factors> factors_of_view(const Shape& from, const Shape& to) {
  Factors f{std::vector<std::vector<size_t>>(from.size()), std::vector<std::vector<size_t>>(to.size())};
  size_t count = 0;
  // `whole` at i is made of axes of `parts` from j on: where those end; j: it is not.
  const auto split = [&](const Shape& whole, size_t i, const Shape& parts, size_t j, auto& of_whole,
                         auto& of_parts) {
    Dim extent(1);
    for (size_t k = j; k < parts.size(); ++k) {
      extent = extent * parts[k];
      if (!(extent == whole[i])) continue;
      for (size_t a = j; a <= k; ++a) {
        if (parts[a].is(1)) continue;
        of_parts[a].push_back(count);
        of_whole[i].push_back(count++);
      }
      return k + 1;
    }
    return j;
  };
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    const bool one = i < from.size() && from[i].is(1);
    if (one || (j < to.size() && to[j].is(1))) {
      ++(one ? i : j);
      continue;
    }
    if (i == from.size() || j == to.size()) return std::nullopt;
    if (const size_t next = split(from, i, to, j, f.from, f.to); next > j) {
      ++i, j = next;
    } else {
      const size_t behind = split(to, j, from, i, f.to, f.from);
      if (behind == i) return std::nullopt;
      i = behind, ++j;
    }
  }
  return f;
}

// A Transpose behind a view behind a Transpose, where elements end in the order that they came in: channels
// last, made channels first, split, made channels last again.
bool undoes_transpose(Graph& g, Node* n) {
  Node* view = is_op(n, "Transpose") && n->has_output(0) ? n->inputs[0]->producer : nullptr;
  if (!view || !is_reshaping(view) || !view->inputs[0]) return false;
  Node* first = view->inputs[0]->producer;
  if (!first || !is_op(first, "Transpose")) return false;
  const auto factors = factors_of_view(first->outputs[0]->type.shape, view->outputs[0]->type.shape);
  if (!factors) return false;
  std::vector<size_t> before, behind;
  for (int64_t axis : inverse(transpose_perm(*first)))
    for (size_t k : factors->from[static_cast<size_t>(axis)]) before.push_back(k);
  for (int64_t axis : transpose_perm(*n))
    for (size_t k : factors->to[static_cast<size_t>(axis)]) behind.push_back(k);
  return before == behind && become_reshape(g, n, first->inputs[0]);
}

bool merge_transposes(Graph& g, Node* n) {
  if (!is_op(n, "Transpose") || !n->has_output(0)) return false;
  Node* before = n->inputs[0]->producer;
  if (!is_op(before, "Transpose")) {
    return is_view(transpose_perm(*n), n->inputs[0]->type.shape) && become_reshape(g, n, n->inputs[0]);
  }
  std::vector<int64_t> perm = transpose_perm(*n);
  const std::vector<int64_t> first = transpose_perm(*before);
  for (int64_t& p : perm) p = first[static_cast<size_t>(p)];
  g.set_input(n, 0, before->inputs[0]);
  n->attributes.set("perm", perm);
  return true;
}

// Inputs without elements go. The only one left is the result, as a check may have to prove: under its shape.
bool drop_empty_parts(Graph& g, Node* n) {
  if (!is_op(n, "Concat") || !n->has_output(0)) return false;
  const auto axis =
      static_cast<size_t>(whole_axis(n->attributes.integer("axis", 0), n->outputs[0]->type.shape.size()));
  bool changed = false;
  for (size_t i = n->inputs.size(); i-- > 0 && n->inputs.size() > 1;)
    if (n->inputs[i]->type.shape[axis].is(0)) g.remove_input(n, i), changed = true;
  if (changed && n->inputs.size() == 1 && !same_type(*n)) become_reshape(g, n, n->inputs[0]);
  return changed;
}

// Whether result `output` of the Slice or Split is its input's elements from `first` to before first + count
// along the axis, of all else all.
bool is_part(const Node& n, size_t output, size_t axis, const Dim& first) {
  const Shape &in = n.inputs[0]->type.shape, &out = n.outputs[output]->type.shape;
  const auto read = strided_read(n, in, out, output);
  if (!read || out.size() != in.size()) return false;
  Dim stride(1);
  for (size_t d = in.size(); d-- > 0;) {
    if (!(read->strides[d] == stride) || (d != axis && !(out[d] == in[d]))) return false;
    if (d == axis && !(read->offset == first * stride)) return false;
    stride = stride * in[d];
  }
  return true;
}

// The number of inputs of the Concat, from number i on, that together are one Value; 0 where none are.
size_t parts_of_one(const Node& concat, size_t i, size_t axis) {
  const Node* part = concat.inputs[i]->producer;
  if ((!is_op(part, "Slice") && !is_op(part, "Split")) || part->epilogue || !part->inputs[0]) return 0;
  const Value* whole = part->inputs[0];
  Dim first(0);
  for (size_t k = i; k < concat.inputs.size(); ++k) {
    const Value* v = concat.inputs[k];
    const Node* n = v->producer;
    if ((!is_op(n, "Slice") && !is_op(n, "Split")) || n->epilogue || n->inputs[0] != whole) return 0;
    const auto output = std::find(n->outputs.begin(), n->outputs.end(), v) - n->outputs.begin();
    if (whole->type.shape.size() <= axis || !is_part(*n, static_cast<size_t>(output), axis, first)) return 0;
    first = first + v->type.shape[axis];
    if (first == whole->type.shape[axis]) return k - i + 1;
  }
  return 0;
}

// Parts that a Concat joins again are the Value that they were.
bool merge_parts(Graph& g, Node* n) {
  if (!is_op(n, "Concat") || n->epilogue || !n->has_output(0)) return false;
  const auto axis =
      static_cast<size_t>(whole_axis(n->attributes.integer("axis", 0), n->outputs[0]->type.shape.size()));
  bool changed = false;
  for (size_t i = 0; i < n->inputs.size(); ++i) {
    const size_t count = parts_of_one(*n, i, axis);
    if (count < 2) continue;
    g.set_input(n, i, n->inputs[i]->producer->inputs[0]);
    for (size_t k = 1; k < count; ++k) g.remove_input(n, i + 1);
    changed = true;
  }
  return changed;
}

}  // namespace

bool remove_identity(Graph& g, const PassOptions&) {
  bool changed = false;
  for (Node* n : snapshot(g)) {
    if (!n->has_output(0)) continue;
    changed |= gather_to_squeeze(g, n);
    while (merge_views(g, n) || undoes_transpose(g, n) || merge_transposes(g, n)) changed = true;
    changed |= drop_empty_parts(g, n);
    changed |= merge_parts(g, n);
    Value* x = unchanged(*n);
    if (x) changed |= bypass(g, n->outputs[0], x);
  }
  g.erase_unused();
  return changed;
}

}  // namespace sinter
