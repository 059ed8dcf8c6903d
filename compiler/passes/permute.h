// What it takes to compute a node on tensors whose axes are permuted, and how a whole region of the graph is
// moved to permuted tensors with the fewest transposed elements.
//
// `perm`: axis i of the permuted tensor is axis perm[i] of the original one, as Transpose's attribute.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace sinter {

enum class Role : uint8_t {
  kAsIs,      // not a tensor of those axes (weights, axes, sizes), or one that stays as it is
  kPermuted,  // has those axes and comes permuted
  kAligned,   // broadcast against those axes: gets leading 1s and is permuted with them
};

struct Roles {
  std::vector<Role> in, out;
};

// The roles of a node's values if it worked on permuted tensors; null where it can't.
std::optional<Roles> roles_if_permuted(const Graph& g, const Node& n, const std::vector<int64_t>& perm);

// Rewrites attributes and constant inputs of a node whose data inputs are permuted from now on. `g` gets new
// constants; inputs and outputs of role kPermuted and kAligned are the caller's business.
void permute_node(Graph& g, Node& n, const std::vector<int64_t>& perm);

// Convolution-like nodes, which run channels-last (attribute channels_last) where `perm` is that layout.
bool wants_channels_last(const Node& n);
std::vector<int64_t> channels_last_perm(size_t rank);  // [0,2,3..,1]

// Moves nodes to permuted tensors where that transposes fewer elements, by a minimum cut over the whole
// graph; with `convolutions`, nodes that want channels-last get it in any case. Transposes that this makes
// superfluous vanish. True if anything moved.
bool permute_region(Graph& g, const std::vector<int64_t>& perm, bool convolutions);

}  // namespace sinter
