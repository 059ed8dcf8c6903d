// The matrices of Winograd's filtering, the transform of weights, and what the filtering costs in precision.
//
// All matrices follow from the points (Toom and Cook): a row of Bt holds the coefficients of the product of
// x - q over the other points q, a row of G a point's powers over that product's value at the point, a column
// of At a point's powers. The point at infinity stands for the highest coefficient.
//
// The error is measured, not bounded: with the layer's own weights, a sample of its output channels and
// seeded inputs, in the arithmetic of the generated code (float) against double. Tiles of the sample are
// computed side by side, so that the inner loops run over them.
#include "kernels/convolutions/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "ir/error.h"
#include "sinter/half.h"

namespace sinter {
namespace {

template <class T>
using Matrix = std::vector<std::vector<T>>;

// Of N positions all but infinity, as the transforms of the runtime's winograd.h have them. A single one is
// infinity: all its matrices are 1.
const std::vector<double>& points_of(size_t n) {
  static const double r = std::sqrt(0.5);
  static const std::vector<double> one, four{0, 1, -1}, six{0, r, -r, 2 * r, -2 * r},
      eight{0, 1, -1, 2, -2, 0.5, -0.5};
  SINTER_CHECK(n == 1 || n == 4 || n == 6 || n == 8);
  return n == 1 ? one : n == 4 ? four : n == 6 ? six : eight;
}

// Coefficients of the product of x - q over all points but number `without`, the lowest first.
std::vector<double> product_of_others(const std::vector<double>& points, size_t without) {
  std::vector<double> c{1};
  for (size_t i = 0; i < points.size(); ++i) {
    if (i == without) continue;
    c.insert(c.begin(), 0);
    for (size_t k = 0; k + 1 < c.size(); ++k) c[k] -= points[i] * c[k + 1];
  }
  return c;
}

// The runtime's row of the point 0 begins with a positive number, with G's to match.
double sign_of_first(const std::vector<double>& points) {
  return product_of_others(points, 0)[0] < 0 ? -1 : 1;
}

Matrix<float> input_transform(size_t n) {
  const std::vector<double>& points = points_of(n);
  if (n == 1) return {{1}};
  Matrix<float> b;
  for (size_t i = 0; i < n; ++i) {
    std::vector<float> row(n);
    const std::vector<double> c = product_of_others(points, i);
    for (size_t k = 0; k < c.size(); ++k)
      row[k] = static_cast<float>(i == 0 ? c[k] * sign_of_first(points) : c[k]);
    b.push_back(std::move(row));
  }
  return b;
}

Matrix<double> weight_transform(size_t n, size_t taps) {
  const std::vector<double>& points = points_of(n);
  Matrix<double> g;
  for (size_t i = 0; i + 1 < n; ++i) {
    double scale = i == 0 ? sign_of_first(points) : 1;
    for (size_t j = 0; j + 1 < n; ++j)
      if (j != i) scale /= points[i] - points[j];
    std::vector<double> row(taps, scale);
    for (size_t k = 1; k < taps; ++k) row[k] = row[k - 1] * points[i];
    g.push_back(std::move(row));
  }
  g.emplace_back(taps, 0.0);
  g.back().back() = 1;
  return g;
}

Matrix<float> output_transform(size_t n, size_t m) {
  const std::vector<double>& points = points_of(n);
  Matrix<float> a;
  for (size_t i = 0; i < m; ++i) {
    a.emplace_back();
    for (const double p : points) a.back().push_back(static_cast<float>(std::pow(p, static_cast<double>(i))));
    a.back().push_back(i + 1 == m ? 1.0f : 0.0f);
  }
  return a;
}

// The matrices of an axis: with a stride of 2 those of the even and of the odd numbers, beside each other.
class Axis {
 public:
  explicit Axis(const WinogradAxis& axis) : a_(axis) {
    const auto n = static_cast<size_t>(a_.positions()), taps = static_cast<size_t>(a_.taps),
               m = static_cast<size_t>(a_.outputs);
    input.assign(n, std::vector<float>(n));
    weight.assign(n, std::vector<double>(taps));
    output.assign(m, std::vector<float>(n));
    const size_t step = a_.has_phases() ? 2 : 1;
    for (size_t phase = 0, first = 0; phase < step; ++phase) {
      const size_t own = (taps - phase + step - 1) / step;
      add_phase(m + own - 1, own, first, phase, step);
      first += m + own - 1;
    }
  }
  Matrix<float> input, output;
  Matrix<double> weight;

