// What the kernels for Attention share: where the heads lie, and the parts of the body before any score is
// known.
#pragma once
#include <string>

#include "emit/layer.h"
#include "ops/sequences/attention.h"

namespace sinter {

// Whether input K or V is a cache that is stored as halves or bytes (cached_attention).
bool is_stored(const Node&, size_t input);
// Whether the node is Attention of this type, or of caches that are stored otherwise.
bool reads_types(const Node&, DType);

// An extent as C++ text that may stand in a product.
std::string factor_text(LayerWriter& w, const Dim& d);

// A tensor of heads: pointer and strides in elements, as C++ text.
struct Heads {
  std::string pointer, batch, head, position;
  int64_t row = 0;  // the number in `position`; 0 where only the run knows it
  std::string at(const std::string& b, const std::string& h) const;  // "q + b * 64 + h * 8"
};
Heads heads_of(LayerWriter& w, const std::string& pointer, HeadLayout layout, const Dim& heads,
               const Dim& positions, const Dim& elements);

struct AttentionTensors {
  Heads q, k, v, y;
};
// Opens nothing: declares the tensors, writes past and new keys and values one behind the other where there
// is a past or where they are wanted, and checks the counts of valid keys.
AttentionTensors emit_attention_start(LayerWriter& w, const AttentionForm& f);
// Inside a loop over `b`: the constants `keys` (those that may take part) and, where something depends on
// positions, `offset`.
void emit_attention_keys(LayerWriter& w, const AttentionForm& f);
// The mask's row for (b, h, query), or empty: "x3 + b * 64".
std::string mask_row(LayerWriter& w, const AttentionForm& f, const std::string& query);
// Keys [first, last) that query `i` may see within [0, keys), as C++ text; empty: no such bound.
std::string first_key(const AttentionForm& f, const std::string& i);
std::string last_key(const AttentionForm& f, const std::string& i);

}  // namespace sinter
