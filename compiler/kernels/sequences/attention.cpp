// Attention of floats: tiles of queries against blocks of keys, never the whole matrix of scores.
//
// For each head of keys, K is packed transposed into panels of keys and V into panels of elements, once for
// all queries of all heads that share them; both products are the register tiles of mac.h. Where V's rows are
// near enough to each other, its panels are read as they lie. A tile of queries walks over the keys in
// blocks: scores of a block go to scratch, softmax is done there row by row with a running maximum and sum,
// and the block's part of the result is added to what the earlier ones gave, scaled down to the new maximum.
// Where all keys fit one block the result is stored at once. Blocks that causality or a window exclude for
// the whole tile are not visited. A single query (decoding) reads K and V as they lie.
//
// A mask that all queries share joins the scores as they are stored, and their maximum is taken there too.
// What differs from query to query is a pass of its own over each row.
#include <algorithm>
#include <cmath>

#include "emit/expr_text.h"
#include "kernels/products/tiles.h"
#include "kernels/sequences/attention_plain.h"
#include "kernels/sequences/attention_shared.h"
#include "targets/target.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  if (!reads_types(n, element_type(n)) || n.has_output(kScores)) return false;
  if (n.freedom.halves != Halves::kNone && !may_attend_in_halves(n)) return false;
  const Value* mask = n.input(kMask);
  if (mask && mask->type.dtype != DType::kF32 && mask->type.dtype != DType::kBool) return false;
  const AttentionForm f = attention_form(n);
  return f.head.is_static() && f.v_head.is_static() && f.head.value() > 0 && f.v_head.value() > 0 &&
         f.total.hi() <= (int64_t{1} << 32);
}
bool accepts_plain(const Node& n, const Context&) { return n.op == find_op("", "Attention") && !n.epilogue; }

constexpr double kLog2E = 1.4426950408889634;

// What joins the scores: nothing, the same for every query, or something of its own for each.
enum class Masking { kNone, kShared, kRows };

Masking masking_of(const Node& n, const AttentionForm& f, int lanes) {
  const Value* mask = n.input(kMask);
  const bool has_rows = mask && mask->type.shape.size() > 1 && !mask->type.shape.end()[-2].is(1);
  if (f.causal || f.left >= 0 || f.right >= 0 || f.q_length.is(1) || has_rows) return Masking::kRows;
  const bool whole = f.total.is_static() && f.total.value() % lanes == 0 && !n.input(kValidKeys);
  return mask || !whole ? Masking::kShared : Masking::kNone;
}

// Vectors of a panel. Tiles of three are taller than those of four: packed K and V, which with some hundred
// keys lie in the second-level cache, are read less often, and AArch64 does them as fast. Else the widest are
// as good, and V may be a panel as it lies.
int widest_panel(const Target& t, int64_t keys) {
  return t.aarch64 || keys > 256 ? std::min(3, t.max_vectors) : t.max_vectors;
}

class Writer {
 public:
  explicit Writer(LayerWriter& w) : w_(w), f_(attention_form(w.node)) {}
  void write();

 private:
  void cut();
  bool shares_heads() const;
  LayerWriter::Turns open_tiles(LayerWriter::Turns& heads);
  bool scales_k() const;
  int64_t row_in_place() const;
  void cut_beside();
  void own_scratch();
  void pack();
  void tile();
  void tile_beside();
  void some_beside(const LayerWriter::Turns& turns);
  void last_beside(bool of_part);
  void for_panels_of_keys(const std::string& word, const std::string& from, const std::string& n);
  void shared_mask();
  void scores();
  void masked();
  void join();
  void weigh(bool single);
  void finish();
  void for_unrolled_rows(const std::string& line) {
    w_.out.line("SINTER_UNROLL");
    for_rows(line);
  }
  void for_rows(const std::string& line) { w_.out.line("for (int t = 0; t < kRows; ++t) {}", line); }
  std::string inverse_sum() const {
    return f_.masked_rows_are_zero ? "state[t].sum > 0.0f ? 1.0f / state[t].sum : state[t].sum"
                                   : "1.0f / state[t].sum";
  }
  std::string out_row() const { return fmt::format("{} + (i + t) * {}", t_.y.at("b", "h"), t_.y.position); }

