// RNN, GRU and LSTM (ONNX opset 22): one layer of a recurrent network over a sequence, forward, reverse or
// both.
//
// Weights are W [directions, gates * hidden, inputs], R [directions, gates * hidden, hidden] and
// B [directions, 2 * gates * hidden] (of W, then of R). Layout 0 has X [steps, batch, inputs],
// Y [steps, directions, batch, hidden] and states [directions, batch, hidden]; layout 1 has the batch first
// everywhere. A sequence that is shorter than the others leaves its state as it is after its last step and
// zeros in Y; reversed, it begins at its own last step. Where the text of the operators leaves it open, this
// follows ONNX Runtime: a sequence of length 0 ends in states of zeros; `clip` bounds the sums of the gates,
// not the cell state that the last activation gets; numbers of `activation_alpha` and `activation_beta` are
// handed out in order to the activations that have such a parameter.
#include "ops/sequences/recurrent.h"

#include <algorithm>
#include <cmath>

#include "ops/products/contraction.h"

namespace sinter {
namespace {

using Kind = GateActivation::Kind;

struct ActivationRow {
  const char* name;
  Kind kind;
  bool has_alpha, has_beta;
  float alpha, beta;  // where the attributes give none
};
const ActivationRow kActivations[] = {
    {"relu", Kind::kRelu, false, false, 0, 0},
    {"tanh", Kind::kTanh, false, false, 0, 0},
    {"sigmoid", Kind::kSigmoid, false, false, 0, 0},
    {"affine", Kind::kAffine, true, true, 1, 0},
    {"leakyrelu", Kind::kLeakyRelu, true, false, 0.01f, 0},
    {"thresholdedrelu", Kind::kThresholdedRelu, true, false, 1, 0},
    {"scaledtanh", Kind::kScaledTanh, true, true, 1, 1},
    {"hardsigmoid", Kind::kHardSigmoid, true, true, 0.2f, 0.5f},
    {"elu", Kind::kElu, true, false, 1, 0},
    {"softsign", Kind::kSoftsign, false, false, 0, 0},
    {"softplus", Kind::kSoftplus, false, false, 0, 0},
};

const ActivationRow* activation_row(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const ActivationRow& row : kActivations)
    if (name == row.name) return &row;
  return nullptr;
}

void read_activations(const Node& n, Recurrence& r, const std::function<void(const std::string&)>& fail) {
  const size_t each = r.cell == Recurrence::Cell::kLstm ? 3 : r.cell == Recurrence::Cell::kGru ? 2 : 1;
  std::vector<std::string> names = n.attributes.texts("activations");
  if (names.empty()) {
    for (int64_t d = 0; d < r.directions; ++d)
      for (size_t i = 0; i < each; ++i) names.push_back(each > 1 && i == 0 ? "Sigmoid" : "Tanh");
  }
  if (names.size() != each * static_cast<size_t>(r.directions))
    fail(fmt::format("{} activations for {} direction{} of {}", names.size(), r.directions,
                     r.directions == 1 ? "" : "s", each));
  const std::vector<float> alphas = n.attributes.reals("activation_alpha"),
                           betas = n.attributes.reals("activation_beta");
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const ActivationRow* row = activation_row(names[i]);
    if (!row) {
      fail(fmt::format("there is no activation {}", sinter::quoted(names[i])));
      return;
    }
    GateActivation a{row->kind, row->alpha, row->beta};
    if (row->has_alpha && alpha < alphas.size()) a.alpha = alphas[alpha++];
    if (row->has_beta && beta < betas.size()) a.beta = betas[beta++];
    if (i % each == 0) r.activations.emplace_back();
    r.activations.back().push_back(a);
  }
}

