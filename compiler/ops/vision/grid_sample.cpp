// GridSample reads an image at the positions of a grid; AffineGrid makes such a grid from affine maps.
//
// Positions are normalised: -1 and 1 are the centres (align_corners) or the outer edges of the first and last
// pixel; the last axis of a grid holds them as (x, y) or (x, y, z), fastest image axis first.
#include <algorithm>
#include <cmath>

#include "ops/movement/movement.h"

namespace sinter {
namespace {

enum class Padding { kZeros, kBorder, kReflection };

// One axis of one output: the pixels that count, each with its weight; the rest of the taps have weight 0.
struct Taps {
  int64_t pixel[4] = {};
  double weight[4] = {};
  int count = 0;
};

// Mirrored at lo and hi until it lies between them.
double reflected(double x, double lo, double hi) {
  const double range = hi - lo;
  if (range <= 0) return lo;
  const double beyond = x < lo ? lo - x : x > hi ? x - hi : -1;
  if (beyond < 0) return x;
  const double turns = std::trunc(beyond / range), rest = beyond - turns * range;
  const bool even = std::fmod(turns, 2) == 0;
  return (x < lo) == even ? lo + rest : hi - rest;
}

struct Sampler {
  bool align = false;
  Padding padding = Padding::kZeros;
  int width = 2;  // taps an axis: 1 nearest, 2 linear, 4 cubic

  double low() const { return align ? 0 : -0.5; }
  double high(int64_t n) const { return static_cast<double>(n) - (align ? 1 : 0.5); }

  // In pixels, arithmetic in the grid's own precision.
  template <class T>
  double position(T normalised, int64_t n) const {
    const T length = static_cast<T>(n);
    return static_cast<double>(align ? (normalised + 1) / 2 * (length - 1)
                                     : ((normalised + 1) * length - 1) / 2);
  }

  // The pixel at i under the padding; -1 for a zero.
  int64_t pixel(double i, int64_t n) const {
    const double last = static_cast<double>(n - 1);
    if (padding == Padding::kReflection) i = std::trunc(reflected(i, low(), high(n)));
    if (padding == Padding::kZeros && (i < 0 || i > last)) return -1;
    return static_cast<int64_t>(std::clamp(i, 0.0, last));
  }

  Taps taps(double x, int64_t n) const {
    Taps t;
    if (std::isnan(x)) {  // nowhere
      if (padding == Padding::kZeros) return t;
      x = 0;
    }
    x = std::clamp(x, -1e15, 1e15);
    if (width == 1) x = std::nearbyint(x);
    if (x < low() || x > high(n)) {
      if (padding == Padding::kBorder) x = std::clamp(x, 0.0, static_cast<double>(n - 1));
      if (padding == Padding::kReflection) x = reflected(x, low(), high(n));
    }
    const double first = std::floor(x), f = x - first;
    auto add = [&](double at, double weight) {
      const int64_t p = pixel(at, n);
      if (p < 0) return;
      t.pixel[t.count] = p;
      t.weight[t.count++] = weight;
    };
    if (width == 1) add(x, 1);
    if (width == 2) add(first, 1 - f), add(first + 1, f);
    if (width == 4) {  // Keys' cubic convolution with a = -0.75
      const double a = -0.75;
      const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
      const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
      add(first - 1, far(1 + f)), add(first, near(f)), add(first + 1, near(1 - f)),
          add(first + 2, far(2 - f));
    }
    return t;
  }
};

Sampler sampler_of(const Attributes& a) {
  Sampler s;
  s.align = a.integer("align_corners", 0) != 0;
  const std::string mode = a.text("mode", "linear"), padding = a.text("padding_mode", "zeros");
  s.width = mode == "nearest" ? 1 : mode == "linear" ? 2 : mode == "cubic" ? 4 : 0;
  if (s.width == 0) refuse("its mode is {}", sinter::quoted(mode));
  if (padding == "border")
    s.padding = Padding::kBorder;
  else if (padding == "reflection")
    s.padding = Padding::kReflection;
  else if (padding != "zeros")
    refuse("its padding_mode is {}", sinter::quoted(padding));
  return s;
}

// GridSample: [N, C, spatial...] and a grid [N, out..., k] give [N, C, out...]; k spatial axes, one to three.
void infer_grid_sample(Inference& x) {
  sampler_of(x.attributes());
  x.require(is_float(x.dtype(0)) && is_float(x.dtype(1)), "only for floats");
  const int64_t k = x.rank(0) - 2;
  x.require(k >= 1 && k <= 3, fmt::format("an image of shape {}", text(x.shape(0))));
  x.require(x.rank(1) == x.rank(0), fmt::format("a grid of shape {}", text(x.shape(1))));
  x.require_equal(x.shape(1).back(), k, "coordinates of a position");
  Shape out{x.require_equal(x.shape(0)[0], x.shape(1)[0], "batch of image and grid"), x.shape(0)[1]};
  out.insert(out.end(), x.shape(1).begin() + 1, x.shape(1).end() - 1);
  for (int64_t d = 0; d < k; ++d)
    require_le(x, 1, x.shape(0)[static_cast<size_t>(d + 2)],
               fmt::format("extent of the image's axis {}", d + 2));
  x.set(0, x.dtype(0), std::move(out));
}

// The weighted sum over all combinations of taps of axis d on; `at` is the offset of the axes before.
double gathered(const Tensor& image, int64_t at, const std::vector<Taps>& taps, size_t d) {
  if (d == taps.size()) return image.real(at);
  const int64_t n = image.shape()[d + 2];
  double sum = 0;
  for (int i = 0; i < taps[d].count; ++i)
    sum += taps[d].weight[i] * gathered(image, at * n + taps[d].pixel[i], taps, d + 1);
  return sum;
}

void eval_grid_sample(Evaluation& e) {
  const Sampler sampler = sampler_of(e.attributes());
  const Tensor &image = e.in[0], &grid = e.in[1];
  const auto k = static_cast<size_t>(image.rank() - 2);
  const int64_t channels = image.dim(1), batches = image.dim(0);
  const int64_t positions = batches == 0 ? 0 : grid.size() / batches / static_cast<int64_t>(k);
  std::vector<Taps> taps(k);
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t p = 0; p < positions; ++p) {
      for (size_t d = 0; d < k; ++d) {
        const double g =
            grid.real((b * positions + p) * static_cast<int64_t>(k) + static_cast<int64_t>(k - 1 - d));
        const int64_t n = image.shape()[d + 2];
        taps[d] = sampler.taps(
            grid.dtype() == DType::kF64 ? sampler.position(g, n) : sampler.position(static_cast<float>(g), n),
            n);
      }
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t plane = b * channels + c;
        e.out[0].set_real(plane * positions + p, gathered(image, plane, taps, 0));
      }
    }
}

