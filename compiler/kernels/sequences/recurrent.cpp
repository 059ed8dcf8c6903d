// RNN, GRU and LSTM of floats with constant weights.
//
// Neurons are cut into panels of one vector each; a panel holds all gates of its neurons, so that the sums of
// a tile are all that a cell's activations need and never leave the registers. Per direction, W x + b of a
// block of steps is one matrix product into scratch (bounded: long sequences go block by block); then each
// step adds R h by the same tiles and finishes the cells. States lie in scratch in rows of whole vectors, the
// hidden state twice, as every neuron reads the old state of all. A single step of a single sequence
// (streaming) takes both products in one go. GRU with linear_before_reset = 0 needs r * h of all neurons
// before its third product: two rounds over the panels. The two directions of a small layer take turns step
// by step: each waits for its own last step only, so that the processor works on both at once.
//
// Sequences of given lengths run one after the other.
//
// Of halves, states are halves, too; sums of more products than one block may have are blocks (BlockSums).

#include <algorithm>
#include <optional>

#include "kernels/products/tiles.h"
#include "kernels/sequences/recurrent_form.h"
#include "kernels/sequences/recurrent_plain.h"
#include "kernels/sequences/recurrent_weights.h"

namespace sinter {
namespace {

using Cell = Recurrence::Cell;

const Value* optional_input(const Node& n, size_t i) { return i < n.inputs.size() ? n.inputs[i] : nullptr; }

bool accepts(const Node& n, const Context&) {
  if (!is_recurrent(n) || n.epilogue || n.inputs[0]->type.dtype != element_type(n)) return false;
  for (size_t i : {1u, 2u, 3u, 7u})
    if (const Value* v = optional_input(n, i); v && !v->data) return false;
  const Recurrence r = recurrence_of(n);
  // Sequences of given lengths run one by one; the steps of a quantised state are for all of them.
  if (r.quantizes_state && optional_input(n, 4) && !r.batch.is(1)) return false;
  return r.hidden.is_static() && r.inputs.is_static() && r.hidden.value() > 0 &&
         r.batch.hi() <= (int64_t{1} << 24);
}
bool accepts_plain(const Node& n, const Context&) {
  return is_recurrent(n) && !n.epilogue && is_float(n.inputs[0]->type.dtype) &&
         !recurrence_of(n).quantizes_state;
}

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w), n_(w.node), r_(recurrence_of(w.node)), lanes_(w.target.lanes), stride_(row_strides(w, r_)) {
    hidden_ = r_.hidden.value();
    inputs_ = r_.inputs.value();
    panels_ = (hidden_ + lanes_ - 1) / lanes_;
    padded_ = panels_ * lanes_;
    width_ = padded_ * r_.gates;
    lengths_ = optional_input(n_, 4) != nullptr;
    rows_ = lengths_ ? Dim(1) : r_.batch;
    two_rounds_ = r_.cell == Cell::kGru && !r_.linear_before_reset;
    direct_ = !lengths_ && !two_rounds_ && !r_.quantizes_state && r_.batch.is(1) && r_.steps.is(1);
    // What keeps a step waiting is its chain of additions and activations, unless there are many sums.
    in_turns_ = r_.directions == 2 && r_.activations[0] == r_.activations[1] && !direct_ && !lengths_ &&
                hidden_ * width_ <= kSmall;
  }

  void write();

 private:
  const float* constant(size_t i) const {
    const Value* v = optional_input(n_, i);
    return v ? v->data->as<float>() : nullptr;
  }
  std::vector<float> pack(size_t input, int64_t depth, int64_t first_gate, int64_t gates) const {
    return pack_gates(r_, {first_gate, gates}, constant(input), depth, lanes_);
  }
  void declare();
  void directions(size_t first, size_t count);
  void directions_in_turns();
  void pointers(size_t first, size_t count);
  void load_states(const std::string& h, const std::string& rows);
  void store_states(const std::string& h, const std::string& rows);
  void sequences();
  std::optional<int64_t> count_of_block() const;
  void projection();
  void project_block(const std::string& rows);
  void steps();
  void swap_states();
  void step_of_block(const std::string& rows);
  void step();
  void open_panels(const std::string& weights, int64_t gates);
  void close_panels(int64_t gates);
  void start(const std::string& sum, const std::string& bias);
  void multiply(const std::string& sum, int64_t gates, const std::string& x, const std::string& row,
                const std::string& panel, int64_t k);
  void add_recurrent(const std::string& from, int64_t gates);
  void start_with_x(const std::string& sum);
  void rnn();
  void gru();
  void gru_first_round();
  void gru_second_round();
  void lstm();
  void finish(const std::string& after);
  std::string of_x(int64_t gate) const;  // W x + b of a gate for row t of a tile
  // " + n * stride" where sequences run one after the other.
  std::string of_n(const std::string& stride) const { return lengths_ ? " + n * " + stride : ""; }
  const GateActivation& activation(size_t i) const { return r_.activations[direction_][i]; }
  void activated(size_t i, const std::string& name, const std::string& value) {
    emit_activation(w_, r_, activation(i), name, value, "f32v");
  }

