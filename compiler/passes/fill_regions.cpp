// fill_regions: rows of regions that lie in a tensor made for them.
//
//     roi_rows(ConstantOfShape(shape), ...)  ->  roi_rows<fill>(shape, ...)
//
// Most rows are some region's, and would be written twice; the others are filled by the thread that works
// beside them.
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

bool fill(Graph& g, Node& n) {
  if (n.op != find_op("sinter", "roi_rows") || n.attributes.has("fill")) return false;
  const Node* made = n.inputs[0]->producer;
  if (!made || !is_op(made, "ConstantOfShape") || made->inputs[0]->elements.empty()) return false;
  if (n.inputs[0]->users.size() != 1 || g.is_output(n.inputs[0])) return false;
  const Tensor* value = made->attributes.tensor("value");
  n.attributes.set("fill", value ? *value : Tensor::scalar(0.0f));
  add_sources(n, *made);
  g.set_input(&n, 0, made->inputs[0]);
  infer_as(g, n, n.outputs[0]->type);
  return true;
}

}  // namespace

bool fill_regions(Graph& g, const PassOptions&) {
  bool changed = false;
  for (Node* n : snapshot(g)) changed |= fill(g, *n);
  g.erase_unused();
  return changed;
}

}  // namespace sinter
