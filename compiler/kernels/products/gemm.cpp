// Matrix products of floats: MatMul and Gemm, by the register tiles of mac.h.
//
// A constant second factor is packed into panels when the model is compiled; one that is computed at run time
// is packed panel by panel into scratch, once for all rows. One row (GEMV) keeps several partial sums in
// flight.
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/products/direct_ways.h"
#include "kernels/products/finish_tile.h"
#include "kernels/products/panel_weights.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool is_matmul(const Node& n) { return std::string_view(n.op->name) == "MatMul" && n.op->domain[0] == 0; }
bool is_gemm(const Node& n) { return std::string_view(n.op->name) == "Gemm" && n.op->domain[0] == 0; }

bool accepts(const Node& n, const Context&) {
  if (!is_matmul(n) && !is_gemm(n)) return false;
  // Of halves, weights and bias stay floats until they are packed.
  const DType element = element_type(n);
  for (size_t i = 0; i < n.anchor_inputs; ++i)
    if (n.inputs[i] && n.inputs[i]->type.dtype != element && !(i > 0 && n.inputs[i]->data)) return false;
  if (n.outputs[0]->type.dtype != element || (n.epilogue && !has_vector_text(*n.epilogue, element)))
    return false;
  const Shape& a = n.inputs[0]->type.shape;
  const Shape& b = n.inputs[1]->type.shape;
  if (a.size() < 2 || b.size() < 2) return false;
  // The panels' width must be a number.
  const bool transposed = is_gemm(n) && n.attributes.integer("transB", 0) != 0;
  const bool constant = n.inputs[1]->data && b.size() == 2;
  return constant || (transposed ? b[b.size() - 2] : b.back()).hi() != Interval::kUnbounded;
}

struct Product {
  bool trans_a = false, trans_b = false;
  float alpha = 1, beta = 1;
  Dim m, k, n;
  bool packed = false;       // B is a constant matrix
  bool bias_packed = false;  // C is a constant row
  const Value* c = nullptr;
};

Product product_of(const Node& n) {
  Product p;
  const Shape& a = n.inputs[0]->type.shape;
  const Shape& b = n.inputs[1]->type.shape;
  if (is_gemm(n)) {
    p.trans_a = n.attributes.integer("transA", 0) != 0;
    p.trans_b = n.attributes.integer("transB", 0) != 0;
    p.alpha = n.attributes.real("alpha", 1);
    p.beta = n.attributes.real("beta", 1);
    if (n.anchor_inputs > 2) p.c = n.inputs[2];
    if (p.beta == 0) p.c = nullptr;
  }
  p.m = p.trans_a ? a.back() : a[a.size() - 2];
  p.k = p.trans_a ? a[a.size() - 2] : a.back();
  p.n = p.trans_b ? b[b.size() - 2] : b.back();
  p.packed = n.inputs[1]->data && b.size() == 2;
  if (p.c && p.c->data && p.n.is_static()) {
    const Tensor& c = *p.c->data;
    const bool row = c.rank() <= 1 || c.dim(0) == 1;
    p.bias_packed = row && (c.size() == p.n.value() || c.size() == 1);
  }
  return p;
}

void pack_b(const Node& n, const Product& p, PanelWeights& weights) {
  const float* b = n.inputs[1]->data->as<float>();
  const int64_t k = p.k.value(), columns = p.n.value();
  weights.add_group(columns, [&](int64_t i, int64_t j) {
    return p.alpha * (p.trans_b ? b[j * k + i] : b[i * columns + j]);
  });
}