  LayerWriter& w_;
  const Node& n_;
  Recurrence r_;
  int lanes_;
  RowStrides stride_;
  static constexpr int64_t kSmall = 1 << 12;  // recurrent weights of a direction
  int64_t hidden_ = 0, inputs_ = 0, panels_ = 0, padded_ = 0, width_ = 0, block_ = 1;
  bool lengths_ = false, direct_ = false, two_rounds_ = false, in_turns_ = false;
  std::optional<int64_t> count_;  // the rows of each project_block, where they are always as many
  Dim rows_;
  size_t direction_ = 0;  // whose activations are written
  std::string x_, y_, weights_, recurrent_, hidden_weights_, bias_, recurrent_bias_, peephole_, h0_, c0_, yh_,
      yc_, projected_, state_, quantized_, cell_, update_, reset_, backward_;
};

void Writer::declare() {
  x_ = w_.input(0);
  const std::string shape = fmt::format("in panels of {} gates of {} neurons", r_.gates, lanes_);
  weights_ = w_.weights("w", pack(1, inputs_, 0, r_.gates),
                        fmt::format("[{}][{}][{}], {}", r_.directions, inputs_, width_, shape));
  if (two_rounds_) {
    recurrent_ = w_.weights("r", pack(2, hidden_, 0, 2),
                            fmt::format("[{}][{}][{}], gates z and r", r_.directions, hidden_, 2 * padded_));
    hidden_weights_ = w_.weights("r_hidden", pack(2, hidden_, 2, 1),
                                 fmt::format("[{}][{}][{}], gate h", r_.directions, hidden_, padded_));
  } else {
    recurrent_ = w_.weights("r", pack(2, hidden_, 0, r_.gates),
                            fmt::format("[{}][{}][{}], {}", r_.directions, hidden_, width_, shape));
  }
  if (constant(3)) {
    bias_ = w_.weights("bias", pack_gate_bias(r_, false, constant(3), lanes_),
                       fmt::format("[{}][{}]", r_.directions, width_));
    if (r_.cell == Cell::kGru && r_.linear_before_reset)
      recurrent_bias_ = w_.weights("r_bias", pack_gate_bias(r_, true, constant(3), lanes_),
                                   fmt::format("[{}][{}]", r_.directions, width_));
  }
  if (constant(7))
    peephole_ = w_.weights("peephole", pack_peepholes(r_, constant(7), lanes_),
                           fmt::format("[{}][3][{}]", r_.directions, padded_));
  if (optional_input(n_, 5)) h0_ = w_.input(5);
  if (optional_input(n_, 6)) c0_ = w_.input(6);
  if (n_.has_output(0)) y_ = w_.output(0);
  if (n_.has_output(1)) yh_ = w_.output(1);
  if (n_.has_output(2)) yc_ = w_.output(2);
  const int64_t rows = std::max<int64_t>(rows_.hi(), 1), all_steps = std::max<int64_t>(r_.steps.hi(), 1),
                sets = in_turns_ ? 2 : 1;
  if (!direct_) {
    // About 32 KiB of projections (the arena's budget), but enough rows for full tiles.
    const int64_t fit = std::max((int64_t{1} << 13) / (sets * rows * width_), (16 + rows - 1) / rows);
    block_ = std::min(all_steps, fit);
    count_ = count_of_block();
    projected_ = w_.scratch("projected", "float", sets * block_ * rows * width_);
  }
  state_ = w_.scratch("state", "float", sets * 2 * rows * padded_);
  if (r_.quantizes_state) quantized_ = w_.scratch("in_steps", "float", rows * padded_);
  if (r_.cell == Cell::kLstm) cell_ = w_.scratch("cell", "float", sets * rows * padded_);
  if (two_rounds_) {
    update_ = w_.scratch("updates", "float", rows * padded_);
    reset_ = w_.scratch("resets", "float", rows * padded_);
  }
}