  LayerWriter& w_;
  AttentionForm f_;
  AttentionTensors t_;
  bool single_query_ = false, single_block_ = false;
  int64_t v_row_ = 0;    // elements from one of V's rows to the next, where its panels are read in place
  bool beside_ = false;  // a tile's weights are made beside the next one's scores
  Masking masking_ = Masking::kNone;
  int rows_ = 1;
  int64_t tiles_ = 0;  // of a head's queries, where parts are tiles
  int64_t block_ = 1, capacity_ = 1, padded_ = 1;
  Panels keys_, panels_;                  // of keys, and of the elements of V
  double factor_ = 1;                     // of the products, to scores in units of ln 2
  bool scaled_k_ = false;                 // packed K has it
  int largest_tile_ = 1, last_tile_ = 1;  // queries
  bool halves() const { return w_.element.is_half(); }
  std::string mask_, scores_, packed_k_, packed_v_, result_;
  std::string shares_;  // of halves: the weights of a tile as they are multiplied
};

void Writer::write() {
  for (const char* header : {"sinter/mac.h", "sinter/math.h", "sinter/attention.h", "sinter/dims.h"})
    w_.include(header);
  if (halves()) w_.include("sinter/attention_half.h");
  if (is_stored(w_.node, kK) || is_stored(w_.node, kV)) w_.include("sinter/stored_rows.h");
  w_.flops(f_.batch * f_.q_heads * f_.q_length * f_.total * (f_.head + f_.v_head) * Dim(2));
  w_.summary(fmt::format("Attention of {} heads, {} queries, {} keys of {}{}{}", f_.q_heads.text(),
                         f_.q_length.text(), f_.total.text(), f_.head.text(),
                         w_.node.input(kMask) ? ", mask" : "", f_.causal ? ", causal" : ""));
  t_ = emit_attention_start(w_, f_);
  cut();
  // Parts are sequences, else heads, else (with few heads) tiles of queries of all heads, else (with a single
  // one) of the head's.
  const bool by_batch = !f_.batch.is(1), by_tiles = !by_batch && shares_heads(),
             by_heads = !by_batch && !by_tiles && (single_query_ || !f_.kv_heads.is(1));
  const bool outside = by_batch || by_heads || by_tiles;
  LayerWriter::Turns batch{"0", w_.dim(f_.batch)}, heads{"0", w_.dim(f_.kv_heads)}, queries{"0", ""};
  if (by_batch) batch = w_.open_parts(batch.end);
  if (by_heads) heads = w_.open_parts(heads.end);
  if (by_tiles) queries = open_tiles(heads);
  if (outside) own_scratch();
  if (!single_query_) {
    packed_k_ = w_.scratch_of_part("packed_k", "float", capacity_ * f_.head.value());
    if (v_row_ == 0) packed_v_ = w_.scratch_of_part("packed_v", "float", capacity_ * padded_);
  }
  if (masking_ == Masking::kShared) mask_ = w_.floats_of_part("mask", capacity_);
  w_.out.line("for (std::int64_t b = {}; b < {}; ++b) {{", batch.first, batch.end);
  emit_attention_keys(w_, f_);
  w_.out.line("for (std::int64_t c = {}; c < {}; ++c) {{  // heads of keys", heads.first, heads.end);
  if (queries.first != "0") {
    w_.out.line("const std::int64_t first_tile = sinter::max_of({} - c * {}, std::int64_t{{0}});",
                "first_turn", tiles_);
    w_.out.line("const std::int64_t end_tile = sinter::min_of({} - c * {}, std::int64_t{{{}}});", "end_turn",
                tiles_, tiles_);
  }
  w_.out.line("const auto* const k = {};", t_.k.at("b", "c"));
  w_.out.line("const auto* const v = {};", t_.v.at("b", "c"));
  if (!single_query_) pack();
  const Dim group = f_.q_heads.is_static() && f_.kv_heads.is_static()
                        ? Dim(f_.q_heads.value() / f_.kv_heads.value())
                        : Dim(1);
  if (group.is(1)) {
    w_.out.line("const std::int64_t h = c;");
  } else {
    w_.out.line("for (std::int64_t h = c * {0}; h < (c + 1) * {0}; ++h) {{  // heads of queries",
                group.value());
  }
  w_.out.line("const float* const q = {};", t_.q.at("b", "h"));
  if (masking_ == Masking::kShared) shared_mask();
  if (!outside) {
    queries = w_.open_parts(w_.threads > 1 ? w_.dim(tile_count(f_.q_length, rows_)) : "1");
    own_scratch();
  }
  beside_ ? tile_beside() : tile();
  if (single_query_)
    w_.out.line("tile(Int<1>(), 0);");
  else if (beside_ && queries.first != "0")
    some_beside(queries);
  else
    emit_tile_parts(w_, queries, f_.q_length, rows_, "i", "tile(Int<{T}>(), {x});");
  if (beside_) last_beside(queries.first != "0");
  if (!outside) w_.close_parts();
  for (int braces = group.is(1) ? 2 : 3; braces > 0; --braces) w_.out.line("}}");
  if (outside) w_.close_parts();
  if (w_.node.input(kValidKeys)) w_.out.line("return 0;");
}

