// Products with constant weights by Strassen's seven products of quarters, or 49 of sixteenths
// (runtime/sinter/strassen.h): MatMul, Gemm and pointwise convolutions whose rows, inner extent and columns
// are large enough.
//
// The rows are cut into groups; of each, the sums over its quarters go to scratch that stays in the
// second-level cache. Then for each panel of the columns' first half the seven products run one after the
// other, each over all register tiles of the rows' upper half or all seven a tile (StrassenChoice); what
// later products build on is kept in scratch, and four of them finish a quarter of the result by the
// epilogue. The pass allow_strassen marks the layers whose sums may be rearranged so (not with --exact).
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/products/panel_weights.h"
#include "kernels/products/strassen.h"
#include "kernels/products/tiles.h"
#include "ops/op.h"
#include "targets/target.h"

namespace sinter {
namespace {

// Opens the loop over the seven products.
constexpr const char* kEachStep = "strassen_steps([&](auto ends, int q) __attribute__((always_inline))";

class Writer {
 public:
  Writer(LayerWriter& w, const StrassenChoice& choice)
      : w_(w), n_(w.node), p_(*row_product(n_)), choice_(choice), epilogue_(w, n_.outputs[0]->type.shape) {}

  void emit() {
    const Shape& out = n_.outputs[0]->type.shape;
    SINTER_CHECK(epilogue_.can_merge(0, out.size() - 2), "the epilogue's rows must be one column");
    w_.include("sinter/strassen.h");
    w_.flops(Dim(2 * p_.rows * p_.k * p_.n));
    w_.summary(fmt::format("{} [{}, {}] x [{}, {}] by Strassen, {}, error {:.1g} of the largest{}",
                           n_.op->name, p_.rows, p_.k, p_.k, p_.n,
                           choice_.levels == 2
                               ? "two levels"
                               : fmt::format("groups of {} rows", choice_.rows + (choice_.larger ? 1 : 0)),
                           choice_.error, epilogue_.summary()));
    if (choice_.levels == 2) {
      tiles_ = strassen_tiles(p_, w_.target, choice_);
      share_tiles();
    }
    panels_ = choice_.levels == 2 ? tiles_.panels : panels_of(w_.target, p_.n / 2, choice_.height);
    x_ = w_.input(0);
    pack_weights();
    bias_ = row_bias(w_, p_.n);
    y_ = w_.output(0);
    if (choice_.levels == 2)
      twice();
    else
      body();
  }

 private:
  // As many register tiles for each thread, if they are smaller for it.
  void share_tiles() {
    if (w_.threads == 1 || tiles_.count < w_.threads) return;
    tiles_.cut(choice_.quarter, std::min(round_up(tiles_.count, w_.threads), choice_.quarter));
  }

  // For each product of the first level the panels of those of the second.
  void pack_weights() {
    const int side = 1 << choice_.levels;
    const int64_t k = p_.k / side, n = p_.n / side;
    const std::vector<float> factors = strassen_weights(p_, choice_.levels);
    std::vector<float> packed;
    for (int64_t a = 0; a < (choice_.levels == 2 ? 7 : 1); ++a) {
      const float* const from = factors.data() + a * 7 * k * n;
      const std::vector<float> one = pack_panels(panels_, w_.target.lanes, n, 7 * k,
                                                 [&](int64_t i, int64_t j) { return from[i * n + j]; });
      packed.insert(packed.end(), one.begin(), one.end());
      first_size_ = static_cast<int64_t>(one.size());
    }
    weights_ =
        w_.weights("w", packed,
                   fmt::format("{}[7 products][{}][{}], in panels of {} columns",
                               choice_.levels == 2 ? "[7]" : "", k, n, panels_.vectors * w_.target.lanes));
  }