double activate(const GateActivation& a, double x) {
  const double alpha = static_cast<double>(a.alpha), beta = static_cast<double>(a.beta);
  switch (a.kind) {
    case Kind::kRelu: return x < 0 ? 0 : x;
    case Kind::kTanh: return std::tanh(x);
    case Kind::kSigmoid: return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
    case Kind::kAffine: return alpha * x + beta;
    case Kind::kLeakyRelu: return x < 0 ? alpha * x : x;
    case Kind::kThresholdedRelu: return x >= alpha ? x : 0;
    case Kind::kScaledTanh: return alpha * std::tanh(beta * x);
    case Kind::kHardSigmoid: return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    case Kind::kElu: return x < 0 ? alpha * std::expm1(x) : x;
    case Kind::kSoftsign: return x / (1 + std::fabs(x));
    case Kind::kSoftplus: return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
  }
  return x;
}

// --- infer

void require_shape(Inference& x, size_t i, const std::vector<Dim>& want, const std::string& what) {
  if (!x.has(i)) return;
  x.require(x.shape(i).size() == want.size(),
            fmt::format("{} is {}, but must have {} axes", what, text(x.shape(i)), want.size()));
  for (size_t a = 0; a < want.size(); ++a)
    x.require_equal(x.shape(i)[a], want[a], fmt::format("axis {} of {}", a, what));
}

void infer_recurrent(Inference& x) {
  const DType t = x.dtype(0);
  x.require(is_float(t), fmt::format("not defined for {}", name_of(t)));
  for (size_t i = 1; i < x.in.size(); ++i)
    if (x.has(i) && i != 4)
      x.require(x.dtype(i) == t, fmt::format("inputs of types {} and {}", name_of(t), name_of(x.dtype(i))));
  if (x.has(4)) x.require(x.dtype(4) == DType::kI32, "sequence_lens is not int32");
  x.require(x.rank(0) == 3, fmt::format("X {} has not three axes", text(x.shape(0))));
  x.require(x.has(1) && x.has(2) && x.rank(1) == 3 && x.rank(2) == 3, "W or R has not three axes");
  const auto fail = [&](const std::string& why) { x.fail(why); };
  const Recurrence r = recurrence_of(x.node, x.shape(0), x.shape(2), fail);
  const Dim directions(r.directions), rows = r.hidden * Dim(r.gates);
  require_shape(x, 1, {directions, rows, r.inputs}, "W");
  require_shape(x, 2, {directions, rows, r.hidden}, "R");
  require_shape(x, 3, {directions, rows * Dim(2)}, "B");
  require_shape(x, 4, {r.batch}, "sequence_lens");
  const Shape state =
      r.batch_first ? Shape{r.batch, directions, r.hidden} : Shape{directions, r.batch, r.hidden};
  require_shape(x, 5, state, "the initial state");
  require_shape(x, 6, state, "the initial cell state");
  require_shape(x, 7, {directions, r.hidden * Dim(3)}, "P");
  const Shape y = r.batch_first ? Shape{r.batch, r.steps, directions, r.hidden}
                                : Shape{r.steps, directions, r.batch, r.hidden};
  for (size_t i = 0; i < x.out.size(); ++i)
    if (x.out[i].present) x.set(i, t, i == 0 ? y : state);
}

// --- eval

// The tensors of one evaluation, in the type that sums are taken in.
template <class T>
struct Cells {
  const Evaluation& e;
  const Recurrence& r;
  int64_t steps, batch, inputs, hidden;
  Tensor x, w, rw, b, h0, c0, p, y, yh, yc;

  int64_t x_row(int64_t s, int64_t n) const { return r.batch_first ? n * steps + s : s * batch + n; }
  int64_t y_row(int64_t s, int64_t d, int64_t n) const {
    return r.batch_first ? (n * steps + s) * r.directions + d : (s * r.directions + d) * batch + n;
  }
  int64_t state_row(int64_t d, int64_t n) const {
    return r.batch_first ? n * r.directions + d : d * batch + n;
  }
  struct State {
    std::vector<T> h, c;
  };
  int64_t length_of(int64_t n) const { return e.has(4) ? e.in[4].integer(n) : steps; }
  void run(int64_t d);
  State first_state(int64_t d, int64_t n) const;
  void step(int64_t d, int64_t n, int64_t t, const T* projected, const std::vector<T>& of_r, State& state);
  std::vector<std::vector<T>> in_steps(const std::vector<State>& states, int64_t t) const;
};