// Panels, tiles and blocks.
void Writer::cut() {
  const Target& target = w_.target;
  const int lanes = target.lanes;
  single_query_ = f_.q_length.is(1);
  masking_ = masking_of(w_.node, f_, lanes);
  const int64_t total = std::max<int64_t>(f_.total.hi(), 1), v_head = f_.v_head.value();
  keys_ = cut_panels(total, widest_panel(target, total), lanes);
  rows_ = single_query_ ? 1 : target.tile(keys_.vectors);
  capacity_ = (total + lanes - 1) / lanes * lanes;
  const int64_t width = keys_.vectors * lanes;
  // Few blocks are fastest; but a window of keys is to leave most of them out.
  const int64_t longest = f_.left < 0 ? 1024 : 384, usual = f_.left < 0 ? 512 : 256;
  block_ = capacity_ <= longest + width ? capacity_ : usual / width * width;
  single_block_ = block_ == capacity_;
  padded_ = (v_head + lanes - 1) / lanes * lanes;
  panels_ = cut_panels(v_head, single_query_ ? std::min(4, target.max_vectors) : keys_.vectors, lanes);
  v_row_ = halves() || is_stored(w_.node, kV) ? 0 : row_in_place();
  factor_ = static_cast<double>(static_cast<float>(f_.scale)) * kLog2E;
  scaled_k_ = scales_k();
  cut_beside();
}

// Whether threads share heads: there are so few that some threads would have a head more than others, a tenth
// of the time or more.
bool Writer::shares_heads() const {
  if (single_query_ || f_.kv_heads.is(1)) return false;
  if (w_.threads == 1 || !f_.kv_heads.is_static() || !f_.q_length.is_static()) return false;
  const int64_t heads = f_.kv_heads.value(), most = (heads + w_.threads - 1) / w_.threads;
  return 10 * most * w_.threads >= 11 * heads && f_.q_length.value() >= 4 * w_.threads * rows_;
}

// Opens parts that are tiles of queries, those of one head after those of another; `heads` becomes the heads
// of a part, and the result what it does of head c. Each part packs the keys of its heads.
LayerWriter::Turns Writer::open_tiles(LayerWriter::Turns& heads) {
  tiles_ = (f_.q_length.value() + rows_ - 1) / rows_;
  const LayerWriter::Turns all = w_.open_parts(std::to_string(f_.kv_heads.value() * tiles_));
  if (all.first == "0") return {"0", ""};
  w_.include("sinter/dims.h");
  heads = {fmt::format("{} / {}", all.first, tiles_),
           fmt::format("({} + {}) / {}", all.end, tiles_ - 1, tiles_)};
  return {"first_tile", "end_tile"};
}

