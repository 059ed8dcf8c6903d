#include "passes/permute.h"

#include <algorithm>
#include <numeric>

#include "ops/windows/window.h"
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

// The role of an output that lost (or, `dropped` being axes of the output, an input that lacks) these axes of
// a tensor of `rank`: what is left comes in its old order, or permuted, or in no order that has a name.
std::optional<Role> role_without(const Arrangement& a, size_t rank, const std::vector<int64_t>& dropped) {
  std::vector<int64_t> left, order;
  for (size_t i = 0; i < rank; ++i)
    if (!std::count(dropped.begin(), dropped.end(), static_cast<int64_t>(i)))
      left.push_back(static_cast<int64_t>(i));
  for (int64_t p : a.perm(rank)) {
    const auto at = std::find(left.begin(), left.end(), p);
    if (at != left.end()) order.push_back(at - left.begin());
  }
  if (is_identity(order)) return Role::kAsIs;
  return order == a.perm(order.size()) ? std::optional(Role::kPermuted) : std::nullopt;
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

// A convolution of single pixels: the same whatever the order of the axes before its channels.
bool is_pointwise(const Node& n) {
  return is_op(&n, "Conv") && n.attributes.integer("channels_last", 0) == 1 && window_of(n).is_pointwise();
}

bool is_roi_rows(const Node& n) {
  return n.op->name == std::string_view("roi_rows") && n.attributes.integer("channels_last", 0) == 0;
}

std::optional<Roles> elementwise_roles(const Node& n, const Arrangement& a) {
  const size_t rank = n.outputs[0]->type.shape.size();
  if (!a.concerns(rank)) return std::nullopt;
  Roles r{{}, {Role::kPermuted}};
  if (is_op(&n, "CastLike")) {  // the second input gives its type only
    r.in = {Role::kPermuted, Role::kAsIs};
    return r;
  }
  for (const Value* v : n.inputs) {
    if (!v || v->type.shape.empty())
      r.in.push_back(Role::kAsIs);
    else
      r.in.push_back(v->type.shape.size() == rank && !v->data ? Role::kPermuted : Role::kAligned);
  }
  return r;
}

// A reduction's axes, all of them where none are given; null: not known, or nothing is reduced.
std::optional<std::vector<int64_t>> reduced_axes(const Node& n, size_t rank) {
  if (n.input(1)) {
    auto axes = normal_axes(n.input(1), rank);
    if (!axes || !axes->empty()) return axes;
  }
  if (n.attributes.integer("noop_with_empty_axes", 0) != 0) return std::nullopt;
  std::vector<int64_t> all(rank);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Unsqueeze: its input is its output without the new axes, in either order.
std::optional<Roles> unsqueeze_roles(const Node& n, const Arrangement& a) {
  const size_t rank = n.outputs[0]->type.shape.size();
  const auto axes = normal_axes(n.input(1), rank);
  if (!axes || !a.concerns(rank)) return std::nullopt;
  const auto in = role_without(a, rank, *axes);
  if (!in) return std::nullopt;
  return Roles{{*in, Role::kAsIs}, {Role::kPermuted}};
}

// A Reshape of [N, C, S..] to [N, C, T..], or of [N, S.., C] to [N, T.., C]: the same on permuted tensors.
bool keeps_moved_axis(const Node& n, const Arrangement& a) {
  const Shape &in = n.inputs[0]->type.shape, &out = n.outputs[0]->type.shape;
  if (a.moved_axis(in.size()) < 0 || !a.concerns(in.size()) || !a.concerns(out.size())) return false;
  const Dim &from = in[static_cast<size_t>(a.moved_axis(in.size()))],
            &to = out[static_cast<size_t>(a.moved_axis(out.size()))];
  return in[0] == out[0] && from == to &&
         reshape_target(permuted(in, a.perm(in.size())), permuted(out, a.perm(out.size())));
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

void become_reshape(Graph& g, Node& n, const std::vector<int64_t>& target) {
  n.op = find_op("", "Reshape");
  n.attributes = {};
  g.set_input(&n, 1, constant_integers(g, n.name + "/shape", target));
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

Arrangement Arrangement::of(std::vector<int64_t> perm) {
  Arrangement a;
  a.perm_ = std::move(perm);
  return a;
}
Arrangement Arrangement::channels_last() {
  Arrangement a;
  a.kind_ = Kind::kLast;
  return a;
}
Arrangement Arrangement::channels_first() {
  Arrangement a;
  a.kind_ = Kind::kFirst;
  return a;
}

Perm Arrangement::perm(size_t rank) const {
  if (kind_ == Kind::kOne) return rank == perm_.size() ? perm_ : Perm{};
  if (rank < 3) return {};
  Perm p(rank);
  std::iota(p.begin(), p.end(), 0);
  std::rotate(p.begin() + 1, p.begin() + 2, p.end());
  return kind_ == Kind::kLast ? p : inverse(p);
}

int64_t Arrangement::moved_axis(size_t rank) const {
  return kind_ == Kind::kOne ? -1 : kind_ == Kind::kLast ? 1 : static_cast<int64_t>(rank) - 1;
}

bool is_convolution(const Node& n) { return is_op(&n, "Conv") || is_op(&n, "ConvTranspose"); }

bool has_channels_last_form(const Node& n) {
  static const char* const kOps[] = {"Conv",
                                     "ConvTranspose",
                                     "MaxPool",
                                     "AveragePool",
                                     "LpPool",
                                     "GlobalAveragePool",
                                     "GlobalMaxPool",
                                     "InstanceNormalization",
                                     "LRN",
                                     "DepthToSpace",
                                     "SpaceToDepth",
                                     "RoiAlign",
                                     "GroupNormalization"};
  if (std::none_of(std::begin(kOps), std::end(kOps), [&](const char* k) { return is_op(&n, k); }))
    return false;
  if (!n.input(0) || n.has_output(1) || !n.has_output(0)) return false;
  const TensorType& t = n.inputs[0]->type;
  const bool pooled_bytes = is_op(&n, "MaxPool") && (t.dtype == DType::kI8 || t.dtype == DType::kU8);
  return (is_float(t.dtype) || n.attributes.integer("integer", 0) != 0 || pooled_bytes) &&
         t.shape.size() >= 3 && n.outputs[0]->type.shape.size() == t.shape.size() &&
         n.attributes.integer("channels_last", 0) == 0;
}

std::optional<Roles> roles_if_permuted(const Graph& g, const Node& n, const Arrangement& a) {
  if (n.epilogue || !n.bodies.empty() || n.outputs.empty() || n.inputs.empty() || !n.inputs[0])
    return std::nullopt;
  if (is_elementwise(n)) return elementwise_roles(n, a);
  const size_t rank = n.inputs[0]->type.shape.size();
  const auto is = [&](const char* name) { return is_op(&n, name); };
  Roles same{std::vector<Role>(n.inputs.size(), Role::kAsIs),
             std::vector<Role>(n.outputs.size(), Role::kPermuted)};
  same.in[0] = Role::kPermuted;
  const auto ends_as = [&](std::optional<Role> out) {
    if (!out) return std::optional<Roles>();
    Roles r = same;
    std::fill(r.out.begin(), r.out.end(), *out);
    return std::optional(r);
  };
  const auto same_if = [&](bool possible) { return possible ? std::optional(same) : std::nullopt; };
  if (is("Unsqueeze") && n.has_output(0)) return unsqueeze_roles(n, a);
  if (is("ConstantOfShape") && n.has_output(0) && a.concerns(n.outputs[0]->type.shape.size()))
    return Roles{{Role::kAsIs}, {Role::kPermuted}};
  if (is_roi_rows(n) && a.is_channels_last()) {
    same.in[2] = Role::kPermuted;
    return same;
  }
  if (!a.concerns(rank)) return std::nullopt;
  if (has_channels_last_form(n)) return same_if(a.is_channels_last());
  if (is_pointwise(n)) return same_if(a.perm(rank).back() == static_cast<int64_t>(rank) - 1);
  if (is("Concat")) {
    std::fill(same.in.begin(), same.in.end(), Role::kPermuted);
    return same;
  }
  if (single_axis(n)) return same;
  if (is("ArgMax") || is("ArgMin")) {
    if (n.attributes.integer("keepdims", 1) != 0) return same;
    return ends_as(role_without(a, rank, {normal(n.attributes.integer("axis", 0), rank)}));
  }
  if (is_reduction(n)) {
    const auto axes = reduced_axes(n, rank);
    if (!axes) return std::nullopt;
    if (n.attributes.integer("keepdims", 1) != 0) return same;
    return ends_as(role_without(a, rank, *axes));
  }
  if (is("Slice")) return same_if(slice_axes(n, rank).has_value());
  if (is("Pad"))
    return same_if(n.input(3) ? normal_axes(n.input(3), rank).has_value() : n.input(1) && n.input(1)->data);
  if (is("Tile")) return same_if(n.input(1)->data.has_value());
  if (is("CumSum")) return same_if(integers_of(n.input(1)).has_value());
  if (is("Gather")) {
    const size_t indices = n.inputs[1]->type.shape.size();
    if (indices == 1) return same;
    if (indices > 1) return std::nullopt;
    return ends_as(role_without(a, rank, {normal(n.attributes.integer("axis", 0), rank)}));
  }
  if (is("Resize")) return same_if(resizable(n));
  if (is("Shape") && !n.attributes.has("start") && !n.attributes.has("end") && n.has_output(0))
    return ends_as(Role::kAsIs);
  if (is("Squeeze")) {
    const auto axes = normal_axes(n.input(1), rank);
    return axes ? ends_as(role_without(a, rank, *axes)) : std::nullopt;
  }
  if ((is("Flatten") || is("Reshape")) && n.has_output(0)) {
    if (a.perm(rank)[0] == 0 && feeds_constant_matrices(g, n)) return ends_as(Role::kAsIs);
    if (keeps_moved_axis(n, a)) return same;
  }
  return std::nullopt;
}

namespace {

// Input k, which has one entry an axis, in the new order.
void permute_operand(Graph& g, Node& n, size_t k, const Perm& perm) {
  if (n.input(k)->data) {
    g.set_input(&n, k, per_axis(g, *n.input(k), perm, 1));
    return;
  }
  Value* ordered = g.add_value(n.name + "/ordered", n.input(k)->type);
  Node* gather = g.add_node(find_op("", "Gather"), ordered->name,
                            {n.input(k), constant_integers(g, n.name + "/order", perm)}, {ordered}, &n);
  infer(g, *gather);
  g.set_input(&n, k, ordered);
}

void permute_resize(Graph& g, Node& n, const Perm& perm, const Perm& at) {
  if (n.attributes.has("axes")) {
    std::vector<int64_t> axes = n.attributes.integers("axes");
    for (int64_t& a : axes) a = at[static_cast<size_t>(normal(a, perm.size()))];
    n.attributes.set("axes", axes);
    return;
  }
  for (size_t k : {size_t{2}, size_t{3}}) {
    if (!n.input(k) || n.input(k)->type.shape[0].is(0)) continue;
    permute_operand(g, n, k, perm);
  }
}

// Shape of the permuted tensor, then its entries back in order.
void permute_shape(Graph& g, Node& n, const Perm& at) {
  Value* y = n.outputs[0];
  Value* own = g.add_value(n.name + "/permuted", y->type);
  n.outputs[0] = own;
  own->producer = &n;
  y->producer = nullptr;
  Node* gather = g.add_node(find_op("", "Gather"), y->name,
                            {own, constant_integers(g, n.name + "/order", at)}, {y}, node_after(g, &n));
  gather->sources = n.sources;
}

void permute_reshape(Graph& g, Node& n, const Arrangement& a) {
  const Shape in = n.inputs[0]->type.shape, out = n.outputs[0]->type.shape;
  const Shape from = permuted(in, a.perm(in.size()));
  if (!feeds_constant_matrices(g, n)) {
    const auto target = reshape_target(from, permuted(out, a.perm(out.size())));
    SINTER_CHECK(target, "a Reshape can't be permuted");
    become_reshape(g, n, *target);
    return;
  }
  n.outputs[0]->origin.clear();  // its elements are in another order now
  n.outputs[0]->perm.clear();
  const std::vector<Node*> users = n.outputs[0]->users;
  for (Node* u : users) {
    const Value* w = u->inputs[1];
    g.set_input(u, 1, g.add_constant(w->name + "/permuted", permuted_rows(*w->data, in, a.perm(in.size()))));
  }
  if (const auto target = reshape_target(from, out); is_op(&n, "Reshape") && target)
    become_reshape(g, n, *target);
}

}  // namespace

void permute_node(Graph& g, Node& n, const Arrangement& a) {
  if (is_elementwise(n)) return;
  const auto is = [&](const char* name) { return is_op(&n, name); };
  if (is("Unsqueeze")) {
    const size_t rank = n.outputs[0]->type.shape.size();
    remap_axes_input(g, n, 1, *normal_axes(n.inputs[1], rank), inverse(a.perm(rank)), DType::kI64);
    return;
  }
  if (is("ConstantOfShape")) return permute_operand(g, n, 0, a.perm(n.outputs[0]->type.shape.size()));
  const size_t rank = n.inputs[0]->type.shape.size();
  const Perm perm = a.perm(rank), at = inverse(perm);  // at: old axis -> new axis
  const auto moved = [&](int64_t axis) { return at[static_cast<size_t>(normal(axis, rank))]; };
  if (has_channels_last_form(n) || is_roi_rows(n)) {
    n.attributes.set("channels_last", int64_t{1});
  } else if (const auto axis = single_axis(n)) {
    n.attributes.set("axis", moved(*axis));
  } else if (is("ArgMax") || is("ArgMin") || is("Gather")) {
    n.attributes.set("axis", moved(n.attributes.integer("axis", 0)));
  } else if (is("CumSum") && n.inputs[1]->type.shape.empty()) {
    const int64_t axis = moved((*integers_of(n.inputs[1]))[0]);
    g.set_input(&n, 1, g.add_constant(n.name + "/axis", Tensor::scalar(axis)));
  } else if (is_reduction(n) || is("CumSum") || is("Squeeze")) {
    if (n.input(1) && !normal_axes(n.inputs[1], rank)->empty())
      remap_axes_input(g, n, 1, *normal_axes(n.inputs[1], rank), at, DType::kI64);
  } else if (is("Slice")) {
    remap_axes_input(g, n, 3, *slice_axes(n, rank), at, n.inputs[1]->type.dtype);
  } else if (is("Pad")) {
    if (n.input(3))
      remap_axes_input(g, n, 3, *normal_axes(n.inputs[3], rank), at, n.inputs[3]->type.dtype);
    else
      g.set_input(&n, 1, per_axis(g, *n.inputs[1], perm, 2));
  } else if (is("Tile")) {
    g.set_input(&n, 1, per_axis(g, *n.inputs[1], perm, 1));
  } else if (is("Resize")) {
    permute_resize(g, n, perm, at);
  } else if (is("Shape")) {
    permute_shape(g, n, at);
  } else if (is("Flatten") || is("Reshape")) {
    permute_reshape(g, n, a);
  }
}

}  // namespace sinter
