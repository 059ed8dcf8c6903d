// Products with constant weights on AMX's tile matrices (runtime/sinter/amx.h): MatMul, Gemm and
// convolutions.
//
// Both operands are split into three parts a float while the layer runs: the rows in groups that stay in the
// second-level cache, the weights a panel of two vectors of columns at a time, once for each group; or, where
// all weights' parts stay beside a short group, once for all. Weights lie in NAME.weights as they are for
// register tiles, as parts take half as much again of what comes from memory; or in parts, where the node
// says so (plan/weight_parts.cpp). A block of two tiles of rows times the panel's columns is summed in tiles,
// stored to scratch, and finished by the epilogue.
//
// Of a convolution that is not pointwise the rows are the windows, whose taps are split from where they lie
// in the picture. Where k is so long that few rows would fit, it is cut, and what a group has summed is kept
// between the cuts.
#include "kernels/gemm_amx.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "emit/epilogue.h"
#include "kernels/panel_weights.h"
#include "ops/op.h"
#include "ops/row_product.h"
#include "ops/window.h"
#include "sinter/dims.h"
#include "targets/machine.h"

namespace sinter {
namespace {

constexpr int64_t kDepth = 32, kTileRows = 16;
constexpr int64_t kSteps = 6;  // of a block's products (amx.h, kAmxSteps)

int64_t blocks_of(int64_t k) { return ceil_div(k, kDepth); }

// How the rows are cut: tiles of `tile` rows, groups of `tiles` tiles; and k, in `cuts` of as many blocks.
struct AmxChoice {
  int64_t tile, tiles, groups;
  bool once;  // the weights are split before the groups
  int64_t cuts = 1;
  int64_t rows() const { return tile * tiles; }
};

std::optional<RowProduct> amx_product(const Node& n) {
  const auto p = row_product(n);
  return p ? p : window_product(n, kDepth);
}

int64_t row_bytes(const RowProduct& p) { return blocks_of(p.k) * 3 * kDepth * 2; }

// Groups whose parts, with those of a panel or of all weights, take at most `limit` bytes; no value where not
// even two tiles do.
std::optional<AmxChoice> cut_rows(const RowProduct& p, int64_t limit) {
  constexpr int64_t kStays = 256 << 10;  // bytes of weights' parts that are near enough to be read again
  constexpr int64_t kMany = 40;          // tiles, beside whose rows the weights are few
  AmxChoice c{};
  const int64_t count = ceil_div(p.rows, kTileRows), columns = round_up(p.n, 32);
  c.tile = ceil_div(p.rows, count);
  const auto fits = [&](int64_t width, int64_t tiles) {
    return (width + tiles * c.tile) * row_bytes(p) <= limit;
  };
  c.once = columns * row_bytes(p) <= kStays && count >= kMany && fits(columns, 8);
  int64_t most = c.once ? 4 : count;
  while (most > 1 && !fits(c.once ? columns : 64, most)) --most;
  if (most < 2 && count > 1) return std::nullopt;
  c.groups = ceil_div(count, most);
  c.tiles = ceil_div(count, c.groups);
  if (c.groups > 1) c.tiles += c.tiles % 2;
  c.groups = ceil_div(count, c.tiles);
  return c;
}

// Bytes of the sums that a group keeps between cuts.
int64_t kept_bytes(const RowProduct& p, const AmxChoice& c) {
  return c.cuts > 1 ? c.rows() * round_up(p.n, 32) * int64_t{sizeof(float)} : 0;
}

// The same for windows: few groups, as each reads all weights, and then few cuts.
std::optional<AmxChoice> cut_windows(const RowProduct& p, int64_t limit) {
  constexpr int64_t kLeast = 8;  // blocks of a cut, whose first panel is split beside nothing
  const int64_t count = ceil_div(p.rows, kTileRows), blocks = blocks_of(p.k);
  AmxChoice c{};
  c.tile = ceil_div(p.rows, count);
  for (int64_t groups = 1; groups <= count; ++groups) {
    c.tiles = ceil_div(count, groups);
    if (groups > 1) c.tiles += c.tiles % 2;
    for (c.cuts = 1; c.cuts == 1 || c.cuts * kLeast <= blocks; ++c.cuts) {
      if (blocks % c.cuts != 0 || (64 + c.rows()) * row_bytes(p) / c.cuts + kept_bytes(p, c) > limit)
        continue;
      c.groups = ceil_div(count, c.tiles);
      return c;
    }
  }
  return std::nullopt;
}

// Cycles of the parts' products: 16 of a tile of 16 rows at the clock that they leave, which is a third below
// the one of vectors (measured on a Xeon 6: 6.2 ns instead of 4.4 with random operands), and a tenth for
// operands from the second-level cache. The vectors' work goes beside it, but for some of it.
double cycles_of(const RowProduct& p, const Target& t, const AmxChoice& c) {
  const Machine m = machine_of(t);
  constexpr double kRow = 1.6, kLeastRows = 9, kStore = 6, kSplit = 9, kBeside = 0.3;
  const auto blocks = static_cast<double>(blocks_of(p.k)), rows = static_cast<double>(p.rows);
  const int64_t vectors = ceil_div(p.n, t.lanes);
  const auto columns = static_cast<double>(vectors),
             tiles = static_cast<double>(c.groups * c.tiles) * columns;
  const double sums = tiles * blocks * 6 * kRow * std::max(kLeastRows, static_cast<double>(c.tile));
  const double finish = rows * columns * kStore;
  const double split =
      blocks * kSplit * (rows + (c.once ? 1.0 : static_cast<double>(c.groups)) * 16 * columns);
  const double kept = static_cast<double>(c.cuts - 1) * tiles * 2 * 16;
  return beside_stream(sums, stream_cycles(m, 4 * static_cast<double>(p.k * p.n), 1)) +
         kBeside * (finish + split) + kept;
}

// The rows and k cut as the target's cache and the node's scratch have it, if tile matrices may compute it.
std::optional<AmxChoice> cut_amx(const Node& n, const Target& t) {
  if (!t.tile_matrices || n.attributes.integer("amx", 0) == 0) return std::nullopt;
  const auto p = amx_product(n);
  if (!p || (n.epilogue && !has_vector_text(*n.epilogue))) return std::nullopt;
  const int64_t limit = std::min(machine_of(t).l2 * 3 / 4, n.attributes.integer("amx_bytes", INT64_MAX));
  return p->channels > 0 ? cut_windows(*p, limit) : cut_rows(*p, limit);
}

std::optional<AmxChoice> choose_amx(const Node& n, const Target& t) {
  const auto c = cut_amx(n, t);
  if (!c || n.attributes.integer("amx", 0) == kTunedAmx) return c;
  const RowProduct p = *amx_product(n);
  return cycles_of(p, t, *c) < plain_cycles(p, t) ? c : std::nullopt;
}

bool accepts(const Node& n, const Target& t) { return choose_amx(n, t).has_value(); }

// The bfloat16 that is left of v when `part` ones have been taken off it.
uint16_t part_of(float v, int part) {
  const auto high = [](float x) { return std::bit_cast<uint32_t>(x) >> 16; };
  for (; part > 0; --part) v -= std::bit_cast<float>(high(v) << 16);
  return static_cast<uint16_t>(high(v));
}

// The weights as amx_split_panel leaves them (runtime/sinter/amx.h), a panel after the other.
std::vector<uint16_t> parts_of_weights(const Panels& panels, int lanes, const RowProduct& p) {
  const int64_t blocks = blocks_of(p.k);
  std::vector<uint16_t> out(
      static_cast<size_t>((panels.full * panels.vectors + panels.rest) * lanes * blocks * 3 * kDepth));
  auto to = out.begin();
  for (int64_t i = 0; i < panel_count(panels); ++i) {
    const int64_t c = i * panels.vectors * lanes;
    const int vectors = i < panels.full ? panels.vectors : panels.rest;
    for (int64_t b = 0; b < blocks; ++b)
      for (int part = 0; part < 3; ++part)
        for (int v = 0; v < vectors; ++v)
          for (int64_t line = 0; line < 16; ++line)
            for (int64_t j = c + int64_t{v} * lanes; j < c + int64_t{v + 1} * lanes; ++j)
              for (int64_t k = b * kDepth + line; k < (b + 1) * kDepth; k += 16)
                *to++ = k < p.k && j < p.n ? part_of(p.at(k, j), part) : uint16_t{0};
  }
  return out;
}

class Writer {
 public:
  Writer(LayerWriter& w, const AmxChoice& choice)
      : w_(w), n_(w.node), p_(*amx_product(n_)), c_(choice), epilogue_(w, n_.outputs[0]->type.shape) {}

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
    in_parts_ = by_groups_ && !c_.once && !windows() && n_.attributes.has("weight_parts");
    w_.summary(fmt::format("{}{} [{}, {}] x [{}, {}] on tile matrices, groups of {} rows{}{}{}", n_.op->name,
                           window_words(), p_.rows, p_.k, p_.k, p_.n, std::min(c_.rows(), p_.rows),
                           c_.cuts > 1 ? fmt::format(", k cut in {}", c_.cuts) : "",
                           in_parts_ ? ", weights stored in parts" : "", epilogue_.summary()));
    panels_ = cut_panels(p_.n, 2, w_.target.lanes);
    blocks_ = blocks_of(p_.k) / c_.cuts;
    pitch_ = blocks_ * 3 * kDepth;
    x_ = w_.input(0);
    store_weights();
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
  bool windows() const { return p_.channels > 0; }
  std::string window_words() const {
    if (!windows()) return "";
    const StaticWindow w = window_of(n_).numbers();
    return fmt::format(" {}x{}, stride {}x{}, as", w.kernel[0], w.kernel[1], w.strides[0], w.strides[1]);
  }