void Writer::write() {
  for (const char* header : {"sinter/mac.h", "sinter/math.h", "sinter/recurrent.h", "sinter/dims.h"})
    w_.include(header);
  const Dim macs = r_.steps * r_.batch * Dim(r_.directions * r_.gates * hidden_ * (inputs_ + hidden_));
  w_.flops(macs * Dim(2));
  w_.summary(fmt::format("{} {}{} -> {}, {} step{}", n_.op->name,
                         r_.directions == 2 ? "bidirectional "
                         : r_.first_reverse ? "reverse "
                                            : "",
                         inputs_, hidden_, r_.steps.text(), r_.steps.is(1) ? "" : "s"));
  declare();
  emit_length_check(w_, r_);
  const auto count = static_cast<size_t>(r_.directions);
  if (in_turns_) {
    directions_in_turns();
  } else if (count == 2 && r_.activations[0] == r_.activations[1]) {
    directions(0, 2);
  } else {
    for (size_t d = 0; d < count; ++d) directions(d, 1);
  }
  if (lengths_) w_.out.line("return 0;");
}

// What the code of `count` directions that only differ in their weights and in the order of the steps knows
// of direction d.
void Writer::pointers(size_t first, size_t count) {
  const auto part = [&](const std::string& pointer, const std::string& size) {
    if (pointer.empty()) return std::string("nullptr");
    if (count == 2) return fmt::format("{} + d * {}", pointer, size);
    return first == 0 ? pointer : fmt::format("{} + {}", pointer, size);
  };
  const auto number = [](int64_t v) { return std::to_string(v); };
  const auto declare = [&](const char* name, const char* type, const std::string& pointer,
                           const std::string& size) {
    if (!pointer.empty()) w_.out.line("[[maybe_unused]] {} const {} = {};", type, name, part(pointer, size));
  };
  declare("wd", "const float*", weights_, number(inputs_ * width_));
  declare("rd", "const float*", recurrent_, number(hidden_ * (two_rounds_ ? 2 * padded_ : width_)));
  declare("rhd", "const float*", hidden_weights_, number(hidden_ * padded_));
  declare("bias_d", "const float*", bias_, number(width_));
  declare("r_bias_d", "const float*", recurrent_bias_, number(width_));
  declare("peephole_d", "const float*", peephole_, number(3 * padded_));
  declare("yd", "float*", y_, stride_.y_direction);
  declare("h0", "const float*", h0_, stride_.state_direction);
  declare("c0", "const float*", c0_, stride_.state_direction);
  declare("yh", "float*", yh_, stride_.state_direction);
  declare("yc", "float*", yc_, stride_.state_direction);
  backward_ = count == 2 ? "d == 1" : r_.reverse(static_cast<int64_t>(first)) ? "true" : "false";
}

// One direction after the other.
void Writer::directions(size_t first, size_t count) {
  direction_ = first;
  if (count == 2)
    w_.out.line("for (std::int64_t d = 0; d < 2; ++d) {{  // forward, then backward");
  else
    w_.out.line("{{");
  pointers(first, count);
  if (!direct_) projection();
  if (lengths_) {
    w_.out.line("for (std::int64_t n = 0; n < {}; ++n) {{", w_.dim(r_.batch));
    w_.out.line("const std::int64_t length = {}[n];", w_.input(4));
  }
  sequences();
  if (lengths_) w_.out.line("}}");
  w_.out.line("}}");
}

