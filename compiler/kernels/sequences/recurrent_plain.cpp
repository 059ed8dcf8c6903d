// RNN, GRU and LSTM as textbook loops: any float type, weights that are computed at run time. Sums are taken
// in float, or in double where the tensors are.
#include "kernels/sequences/recurrent_plain.h"

#include "emit/expr_text.h"
#include "kernels/nest.h"
#include "kernels/sequences/recurrent_form.h"

namespace sinter {
namespace {

using Cell = Recurrence::Cell;

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w),
        n_(w.node),
        r_(recurrence_of(w.node)),
        dtype_(n_.inputs[0]->type.dtype),
        type_(compute_type(dtype_)),
        hidden_(r_.hidden.is_static() ? w.dim(r_.hidden) : "(" + w.dim(r_.hidden) + ")"),
        stride_(row_strides(w, r_)) {}
  void write();

 private:
  bool has(size_t i) const { return i < n_.inputs.size() && n_.inputs[i]; }
  std::string element(size_t i, const std::string& at) {
    return load_text(dtype_, fmt::format("{}[{}]", w_.input(i), at));
  }
  void load_state(const std::string& to, size_t input, const std::string& at);
  void store_state(size_t output, const std::string& from, const std::string& at);
  void sums();
  void reset_sums(const GateActivation& f);
  void cells(const std::vector<GateActivation>& f);
  void activated(const GateActivation& f, const std::string& name, const std::string& value) {
    emit_activation(w_, r_, f, name, value, type_);
  }

  LayerWriter& w_;
  const Node& n_;
  Recurrence r_;
  DType dtype_;
  std::string type_, hidden_;
  RowStrides stride_;
};

void Writer::write() {
  w_.include("sinter/scalar.h");
  w_.include("sinter/dims.h");
  const Dim depth = r_.inputs + r_.hidden;
  w_.flops(r_.steps * r_.batch * Dim(r_.directions * r_.gates * 2) * r_.hidden * depth);
  w_.summary(fmt::format("{} of {} as plain loops", n_.op->name, name_of(dtype_)));
  const int64_t hidden = std::max<int64_t>(r_.hidden.hi(), 1);
  for (size_t i = 0; i < n_.inputs.size(); ++i)
    if (n_.inputs[i]) w_.input(i);
  w_.scratch("of_x", type_, r_.gates * hidden);
  w_.scratch("of_h", type_, r_.gates * hidden);
  w_.scratch("h", type_, hidden);
  if (r_.cell == Cell::kLstm) w_.scratch("cell", type_, hidden);
  emit_length_check(w_, r_);
  for (size_t d = 0; d < static_cast<size_t>(r_.directions); ++d) {
    w_.out.put(loop_text("n", w_.dim(r_.batch)));
    const std::string state = fmt::format("n * {} + {} * {}", stride_.state_row, d, stride_.state_direction);
    w_.out.line("const std::int64_t length = {};", has(4) ? w_.input(4) + "[n]" : w_.dim(r_.steps));
    load_state("h", 5, state);
    if (r_.cell == Cell::kLstm) load_state("cell", 6, state);
    w_.out.line("constexpr std::int64_t d = {};", d);
    w_.out.put(loop_text("s", "length"));
    w_.out.line("const std::int64_t t = {};", r_.reverse(static_cast<int64_t>(d)) ? "length - 1 - s" : "s");
    sums();
    if (r_.cell == Cell::kGru && !r_.linear_before_reset) reset_sums(r_.activations[d][0]);
    cells(r_.activations[d]);
    const std::string y =
        fmt::format("t * {} + n * {} + d * {}", stride_.y_step, stride_.y_row, stride_.y_direction);
    store_state(0, "h", y);
    w_.out.line("}}");
    if (n_.has_output(0) && has(4)) {
      w_.out.line("for (std::int64_t t = length; t < {}; ++t) {{", w_.dim(r_.steps));
      store_state(0, "", y);
      w_.out.line("}}");
    }
    store_state(1, "h", state);
    store_state(2, "cell", state);
    w_.out.line("}}");
  }
  if (has(4)) w_.out.line("return 0;");
}

void Writer::load_state(const std::string& to, size_t input, const std::string& at) {
  const std::string zero = fmt::format("static_cast<{}>(0)", type_), started = has(4) ? "length > 0 ? " : "";
  w_.out.line("for (std::int64_t j = 0; j < {}; ++j) {}[j] = {};", hidden_, to,
              has(input) ? started + element(input, at + " + j") + (has(4) ? " : " + zero : "") : zero);
}
void Writer::store_state(size_t output, const std::string& from, const std::string& at) {
  if (!n_.has_output(output)) return;
  const std::string value = from.empty() ? fmt::format("static_cast<{}>(0)", type_) : from + "[j]";
  w_.out.line("for (std::int64_t j = 0; j < {}; ++j) {}[{} + j] = {};", hidden_, w_.output(output), at,
              store_text(dtype_, value));
}