template <class T>
typename Cells<T>::State Cells<T>::first_state(int64_t d, int64_t n) const {
  const size_t size = static_cast<size_t>(hidden);
  State s{std::vector<T>(size, 0), std::vector<T>(size, 0)};
  const bool started = length_of(n) > 0 || !e.has(4);
  if (h0 && started) std::copy_n(h0.as<T>() + state_row(d, n) * hidden, hidden, s.h.begin());
  if (c0 && started) std::copy_n(c0.as<T>() + state_row(d, n) * hidden, hidden, s.c.begin());
  return s;
}

// The states of the sequences that have a step t, in the 256 steps of DynamicQuantizeLinear for all of them.
template <class T>
std::vector<std::vector<T>> Cells<T>::in_steps(const std::vector<State>& states, int64_t t) const {
  float low = 0, high = 0;
  for (int64_t n = 0; n < batch; ++n)
    for (const T v : states[static_cast<size_t>(n)].h) {
      if (t >= length_of(n)) break;
      low = std::min(low, static_cast<float>(v)), high = std::max(high, static_cast<float>(v));
    }
  const float scale = low == high ? 1 : (high - low) / 255;
  const float zero = std::nearbyint(std::min(std::max(-low / scale, 0.0f), 255.0f));
  std::vector<std::vector<T>> out;
  for (const State& s : states) {
    out.push_back(s.h);
    for (T& v : out.back()) {
      const float q = std::nearbyint(static_cast<float>(v) / scale) + zero;
      v = static_cast<T>((std::min(std::max(q, 0.0f), 255.0f) - zero) * scale);
    }
  }
  return out;
}

// Step t of sequence n; R multiplies of_r.
template <class T>
void Cells<T>::step(int64_t d, int64_t n, int64_t t, const T* projected, const std::vector<T>& of_r,
                    State& state) {
  using Cell = Recurrence::Cell;
  const int64_t rows = r.gates * hidden, length = length_of(n);
  const T* wb = b ? b.as<T>() + d * 2 * rows : nullptr;
  const T* rb = b ? wb + rows : nullptr;
  const T* peephole = p ? p.as<T>() + d * 3 * hidden : nullptr;
  const std::vector<GateActivation>& act = r.activations[static_cast<size_t>(d)];
  const size_t size = static_cast<size_t>(hidden);
  std::vector<T> next(size), reset(size), of_h(static_cast<size_t>(rows)), of_reset(size);
  std::vector<T>&h = state.h, &c = state.c;
  const auto bound = [&](double v) {
    return r.clips ? std::min(std::max(v, -static_cast<double>(r.clip)), static_cast<double>(r.clip)) : v;
  };
  const T* weights = rw.as<T>() + d * rows * hidden;
  const int64_t s = r.reverse(d) ? length - 1 - t : t;
  const T* in = projected + x_row(s, n) * rows;
  multiply(false, true, 1, rows, hidden, of_r.data(), hidden, weights, hidden, of_h.data(), rows);
  // W x + Wb + R h + Rb of gate g and neuron j.
  const auto sum = [&](int64_t g, int64_t j, bool with_state = true) {
    const int64_t i = g * hidden + j;
    double v = static_cast<double>(in[i]);
    if (wb) v += static_cast<double>(wb[i]);
    if (!with_state) return v;
    if (rb) v += static_cast<double>(rb[i]);
    return v + static_cast<double>(of_h[static_cast<size_t>(i)]);
  };
  if (r.cell == Cell::kGru && !r.linear_before_reset) {
    for (int64_t j = 0; j < hidden; ++j)
      reset[static_cast<size_t>(j)] =
          static_cast<T>(activate(act[0], bound(sum(1, j)))) * h[static_cast<size_t>(j)];
    multiply(false, true, 1, hidden, hidden, reset.data(), hidden, weights + 2 * hidden * hidden, hidden,
             of_reset.data(), hidden);
  }
  for (int64_t j = 0; j < hidden; ++j) {
    const size_t k = static_cast<size_t>(j);
    const double before = static_cast<double>(h[k]);
    double after = 0;
    if (r.cell == Cell::kRnn) {
      after = activate(act[0], bound(sum(0, j)));
    } else if (r.cell == Cell::kGru) {
      const double z = activate(act[0], bound(sum(0, j)));
      const double of_state = r.linear_before_reset
                                  ? static_cast<double>(of_h[static_cast<size_t>(2 * hidden + j)])
                                  : static_cast<double>(of_reset[k]);
      double v = of_state + (rb ? static_cast<double>(rb[2 * hidden + j]) : 0.0);
      if (r.linear_before_reset) v *= activate(act[0], bound(sum(1, j)));
      after = activate(act[1], bound(sum(2, j, false) + v));
      after = (1 - z) * after + z * before;
    } else {
      const double cell = static_cast<double>(c[k]);
      const auto peep = [&](int64_t g, double v) {
        return peephole ? static_cast<double>(peephole[g * hidden + j]) * v : 0.0;
      };
      const double i = activate(act[0], bound(sum(0, j) + peep(0, cell)));
      const double f = r.input_forget ? 1 - i : activate(act[0], bound(sum(2, j) + peep(2, cell)));
      const double now = f * cell + i * activate(act[1], bound(sum(3, j)));
      const double o = activate(act[0], bound(sum(1, j) + peep(1, now)));
      c[k] = static_cast<T>(now);
      after = o * activate(act[2], now);
    }
    next[k] = static_cast<T>(after);
  }
  h.swap(next);
  if (y) std::copy(h.begin(), h.end(), y.as<T>() + y_row(s, d, n) * hidden);
}