// The distance of V's rows where its panels need no packing: there is one and nothing between its rows, or
// all of a head's rows lie on so few pages that a processor which fetches ahead on its own has them at hand.
int64_t Writer::row_in_place() const {
  constexpr int64_t kNear = 192 << 10;  // bytes: 48 pages
  const int64_t v_head = f_.v_head.value(), row = t_.v.row;
  if (single_query_ || row == 0) return 0;
  if (panels_.full == 1 && panels_.rest == 0 && row == v_head) return row;
  const bool whole = v_head % w_.target.lanes == 0 && !w_.target.aarch64;
  return whole && single_block_ && row <= kNear && 4 * capacity_ * row <= kNear ? row : 0;
}

// Whether packing K multiplies it by the factor of the scores: where there are more scores than values of K,
// and no value can get out of range.
bool Writer::scales_k() const {
  if (single_query_ || f_.softcap != 0 || std::abs(factor_) > 1 || std::abs(factor_) < 1e-4) return false;
  const Dim queries = f_.q_length * f_.q_heads;
  return !queries.is_static() || !f_.kv_heads.is_static() ||
         queries.value() > f_.head.value() * f_.kv_heads.value();
}

// Whether tiles overlap: with whole rows of scores at hand and enough of them, wide tiles, and heads that
// no two threads would share. How many threads there are does not matter: bits depend on it. Two units of
// multiply-adds have no time to spare beside the products.
void Writer::cut_beside() {
  const bool shared_head = f_.batch.is(1) && f_.kv_heads.is(1);
  beside_ = !is_stored(w_.node, kV) && w_.target.isa == std::string_view("avx512") && single_block_ &&
            !shared_head && masking_ != Masking::kRows && keys_.vectors >= 3 && f_.head.value() >= 8 &&
            f_.q_length.is_static() && f_.q_length.value() > rows_ && w_.target.speed.fma < 2;
  if (!beside_) return;
  const int64_t queries = f_.q_length.value(), tiles = (queries + rows_ - 1) / rows_;
  last_tile_ = static_cast<int>(queries / tiles);
  largest_tile_ = last_tile_ + (queries % tiles > 0 ? 1 : 0);
}

// What each part needs for itself.
void Writer::own_scratch() {
  scores_ = w_.floats_of_part("scores", (beside_ ? 2 : 1) * rows_ * block_);
  if (halves()) shares_ = w_.scratch_of_part("shares", "float", rows_ * block_);
  if (!single_block_) result_ = w_.scratch_of_part("result", "float", rows_ * padded_);
}

void Writer::pack() {
  w_.include("sinter/pack.h");
  w_.out.line("const auto pack_keys = [&](auto vectors, std::int64_t j) {{");
  w_.out.line("constexpr int kVectors = vectors.value;");
  w_.out.line("const std::int64_t count = sinter::min_of(std::int64_t{{kVectors * kLanes}}, keys - j);");
  const bool stored = is_stored(w_.node, kK);
  w_.out.line("{4}<kVectors>(k + j * {0}, {5}{0}, {1}, count, {2} + j * {1}{3});", t_.k.position,
              f_.head.value(), packed_k_,
              scaled_k_ ? fmt::format(", Multiply{{{}}}", float_literal(factor_)) : "",
              stored ? "pack_stored_keys" : "pack_panel", stored ? "" : "1, ");
  w_.out.put("};");
  for_panels_of_keys("pack_keys", "0", "keys");
  if (v_row_ > 0) return;
  w_.out.line("{{");
  w_.out.line("const auto panel = [&](auto vectors, auto last, std::int64_t e, float* to) {{");
  w_.out.line("constexpr int kVectors = vectors.value;");
  w_.out.line("{}<kVectors>(v + e, {}, {}keys, (kVectors - 1) * kLanes + last.value, to);",
              is_stored(w_.node, kV) ? "pack_stored_values" : "pack_panel", t_.v.position,
              is_stored(w_.node, kV) ? "" : "1, ");
  w_.out.put("};");
  emit_panels(w_, panels_, capacity_, packed_v_);
  w_.out.line("}}");
}

