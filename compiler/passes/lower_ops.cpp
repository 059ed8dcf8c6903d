// lower_ops: nodes whose operator is defined by simpler ones (Op::lower) become those.
//
// An operator may be defined by others that are lowered in turn, never by itself.
#include <algorithm>

#include "ops/lowering.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {

namespace {

void lower(Graph& g, Node* n) {
  Lowering l(g, *n, n);
  n->op->lower(l);
  for (size_t i = 0; i < n->outputs.size(); ++i) {
    if (!n->has_output(i)) continue;
    Value* v = l.results[i];
    // The output's name goes to a value of its own where the lowering reads its result again, or made none.
    if (!v->producer || !v->users.empty() || std::count(l.results.begin(), l.results.end(), v) > 1 ||
        std::count(n->inputs.begin(), n->inputs.end(), v))
      v = l("Identity", {v});
    const auto& made = v->producer->outputs;
    SINTER_CHECK(made.size() == 1, "a lowering ends in a node of several outputs");
    take_output(v->producer, 0, n, i);
  }
}

}  // namespace

bool lower_ops(Graph& g, const PassOptions&) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (Node* n : snapshot(g))
      if (n->op->lower) {
        lower(g, n);
        again = changed = true;
      }
    g.erase_unused();
  }
  return changed;
}

}  // namespace sinter