// of_x = W x + Wb and of_h = R h + Rb, of all gates.
void Writer::sums() {
  const std::string rows = fmt::format("{} * {}", r_.gates, hidden_), inputs = w_.dim(r_.inputs);
  w_.out.put(loop_text("i", rows));
  const auto bias = [&](const std::string& at) {
    return has(3) ? element(3, at) : fmt::format("static_cast<{}>(0)", type_);
  };
  w_.out.line("{} of_input = {};", type_, bias(fmt::format("d * 2 * {} + i", rows)));
  w_.out.put(loop_text("k", inputs));
  w_.out.line("of_input += {} * {};",
              element(0, fmt::format("t * {} + n * {} + k", stride_.x_step, stride_.x_row)),
              element(1, fmt::format("(d * {} + i) * {} + k", rows, inputs)));
  w_.out.line("}}");
  w_.out.line("of_x[i] = of_input;");
  w_.out.line("{} of_state = {};", type_, bias(fmt::format("(d * 2 + 1) * {} + i", rows)));
  w_.out.put(loop_text("k", hidden_));
  w_.out.line("of_state += h[k] * {};", element(2, fmt::format("(d * {} + i) * {} + k", rows, hidden_)));
  w_.out.line("}}");
  w_.out.line("of_h[i] = of_state;");
  w_.out.line("}}");
}

// GRU with linear_before_reset = 0: the hidden gate's sum is of r * h, which takes the place of gate r.
void Writer::reset_sums(const GateActivation& f) {
  w_.out.put(loop_text("j", hidden_));
  w_.out.line("const std::int64_t gate = {} + j;", hidden_);
  activated(f, "reset", "of_x[gate] + of_h[gate]");
  w_.out.line("of_x[gate] = reset * h[j];");
  w_.out.line("}}");
  w_.out.put(loop_text("j", hidden_));
  const std::string row = fmt::format("d * 3 * {0} + 2 * {0} + j", hidden_);
  w_.out.line("{} of_state = {};", type_,
              has(3) ? element(3, fmt::format("(d * 2 + 1) * 3 * {0} + 2 * {0} + j", hidden_))
                     : fmt::format("static_cast<{}>(0)", type_));
  w_.out.put(loop_text("k", hidden_));
  w_.out.line("of_state += of_x[{} + k] * {};", hidden_,
              element(2, fmt::format("({}) * {} + k", row, hidden_)));
  w_.out.line("}}");
  w_.out.line("of_h[2 * {} + j] = of_state;", hidden_);
  w_.out.line("}}");
}

void Writer::cells(const std::vector<GateActivation>& f) {
  w_.out.put(loop_text("j", hidden_));
  const auto gate = [&](int g) {
    return fmt::format("of_x[{0} * {1} + j] + of_h[{0} * {1} + j]", g, hidden_);
  };
  if (r_.cell == Cell::kRnn) {
    activated(f[0], "after", gate(0));
    w_.out.line("h[j] = after;");
  } else if (r_.cell == Cell::kGru) {
    activated(f[0], "update", gate(0));
    std::string of_h = fmt::format("of_h[2 * {} + j]", hidden_);
    if (r_.linear_before_reset) {
      activated(f[0], "reset", gate(1));
      of_h = "reset * " + of_h;
    }
    activated(f[1], "now", fmt::format("of_x[2 * {} + j] + {}", hidden_, of_h));
    w_.out.line("h[j] = (static_cast<{}>(1) - update) * now + update * h[j];", type_);
  } else {
    const auto peep = [&](int g, const std::string& cell) {
      if (!has(7)) return std::string();
      return fmt::format(" + {} * {}", element(7, fmt::format("(d * 3 + {}) * {} + j", g, hidden_)), cell);
    };
    activated(f[0], "in", gate(0) + peep(0, "cell[j]"));
    if (r_.input_forget)
      w_.out.line("const {0} forget = static_cast<{0}>(1) - in;", type_);
    else
      activated(f[0], "forget", gate(2) + peep(2, "cell[j]"));
    activated(f[1], "update", gate(3));
    w_.out.line("const {} now = forget * cell[j] + in * update;", type_);
    activated(f[0], "open", gate(1) + peep(1, "now"));
    emit_activation(w_, r_, f[2], "shown", "now", type_, false);
    w_.out.line("cell[j] = now;");
    w_.out.line("h[j] = open * shown;");
  }
  w_.out.line("}}");
}

}  // namespace

void emit_recurrent_plain(LayerWriter& w) { Writer(w).write(); }

}  // namespace sinter
