// Operators of domain com.microsoft, as ONNX Runtime's optimiser writes them into models: each becomes the
// ONNX operators that it stands for, so that nothing behind the import knows them.
//
// One row {name, rewrite} each; a rewrite changes the Draft into an ONNX node and puts others before and
// behind it, as in upgrade.cpp. What ONNX Runtime leaves to its caches (shared buffers, packed batches,
// beams) is refused. Quantised operators are not here, nor what ONNX has as well (contrib_moves.cpp).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "import/upgrade.h"
#include "ir/error.h"

namespace sinter {
namespace {

Attributes with(std::initializer_list<std::pair<const char*, Attribute>> list) {
  Attributes a;
  for (const auto& [name, value] : list) a.set(name, value);
  return a;
}
bool wants(const Draft& d, size_t output) { return output < d.outputs.size() && d.outputs[output]; }
const Shape& shape_of(Rewrite& r, Value* v, const char* what) {
  const TensorType* t = r.type(v);
  if (!t) r.fail(fmt::format("the type of {} is not known", what));
  return t->shape;
}
int64_t static_extent(Rewrite& r, const Dim& d, const char* what) {
  if (!d.is_static()) r.fail(fmt::format("{} is {}, but must be a number", what, d.text()));
  return d.value();
}
// The Draft becomes `op` on these inputs with these attributes; outputs beyond `outputs` must be unwanted.
void become(Rewrite& r, const char* op, std::vector<Value*> inputs, Attributes a = {}, size_t outputs = 1) {
  for (size_t i = outputs; i < r.node.outputs.size(); ++i)
    if (wants(r.node, i)) r.fail(fmt::format("its output {} is not supported", i));
  r.node.outputs.resize(std::min(outputs, r.node.outputs.size()));
  r.node.op = op;
  r.node.domain.clear();
  r.node.inputs = std::move(inputs);
  r.node.attributes = std::move(a);
}
Value* sum(Rewrite& r, Value* a, Value* b) { return !b ? a : !a ? b : r.before("Add", {a, b}); }
// Elements [first, last) along an axis.
Value* slice(Rewrite& r, Value* v, int64_t first, int64_t last, int64_t axis) {
  return r.before("Slice",
                  {v, r.constant({first}, "first"), r.constant({last}, "last"), r.constant({axis}, "axis")});
}
Value* cast(Rewrite& r, Value* v, DType to) {
  return r.before("Cast", {v}, with({{"to", static_cast<int64_t>(onnx_of(to))}}));
}

// --- products and convolutions with what follows them

// A factor with its last two axes exchanged (`turned`), and the first one brought behind the batch axes
// before that (`batch_first`).
Value* factor(Rewrite& r, Value* v, bool batch_first, bool turned) {
  if (!batch_first && !turned) return v;
  const size_t rank = shape_of(r, v, "a factor").size();
  if (rank < 2) r.fail("a factor that is transposed has less than two axes");
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  if (batch_first) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (turned) std::swap(perm[rank - 1], perm[rank - 2]);
  return r.before("Transpose", {v}, with({{"perm", perm}}));
}
void fused_matmul(Rewrite& r) {
  const Attributes a = r.node.attributes;
  std::vector<Value*> in = r.node.inputs;
  if (in.size() != 2) r.fail("it has not two inputs");
  in[0] = factor(r, in[0], a.integer("transBatchA", 0) != 0, a.integer("transA", 0) != 0);
  in[1] = factor(r, in[1], a.integer("transBatchB", 0) != 0, a.integer("transB", 0) != 0);
  const float alpha = a.real("alpha", 1);
  Value* scale = alpha == 1 ? nullptr : r.constant_like(alpha, in[0], "alpha");
  become(r, "MatMul", in);
  if (scale) {
    const auto [product, y] = r.divert(0);
    r.then("Mul", {product, scale}, y);
  }
}

// y = activation(x) by its name in an attribute; `parameters` in the order of ONNX's attributes. Constants
// take the type of the node's first input: x has none yet, and what would give it one is only written behind
// it.
void activate(Rewrite& r, const std::string& name, const std::vector<float>& parameters, Value* x, Value* y) {
  const auto number = [&](size_t i, float fallback) {
    return i < parameters.size() ? parameters[i] : fallback;
  };
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softplus" || name == "Softsign")
    return r.then(name, {x}, y);
  if (name == "LeakyRelu") return r.then(name, {x}, y, with({{"alpha", number(0, 0.01f)}}));
  if (name == "Elu") return r.then(name, {x}, y, with({{"alpha", number(0, 1)}}));
  if (name == "HardSigmoid")
    return r.then(name, {x}, y, with({{"alpha", number(0, 0.2f)}, {"beta", number(1, 0.5f)}}));
  if (name == "Clip") {
    Value* like = r.node.input(0);
    return r.then(name,
                  {x, r.constant_like(number(0, std::numeric_limits<float>::lowest()), like, "lo"),
                   r.constant_like(number(1, std::numeric_limits<float>::max()), like, "hi")},
                  y);
  }
  r.fail(fmt::format("activation {} is not supported", sinter::quoted(name)));
}
void fused_gemm(Rewrite& r) {
  Attributes a = r.node.attributes;
  const std::string name = a.text("activation", "");
  std::vector<float> parameters;
  for (const char* p : {"activation_alpha", "activation_beta"})
    if (a.has(p)) parameters.push_back(a.real(p, 0));
  for (const char* p : {"activation", "activation_alpha", "activation_beta", "activation_gamma"}) a.erase(p);
  become(r, "Gemm", r.node.inputs, a);
  if (name.empty()) return;
  const auto [x, y] = r.divert(0);
  activate(r, name, parameters, x, y);
}
void fused_conv(Rewrite& r) {
  Attributes a = r.node.attributes;
  const std::string name = a.text("activation", "");
  const std::vector<float> parameters = a.reals("activation_params");
  Value* added = r.node.input(3);
  a.erase("activation");
  a.erase("activation_params");
  std::vector<Value*> in = r.node.inputs;
  in.resize(std::min<size_t>(in.size(), 3));
  become(r, "Conv", in, a);
  if (name.empty() && !added) return;
  auto [x, y] = r.divert(0);
  if (added) {
    if (name.empty()) return r.then("Add", {x, added}, y);
    Value* wide = r.fresh("sum");
    r.then("Add", {x, added}, wide);
    x = wide;
  }
  activate(r, name, parameters, x, y);
}

// --- activations

void gelu(Rewrite& r) { become(r, "Gelu", r.node.inputs); }
void bias_gelu(Rewrite& r) { become(r, "Gelu", {sum(r, r.node.input(0), r.node.input(1))}); }
void fast_gelu(Rewrite& r) {
  become(r, "Gelu", {sum(r, r.node.input(0), r.node.input(1))}, with({{"approximate", std::string("tanh")}}));
}
void quick_gelu(Rewrite& r) {
  become(r, "Swish", {r.node.input(0)}, with({{"alpha", r.node.attributes.real("alpha", 1.702f)}}));
}

// --- norms

Attributes norm_attributes(Rewrite& r, float epsilon) {
  return with({{"axis", int64_t{-1}}, {"epsilon", r.node.attributes.real("epsilon", epsilon)}});
}
void simplified_norm(Rewrite& r) {
  Attributes a = norm_attributes(r, 1e-5f);
  a.set("axis", r.node.attributes.integer("axis", -1));
  become(r, "RMSNormalization", {r.node.input(0), r.node.input(1)}, a);
}
// The sum of the two branches (and a bias), normalised; the sum itself is output 3.
void skip_norm(Rewrite& r, const char* op, bool has_beta) {
  const size_t bias = has_beta ? 4 : 3;
  Value* x = sum(r, sum(r, r.node.input(0), r.node.input(1)), r.node.input(bias));
  Value* shown = wants(r.node, 3) ? r.node.outputs[3] : nullptr;
  if (wants(r.node, 1) || wants(r.node, 2)) r.fail("its outputs mean and inv_std_var are not supported");
  std::vector<Value*> in{x, r.node.input(2)};
  if (has_beta && r.node.input(3)) in.push_back(r.node.input(3));
  const Attributes a = norm_attributes(r, 1e-12f);
  r.node.outputs.resize(1);
  become(r, op, in, a);
  if (shown) r.then("Identity", {x}, shown);
}
void skip_layer_norm(Rewrite& r) { skip_norm(r, "LayerNormalization", true); }
void skip_simplified_norm(Rewrite& r) { skip_norm(r, "RMSNormalization", false); }

// The sum of the embeddings of words, positions and segments, normalised.
void embed_layer_norm(Rewrite& r) {
  Value *ids = r.node.input(0), *segments = r.node.input(1), *words = r.node.input(2),
        *positions = r.node.input(3);
  Value *segment_table = r.node.input(4), *mask = r.node.input(7), *position_ids = r.node.input(8);
  if (!ids || !words || !positions || !r.node.input(5) || !r.node.input(6)) r.fail("an input is missing");
  Value* length = r.before("Shape", {ids}, with({{"start", int64_t{1}}, {"end", int64_t{2}}}));
  Value* of_position =
      position_ids
          ? r.before("Gather", {positions, position_ids})
          : r.before("Slice", {positions, r.constant({0}, "first"), length, r.constant({0}, "axis")});
  Value* x = sum(r, r.before("Gather", {words, ids}), of_position);
  if (segments && segment_table) x = sum(r, x, r.before("Gather", {segment_table, segments}));
  Value* shown = wants(r.node, 2) ? r.node.outputs[2] : nullptr;
  if (wants(r.node, 1) && mask) {
    r.then("ReduceSum", {mask, r.constant({1}, "axes")}, r.node.outputs[1], with({{"keepdims", int64_t{0}}}));
  } else if (wants(r.node, 1)) {
    Value* batch = r.before("Shape", {ids}, with({{"start", int64_t{0}}, {"end", int64_t{1}}}));
    r.then("ConstantOfShape", {batch}, r.node.outputs[1], with({{"value", Tensor(DType::kI32, {1})}}));
  }
  const Attributes a = norm_attributes(r, 1e-12f);
  r.node.outputs.resize(1);
  become(r, "LayerNormalization", {x, r.node.input(5), r.node.input(6)}, a);
  if (shown) r.then("Identity", {x}, shown);
}

// --- attention

Value* extent_of(Rewrite& r, Value* v, int64_t axis) {  // int64 [1]
  return r.before("Shape", {v}, with({{"start", axis}, {"end", axis + 1}}));
}
// 0, 1, … before `length`, an int64 [1].
Value* range(Rewrite& r, Value* length) {
  Value* end = r.before("Reshape", {length, r.constant(std::vector<int64_t>{}, "scalar")});
  return r.before("Range", {r.constant(Tensor::scalar(int64_t{0}), "zero"), end,
                            r.constant(Tensor::scalar(int64_t{1}), "one")});
}

// Which of `keys` (int64 [1]) keys take part, [batch, keys]: those before the ends [batch], or from the
// starts on, [2 * batch] of both.
Value* keys_between(Rewrite& r, Value* ends, Value* keys, Value* x) {
  const Dim &given = shape_of(r, ends, "the mask")[0], &batch = shape_of(r, x, "the input")[0];
  const bool starts = !(given == batch);
  if (starts && !(given == batch * Dim(2))) r.fail("a mask of cumulated lengths is not supported");
  Value* places = range(r, keys);
  const auto bound = [&](Value* from, Value* to) {
    Value* part = starts ? r.before("Slice", {ends, from, to, r.constant({0}, "axis")}) : ends;
    return r.before("Unsqueeze", {cast(r, part, DType::kI64), r.constant({1}, "axes")});
  };
  Value* count = starts ? extent_of(r, x, 0) : nullptr;
  Value* in = r.before("Less", {places, bound(r.constant({0}, "first"), count)});
  if (!starts) return in;
  Value* end = r.constant({INT64_MAX}, "last");
  return r.before("And", {in, r.before("GreaterOrEqual", {places, bound(count, end)})});
}

// A mask of integers, 1 for keys that take part, as numbers to add: [batch, keys] or [batch, queries, keys];
// or of one axis: where the keys that take part end.
Value* padding_mask(Rewrite& r, Value* mask, Value* keys, Value* like) {
  const size_t rank = shape_of(r, mask, "the mask").size();
  if (rank < 1 || rank > 3) r.fail(fmt::format("a mask of {} axes is not supported", rank));
  Value* in = rank == 1 ? keys_between(r, mask, keys, like) : cast(r, mask, DType::kBool);
  in = r.before("Unsqueeze", {in, rank == 3 ? r.constant({1}, "axes") : r.constant({1, 2}, "axes")});
  const float filter = r.node.attributes.real("mask_filter_value", -10000.0f);
  return r.before("Where", {in, r.constant_like(0, like, "zero"), r.constant_like(filter, like, "filter")});
}
Attributes attention_attributes(Rewrite& r, int64_t heads, int64_t kv_heads) {
  const Attributes& from = r.node.attributes;
  Attributes a = with({{"q_num_heads", heads}, {"kv_num_heads", kv_heads}});
  if (const float scale = from.real("scale", 0); scale != 0) a.set("scale", scale);
  if (from.integer("unidirectional", 0)) a.set("is_causal", int64_t{1});
  if (const float cap = from.real("softcap", 0); cap != 0) a.set("softcap", cap);
  return a;
}
int64_t heads_of(Rewrite& r, const char* name) {
  const int64_t heads = r.node.attributes.integer(name, 0);
  if (heads <= 0) r.fail(fmt::format("{} is {}", name, heads));
  return heads;
}

void multi_head_attention(Rewrite& r) {
  const int64_t heads = heads_of(r, "num_heads");
  Value *q = r.node.input(0), *k = r.node.input(1), *v = r.node.input(2), *bias = r.node.input(3);
  if (!k || !v) r.fail("packed keys and values are not supported");
  if (r.node.input(8) || r.node.input(9)) r.fail("caches in shared buffers are not supported");
  // Keys and values of another sequence may be given by heads: [batch, heads, keys, elements].
  const bool by_heads = shape_of(r, k, "the keys").size() == 4;
  if (shape_of(r, q, "the queries").size() != 3 || shape_of(r, k, "the keys").size() != (by_heads ? 4 : 3) ||
      shape_of(r, v, "the values").size() != (by_heads ? 4 : 3))
    r.fail("packed queries, keys and values are not supported");
  if (bias) {
    const int64_t of_q = static_extent(r, shape_of(r, q, "the queries")[2], "the width of the queries");
    q = sum(r, q, slice(r, bias, 0, of_q, 0));
    if (!by_heads) {
      const int64_t of_v = static_extent(r, shape_of(r, v, "the values")[2], "the width of the values");
      k = sum(r, k, slice(r, bias, of_q, 2 * of_q, 0));
      v = sum(r, v, slice(r, bias, 2 * of_q, 2 * of_q + of_v, 0));
    }
  }
  Value* mask = r.node.input(5);
  if (Value* padding = r.node.input(4)) {
    Value *keys = extent_of(r, k, by_heads ? 2 : 1), *past = r.node.input(6);
    if (past) keys = r.before("Add", {keys, extent_of(r, past, 2)});
    mask = sum(r, padding_mask(r, padding, keys, q), mask);
  }
  Attributes a = attention_attributes(r, heads, heads);
  if (by_heads) {
    if (r.node.input(6)) r.fail("a past of keys that are given by heads is not supported");
    q = r.before("Reshape", {q, r.constant({0, 0, heads, -1}, "heads")});
    a.erase("q_num_heads");
    a.erase("kv_num_heads");
    a.set("positions_first", std::vector<int64_t>{1, 0, 0, 1});
  }
  std::vector<Value*> in{q, k, v, mask, r.node.input(6), r.node.input(7)};
  become(r, "Attention", in, a, 3);
  if (!by_heads) return;
  const auto [y, flat] = r.divert(0);
  r.then("Reshape", {y, r.constant({0, 0, -1}, "joined")}, flat);
}

// One input for queries, keys and values, projected here.
void contrib_attention(Rewrite& r) {
  const int64_t heads = heads_of(r, "num_heads");
  Value *x = r.node.input(0), *weights = r.node.input(1), *past = r.node.input(4);
  if (!x || !weights) r.fail("an input is missing");
  if (r.node.input(6) || r.node.attributes.integer("past_present_share_buffer", 0) ||
      r.node.attributes.integer("do_rotary", 0))
    r.fail("shared buffers and rotation inside are not supported");
  const int64_t width =
      static_extent(r, shape_of(r, weights, "the weights").back(), "the width of the weights");
  std::vector<int64_t> sizes = r.node.attributes.integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes = {width / 3, width / 3, width / 3};
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != width)
    r.fail("qkv_hidden_sizes are not those of the weights");
  Value* all = sum(r, r.before("MatMul", {x, weights}), r.node.input(2));
  Value *q = slice(r, all, 0, sizes[0], 2), *k = slice(r, all, sizes[0], sizes[0] + sizes[1], 2),
        *v = slice(r, all, sizes[0] + sizes[1], width, 2);
  Value* mask = r.node.input(5);
  if (Value* index = r.node.input(3)) {
    Value* keys = extent_of(r, x, 1);
    if (past) keys = r.before("Add", {keys, extent_of(r, past, 3)});
    mask = sum(r, padding_mask(r, index, keys, x), mask);
  }
  const Attributes a = attention_attributes(r, heads, heads);
  std::vector<Value*> in{q, k, v, mask, nullptr, nullptr};
  if (past)
    for (int64_t i : {0, 1})
      in[static_cast<size_t>(4 + i)] =
          r.before("Gather", {past, r.constant(Tensor::scalar(i), "which")}, with({{"axis", int64_t{0}}}));
  Value* present = wants(r.node, 1) ? r.node.outputs[1] : nullptr;
  r.node.outputs.resize(1);
  if (present) {
    r.node.outputs.push_back(r.fresh("present_key"));
    r.node.outputs.push_back(r.fresh("present_value"));
  }
  become(r, "Attention", in, a, 3);
  if (!present) return;
  std::vector<Value*> both;
  for (size_t i : {1u, 2u}) {
    both.push_back(r.fresh("present"));
    r.then("Unsqueeze", {r.node.outputs[i], r.constant({0}, "axes")}, both.back());
  }
  r.then("Concat", both, present, with({{"axis", int64_t{0}}}));
}

// position_ids [batch, length], or one number to which positions are added.
Value* positions_of(Rewrite& r, Value* ids, Value* x, int64_t length_axis) {
  if (shape_of(r, ids, "position_ids").size() == 2) return ids;
  Value *length = extent_of(r, x, length_axis), *batch = extent_of(r, x, 0);
  Value* shape = r.before("Concat", {batch, length}, with({{"axis", int64_t{0}}}));
  return r.before("Expand", {r.before("Add", {range(r, length), cast(r, ids, DType::kI64)}), shape});
}
void rotary(Rewrite& r) {
  const Attributes& from = r.node.attributes;
  Value *x = r.node.input(0), *ids = r.node.input(1), *cosines = r.node.input(2), *sines = r.node.input(3);
  if (!x || !ids || !cosines || !sines) r.fail("an input is missing");
  if (from.integer("is_packed_batching", 0) || from.real("scale", 1) != 1)
    r.fail("packed batches and scales are not supported");
  const Shape& s = shape_of(r, x, "the input");
  Attributes a = with({{"interleaved", from.integer("interleaved", 0)},
                       {"rotary_embedding_dim", from.integer("rotary_embedding_dim", 0)}});
  if (s.size() == 3) {
    int64_t heads = from.integer("num_heads", 0);
    if (heads == 0) {
      const int64_t half =
          static_extent(r, shape_of(r, cosines, "the cosines").back(), "the number of angles");
      heads = static_extent(r, s[2], "the width of the input") / std::max<int64_t>(2 * half, 1);
    }
    a.set("num_heads", heads);
  }
  Value* positions = positions_of(r, ids, x, s.size() == 3 ? 1 : 2);
  become(r, "RotaryEmbedding", {x, cosines, sines, positions}, a);
}

// --- attention of grouped queries, with a cache of keys and values

struct Heads {
  int64_t queries, keys;
};
// What the lengths that are given say: int64 [batch] each.
struct CacheLengths {
  Value* valid = nullptr;   // keys that take part, those of this call included
  Value* before = nullptr;  // of the cache alone
};

// Queries, keys and values, which may come as one input.
std::array<Value*, 3> grouped_inputs(Rewrite& r, const Heads& h) {
  Value *q = r.node.input(0), *k = r.node.input(1), *v = r.node.input(2);
  if (!q) r.fail("an input is missing");
  if (k && v) return {q, k, v};
  const int64_t width = static_extent(r, shape_of(r, q, "the queries").back(), "the width of the queries");
  const int64_t head = width / (h.queries + 2 * h.keys), of_q = h.queries * head, of_k = h.keys * head;
  return {slice(r, q, 0, of_q, 2), slice(r, q, of_q, of_q + of_k, 2), slice(r, q, of_q + of_k, width, 2)};
}

CacheLengths cache_lengths(Rewrite& r, Value* q) {
  Value* last = r.node.input(5);
  if (!last) r.fail("seqlens_k is missing");
  Value* wide = r.before("Reshape", {cast(r, last, DType::kI64), r.constant({-1}, "list")});
  CacheLengths c;
  c.valid = r.before("Add", {wide, r.constant({1}, "one")});
  c.before = r.before("Sub", {c.valid, extent_of(r, q, 1)});
  return c;
}

// position_ids [batch, length] behind the cache: before[b] + 0, 1, …
Value* positions_behind(Rewrite& r, Value* before, Value* q) {
  return r.before("Add",
                  {r.before("Unsqueeze", {before, r.constant({1}, "axes")}), range(r, extent_of(r, q, 1))});
}

Value* rotated(Rewrite& r, Value* x, int64_t heads, Value* positions) {
  Value *cosines = r.node.input(7), *sines = r.node.input(8);
  if (!cosines || !sines) r.fail("the cosines and sines are missing");
  const int64_t head = static_extent(r, shape_of(r, x, "the queries").back(), "the width") / heads;
  const int64_t angles = static_extent(r, shape_of(r, cosines, "the cosines").back(), "the number of angles");
  return r.before("RotaryEmbedding", {x, cosines, sines, positions},
                  with({{"interleaved", r.node.attributes.integer("rotary_interleaved", 0)},
                        {"num_heads", heads},
                        {"rotary_embedding_dim", std::min(head, 2 * angles)}}));
}

// The cache [batch, heads, room, elements] with `rows` [batch, length, heads * elements] behind what counts
// of it. Where total_sequence_length is more than its room it grows, by the rows of this call at the most.
Value* cached(Rewrite& r, Value* cache, Value* rows, int64_t heads, Value* positions) {
  const DType t = r.type(cache) ? r.type(cache)->dtype : DType::kUndefined;
  Value* total = r.node.input(6);
  if (!total) r.fail("total_sequence_length is missing");
  Value* zero = r.constant({0}, "zero");
  Value* whole = r.before("Reshape", {cast(r, total, DType::kI64), r.constant({1}, "list")});
  Value* more = r.before("Sub", {whole, extent_of(r, cache, 2)});
  more = r.before("Min", {r.before("Max", {more, zero}), extent_of(r, rows, 1)});
  Value* pads =
      r.before("Concat", {r.constant({0, 0, 0, 0, 0, 0}, "none"), more, zero}, with({{"axis", int64_t{0}}}));
  Value* room = r.before("Pad", {cache, pads, r.constant(Tensor(t, {}), "empty")});
  Value* split = r.before("Reshape", {rows, r.constant({0, 0, heads, -1}, "heads")});
  Value* updates = r.before("Transpose", {split}, with({{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  // No place from the end: what would stand before the cache's begin is outside.
  Value* outside = r.constant({INT64_MAX}, "outside");
  Value* places = r.before("Where", {r.before("Less", {positions, zero}), outside, positions});
  Value* index = r.before(
      "Expand", {r.before("Unsqueeze", {places, r.constant({1, 3}, "axes")}), r.before("Shape", {updates})});
  return r.before("ScatterElements", {room, index, updates}, with({{"axis", int64_t{2}}}));
}

// With a past, each sequence of the batch has its own length in it (seqlens_k); keys behind that count no
// longer. The rows of this call go there, and so does what comes out as present.
void cached_attention(Rewrite& r, const Heads& h, std::array<Value*, 3> qkv, Attributes a) {
  auto [q, k, v] = qkv;
  if (!r.node.input(3) || !r.node.input(4)) r.fail("past_key and past_value must be given together");
  const CacheLengths lengths = cache_lengths(r, q);
  Value* positions = positions_behind(r, lengths.before, q);
  if (r.node.attributes.integer("do_rotary", 0)) {
    Value* ids = r.node.input(9) ? r.node.input(9) : positions;
    q = rotated(r, q, h.queries, ids);
    k = rotated(r, k, h.keys, ids);
  }
  Value* keys = cached(r, r.node.input(3), k, h.keys, positions);
  Value* values = cached(r, r.node.input(4), v, h.keys, positions);
  q = r.before("Reshape", {q, r.constant({0, 0, h.queries, -1}, "heads")});
  Value* present[] = {wants(r.node, 1) ? r.node.outputs[1] : nullptr,
                      wants(r.node, 2) ? r.node.outputs[2] : nullptr};
  if (wants(r.node, 3)) r.fail("its output 3 is not supported");
  r.node.outputs.resize(1);
  a.erase("q_num_heads");
  a.erase("kv_num_heads");
  a.set("positions_first", std::vector<int64_t>{1, 0, 0, 1});
  become(r, "Attention", {q, keys, values, r.node.input(10), nullptr, nullptr, lengths.valid}, a);
  const auto [y, flat] = r.divert(0);
  r.then("Reshape", {y, r.constant({0, 0, -1}, "joined")}, flat);
  if (present[0]) r.then("Identity", {keys}, present[0]);
  if (present[1]) r.then("Identity", {values}, present[1]);
}

void group_query_attention(Rewrite& r) {
  const Attributes& from = r.node.attributes;
  const Heads h{heads_of(r, "num_heads"), heads_of(r, "kv_num_heads")};
  if (r.node.input(11) || from.integer("smooth_softmax", 0)) r.fail("sinks of attention are not supported");
  std::array<Value*, 3> qkv = grouped_inputs(r, h);
  Attributes a = attention_attributes(r, h.queries, h.keys);
  a.set("is_causal", int64_t{1});
  if (const int64_t window = from.integer("local_window_size", -1); window > 0)
    a.set("left_window_size", window - 1);
  if (r.node.input(3) || r.node.input(4)) return cached_attention(r, h, qkv, a);
  if (from.integer("do_rotary", 0)) {
    Value* ids = r.node.input(9) ? r.node.input(9) : r.constant({0}, "start");
    Value* positions = positions_of(r, ids, qkv[0], 1);
    qkv[0] = rotated(r, qkv[0], h.queries, positions);
    qkv[1] = rotated(r, qkv[1], h.keys, positions);
  }
  become(r, "Attention", {qkv[0], qkv[1], qkv[2], r.node.input(10)}, a, 3);
}

// CausalConvWithState, ONNX's own since opset 27: a depthwise convolution behind the last inputs of the call
// before.
void causal_conv(Rewrite& r) {
  Value *x = r.node.input(0), *weights = r.node.input(1), *past = r.node.input(3);
  if (!x || !weights) r.fail("an input is missing");
  const Shape& w = shape_of(r, weights, "the weights");
  if (w.size() != 3) r.fail("the weights have not three axes");
  const int64_t channels = static_extent(r, w[0], "the number of channels"),
                taps = static_extent(r, w[2], "the kernel");
  if (taps < 1) r.fail("the kernel has no taps");
  const std::string activation = r.node.attributes.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    r.fail(fmt::format("activation {} is not supported", sinter::quoted(activation)));
  Value* padded = past ? r.before("Concat", {past, x}, with({{"axis", int64_t{2}}}))
                       : r.before("Pad", {x, r.constant({0, 0, taps - 1, 0, 0, 0}, "pads")});
  Value* state = wants(r.node, 1) ? r.node.outputs[1] : nullptr;
  std::vector<Value*> in{padded, weights};
  if (Value* bias = r.node.input(2)) in.push_back(bias);
  r.node.outputs.resize(1);
  become(r, "Conv", in, with({{"group", channels}}));
  if (activation != "none") {
    const auto [sum, y] = r.divert(0);
    r.then("Swish", {sum}, y);
  }
  if (state)
    r.then("Slice",
           {padded, r.constant({taps == 1 ? INT64_MAX : 1 - taps}, "first"), r.constant({INT64_MAX}, "last"),
            r.constant({2}, "axis")},
           state);
}

struct Row {
  const char* op;
  void (*rewrite)(Rewrite&);
};
const Row kRows[] = {
    {"Attention", contrib_attention},
    {"BiasGelu", bias_gelu},
    {"CausalConvWithState", causal_conv},
    {"EmbedLayerNormalization", embed_layer_norm},
    {"FastGelu", fast_gelu},
    {"FusedConv", fused_conv},
    {"FusedGemm", fused_gemm},
    {"FusedMatMul", fused_matmul},
    {"Gelu", gelu},
    {"GroupQueryAttention", group_query_attention},
    {"MultiHeadAttention", multi_head_attention},
    {"QuickGelu", quick_gelu},
    {"RotaryEmbedding", rotary},
    {"SimplifiedLayerNormalization", simplified_norm},
    {"SkipLayerNormalization", skip_layer_norm},
    {"SkipSimplifiedLayerNormalization", skip_simplified_norm},
};

}  // namespace

std::vector<const char*> contrib_ops() {
  std::vector<const char*> names;
  for (const Row& row : kRows) names.push_back(row.op);
  return names;
}

bool lower_contrib(Rewrite& r) {
  for (const Row& row : kRows)
    if (r.node.op == row.op) return row.rewrite(r), true;
  return lower_contrib_moves(r) || lower_contrib_lstm(r);
}

}  // namespace sinter