 private:
  // One tap takes its inputs as they are; so has each a position of its own.
  void add_phase(size_t n, size_t taps, size_t first, size_t phase, size_t step) {
    const bool plain = step == 2 && taps == 1;
    const Matrix<float> b = plain ? identity<float>(n) : input_transform(n);
    const Matrix<double> g = plain ? Matrix<double>(n, {1.0}) : weight_transform(n, taps);
    const Matrix<float> at = plain ? identity<float>(n) : output_transform(n, n - taps + 1);
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < n; ++k) input[first + i][phase + k * step] = b[i][k];
      for (size_t k = 0; k < taps; ++k) weight[first + i][phase + k * step] = g[i][k];
      for (size_t o = 0; o < output.size(); ++o) output[o][first + i] = at[o][i];
    }
  }
  template <class T>
  static Matrix<T> identity(size_t n) {
    Matrix<T> m(n, std::vector<T>(n));
    for (size_t i = 0; i < n; ++i) m[i][i] = 1;
    return m;
  }
  WinogradAxis a_;
};

// The sample: this many output channels, each at this many tiles.
constexpr int64_t kChannels = 16;
constexpr size_t kTiles = 4;
template <class T>
using Lanes = std::array<T, kTiles>;

struct ToFloat {
  float operator()(float x) const { return x; }
};
struct ToHalf {
  float operator()(float x) const { return to_float(to_half(x)); }
};

// a d bt of every tile, rounded at every step; d is columns(a) x columns(b), the result rows(a) x rows(b).
template <class Round>
std::vector<Lanes<float>> both_sides(const Matrix<float>& a, const std::vector<Lanes<float>>& d,
                                     const Matrix<float>& b) {
  const size_t height = a[0].size(), width = b[0].size();
  std::vector<Lanes<float>> t(a.size() * width), y(a.size() * b.size());
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < width; ++j)
      for (size_t k = 0; k < height; ++k)
        for (size_t s = 0; s < kTiles; ++s) {
          float& sum = t[i * width + j][s];
          sum = Round()(sum + Round()(a[i][k]) * d[k * width + j][s]);
        }
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j)
      for (size_t k = 0; k < width; ++k)
        for (size_t s = 0; s < kTiles; ++s) {
          float& sum = y[i * b.size() + j][s];
          sum = Round()(sum + t[i * width + k][s] * Round()(b[j][k]));
        }
  return y;
}

// exact += the convolution of the tile's inputs d with k, in double.
void convolve(const WinogradTile& tile, const float* k, const std::vector<Lanes<double>>& d,
              std::vector<Lanes<double>>& exact) {
  const auto taps = static_cast<size_t>(tile.taps()), across = static_cast<size_t>(tile.along.taps),
             rows = static_cast<size_t>(tile.down.outputs), columns = static_cast<size_t>(tile.along.outputs),
             down = static_cast<size_t>(tile.down.stride), along = static_cast<size_t>(tile.along.stride),
             width = static_cast<size_t>(tile.along.positions());
  for (size_t tap = 0; tap < taps; ++tap) {
    const double w = static_cast<double>(k[tap]);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j)
        for (size_t s = 0; s < kTiles; ++s)
          exact[i * columns + j][s] += w * d[(i * down + tap / across) * width + j * along + tap % across][s];
  }
}

}  // namespace

WinogradWeights::WinogradWeights(const WinogradTile& tile)
    : down_(Axis(tile.down).weight), along_(Axis(tile.along).weight) {}

void WinogradWeights::transform(const float* w, double* to) const {
  const size_t rows = down_[0].size(), columns = along_[0].size(), width = along_.size();
  std::vector<double> row(columns);
  for (size_t i = 0; i < down_.size(); ++i) {
    for (size_t c = 0; c < columns; ++c) {
      row[c] = 0;
      for (size_t k = 0; k < rows; ++k) row[c] += down_[i][k] * static_cast<double>(w[k * columns + c]);
    }
    for (size_t j = 0; j < width; ++j) {
      double sum = 0;
      for (size_t c = 0; c < columns; ++c) sum += row[c] * along_[j][c];
      to[i * width + j] = sum;
    }
  }
}

std::array<float, 9> winograd_square(const float* w) {
  std::array<float, 9> scaled{};
  for (size_t i = 0; i < 9; ++i) {
    const double scale = (i / 3 == 1 ? std::sqrt(2.0) : 1.0) * (i % 3 == 1 ? std::sqrt(2.0) : 1.0);
    scaled[i] = static_cast<float>(scale * static_cast<double>(w[i]));
  }
  return scaled;
}