  // Two levels: for each product of the first level pieces of the register tiles, which find its weights in
  // the second-level cache but for the first one. Of each piece that product's left factor and the sums of
  // the factor's quarters; then for each panel the seven products of the second level.
  void twice() {
    const StrassenChoice& c = choice_;
    // As many for each thread.
    const int64_t pieces = std::min(tiles_.count, round_up(c.pieces, w_.threads)),
                  rows = tiles_.most_rows(pieces), k = p_.k;
    const LayerWriter::Turns turns = w_.open_parts(std::to_string(pieces));
    const std::string first = w_.scratch_of_part("s", "float", rows * k),
                      second = w_.scratch_of_part("s2", "float", rows * k),
                      spare = w_.scratch_of_part("spare", "float", 8 * tiles_.columns);
    kept_ = w_.scratch_of_part("kept", "float", 2 * rows * tiles_.width);
    w_.out.line("for (int a = 0; a < 7; ++a) {{");
    w_.out.line("const StrassenStep whole = kStrassenSteps[a];");
    w_.out.line("for (std::int64_t piece = {}; piece < {}; ++piece) {{", turns.first, turns.end);
    w_.out.line("const std::int64_t tile = piece * {0} / {1}, tiles = (piece + 1) * {0} / {1};", tiles_.count,
                pieces);
    w_.include("sinter/dims.h");
    const auto row_of = [&](const char* tile) {
      return tiles_.larger == 0 ? fmt::format("{} * {}", tile, tiles_.rows)
                                : fmt::format("{0} * {1} + sinter::min_of({0}, std::int64_t{{{2}}})", tile,
                                              tiles_.rows, tiles_.larger);
    };
    w_.out.line("const std::int64_t first = {}, rows = {} - first;", row_of("tile"), row_of("tiles"));
    w_.out.line("const float* const upper = {} + first * {};", x_, k);
    w_.out.line("const float* const lower = upper + {};", (p_.rows - c.height) * k);
    w_.out.line("const float* const quarters[4] = {{upper, upper + {0}, lower, lower + {0}}};", k / 2);
    w_.out.line("const StrassenFactor left = strassen_left(a, quarters, {}, rows, {}, {}, {}, {});",
                (c.height - c.quarter) * k, k / 4, k, first, second);
    w_.out.line("// the left factors, in the order of the steps");
    w_.out.line(
        "const float* const factors[7] = {{left.x, left.x + {0}, {1}, {1} + {0}, {1} + {2}, {1} + {3}, "
        "left.x + left.apart + {0}}};",
        k / 4, second, k / 2, 3 * (k / 4));
    twice_panel(spare, rows, pieces);
    emit_panels(w_, panels_, 7 * (k / 4), fmt::format("{} + a * {}", weights_, first_size_), "0", {"0", ""});
    w_.out.line("}}");
    w_.out.line("}}");
    w_.close_parts();
  }