const LayerWriter::Turns kAll{"0", ""};

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w), n_(w.node), p_(product_of(w.node)), epilogue_(w, w.node.outputs[0]->type.shape) {}

  void emit() {
    const Shape& out = n_.outputs[0]->type.shape;
    rank_ = out.size();
    flat_ = p_.packed && !p_.trans_a && epilogue_.can_merge(0, rank_ - 2) && (!p_.c || p_.bias_packed);
    rows_ = flat_ ? product(out, 0, rank_ - 1) : p_.m;
    w_.include("sinter/mac.h");
    w_.flops(product(out) * p_.k * Dim(2));
    w_.summary(fmt::format("{} [{}, {}] x [{}, {}]{}", n_.op->name, rows_.text(), p_.k.text(), p_.k.text(),
                           p_.n.text(), epilogue_.summary()));
    const int lanes = w_.target.lanes;
    const int64_t columns = p_.n.hi();
    panels_ = panels_of(w_.target, columns, rows_.is_static() ? rows_.value() : 32,
                        {p_.k.is_static() ? p_.k.value() : 0});
    a_ = w_.input(0);
    if (p_.packed) {
      weights_.emplace(w_, panels_, p_.k.value());
      pack_b(n_, p_, *weights_);
      weights_->store("w", fmt::format("[{}][{}], in panels of {} columns", p_.k.text(), p_.n.text(),
                                       panels_.vectors * lanes));
    } else {
      b_ = w_.input(1);
      w_.include("sinter/pack.h");
    }
    if (p_.bias_packed) {
      std::vector<float> bias(static_cast<size_t>((columns + panels_.vectors * lanes) / lanes * lanes), 0.0f);
      for (int64_t j = 0; j < columns; ++j)
        bias[static_cast<size_t>(j)] = p_.beta * p_.c->data->as<float>()[p_.c->data->size() == 1 ? 0 : j];
      bias_ = w_.weights("bias", bias, fmt::format("[{}]", columns));
    } else if (p_.c) {
      c_ = broadcast(w_, w_.input(2), *p_.c, out);
    }
    y_ = w_.output(0);
    open_parts();
    if (!p_.packed) packed_ = w_.scratch_of_part("packed", "float", p_.k.hi() * panels_.vectors * lanes);
    open_batches();
    panel();
    for (size_t i = 0; i < opened_; ++i) w_.out.line("}}");
    w_.close_parts();
  }

 private:
  // Parts are matrices of a batch; of one matrix, tiles of rows; where these are few, panels.
  void open_parts() {
    const int tile = w_.target.tile(panels_.vectors);
    const bool batched = !flat_ && rank_ > 2;
    by_tiles_ = !batched && p_.packed && rows_.hi() >= 2 * w_.threads * tile;
    by_panels_ = !batched && !by_tiles_ && p_.n.is_static() && panels_.full > 0;
    turns_ = w_.open_parts(batched           ? w_.dim(n_.outputs[0]->type.shape[0])
                           : w_.threads == 1 ? "1"
                           : by_tiles_       ? w_.dim(tile_count(rows_, tile))
                           : by_panels_      ? std::to_string(panel_count(panels_))
                                             : "1");
    if (by_tiles_ && rows_.is_static())
      w_.parts_are_rows(
          tile_count(rows_, tile).value(), [&](int64_t turn) { return std::min(turn * tile, rows_.value()); },
          !p_.trans_a);
  }

  // A loop for each batch axis of the result, unless all rows are one long column of rows.
  void open_batches() {
    const Shape& out = n_.outputs[0]->type.shape;
    if (flat_) return;
    for (size_t a = 0; a + 2 < rank_; ++a) {
      w_.out.line("for (std::int64_t b{0} = {1}; b{0} < {2}; ++b{0}) {{", a, a == 0 ? turns_.first : "0",
                  a == 0 ? turns_.end : w_.dim(out[a]));
      ++opened_;
    }
    a_ += batch_offset(n_.inputs[0]->type.shape);
    if (!p_.packed) b_ += batch_offset(n_.inputs[1]->type.shape);
    Dim each = p_.m * p_.n;
    for (size_t a = rank_ - 2; a-- > 0;) {
      y_offset_ += fmt::format(" + b{} * {}", a, w_.dim(each));
      each = each * out[a];
    }
  }

  // " + b0 * 4096 + ..." for an operand whose leading axes broadcast against the result's.
  std::string batch_offset(const Shape& s) {
    std::string text;
    const Shape& out = n_.outputs[0]->type.shape;
    Dim each = s[s.size() - 1] * s[s.size() - 2];
    for (size_t i = s.size() - 2; i-- > 0;) {
      const size_t a = rank_ - s.size() + i;
      if (!s[i].is(1)) {
        const bool open = !(s[i] == out[a]) && s[i].lo() <= 1;  // 1 or full: known when the code runs
        text += open ? fmt::format(" + ({} == 1 ? 0 : b{} * {})", w_.dim(s[i]), a, w_.dim(each))
                     : fmt::format(" + b{} * {}", a, w_.dim(each));
      }
      each = each * s[i];
    }
    return text;
  }

  std::vector<std::string> index(const std::string& row, const std::string& column) const {
    std::vector<std::string> i(rank_, "0");
    if (!flat_)
      for (size_t a = 0; a + 2 < rank_; ++a) i[a] = fmt::format("b{}", a);
    i[rank_ - 2] = row;
    i[rank_ - 1] = column;
    return i;
  }

  void panel() {
    const std::string k = w_.dim(p_.k), columns = w_.dim(p_.n);
    w_.out.line("// `vectors` vectors of columns from c, the last one with `last` columns");
    w_.out.line(
        "const auto panel = [&](auto vectors, auto last, std::int64_t c, {}) __attribute__((always_inline)) "
        "{{",
        p_.packed ? "const float* wp" : "std::int64_t width");
    w_.out.line("constexpr int kVectors = vectors.value;");
    Dim tiles = tile_count(rows_, w_.target.tile(panels_.vectors));
    if (by_tiles_ && turns_.first != "0") tiles = ceildiv(tiles, Dim(w_.threads));
    const bool asks_ahead = !p_.trans_a && !rows_.is(1) && tiles.hi() != Interval::kUnbounded;
    if (weights_) weights_->declare_row(asks_ahead ? tiles.hi() : 0, p_.k.value());
    if (!p_.packed) {
      const std::string row = p_.trans_b ? "1" : columns, column = p_.trans_b ? k : "1";
      w_.out.line("pack_panel<kVectors>({} + c * {}, {}, {}, {}, width, {});", b_, column, row, column, k,
                  packed_);
    }
    w_.out.line("const auto tile = [&](auto pixels, std::int64_t i) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int kRows = pixels.value;");
    const TileSums sums(w_, rows_.is(1) ? 0 : p_.k.hi(), TileSums::Runs::kOne);
    sums.declare("kRows", bias_.empty() ? "" : bias_ + " + c");
    if (!rows_.is(1)) epilogue_.ask_for_rows("kRows", index("i + t", "c"), w_.out);
    const std::string panel_text = p_.packed ? "wp" : packed_;
    const std::string row = weights_ ? weights_->row_argument() : "";
    if (p_.trans_a)
      w_.out.line("mac_strided(sum, {} + i, 1, {}, {}, {}{});", a_, w_.dim(p_.m), panel_text, k, row);
    else if (rows_.is(1))
      w_.out.line("mac_row{}(sum, {}, {}, {}{});",
                  p_.n.is_static() && panels_.rest == 0 ? "" : fmt::format("<{}>", panels_.vectors), a_,
                  panel_text, k, row);
    else
      sums.add(fmt::format("{} + i * {}", a_, k), k, panel_text, k,
               weights_ ? weights_->mac_arguments() : "");
    if (!p_.trans_a) sums.end();
    std::string sum = "sum.a[t][o]";
    if (!p_.packed && p_.alpha != 1) sum = fmt::format("mul({}, splat({}))", sum, float_literal(p_.alpha));
    if (p_.c && !p_.bias_packed) sum = add_c(sum);
    finish_tile(w_, epilogue_,
                {.channel = "c",
                 .index = [&](const std::string& t, const std::string& c) { return index("i + " + t, c); },
                 .to =
                     [&](const std::string& t) {
                       return fmt::format("{}{} + (i + {}) * {} + c", y_, y_offset_, t, columns);
                     },
                 .sum = sum,
                 .rows = "kRows",
                 .last = p_.n.is_static() ? "last.value" : "last"});
    w_.out.put("};");
    emit_tile_parts(w_, by_tiles_ ? turns_ : kAll, rows_, w_.target.tile(panels_.vectors), "i",
                    "tile(Int<{T}>(), {x});");
    w_.out.put("};");
    call_panels();
  }

  std::string add_c(const std::string& sum) {
    const size_t r = c_.strides.size();
    std::string at = c_.pointer;
    if (!c_.strides[r - 2].is(0)) at += fmt::format(" + (i + t) * {}", w_.dim(c_.strides[r - 2]));
    std::string v = c_.strides[r - 1].is(0) ? fmt::format("splat(*({}))", at)
                                            : fmt::format("load_lanes({} + c + o * kLanes, lanes)", at);
    if (p_.beta != 1) v = fmt::format("mul({}, splat({}))", v, float_literal(p_.beta));
    return fmt::format("add({}, {})", sum, v);
  }

  void call_panels() {
    const int lanes = w_.target.lanes;
    const int64_t width = int64_t{panels_.vectors} * lanes;
    if (p_.packed) {
      weights_->emit("", by_panels_ ? turns_ : kAll);
      return;
    }
    if (p_.n.is_static()) {
      if (by_panels_ && turns_.first != "0") {
        w_.out.line("for (std::int64_t p = {}; p < {}; ++p) {{", turns_.first, turns_.end);
        w_.out.line("{}panel(Int<{}>(), Int<{}>(), p * {}, {});",
                    panels_.rest ? fmt::format("if (p < {}) ", panels_.full) : "", panels_.vectors, lanes,
                    width, width);
        if (panels_.rest)
          w_.out.line("else panel(Int<{}>(), Int<{}>(), {}, {});", panels_.rest, panels_.tail,
                      panels_.full * width, p_.n.value() - panels_.full * width);
        w_.out.line("}}");
        return;
      }
      if (panels_.full > 0)
        w_.out.line("for (std::int64_t c = 0; c < {}; c += {}) panel(Int<{}>(), Int<{}>(), c, {});",
                    panels_.full * width, width, panels_.vectors, lanes, width);
      if (panels_.rest)
        w_.out.line("panel(Int<{}>(), Int<{}>(), {}, {});", panels_.rest, panels_.tail, panels_.full * width,
                    p_.n.value() - panels_.full * width);
      return;
    }
    // An unknown number of columns: full panels, then one vector at a time.
    const std::string n = w_.dim(p_.n);
    w_.out.line("std::int64_t c = 0;");
    w_.out.line("for (; c + {0} <= {1}; c += {0}) panel(Int<{2}>(), kLanes, c, {0});", width, n,
                panels_.vectors);
    w_.out.line(
        "for (; c < {0}; c += kLanes) panel(Int<1>(), "
        "static_cast<int>(sinter::min_of(std::int64_t{{kLanes}}, {0} - c)), c, "
        "sinter::min_of(std::int64_t{{kLanes}}, {0} - c));",
        n);
  }

  LayerWriter& w_;
  const Node& n_;
  Product p_;
  Epilogue epilogue_;
  Panels panels_;
  std::optional<PanelWeights> weights_;
  size_t rank_ = 0, opened_ = 0;
  bool flat_ = false, by_tiles_ = false, by_panels_ = false;
  LayerWriter::Turns turns_;
  Dim rows_;
  std::string a_, b_, packed_, bias_, y_, y_offset_;
  Strided c_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_gemm() {
  static const std::vector<Kernel> table = {
      {"gemm",
       "matrix products of floats, by register tiles over packed panels",
       accepts,
       emit,
       {.work = Work::kProducts},
       direct_ways}};
  return table;
}

}  // namespace sinter