namespace {

// What runtime/sinter/winograd.h, winograd_square_sums, makes of winograd_square: 6 x 6 numbers, which are to
// be multiplied by kWhenUsed of both axes.
constexpr std::array<float, 6> kWhenUsed = {1, -1.0f / 3, -1.0f / 3, 1.0f / 6, 1.0f / 6, 1};
std::array<float, 6> line_when_used(float g0, float g1, float g2) {
  const float both = g0 + g2, near = both + g0, far = both + g2;
  return {g0, near + g1, near - g1, far + g1, far - g1, g2};
}
void transform_when_used(const float* weights, double* to) {
  const std::array<float, 9> g = winograd_square(weights);
  std::array<std::array<float, 6>, 3> rows{};
  for (size_t r = 0; r < 3; ++r) rows[r] = line_when_used(g[3 * r], g[3 * r + 1], g[3 * r + 2]);
  for (size_t j = 0; j < 6; ++j) {
    const std::array<float, 6> u = line_when_used(rows[0][j], rows[1][j], rows[2][j]);
    for (size_t i = 0; i < 6; ++i) to[6 * i + j] = static_cast<double>(u[i]);
  }
}

template <class Round>
double error_of(const float* weights, int64_t out, int64_t in, const WinogradTile& tile, bool when_used,
                int half_block) {
  const auto positions = static_cast<size_t>(tile.positions());
  const Axis down(tile.down), along(tile.along);
  std::mt19937 random(1);
  std::vector<std::vector<Lanes<double>>> inputs;
  std::vector<std::vector<Lanes<float>>> transformed;
  for (int64_t c = 0; c < in; ++c) {
    std::vector<Lanes<float>> d(positions);
    for (auto& tiles : d)
      for (float& f : tiles) f = Round()(static_cast<float>(random()) / 2147483648.0f - 1.0f);
    inputs.emplace_back();
    for (const auto& tiles : d) {
      inputs.back().emplace_back();
      std::copy(tiles.begin(), tiles.end(), inputs.back().back().begin());
    }
    transformed.push_back(both_sides<Round>(down.input, d, along.input));
  }
  const WinogradWeights transforms(tile);
  double worst = 0, largest = 0;
  std::vector<double> w(positions);
  for (int64_t o = 0; o < out; o += std::max<int64_t>(1, out / kChannels)) {
    std::vector<Lanes<float>> sums(positions), block(positions);
    std::vector<Lanes<double>> exact(static_cast<size_t>(tile.outputs()));
    for (int64_t c = 0; c < in; ++c) {
      const float* k = weights + (o * in + c) * tile.taps();
      if (when_used)
        transform_when_used(k, w.data());
      else
        transforms.transform(k, w.data());
      const auto& v = transformed[static_cast<size_t>(c)];
      for (size_t i = 0; i < positions; ++i)
        for (size_t s = 0; s < kTiles; ++s) {
          float& sum = (half_block > 0 ? block : sums)[i][s];
          sum = Round()(sum + v[i][s] * Round()(static_cast<float>(w[i])));
        }
      if (half_block > 0 && (c + 1 == in || (c + 1) % half_block == 0))
        for (size_t i = 0; i < positions; ++i)
          for (size_t s = 0; s < kTiles; ++s) sums[i][s] = Round()(sums[i][s] + block[i][s]), block[i][s] = 0;
      convolve(tile, k, inputs[static_cast<size_t>(c)], exact);
    }
    for (size_t i = 0; when_used && i < positions; ++i)
      for (float& sum : sums[i]) sum *= kWhenUsed[i / 6] * kWhenUsed[i % 6];
    const auto y = both_sides<Round>(down.output, sums, along.output);
    for (size_t i = 0; i < y.size(); ++i)
      for (size_t s = 0; s < kTiles; ++s) {
        worst = std::max(worst, std::abs(static_cast<double>(y[i][s]) - exact[i][s]));
        largest = std::max(largest, std::abs(exact[i][s]));
      }
  }
  return largest > 0 ? worst / largest : 0;
}

}  // namespace

double winograd_error(const float* weights, int64_t out, int64_t in, const WinogradTile& tile, bool when_used,
                      int half_block) {
  return half_block > 0 ? error_of<ToHalf>(weights, out, in, tile, when_used, half_block)
                        : error_of<ToFloat>(weights, out, in, tile, when_used, half_block);
}

}  // namespace sinter
