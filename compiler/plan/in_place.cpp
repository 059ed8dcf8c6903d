// What convolutions and pools read and write where it is, instead of having it moved: Concat along channels,
// written in place by those that compute its inputs, or its inputs read where they lie, at twice their size
// too; planes of a picture, read by the first convolution.
#include <algorithm>
#include <set>

#include "emit/loops.h"
#include "ops/movement/movement.h"
#include "ops/op.h"
#include "ops/vision/resize.h"
#include "ops/windows/window.h"
#include "plan/lives.h"
#include "plan/plan.h"
#include "plan/views.h"

namespace sinter {
namespace {

bool is_op(const Node& n, std::string_view name) { return n.op->domain[0] == 0 && n.op->name == name; }

// Whether each pixel's channels are one run of the node's result.
bool writes_pixels(const Node& n) {
  if (n.attributes.integer("channels_last", 0) == 1) return true;
  return is_op(n, "Resize") && resize_keeps(n, n.outputs[0]->type.shape.size() - 1);
}

// Whether `v` is made by a kernel that can write it in steps of more channels than it has.
bool is_written_apart(const Graph& g, const Value* v, const Context& context) {
  const Node* n = v->producer;
  if (!n || g.is_output(v) || !v->elements.empty() || context.of(*n).pixel_stride) return false;
  if (n->outputs.size() != 1 || !writes_pixels(*n)) return false;
  if (!v->type.shape.back().is_static()) return false;
  const Kernel* k = find_kernel(*n, context);
  return k && k->can.writes_apart;
}

// ... for its one user.
bool can_be_part(const Graph& g, const Value* v, const Context& context) {
  return v->users.size() == 1 && is_written_apart(g, v, context);
}

bool joins_channels(const Node& n, const Decisions& decisions) {
  if (!is_op(n, "Concat") || n.epilogue) return false;
  const Shape& out = n.outputs[0]->type.shape;
  const int64_t axis = n.attributes.integer("axis", 0), rank = static_cast<int64_t>(out.size());
  if (n.inputs.size() < 2 || rank < 3 || (axis < 0 ? axis + rank : axis) != rank - 1) return false;
  for (const Value* v : n.inputs)
    for (size_t d = 0; d + 1 < out.size(); ++d)
      if (!(v->type.shape[d] == out[d])) return false;
  return out.back().is_static() && !is_stacked_concat(n, decisions);
}

// Words that broadcast one element at a time find it wherever it is; those of NEON, which multiply by four
// neighbours, have a kernel that gathers them (kernels/convolutions/conv_planes.cpp).
bool can_read_planes(const Node& n, const Context& context) {
  if (!may_read_planes(n) || n.inputs[0]->users.size() != 1) return false;
  const Kernel* k = find_kernel(n, context);
  return k && k->can.reads_nchw;
}

}  // namespace

void read_planes(Graph& g, const Target& target, Decisions& decisions) {
  for (const auto& n : g.nodes) {
    if (!can_read_planes(*n, {target, decisions}) || g.is_output(n->inputs[0])) continue;
    decisions.change(*n).reads_nchw = true;
    decisions.change(*n->inputs[0]->producer).in_place = true;
  }
}

namespace {

constexpr size_t kMostParts = 4;  // a turn of a loop each, and a pointer

// Whether `v` is made for its one user by doubling a picture's rows and columns.
bool is_doubled(const Graph& g, const Value* v) {
  const Node* n = v->producer;
  if (!n || !is_op(*n, "Resize") || n->epilogue) return false;
  if (v->users.size() != 1 || g.is_output(v) || v->type.shape.size() != 4 || n->inputs[0]->data) return false;
  return resize_keeps(*n, 0) && resize_repeats(*n, 1, 2) && resize_repeats(*n, 2, 2) && resize_keeps(*n, 3);
}

// How often each piece of the convolution's picture is repeated; empty where nothing is saved by reading
// pieces or they can't be told apart by whole vectors.
std::vector<int64_t> pieces_to_read(const Graph& g, const Node& n, const Context& context) {
  if (!may_use_winograd(n)) return {};
  const Value* x = n.inputs[0];
  if (x->type.shape.size() != 4 || !x->producer || x->users.size() != 1 || g.is_output(x) ||
      !x->elements.empty())
    return {};
  const Node& maker = *x->producer;
  const bool joins = joins_channels(maker, context.decisions) && !context.of(maker).in_place;
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
    if (i + 1 < count && v->type.shape.back().value() % context.target.lanes != 0) return {};
    saves |= doubled || !can_be_part(g, v, context);
    times.push_back(doubled ? 2 : 1);
  }
  return saves ? times : std::vector<int64_t>{};
}

}  // namespace

