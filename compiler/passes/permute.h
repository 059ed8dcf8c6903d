// What it takes to compute a node on tensors whose axes are permuted, and how a whole region of the graph is
// moved to permuted tensors with the fewest transposed elements.
//
// `perm`: axis i of the permuted tensor is axis perm[i] of the original one, as Transpose's attribute.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace sinter {

// One way to permute tensors: a permutation for each rank that it concerns.
class Arrangement {
 public:
  static Arrangement of(std::vector<int64_t> perm);  // tensors of perm's rank only
  static Arrangement channels_last();                // [N, C, S..] -> [N, S.., C], from rank 3 on
  static Arrangement channels_first();               // the inverse
  // The permutation for tensors of this rank; empty: they stay as they are.
  std::vector<int64_t> perm(size_t rank) const;
  bool concerns(size_t rank) const { return !perm(rank).empty(); }
  bool is_channels_last() const { return kind_ == Kind::kLast; }
  // The axis that is carried past all others but the first, of a tensor of this rank; -1: not such a kind.
  int64_t moved_axis(size_t rank) const;

 private:
  enum class Kind : uint8_t { kOne, kLast, kFirst };
  Kind kind_ = Kind::kOne;
  std::vector<int64_t> perm_;
};

enum class Role : uint8_t {
  kAsIs,      // not a tensor that is permuted (weights, axes, sizes), or one that stays as it is
  kPermuted,  // comes permuted, as the arrangement says for its rank
  kAligned,   // broadcast against the permuted output: gets leading 1s and is permuted with them
};

struct Roles {
  std::vector<Role> in, out;
};

// The roles of a node's values if it worked on permuted tensors; null where it can't.
std::optional<Roles> roles_if_permuted(const Graph& g, const Node& n, const Arrangement& a);

// Rewrites attributes and constant inputs of a node whose tensors are permuted from now on. `g` gets new
// constants; inputs and outputs of role kPermuted and kAligned are the caller's business, still unpermuted.
void permute_node(Graph& g, Node& n, const Arrangement& a);

// Nodes that have a channels-last form (attribute channels_last). Convolutions always run in it, the others
// rather than not.
bool has_channels_last_form(const Node& n);
bool is_convolution(const Node& n);

// Moves nodes to permuted tensors where that transposes fewer elements, by a minimum cut over the whole
// graph; with `convolutions`, those get their channels-last form in any case. Transposes that this makes
// superfluous vanish. True if anything moved.
bool permute_region(Graph& g, const Arrangement& a, bool convolutions);

}  // namespace sinter
