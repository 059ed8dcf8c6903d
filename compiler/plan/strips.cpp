#include "plan/strips.h"

#include <algorithm>
#include <map>

#include "ops/op.h"
#include "ops/windows/window.h"
#include "targets/target.h"

namespace sinter {
namespace {

bool is_op(const Node& n, std::string_view name) { return n.op->domain[0] == 0 && n.op->name == name; }
bool is_frame(const Node& n) { return n.op == find_op("sinter", "frame_to_tensor"); }
bool is_pool(const Node& n) { return is_op(n, "MaxPool") || is_op(n, "AveragePool"); }
// Of a Transpose that is sliced: whether its output, else its input, has the channels last.
bool puts_last(const Node& n) { return n.attributes.integers("perm").back() == 1; }

}  // namespace

RowAxis row_axis(const Node& n) {
  if (is_frame(n)) {
    const int64_t rows = n.outputs[0]->type.shape[1].value();
    return {1, 1, 1, 0, rows, rows};
  }
  if (is_op(n, "Transpose")) {
    const int64_t rows = (puts_last(n) ? n.outputs[0] : n.inputs[0])->type.shape[1].value();
    return {1, 1, 1, 0, rows, rows};
  }
  const Window w = window_of(n);
  return {w.kernel[0],     w.strides[0],    w.dilations[0], w.pads_begin[0].value(),
          w.in[0].value(), w.out[0].value()};
}

int64_t row_bytes(const Value& v) {
  const Shape& s = v.type.shape;
  return s[2].value() * s[3].value() * static_cast<int64_t>(size_of(v.type.dtype));
}

namespace {

int64_t bytes(const Value& v) { return v.type.shape[1].value() * row_bytes(v); }

bool is_depthwise(const Node& n) { return n.attributes.integer("group", 1) > 1; }

// A convolution of one picture of known extents, or its way from planes or to them, by a kernel that can do
// some rows.
bool can_be_sliced(const Node& n, const Context& context) {
  if (context.of(n).row_tile) return false;
  if (is_frame(n)) return find_kernel(n, context) && row_axis(n).out > 1;
  if (!is_op(n, "Transpose") &&
      !((is_op(n, "Conv") || is_pool(n)) && n.attributes.integer("channels_last", 0) == 1))
    return false;
  for (const Value* v : {n.inputs[0], n.outputs[0]})
    if (v->type.shape.size() != 4 || !is_static(v->type.shape) || !v->type.shape[0].is(1)) return false;
  const Kernel* k = find_kernel(n, context);
  // Tile matrices gain less than what stays in the cache between layers; in a strip conv_direct runs the
  // node.
  if (!k || !(k->can.rows || k->can.algorithm == Algorithm::kTileMatrices)) return false;
  if (is_op(n, "Transpose")) return true;
  if (!window_of(n).has_static_pads()) return false;
  const RowAxis a = row_axis(n);
  return a.out > 1 && a.pad < a.span();
}

// Whether `b` alone reads what `a` writes, as its picture.
bool is_chain(const Graph& g, const Decisions& d, const Node& a, const Node& b) {
  const Value* v = a.outputs[0];
  return b.inputs[0] == v && v->users.size() == 1 && !d.of(a).pixel_stride && !d.of(b).reads_nchw &&
         !g.is_output(v);
}

// Rows of each buffer of the group for `rows` rows of the last layer's result.
std::vector<int64_t> buffer_rows(const std::vector<Node*>& group, int64_t rows) {
  std::vector<int64_t> counts;
  for (size_t i = group.size(); i-- > 1;) {
    const RowAxis a = row_axis(*group[i]);
    rows = std::min((rows - 1) * a.stride + a.span(), a.in);
    counts.insert(counts.begin(), rows);
  }
  return counts;
}

int64_t buffer_bytes(const std::vector<Node*>& group, int64_t rows) {
  int64_t sum = 0;
  const std::vector<int64_t> counts = buffer_rows(group, rows);
  for (size_t i = 0; i < counts.size(); ++i) sum += counts[i] * row_bytes(*group[i]->outputs[0]);
  return sum;
}

// So many rows that the turns are whole and, for threads, a multiple of their number.
int64_t in_equal_turns(int64_t rows, int64_t out, int64_t threads) {
  const int64_t turns = ((out + rows - 1) / rows + threads - 1) / threads * threads;
  rows = (out + turns - 1) / turns;
  return threads > 1 && rows < 2 ? 0 : rows;
}

int64_t rows_of(const std::vector<Node*>& group, int64_t cache, int64_t threads);

// Behind a frame the rows of its picture are to take little memory, whatever the cache holds: few rows, and
// two turns at least. Further layers are in the group if they would be one without the frame.
int64_t rows_behind_frame(const std::vector<Node*>& group, int64_t cache, int64_t threads) {
  if (group.size() > 2 && rows_of({group.begin() + 1, group.end()}, cache, threads) == 0) return 0;
  const int64_t few = std::min<int64_t>(48 << 10, bytes(*group.front()->outputs[0]) / 8);
  const int64_t most = group.size() > 2 ? cache : few;
  const int64_t out = row_axis(*group.back()).out;
  int64_t rows = std::min<int64_t>(2, out / 2);
  while (rows < out / 2 && buffer_bytes(group, rows + 1) <= std::min(most, cache / 3 * 2)) ++rows;
  return rows < 1 ? 0 : in_equal_turns(rows, out, threads);
}

// Rows a turn whose buffers take two thirds of the cache; 0 where strips are not worth it: what is
// between is small, the weights are not, or so few rows fit that the tiles are broken. Halves take half of
// what floats would: the arena is to be half as large, and longer strips are no faster.
int64_t rows_of(const std::vector<Node*>& group, int64_t cache, int64_t threads) {
  if (is_frame(*group.front())) return rows_behind_frame(group, cache, threads);
  const bool halves = group.front()->outputs[0]->type.dtype == DType::kF16;
  if (halves) cache /= 2;
  int64_t between = 0, weights = 0;
  for (size_t i = 0; i + 1 < group.size(); ++i) between += bytes(*group[i]->outputs[0]);
  for (const Node* n : group)
    if (is_op(*n, "Conv")) weights += n->inputs[1]->data->bytes() / (halves ? 2 : 1);
  if (between < cache / 2 || weights > cache / 4) return 0;
  const int64_t out = row_axis(*group.back()).out;
  int64_t rows = 0;
  while (rows < out && buffer_bytes(group, rows + 1) <= cache / 3 * 2) ++rows;
  if (rows < 2 || rows >= out) return 0;
  return in_equal_turns(rows, out, threads);
}

void mark(const std::vector<Node*>& group, int64_t number, int64_t rows, int threads, Decisions& decisions) {
  const std::vector<int64_t> counts = buffer_rows(group, rows);
  for (size_t i = 0; i < group.size(); ++i) {
    RowTile tile{number, threads, i > 0, i + 1 < group.size()};
    if (tile.writes_rows) {
      const int64_t bytes = counts[i] * row_bytes(*group[i]->outputs[0]);
      tile.bytes = threads > 1 ? apart(bytes) : bytes;
    } else {
      tile.rows = rows;
    }
    decisions.change(*group[i]).row_tile = tile;
  }
}

// The group's layers run apart, without what row tiles did not let them use either.
void part(const std::vector<Node*>& group, Decisions& decisions) {
  for (const Node* n : group) {
    decisions.change(*n).row_tile.reset();
    decisions.change(*n).tile_matrices.allowed = false;
  }
}

// A frame and a convolution or a group. Expand + depthwise + project, or two of them; a single convolution
// only with the way from or to planes, or with the pool behind it.
bool is_group(const std::vector<Node*>& group) {
  if (is_frame(*group[0])) {
    const std::vector<Node*> behind(group.begin() + 1, group.end());
    return behind.size() == 1 ? is_op(*behind[0], "Conv") : !behind.empty() && is_group(behind);
  }
  std::vector<const Node*> convolutions;
  const auto pools = std::count_if(group.begin(), group.end(), [](const Node* n) { return is_pool(*n); });
  if (pools > 0) return group.size() == 2 && is_op(*group[0], "Conv") && is_pool(*group[1]);
  for (size_t i = 0; i < group.size(); ++i) {
    const Node& n = *group[i];
    if (is_op(n, "Conv"))
      convolutions.push_back(&n);
    else if (puts_last(n) ? i > 0 : i + 1 < group.size())
      return false;
  }
  const size_t count = convolutions.size();
  const auto depthwise =
      std::count_if(convolutions.begin(), convolutions.end(), [](const Node* n) { return is_depthwise(*n); });
  if (count == 1) return group.size() > 1;
  return depthwise == 1 && (count == 2 || (count == 3 && is_depthwise(*convolutions[1])));
}

// The group of `size` nodes from g.nodes[first]; empty where they are none.
std::vector<Node*> group_at(const Graph& g, size_t first, size_t size, const Context& context) {
  std::vector<Node*> group;
  for (size_t i = first; i < first + size && i < g.nodes.size(); ++i) {
    Node* n = g.nodes[i].get();
    if (!can_be_sliced(*n, context) || (!group.empty() && !is_chain(g, context.decisions, *group.back(), *n)))
      return {};
    group.push_back(n);
  }
  if (group.size() < size || !is_group(group)) return {};
  return group;
}

bool is_tuned_apart(const std::vector<Node*>& group, const Tuning& tuning) {
  if (tuning.empty()) return false;
  const auto row = tuning.find(tuning_layer({group.begin(), group.end()}));
  return row != tuning.end() && row->second == "apart";
}

}  // namespace

void make_strips(const Graph& g, const Target& target, Decisions& decisions, int64_t cache,
                 const Tuning& tuning) {
  if (cache == 0) cache = target.speed.l2;
  int64_t number = 0;
  for (size_t i = 0; i + 1 < g.nodes.size(); ++i)
    for (const size_t size : {5, 4, 3, 2}) {
      const std::vector<Node*> group = group_at(g, i, size, {target, decisions});
      const int64_t rows = group.empty() ? 0 : rows_of(group, cache, 1);
      if (rows == 0 || is_tuned_apart(group, tuning)) continue;
      mark(group, number++, rows, 1, decisions);
      break;
    }
}

void share_strips(const Graph& g, const Target& target, Decisions& decisions, int threads, int64_t cache) {
  if (cache == 0) cache = target.speed.l2;
  std::map<int64_t, std::vector<Node*>> groups;
  for (const auto& n : g.nodes)
    if (const auto& tile = decisions.of(*n).row_tile) groups[tile->group].push_back(n.get());
  for (const auto& [number, group] : groups)
    if (const int64_t rows = rows_of(group, cache, threads))
      mark(group, number, rows, threads, decisions);
    else
      part(group, decisions);
}

size_t behind_strips(const Plan& plan, size_t layer) {
  const auto group = [&](size_t i) -> int64_t {
    const auto& tile = plan.decision(i).row_tile;
    return tile ? tile->group : -1;
  };
  size_t end = layer + 1;
  if (group(layer) < 0) return end;
  while (end < plan.layers.size() && group(end) == group(layer)) ++end;
  return end;
}

}  // namespace sinter