template <class T>
void Cells<T>::run(int64_t d) {
  const int64_t rows = r.gates * hidden;
  std::vector<T> projected(static_cast<size_t>(steps * batch * rows));
  multiply(false, true, steps * batch, rows, inputs, x.as<T>(), inputs, w.as<T>() + d * rows * inputs, inputs,
           projected.data(), rows);
  std::vector<State> states;
  for (int64_t n = 0; n < batch; ++n) states.push_back(first_state(d, n));
  for (int64_t t = 0; t < steps; ++t) {
    const auto quantized = r.quantizes_state ? in_steps(states, t) : std::vector<std::vector<T>>{};
    for (size_t n = 0; n < states.size(); ++n)
      if (t < length_of(static_cast<int64_t>(n)))
        step(d, static_cast<int64_t>(n), t, projected.data(), r.quantizes_state ? quantized[n] : states[n].h,
             states[n]);
  }
  for (int64_t n = 0; n < batch; ++n) {
    const State& s = states[static_cast<size_t>(n)];
    if (yh) std::copy(s.h.begin(), s.h.end(), yh.as<T>() + state_row(d, n) * hidden);
    if (yc) std::copy(s.c.begin(), s.c.end(), yc.as<T>() + state_row(d, n) * hidden);
  }
}

void eval_recurrent(Evaluation& e) {
  const DType t = e.in[0].dtype(), work = contraction_dtype(t);
  Shape x(e.in[0].shape().begin(), e.in[0].shape().end()), rw(e.in[2].shape().begin(), e.in[2].shape().end());
  const Recurrence r = recurrence_of(e.node, x, rw, [&](const std::string& why) { e.fail(why); });
  const int64_t steps = r.steps.value();
  if (e.has(4))
    for (int64_t n = 0; n < e.in[4].size(); ++n)
      if (e.in[4].integer(n) < 0 || e.in[4].integer(n) > steps)
        e.fail(fmt::format("sequence {} has a length of {}, but there are {} steps", n, e.in[4].integer(n),
                           steps));
  const auto in = [&](size_t i) { return e.has(i) ? converted_if(e.in[i], work) : Tensor(); };
  const auto out = [&](size_t i) { return e.node.has_output(i) ? Tensor(work, e.out[i].shape()) : Tensor(); };
  const auto run = [&](auto tag) {
    Cells<decltype(tag)> cells{
        e,     r,     steps, r.batch.value(), r.inputs.value(), r.hidden.value(), in(0), in(1), in(2),
        in(3), in(5), in(6), in(7),           out(0),           out(1),           out(2)};
    for (int64_t d = 0; d < r.directions; ++d) cells.run(d);
    if (cells.y) e.out[0] = converted_if(cells.y, t);
    if (cells.yh) e.out[1] = converted_if(cells.yh, t);
    if (cells.yc) e.out[2] = converted_if(cells.yc, t);
  };
  if (work == DType::kF64)
    run(double{});
  else
    run(float{});
}

}  // namespace

