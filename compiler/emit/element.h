// Element: how a layer stores its floats and what it computes in, a row of one table.
//
// Kernels write their text in the words of floats: f32v, kLanes, Tile, load(p). Where a layer has another
// element, LayerWriter has its row spell them. Where halves are computed, each word becomes that of the same
// meaning (simd_half.h, mac_half.h). Where they are only stored, the words stay and are overloaded for
// pointers to halves (convert.h). So a kernel knows of elements only what it must: how many lanes a vector
// has (w.target.lanes), how many bytes an element takes, and which sums must be floats.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace sinter {

struct Element {
  Halves halves;
  DType dtype;             // of tensors
  const char* name;        // of the C++ type that is computed in
  const char* pointer_to;  // what "float" becomes in "float*"
  int bytes;               // of `name`
  // Pairs of a word of floats and this element's; empty: they are the element's.
  std::vector<std::pair<const char*, const char*>> words;

  bool is_half() const { return halves == Halves::kComputed; }
  // A text in the words of floats in this element's. Pointers to floats become pointers to elements, or to
  // whatever they begin with; other floats stay.
  std::string spelled(const std::string& text) const;
  // The header that has the words of a header of floats: "sinter/mac.h" -> "sinter/mac_half.h".
  std::string header(const std::string& of_floats) const;
  // Numbers as halves in memory, rounded.
  std::vector<uint16_t> packed(const std::vector<float>& numbers) const;
};

const Element& element_of(Halves);
// The type of a node's tensors of floats that its kernels know vectors of.
inline DType element_type(const Node& n) { return element_of(n.freedom.halves).dtype; }

}  // namespace sinter
