// Products with constant weights on AMX's tile matrices (runtime/sinter/amx.h): MatMul, Gemm and
// convolutions.
//
// Both operands are split into three parts a float while the layer runs: the rows in groups, the weights a
// panel of two vectors of columns at a time, once for each group; or, where all weights' parts stay beside a
// short group, once for all. A long k is cut (kernels/products/amx.h): a cut's panels follow each other, and
// then the next cut's. Weights lie in NAME.weights in the order in which they are split, as parts take half
// as much again of what comes from memory; or in parts, where the node says so (plan/weight_parts.cpp). A
// block of two tiles of rows times the panel's columns is summed in tiles, stored to scratch, and finished by
// the epilogue.
//
// Of a convolution that is not pointwise the rows are the windows, whose taps are split from where they lie
// in the picture.
#include <algorithm>
#include <bit>

#include "emit/epilogue.h"
#include "kernels/products/amx.h"
#include "kernels/products/panel_weights.h"
#include "ops/op.h"
#include "ops/products/row_product.h"
#include "ops/windows/window.h"
#include "sinter/dims.h"
#include "targets/target.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context& c) { return choose_amx(n, c).has_value(); }

// The bfloat16 that is left of v when `part` ones have been taken off it.
uint16_t part_of(float v, int part) {
  const auto high = [](float x) { return std::bit_cast<uint32_t>(x) >> 16; };
  for (; part > 0; --part) v -= std::bit_cast<float>(high(v) << 16);
  return static_cast<uint16_t>(high(v));
}

// The weights as amx_split_panel leaves them (runtime/sinter/amx.h), a panel after the other, of each of
// `cuts` of k.
std::vector<uint16_t> parts_of_weights(const Panels& panels, int lanes, const RowProduct& p, int64_t cuts) {
  const int64_t blocks = amx_blocks(p.k) / cuts;
  std::vector<uint16_t> out(static_cast<size_t>((panels.full * panels.vectors + panels.rest) * lanes * cuts *
                                                blocks * 3 * kAmxDepth));
  auto to = out.begin();
  for (int64_t turn = 0; turn < cuts * panel_count(panels); ++turn) {
    const int64_t i = turn % panel_count(panels), c = i * panels.vectors * lanes,
                  first = turn / panel_count(panels) * blocks;
    const int vectors = i < panels.full ? panels.vectors : panels.rest;
    for (int64_t b = first; b < first + blocks; ++b)
      for (int part = 0; part < 3; ++part)
        for (int v = 0; v < vectors; ++v)
          for (int64_t line = 0; line < 16; ++line)
            for (int64_t j = c + int64_t{v} * lanes; j < c + int64_t{v + 1} * lanes; ++j)
              for (int64_t k = b * kAmxDepth + line; k < (b + 1) * kAmxDepth; k += 16)
                *to++ = k < p.k && j < p.n ? part_of(p.at(k, j), part) : uint16_t{0};
  }
  return out;
}

