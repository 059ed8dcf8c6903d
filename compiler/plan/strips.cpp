#include "plan/strips.h"

#include <algorithm>

#include "ops/op.h"
#include "ops/window.h"
#include "targets/machine.h"

namespace sinter {
RowAxis row_axis(const Node& n) {
  const Window w = window_of(n);
  return {w.kernel[0],     w.strides[0],    w.dilations[0], w.pads_begin[0].value(),
          w.in[0].value(), w.out[0].value()};
}

int64_t row_bytes(const Value& v) {
  const Shape& s = v.type.shape;
  return s[2].value() * s[3].value() * static_cast<int64_t>(sizeof(float));
}

namespace {

int64_t bytes(const Value& v) { return v.type.shape[1].value() * row_bytes(v); }

bool is_depthwise(const Node& n) { return n.attributes.integer("group", 1) > 1; }

// A convolution of one picture of known extents, by a kernel that can do some rows.
bool can_be_sliced(const Node& n, const Target& t) {
  if (n.op->domain[0] != 0 || std::string_view(n.op->name) != "Conv") return false;
  if (n.attributes.integer("channels_last", 0) != 1 || n.attributes.has("strip")) return false;
  for (const Value* v : {n.inputs[0], n.outputs[0]})
    if (v->type.shape.size() != 4 || !is_static(v->type.shape) || !v->type.shape[0].is(1)) return false;
  const Kernel* k = find_kernel(n, t);
  if (!k || !k->sliced || !window_of(n).has_static_pads()) return false;
  const RowAxis a = row_axis(n);
  return a.out > 1 && a.pad < a.span();
}

// Whether `b` alone reads what `a` writes, as its picture.
bool is_chain(const Graph& g, const Node& a, const Node& b) {
  const Value* v = a.outputs[0];
  return b.inputs[0] == v && v->users.size() == 1 && !a.attributes.has("pitch") &&
         !b.attributes.has("planar") && std::find(g.outputs.begin(), g.outputs.end(), v) == g.outputs.end();
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

// Rows a turn whose buffers take two thirds of the cache; 0 where strips are not worth it: what is
// between is small, the weights are not, or so few rows fit that the tiles are broken.
int64_t rows_of(const std::vector<Node*>& group, int64_t cache) {
  int64_t between = 0, weights = 0;
  for (size_t i = 0; i + 1 < group.size(); ++i) between += bytes(*group[i]->outputs[0]);
  for (const Node* n : group) weights += static_cast<int64_t>(n->inputs[1]->data->bytes());
  if (between < cache / 2 || weights > cache / 4) return 0;
  const int64_t out = row_axis(*group.back()).out;
  int64_t rows = 0;
  while (rows < out && buffer_bytes(group, rows + 1) <= cache / 3 * 2) ++rows;
  if (rows < 2 || rows >= out) return 0;
  const int64_t turns = (out + rows - 1) / rows;
  return (out + turns - 1) / turns;
}

void mark(const std::vector<Node*>& group, int64_t number, int64_t rows) {
  const std::vector<int64_t> counts = buffer_rows(group, rows);
  for (size_t i = 0; i < group.size(); ++i) {
    Attributes& a = group[i]->attributes;
    a.set("strip", number);
    if (i > 0) a.set("strip_in", int64_t{1});
    if (i + 1 == group.size()) {
      a.set("strip_rows", rows);
    } else {
      a.set("strip_out", int64_t{1});
      a.set("strip_bytes", counts[i] * row_bytes(*group[i]->outputs[0]));
    }
  }
}

}  // namespace

void make_strips(Graph& g, const Target& target, int64_t cache) {
  if (cache == 0) cache = machine_of(target).l2;
  int64_t number = 0;
  for (size_t i = 0; i + 1 < g.nodes.size(); ++i) {
    // Expand + depthwise + project, or two of them.
    for (const size_t size : {size_t{3}, size_t{2}}) {
      if (i + size > g.nodes.size()) continue;
      std::vector<Node*> group;
      int depthwise = 0;
      bool good = true;
      for (size_t k = 0; k < size && good; ++k) {
        Node* n = g.nodes[i + k].get();
        good = can_be_sliced(*n, target) && (k == 0 || is_chain(g, *group.back(), *n));
        depthwise += is_depthwise(*n);
        group.push_back(n);
      }
      if (!good || depthwise != 1 || (size == 3 && !is_depthwise(*group[1]))) continue;
      const int64_t rows = rows_of(group, cache);
      if (rows == 0) continue;
      mark(group, number++, rows);
      break;
    }
  }
}

size_t behind_strips(const Plan& plan, size_t layer) {
  const Attributes& a = plan.layers[layer].node->attributes;
  size_t end = layer + 1;
  if (!a.has("strip")) return end;
  while (end < plan.layers.size() &&
         plan.layers[end].node->attributes.integer("strip", -1) == a.integer("strip", -1))
    ++end;
  return end;
}

}  // namespace sinter
