// fuse_regions: what detectors write to share one tensor between the levels of their pyramid.
//
//     ScatterElements(data, Expand(rows as [n, 1, ..]), updates)  ->  ScatterND(data, rows, updates)
//     ScatterND(data, rows, RoiAlign(...))                        ->  roi_rows(data, rows, ...)
//
// An index for each row is as good as one for each element, which takes eight bytes an element; and RoiAlign
// can write its results where they go, in place of a tensor for each level.
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

// The indices [n, 1, ..] that `indices` repeats along all axes but the first; null where it doesn't.
Value* row_numbers(const Graph& g, const Value* indices) {
  const Node* expand = indices->producer;
  if (!is_op(expand, "Expand")) return nullptr;
  Value* rows = expand->inputs[0];
  const Shape &from = rows->type.shape, &to = indices->type.shape;
  if (from.size() != to.size() || !same_extent(g, from[0], to[0])) return nullptr;
  const bool column = std::all_of(from.begin() + 1, from.end(), [](const Dim& d) { return d.is(1); });
  return column ? rows : nullptr;
}

bool plain(const Node& n) { return n.attributes.text("reduction", "none") == "none"; }

// rows [n, 1, ..] or [n] as `shape`.
Value* reshaped(Graph& g, Node& n, Value* rows, const std::vector<int64_t>& target) {
  Value* out = g.add_value(n.name + "/rows", {});
  Node* reshape = g.add_node(find_op("", "Reshape"), out->name,
                             {rows, constant_integers(g, n.name + "/shape", target)}, {out}, &n);
  infer(g, *reshape);
  return out;
}

void scatter_rows(Graph& g, Node& n) {
  const Shape &data = n.inputs[0]->type.shape, &updates = n.inputs[2]->type.shape;
  const int64_t axis = n.attributes.integer("axis", 0);
  if ((axis != 0 && axis != -static_cast<int64_t>(data.size())) || !plain(n) || data.size() < 2) return;
  for (size_t d = 1; d < data.size(); ++d)
    if (!same_extent(g, data[d], updates[d])) return;
  Value* rows = row_numbers(g, n.inputs[1]);
  if (!rows) return;
  if (rows->type.dtype != DType::kI64) return;
  n.op = find_op("", "ScatterND");
  n.attributes = {};
  add_sources(n, *n.inputs[1]->producer);
  g.set_input(&n, 1, reshaped(g, n, rows, {0, 1}));
}

void align_into_rows(Graph& g, Node& n) {
  Node* align = n.inputs[2]->producer;
  const Shape& indices = n.inputs[1]->type.shape;
  if (!is_op(align, "RoiAlign") || align->epilogue || n.inputs[2]->users.size() != 1 ||
      g.is_output(n.inputs[2]) || !plain(n))
    return;
  if (indices.size() != 2 || !indices[1].is(1) || n.inputs[1]->type.dtype != DType::kI64) return;
  Value* rows = reshaped(g, n, n.inputs[1], {0});
  n.op = find_op("sinter", "roi_rows");
  n.attributes = align->attributes;
  add_sources(n, *align);
  g.set_input(&n, 1, rows);
  for (size_t i = 0; i < 3; ++i) g.set_input(&n, 2 + i, align->inputs[i]);
  n.anchor_inputs = n.inputs.size();
}

}  // namespace

bool fuse_regions(Graph& g, const PassOptions&) {
  bool changed = false;
  const auto each = [&](const char* op, void (*rewrite)(Graph&, Node&)) {
    for (Node* n : snapshot(g)) {
      if (!is_op(n, op)) continue;
      const Op* before = n->op;
      rewrite(g, *n);
      changed |= n->op != before;
    }
    g.erase_unused();  // the shape of the indices may be the last that reads what is scattered
  };
  each("ScatterElements", scatter_rows);
  each("ScatterND", align_into_rows);
  return changed;
}

}  // namespace sinter