Recurrence recurrence_of(const Node& n, const Shape& x, const Shape& rw,
                         const std::function<void(const std::string&)>& fail) {
  Recurrence r;
  const std::string_view op = n.op->name;
  const Attributes& a = n.attributes;
  r.cell = op == "LSTM"  ? Recurrence::Cell::kLstm
           : op == "GRU" ? Recurrence::Cell::kGru
                         : Recurrence::Cell::kRnn;
  r.gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  const std::string direction = a.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    fail(fmt::format("direction is {}", sinter::quoted(direction)));
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.first_reverse = direction == "reverse";
  const int64_t layout = a.integer("layout", 0);
  if (layout != 0 && layout != 1) fail(fmt::format("layout is {}", layout));
  r.batch_first = layout == 1;
  r.clips = a.has("clip");
  r.clip = a.real("clip", 0);
  if (r.clips && !(r.clip >= 0)) fail(fmt::format("clip is {}", r.clip));
  r.input_forget = a.integer("input_forget", 0) != 0;
  r.linear_before_reset = a.integer("linear_before_reset", 0) != 0;
  r.quantizes_state = r.cell == Recurrence::Cell::kLstm && a.integer("quantized_state", 0) != 0;
  read_activations(n, r, fail);
  r.steps = x[r.batch_first ? 1 : 0];
  r.batch = x[r.batch_first ? 0 : 1];
  r.inputs = x[2];
  r.hidden = rw[2];
  if (a.has("hidden_size") && r.hidden.is_static() && a.integer("hidden_size", 0) != r.hidden.value())
    fail(fmt::format("hidden_size is {}, but R is {}", a.integer("hidden_size", 0), text(rw)));
  return r;
}

bool is_recurrent(const Node& n) {
  const std::string_view op = n.op->name;
  return n.op->domain[0] == 0 && (op == "RNN" || op == "GRU" || op == "LSTM");
}

Recurrence recurrence_of(const Node& n) {
  return recurrence_of(n, n.inputs[0]->type.shape, n.inputs[2]->type.shape,
                       [&](const std::string& why) { bug(__FILE__, __LINE__, why); });
}

const std::vector<Op>& ops_recurrent() {
  static const std::vector<Op> table = {
      {.name = "RNN",
       .min_inputs = 3,
       .max_inputs = 6,
       .min_outputs = 0,
       .max_outputs = 2,
       .infer = infer_recurrent,
       .eval = eval_recurrent},
      {.name = "GRU",
       .min_inputs = 3,
       .max_inputs = 6,
       .min_outputs = 0,
       .max_outputs = 2,
       .infer = infer_recurrent,
       .eval = eval_recurrent},
      {.name = "LSTM",
       .min_inputs = 3,
       .max_inputs = 8,
       .min_outputs = 0,
       .max_outputs = 3,
       .infer = infer_recurrent,
       .eval = eval_recurrent},
  };
  return table;
}

}  // namespace sinter
