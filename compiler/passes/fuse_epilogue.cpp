// fuse_epilogue: what follows a Conv, MatMul, pool or norm element by element is computed while its result is
// still in registers.
//
// Anchors are taken last to first: of two that meet in an Add, the later one swallows it, so that the earlier
// one's result is live shortest.
#include <algorithm>

#include "passes/fuse.h"
#include "passes/passes.h"

namespace sinter {
namespace {

struct Row {
  const char* op;
  size_t operands;  // tensors that the kernel's epilogue may read
};

const Row kAnchors[] = {
    {"Conv", 4},
    {"ConvTranspose", 4},
    {"MatMul", 4},
    {"Gemm", 4},
    {"MaxPool", 2},
    {"AveragePool", 2},
    {"LpPool", 2},
    {"GlobalAveragePool", 2},
    {"GlobalMaxPool", 2},
    {"Resize", 2},
    {"BatchNormalization", 2},
    {"InstanceNormalization", 2},
    {"LayerNormalization", 2},
    {"GroupNormalization", 2},
    {"RMSNormalization", 2},
    {"LRN", 2},
    {"Softmax", 2},
    {"squeeze_excite", 2},
    {"product_of_codes", 4},
};

const Row* row_of(const Node& n) {
  const std::string_view domain = n.op->domain;
  if (n.epilogue || !(domain.empty() || domain == "sinter")) return nullptr;
  for (const Row& r : kAnchors)
    if (n.op->name == std::string_view(r.op)) return &r;
  return nullptr;
}

// Floats, or the int32 sums of a quantised product.
bool sums_real_or_wide(const Node& n) {
  return is_float(n.outputs[0]->type.dtype) || n.attributes.integer("integer", 0) != 0;
}

}  // namespace

bool fuse_epilogue(Graph& g, const PassOptions& options) {
  bool changed = false;
  Order order(g);
  const std::vector<Node*> nodes = snapshot(g);
  for (size_t i = nodes.size(); i-- > 0;) {
    Node* n = nodes[i];
    if (!order.has(n)) continue;  // swallowed
    const Row* row = row_of(*n);
    if (!row || !n->has_output(0) || !sums_real_or_wide(*n)) continue;
    if (std::count(n->outputs.begin(), n->outputs.end(), nullptr) + 1 <
        static_cast<ptrdiff_t>(n->outputs.size()))
      continue;  // a second result may be needed before the place that the node would move to
    changed |= grow_epilogue(g, order, n, {row->operands, 64, true}, options.exact);
  }
  g.erase_unused();
  return changed;
}

}  // namespace sinter