// Both directions, a step of each at a time.
void Writer::directions_in_turns() {
  const std::string rows = w_.dim(rows_), steps = w_.dim(r_.steps), cells = cell_;
  const int64_t most_rows = std::max<int64_t>(rows_.hi(), 1);
  const auto open = [&](const char* comment) {
    w_.out.line("for (std::int64_t d = 0; d < 2; ++d) {{{}", comment);
    pointers(0, 2);
    if (!cells.empty())
      w_.out.line("[[maybe_unused]] float* const cell_d = {} + d * {};", cells, most_rows * padded_);
  };
  if (!cells.empty()) cell_ = "cell_d";
  w_.out.line("float* old_states = {};", state_);
  w_.out.line("float* new_states = {} + {};", state_, 2 * most_rows * padded_);
  open("  // forward and backward");
  load_states(fmt::format("old_states + d * {}", most_rows * padded_), rows);
  w_.out.line("}}");
  w_.out.line("for (std::int64_t done = 0; done < {}; done += {}) {{", steps, block_);
  w_.out.line("const std::int64_t block = sinter::min_of(std::int64_t{{{}}}, {} - done);", block_, steps);
  const std::string projected = projected_;
  projected_ = "projected_d";
  const auto block = [&] {
    w_.out.line("float* const projected_d = {} + d * {};", projected, block_ * most_rows * width_);
    w_.out.line("const std::int64_t first = {} ? {} - done - block : done;", backward_, steps);
  };
  open("");
  block();
  projection();
  project_block(rows);
  w_.out.line("}}");
  w_.out.line("for (std::int64_t s = 0; s < block; ++s) {{");
  open("");
  block();
  w_.out.line("float* const h = old_states + d * {};", most_rows * padded_);
  w_.out.line("float* const next = new_states + d * {};", most_rows * padded_);
  step_of_block(rows);
  w_.out.line("}}");
  w_.out.line("float* const states = old_states;");
  w_.out.line("old_states = new_states;");
  w_.out.line("new_states = states;");
  w_.out.line("}}");
  w_.out.line("}}");
  if (yh_.empty() && yc_.empty()) return;
  open("");
  store_states(fmt::format("old_states + d * {}", most_rows * padded_), rows);
  w_.out.line("}}");
}

// The first states into the scratch memory at `h` and the cells, and the last ones to where they are wanted.
void Writer::load_states(const std::string& h, const std::string& rows) {
  const std::string started = lengths_ ? "length > 0 ? " : "";
  const auto load = [&](const std::string& to, const char* from, bool given) {
    w_.out.line("sinter::load_states({}, {}, {}, {}, {}, {});", to, rows, hidden_, padded_,
                given ? started + from + of_n(stride_.state_row) + (lengths_ ? " : nullptr" : "") : "nullptr",
                stride_.state_row);
  };
  load(h, "h0", !h0_.empty());
  if (!cell_.empty()) load(cell_, "c0", !c0_.empty());
}
void Writer::store_states(const std::string& h, const std::string& rows) {
  const auto store = [&](const char* to, const std::string& from) {
    w_.out.line("sinter::store_states({}{}, {}, {}, {}, {}, {});", to, of_n(stride_.state_row),
                stride_.state_row, from, rows, hidden_, padded_);
  };
  if (!yh_.empty()) store("yh", h);
  if (!yc_.empty()) store("yc", cell_);
}

// All sequences at once, or sequence n alone.
void Writer::sequences() {
  const std::string rows = w_.dim(rows_);
  w_.out.line("float* h = {};", state_);
  w_.out.line("float* next = {} + {} * {};", state_, rows, padded_);
  load_states("h", rows);
  steps();
  store_states("h", rows);
  if (lengths_ && !y_.empty()) {
    w_.out.line("for (std::int64_t t = length; t < {}; ++t) {{", w_.dim(r_.steps));
    w_.out.line("for (std::int64_t j = 0; j < {}; ++j) yd[t * {}{} + j] = 0.0f;", hidden_, stride_.y_step,
                of_n(stride_.y_row));
    w_.out.line("}}");
  }
}

std::optional<int64_t> Writer::count_of_block() const {
  if (lengths_ || !r_.steps.is_static() || r_.steps.value() % block_ != 0) return std::nullopt;
  if (r_.batch_first && !r_.batch.is(1)) return block_;  // one row of the batch after the other
  if (!rows_.is_static()) return std::nullopt;
  return block_ * rows_.value();
}