// Calls `word` for each panel of keys [from, from + n), with the first key's place behind `from`.
void Writer::for_panels_of_keys(const std::string& word, const std::string& from, const std::string& n) {
  const int64_t width = keys_.vectors * w_.target.lanes;
  w_.out.line("{{");
  w_.out.line("std::int64_t j = 0;");
  if (keys_.full > 0) {
    const std::string end = keys_.rest == 0 ? n
                                            : fmt::format("sinter::min_of({}, std::int64_t{{{}}} - {})", n,
                                                          keys_.full * width, from);
    w_.out.line("for (; j < {}; j += {}) {}(Int<{}>(), j);", end, width, word, keys_.vectors);
  }
  if (keys_.rest > 0) w_.out.line("if (j < {}) {}(Int<{}>(), j);", n, word, keys_.rest);
  w_.out.line("}}");
}

// What joins the scores of each query of this head.
void Writer::shared_mask() {
  const Value* mask = w_.node.input(kMask);
  w_.out.line("shared_mask({}, keys, {}, {});",
              mask       ? mask_row(w_, f_, "0")
              : halves() ? "kNoMask"
                         : "static_cast<const float*>(nullptr)",
              capacity_, mask_);
}

// The function that does `rows` queries from i.
void Writer::tile() {
  w_.out.line("const auto tile = [&](auto rows, std::int64_t i) __attribute__((always_inline)) {{");
  w_.out.line("constexpr int kRows = rows.value;");
  w_.out.line("SoftmaxRow state[kRows];");
  const std::string first = first_key(f_, "i"), last = last_key(f_, "(i + kRows - 1)");
  if (single_block_) {
    w_.out.line("constexpr std::int64_t from = 0;");
    if (last.empty())
      w_.out.line("const std::int64_t n = keys;");
    else
      w_.out.line("const std::int64_t n = sinter::max_of(std::int64_t{{0}}, sinter::min_of(keys, {}));",
                  last);
    scores();
    masked();
    join();
    weigh(true);
  } else {
    w_.out.line("for (std::int64_t j = 0; j < kRows * {}; ++j) {}[j] = 0.0f;", padded_, result_);
    w_.out.line("const std::int64_t last = {};",
                last.empty() ? "keys" : fmt::format("sinter::min_of(keys, {})", last));
    if (first.empty())
      w_.out.line("for (std::int64_t from = 0; from < last; from += {}) {{", block_);
    else
      w_.out.line(
          "for (std::int64_t from = sinter::max_of(std::int64_t{{0}}, {}) / {} * {}; from < last; from += "
          "{}) {{",
          first, block_, block_, block_);
    w_.out.line("const std::int64_t n = sinter::min_of(std::int64_t{{{}}}, last - from);", block_);
    scores();
    masked();
    join();
    weigh(false);
    w_.out.line("}}");
    finish();
  }
  w_.out.put("};");
}

// The same where the scores of `rows` queries from i are summed beside the weights of those before, whose
// values follow.
void Writer::tile_beside() {
  w_.include("sinter/attention_beside.h");
  const std::string both = scores_;
  w_.out.line("WaitingRows<{}> waiting{{{}, {}}};", largest_tile_, both, block_);
  w_.out.line("constexpr std::int64_t from = 0;");
  w_.out.line("const std::int64_t n = keys;");
  // Not inlined: the general registers that the tiles need would not suffice for its loops beside theirs.
  w_.out.line(
      "const auto values_of = [&](auto rows, std::int64_t i, const float* weights, const float* sums) "
      "__attribute__((noinline)) {{");
  w_.out.line("constexpr int kRows = rows.value;");
  w_.out.line("SoftmaxRow state[kRows];");
  for_rows("state[t].sum = sums[t];");
  scores_ = "weights";
  weigh(true);
  w_.out.put("};");
  w_.out.line("const auto tile = [&](auto rows, std::int64_t i) __attribute__((always_inline)) {{");
  w_.out.line("constexpr int kRows = rows.value;");
  w_.out.line("SoftmaxRow state[kRows];");
  w_.out.line("const float* const weights = waiting.scores;");
  w_.out.line("float* const next = weights == {0} ? {0} + {1} : {0};", both, rows_ * block_);
  scores_ = "next";
  scores();
  w_.out.line("const std::int64_t before = waiting.count;");
  w_.out.line("float sums[WaitingRows<{}>::kFours];", largest_tile_);
  w_.out.line("sums_of(waiting, sums);");
  w_.out.line("wait(waiting, greatest, next);");
  w_.out.line("if (before == kRows) values_of(rows, i - kRows, weights, sums);");
  if (largest_tile_ != last_tile_) {
    w_.out.line("if constexpr (kRows != {}) {{", largest_tile_);
    w_.out.line("if (before == {0}) values_of(Int<{0}>(), i - {0}, weights, sums);", largest_tile_);
    w_.out.line("}}");
  }
  w_.out.put("};");
}

