// Products of float rows with matrices of codes (product_of_codes), and rows of such matrices
// (rows_of_codes).
//
// Of a few rows, codes become factors in registers, and the block's scale is applied to the block's sum: rows
// of x are made ready for that once, in scratch (runtime/sinter/product_of_codes.h). At accuracy level 4 they
// are made bytes there, where the instruction set gains by it (dot_codes.h). Of more rows, a panel of weights
// is decoded into scratch and multiplied by the register tiles of mac.h.
#include "kernels/products/finish_tile.h"
#include "kernels/products/packed_codes.h"
#include "kernels/products/row_source.h"

namespace sinter {
namespace {

// Rows up to which decoding a panel first isn't worth while, and rows of bytes that scratch has room for.
constexpr int64_t kFewRows = 4, kRowsOfBytes = 256;

// Rows in a tile of sums of products of bytes, beside two vectors of channels.
int byte_tile(const Target& t) {
  if (t.aarch64) return t.features.dot_products ? 8 : 3;
  return t.registers == 32 ? 8 : 4;
}

// Blocks whose sums the words take: whole vectors of the widest target, or one for all.
bool has_whole_blocks(const Node& n) {
  const CodeForm f = code_form(n.attributes);
  return f.blocks() == 1 || f.block % 16 == 0;
}

bool accepts_product(const Node& n, const Context&) {
  return is_of_codes(n, "product_of_codes") && has_whole_blocks(n) &&
         (!n.epilogue || has_vector_text(*n.epilogue));
}

class Product {
 public:
  explicit Product(LayerWriter& w)
      : w_(w),
        n_(w.node),
        x_(w.input(0)),
        epilogue_(w, w.node.outputs[0]->type.shape),
        source_(w, epilogue_, matrix_rows(w)),
        codes_(pack_codes(w)),
        form_(codes_.codes.form) {}

  void emit() {
    const Dim count = source_.interior();
    one_list_ = source_.flat() && source_.rows().batch.is(1);
    limit_ = by_bytes() ? kRowsOfBytes : kFewRows;
    few_ = one_list_ && count.lo() <= limit_;
    many_ = !one_list_ || count.hi() > limit_;
    w_.include(few_ && (by_bytes() || by_planes()) ? "sinter/dot_codes.h" : "sinter/product_of_codes.h");
    w_.flops(product(n_.outputs[0]->type.shape) * Dim(2 * form_.k));
    w_.summary(fmt::format("product [.., {0}] x [{0}, {1}] of {2}-bit codes, blocks of {3}{4}", form_.k,
                           form_.n, form_.bits, form_.block, epilogue_.summary()));
    y_ = w_.output(0);
    source_.open(codes_.panels,
                 many_ || !by_bytes() ? w_.target.tile(codes_.panels.vectors) : byte_tile(w_.target), false);
    if (few_) prepare(count);
    if (many_)
      decoded_ = w_.scratch_of_part("decoded", "float", form_.k * codes_.panels.vectors * w_.target.lanes);
    open_panel(w_, "const std::int32_t* wp");
    panel();
    w_.out.put("};");
    emit_panels(w_, codes_.panels, codes_.words, codes_.w, "0", source_.panel_turns());
    source_.close();
  }

 private:
  bool by_bytes() const {
    return n_.attributes.integer("accuracy_level", 0) == 4 && w_.target.lanes > 1 && form_.block >= 16 &&
           (form_.block & (form_.block - 1)) == 0 && (form_.bits < 8 || w_.target.features.dot_products);
  }
  // Floats as three bytes: where products of bytes are so much faster that three of them are.
  bool by_planes() const {
    return !by_bytes() && w_.target.aarch64 && (form_.bits < 8 || w_.target.features.dot_products) &&
           form_.block % 16 == 0 && n_.attributes.integer("floats", 0) == 0;
  }
  // Codes of a row, with those that fill up its last block.
  int64_t row() const { return codes_.words * 32 / form_.bits; }
  std::string zero(double less = 0) const {
    return codes_.zeros.empty() ? float_literal(static_cast<float>(form_.zero - less)) : "1.0f";
  }

  // The rows as the words take them, where they are few.
  void prepare(const Dim& count) {
    const int64_t most = std::min<int64_t>(count.hi(), limit_), plane = round_up(row(), 16) + 16,
                  stride = by_planes() ? 3 * plane : plane, blocks = form_.blocks();
    const bool small = by_bytes() || by_planes();
    stride_ = std::to_string(stride) + (by_planes() ? fmt::format(", {}", plane) : "");
    row_ = std::to_string(stride);
    rows_ = w_.scratch_of_part("rows", small ? "std::int8_t" : "float", most * stride);
    sums_ = w_.scratch_of_part("sums", "float", most * blocks);
    if (small) factors_ = w_.scratch_of_part("factors", "float", most * blocks);
    const std::string number = w_.dim(count);
    if (many_) w_.out.line("const bool few = {} <= {};", number, limit_);
    if (!count.is(1) || many_)
      w_.out.line("for (std::int64_t r = 0; {}r < {}; ++r)", many_ ? "few && " : "", number);
    const std::string r = count.is(1) && !many_ ? "0" : "r";
    const auto at = [&](const std::string& base, int64_t each) {
      return fmt::format("{} + {} * {}", base, r, each);
    };
    // NEON's products are of codes of 8 bits less 128.
    const double less = small && form_.bits == 8 && w_.target.aarch64 ? 128 : 0;
    const std::string of = fmt::format("{}, {}, {}, {}, {}", at(x_, form_.k), form_.k, codes_.blocks,
                                       zero(less), at(rows_, stride));
    if (by_bytes())
      w_.out.line("byte_row({}, {}, {});", of, at(sums_, blocks), at(factors_, blocks));
    else if (by_planes())
      w_.out.line("plane_row({}, {}, {}, {});", of, plane, at(sums_, blocks), at(factors_, blocks));
    else
      w_.out.line("scaled_row<{}>({}, {});", form_.bits, of, at(sums_, blocks));
  }