void read_pieces(Graph& g, const Target& target, Decisions& decisions) {
  const Context context{target, decisions};
  for (const auto& n : g.nodes) {
    if (!context.of(*n).piece_times.empty()) decisions.change(*n).piece_times.clear();
    const std::vector<int64_t> times = pieces_to_read(g, *n, context);
    if (times.empty()) continue;
    const Kernel* k = find_kernel(*n, context);
    if (k && k->can.reads_parts) decisions.change(*n).piece_times = times;
  }
}

namespace {

constexpr int64_t kFewChannels = 16;  // a line of the cache

// Whether each result of the Slice or Split is some channels of all pixels.
bool takes_channels(const Node& n) {
  if ((!is_op(n, "Slice") && !is_op(n, "Split")) || n.epilogue || !n.inputs[0] || n.inputs[0]->data)
    return false;
  const Shape& in = n.inputs[0]->type.shape;
  if (in.size() < 3 || !is_static(in) || product(in) == in.back()) return false;
  const std::vector<Dim> own = dim_strides(in);
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (!n.outputs[i]) continue;
    const Shape& out = n.outputs[i]->type.shape;
    const auto read = strided_read(n, in, out, i);
    if (!read || !read->offset.is_static() || out.size() != in.size()) return false;
    for (size_t d = 0; d < in.size(); ++d) {
      if (!in[d].is(1) && !(read->strides[d] == own[d])) return false;
      if (d + 1 < in.size() && !(out[d] == in[d])) return false;
    }
  }
  return true;
}

bool can_be_shown(const Graph& g, const Node& n, const Context& context);

// Whether the node's kernel, the one that it has now, can read pixels of `v` that are further apart than its
// channels take.
bool can_read_apart(const Graph& g, const Node& n, const Value* v, const Context& context) {
  if (is_view(n) || is_stacked_concat(n, context.decisions) || !n.bodies.empty() || context.of(n).reads_nchw)
    return false;
  if (takes_channels(n)) return can_be_shown(g, n, context);
  const Kernel* k = find_kernel(n, context);
  if (!k || !k->can.reads_apart) return false;
  for (size_t i = 1; i < n.anchor_inputs; ++i)
    if (n.inputs[i] == v && is_op(n, "Conv")) return false;
  // Its runs would be of a tap each.
  const bool runs = k->can.joins_taps && n.inputs[0] == v;
  return !runs || v->type.shape.back().value() >= 2 * kFewChannels || window_of(n).is_pointwise();
}

bool can_lie_apart(const Graph& g, const Value* v, const Node* but, const Context& context) {
  return std::all_of(v->users.begin(), v->users.end(),
                     [&](const Node* n) { return n == but || can_read_apart(g, *n, v, context); });
}

// Whether all that read results of the node, which takes_channels, can read them where they lie.
bool can_be_shown(const Graph& g, const Node& n, const Context& context) {
  return std::all_of(n.outputs.begin(), n.outputs.end(), [&](const Value* v) {
    return !v || (!g.is_output(v) && v->elements.empty() && v->type.dtype == n.inputs[0]->type.dtype &&
                  v->type.shape.back().value() >= kFewChannels && can_lie_apart(g, v, nullptr, context));
  });
}

// Calls f(part's node) for all that takes_channels of `v`, and of their results.
template <class F>
void for_each_part(const Value* v, const F& f) {
  for (Node* n : v->users) {
    if (!takes_channels(*n)) continue;
    f(*n);
    for (const Value* part : n->outputs)
      if (part) for_each_part(part, f);
  }
}

