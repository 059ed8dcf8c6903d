// Products with constant weights on AMX's tile matrices (runtime/sinter/amx.h): MatMul, Gemm and pointwise
// convolutions.
//
// Both operands are split into three parts a float while the layer runs: the rows in groups that stay in the
// second-level cache, the weights a panel of two vectors of columns at a time, once for each group; or, where
// all weights' parts stay beside a short group, once for all. Weights lie in NAME.weights as they are for
// register tiles: in parts they would take half as much again of what comes from memory. A block of two tiles
// of rows times the panel's columns is summed in tiles, stored to scratch, and finished by the epilogue.
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/panel_weights.h"
#include "ops/op.h"
#include "ops/row_product.h"
#include "targets/machine.h"

namespace sinter {
namespace {

constexpr int64_t kDepth = 32, kTileRows = 16;

int64_t blocks_of(int64_t k) { return (k + kDepth - 1) / kDepth; }

// How the rows are cut: tiles of `tile` rows, groups of `tiles` tiles.
struct AmxChoice {
  int64_t tile, tiles, groups;
  bool once;  // the weights are split before the groups
  int64_t rows() const { return tile * tiles; }
};

int64_t row_bytes(const RowProduct& p) { return blocks_of(p.k) * 3 * kDepth * 2; }

// Groups whose parts, with those of a panel or of all weights, take at most `limit` bytes; no value where not
// even two tiles do.
std::optional<AmxChoice> cut_rows(const RowProduct& p, int64_t limit) {
  constexpr int64_t kStays = 256 << 10;  // bytes of weights' parts that are near enough to be read again
  constexpr int64_t kMany = 40;          // tiles, beside whose rows the weights are few
  AmxChoice c{};
  const int64_t count = (p.rows + kTileRows - 1) / kTileRows, columns = round_up(p.n, 32);
  c.tile = (p.rows + count - 1) / count;
  const auto fits = [&](int64_t width, int64_t tiles) {
    return (width + tiles * c.tile) * row_bytes(p) <= limit;
  };
  c.once = columns * row_bytes(p) <= kStays && count >= kMany && fits(columns, 8);
  int64_t most = c.once ? 4 : count;
  while (most > 1 && !fits(c.once ? columns : 64, most)) --most;
  if (most < 2 && count > 1) return std::nullopt;
  c.groups = (count + most - 1) / most;
  c.tiles = (count + c.groups - 1) / c.groups;
  if (c.groups > 1) c.tiles += c.tiles % 2;
  c.groups = (count + c.tiles - 1) / c.tiles;
  return c;
}

// Cycles of the parts' products with all tiles busy: 16 of one row's tile at the clock that they leave, which
// is a third below the one of vectors (measured on a Xeon 6: 6.2 ns instead of 4.4 with random operands).
double amx_cycles(const RowProduct& p, const Target& t, const AmxChoice& c) {
  const Machine m = machine_of(t);
  constexpr double kRow = 1.45, kLeastRows = 9, kStore = 6, kSplit = 9;
  const auto blocks = static_cast<double>(blocks_of(p.k)), rows = static_cast<double>(p.rows);
  const int64_t vectors = (p.n + t.lanes - 1) / t.lanes;
  const auto columns = static_cast<double>(vectors),
             tiles = static_cast<double>(c.groups * c.tiles) * columns;
  const double sums = tiles * blocks * 6 * kRow * std::max(kLeastRows, static_cast<double>(c.tile));
  const double finish = rows * columns * kStore;
  const double split =
      blocks * kSplit * (rows + (c.once ? 1.0 : static_cast<double>(c.groups)) * 16 * columns);
  return beside_stream(sums, stream_cycles(m, 4 * static_cast<double>(p.k * p.n), 1)) + finish + split;
}

std::optional<AmxChoice> choose_amx(const Node& n, const Target& t) {
  const int64_t mark = n.attributes.integer("amx", 0);
  if (!t.tile_matrices || mark == 0) return std::nullopt;
  const auto p = row_product(n);
  if (!p || (n.epilogue && !has_vector_text(*n.epilogue))) return std::nullopt;
  const int64_t limit = std::min(machine_of(t).l2 / 2, n.attributes.integer("amx_bytes", INT64_MAX));
  const auto c = cut_rows(*p, limit);
  if (!c || (mark != kTunedAmx && amx_cycles(*p, t, *c) >= plain_cycles(*p, t))) return std::nullopt;
  return c;
}

bool accepts(const Node& n, const Target& t) { return choose_amx(n, t).has_value(); }

class Writer {
 public:
  Writer(LayerWriter& w, const AmxChoice& choice)
      : w_(w), n_(w.node), p_(*row_product(n_)), c_(choice), epilogue_(w, n_.outputs[0]->type.shape) {}

