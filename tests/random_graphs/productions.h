// Productions: each adds one thing to a random model that a published one might hold, a node or a few in a
// row.
//
// A production returns false where it finds no operands. What it adds is meant to be valid; the builder's
// commit() has the last word.
#pragma once
#include <vector>

#include "random_graphs/builder.h"

namespace sinter::random_graphs {

struct Production {
  const char* name;
  unsigned weight;  // how often, beside others
  bool (*add)(Builder&);
};

const std::vector<Production>& elementwise_productions();
const std::vector<Production>& image_productions();
const std::vector<Production>& matrix_productions();
const std::vector<Production>& quantised_productions();
const std::vector<Production>& movement_productions();
const std::vector<Production>& control_productions();

}  // namespace sinter::random_graphs