// Which inputs of a Concat are written straight to their channels of its result; the others are copied there.
using Pieces = std::vector<size_t>;
std::vector<const Value*> values_of(const Node& n, const Pieces& pieces) {
  std::vector<const Value*> values;
  for (const size_t i : pieces) values.push_back(n.inputs[i]);
  return values;
}

// From now on the Concat's result has these Values' memory, and that of channels taken of them.
void join(const Node& n, const std::vector<const Value*>& values, Lives& lives) {
  if (values.empty()) return;
  lives.join(n.outputs[0], values);
  for (const Value* v : values)
    for_each_part(v, [&](const Node& part) {
      std::vector<const Value*> parts;
      for (const Value* p : part.outputs)
        if (p) parts.push_back(p);
      lives.join(v, parts);
    });
}

// Those that nobody else reads. Where others are copied, only if what is written in place is made just before
// the Concat: its result is not kept for longer then.
Pieces own_pieces(const Graph& g, const Node& n, const Context& context, const Lives& lives) {
  Pieces pieces;
  bool near = true;
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (can_be_part(g, n.inputs[i], context)) {
      pieces.push_back(i);
      near = near && lives.made_at(n.inputs[i]) + n.inputs.size() >= lives.made_at(n.outputs[0]);
    }
  return near || pieces.size() == n.inputs.size() ? pieces : Pieces{};
}

// Those, and such as others can read where they lie then, as far as no more bytes are alive at once.
Pieces all_pieces(const Graph& g, const Node& n, const Context& context, const Lives& lives) {
  Pieces own = own_pieces(g, n, context, lives);
  Pieces shared;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const Value* v = n.inputs[i];
    if (std::count(n.inputs.begin(), n.inputs.end(), v) == 1 && is_written_apart(g, v, context) &&
        can_lie_apart(g, v, &n, context) && std::count(own.begin(), own.end(), i) == 0)
      shared.push_back(i);
  }
  // Those made first keep the result for longest.
  std::stable_sort(shared.begin(), shared.end(), [&](size_t a, size_t b) {
    return lives.made_at(n.inputs[a]) > lives.made_at(n.inputs[b]);
  });
  const auto peak = [&](const Pieces& pieces) {
    Lives then = lives;
    join(n, values_of(n, pieces), then);
    return then.peak();
  };
  const int64_t most = peak(own);
  for (; !shared.empty(); shared.pop_back()) {
    Pieces all = own;
    all.insert(all.end(), shared.begin(), shared.end());
    if (peak(all) <= most) return all;
  }
  return own;
}

void place_concat(Graph& g, Node& n, const Target& target, Decisions& decisions, Lives& lives) {
  for (const Value* v : n.inputs)
    if (v->data || !v->elements.empty()) return;
  const Pieces pieces = all_pieces(g, n, {target, decisions}, lives);
  if (pieces.empty()) return;
  const std::vector<const Value*> placed = values_of(n, pieces);
  join(n, placed, lives);
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (std::count(pieces.begin(), pieces.end(), i) == 0) copy_part(g, n, i);
  decisions.change(n).in_place = true;
  for (Value* v : n.inputs)
    decisions.change(*v->producer).pixel_stride = n.outputs[0]->type.shape.back().value();
  for (const Value* v : placed)
    for_each_part(v, [&](const Node& part) {
      const int64_t stride = decisions.pixel_stride(*part.inputs[0]).value();
      decisions.change(part).in_place = true;
      decisions.change(part).pixel_stride = stride;
    });
}

}  // namespace

void place_concats(Graph& g, const Target& target, Decisions& decisions) {
  std::set<const Node*> read;  // whose inputs the user reads where they lie
  for (const auto& n : g.nodes)
    if (!decisions.of(*n).piece_times.empty()) read.insert(n->inputs[0]->producer);
  std::vector<Node*> concats;
  for (const auto& n : g.nodes)
    if (joins_channels(*n, decisions) && !decisions.of(*n).in_place && read.count(n.get()) == 0)
      concats.push_back(n.get());
  if (concats.empty()) return;
  Lives lives(g, decisions);
  for (Node* n : concats) place_concat(g, *n, target, decisions, lives);
}

}  // namespace sinter