// The part's tiles: the larger ones are first.
void Writer::some_beside(const LayerWriter::Turns& turns) {
  const int64_t larger = largest_tile_ == last_tile_ ? tiles_ : f_.q_length.value() % tiles_;
  const auto start = [&](const std::string& tile) {
    return larger == tiles_ ? fmt::format("{} * {}", tile, largest_tile_)
                            : fmt::format("{0} * {1} + sinter::min_of({0}, std::int64_t{{{2}}})", tile,
                                          last_tile_, larger);
  };
  w_.out.line("std::int64_t i = {};", start(turns.first));
  w_.out.line("const std::int64_t behind = {};", start(turns.end));
  if (larger == tiles_) {
    w_.out.line("for (; i < behind; i += {0}) tile(Int<{0}>(), i);", largest_tile_);
  } else {
    w_.out.line("for (; i < sinter::min_of(behind, std::int64_t{{{1}}}); i += {0}) tile(Int<{0}>(), i);",
                largest_tile_, larger * largest_tile_);
    w_.out.line("for (; i < behind; i += {0}) tile(Int<{0}>(), i);", last_tile_);
  }
}

// The last tile's weights and values, beside nothing.
void Writer::last_beside(bool of_part) {
  w_.out.line("weigh_all(waiting, n);");
  w_.out.line("float sums[WaitingRows<{}>::kFours];", largest_tile_);
  w_.out.line("sums_of(waiting, sums);");
  if (!of_part)
    return w_.out.line("values_of(Int<{0}>(), {1} - {0}, waiting.scores, sums);", last_tile_,
                       f_.q_length.value());
  if (largest_tile_ != last_tile_) {
    w_.out.line("if (waiting.count == {0})", largest_tile_);
    w_.out.line("values_of(Int<{0}>(), i - {0}, waiting.scores, sums);", largest_tile_);
    w_.out.line("else");
  }
  w_.out.line("values_of(Int<{0}>(), i - {0}, waiting.scores, sums);", last_tile_);
}

