// Weights as the parts that tile matrices multiply (runtime/sinter/amx.h), split when the net is compiled.
//
// They are half as large again as floats. One thread splits a panel's weights beside the products of the one
// before and is hardly slower for it; of several, that have a few tiles of rows each, every one splits all
// weights, which takes a fifth of a BERT's time. So a net for several threads has its weights stored in parts
// as long as all of them stay in the third-level cache. From behind it they come more slowly than they are
// split, unless each thread has so many rows that their products take longer than that.
//
// Where they stay there, Winograd's layers are told so, too (WeightDecision::stay), which then may let
// each thread read all of them (kernels/convolutions/conv_winograd.cpp).
//
// On cores whose third level keeps a small net's weights for the one thread that runs it, its layers are told
// (WeightDecision::near): faster algorithms may then take more weights.
#include <vector>

#include "ops/products/row_product.h"
#include "plan/plan.h"
#include "targets/target.h"

namespace sinter {

void tell_near_weights(const Graph& g, const Target& t, Decisions& decisions) {
  // Times the model's bytes, when they are packed: some layers have Strassen's 49 sixteenths or Winograd's 36
  // positions for 9 weights.
  constexpr int64_t kPacked = 3;
  if (kPacked * constant_bytes(g) > t.speed.near_weights) return;
  for (const auto& n : g.nodes) decisions.change(*n).weights.near = true;
}

void store_weight_parts(const Graph& g, const Target& t, int threads, Decisions& decisions) {
  constexpr int64_t kManyRows = 96;  // of a thread
  if (threads < 2 || !t.features.tile_matrices) return;
  std::vector<const Node*> products;
  int64_t bytes = 0;  // that pass in each run: not a table's, of which it takes some rows
  for (const auto& n : g.nodes)
    if (n->freedom.tile_matrices && decisions.of(*n).tile_matrices.allowed && n->inputs[1]->data) {
      products.push_back(n.get());
      bytes += static_cast<int64_t>(n->inputs[1]->data->bytes());
    }
  const bool stay = bytes / 2 * 3 <= t.speed.l3;
  for (const Node* n : products) {
    WeightDecision& weights = decisions.change(*n).weights;
    if (stay) weights.stay = true;
    const auto p = decisions.is_whole(*n) ? amx_product(*n) : std::nullopt;
    if (stay || (p && p->rows >= kManyRows * threads)) weights.split = true;
  }
}

}  // namespace sinter