  void store_weights() {
    const std::string comment =
        fmt::format("[{}][{}], in panels of {} columns", p_.k, p_.n, panels_.vectors * w_.target.lanes);
    if (in_parts_) {
      const std::vector<uint16_t> parts = parts_of_weights(panels_, w_.target.lanes, p_);
      stored_parts_ = w_.weights("w", "std::uint16_t", parts.data(), parts.size() * sizeof(uint16_t),
                                 comment + ", in parts (sinter/amx.h)");
      return;
    }
    weights_.emplace(w_, panels_, p_.k);
    weights_->add_group(p_.n, [&](int64_t i, int64_t j) { return p_.at(i, j); });
    weights_->store("w", comment);
  }

  // For several threads as many groups for each, if they have some tiles; no thread reads what another one
  // has split, which would come from its cache.
  void share_groups() {
    const int64_t count = c_.tiles * c_.groups;
    by_groups_ = w_.threads > 1 && (c_.once || count >= 4 * w_.threads);
    if (!by_groups_ || c_.groups > 4 * w_.threads) return;
    c_.groups = round_up(c_.groups, w_.threads);
    // One more and smaller tiles where they leave out a twentieth of the rows that nobody needs.
    const int64_t most = ceil_div(count, c_.groups);
    const auto rows_of = [&](int64_t tiles) { return ceil_div(p_.rows, tiles * c_.groups); };
    const int64_t one_more = (most + 1) * rows_of(most + 1);
    c_.tiles = one_more * 20 < most * rows_of(most) * 19 ? most + 1 : most;
    c_.tile = rows_of(c_.tiles);
    c_.groups = ceil_div(p_.rows, c_.rows());
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
    if (rows_ahead()) {
      next_rows(groups);
      w_.out.line("if (group == {}) {}", groups.first, split_rows("left_parts"));
    } else {
      w_.out.put(split_rows(rows_parts_).c_str());
    }
    blocks({"0", ""});
    if (rows_ahead()) w_.out.put("std::swap(left_parts, next_parts);");
    w_.out.line("}}");
    w_.out.put("amx_close();");
    w_.close_parts();
  }