  void emit() {
    const Shape& out = n_.outputs[0]->type.shape;
    SINTER_CHECK(epilogue_.can_merge(0, out.size() - 2), "the epilogue's rows must be one column");
    w_.include("sinter/mac.h");
    w_.include("sinter/amx.h");
    w_.include("sinter/status.h");
    w_.include("sinter/dims.h");
    w_.can_fail();
    w_.flops(Dim(2 * p_.rows * p_.k * p_.n));
    share_groups();
    w_.summary(fmt::format("{} [{}, {}] x [{}, {}] on tile matrices, groups of {} rows{}", n_.op->name,
                           p_.rows, p_.k, p_.k, p_.n, std::min(c_.rows(), p_.rows), epilogue_.summary()));
    panels_ = cut_panels(p_.n, 2, w_.target.lanes);
    pitch_ = blocks_of(p_.k) * 3 * kDepth;
    x_ = w_.input(0);
    weights_.emplace(w_, panels_, p_.k);
    weights_->add_group(p_.n, [&](int64_t i, int64_t j) { return p_.at(i, j); });
    weights_->store(
        "w", fmt::format("[{}][{}], in panels of {} columns", p_.k, p_.n, panels_.vectors * w_.target.lanes));
    bias_ = row_bias(w_, p_.n);
    y_ = w_.output(0);
    w_.out.line("if (!amx_permitted()) return sinter::kTargetError;");
    if (c_.once)
      weights_first();
    else
      panels_of_groups();
    w_.out.line("return sinter::kOk;");
  }

 private:
  // For several threads as many groups for each, if they have some tiles; no thread reads what another one
  // has split, which would come from its cache.
  void share_groups() {
    const int64_t count = c_.tiles * c_.groups;
    by_groups_ = w_.threads > 1 && (c_.once || count >= 4 * w_.threads);
    if (!by_groups_ || c_.groups > 4 * w_.threads) return;
    c_.groups = round_up(c_.groups, w_.threads);
    // Smaller tiles where one of a thread's would be nearly empty.
    const int64_t most = (count + c_.groups - 1) / c_.groups;
    c_.tile = kTileRows;
    for (int64_t tiles = most; tiles <= most + 1; ++tiles) {
      const int64_t rows = (p_.rows + tiles * c_.groups - 1) / (tiles * c_.groups);
      if (tiles == most || tiles * rows < c_.rows()) c_.tile = rows, c_.tiles = tiles;
    }
    c_.groups = (p_.rows + c_.rows() - 1) / c_.rows();
  }

  // All weights, then groups of rows, which are the parts.
  void weights_first() {
    const LayerWriter::Turns groups = w_.open_parts(std::to_string(c_.groups));
    columns_ = w_.scratch_of_part("w_parts", "std::uint16_t",
                                  (panels_.full * panels_.vectors + panels_.rest) * w_.target.lanes * pitch_);
    w_.out.line("{{");
    open_panel();
    w_.out.put(whole_panel(fmt::format("{} + c * {}", columns_, pitch_)).c_str());
    w_.out.put("};");
    weights_->emit();
    w_.out.line("}}");
    const int64_t numbers = c_.rows() * pitch_;
    const std::string parts =
        w_.scratch_of_part("x_parts", "std::uint16_t", (rows_ahead() ? 2 : 1) * numbers);
    rows_parts_ = rows_ahead() ? "left_parts" : parts;
    if (rows_ahead())
      w_.out.line("std::uint16_t *left_parts = {0}, *next_parts = {0} + {1};", parts, numbers);
    w_.out.line("amx_open({});", c_.tile);
    open_group(groups);
    if (rows_ahead()) next_rows(groups);
    split_rows();
    blocks({"0", ""});
    if (rows_ahead()) {
      w_.out.put("amx_split_blocks(next, next_parts, next_block, next_blocks);");
      w_.out.put("std::swap(left_parts, next_parts);");
    }
    w_.out.line("}}");
    w_.out.put("amx_close();");
    w_.close_parts();
  }

  // What of the next group is split beside this one; before the line that splits this one's rows, which are
  // only the first's.
  void next_rows(const LayerWriter::Turns& groups) {
    w_.out.line("const float* const next = {} + (first + rows) * {};", x_, p_.k);
    w_.out.line(
        "const std::int64_t next_blocks = group + 1 < {} ? sinter::min_of(std::int64_t{{{}}}, {} - first - "
        "rows) * {} : 0;",
        groups.end.empty() ? std::to_string(c_.groups) : groups.end, c_.rows(), p_.rows, blocks_of(p_.k));
    w_.out.line("std::int64_t next_block = 0;");
    w_.out.line("if (group == {}) ", groups.first);
  }