  void panel() {
    w_.out.line("constexpr ShortRow<kVectors, last.value> kRow;");
    const std::string weights =
        fmt::format("wp, {} + c * {}, {}", codes_.scales, form_.blocks(), codes_.zeros_at("c"));
    if (many_)
      w_.out.line("{}decode_panel<{}, kVectors>({}, {}, {}, {}, {}, kRow);", few_ ? "if (!few) " : "",
                  form_.bits, form_.k, codes_.blocks, zero(), weights, decoded_);
    source_.each_tile(
        x_, false, [] {}, [&](bool) { tile(weights); });
  }

  void tile(const std::string& weights) {
    w_.out.line("Tile<kVectors, kPixels> sum;");
    w_.out.line("tile_bias(sum, static_cast<const float*>(nullptr));");
    const Rows& rows = source_.rows();
    rows.open_taps(w_.out);
    const std::string plain =
        fmt::format("{}(sum, {}, {}, {}, {});", mac_word(w_.target), source_.run_at(x_, rows.position("ox")),
                    w_.dim(rows.in_channels), decoded_, form_.k);
    if (few_) {
      const std::string blocks = std::to_string(form_.blocks());
      const std::string coded = fmt::format(
          "{0}<{1}>(sum, {2} + ox * {3}, {4}, {5} + ox * {6}, {7}{6}, {8}, {9}, kRow);",
          by_planes() ? "mac_planes" : "mac_codes", form_.bits, rows_, row_, stride_, sums_, blocks,
          factors_.empty() ? "" : fmt::format("{} + ox * {}, ", factors_, blocks), codes_.blocks, weights);
      if (!many_) {
        w_.out.line("{}", coded);
      } else {
        w_.out.line("if (kPixels <= {} && few) {{", limit_);
        w_.out.line("if constexpr (kPixels <= {}) {}", limit_, coded);
        w_.out.line("}} else {{");
        w_.out.line("{}", plain);
        w_.out.line("}}");
      }
    } else {
      w_.out.line("{}", plain);
    }
    rows.close_taps(w_.out);
    finish_tile(w_, epilogue_, source_.texts(y_, "c"));
  }

  LayerWriter& w_;
  const Node& n_;
  const std::string x_;
  const Epilogue epilogue_;
  RowSource source_;
  const PackedCodes codes_;
  const CodeForm& form_;
  bool one_list_ = false, few_ = false, many_ = false;
  int64_t limit_ = 0;                                               // the most rows that are few
  std::string y_, row_, stride_, rows_, sums_, factors_, decoded_;  // stride_: and of planes
};

void emit_product(LayerWriter& w) { Product(w).emit(); }

bool accepts_rows(const Node& n, const Context&) {
  return is_of_codes(n, "rows_of_codes") && has_whole_blocks(n) && !n.epilogue;
}

void emit_rows(LayerWriter& w) {
  const Node& n = w.node;
  for (const char* h : {"sinter/product_of_codes.h", "sinter/index.h", "sinter/status.h"}) w.include(h);
  w.can_fail();
  const std::string indices = w.input(0), y = w.output(0);
  const PackedCodes c = pack_codes(w);
  const CodeForm& f = c.codes.form;
  w.summary(fmt::format("rows of [{}, {}] codes of {} bits at {} -> {}", f.n, f.k, f.bits,
                        text(n.inputs[0]->type), text(n.outputs[0]->type.shape)));
  const int64_t width = int64_t{c.panels.vectors} * w.target.lanes, full = c.panels.full * width;
  w.out.line("for (std::int64_t i = 0; i < {}; ++i) {{", w.dim(product(n.inputs[0]->type.shape)));
  w.out.line("const std::int64_t row = sinter::index_of({}[i], {});", indices, f.n);
  w.out.line("if (row < 0) return sinter::kIndexError;");
  w.out.line("const std::int64_t c = row / {0} * {0};", width);
  w.out.line(
      "const std::int64_t channels = {};",
      c.panels.rest ? fmt::format("row < {} ? {} : {}", full, width, f.n - full) : std::to_string(width));
  const std::string zero = float_literal(c.zeros.empty() ? static_cast<float>(f.zero) : 0.0f);
  w.out.line(
      "decode_channel<{}>({}, {}, {}, channels, {} + c * {} + (row - c), {} + c * {} + (row - c), {}, {} + i "
      "* {});",
      f.bits, f.k, c.blocks, zero, c.w, c.words, c.scales, f.blocks(),
      c.zeros.empty() ? "OneZero()" : c.zeros_at("c") + " + (row - c)", y, f.k);
  w.out.line("}}");
  w.out.line("return sinter::kOk;");
}

}  // namespace

const std::vector<Kernel>& kernels_product_of_codes() {
  static const std::vector<Kernel> table = {
      {"product_of_codes",
       "products of floats by matrices of 2 to 8 bits, decoded in registers or a panel at a time",
       accepts_product,
       emit_product,
       {.work = Work::kProducts}},
      {"rows_of_codes", "rows of matrices of 2 to 8 bits, decoded", accepts_rows, emit_rows},
  };
  return table;
}

}  // namespace sinter
