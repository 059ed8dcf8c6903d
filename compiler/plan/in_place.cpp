// What convolutions and pools read and write where it is, instead of having it moved: Concat along channels,
// written in place by those that compute its inputs, or its inputs read where they lie, at twice their size
// too; planes of a picture, read by the first convolution.
#include <set>

#include "ops/op.h"
#include "ops/resize.h"
#include "ops/window.h"
#include "plan/plan.h"
#include "plan/views.h"

namespace sinter {
namespace {

// Whether each pixel's channels are one run of the node's result.
bool writes_pixels(const Node& n) {
  if (n.attributes.integer("channels_last", 0) == 1) return true;
  return n.op->domain[0] == 0 && std::string_view(n.op->name) == "Resize" &&
         resize_keeps(n, n.outputs[0]->type.shape.size() - 1);
}

// Whether `v` is made for its one user by a kernel that can write it in steps of more channels than it has.
bool can_be_part(const Graph& g, const Value* v, const Target& target) {
  const Node* n = v->producer;
  if (!n || v->users.size() != 1 || g.is_output(v) || !v->elements.empty()) return false;
  if (n->outputs.size() != 1 || !writes_pixels(*n)) return false;
  if (!v->type.shape.back().is_static()) return false;
  const Kernel* k = find_kernel(*n, target);
  return k && k->pitched;
}

bool joins_channels(const Node& n) {
  if (n.op->domain[0] != 0 || std::string_view(n.op->name) != "Concat" || n.epilogue) return false;
  const Shape& out = n.outputs[0]->type.shape;
  const int64_t axis = n.attributes.integer("axis", 0), rank = static_cast<int64_t>(out.size());
  if (n.inputs.size() < 2 || rank < 3 || (axis < 0 ? axis + rank : axis) != rank - 1) return false;
  for (const Value* v : n.inputs)
    for (size_t d = 0; d + 1 < out.size(); ++d)
      if (!(v->type.shape[d] == out[d])) return false;
  return out.back().is_static() && !is_stacked_concat(n);
}

// A Transpose from [N][C][spatial ...] to [N][spatial ...][C].
bool puts_channels_last(const Node& n) {
  if (n.op->domain[0] != 0 || std::string_view(n.op->name) != "Transpose" || n.epilogue) return false;
  const auto perm = n.attributes.integers("perm");
  if (perm.size() < 3 || perm[0] != 0 || perm.back() != 1) return false;
  for (size_t a = 1; a + 1 < perm.size(); ++a)
    if (perm[a] != static_cast<int64_t>(a) + 1) return false;
  return true;
}

// Words that broadcast one element at a time find it wherever it is; those of NEON, which multiply by four
// neighbours, have a kernel that gathers them (kernels/conv_planes.cpp).
bool can_read_planes(const Node& n, const Target& target) {
  if (n.op->domain[0] != 0 || std::string_view(n.op->name) != "Conv") return false;
  const Value* x = n.inputs[0];
  if (!x->producer || x->users.size() != 1 || !puts_channels_last(*x->producer)) return false;
  const Dim& channels = x->type.shape.back();
  if (!channels.is_static() || channels.value() > 4 || n.attributes.integer("group", 1) != 1) return false;
  const Kernel* k = find_kernel(n, target);
  if (!k || std::string_view(k->name) != "conv_direct") return false;
  const Window w = window_of(n);
  return w.kernel.back() > 1 && w.dilations.back() == 1;
}

}  // namespace

void read_planes(Graph& g, const Target& target) {
  for (const auto& n : g.nodes) {
    if (!can_read_planes(*n, target) || g.is_output(n->inputs[0])) continue;
    n->attributes.set("planar", int64_t{1});
    n->inputs[0]->producer->attributes.set("in_place", int64_t{1});
  }
}

namespace {

constexpr size_t kMostParts = 4;  // a turn of a loop each, and a pointer

// Whether `v` is made for its one user by doubling a picture's rows and columns.
bool is_doubled(const Graph& g, const Value* v) {
  const Node* n = v->producer;
  if (!n || n->op->domain[0] != 0 || std::string_view(n->op->name) != "Resize" || n->epilogue) return false;
  if (v->users.size() != 1 || g.is_output(v) || v->type.shape.size() != 4 || n->inputs[0]->data) return false;
  return resize_keeps(*n, 0) && resize_repeats(*n, 1, 2) && resize_repeats(*n, 2, 2) && resize_keeps(*n, 3);
}

// How often each part of the convolution's picture is repeated; empty where nothing is saved by reading parts
// or they can't be told apart by whole vectors.
std::vector<int64_t> parts_to_read(const Graph& g, const Node& n, const Target& target) {
  if (!may_use_winograd(n)) return {};
  const Value* x = n.inputs[0];
  if (x->type.shape.size() != 4 || !x->producer || x->users.size() != 1 || g.is_output(x) ||
      !x->elements.empty())
    return {};
  const Node& maker = *x->producer;
  const bool joins = joins_channels(maker) && !maker.attributes.has("in_place");
  if (!joins && !is_doubled(g, x)) return {};
  const std::vector<Value*> pieces = joins ? maker.inputs : n.inputs;
  const size_t count = joins ? pieces.size() : 1;
  if (count > kMostParts) return {};
  std::vector<int64_t> times;
  bool saves = false;
  for (size_t i = 0; i < count; ++i) {
    const Value* v = pieces[i];
    const bool doubled = is_doubled(g, v);
    if (v->data || !v->elements.empty() || !v->type.shape.back().is_static()) return {};
    if (i + 1 < count && v->type.shape.back().value() % target.lanes != 0) return {};
    saves |= doubled || !can_be_part(g, v, target);
    times.push_back(doubled ? 2 : 1);
  }
  return saves ? times : std::vector<int64_t>{};
}

}  // namespace

void read_parts(Graph& g, const Target& target) {
  for (const auto& n : g.nodes) {
    n->attributes.erase("part_times");
    const std::vector<int64_t> times = parts_to_read(g, *n, target);
    if (times.empty()) continue;
    const Kernel* k = find_kernel(*n, target);
    if (k && k->reads_parts) n->attributes.set("part_times", times);
  }
}

namespace {

// Which inputs of a Concat are to be copied to their channels, so that the others can be written in place;
// nothing where that gains nothing. Only where what is written in place is made just before the Concat: its
// result is not kept for longer then.
std::optional<std::vector<size_t>> copied_parts(const Graph& g, size_t at, const Target& target) {
  const Node& n = *g.nodes[at];
  std::vector<size_t> copied;
  bool near = true;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const Value* v = n.inputs[i];
    if (!can_be_part(g, v, target)) {
      if (v->data || !v->elements.empty()) return std::nullopt;
      copied.push_back(i);
      continue;
    }
    bool before = false;
    for (size_t k = at - std::min(at, n.inputs.size()); k < at; ++k)
      before |= g.nodes[k].get() == v->producer;
    near = near && before;
  }
  if (copied.size() == n.inputs.size() || (!copied.empty() && !near)) return std::nullopt;
  return copied;
}

}  // namespace

void place_concats(Graph& g, const Target& target) {
  struct Placed {
    Node* concat;
    std::vector<size_t> copied;
  };
  std::vector<Placed> placed;
  std::set<const Node*> read;  // whose inputs the user reads where they lie
  for (const auto& n : g.nodes)
    if (n->attributes.has("part_times")) read.insert(n->inputs[0]->producer);
  for (size_t at = 0; at < g.nodes.size(); ++at)
    if (joins_channels(*g.nodes[at]) && !g.nodes[at]->attributes.has("in_place") &&
        read.count(g.nodes[at].get()) == 0)
      if (auto copied = copied_parts(g, at, target))
        placed.push_back({g.nodes[at].get(), std::move(*copied)});
  for (const auto& [n, copied] : placed) {
    for (const size_t i : copied) copy_part(g, *n, i);
    n->attributes.set("in_place", int64_t{1});
    for (Value* v : n->inputs) v->producer->attributes.set("pitch", n->outputs[0]->type.shape.back().value());
  }
}

}  // namespace sinter
