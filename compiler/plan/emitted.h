// Emitted: the layers that have been written so far, by node, for plans that are made again.
//
// A plan is settled by trying: where its arena or its weights are too large, some nodes are decided otherwise
// and the graph is planned anew. Most layers are the same then: what a kernel writes depends on its node, on
// what is decided of it, on the gaps between its inputs' pixels, and on its function's name. Where these have
// not changed, neither text nor packed weights are made again.
#pragma once
#include <unordered_map>
#include <vector>

#include "plan/plan.h"

namespace sinter {

class Emitted {
 public:
  // The layer as it was written before, if nothing it depends on has changed; else null.
  const Layer* find(const Node& n, const Decisions& decisions, const std::string& function) const;
  void keep(const Node& n, const Decisions& decisions, const Layer& layer);

 private:
  struct Entry {
    Decision decision;
    std::vector<const Value*> inputs;
    std::vector<Dim> strides;  // of the inputs' pixels
    Layer layer;
  };
  static std::vector<const Value*> inputs_of(const Node& n);
  static std::vector<Dim> strides_of(const Node& n, const Decisions& decisions);
  std::unordered_map<const Node*, Entry> entries_;
};

}  // namespace sinter
