// Fusion: an anchor node swallows the elementwise nodes that use up its result.
#pragma once
#include <vector>

#include "passes/rewrite.h"

namespace sinter {

struct FusionLimits {
  size_t operands = 4;  // tensors read besides the anchor's own inputs
  int expr_nodes = 64;
  // Kernels run float32 epilogues in vectors: a function without a vector form would make the whole anchor
  // slow.
  bool vectors_only = false;
};

// An elementwise node with one output over types that expressions know: an operator with Op::expr, or an
// `elementwise` node.
bool is_fusible(const Node& n);

// Makes a node with Op::expr an `elementwise` node of its own. False where its shape would change.
bool make_elementwise(Graph& g, Node* n);

// Grows `anchor`'s epilogue by what follows it. What is swallowed leaves `order`; the anchor moves to the
// place of the last node.
bool grow_epilogue(Graph& g, Order& order, Node* anchor, const FusionLimits& limits, bool exact);

}  // namespace sinter