void Writer::projection() {
  const int tile = w_.target.tile(static_cast<int>(r_.gates));
  w_.out.line("// to[i] = W x[i] + bias for {} rows of x", count_ ? std::to_string(*count_) : "`count`");
  w_.out.line(
      "const auto project = [&](const float* from,{} std::int64_t from_row, float* to, std::int64_t to_row) "
      "{{",
      count_ ? "" : " std::int64_t count,");
  w_.out.line("for (std::int64_t p = 0; p < {}; ++p) {{", panels_);
  w_.out.line("const auto tile = [&](auto rows, std::int64_t i) __attribute__((always_inline)) {{");
  w_.out.line("constexpr int kRows = rows.value;");
  w_.out.line("Tile<{}, kRows> sum;", r_.gates);
  start("sum", bias_.empty() ? "" : "bias_d");
  multiply("sum", r_.gates, "from + i * from_row", "from_row",
           fmt::format("wd + p * {}", inputs_ * r_.gates * lanes_), inputs_);
  w_.out.line("SINTER_UNROLL");
  w_.out.line("for (int t = 0; t < kRows; ++t) {{");
  w_.out.line("SINTER_UNROLL");
  w_.out.line(
      "for (int g = 0; g < {0}; ++g) store(to + (i + t) * to_row + (p * {0} + g) * kLanes, sum.a[t][g]);",
      r_.gates);
  w_.out.line("}}");
  w_.out.put("};");
  if (count_)
    emit_tiles(w_, "0", std::to_string(*count_), Dim(*count_), tile, "i", "tile(Int<{T}>(), {x});");
  else
    emit_tile_range(w_, "0", "count", tile, "i", "tile(Int<{T}>(), {x});");
  w_.out.line("}}");
  w_.out.put("};");
}

void Writer::steps() {
  const std::string rows = w_.dim(rows_), length = lengths_ ? "length" : w_.dim(r_.steps);
  if (direct_) {
    w_.out.line("[[maybe_unused]] constexpr std::int64_t t = 0;");
    step();
    return swap_states();
  }
  w_.out.line("for (std::int64_t done = 0; done < {}; done += {}) {{", length, block_);
  w_.out.line("const std::int64_t block = sinter::min_of(std::int64_t{{{}}}, {} - done);", block_, length);
  w_.out.line("const std::int64_t first = {} ? {} - done - block : done;", backward_, length);
  project_block(rows);
  w_.out.line("for (std::int64_t s = 0; s < block; ++s) {{");
  step_of_block(rows);
  swap_states();
  w_.out.line("}}");
  w_.out.line("}}");
}

void Writer::swap_states() {
  w_.out.line("float* const old = h;");
  w_.out.line("h = next;");
  w_.out.line("next = old;");
}

// W x + b of the steps from `first` on.
void Writer::project_block(const std::string& rows) {
  const auto times = [&](const std::string& of) { return count_ ? "" : "block" + of + ", "; };
  if (lengths_)
    w_.out.line("project({} + first * {} + n * {}, block, {}, {}, {});", x_, stride_.x_step, stride_.x_row,
                stride_.x_step, projected_, width_);
  else if (!r_.batch_first || r_.batch.is(1))
    w_.out.line("project({} + first * {}, {}{}, {}, {});", x_, stride_.x_step, times(" * " + rows), inputs_,
                projected_, width_);
  else
    w_.out.line(
        "for (std::int64_t b = 0; b < {0}; ++b) project({1} + first * {2} + b * {3}, {6}{2}, {4} + b * {5}, "
        "{0} * {5});",
        rows, x_, stride_.x_step, stride_.x_row, projected_, width_, times(""));
}

void Writer::step_of_block(const std::string& rows) {
  w_.out.line("const std::int64_t t = {} ? first + block - 1 - s : first + s;", backward_);
  w_.out.line("const float* const of_x = {} + (t - first) * {} * {};", projected_, rows, width_);
  step();
}

void Writer::step() {
  if (!y_.empty()) w_.out.line("float* const yt = yd + t * {}{};", stride_.y_step, of_n(stride_.y_row));
  if (two_rounds_) {
    open_panels("rd", 2);
    gru_first_round();
    close_panels(2);
    open_panels("rhd", 1);
    gru_second_round();
    close_panels(1);
  } else {
    if (r_.quantizes_state)
      w_.out.line("sinter::states_in_steps(h, {}, {}, {}, {});", w_.dim(rows_), hidden_, padded_, quantized_);
    open_panels("rd", r_.gates);
    if (r_.cell == Cell::kLstm) lstm();
    if (r_.cell == Cell::kGru) gru();
    if (r_.cell == Cell::kRnn) rnn();
    close_panels(r_.gates);
  }
}