  // Groups of rows, of each all panels; groups are the parts, or where they are few panels, whose parts split
  // the rows each for themselves.
  void panels_of_groups() {
    const LayerWriter::Turns turns =
        w_.open_parts(std::to_string(by_groups_ ? c_.groups : panel_count(panels_)));
    const LayerWriter::Turns all{"0", std::to_string(c_.groups)};
    rows_parts_ = w_.scratch_of_part("x_parts", "std::uint16_t", c_.rows() * pitch_);
    columns_ = w_.scratch_of_part("w_parts", "std::uint16_t", (looks_ahead() ? 2 : 1) * panel_numbers());
    w_.out.line("amx_open({});", c_.tile);
    open_group(by_groups_ ? turns : all);
    split_rows();
    blocks(by_groups_ || turns.first == "0" ? LayerWriter::Turns{"0", ""} : turns);
    w_.out.line("}}");
    w_.out.put("amx_close();");
    w_.close_parts();
  }

  // The loop over groups, or the only one: its rows are `rows` ones from `first`.
  void open_group(const LayerWriter::Turns& groups) {
    if (c_.groups == 1) {
      w_.out.line("{{");
      w_.out.line("constexpr std::int64_t first = 0, rows = {};", p_.rows);
      return;
    }
    w_.out.line("for (std::int64_t group = {}; group < {}; ++group) {{", groups.first, groups.end);
    w_.out.line(
        "const std::int64_t first = group * {0}, rows = sinter::min_of(std::int64_t{{{0}}}, {1} - first);",
        c_.rows(), p_.rows);
  }

  void split_rows() {
    w_.out.line("amx_split_rows({} + first * {}, rows, {}, {}, {});", x_, p_.k, p_.k, p_.k, rows_parts_);
  }

  void open_panel() {
    w_.out.line("// `vectors` vectors of columns from c, the last one with `last` columns");
    w_.out.line(
        "const auto panel = [&](auto vectors, [[maybe_unused]] auto last, [[maybe_unused]] std::int64_t c, "
        "[[maybe_unused]] const float* wp) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int kVectors = vectors.value;");
  }
  // For each panel of `panels` the blocks of a group's rows; each is finished while the next one's products
  // run.
  void blocks(const LayerWriter::Turns& panels) {
    sums_ = w_.scratch_of_part("sums", "float", 2 * c_.tile * panels_.vectors * w_.target.lanes);
    if (looks_ahead()) {
      w_.out.line("const float* ready = nullptr;  // the weights whose parts are at `parts`");
      w_.out.line("std::uint16_t *parts = {0}, *next_parts = {0} + {1};", columns_, panel_numbers());
    } else {
      w_.out.line("std::uint16_t* const parts = {};", columns_);
    }
    open_panel();
    if (!c_.once) split_panel();
    finish_block();
    w_.out.line("const auto block = [&](auto tiles, std::int64_t i) __attribute__((always_inline)) {{");
    w_.out.line("const std::uint16_t* const left = {} + i * {};", rows_parts_, pitch_);
    w_.out.put("amx_zero();");
    w_.out.line(
        "amx_mac<tiles.value, kVectors>(left, left + {}, {}, parts{}, {}, [&](std::int64_t b) "
        "__attribute__((always_inline)) {{",
        c_.tile * pitch_, 2 * pitch_, c_.once ? fmt::format(" + c * {}", pitch_) : "", blocks_of(p_.k));
    w_.out.line("if (b == 0 && i > 0) finish(i - {});", 2 * c_.tile);
    if (looks_ahead()) split_beside();
    if (rows_ahead()) split_rows_beside();
    w_.out.line("}});");
    w_.out.line("amx_store<tiles.value, kVectors>({}, {});", sums_, c_.tile);
    w_.out.put("};");
    w_.out.line("std::int64_t i = 0;");
    w_.out.line("for (; i + {} < rows; i += {}) block(Int<2>(), i);", c_.tile, 2 * c_.tile);
    w_.out.line("if (i < rows) block(Int<1>(), i);");
    w_.out.line("finish(i < rows ? i : i - {});", 2 * c_.tile);
    if (looks_ahead()) {
      w_.out.line("amx_split_lines<kVectors>(next, {}, {}, next_parts, line, lines);", p_.k, weights_->row());
      w_.out.line("if (lines > 0) ready = next, std::swap(parts, next_parts);");
    }
    w_.out.put("};");
    weights_->emit("", panels);
  }