  // What of the next group is split beside this one.
  void next_rows(const LayerWriter::Turns& groups) {
    declare_rows("first + rows");
    w_.out.line(
        "const std::int64_t next_count = group + 1 < {} ? sinter::min_of(std::int64_t{{{}}}, {} - first - "
        "rows) : 0;",
        groups.end.empty() ? std::to_string(c_.groups) : groups.end, c_.rows(), p_.rows);
    w_.out.line("const std::int64_t all_places = amx_places<{}>(next_count, {});", c_.tile, blocks_);
    w_.out.line("std::int64_t split = 0;  // places of the next group's rows whose parts are ready");
  }

  // Groups of rows, of each all panels; groups are the parts, or where they are few panels, whose parts split
  // the rows each for themselves.
  void panels_of_groups() {
    const LayerWriter::Turns turns =
        w_.open_parts(std::to_string(by_groups_ ? c_.groups : panel_count(panels_)));
    const LayerWriter::Turns all{"0", std::to_string(c_.groups)};
    rows_parts_ = w_.scratch_of_part("x_parts", "std::uint16_t", c_.rows() * pitch_);
    if (!in_parts_)
      columns_ = w_.scratch_of_part("w_parts", "std::uint16_t", (looks_ahead() ? 2 : 1) * panel_numbers());
    if (c_.cuts > 1)
      kept_ = w_.scratch_of_part("kept", "float", panel_count(panels_) * blocks_a_group() * block_sums());
    if (looks_ahead()) panel_sequence(turns);
    w_.out.line("amx_open({});", c_.tile);
    open_group(by_groups_ ? turns : all);
    if (windows())
      open_cut();
    else
      declare_rows("first");
    // Two steps of k before the products, each of which is beside what comes two steps later.
    split_places("0", std::to_string(4 * c_.tile));
    w_.out.line("AmxAhead coming{{{}, {}}};  // what of the rows is split next", 2 / blocks_ * 2 * c_.tile,
                2 % blocks_);
    blocks(by_groups_ || turns.first == "0" ? LayerWriter::Turns{"0", ""} : turns);
    if (c_.cuts > 1) w_.out.line("}}");
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

  // The loop over cuts of k, if there are several, and where the blocks of the rows' windows lie.
  void open_cut() {
    const StaticWindow w = window_of(n_).numbers();
    w_.out.put("// height, width, channels, widths of output and kernel, strides, dilations, pads");
    w_.out.line("constexpr AmxGeometry kWindows = {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}};", w.in[0],
                w.in[1], p_.channels, w.out[1], w.kernel[1], w.strides[0], w.strides[1], w.dilations[0],
                w.dilations[1], w.pads_begin[0], w.pads_begin[1]);
    if (c_.cuts > 1) w_.out.line("for (std::int64_t cut = 0; cut < {}; ++cut) {{", c_.cuts);
    w_.out.line("const AmxWindows left{{kWindows, {}, first, {}}};", x_,
                c_.cuts > 1 ? fmt::format("cut * {}", blocks_) : "0");
  }

  // Floats of a block's sums.
  int64_t block_sums() const { return 2 * c_.tile * panels_.vectors * w_.target.lanes; }

  // The values of k that a panel's parts have.
  int64_t depth() const { return windows() ? blocks_ * kDepth : p_.k; }

  // Splits what lies at the places of rows from `first` to before `end`.
  void split_places(std::string_view first, std::string_view end) {
    w_.out.line("amx_split_places<{}>(left, {}, {}, {}, {}, {});", c_.tile, first, end,
                rows_ahead() ? "next_count" : "rows", blocks_, rows_ahead() ? "next_parts" : rows_parts_);
  }
  std::string split_rows(std::string_view parts) const {
    return fmt::format("amx_split_rows<{}>(AmxRows{{{} + first * {}, {}, {}}}, rows, {}, {});", c_.tile, x_,
                       p_.k, p_.k, p_.k, blocks_, parts);
  }
  // The left operand's rows from `first` on.
  void declare_rows(std::string_view first) {
    w_.out.line("const AmxRows left{{{0} + ({1}) * {2}, {2}, {2}}};", x_, first, p_.k);
  }

  void open_panel() {
    w_.out.line("// `vectors` vectors of columns from c, the last one with `last` columns");
    w_.out.line(
        "const auto panel = [&](auto vectors, [[maybe_unused]] auto last, [[maybe_unused]] std::int64_t c, "
        "[[maybe_unused]] const {}* wp) __attribute__((always_inline)) {{",
        in_parts_ ? "std::uint16_t" : "float");
    w_.out.line("constexpr int kVectors = vectors.value;");
  }

  // For each panel of `panels` the blocks of a group's rows. What tiles leave the processor time for is
  // spread over the steps of a block's products: finishing the block before, splitting what comes next.
  void blocks(const LayerWriter::Turns& panels) {
    sums_ = w_.scratch_of_part("sums", "float", block_sums());
    if (!in_parts_ && !looks_ahead()) w_.out.line("std::uint16_t* const parts = {};", columns_);
    finish_block();
    open_panel();
    if (has_odd_panel()) {
      w_.out.line("constexpr bool kOdd = kVectors != {} || last.value != kLanes;", panels_.vectors);
      w_.out.line("if constexpr (kOdd) finish({}, due_end);", whole());
    }
    if (in_parts_)
      take_parts();
    else if (!c_.once)
      split_panel();
    beside();
    w_.out.line("const auto block = [&](auto tiles, std::int64_t i) __attribute__((always_inline)) {{");
    if (rows_ahead())
      w_.out.line("split_end = sinter::min_of(split + {}, all_places);", rows_a_block() * blocks_);
    begin_sums();
    w_.out.line("amx_mac<tiles.value, kVectors, {}>({} + i * {}, parts{}, {}, beside);", c_.tile, rows_parts_,
                pitch_, c_.once ? fmt::format(" + c * {}", pitch_) : "", blocks_);
    if (rows_ahead()) w_.out.put("split = split_end;");
    w_.out.line("amx_store<tiles.value, kVectors>({}{}, {});",
                c_.cuts > 1 ? fmt::format("cut + 1 < {} ? mine : ", c_.cuts) : "", sums_, c_.tile);
    if (c_.cuts > 1) w_.out.line("if (cut + 1 < {}) return;", c_.cuts);
    w_.out.line("due_c = c, due_first = due = i, due_end = sinter::min_of(i + {}, rows);", 2 * c_.tile);
    w_.out.put("};");
    w_.out.line("std::int64_t i = 0;");
    w_.out.line("for (; i + {} < rows; i += {}) block(Int<2>(), i);", c_.tile, 2 * c_.tile);
    w_.out.line("if (i < rows) block(Int<1>(), i);");
    if (has_odd_panel()) w_.out.put("if constexpr (kOdd) finish(vectors, last, due_end);");
    if (looks_ahead()) {
      w_.out.line("amx_split_lines<kVectors>(next, {}, {}, next_parts, line, lines);", depth(),
                  weights_->row());
      w_.out.line("if (lines > 0) ready = next, std::swap(parts, next_parts);");
      w_.out.put("++turn;");
    }
    w_.out.put("};");
    if (in_parts_)
      emit_panels(w_, panels_, pitch_, stored_parts_, "0", panels);
    else
      weights_->emit("", panels);
    if (panels_.full > 0) w_.out.line("finish({}, due_end);", whole());
  }
  // A block's tiles as they are before its products.
  void begin_sums() {
    if (c_.cuts == 1) return w_.out.put("amx_zero();");
    w_.out.line("float* const mine = {} + (c / {} * {} + i / {}) * {};", kept_,
                panels_.vectors * w_.target.lanes, blocks_a_group(), 2 * c_.tile, block_sums());
    w_.out.put("if (cut == 0) amx_zero();");
    w_.out.line("else amx_load<tiles.value, kVectors>(mine, {});", c_.tile);
  }
  // The work beside a step of a block's products.
  void beside() {
    if (rows_ahead()) w_.out.put("std::int64_t split_end = 0;  // of the places to split next");
    w_.out.line(
        "const auto beside = [&]([[maybe_unused]] std::int64_t b, [[maybe_unused]] int step) "
        "__attribute__((always_inline)) {{");
    // Long epilogues go faster two rows at a time.
    const int64_t rows = ceil_div(2 * c_.tile, kSteps * blocks_);
    w_.out.line("{}finish(vectors, last, {});", rows > 1 ? "" : "if (step % 2 == 0) ", rows > 1 ? rows : 2);
    if (looks_ahead()) split_lines();
    if (in_parts_) ask_ahead();
    if (rows_ahead()) split_blocks();
    if (!c_.once)
      w_.out.line("if (coming.row < rows) amx_split_step<{}>(left, coming, step, rows, {}, {});", c_.tile,
                  blocks_, rows_parts_);
    w_.out.put("};");
  }
  bool has_odd_panel() const { return panels_.rest > 0; }
  // A panel that is not odd, for finish.
  std::string whole() const { return fmt::format("Int<{}>(), Int<kLanes>()", panels_.vectors); }

  // The text that splits a panel's weights; lines that it needs are written first.
  std::string whole_panel(const std::string& to) {
    if (weights_->row() == "kRow") weights_->declare_row();
    return fmt::format("amx_split_panel<kVectors>(wp, {}, {}, {});", depth(), weights_->row(), to);
  }
  // Whether whole panels are split while the products of those before them run.
  bool looks_ahead() const { return !in_parts_ && !c_.once && panels_.full > 1 && weights_->in_place(); }
  int64_t panel_numbers() const { return panels_.vectors * w_.target.lanes * pitch_; }
  void split_panel() {
    const std::string split = whole_panel("parts");
    if (c_.cuts > 1) w_.out.line("wp += cut * {} * ({});", depth(), weights_->row());
    if (!looks_ahead()) return w_.out.put(split.c_str());
    w_.out.line("if (ready != wp) {}", split);
    w_.out.line("const float* const next = panel_at(turn + 1);");
    std::string runs = fmt::format("kVectors == {} && turn + 1 < all_turns", panels_.vectors);
    if (!alike()) runs += fmt::format(" && first_panel + (turn + 1) % panels != {}", panels_.full);
    w_.out.line("const std::int64_t lines = {} ? {} : 0;", runs, 16 * blocks_);
    w_.out.put("std::int64_t line = 0;  // of the next panel");
    if (c_.cuts > 1) w_.out.put("const std::int64_t ahead = panel_at(turn + 2) - next;");
    w_.out.line("const float* beyond = {};  // where what runs next has its weights", end_of_weights());
  }
  // The panels in the order in which they are multiplied, over cuts and groups.
  void panel_sequence(const LayerWriter::Turns& turns) {
    const bool some = !by_groups_ && turns.first != "0";
    w_.out.line("const std::int64_t first_panel = {}, panels = {};", some ? turns.first : "0",
                some ? fmt::format("{} - {}", turns.end, turns.first) : std::to_string(panel_count(panels_)));
    w_.out.line("const std::int64_t all_turns = panels * {};",
                by_groups_ && turns.first != "0"
                    ? fmt::format("({} - {}) * {}", turns.end, turns.first, c_.cuts)
                    : std::to_string(c_.groups * c_.cuts));
    w_.out.put("std::int64_t turn = 0;");
    w_.out.put("const auto panel_at = [&](std::int64_t i) {");
    w_.out.line(
        "return {} + (first_panel + i % panels) * {}{};", weights_->name(), panel_floats(),
        c_.cuts == 1 ? "" : fmt::format(" + i / panels % {} * {}", c_.cuts, panel_floats() / c_.cuts));
    w_.out.put("};");
    w_.out.line("const float* ready = nullptr;  // the weights whose parts are at `parts`");
    w_.out.line("std::uint16_t *parts = {0}, *next_parts = {0} + {1};", columns_, panel_numbers());
  }
  int64_t panel_floats() const { return p_.k * panels_.vectors * w_.target.lanes; }
  // Whether the last panel lies as the others do.
  bool alike() const {
    return panels_.rest == 0 || (panels_.rest == panels_.vectors && weights_->row() != "kRow");
  }
  std::string end_of_weights() const {
    return fmt::format("{} + {}", weights_->name(),
                       panels_.full * panel_floats() + p_.k * panels_.rest * w_.target.lanes);
  }
  // A panel's parts where they are stored, and the next one's, which its products ask for.
  void take_parts() {
    w_.out.line("const std::uint16_t *const parts = wp, *ahead = wp + kVectors * kLanes * {};", pitch_);
  }
  void ask_ahead() {
    const int64_t lines = ceil_div(16, blocks_a_group());
    w_.out.line("for (int i = 0; i < {}; ++i, ahead += 2 * kLanes) __builtin_prefetch(ahead, 0, 2);", lines);
  }

  void split_lines() {
    // Evenly, as lines of panels to come are asked for at the same pace, and each time in the same steps.
    const int64_t lines = ceil_div(16, blocks_a_group());
    int64_t digits = 0;  // of step 0 the last
    for (int64_t i = kSteps; i-- > 0;) digits = digits * 16 + (i + 1) * lines / kSteps - i * lines / kSteps;
    w_.out.line("const std::int64_t end = sinter::min_of(line + (0x{:06x} >> 4 * step & 15), lines);",
                digits);
    w_.out.line("amx_split_lines<kVectors>(next, {0}, {1}, next_parts, line, end{2});", depth(),
                weights_->row(), blocks_a_group() < 2 ? "" : ", " + ahead());
    w_.out.line("line = end;");
    w_.out.line(
        "for (int i = lines > 0 ? {0} : 0; i < {0}; ++i, beyond += kLanes) __builtin_prefetch(beyond, 0, 2);",
        ceil_div(4 * lines, kSteps));
  }

  // Floats from the lines that are split to those that are asked for: a panel's, or so many that they come in
  // time.
  std::string ahead() const {
    if (c_.cuts > 1) return "ahead";
    return fmt::format("{} * ({})", std::min<int64_t>(p_.k, 512), weights_->row());
  }

  // Blocks of two tiles that a whole group has, or of one.
  int64_t blocks_a_group() const { return ceil_div(std::min(c_.rows(), p_.rows), 2 * c_.tile); }
  // Whether the next group's rows are split while the products of this one's run.
  bool rows_ahead() const { return c_.once && c_.groups > 1; }
  int64_t rows_a_block() const {
    return ceil_div(round_up(c_.rows(), 2 * c_.tile), blocks_a_group() * panel_count(panels_));
  }
  void split_blocks() {
    const int64_t count = ceil_div(rows_a_block(), kSteps);
    w_.out.line("const std::int64_t place_of_step = split + (b * {} + step) * {};", kSteps, count);
    split_places("place_of_step", fmt::format("sinter::min_of(place_of_step + {}, split_end)", count));
  }

  void finish_block() {
    w_.out.line(
        "// rows of the columns from due_c whose sums wait to be finished, the first of them due_first's");
    w_.out.put("std::int64_t due_c = 0, due_first = 0, due = 0, due_end = 0;");
    w_.out.line(
        "const auto finish = [&](auto vectors, [[maybe_unused]] auto last, std::int64_t most) "
        "__attribute__((always_inline)) {{");
    w_.out.put("const std::int64_t end = sinter::min_of(due + most, due_end);");
    w_.out.line("for (; due < end; ++due) {{");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int o = 0; o < vectors.value; ++o) {{");
    w_.out.line("const int lanes = o == vectors.value - 1 ? last.value : kLanes;");
    store_vector(fmt::format("load({} + ((due - due_first) * vectors.value + o) * kLanes)", sums_));
    w_.out.line("}}");
    w_.out.line("}}");
    w_.out.put("};");
  }

  void store_vector(const std::string& sum) {
    const std::string column = "due_c + o * kLanes",
                      with_bias =
                          bias_.empty() ? sum : fmt::format("add({}, load({} + {}))", sum, bias_, column);
    std::vector<std::string> index(n_.outputs[0]->type.shape.size(), "0");
    index[index.size() - 2] = "first + due";
    index[index.size() - 1] = column;
    const std::string value = epilogue_.vector(with_bias, index, "lanes", w_.out);
    w_.out.line("store_lanes({} + (first + due) * {} + {}, {}, lanes);", y_, w_.dim(output_pitch(n_)), column,
                value);
  }

  LayerWriter& w_;
  const Node& n_;
  RowProduct p_;
  AmxChoice c_;
  Epilogue epilogue_;
  Panels panels_;
  std::optional<PanelWeights> weights_;
  bool by_groups_ = false;  // they are the parts
  bool in_parts_ = false;   // weights are stored as their bfloat16
  int64_t blocks_ = 0;      // of k, or of a cut of it
  int64_t pitch_ = 0;       // numbers of a row's parts, or of a column's
  std::string x_, y_, bias_, rows_parts_, columns_, stored_parts_, sums_, kept_;
};

void emit(LayerWriter& w) { Writer(w, *choose_amx(w.node, w.target)).emit(); }

}  // namespace

double amx_cycles(const Node& n, const Target& t) {
  const auto c = cut_amx(n, t);
  return c ? cycles_of(*amx_product(n), t, *c) : std::numeric_limits<double>::infinity();
}

const std::vector<Kernel>& kernels_gemm_amx() {
  static const std::vector<Kernel> table = {
      {"gemm_amx",
       "products with constant weights and convolutions on AMX's tile matrices, in three parts a float",
       accepts, emit, true}};
  return table;
}

}  // namespace sinter
