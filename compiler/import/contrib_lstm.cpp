// DynamicQuantizeLSTM of domain com.microsoft: an LSTM whose weights are bytes, and whose inputs and states
// are rounded to bytes before they meet them.
//
// The inputs of all steps share one scale and zero point, as DynamicQuantizeLinear finds them; the states of
// all sequences do in each step. So it becomes an LSTM of such inputs, of weights [directions, inputs, gates]
// turned and dequantised, with the attribute `quantized_state` (ops/sequences/recurrent.h). Products are
// exact in float32 but for what the sums round. ONNX Runtime gives a sequence of its own scale where it has a
// thread for it; with one thread it does what is done here.
//
// Sequences of unequal lengths go on together, forward: what is to go backward is turned within its length.
// An input that is 1 behind a sequence's end drives its gates so far that its cell stays and its state is 0,
// which widens no range.
#include "import/upgrade.h"

namespace sinter {
namespace {

Attributes to_type(DType t) {
  Attributes a;
  a.set("to", static_cast<int64_t>(onnx_of(t)));
  return a;
}

const TensorType& type_of(Rewrite& r, size_t input, const char* what) {
  Value* v = r.node.input(input);
  if (!v) r.fail(fmt::format("{} is missing", what));
  const TensorType* t = r.type(v);
  if (!t) r.fail(fmt::format("the type of {} is not known", what));
  return *t;
}

// The bytes at `weights` [directions, rows, gates], with scale and zero point at `steps` and behind it, one
// for each direction or for each of its gates, as floats [directions, gates, rows].
Value* real_weights(Rewrite& r, size_t weights, size_t steps, const char* what) {
  const TensorType& w = type_of(r, weights, what);
  if (w.shape.size() != 3 || (w.dtype != DType::kI8 && w.dtype != DType::kU8))
    r.fail(fmt::format("{} is not of bytes with three axes", what));
  // Against the weights: [directions, 1, 1 or gates].
  const auto spread = [&](size_t i) {
    const size_t rank = type_of(r, i, "a scale or zero point").shape.size();
    if (rank != 1 && rank != 2) r.fail(fmt::format("a scale or zero point of {} has {} axes", what, rank));
    return r.before("Unsqueeze",
                    {r.node.input(i), rank == 1 ? r.constant({1, 2}, "axes") : r.constant({1}, "axes")});
  };
  Value* real = r.before("Cast", {r.node.input(weights)}, to_type(DType::kF32));
  if (r.node.input(steps + 1))
    real = r.before("Sub", {real, r.before("Cast", {spread(steps + 1)}, to_type(DType::kF32))});
  Attributes turn;
  turn.set("perm", std::vector<int64_t>{0, 2, 1});
  return r.before("Transpose", {r.before("Mul", {real, spread(steps)})}, turn);
}

// x rounded to the 256 steps of DynamicQuantizeLinear.
Value* in_steps(Rewrite& r, Value* x) {
  const auto number = [&](float v, const char* name) { return r.constant(Tensor::scalar(v), name); };
  Attributes whole;
  whole.set("keepdims", int64_t{0});
  Value* none = number(0, "zero");
  Value* low = r.before("Min", {r.before("ReduceMin", {x}, whole), none});
  Value* high = r.before("Max", {r.before("ReduceMax", {x}, whole), none});
  Value *range = r.before("Sub", {high, low}), *most = number(255, "most");
  Value* scale =
      r.before("Where", {r.before("Equal", {range, none}), number(1, "one"), r.before("Div", {range, most})});
  Value* zero = r.before("Clip", {r.before("Neg", {r.before("Div", {low, scale})}), none, most});
  zero = r.before("Cast", {r.before("Round", {zero})}, to_type(DType::kU8));
  Value* bytes = r.before("QuantizeLinear", {x, scale, zero});
  return r.before("DequantizeLinear", {bytes, scale, zero});
}

Attributes with(const char* name, Attribute value) {
  Attributes a;
  a.set(name, std::move(value));
  return a;
}
Value* axes(Rewrite& r, std::vector<int64_t> list) { return r.constant(list, "axes"); }

// [steps, 1] < [1, sequences]: whether a sequence has the step. `lens` are int64.
Value* live_steps(Rewrite& r, Value* x, Value* lens, Value*& step) {
  Value* steps =
      r.before("Squeeze",
               {r.before("Slice", {r.before("Shape", {x}), r.constant({0}, "first"), r.constant({1}, "end")}),
                axes(r, {0})});
  const auto scalar = [&](int64_t v) {
    return r.constant(Tensor::of(std::vector<int64_t>{v}).reshaped({}), "number");
  };
  step = r.before("Unsqueeze", {r.before("Range", {scalar(0), steps, scalar(1)}), axes(r, {1})});
  return r.before("Less", {step, r.before("Unsqueeze", {lens, axes(r, {0})})});
}

// x, of which steps behind all sequences are 0: they count for no range.
Value* without_idle_steps(Rewrite& r, Value* x, Value* lens, Value* step) {
  Value* some = r.before("Less", {step, r.before("ReduceMax", {lens}, with("keepdims", int64_t{0}))});
  return r.before("Where",
                  {r.before("Unsqueeze", {some, axes(r, {2})}), x, r.constant(Tensor::scalar(0.f), "zero")});
}

// LSTMs of one direction each in place of the node, over sequences that end where `lens` says.
class UnequalSequences {
 public:
  // `in`: of the LSTM, inputs already in steps.
  UnequalSequences(Rewrite& r, std::vector<Value*> in, Value* lens, Value* step, Value* live)
      : r_(r), in_(std::move(in)), lens_(lens), step_(step), live_(live), attributes_(r.node.attributes) {
    const std::string direction = attributes_.text("direction", "forward");
    directions_ = direction == "bidirectional" ? 2 : 1;
    first_reverse_ = direction == "reverse";
    const std::vector<std::string> names = attributes_.texts("activations");
    for (size_t i = 0; i < names.size(); i += 3)
      plain_ = plain_ && (names[i] == "Sigmoid" || names[i] == "sigmoid");
    if (!plain_ || attributes_.has("clip") || attributes_.has("activation_alpha") ||
        attributes_.has("activation_beta"))
      r.fail(
          "sequence_lens of more than one sequence are supported with Sigmoid gates and without clip only");
  }