// The scores, in units of ln 2, and the greatest of each row.
void Writer::scores() {
  const auto score = [&](const std::string& sum, bool vector) {
    const auto wide = [&](double number) {
      return vector ? fmt::format("splat({})", float_literal(number)) : float_literal(number);
    };
    if (f_.softcap == 0) return scaled_k_ ? sum : fmt::format("mul({}, {})", sum, wide(factor_));
    const double cap = static_cast<double>(f_.softcap);
    return fmt::format("mul(tanh(div(mul({}, {}), {})), {})", sum,
                       wide(static_cast<double>(static_cast<float>(f_.scale))), wide(cap),
                       wide(cap * kLog2E));
  };
  w_.out.line("{} greatest[kRows];", halves() ? "ScoreVector" : "f32v");
  for_unrolled_rows(halves() ? "greatest[t] = all_scores(state[t].top);"
                             : "greatest[t] = splat(state[t].top);");
  if (single_query_) {
    w_.out.line("for (std::int64_t j = 0; j < n; ++j) {{");
    w_.out.line("const float product = dot(q, k + (from + j) * {}, {});", t_.k.position, f_.head.value());
    w_.out.line("{}[j] = {};", scores_, score("product", false));
    w_.out.line("}}");
    return;
  }
  w_.out.line("const auto scores_of = [&](auto vectors, std::int64_t j) __attribute__((always_inline)) {{");
  w_.out.line("constexpr int kVectors = vectors.value;");
  w_.out.line("Tile<kVectors, kRows> product;");
  w_.out.line("tile_bias(product, nullptr);");
  w_.out.line("{0}(product, q + i * {1}, {1}, {2} + (from + j) * {3}, {3}{4});",
              beside_ ? "mac_beside" : mac_word(w_.target), t_.q.position, packed_k_, f_.head.value(),
              beside_ ? ", waiting, j" : "");
  w_.out.line("SINTER_UNROLL");
  w_.out.line("for (int t = 0; t < kRows; ++t) {{");
  w_.out.line("SINTER_UNROLL");
  w_.out.line("for (int o = 0; o < kVectors; ++o) {{");
  const std::string joined = fmt::format("load({} + from + j + o * kLanes)", mask_);
  if (halves()) {
    w_.out.line("put_scores({} + t * {} + j + o * kLanes, product.a[t][o], {}, {}{});", scores_, block_,
                scaled_k_ ? "1.0f" : float_literal(factor_),
                masking_ == Masking::kShared ? fmt::format("{} + from + j + o * kLanes", mask_) : "kNoMask",
                masking_ != Masking::kRows ? ", greatest[t]" : "");
    w_.out.line("}}");
    w_.out.line("}}");
    w_.out.put("};");
    return for_panels_of_keys("scores_of", "from", "n");
  }
  std::string value = score("product.a[t][o]", true);
  if (masking_ == Masking::kShared && f_.softcap == 0 && !scaled_k_)
    value = fmt::format("fma(product.a[t][o], splat({}), {})", float_literal(factor_), joined);
  else if (masking_ == Masking::kShared)
    value = fmt::format("add({}, {})", value, joined);
  w_.out.line("const f32v score = {};", value);
  w_.out.line("store({} + t * {} + j + o * kLanes, score);", scores_, block_);
  if (masking_ != Masking::kRows) w_.out.line("greatest[t] = max(greatest[t], score);");
  w_.out.line("}}");
  w_.out.line("}}");
  w_.out.put("};");
  for_panels_of_keys("scores_of", "from", "n");
}

// What differs from query to query: the mask joins the scores, and what must not take part becomes -inf, up
// to whole vectors.
void Writer::masked() {
  if (masking_ != Masking::kRows) return;
  w_.out.line("for (int t = 0; t < kRows; ++t) {{");
  w_.out.line("{}* const row = {} + t * {};", halves() ? "auto" : "float", scores_, block_);
  if (w_.node.input(kMask)) w_.out.line("add_mask(row, {} + from, n);", mask_row(w_, f_, "(i + t)"));
  const std::string first = first_key(f_, "(i + t)"), last = last_key(f_, "(i + t)");
  w_.out.line("exclude(row, n, {}, {});", first.empty() ? "0" : fmt::format("{} - from", first),
              last.empty() ? "n" : fmt::format("sinter::min_of(n, {} - from)", last));
  w_.out.line("greatest[t] = greatest_scores(greatest[t], row, n);");
  w_.out.line("}}");
}

void Writer::join() {
  w_.out.line("{}(state, greatest, kRows, {}, {}, n);", single_block_ ? "take_scores" : "join_scores",
              scores_, block_);
}

