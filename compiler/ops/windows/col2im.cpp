// Col2Im puts the columns that a convolution's window sees back into the image, adding where windows overlap
// (opset 18).
//
// The window is ops/windows/window.h's: the image is its input, the positions of the window its output.
#include "ops/movement/movement.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

struct Spacing {
  std::vector<int64_t> strides, dilations, pads;
};
Spacing spacing_of(const Attributes& a, size_t axes) {
  return {a.integers("strides", std::vector<int64_t>(axes, 1)),
          a.integers("dilations", std::vector<int64_t>(axes, 1)),
          a.integers("pads", std::vector<int64_t>(2 * axes, 0))};
}

void require_range(const Inference& x, const std::vector<int64_t>& values, size_t count, int64_t least,
                   const char* what) {
  x.require(values.size() == count, fmt::format("{} {} where {} are needed", values.size(), what, count));
  for (int64_t v : values) x.require(v >= least && v <= INT32_MAX, fmt::format("{} of {}", what, v));
}

// [N, C * product(block_shape), positions] to [N, C, image_shape...].
void infer(Inference& x) {
  x.require(is_float(x.dtype(0)) || is_integer(x.dtype(0)), fmt::format("not for {}", name_of(x.dtype(0))));
  x.require(x.rank(0) == 3, fmt::format("columns of shape {}", text(x.shape(0))));
  const auto axes = static_cast<size_t>(operand_length(x, 1, "image_shape"));
  x.require(axes >= 1 && axes <= 8, fmt::format("an image of {} axes", axes));
  operand_length(x, 2, "block_shape");
  const std::vector<Dim> image = known_elements(x, 1, "image_shape");
  const std::vector<Dim> block = known_elements(x, 2, "block_shape");
  const Spacing s = spacing_of(x.attributes(), axes);
  x.require(block.size() == axes, fmt::format("{} block_shape where {} are needed", block.size(), axes));
  for (const Dim& b : block) {
    x.require(!b.is_static() || (b.value() >= 1 && b.value() <= INT32_MAX),
              fmt::format("block_shape of {}", b.text()));
    require_le(x, 1, b, "block_shape");
  }
  require_range(x, s.strides, axes, 1, "strides");
  require_range(x, s.dilations, axes, 1, "dilations");
  require_range(x, s.pads, 2 * axes, 0, "pads");
  Dim taps(1), positions(1);
  for (size_t d = 0; d < axes; ++d) {
    taps = taps * block[d];
    const Dim room = image[d] + s.pads[d] + s.pads[d + axes] - Dim(s.dilations[d]) * (block[d] - 1) - 1;
    require_le(x, 0, room, fmt::format("room for the block in axis {}", d));
    positions = positions * (floordiv(room, s.strides[d]) + 1);
  }
  x.require_equal(x.shape(0)[2], positions, "number of columns");
  const Dim channels = exact_div(x.shape(0)[1], taps);
  x.require_equal(channels * taps, x.shape(0)[1], "rows of the columns as whole blocks");
  Shape out{x.shape(0)[0], channels};
  out.insert(out.end(), image.begin(), image.end());
  x.set(0, x.dtype(0), std::move(out));
}

void eval(Evaluation& e) {
  const Tensor& columns = e.in[0];
  Tensor& out = e.out[0];
  StaticWindow w;
  w.in.assign(out.shape().begin() + 2, out.shape().end());
  w.kernel = e.in[2].integers();
  const size_t axes = w.kernel.size();
  const Spacing s = spacing_of(e.attributes(), axes);
  w.strides = s.strides;
  w.dilations = s.dilations;
  w.pads_begin.assign(s.pads.begin(), s.pads.begin() + static_cast<std::ptrdiff_t>(axes));
  w.pads_end.assign(s.pads.begin() + static_cast<std::ptrdiff_t>(axes), s.pads.end());
  for (size_t d = 0; d < axes; ++d)
    w.out.push_back((w.in[d] + w.pads_begin[d] + w.pads_end[d] - w.dilations[d] * (w.kernel[d] - 1) - 1) /
                        w.strides[d] +
                    1);
  const int64_t positions = columns.dim(2), taps = w.taps(), pixels = w.in_size();
  const bool real = is_float(columns.dtype());
  std::vector<double> sums(static_cast<size_t>(pixels));
  std::vector<uint64_t> wrapped(static_cast<size_t>(pixels));
  for (int64_t plane = 0; plane < out.dim(0) * out.dim(1); ++plane) {
    std::fill(sums.begin(), sums.end(), 0.0);
    std::fill(wrapped.begin(), wrapped.end(), uint64_t{0});
    for (int64_t p = 0; p < positions; ++p)
      for_each_tap(w, p, [&](int64_t tap, int64_t pixel) {
        const int64_t at = (plane * taps + tap) * positions + p;
        if (real)
          sums[static_cast<size_t>(pixel)] += columns.real(at);
        else
          wrapped[static_cast<size_t>(pixel)] += static_cast<uint64_t>(columns.integer(at));
      });
    for (int64_t i = 0; i < pixels; ++i) {
      const auto k = static_cast<size_t>(i);
      if (real)
        out.set_real(plane * pixels + i, sums[k]);
      else
        out.set_integer(plane * pixels + i, static_cast<int64_t>(wrapped[k]));
    }
  }
}

}  // namespace

const std::vector<Op>& ops_col2im() {
  static const std::vector<Op> table = {
      {.name = "Col2Im", .min_inputs = 3, .max_inputs = 3, .infer = infer, .eval = eval}};
  return table;
}

}  // namespace sinter