  void twice_panel(const std::string& spare, int64_t most_rows, int64_t pieces) {
    // Where the weights of two products fit the second-level cache, each piece asks for its share of the next
    // one's, as memory gives them no faster than all pieces together need them.
    const bool far = pieces > 1 && w_.threads == 1 && 8 * first_size_ <= w_.target.speed.l2;
    if (far)
      open_panel(
          4, tiles_.count,
          fmt::format("{} + piece * ({} * kVectors * kLanes) / {}", first_size_, 7 * (p_.k / 4), pieces));
    else
      open_panel(4, (tiles_.count + pieces - 1) / pieces);
    w_.out.line(
        "const auto product = [&](auto ends, auto pixels, std::int64_t i, int q) "
        "__attribute__((always_inline)) {{");
    w_.out.line("constexpr int kRows = pixels.value;");
    w_.out.line("const StrassenStep step = kStrassenSteps[q];");
    w_.out.line("float* const own = {} + i * (kVectors * kLanes);", kept_);
    w_.out.line("Tile<kVectors, kRows> sum;");
    w_.out.line("strassen_start(sum, own, {}, step);", most_rows * tiles_.width);
    const int64_t below = p_.rows - choice_.height, within = choice_.height - choice_.quarter;
    const bool shares = below < choice_.height, shares_within = within < choice_.quarter;
    w_.out.line("const std::int64_t row = first + i + (step.result >= 2 ? {} : 0);", within);
    w_.out.line("const std::int64_t column = c + (step.result % 2 == 1 ? {} : 0);", p_.n / 4);
    w_.out.line("const std::int64_t y_row = row + (whole.result >= 2 ? {} : 0);", below);
    w_.out.line("const std::int64_t y_column = column + (whole.result % 2 == 1 ? {} : 0);", p_.n / 2);
    ask_ahead("ends.value && whole.result >= 0", "y_row", "y_column");
    mac(4);
    w_.out.line("strassen_keep<ends.value>(sum, own, {}, step);", most_rows * tiles_.width);
    w_.out.line("if (!ends.value) return;");
    // A row in the middle is in two parts; the upper one stores it.
    if (shares || shares_within)
      w_.out.line("const bool again = first + i == 0{};", shares && shares_within ? ""
                                                          : shares                ? " && step.result < 2"
                                                                                  : " && step.result >= 2");
    const std::string pitch = w_.dim(w_.pixel_stride());
    w_.out.line("// what is kept lies in the lower half of the result until that is finished");
    w_.out.line("const auto kept_rows = [&](int number) __attribute__((always_inline)) {{");
    w_.out.line("float* const rows = {} + (row + {}) * {} + column + number * {};", y_, below, pitch,
                p_.n / 2);
    if (shares || shares_within)
      w_.out.line("return StrassenRows{{again ? {} + (number * 4 + step.result) * {} + c : rows, rows, {}}};",
                  spare, tiles_.columns, pitch);
    else
      w_.out.line("return StrassenRows{{rows, rows, {}}};", pitch);
    w_.out.put("};");
    w_.out.line("strassen_whole<last.value>(sum, whole, kept_rows);");
    w_.out.line("if (whole.result < 0) return;");
    if (shares || shares_within)
      w_.out.line("const int known = again{} ? 1 : 0;", shares && shares_within
                                                            ? " && (step.result >= 2 || whole.result >= 2)"
                                                        : shares ? " && whole.result >= 2"
                                                                 : "");
    store_tile(shares || shares_within, "y_row", "y_column");
    w_.out.put("};");
    w_.out.line("{} {{", kEachStep);
    w_.out.line("std::int64_t i = 0, at = tile;");
    if (tiles_.larger > 0)
      w_.out.line("for (; at < tiles && at < {0}; ++at, i += {1}) product(ends, Int<{1}>(), i, q);",
                  tiles_.larger, tiles_.rows + 1);
    w_.out.line("for (; at < tiles; ++at, i += {0}) product(ends, Int<{0}>(), i, q);", tiles_.rows);
    w_.out.line("}});");
    w_.out.put("};");
  }

  // Parts are groups of rows, else panels (once the sums are made, by rows), else tiles of rows.
  void body() {
    const int64_t k = p_.k, height = choice_.height;
    const LayerWriter::Turns none{"0", ""};
    const LayerWriter::Turns groups = by_groups() ? w_.open_parts(std::to_string(choice_.groups)) : none;
    const std::string s = w_.scratch_of_part("s", "float", 2 * height * k);
    if (by_tiles() && choice_.by_products) kept_ = w_.scratch("kept", "float", 2 * plane());
    open_group(groups);
    w_.out.line("const float* const below = upper + (rows - {}) * {};", height, k);
    sums(s);
    if (by_panels()) w_.close_parts();
    w_.out.line("// the left factors, in the order of the steps");
    w_.out.line(
        "const float* const factors[7] = {{upper, upper + {1}, {0} + {1}, {0}, {0} + {3}, {0} + {2}, below + "
        "{1}}};",
        s, k / 2, height * k, height * k + k / 2);
    const LayerWriter::Turns panels =
        by_panels() ? w_.open_parts(std::to_string(panel_count(panels_))) : none;
    if (kept_.empty()) kept_ = w_.scratch_of_part("kept", "float", 2 * plane());
    panel();
    emit_panels(w_, panels_, 7 * (k / 2), weights_, "0", panels);
    if (!by_groups()) w_.close_parts();
    w_.out.line("}}");
    if (by_groups()) w_.close_parts();
  }