// The value of k whose weights are stored as the i-th of a cut's `depth`: in whole blocks one of each half
// after the other, as those form pairs (runtime/sinter/amx.h).
int64_t stored_order(int64_t i, int64_t depth) {
  const int64_t block = i / kAmxDepth * kAmxDepth, in_block = i - block;
  return block + kAmxDepth > depth ? i : block + in_block / 2 + in_block % 2 * (kAmxDepth / 2);
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
    rows_ = ceil_div(p_.rows, c_.groups);
    in_parts_ = by_groups_ && !c_.once && w_.decision.weights.split;
    w_.summary(fmt::format("{}{} [{}, {}] x [{}, {}] on tile matrices, groups of {} rows{}{}{}", n_.op->name,
                           window_words(), p_.rows, p_.k, p_.k, p_.n, rows_,
                           is_cut() ? fmt::format(", k cut in {}", c_.cuts) : "",
                           in_parts_ ? ", weights stored in parts" : "", epilogue_.summary()));
    panels_ = cut_panels(p_.n, 2, w_.target.lanes);
    blocks_ = amx_blocks(p_.k) / c_.cuts;
    pitch_ = blocks_ * 3 * kAmxDepth;
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
        fmt::format("[{}][{}], in panels of {} columns{}", p_.k, p_.n, panels_.vectors * w_.target.lanes,
                    is_cut() ? fmt::format(" of each of {} cuts", c_.cuts) : "");
    if (in_parts_) {
      const std::vector<uint16_t> parts = parts_of_weights(panels_, w_.target.lanes, p_, c_.cuts);
      stored_parts_ = w_.weights("w", "std::uint16_t", parts.data(), parts.size() * sizeof(uint16_t),
                                 comment + ", in parts (sinter/amx.h)");
      return;
    }
    weights_.emplace(w_, panels_, depth());
    for (int64_t cut = 0; cut < c_.cuts; ++cut)
      weights_->add_group(p_.n, [&](int64_t i, int64_t j) {
        const int64_t k = cut * depth() + stored_order(i, depth());
        return k < p_.k ? p_.at(k, j) : 0.0f;
      });
    weights_->store("w", comment);
  }

  // For several threads as many groups for each, if they have some tiles; no thread reads what another one
  // has split, which would come from its cache.
  void share_groups() {
    const int64_t count = c_.tiles * c_.groups;
    by_groups_ = w_.threads > 1 && (c_.once || count >= 3 * w_.threads);
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
    columns_ = w_.scratch_of_part("w_parts", "std::uint16_t", all_numbers());
    w_.out.line("{{");
    open_panel();
    w_.out.put(whole_panel(fmt::format("{} + c * {}", columns_, pitch_)).c_str());
    w_.out.put("};");
    weights_->emit();
    w_.out.line("}}");
    declare_rows_parts(rows_ahead());
    w_.out.line("amx_open({});", c_.tile);
    if (windows()) declare_windows();
    declare_splitter();
    open_group(groups);
    if (rows_ahead()) w_.out.line("if (group == {}) {{", groups.first);
    begin_rows("first", "rows", rows_parts_);
    w_.out.put("splitter.all();");
    if (rows_ahead()) {
      w_.out.line("}}");
      next_rows(groups);
    }
    blocks({"0", ""});
    if (rows_ahead()) {
      w_.out.put("splitter.all();");
      w_.out.put("std::swap(left_parts, next_left);");
    }
    w_.out.line("}}");
    w_.out.put("amx_close();");
    w_.close_parts();
  }

  // The next group's rows are split beside the products of this one's.
  void next_rows(const LayerWriter::Turns& groups) {
    w_.out.line("const std::int64_t next_count = group + 1 < {} ? (group + 2) * {} / {} - first - rows : 0;",
                groups.end, p_.rows, c_.groups);
    begin_rows("(first + rows)", "next_count", "next_left");
  }

  // Groups of rows, of each all panels; groups are the parts, or where they are few panels, whose parts split
  // the rows each for themselves.
  void panels_of_groups() {
    const LayerWriter::Turns turns =
        w_.open_parts(std::to_string(by_groups_ ? c_.groups : panel_count(panels_)));
    if (by_groups_)
      w_.parts_are_rows(
          c_.groups, [&](int64_t group) { return p_.rows * group / c_.groups; }, !windows());
    const LayerWriter::Turns all{"0", std::to_string(c_.groups)};
    declare_rows_parts(is_cut());
    if (!in_parts_)
      columns_ = w_.scratch_of_part("w_parts", "std::uint16_t", (looks_ahead() ? 2 : 1) * panel_numbers());
    if (is_cut())
      kept_ = w_.scratch_of_part("kept", "float", panel_count(panels_) * blocks_a_group() * block_sums());
    if (looks_ahead()) panel_sequence(turns);
    w_.out.line("amx_open({});", c_.tile);
    if (windows()) declare_windows();
    declare_splitter();
    open_group(by_groups_ ? turns : all);
    // Two steps of k before the products, each of which is beside what comes two steps later.
    begin_rows("first", "rows", rows_parts_);
    w_.out.line("splitter.some({});", 4 * c_.tile);
    if (is_cut()) open_cut();
    blocks(by_groups_ || turns.first == "0" ? LayerWriter::Turns{"0", ""} : turns);
    if (is_cut()) close_cut();
    w_.out.line("}}");
    w_.out.put("amx_close();");
    w_.close_parts();
  }

  // Where the parts of a group's rows lie; `ahead`: and those of what comes next.
  void declare_rows_parts(bool ahead) {
    const int64_t numbers = round_up(rows_, c_.tile) * pitch_;
    rows_parts_ = w_.scratch_of_part("x_parts", "std::uint16_t", (ahead ? 2 : 1) * numbers);
    if (!ahead) return;
    w_.out.line("std::uint16_t *left_parts = {0}, *next_left = {0} + {1};", rows_parts_, numbers);
    rows_parts_ = "left_parts";
  }

  // The loop over groups, or the only one: its rows are `rows` ones from `first`; groups differ by one at
  // most.
  void open_group(const LayerWriter::Turns& groups) {
    if (c_.groups == 1) {
      w_.out.line("{{");
      w_.out.line("constexpr std::int64_t first = 0, rows = {};", p_.rows);
      return;
    }
    w_.out.line("for (std::int64_t group = {}; group < {}; ++group) {{", groups.first, groups.end);
    w_.out.line("const std::int64_t first = group * {0} / {1}, rows = (group + 1) * {0} / {1} - first;",
                p_.rows, c_.groups);
  }

  // The loop over cuts of k. The next cut's rows are split beside this one's products, once this one's are.
  void open_cut() {
    w_.out.line("std::int64_t pace = {};  // blocks of rows that are split beside a step", rows_a_step());
    w_.out.line("for (std::int64_t cut = 0; cut < {}; ++cut) {{", c_.cuts);
    w_.out.put("bool begun = false;  // to split the next cut's rows");
    w_.out.put("const auto next_cut = [&] {");
    w_.out.line("if (begun || cut + 1 == {}) return;", c_.cuts);
    w_.out.line("begun = true, pace = {};", rows_a_step_of_cut());
    begin_rows("first", "rows", "next_left", "(cut + 1)");
    w_.out.put("};");
  }
  void close_cut() {
    w_.out.put("next_cut();");
    w_.out.put("splitter.all();");
    w_.out.put("std::swap(left_parts, next_left);");
    w_.out.line("}}");
  }

  void declare_windows() {
    const StaticWindow w = window_of(n_).numbers();
    w_.out.put(
        "// height, width, channels, from pixel to pixel, widths of output and kernel, strides, dilations, "
        "pads");
    w_.out.line("static constexpr AmxGeometry kWindows = {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}};",
                w.in[0], w.in[1], p_.channels, apart(), w.out[1], w.kernel[1], w.strides[0], w.strides[1],
                w.dilations[0], w.dilations[1], w.pads_begin[0], w.pads_begin[1]);
  }

  // What splits the rows into parts, and its words to begin with `count` ones from the row `first` on, their
  // blocks of a cut.
  void declare_splitter() {
    w_.out.line("AmxRowSplitter<{}, {}> splitter;", c_.tile, windows() ? "AmxWindows<kWindows>" : "AmxRows");
    if (windows())
      w_.out.put(
          "const auto split_rows = [&](std::int64_t count) __attribute__((noinline)) { splitter.some(count); "
          "};");
  }
  void begin_rows(std::string_view first, std::string_view count, std::string_view to,
                  std::string_view cut = "") {
    const std::string begin = cut.empty() ? "" : fmt::format("{} * {}", cut, windows() ? blocks_ : depth());
    const std::string left = windows() ? fmt::format("{}, {}, {}", x_, first, begin.empty() ? "0" : begin)
                                       : fmt::format("{} + {} * {}{}, {}{}, {}", x_, first, apart(),
                                                     begin.empty() ? "" : " + " + begin, p_.k,
                                                     begin.empty() ? "" : " - " + begin, apart());
    w_.out.line("splitter.begin({{{}}}, {}, {}, {});", left, count, blocks_, to);
  }

  // Floats from one row of the left operand, or one pixel of the picture, to the next.
  std::string apart() const { return w_.dim(w_.pixel_stride(*n_.inputs[0])); }

  // Floats of a block's sums.
  int64_t block_sums() const { return 2 * c_.tile * panels_.vectors * w_.target.lanes; }

  // The values of k that a panel's parts have.
  int64_t depth() const { return is_cut() ? blocks_ * kAmxDepth : p_.k; }
  bool is_cut() const { return c_.cuts > 1; }

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
    if (is_cut()) w_.out.put("if (splitter.done()) next_cut();");
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
    begin_sums();
    w_.out.line("amx_mac<tiles.value, kVectors, {}>({} + i * {}, parts{}, {}, beside);", c_.tile, rows_parts_,
                pitch_, c_.once ? fmt::format(" + c * {}", pitch_) : "", blocks_);
    w_.out.line("amx_store<tiles.value, kVectors>({}{}, {});",
                is_cut() ? fmt::format("cut + 1 < {} ? mine : ", c_.cuts) : "", sums_, c_.tile);
    if (is_cut()) w_.out.line("if (cut + 1 < {}) return;", c_.cuts);
    w_.out.line("due_c = c, due_first = due = i, due_end = sinter::min_of(i + {}, rows);", 2 * c_.tile);
    w_.out.put("};");
    w_.out.line("std::int64_t i = 0;");
    w_.out.line("for (; i + {} < rows; i += {}) block(Int<2>(), i);", c_.tile, 2 * c_.tile);
    w_.out.line("if (i < rows) block(Int<1>(), i);");
    if (has_odd_panel()) w_.out.put("if constexpr (kOdd) finish(vectors, last, due_end);");
    if (looks_ahead()) {
      w_.out.line("amx_split_lines<kVectors>(next, {}, {}, next_parts, line, lines, after);", depth(),
                  weights_->row());
      w_.out.line("if (lines > 0) ready = next, std::swap(parts, next_parts);");
      w_.out.put("++turn;");
    }
    w_.out.put("};");
    if (in_parts_)
      emit_panels(w_, panels_, pitch_,
                  is_cut() ? fmt::format("{} + cut * {}", stored_parts_, all_numbers()) : stored_parts_, "0",
                  panels);
    else
      weights_->emit(is_cut() ? "cut" : "", panels);
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
    w_.out.line(
        "const auto beside = [&]([[maybe_unused]] std::int64_t b, [[maybe_unused]] int step) "
        "__attribute__((always_inline)) {{");
    // Long epilogues go faster two rows at a time.
    const int64_t rows = ceil_div(2 * c_.tile, kAmxSteps * blocks_);
    w_.out.line("{}finish(vectors, last, {});", rows > 1 ? "" : "if (step % 2 == 0) ", rows > 1 ? rows : 2);
    if (looks_ahead()) split_lines();
    if (in_parts_) ask_ahead();
    if (splits_rows())
      w_.out.line("{}({});", windows() ? "split_rows" : "splitter.some",
                  is_cut() ? "pace" : std::to_string(rows_a_step()));
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
  // Numbers of all panels' parts, of a cut.
  int64_t all_numbers() const {
    return (panels_.full * panels_.vectors + panels_.rest) * w_.target.lanes * pitch_;
  }
  int64_t panel_numbers() const { return panels_.vectors * w_.target.lanes * pitch_; }
  void split_panel() {
    const std::string split = whole_panel("parts");
    if (!looks_ahead()) return w_.out.put(split.c_str());
    w_.out.line("if (ready != wp) {}", split);
    w_.out.line("const float *const next = panel_at(turn + 1), *const after = panel_at(turn + 2);");
    std::string runs = fmt::format("kVectors == {} && turn + 1 < all_turns", panels_.vectors);
    if (!alike()) runs += fmt::format(" && first_panel + (turn + 1) % panels != {}", panels_.full);
    w_.out.line("const std::int64_t lines = {} ? {} : 0;", runs, 16 * blocks_);
    w_.out.put("std::int64_t line = 0;  // of the next panel");
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
    w_.out.line("return {} + {}(first_panel + i % panels) * {};", weights_->name(),
                is_cut() ? fmt::format("i / panels % {} * {} + ", c_.cuts, weights_->group_size()) : "",
                panel_floats());
    w_.out.put("};");
    w_.out.line("const float* ready = nullptr;  // the weights whose parts are at `parts`");
    w_.out.line("std::uint16_t *parts = {0}, *next_parts = {0} + {1};", columns_, panel_numbers());
  }
  int64_t panel_floats() const { return depth() * panels_.vectors * w_.target.lanes; }
  // Whether the last panel lies as the others do.
  bool alike() const {
    return panels_.rest == 0 || (panels_.rest == panels_.vectors && weights_->row() != "kRow");
  }
  std::string end_of_weights() const {
    return fmt::format("{} + {}", weights_->name(), c_.cuts * weights_->group_size());
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
    for (int64_t i = kAmxSteps; i-- > 0;)
      digits = digits * 16 + (i + 1) * lines / kAmxSteps - i * lines / kAmxSteps;
    w_.out.line("const std::int64_t end = sinter::min_of(line + (0x{:06x} >> 4 * step & 15), lines);",
                digits);
    w_.out.line("amx_split_lines<kVectors>(next, {}, {}, next_parts, line, end, after);", depth(),
                weights_->row());
    w_.out.line("line = end;");
    w_.out.line(
        "for (int i = lines > 0 ? {0} : 0; i < {0}; ++i, beyond += kLanes) __builtin_prefetch(beyond, 0, 2);",
        ceil_div(4 * lines, kAmxSteps));
  }

  // Blocks of two tiles that a whole group has, or of one.
  int64_t blocks_a_group() const { return ceil_div(rows_, 2 * c_.tile); }
  // Whether the next group's rows are split while the products of this one's run.
  bool rows_ahead() const { return c_.once && c_.groups > 1; }
  bool splits_rows() const { return rows_ahead() || !c_.once; }
  // Blocks of rows that are split beside a step: as fast as the products take them; evenly where there is a
  // group's time, or a cut's.
  int64_t rows_a_step() const {
    if (!rows_ahead()) return ceil_div(2 * c_.tile, kAmxSteps);
    const int64_t rows = ceil_div(round_up(rows_, 2 * c_.tile), blocks_a_group() * panel_count(panels_));
    return ceil_div(rows, kAmxSteps);
  }
  int64_t rows_a_step_of_cut() const {
    const int64_t panels = panel_count(panels_) / (by_groups_ ? 1 : w_.threads);
    return ceil_div(2 * c_.tile, kAmxSteps * std::max<int64_t>(1, panels - 1));
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
    w_.out.line("store_lanes({} + (first + due) * {} + {}, {}, lanes);", y_, w_.dim(w_.pixel_stride()),
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
  bool in_parts_ = false;   // weights are stored as their bfloat16
  int64_t rows_ = 0;        // of a group
  int64_t blocks_ = 0;      // of k, or of a cut of it
  int64_t pitch_ = 0;       // numbers of a row's parts, or of a column's
  std::string x_, y_, bias_, rows_parts_, columns_, stored_parts_, sums_, kept_;
};

void emit(LayerWriter& w) { Writer(w, w.way<AmxChoice>()).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_gemm_amx() {
  static const std::vector<Kernel> table = {
      {"gemm_amx",
       "products with constant weights and convolutions on AMX's tile matrices, in three parts a float",
       accepts,
       emit,
       {.writes_apart = true,
        .reads_apart = true,
        .algorithm = Algorithm::kTileMatrices,
        .work = Work::kProducts},
       amx_ways}};
  return table;
}

}  // namespace sinter