// A loop over panels and in it the function that works on a tile of rows. Every other step goes through the
// panels backwards, so that it begins with those that the cache still holds.
void Writer::open_panels(const std::string& weights, int64_t gates) {
  if (direct_ || panels_ == 1) {
    w_.out.line("for (std::int64_t p = 0; p < {}; ++p) {{", panels_);
  } else {
    w_.out.line("for (std::int64_t turn = 0; turn < {}; ++turn) {{", panels_);
    w_.out.line("const std::int64_t p = s % 2 == 0 ? turn : {} - turn;", panels_ - 1);
  }
  w_.out.line("const float* const panel = {} + p * {};", weights, hidden_ * gates * lanes_);
  w_.out.line("const auto tile = [&](auto rows, std::int64_t b) __attribute__((always_inline)) {{");
  w_.out.line("constexpr int kRows = rows.value;");
  w_.out.line("Tile<{}, kRows> sum;", gates);
}
void Writer::close_panels(int64_t gates) {
  w_.out.line("}}");
  w_.out.put("};");
  emit_tiles(w_, "0", w_.dim(rows_), rows_, w_.target.tile(static_cast<int>(gates)), "b",
             "tile(Int<{T}>(), {x});");
  w_.out.line("}}");
}

void Writer::start(const std::string& sum, const std::string& bias) {
  if (bias.empty())
    w_.out.line("tile_bias({}, static_cast<const float*>(nullptr));", sum);
  else
    w_.out.line("tile_bias({}, {} + p * {});", sum, bias, r_.gates * lanes_);
}

// sum += the panel's products with kRows rows of x, `row` elements apart.
void Writer::multiply(const std::string& sum, int64_t gates, const std::string& x, const std::string& row,
                      const std::string& panel, int64_t k) {
  const std::string word = mac_word(w_.target);
  if (!w_.element.is_half() || k <= TileSums::kOneBlock)
    return w_.out.line("{}({}, {}, {}, {}, {});", word, sum, x, row, panel, k);
  w_.out.line("BlockSums<{}, kRows> blocks;", gates);
  w_.out.line("mac_in_blocks<{}>({}, blocks, {}, {}, {}, {});", word == "mac" ? "false" : "true", sum, x, row,
              panel, k);
  w_.out.line("blocks.end({});", sum);
}

// sum += the panel's part of R `from`; then opens the loop over the tile's rows.
void Writer::add_recurrent(const std::string& from, int64_t gates) {
  if (rows_.is(1)) {
    w_.out.line("mac_row(sum, {} + b * {}, panel, {});", from, padded_, hidden_);
  } else {
    w_.out.line("if constexpr (kRows == 1)");
    w_.out.line("  mac_row(sum, {} + b * {}, panel, {});", from, padded_, hidden_);
    w_.out.line("else {{");
    multiply("sum", gates, fmt::format("{} + b * {}", from, padded_), std::to_string(padded_), "panel",
             hidden_);
    w_.out.line("}}");
  }
  w_.out.line("SINTER_UNROLL");
  w_.out.line("for (int t = 0; t < kRows; ++t) {{");
  w_.out.line("const std::int64_t at = (b + t) * {} + p * kLanes;", padded_);
}

// sum = W x + bias, of the step's projection or right here.
void Writer::start_with_x(const std::string& sum) {
  if (direct_) {
    start(sum, bias_.empty() ? "" : "bias_d");
    w_.out.line("mac_row({}, {}, wd + p * {}, {});", sum, x_, inputs_ * r_.gates * lanes_, inputs_);
    return;
  }
  w_.out.line("SINTER_UNROLL");
  w_.out.line("for (int t = 0; t < kRows; ++t) {{");
  w_.out.line("SINTER_UNROLL");
  w_.out.line(
      "for (int g = 0; g < {0}; ++g) {2}.a[t][g] = load(of_x + (b + t) * {1} + (p * {0} + g) * kLanes);",
      r_.gates, width_, sum);
  w_.out.line("}}");
}
std::string Writer::of_x(int64_t gate) const {
  return direct_ ? fmt::format("of_x.a[t][{}]", gate)
                 : fmt::format("load(of_x + (b + t) * {} + (p * {} + {}) * kLanes)", width_, r_.gates, gate);
}