  // The sums of x's quarters; of a part's rows, whose parts it opens but where groups are the parts.
  void sums(const std::string& s) {
    const int64_t k = p_.k, height = choice_.height;
    std::string first = "first_row", end = "end_row";
    if (by_panels()) {
      const LayerWriter::Turns rows = w_.open_parts(std::to_string(height));
      first = rows.first, end = rows.end;
    } else if (by_tiles()) {
      const int64_t tile = rows_of_tile();
      tiles_of_part_ = w_.open_parts(std::to_string((height + tile - 1) / tile));
      w_.include("sinter/dims.h");
      if (tiles_of_part_.first != "0")
        w_.out.line(
            "const std::int64_t first_row = {0} * {2}, end_row = sinter::min_of({1} * {2}, "
            "std::int64_t{{{3}}});",
            tiles_of_part_.first, tiles_of_part_.end, tile, height);
    }
    if (by_groups() || first == "0" || (by_tiles() && tiles_of_part_.first == "0"))
      return w_.out.line("strassen_sums(upper, below, {1}, {2}, {3}, {0}, {0} + {4});", s, height, k / 2, k,
                         height * k);
    w_.out.line(
        "strassen_sums(upper + {1} * {4}, below + {1} * {4}, {2} - {1}, {3}, {4}, {0} + {1} * {4}, {0} + "
        "{5} + "
        "{1} * {4});",
        s, first, end, k / 2, k, height * k);
  }

  bool by_groups() const { return choice_.groups >= w_.threads; }
  // Some threads would have a panel more than others, a tenth of the time or more.
  bool by_tiles() const {
    const int64_t panels = panel_count(panels_), most = (panels + w_.threads - 1) / w_.threads;
    return !by_groups() && 10 * most * w_.threads >= 11 * panels &&
           choice_.height >= 2 * w_.threads * rows_of_tile();
  }
  bool by_panels() const { return !by_groups() && !by_tiles(); }
  int64_t rows_of_tile() const { return w_.target.tile(panels_.vectors); }

  // The loop over groups, or the only one: its rows are `rows` ones from `first`.
  void open_group(const LayerWriter::Turns& groups) {
    const StrassenChoice& c = choice_;
    w_.out.line("for (std::int64_t group = {}; group < {}; ++group) {{", groups.first,
                groups.end.empty() ? std::to_string(c.groups) : groups.end);
    if (c.larger > 0)
      w_.out.line(
          "const std::int64_t first = group * {0} + sinter::min_of(group, std::int64_t{{{1}}}), rows = group "
          "< {1} ? {2} : {0};",
          c.rows, c.larger, c.rows + 1);
    else
      w_.out.line("const std::int64_t first = group * {0}, rows = {0};", c.rows);
    if (c.larger > 0) w_.include("sinter/dims.h");
    w_.out.line("const float* const upper = {} + first * {};", x_, p_.k);
  }

  // A panel of `tiles` register tiles asks for weights `ahead` (text) floats behind its own first ones;
  // without a text for those of the next product.
  void open_panel(int side, int64_t tiles, std::string ahead = "") {
    w_.out.line(
        "// `vectors` vectors of columns from c in each of {} parts, the last one with `last` columns", side);
    w_.out.line(
        "const auto panel = [&](auto vectors, auto last, std::int64_t c, const float* wp) "
        "__attribute__((always_inline)) {{");
    w_.out.line("constexpr int kVectors = vectors.value;");
    step_ = floats_ahead(w_.target, panels_.vectors, tiles);
    if (ahead.empty()) ahead = fmt::format("{} * kVectors * kLanes", p_.k / side);
    if (step_ > 0) w_.out.line("Ahead<{}> ahead{{wp + {}}};", step_, ahead);
  }

  void mac(int side) {
    w_.out.line("{0}(sum, factors[q] + i * {1}, {1}, wp + q * ({2} * kVectors * kLanes), {2}{3});",
                mac_word(w_.target), p_.k, p_.k / side, step_ > 0 ? ", RowOf<kVectors>(), ahead" : "");
  }