  void lower() {
    const std::vector<Value*> outputs = r_.node.outputs;
    std::vector<Value*> y, h, c;
    for (int64_t d = 0; d < directions_; ++d) {
      const Direction one = direction(d);
      y.push_back(one.y), h.push_back(one.h), c.push_back(one.c);
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i])
        r_.then("Concat", i == 0 ? y : i == 1 ? h : c, outputs[i], with("axis", int64_t{i == 0}));
  }

 private:
  struct Direction {
    Value *y, *h, *c;
  };
  Value* part(Value* v, int64_t d) {
    if (!v || directions_ == 1) return v;
    return r_.before("Slice", {v, r_.constant({d}, "first"), r_.constant({d + 1}, "end"), axes(r_, {0})});
  }
  Value* turned(Value* v) {
    Attributes a = with("time_axis", int64_t{0});
    a.set("batch_axis", int64_t{1});
    return r_.before("ReverseSequence", {v, lens_}, a);
  }

  // The weights of the input that is 1 behind an end: [1, gates, 1], gates in the order i, o, f, c.
  Value* of_end(int64_t hidden) {
    constexpr float kFar = 1e6f;  // Sigmoid of it is 1
    std::vector<float> w(static_cast<size_t>(4 * hidden));
    for (int64_t k = 0; k < 3 * hidden; ++k) w[static_cast<size_t>(k)] = k < 2 * hidden ? -kFar : kFar;
    return r_.constant(Tensor::of(w, {1, 4 * hidden, 1}), "end");
  }

