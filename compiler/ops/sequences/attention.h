// Scaled dot-product attention: the extents and options of an Attention node, read once for infer, eval and
// the kernels.
#pragma once
#include <functional>
#include <string>

#include "ops/op.h"

namespace sinter {

// How a tensor of heads lies in memory. All have contiguous rows of one head's elements.
enum class HeadLayout {
  kHeadsFirst,     // [batch, heads, positions, elements]
  kPositionsFirst  // [batch, positions, heads, elements] or [batch, positions, heads * elements]
};

struct AttentionForm {
  Dim batch, q_heads, kv_heads, q_length, kv_length, past, total, head, v_head;
  HeadLayout q, k, v, y;  // past and present tensors are always kHeadsFirst
  double scale = 0;       // of q k^T; NaN until `head` is known: 1 / sqrt(head)
  bool causal = false;
  float softcap = 0;                 // 0: none
  int64_t left = -1, right = -1;     // window around the query's own position; -1: open
  int64_t scores_mode = 0;           // what output 3 holds
  bool masked_rows_are_zero = true;  // else NaN, as an explicit Softmax of -inf gives
};

// Inputs: q, k, v, mask, past key, past value, count of valid keys. Outputs: y, present key, present value,
// scores. Beside ONNX's attributes: `positions_first`, four flags (q, k, v, y) for tensors of four axes that
// lie as kPositionsFirst; `nan_rows` = 1 for rows without any key.
enum AttentionInput : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kValidKeys };
enum AttentionOutput : size_t { kY, kPresentKey, kPresentValue, kScores };

AttentionForm attention_form(const Node& node, const Shape& q, const Shape& k, const Shape& v,
                             const Shape* past, const std::function<void(const std::string&)>& fail);
AttentionForm attention_form(const Node& inferred);
// Says how the tensors of four axes of the node lie from now on.
void set_layouts(Node& node, HeadLayout q, HeadLayout k, HeadLayout v, HeadLayout y);
// Whether products of halves may compute the node: all keys at once, several queries, no cache and no other
// output, so that shares of one are multiplied and scores stay floats (runtime/sinter/attention_half.h).
bool may_attend_in_halves(const Node& inferred);

}  // namespace sinter
