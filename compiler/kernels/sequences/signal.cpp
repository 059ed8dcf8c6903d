// DFT, STFT, windows and MelWeightMatrix: calls of runtime/sinter/fft.h.
#include "ops/sequences/signal.h"

#include "emit/expr_text.h"
#include "kernels/movement/copies.h"
#include "kernels/nest.h"
#include "ops/movement/movement.h"
#include "sinter/fft.h"

namespace sinter {
namespace {

bool accepts_op(const Node& n, std::string_view name) {
  return n.op->domain[0] == '\0' && n.op->name == name;
}

// Declares `shape` by the text of a call, and returns "shape, tables, work" for a transform that is computed
// in `real`. Tables of a known shape come with the weights unless they are large or those of a chirp; else
// the layer makes them first.
std::string fft_memory(LayerWriter& w, const std::string& call, const std::optional<FftShape>& known,
                       const Dim& length, const std::string& real) {
  constexpr int64_t kMostStored = 4096;
  if (length.hi() > int64_t{1} << 31)
    refuse_node(w.node, fmt::format("a transform of length {} has no upper bound", length.text()));
  const std::string type = fmt::format("sinter::Complex<{}>", real);
  const std::string work = w.scratch("work", type, known ? known->work() : fft_most_work(length.hi()));
  w.out.line("const sinter::FftShape shape = {};", call);
  if (!known || known->padded != 0 || known->tables() > kMostStored) {
    const std::string tables =
        w.scratch("tables", type, known ? known->tables() : fft_most_tables(length.hi()));
    w.out.line("sinter::fft_tables(shape, {}, {});", work, tables);
    return fmt::format("shape, {}, {}", tables, work);
  }
  const auto stored = [&](auto tag) {
    std::vector<Complex<decltype(tag)>> numbers(static_cast<size_t>(known->tables())),
        buffers(static_cast<size_t>(known->work()));
    fft_tables(*known, buffers.data(), numbers.data());
    return w.weights("tables", type, numbers.data(), numbers.size() * sizeof(numbers[0]),
                     fmt::format("[{}]", numbers.size()));
  };
  return fmt::format("shape, {}, {}", real == "double" ? stored(double{}) : stored(float{}), work);
}

const char* real_of(const Node& n, const Dim& length) {
  return dft_in_double(n.attributes, n.inputs[0]->type, length) ? "double" : "float";
}

// A DFT along an axis that the run tells.
void emit_dft_of_any_axis(LayerWriter& w) {
  const Node& n = w.node;
  const Shape &in = n.inputs[0]->type.shape, &out = n.outputs[0]->type.shape;
  const size_t axes = in.size() - 1;
  const bool inverse = n.attributes.integer("inverse", 0) != 0,
             half = n.attributes.integer("onesided", 0) != 0;
  w.include("sinter/fft.h");
  w.include("sinter/status.h");
  w.can_fail();
  w.summary(fmt::format("{}DFT of {} along an axis that the run tells", inverse ? "inverse " : "", text(in)));
  const std::string x = w.input(0), axis = w.input(2);
  PlainOutput y(w, n.inputs[0]->type.dtype);
  std::string extents, real = "float";
  Dim longest(1);
  for (size_t a = 0; a < axes; ++a) {
    extents += (a == 0 ? "" : ", ") + w.dim(in[a]);
    const Dim length = n.input(1) ? *known_number(n.inputs[1]) : dft_default_length(n, in[a]);
    longest = max(longest, length);
    if (real == "float") real = real_of(n, length);
  }
  w.out.line("const std::int64_t extent[] = {{{}}};", extents);
  w.out.line("const std::int64_t axis = {0}[0] < 0 ? {0}[0] + {1} : {0}[0];", axis, in.size());
  w.out.line("if (axis < 0 || axis >= {}) return sinter::kIndexError;", axes);
  w.out.line("const std::int64_t length = {};", n.input(1)        ? w.dim(*known_number(n.inputs[1]))
                                                : inverse && half ? "2 * (extent[axis] - 1)"
                                                                  : "extent[axis]");
  w.out.line("if (length < 1) return sinter::kDimError;");
  w.out.line("const std::int64_t kept = {};", half && !inverse ? "length / 2 + 1" : "length");
  for (size_t a = 0; a < axes; ++a)
    settle_extent(w, out[a], fmt::format("(axis == {0} ? kept : extent[{0}])", a));
  w.out.line(
      "const sinter::DftGeometry geometry = sinter::dft_geometry(extent, {}, axis, {}, length, kept, "
      "{}, {}, {});",
      axes, w.dim(in.back()), w.dim(out.back()), inverse, inverse && half);
  const std::string memory = fft_memory(w, "sinter::dft_shape(geometry)", std::nullopt, longest, real);
  w.out.line("sinter::dft({}, geometry, {}, {});", x, memory, y.pointer());
  y.finish();
  w.out.line("return sinter::kOk;");
}

void emit_dft(LayerWriter& w) {
  const Node& n = w.node;
  if (n.input(2) && !contents(n.inputs[2])) return emit_dft_of_any_axis(w);
  const Shape &in = n.inputs[0]->type.shape, &out = n.outputs[0]->type.shape;
  const size_t axis = dft_axis(n, in.size());
  const bool inverse = n.attributes.integer("inverse", 0) != 0;
  const bool half = inverse && n.attributes.integer("onesided", 0) != 0;
  const size_t own = n.epilogue ? n.anchor_inputs : n.inputs.size();
  const Dim length = own > 1 && n.inputs[1] ? *known_number(n.inputs[1]) : dft_default_length(n, in[axis]);
  w.include("sinter/fft.h");
  w.summary(fmt::format("{}DFT of length {} along axis {} of {}", inverse ? "inverse " : "", length.text(),
                        axis, text(in)));
  const std::string x = w.input(0);
  PlainOutput y(w, n.inputs[0]->type.dtype);
  w.out.line("const sinter::DftGeometry geometry{{{}, {}, {}, {}, {}, {}, {}, {}, {}}};",
             w.dim(product(in, 0, axis)), w.dim(product(in, axis + 1, in.size() - 1)), w.dim(in[axis]),
             w.dim(in.back()), w.dim(length), w.dim(out[axis]), w.dim(out.back()), inverse, half);
  std::optional<FftShape> known;
  if (length.is_static() && in.back().is_static())
    known = fft_shape(length.value(), in.back().is(1) && !half, inverse);
  const std::string memory = fft_memory(w, "sinter::dft_shape(geometry)", known, length, real_of(n, length));
  w.out.line("sinter::dft({}, geometry, {}, {});", x, memory, y.pointer());
  y.finish();
}

void emit_stft(LayerWriter& w) {
  const Node& n = w.node;
  const Shape &in = n.inputs[0]->type.shape, &out = n.outputs[0]->type.shape;
  const DType t = n.inputs[0]->type.dtype;
  const size_t own = n.epilogue ? n.anchor_inputs : n.inputs.size();
  const bool windowed = own > 2 && n.inputs[2];
  const Dim length = windowed                 ? n.inputs[2]->type.shape[0]
                     : own > 3 && n.inputs[3] ? *known_number(n.inputs[3])
                                              : in[1];
  w.include("sinter/fft.h");
  w.summary(fmt::format("STFT of {}: frames of {} to {}", text(in), length.text(), text(out)));
  const std::string x = w.input(0);
  const std::string window =
      windowed ? w.input(2) : fmt::format("static_cast<const {}*>(nullptr)", cpp_name(t));
  PlainOutput y(w, t);
  const Dim longest = min(length, Dim(in[1].hi()));  // a frame fits the signal
  const bool real = in.size() == 2 || in[2].is(1);
  std::optional<FftShape> known;
  if (length.is_static() && (real || in[2].is_static())) known = fft_shape(length.value(), real, false);
  w.out.line("const sinter::StftGeometry geometry{{{}, {}, {}, {}, {}, {}, {}}};", w.dim(in[0]), w.dim(in[1]),
             in.size() == 2 ? "1" : w.dim(in[2]), w.dim(out[1]), w.dim(*known_number(n.inputs[1])),
             w.dim(length), w.dim(out[2]));
  const std::string memory = fft_memory(w, "sinter::stft_shape(geometry)", known, longest, "double");
  w.out.line("sinter::stft({}, {}, geometry, {}, {});", x, window, memory, y.pointer());
  y.finish();
}

bool accepts_window(const Node& n, const Context&) {
  return !n.epilogue &&
         (accepts_op(n, "HannWindow") || accepts_op(n, "HammingWindow") || accepts_op(n, "BlackmanWindow"));
}
void emit_window(LayerWriter& w) {
  const Node& n = w.node;
  const CosineWindow c = cosine_window_of(n.op->name);
  w.include("sinter/fft.h");
  w.summary(fmt::format("{} of {}", n.op->name, text(n.outputs[0]->type.shape)));
  w.out.line("const double coefficient[] = {{{}, {}, {}}};", c.coefficient[0], c.coefficient[1],
             c.coefficient[2]);
  w.out.line("sinter::cosine_window(coefficient, {}, {}, {});", w.dim(n.outputs[0]->type.shape[0]),
             n.attributes.integer("periodic", 1) == 0, w.output(0));
}

bool accepts_mel(const Node& n, const Context&) { return !n.epilogue && accepts_op(n, "MelWeightMatrix"); }
void emit_mel(LayerWriter& w) {
  const Node& n = w.node;
  w.include("sinter/fft.h");
  w.include("sinter/status.h");
  w.can_fail();
  w.summary(fmt::format("MelWeightMatrix {}", text(n.outputs[0]->type.shape)));
  std::string operands;
  for (size_t i : {2, 3, 4}) operands += fmt::format("sinter::cast_to<double>({}[0]), ", w.input(i));
  w.out.line("if (!sinter::mel_weight_matrix({}, {}, {}{}))", w.dim(*known_number(n.inputs[0])),
             w.dim(*known_number(n.inputs[1])), operands, w.output(0));
  w.out.line("  return sinter::kIndexError;");
  w.out.line("return sinter::kOk;");
}

}  // namespace

const std::vector<Kernel>& kernels_signal() {
  static const std::vector<Kernel> table = {
      {"dft",
       "DFT of any length, by its factors or a chirp",
       [](const Node& n, const Context&) { return accepts_op(n, "DFT"); },
       emit_dft,
       {.work = Work::kLoops}},
      {"stft",
       "STFT, one frame after the other",
       [](const Node& n, const Context&) { return accepts_op(n, "STFT"); },
       emit_stft,
       {.work = Work::kLoops}},
      {"cosine_window", "HannWindow, HammingWindow, BlackmanWindow", accepts_window, emit_window},
      {"mel_weight_matrix", "MelWeightMatrix", accepts_mel, emit_mel},
  };
  return table;
}

}  // namespace sinter