// AffineGrid: theta [N, 2, 3] and size (N, C, H, W) give [N, H, W, 2]; theta [N, 3, 4] and size
// (N, C, D, H, W) give [N, D, H, W, 3].
void infer_affine_grid(Inference& x) {
  x.require(is_float(x.dtype(0)), "only for floats");
  const int64_t n = operand_length(x, 1, "size");
  x.require(n == 4 || n == 5, fmt::format("its size has {} extents", n));
  const std::vector<Dim> size = known_elements(x, 1, "size");
  x.require(x.rank(0) == 3, fmt::format("theta of shape {}", text(x.shape(0))));
  x.require_equal(x.shape(0)[1], n - 2, "rows of theta");
  x.require_equal(x.shape(0)[2], n - 1, "columns of theta");
  Shape out{x.require_equal(x.shape(0)[0], size[0], "batch of theta and size")};
  for (size_t d = 2; d < size.size(); ++d) {
    x.require(size[d].hi() >= 0, fmt::format("its size has the negative extent {}", size[d].text()));
    out.push_back(size[d]);
  }
  out.push_back(Dim(n - 2));
  x.set(0, x.dtype(0), std::move(out));
}

void eval_affine_grid(Evaluation& e) {
  const Tensor& theta = e.in[0];
  Tensor& out = e.out[0];
  const bool align = e.attributes().integer("align_corners", 0) != 0;
  const int64_t k = out.shape().back();
  std::vector<int64_t> places = out.shape();
  places.pop_back();
  for_each_index(places, [&](const std::vector<int64_t>& index, int64_t p) {
    std::vector<double> from(static_cast<size_t>(k + 1), 1.0);  // x, y, (z,) 1
    for (int64_t d = 0; d < k; ++d) {
      const auto axis = static_cast<size_t>(k - d);
      const auto i = static_cast<double>(index[axis]), n = static_cast<double>(places[axis]);
      from[static_cast<size_t>(d)] = !align ? (2 * i + 1) / n - 1 : n > 1 ? 2 * i / (n - 1) - 1 : 0;
    }
    for (int64_t row = 0; row < k; ++row) {
      double sum = 0;
      for (int64_t c = 0; c <= k; ++c)
        sum += theta.real((index[0] * k + row) * (k + 1) + c) * from[static_cast<size_t>(c)];
      out.set_real(p * k + row, sum);
    }
  });
}

}  // namespace

const std::vector<Op>& ops_grid_sample() {
  static const std::vector<Op> table = {
      {.name = "GridSample",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_grid_sample,
       .eval = eval_grid_sample,
       .note = "float tensors"},
      {.name = "AffineGrid",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_affine_grid,
       .eval = eval_affine_grid},
  };
  return table;
}

}  // namespace sinter
