// Signal processing: DFT, STFT, HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix.
//
// Lengths and steps are operands that must be known (as Dims); signals come with the data, and so may the
// axis of a DFT. eval and generated code share runtime/sinter/fft.h.
#include "ops/sequences/signal.h"

#include "ops/elementwise/float_types.h"
#include "ops/movement/movement.h"
#include "sinter/fft.h"

namespace sinter {

std::optional<Dim> known_number(const Value* v) {
  const auto known = contents(v);
  return known && known->size() == 1 ? std::optional<Dim>((*known)[0]) : std::nullopt;
}

CosineWindow cosine_window_of(std::string_view op) {
  if (op == "HannWindow") return {{0.5, -0.5, 0}};
  if (op == "HammingWindow") return {{25.0 / 46, -21.0 / 46, 0}};
  return {{0.42, -0.5, 0.08}};
}

size_t dft_axis(const Node& n, size_t rank) {
  int64_t axis = -2;
  if (const Value* v = n.input(2)) axis = known_number(v)->value();
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}
Dim dft_default_length(const Node& n, const Dim& extent) {
  const bool half = n.attributes.integer("inverse", 0) != 0 && n.attributes.integer("onesided", 0) != 0;
  return half ? (extent - 1) * 2 : extent;
}
bool dft_in_double(const Attributes& a, const TensorType& signal, const Dim& length) {
  constexpr int64_t kNoChirp = 64;  // lengths that have no large prime factor
  const bool chirp =
      length.is_static() ? fft_shape(length.value(), false, false).padded != 0 : length.hi() > kNoChirp;
  return a.integer("double", 0) != 0 || signal.dtype == DType::kF64 || signal.shape.back().is(1) || chirp;
}
Dim dft_kept(const Node& n, const Dim& length) {
  const bool half = n.attributes.integer("inverse", 0) == 0 && n.attributes.integer("onesided", 0) != 0;
  return half ? floordiv(length, 2) + 1 : length;
}

namespace {

// The one integer of operand i, at least `least`.
Dim number(Inference& x, size_t i, int64_t least, const std::string& what) {
  require_index_type(x, i, what);
  x.require(x.rank(i) == 0 || (x.rank(i) == 1 && x.shape(i)[0].is(1)),
            fmt::format("its {} is not one number", what));
  const Dim v = known_elements(x, i, what)[0];
  x.require(v.hi() >= least, fmt::format("its {} is {}", what, v.text()));
  require_le(x, least, v, what);
  return v;
}
// 1 (real) or 2 (complex).
int64_t parts_of(const Inference& x, const Dim& last) {
  x.require(last.is(1) || last.is(2),
            fmt::format("the last axis is {}, not 1 (real) or 2 (complex)", last.text()));
  return last.value();
}

// The run tells the axis. Where the transform changes its extent, any axis may have the changed one. A
// transform of no length, which some axes may be too short to be more than, is refused when it runs.
void infer_dft_of_any_axis(Inference& x, Shape out) {
  const std::optional<Dim> length = x.has(1) ? std::optional(number(x, 1, 1, "dft_length")) : std::nullopt;
  for (size_t a = 0; a + 1 < out.size(); ++a) {
    const Dim n = length ? *length : dft_default_length(x.node, out[a]);
    const Dim made = dft_kept(x.node, n);
    if (!(made == out[a]))
      out[a] = x.operand_extent(fmt::format("axis{}", a), std::max(out[a].hi(), made.hi()));
  }
  x.set(0, x.dtype(0), std::move(out));
}

// DFT: the lines along an axis, transformed. Real lines may give only the first half of their symmetric
// result (onesided), and an inverse take only that half.
void infer_dft(Inference& x) {
  x.require(is_float(x.dtype(0)), "only for floats");
  x.require(x.rank(0) >= 2, fmt::format("a signal of shape {}", text(x.shape(0))));
  const int64_t parts = parts_of(x, x.shape(0).back()), rank = x.rank(0);
  const bool inverse = x.attributes().integer("inverse", 0) != 0,
             onesided = x.attributes().integer("onesided", 0) != 0;
  x.require(!onesided || inverse || parts == 1, "onesided needs a real signal");
  x.require(!onesided || !inverse || parts == 2, "the inverse of a half needs complex numbers");
  Shape out = x.shape(0);
  out.back() = onesided && inverse ? 1 : 2;
  if (x.has(2)) {
    require_index_type(x, 2, "axis");
    x.require_equal(product(x.shape(2)), 1, "elements of its axis");
    if (!x.integers(2)) return infer_dft_of_any_axis(x, std::move(out));
  }
  const int64_t axis = x.check_axis(x.has(2) ? (*x.integers(2))[0] : -2, rank);
  x.require(axis != rank - 1, "its axis is that of real and imaginary parts");
  Dim& extent = out[static_cast<size_t>(axis)];
  const Dim length = x.has(1) ? number(x, 1, 1, "dft_length") : dft_default_length(x.node, extent);
  x.require(length.hi() >= 1, fmt::format("a transform of length {}", length.text()));
  require_le(x, 1, length, "length of the transform");
  extent = dft_kept(x.node, length);
  x.set(0, x.dtype(0), std::move(out));
}

void eval_dft(Evaluation& e) {
  const Tensor &x = e.in[0], &y = e.out[0];
  int64_t axis = e.has(2) ? e.in[2].integer(0) : -2;
  if (axis < 0) axis += x.rank();
  const bool inverse = e.attributes().integer("inverse", 0) != 0;
  const bool half = inverse && e.attributes().integer("onesided", 0) != 0;
  const int64_t length = e.has(1) ? e.in[1].integer(0) : dft_default_length(e.node, x.dim(axis)).value();
  const DftGeometry g = dft_geometry(x.shape().data(), x.rank() - 1, axis, x.dim(x.rank() - 1), length,
                                     y.dim(axis), half ? 1 : 2, inverse, half);
  with_float(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const auto transformed = [&](auto real) {
      const FftShape shape = dft_shape(g);
      std::vector<Complex<decltype(real)>> work(static_cast<size_t>(shape.work())),
          tables(static_cast<size_t>(shape.tables()));
      fft_tables(shape, work.data(), tables.data());
      dft(x.as<T>(), g, shape, tables.data(), work.data(), e.out[0].as<T>());
    };
    if (dft_in_double(e.attributes(), {x.dtype(), Shape(x.shape().begin(), x.shape().end())}, length))
      transformed(double{});
    else
      transformed(float{});
  });
}

// STFT: the transforms of frames of the signal [batch, length, parts], each times the window. A real signal
// may leave its one part out: [batch, length].
void infer_stft(Inference& x) {
  x.require(is_float(x.dtype(0)), "only for floats");
  x.require(x.rank(0) == 2 || x.rank(0) == 3, fmt::format("a signal of shape {}", text(x.shape(0))));
  const int64_t parts = x.rank(0) == 2 ? 1 : parts_of(x, x.shape(0)[2]);
  const Dim step = number(x, 1, 1, "frame_step");
  Dim length = x.shape(0)[1];
  if (x.has(2)) {
    x.require(x.dtype(2) == x.dtype(0), "its window has another type than the signal");
    x.require(x.rank(2) == 1, fmt::format("a window of shape {}", text(x.shape(2))));
    length = x.shape(2)[0];
  }
  if (x.has(3)) {
    const Dim given = number(x, 3, 1, "frame_length");
    length = x.has(2) ? x.require_equal(given, length, "frame_length and window") : given;
  }
  require_le(x, 1, length, "length of a frame");
  require_le(x, length, x.shape(0)[1], "a frame fits the signal");
  const bool onesided = x.attributes().integer("onesided", 1) != 0;
  x.require(!onesided || parts == 1, "onesided needs a real signal");
  const Dim frames = floordiv(x.shape(0)[1] - length, step) + 1;
  x.require(frames.hi() >= 1,
            fmt::format("frames of {} in a signal of {}", length.text(), x.shape(0)[1].text()));
  x.set(0, x.dtype(0), {x.shape(0)[0], frames, onesided ? floordiv(length, 2) + 1 : length, Dim(2)});
}

void eval_stft(Evaluation& e) {
  const Tensor &x = e.in[0], &y = e.out[0];
  const int64_t length = e.has(3) ? e.in[3].integer(0) : e.has(2) ? e.in[2].size() : x.dim(1);
  const int64_t parts = x.rank() == 2 ? 1 : x.dim(2);
  const StftGeometry g{x.dim(0), x.dim(1), parts, y.dim(1), e.in[1].integer(0), length, y.dim(2)};
  with_float(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const FftShape shape = stft_shape(g);
    std::vector<Complex<double>> work(static_cast<size_t>(shape.work())),
        tables(static_cast<size_t>(shape.tables()));
    fft_tables(shape, work.data(), tables.data());
    stft(x.as<T>(), e.has(2) ? e.in[2].as<T>() : nullptr, g, shape, tables.data(), work.data(),
         e.out[0].as<T>());
  });
}