  // The text that splits a panel's weights; lines that it needs are written first.
  std::string whole_panel(const std::string& to) {
    if (weights_->row() == "kRow") weights_->declare_row();
    return fmt::format("amx_split_panel<kVectors>(wp, {}, {}, {});", p_.k, weights_->row(), to);
  }
  // Whether whole panels are split while the products of those before them run.
  bool looks_ahead() const { return !c_.once && panels_.full > 1 && weights_->in_place(); }
  int64_t panel_numbers() const { return panels_.vectors * w_.target.lanes * pitch_; }
  // Lines of the next panel for a block of this one, so that as many blocks as a group has do for all.
  int64_t lines_beside() const {
    const int64_t pairs = std::max<int64_t>(1, std::min(c_.rows(), p_.rows) / (2 * c_.tile));
    return (16 + pairs - 1) / pairs;
  }
  void split_panel() {
    const std::string split = whole_panel("parts");
    if (!looks_ahead()) return w_.out.put(split.c_str());
    w_.out.line("if (ready != wp) {}", split);
    w_.out.line("const float* const next = wp + {} * ({});", p_.k, weights_->row());
    w_.out.line("const std::int64_t lines = c + {} <= {} ? {} : 0;", 2 * panels_.vectors * w_.target.lanes,
                panels_.full * panels_.vectors * w_.target.lanes, 16 * blocks_of(p_.k));
    w_.out.line("std::int64_t line = 0;  // of the next panel");
  }
  void split_beside() {
    w_.include("sinter/dims.h");
    w_.out.line("const std::int64_t end = sinter::min_of(line + {}, lines);", lines_beside());
    w_.out.line("amx_split_lines<kVectors>(next, {0}, {1}, next_parts, line, end{2});", p_.k, weights_->row(),
                lines_beside() > 6 ? "" : fmt::format(", {} * ({})", p_.k, weights_->row()));
    w_.out.line("line = end;");
  }

  // Whether the next group's rows are split while the products of this one's run.
  bool rows_ahead() const { return c_.once && c_.groups > 1 && p_.k % kDepth == 0; }
  void split_rows_beside() {
    const int64_t steps = c_.tiles / 2 * panel_count(panels_);
    w_.out.line("const std::int64_t end = sinter::min_of(next_block + {}, next_blocks);",
                (c_.rows() + steps - 1) / steps);
    w_.out.line("amx_split_blocks(next, next_parts, next_block, end);");
    w_.out.line("next_block = end;");
  }

  void finish_block() {
    w_.out.line("const auto finish = [&](std::int64_t i) {{");
    w_.out.line("const std::int64_t count = sinter::min_of(std::int64_t{{{}}}, rows - i);", 2 * c_.tile);
    w_.out.line("for (std::int64_t t = 0; t < count; ++t) {{");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int o = 0; o < kVectors; ++o) {{");
    w_.out.line("const int lanes = o == kVectors - 1 ? last.value : kLanes;");
    store_vector(fmt::format("load({} + (t * kVectors + o) * kLanes)", sums_));
    w_.out.line("}}");
    w_.out.line("}}");
    w_.out.put("};");
  }

  void store_vector(const std::string& sum) {
    const std::string column = "c + o * kLanes",
                      with_bias =
                          bias_.empty() ? sum : fmt::format("add({}, load({} + {}))", sum, bias_, column);
    std::vector<std::string> index(n_.outputs[0]->type.shape.size(), "0");
    index[index.size() - 2] = "first + i + t";
    index[index.size() - 1] = column;
    const std::string value = epilogue_.vector(with_bias, index, "lanes", w_.out);
    w_.out.line("store_lanes({} + (first + i + t) * {} + {}, {}, lanes);", y_, w_.dim(output_pitch(n_)),
                column, value);
  }

  LayerWriter& w_;
  const Node& n_;
  RowProduct p_;
  AmxChoice c_;
  Epilogue epilogue_;
  Panels panels_;
  std::optional<PanelWeights> weights_;
  bool by_groups_ = false;  // they are the parts
  int64_t pitch_ = 0;       // numbers of a row's parts, or of a column's
  std::string x_, y_, bias_, rows_parts_, columns_, sums_;
};

void emit(LayerWriter& w) { Writer(w, *choose_amx(w.node, w.target)).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_gemm_amx() {
  static const std::vector<Kernel> table = {
      {"gemm_amx", "products with constant weights on AMX's tile matrices, in three parts a float", accepts,
       emit, true}};
  return table;
}

}  // namespace sinter