// Stores the new state.
void Writer::finish(const std::string& after) {
  w_.out.line("store(next + at, {});", after);
  if (y_.empty()) return;
  const int64_t tail = hidden_ - (panels_ - 1) * lanes_;
  const std::string to = fmt::format("yt + (b + t) * {} + p * kLanes", stride_.y_row);
  if (tail == lanes_)
    w_.out.line("store({}, {});", to, after);
  else
    w_.out.line("store_lanes({}, {}, p == {} ? {} : kLanes);", to, after, panels_ - 1, tail);
}

void Writer::rnn() {
  start_with_x("sum");
  add_recurrent("h", r_.gates);
  activated(0, "after", "sum.a[t][0]");
  finish("after");
}

void Writer::gru() {
  if (direct_) {
    w_.out.line("Tile<3, kRows> of_x;");
    start_with_x("of_x");
  }
  start("sum", recurrent_bias_.empty() ? "" : "r_bias_d");
  add_recurrent("h", r_.gates);
  activated(0, "update", fmt::format("add({}, sum.a[t][0])", of_x(0)));
  activated(0, "reset", fmt::format("add({}, sum.a[t][1])", of_x(1)));
  activated(1, "now", fmt::format("fma(reset, sum.a[t][2], {})", of_x(2)));
  w_.out.line("const f32v after = fma(update, sub(load(h + at), now), now);");
  finish("after");
}

void Writer::gru_first_round() {
  start("sum", "");
  add_recurrent("h", 2);
  activated(0, "update", fmt::format("add({}, sum.a[t][0])", of_x(0)));
  activated(0, "reset", fmt::format("add({}, sum.a[t][1])", of_x(1)));
  w_.out.line("store({} + at, update);", update_);
  w_.out.line("store({} + at, mul(reset, load(h + at)));", reset_);
}
void Writer::gru_second_round() {
  start("sum", "");
  add_recurrent(reset_, 1);
  activated(1, "now", fmt::format("add({}, sum.a[t][0])", of_x(2)));
  w_.out.line("const f32v after = fma(load({} + at), sub(load(h + at), now), now);", update_);
  finish("after");
}

void Writer::lstm() {
  start_with_x("sum");
  add_recurrent(r_.quantizes_state ? quantized_ : "h", r_.gates);
  const auto peep = [&](int gate, const std::string& cell, const std::string& sum) {
    if (peephole_.empty()) return sum;
    return fmt::format("fma(load(peephole_d + {} + p * kLanes), {}, {})", gate * padded_, cell, sum);
  };
  w_.out.line("const f32v before = load({} + at);", cell_);
  activated(0, "in", peep(0, "before", "sum.a[t][0]"));
  if (r_.input_forget)
    w_.out.line("const f32v forget = sub(splat(1.0f), in);");
  else
    activated(0, "forget", peep(2, "before", "sum.a[t][2]"));
  activated(1, "update", "sum.a[t][3]");
  w_.out.line("const f32v now = fma(forget, before, mul(in, update));");
  w_.out.line("store({} + at, now);", cell_);
  activated(0, "open", peep(1, "now", "sum.a[t][1]"));
  emit_activation(w_, r_, activation(2), "shown", "now", "f32v", false);
  w_.out.line("const f32v after = mul(open, shown);");
  finish("after");
}

void emit(LayerWriter& w) { Writer(w).write(); }

}  // namespace

const std::vector<Kernel>& kernels_recurrent() {
  static const std::vector<Kernel> table = {
      {"recurrent",
       "RNN, GRU and LSTM of floats, all gates of a panel of neurons in registers",
       accepts,
       emit,
       {.work = Work::kProducts}},
      {"recurrent_plain",
       "RNN, GRU and LSTM of any float type as plain loops",
       accepts_plain,
       emit_recurrent_plain,
       {.work = Work::kLoops}},
  };
  return table;
}

}  // namespace sinter