DType output_type(const Inference& x) {
  const int64_t to = x.attributes().integer("output_datatype", 1);
  const DType t = to < INT32_MIN || to > INT32_MAX ? DType::kUndefined : dtype_of_onnx(static_cast<int>(to));
  const bool number = is_float(t) || (is_integer(t) && t != DType::kI4 && t != DType::kU4 &&
                                      t != DType::kI2 && t != DType::kU2);
  x.require(number, fmt::format("its output_datatype {} is not a number's", to));
  return t;
}

// HannWindow, HammingWindow, BlackmanWindow (opset 17) of `size` elements.
void infer_window(Inference& x) { x.set(0, output_type(x), {number(x, 0, 0, "size")}); }
void eval_window(Evaluation& e) {
  const CosineWindow w = cosine_window_of(e.node.op->name);
  with_type(e.out[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    cosine_window(w.coefficient, e.out[0].size(), e.attributes().integer("periodic", 1) == 0,
                  e.out[0].as<T>());
  });
}

// MelWeightMatrix (opset 17): [dft_length / 2 + 1, num_mel_bins].
void infer_mel(Inference& x) {
  const Dim mels = number(x, 0, 1, "num_mel_bins"), length = number(x, 1, 1, "dft_length");
  require_index_type(x, 2, "sample_rate");
  for (size_t i : {2, 3, 4}) {
    x.require(i == 2 || is_float(x.dtype(i)), "its edges must be floats");
    x.require_equal(product(x.shape(i)), 1, fmt::format("elements of input {}", i));
  }
  x.set(0, output_type(x), {floordiv(length, 2) + 1, mels});
}
void eval_mel(Evaluation& e) {
  with_type(e.out[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (!mel_weight_matrix(e.in[0].integer(0), e.in[1].integer(0), e.in[2].real(0), e.in[3].real(0),
                           e.in[4].real(0), e.out[0].as<T>()))
      e.fail("its edges are not frequencies of the transform, in ascending order");
  });
}

}  // namespace

const std::vector<Op>& ops_signal() {
  static const std::vector<Op> table = {
      {.name = "DFT",
       .max_inputs = 3,
       .infer = infer_dft,
       .eval = eval_dft,
       .note = "length known at compile time or from the declared output"},
      {.name = "STFT",
       .min_inputs = 2,
       .max_inputs = 4,
       .infer = infer_stft,
       .eval = eval_stft,
       .note = "frame_step and frame_length known at compile time or from the declared output"},
      {.name = "HannWindow", .infer = infer_window, .eval = eval_window},
      {.name = "HammingWindow", .infer = infer_window, .eval = eval_window},
      {.name = "BlackmanWindow", .infer = infer_window, .eval = eval_window},
      {.name = "MelWeightMatrix", .min_inputs = 5, .max_inputs = 5, .infer = infer_mel, .eval = eval_mel},
  };
  return table;
}

}  // namespace sinter
