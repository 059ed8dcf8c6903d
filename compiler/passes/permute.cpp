#include "passes/permute.h"

#include <algorithm>
#include <numeric>

#include "passes/rewrite.h"

namespace sinter {
namespace {

using Perm = std::vector<int64_t>;

int64_t normal(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

bool is_reduction(const Node& n) {
  return is_op(&n, "ReduceMean") || is_op(&n, "ReduceSum") || is_op(&n, "ReduceMax") ||
         is_op(&n, "ReduceMin") || is_op(&n, "ReduceProd") || is_op(&n, "ReduceL1") ||
         is_op(&n, "ReduceL2") || is_op(&n, "ReduceLogSum") || is_op(&n, "ReduceLogSumExp") ||
         is_op(&n, "ReduceSumSquare");
}

// The axis of an operator that works along one axis and keeps the rank; null where n is not such an operator.
std::optional<int64_t> single_axis(const Node& n) {
  const auto is = [&](const char* name) { return is_op(&n, name); };
  if (is("Softmax") || is("LogSoftmax") || is("Hardmax") || is("LpNormalization") || is("TopK"))
    return n.attributes.integer("axis", -1);
  if (is("Concat") || is("Split")) return n.attributes.integer("axis", 0);
  if (is("QuantizeLinear") || is("DequantizeLinear")) {
    const bool blocked = n.attributes.integer("block_size", 0) != 0;
    return blocked ? std::nullopt : std::optional<int64_t>(n.attributes.integer("axis", 1));
  }
  return std::nullopt;
}

// Dropping these axes leaves the others in their old order, permuted or not.
bool keeps_order(const Perm& perm, const std::vector<int64_t>& dropped) {
  int64_t last = -1;
  for (int64_t p : perm) {
    if (std::count(dropped.begin(), dropped.end(), p)) continue;
    if (p < last) return false;
    last = p;
  }
  return true;
}

std::optional<std::vector<int64_t>> normal_axes(const Value* v, size_t rank) {
  auto axes = integers_of(v);
  if (axes)
    for (int64_t& a : *axes) a = normal(a, rank);
  return axes;
}

// Slice's axes, also where they are left out.
std::optional<std::vector<int64_t>> slice_axes(const Node& n, size_t rank) {
  if (n.input(3)) return normal_axes(n.input(3), rank);
  const Shape& starts = n.inputs[1]->type.shape;
  if (starts.size() != 1 || !starts[0].is_static()) return std::nullopt;
  std::vector<int64_t> axes(static_cast<size_t>(starts[0].value()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Flatten or Reshape of [N, ...] to [N, K] whose only users multiply it by constant [K, M].
bool feeds_constant_matrices(const Graph& g, const Node& n) {
  const Shape& in = n.inputs[0]->type.shape;
  const Value* y = n.outputs[0];
  if (y->type.shape.size() != 2 || g.is_output(y) || y->users.empty() || in.size() < 2) return false;
  if (!(in[0] == y->type.shape[0]) || !is_static(Shape(in.begin() + 1, in.end()))) return false;
  if (!reshape_target(in, y->type.shape)) return false;
  return std::all_of(y->users.begin(), y->users.end(), [&](const Node* u) {
    return (is_op(u, "MatMul") || is_op(u, "Gemm")) && u->inputs[0] == y && u->inputs[1]->data &&
           u->inputs[1] != y && u->inputs[1]->data->rank() == 2 && u->attributes.integer("transA", 0) == 0 &&
           u->attributes.integer("transB", 0) == 0;
  });
}

bool is_elementwise(const Node& n) {
  return n.op->expr && !n.epilogue && n.outputs.size() == 1 && n.outputs[0] && n.bodies.empty();
}

std::optional<Roles> elementwise_roles(const Node& n, size_t rank) {
  if (n.outputs[0]->type.shape.size() != rank) return std::nullopt;
  Roles r{{}, {Role::kPermuted}};
  for (const Value* v : n.inputs) {
    if (!v || v->type.shape.empty())
      r.in.push_back(Role::kAsIs);
    else
      r.in.push_back(v->type.shape.size() == rank && !v->data ? Role::kPermuted : Role::kAligned);
  }
  return r;
}

bool resizable(const Node& n) {
  if (n.input(1) && !(n.input(1)->data && n.input(1)->data->size() == 0)) return false;  // roi
  return n.attributes.has("axes") || !n.input(2) || n.input(2)->data || n.input(3);
}

void remap_axes_input(Graph& g, Node& n, size_t input, const std::vector<int64_t>& axes, const Perm& at,
                      DType type) {
  Tensor t(type, {static_cast<int64_t>(axes.size())});
  for (size_t i = 0; i < axes.size(); ++i)
    t.set_integer(static_cast<int64_t>(i), at[static_cast<size_t>(axes[i])]);
  g.set_input(&n, input, g.add_constant(n.name + "/axes", std::move(t)));
}

// A constant with one entry (or, `halves` = 2, two rows of entries) per axis, in the new order.
Value* per_axis(Graph& g, const Value& v, const Perm& perm, size_t halves) {
  const Tensor& old = *v.data;
  Tensor t(old.dtype(), old.shape());
  const size_t size = size_of(old.dtype());
  for (size_t h = 0; h < halves; ++h)
    for (size_t i = 0; i < perm.size(); ++i)
      std::copy_n(old.data() + (h * perm.size() + static_cast<size_t>(perm[i])) * size, size,
                  t.mutable_data() + (h * perm.size() + i) * size);
  return g.add_constant(v.name + "/permuted", std::move(t));
}

// Rows of a [K, M] matrix in the order that [C, H, W], permuted, flattens to.
Tensor permuted_rows(const Tensor& w, const Shape& in, const Perm& perm) {
  std::vector<int64_t> shape = static_dims(Shape(in.begin() + 1, in.end())), order;
  shape.push_back(w.dim(1));
  for (size_t i = 1; i < perm.size(); ++i) order.push_back(perm[i] - 1);
  order.push_back(static_cast<int64_t>(perm.size()) - 1);
  return w.reshaped(shape).transposed(order).reshaped(w.shape());
}

}  // namespace

bool wants_channels_last(const Node& n) {
  static const char* const kOps[] = {"Conv",   "ConvTranspose",     "MaxPool",       "AveragePool",
                                     "LpPool", "GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization",
                                     "LRN",    "DepthToSpace",      "SpaceToDepth"};
  if (std::none_of(std::begin(kOps), std::end(kOps), [&](const char* k) { return is_op(&n, k); }))
    return false;
  if (!n.inputs[0] || n.has_output(1) || !n.has_output(0)) return false;
  const TensorType& t = n.inputs[0]->type;
  return is_float(t.dtype) && t.shape.size() >= 3 && n.outputs[0]->type.shape.size() == t.shape.size() &&
         n.attributes.integer("channels_last", 0) == 0;
}

std::vector<int64_t> channels_last_perm(size_t rank) {
  std::vector<int64_t> p(rank);
  std::iota(p.begin(), p.end(), 0);
  std::rotate(p.begin() + 1, p.begin() + 2, p.end());
  return p;
}

std::optional<Roles> roles_if_permuted(const Graph& g, const Node& n, const Perm& perm) {
  const size_t rank = perm.size();
  if (n.epilogue || !n.bodies.empty() || n.outputs.empty() || n.inputs.empty() || !n.inputs[0])
    return std::nullopt;
  if (is_elementwise(n)) return elementwise_roles(n, rank);
  if (n.inputs[0]->type.shape.size() != rank) return std::nullopt;
  Roles first{std::vector<Role>(n.inputs.size(), Role::kAsIs),
              std::vector<Role>(n.outputs.size(), Role::kPermuted)};
  first.in[0] = Role::kPermuted;
  Roles ends = first;  // the result does not have those axes any more
  std::fill(ends.out.begin(), ends.out.end(), Role::kAsIs);
  const auto is = [&](const char* name) { return is_op(&n, name); };
  if (is("Concat")) {
    std::fill(first.in.begin(), first.in.end(), Role::kPermuted);
    return first;
  }
  if (single_axis(n)) return first;
  if (is("ArgMax") || is("ArgMin")) {
    if (n.attributes.integer("keepdims", 1) != 0) return first;
    return keeps_order(perm, {normal(n.attributes.integer("axis", 0), rank)}) ? std::optional(ends)
                                                                              : std::nullopt;
  }
  if (is_reduction(n)) {
    const auto axes = normal_axes(n.input(1), rank);
    if (!axes || axes->empty()) return std::nullopt;
    if (n.attributes.integer("keepdims", 1) != 0) return first;
    return keeps_order(perm, *axes) ? std::optional(ends) : std::nullopt;
  }
  if (is("Slice")) return slice_axes(n, rank) ? std::optional(first) : std::nullopt;
  if (is("Pad")) {
    const bool known =
        n.input(3) ? normal_axes(n.input(3), rank).has_value() : n.input(1) && n.input(1)->data;
    return known ? std::optional(first) : std::nullopt;
  }
  if (is("Tile")) return n.input(1)->data ? std::optional(first) : std::nullopt;
  if (is("CumSum")) return integers_of(n.input(1)) ? std::optional(first) : std::nullopt;
  if (is("Gather")) {
    const size_t indices = n.inputs[1]->type.shape.size();
    if (indices == 1) return first;
    const bool drops = indices == 0 && keeps_order(perm, {normal(n.attributes.integer("axis", 0), rank)});
    return drops ? std::optional(ends) : std::nullopt;
  }
  if (is("Resize")) return resizable(n) ? std::optional(first) : std::nullopt;
  if (is("Shape") && !n.attributes.has("start") && !n.attributes.has("end") && n.has_output(0)) return ends;
  if (is("Squeeze")) {
    const auto axes = normal_axes(n.input(1), rank);
    return axes && keeps_order(perm, *axes) ? std::optional(ends) : std::nullopt;
  }
  if ((is("Flatten") || is("Reshape")) && n.has_output(0) && perm[0] == 0 && feeds_constant_matrices(g, n))
    return ends;
  return std::nullopt;
}

void permute_node(Graph& g, Node& n, const Perm& perm) {
  const size_t rank = perm.size();
  const Perm at = inverse(perm);  // old axis -> new axis
  const auto is = [&](const char* name) { return is_op(&n, name); };
  const auto moved = [&](int64_t axis) { return at[static_cast<size_t>(normal(axis, rank))]; };
  if (wants_channels_last(n) && perm == channels_last_perm(rank)) {
    n.attributes.set("channels_last", int64_t{1});
  } else if (const auto axis = single_axis(n)) {
    n.attributes.set("axis", moved(*axis));
  } else if (is("ArgMax") || is("ArgMin") || is("Gather")) {
    n.attributes.set("axis", moved(n.attributes.integer("axis", 0)));
  } else if (is_reduction(n) || is("CumSum") || is("Squeeze")) {
    const auto axes = *normal_axes(n.inputs[1], rank);
    if (n.inputs[1]->type.shape.empty())
      g.set_input(&n, 1, g.add_constant(n.name + "/axis", Tensor::scalar(at[static_cast<size_t>(axes[0])])));
    else
      remap_axes_input(g, n, 1, axes, at, DType::kI64);
  } else if (is("Slice")) {
    remap_axes_input(g, n, 3, *slice_axes(n, rank), at, n.inputs[1]->type.dtype);
  } else if (is("Pad")) {
    if (n.input(3))
      remap_axes_input(g, n, 3, *normal_axes(n.inputs[3], rank), at, n.inputs[3]->type.dtype);
    else
      g.set_input(&n, 1, per_axis(g, *n.inputs[1], perm, 2));
  } else if (is("Tile")) {
    g.set_input(&n, 1, per_axis(g, *n.inputs[1], perm, 1));
  } else if (is("Resize") && n.attributes.has("axes")) {
    std::vector<int64_t> axes = n.attributes.integers("axes");
    for (int64_t& a : axes) a = moved(a);
    n.attributes.set("axes", axes);
  } else if (is("Resize")) {
    for (size_t k : {size_t{2}, size_t{3}}) {
      if (!n.input(k) || n.input(k)->type.shape[0].is(0)) continue;
      if (n.input(k)->data) {
        g.set_input(&n, k, per_axis(g, *n.input(k), perm, 1));
        continue;
      }
      Value* sizes = g.add_value(n.name + "/sizes", n.input(k)->type);
      Node* gather = g.add_node(find_op("", "Gather"), sizes->name,
                                {n.input(k), constant_integers(g, n.name + "/order", perm)}, {sizes}, &n);
      infer(g, *gather);
      g.set_input(&n, k, sizes);
    }
  } else if (is("Shape")) {  // of the permuted tensor; then back in order
    Value* y = n.outputs[0];
    Value* own = g.add_value(n.name + "/permuted", y->type);
    n.outputs[0] = own;
    own->producer = &n;
    y->producer = nullptr;
    Node* gather = g.add_node(find_op("", "Gather"), y->name,
                              {own, constant_integers(g, n.name + "/order", at)}, {y}, node_after(g, &n));
    gather->sources = n.sources;
  } else if (is("Flatten") || is("Reshape")) {
    std::vector<Node*> users = n.outputs[0]->users;
    const Shape in = n.inputs[0]->type.shape;  // still the original one: the caller sets inputs afterwards
    for (Node* u : users) {
      const Value* w = u->inputs[1];
      g.set_input(u, 1, g.add_constant(w->name + "/permuted", permuted_rows(*w->data, in, perm)));
    }
    const auto target = reshape_target(permuted(in, perm), n.outputs[0]->type.shape);
    if (is("Reshape") && target) g.set_input(&n, 1, constant_integers(g, n.name + "/shape", *target));
  }
}

}  // namespace sinter