// The block's weights times V: into `result`, or, where it is the only block, finished.
void Writer::weigh(bool single) {
  if (single) {
    for_rows(fmt::format("state[t].factor = {};", inverse_sum()));
  }
  if (halves())
    for_rows(fmt::format("shares_of({0} + t * {2}, n, state[t].factor, {1} + t * {2});", scores_, shares_,
                         block_));
  if (w_.node.inputs[kV]->type.dtype == DType::kI8)
    for_rows(fmt::format("scale_weights({} + t * {}, v + from * {}, {}, {}, n);", scores_, block_,
                         t_.v.position, t_.v.position, f_.v_head.value()));
  const bool in_blocks = halves() && block_ > TileSums::kOneBlock;
  const bool packed = !single_query_;
  w_.out.line(
      "const auto panel = [&](auto vectors, auto lanes, std::int64_t e, const auto* values) "
      "__attribute__((always_inline)) {{");
  w_.out.line("constexpr int kVectors = vectors.value;");
  w_.out.line("Tile<kVectors, kRows> sums;");
  if (single) {
    w_.out.line("tile_bias(sums, nullptr);");
  } else {
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int t = 0; t < kRows; ++t) {{");
    w_.out.line("SINTER_UNROLL");
    w_.out.line(
        "for (int o = 0; o < kVectors; ++o) sums.a[t][o] = mul(load({} + t * {} + e + o * kLanes), "
        "splat(state[t].factor));",
        result_, padded_);
    w_.out.line("}}");
  }
  if (in_blocks) w_.out.line("BlockSums<kVectors, kRows> blocks;");
  if (halves())
    w_.out.line("{}(sums, {}{}, {}, values + from * kVectors * kLanes, n);",
                in_blocks ? fmt::format("mac_in_blocks<{}>", w_.target.speed.in_order) : mac_word(w_.target),
                in_blocks ? "blocks, " : "", shares_, block_);
  else if (packed && v_row_ > 0)
    w_.out.line("{}(sums, {}, {}, values + from * {}, n, PanelRow<{}, false>());", mac_word(w_.target),
                scores_, block_, v_row_, v_row_);
  else if (packed)
    w_.out.line("{}(sums, {}, {}, values + from * kVectors * kLanes, n);", mac_word(w_.target), scores_,
                block_);
  else
    w_.out.line("add_rows(sums, {}, values + from * {}, {}, n, lanes.value);", scores_, t_.v.position,
                t_.v.position);
  if (in_blocks) w_.out.line("blocks.end(sums);");
  w_.out.line("SINTER_UNROLL");
  w_.out.line("for (int t = 0; t < kRows; ++t) {{");
  w_.out.line("SINTER_UNROLL");
  w_.out.line("for (int o = 0; o < kVectors; ++o) {{");
  if (single && halves())
    w_.out.line("store_lanes({} + e + o * kLanes, sums.a[t][o], o == kVectors - 1 ? lanes.value : kLanes);",
                out_row());
  else if (single)
    w_.out.line(
        "store_lanes({} + e + o * kLanes, mul(sums.a[t][o], splat(state[t].factor)), o == kVectors - 1 ? "
        "lanes.value : kLanes);",
        out_row());
  else
    w_.out.line("store({} + t * {} + e + o * kLanes, sums.a[t][o]);", result_, padded_);
  w_.out.line("}}");
  w_.out.line("}}");
  if (!single && packed) w_.out.line("static_cast<void>(lanes);");
  w_.out.put("};");
  // The panels of an unpacked V begin at its elements.
  if (packed && v_row_ == 0)
    emit_panels(w_, panels_, capacity_, packed_v_);
  else
    emit_panels(w_, panels_, 1, "v");
}

void Writer::finish() {
  w_.out.line("for (int t = 0; t < kRows; ++t) {{");
  w_.out.line("const float scale = {};", inverse_sum());
  w_.out.line("float* const to = {};", out_row());
  w_.out.line("const float* const row = {} + t * {};", result_, padded_);
  w_.out.line("std::int64_t e = 0;");
  const int64_t v_head = f_.v_head.value();
  w_.out.line("for (; e + kLanes <= {}; e += kLanes) store(to + e, mul(load(row + e), splat(scale)));",
              v_head);
  if (v_head % w_.target.lanes != 0) w_.out.line("for (; e < {}; ++e) to[e] = row[e] * scale;", v_head);
  w_.out.line("}}");
}

void emit(LayerWriter& w) { Writer(w).write(); }

}  // namespace

const std::vector<Kernel>& kernels_attention() {
  constexpr Kernel::Abilities kTiles{.work = Work::kProducts}, kLoops{.work = Work::kLoops};
  static const std::vector<Kernel> table = {
      {"attention", "Attention of floats, blocks of keys with a running softmax", accepts, emit, kTiles},
      {"attention_plain", "Attention of any float type, with its scores as an output, as plain loops",
       accepts_plain, emit_attention_plain, kLoops},
  };
  return table;
}

}  // namespace sinter