  Direction direction(int64_t d) {
    const bool reverse = first_reverse_ || d == 1;
    Value* ended = r_.before("Cast", {r_.before("Not", {live_})}, to_type(DType::kF32));
    std::vector<Value*> in{reverse ? turned(in_[0]) : in_[0]};
    in[0] = r_.before("Concat", {in[0], r_.before("Unsqueeze", {ended, axes(r_, {2})})},
                      with("axis", int64_t{2}));
    in.push_back(r_.before("Concat", {part(in_[1], d), of_end(attributes_.integer("hidden_size", 0))},
                           with("axis", int64_t{2})));
    for (size_t i = 2; i < 8; ++i) in.push_back(i == 4 ? nullptr : part(in_[i], d));
    Draft lstm;
    lstm.op = "LSTM";
    lstm.name = r_.node.name;
    lstm.inputs = std::move(in);
    lstm.attributes = attributes_;
    lstm.attributes.set("direction", std::string("forward"));
    lstm.attributes.set("quantized_state", int64_t{1});
    if (const auto names = attributes_.texts("activations"); names.size() == 6)
      lstm.attributes.set("activations",
                          std::vector<std::string>(names.begin() + 3 * d, names.begin() + 3 * d + 3));
    Value *y = r_.fresh("Y"), *c = r_.fresh("Y_c");
    lstm.outputs = {y, nullptr, c};
    if (d == 0)
      r_.node = std::move(lstm);
    else
      r_.after.push_back(std::move(lstm));
    return finished(y, c, reverse);
  }

  // What a direction's steps [steps, 1, sequences, hidden] and cells mean.
  Direction finished(Value* y, Value* c, bool reverse) {
    Value* zero = r_.constant(Tensor::scalar(0.f), "zero");
    const auto then = [&](const char* op, std::vector<Value*> in, Attributes a = {}) {
      Value* v = r_.fresh(op);
      r_.then(op, std::move(in), v, std::move(a));
      return v;
    };
    Value* lens = r_.before("Unsqueeze", {lens_, axes(r_, {0})});
    const auto over_steps = [&](Value* v) { return r_.before("Unsqueeze", {v, axes(r_, {1, 3})}); };
    Value* last = r_.before("Equal", {r_.before("Add", {step_, r_.constant({1}, "one")}), lens});
    Value* some =
        r_.before("Unsqueeze", {r_.before("Less", {r_.constant({0}, "none"), lens_}), axes(r_, {0, 2})});
    Direction out{};
    out.y = then("Where", {over_steps(live_), y, zero});
    out.h = then("ReduceSum", {then("Where", {over_steps(last), y, zero}), axes(r_, {0})},
                 with("keepdims", int64_t{0}));
    out.c = then("Where", {some, c, zero});
    if (!reverse) return out;
    Attributes a = with("time_axis", int64_t{0});
    a.set("batch_axis", int64_t{1});
    Value* turned = then("ReverseSequence", {then("Squeeze", {out.y, axes(r_, {1})}), lens_}, a);
    out.y = then("Unsqueeze", {turned, axes(r_, {1})});
    return out;
  }

  Rewrite& r_;
  const std::vector<Value*> in_;
  Value *const lens_, *const step_, *const live_;
  const Attributes attributes_;
  int64_t directions_ = 1;
  bool first_reverse_ = false, plain_ = true;
};

}  // namespace

bool lower_contrib_lstm(Rewrite& r) {
  if (r.node.op != "DynamicQuantizeLSTM") return false;
  if (r.node.inputs.size() != 12) r.fail(fmt::format("it has {} inputs, not 12", r.node.inputs.size()));
  const TensorType& x = type_of(r, 0, "X");
  if (x.dtype != DType::kF32) r.fail("X is not of float32");
  if (x.shape.size() != 3) r.fail(fmt::format("X has {} axes", x.shape.size()));
  Value *given = r.node.input(0), *lens = r.node.input(4), *step = nullptr, *live = nullptr;
  if (lens) {
    lens = r.before("Cast", {lens}, to_type(DType::kI64));
    live = live_steps(r, given, lens, step);
    given = without_idle_steps(r, given, lens, step);
  }
  std::vector<Value*> in{in_steps(r, given), real_weights(r, 1, 8, "W"), real_weights(r, 2, 10, "R")};
  for (size_t i = 3; i < 8; ++i) in.push_back(r.node.input(i));
  r.node.domain.clear();
  if (lens && !x.shape[1].is(1)) {
    UnequalSequences(r, std::move(in), lens, step, live).lower();
    return true;
  }
  r.node.op = "LSTM";
  r.node.inputs = std::move(in);
  r.node.attributes.set("quantized_state", int64_t{1});
  return true;
}

}  // namespace sinter