  void panel() {
    const int rows = w_.target.tile(panels_.vectors);
    const int64_t tiles = (choice_.height + rows - 1) / rows;
    open_panel(2, tiles_of_part_.first == "0" ? tiles : (tiles + w_.threads - 1) / w_.threads);
    const std::string kept = kept_ + (choice_.by_products ? " + i * (kVectors * kLanes)" : "");
    w_.out.line(
        "const auto product = [&](auto ends, auto pixels, std::int64_t i, int q) "
        "__attribute__((always_inline)) {{");
    w_.out.line("constexpr int kRows = pixels.value;");
    w_.out.line("const StrassenStep step = kStrassenSteps[q];");
    w_.out.line("Tile<kVectors, kRows> sum;");
    w_.out.line("strassen_start(sum, {}, {}, step);", kept, plane());
    w_.out.line("const std::int64_t row = first + i + (step.result >= 2 ? rows - {} : 0);", choice_.height);
    w_.out.line("const std::int64_t column = c + (step.result % 2 == 1 ? {} : 0);", p_.n / 2);
    ask_ahead("ends.value", "row", "column");
    mac(2);
    w_.out.line("strassen_keep<ends.value>(sum, {}, {}, step);", kept, plane());
    w_.out.line("if (!ends.value) return;");
    // Rows in the middle are in both halves; the upper one stores them.
    if (choice_.skips())
      w_.out.line("const std::int64_t known = step.result >= 2 ? {} - rows - i : 0;", 2 * choice_.height);
    store_tile(choice_.skips(), "row", "column");
    w_.out.put("};");
    const std::string call = "product(ends, Int<{T}>(), {x}, q);";
    if (choice_.by_products) w_.out.line("{} {{", kEachStep);
    emit_tile_parts(w_, tiles_of_part_, Dim(choice_.height), rows, "i",
                    choice_.by_products ? call : fmt::format("{} {{ {} }});", kEachStep, call));
    if (choice_.by_products) w_.out.line("}});");
    w_.out.put("};");
  }

  // Floats of the sums that one product keeps.
  int64_t plane() const {
    const int64_t rows = choice_.by_products ? choice_.height : w_.target.tile(panels_.vectors);
    return rows * panels_.vectors * w_.target.lanes;
  }

  // Stores the sums of a tile of one part of the result, from `row0` and `column0` on; where another part
  // `skips` some, but for `known` rows.
  void store_tile(bool skips, const std::string& row0, const std::string& column0) {
    const std::string row = row0 + " + t", column = column0 + " + o * kLanes";
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int t = 0; t < kRows; ++t) {{");
    if (skips) w_.out.line("if (t < known) continue;");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int o = 0; o < kVectors; ++o) {{");
    w_.out.line("const int lanes = o == kVectors - 1 ? last.value : kLanes;");
    const std::string sum =
        bias_.empty() ? "sum.a[t][o]" : fmt::format("add(sum.a[t][o], load({} + {}))", bias_, column);
    const std::string value = epilogue_.vector(sum, index(row, column), "lanes", w_.out);
    w_.out.line("store_lanes({} + ({}) * {} + {}, {}, lanes);", y_, row, w_.dim(w_.pixel_stride()), column,
                value);
    w_.out.line("}}");
    w_.out.line("}}");
  }

  // What the epilogue reads of a tile of the result, where `ends` (text) says that the product ends one.
  void ask_ahead(const std::string& ends, const std::string& row, const std::string& column) {
    if (!epilogue_.asks_ahead()) return;
    w_.out.line("if ({}) {{", ends);
    epilogue_.ask_for_rows("kRows", index(row + " + t", column), w_.out);
    w_.out.line("}}");
  }

  std::vector<std::string> index(const std::string& row, const std::string& column) const {
    std::vector<std::string> i(n_.outputs[0]->type.shape.size(), "0");
    i[i.size() - 2] = row;
    i[i.size() - 1] = column;
    return i;
  }

  LayerWriter& w_;
  const Node& n_;
  RowProduct p_;
  StrassenChoice choice_;
  Epilogue epilogue_;
  Panels panels_;
  StrassenTiles tiles_;
  int64_t first_size_ = 0;                     // floats of the weights of a product of the first level
  LayerWriter::Turns tiles_of_part_{"0", ""};  // of rows, where they are the parts
  int step_ = 0;                               // floats of weights that a value of k asks for ahead
  std::string x_, y_, weights_, bias_, kept_;
};

void emit(LayerWriter& w) { Writer(w, w.way<StrassenChoice>()).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_gemm_strassen() {
  static const std::vector<Kernel> table = {
      {"gemm_strassen",
       "products with constant weights by Strassen's seven products of quarters",
       may_choose_strassen,
       emit,
       {.writes_apart = true, .algorithm = Algorithm::kStrassen, .work = Work::kProducts},
       strassen_ways,
       measure_strassen}};
  return table;
}

}  // namespace sinter
