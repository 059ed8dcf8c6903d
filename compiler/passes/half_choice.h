// Which layers may compute halves, by what they are: their operators, constants and neighbours. What their
// numbers lose is half_errors.h's.
#pragma once
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "passes/pass.h"

namespace sinter {

// What a pass over the nodes in their order finds.
struct HalfChoice {
  std::unordered_map<const Node*, Halves> layers;  // that compute or store halves
  std::unordered_set<const Node*> moves;           // that pass halves on
  std::unordered_set<const Value*> values;         // that are halves then

  bool is_half(const Value* v) const { return values.count(v) != 0; }
  Halves of(const Node& n) const {
    const auto at = layers.find(&n);
    return at == layers.end() ? Halves::kNone : at->second;
  }
};

// Nodes that `stays` names compute floats, as do those of PassOptions::keep_f32.
HalfChoice choose_halves(const Graph&, const PassOptions&, const std::function<bool(const Node&)>& stays);

// Whether the node has a form in halves, whatever its neighbours are.
bool has_half_form(const Node&);
// Operand i stays what it is where the node computes halves: masks of attention, which are added to scores
// that are floats and may be any number.
bool stays_float(const Node&, size_t i);
// Operand i is rounded where it is packed: a constant of a product, a norm.
bool is_packed(const Node&, size_t i);

}  // namespace sinter
