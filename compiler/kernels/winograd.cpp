// The matrices of Winograd's filtering, the transform of weights, and what the filtering costs in precision.
//
// The error is measured, not bounded: with the layer's own weights, a sample of its output channels and
// seeded inputs, in the arithmetic of the generated code (float) against double. Tiles of the sample are
// computed side by side, so that the inner loops run over them.
#include "kernels/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace sinter {
namespace {

// G: the three weights of a row at N positions.
std::vector<std::vector<double>> weight_transform(int m) {
  if (m == 2) return {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  if (m == 4) {
    std::vector<std::vector<double>> g{{1, 0, 0}};
    for (const double p : {std::sqrt(0.5), -std::sqrt(0.5), std::sqrt(2), -std::sqrt(2)}) {
      // 1 over the product of the distances to the other points.
      const double scale = std::abs(p) < 1 ? -2. / 3 : 1. / 6;
      g.push_back({scale, scale * p, scale * p * p});
    }
    g.push_back({0, 0, 1});
    return g;
  }
  return {{1, 0, 0},
          {-2. / 9, -2. / 9, -2. / 9},
          {-2. / 9, 2. / 9, -2. / 9},
          {1. / 90, 1. / 45, 2. / 45},
          {1. / 90, -1. / 45, 2. / 45},
          {32. / 45, 16. / 45, 8. / 45},
          {32. / 45, -16. / 45, 8. / 45},
          {0, 0, 1}};
}
// Bt and At, as the transforms of winograd.h compute them.
std::vector<std::vector<float>> input_transform(int m) {
  if (m == 2) return {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}};
  const float r = std::sqrt(0.5f), r2 = std::sqrt(2.0f);
  if (m == 4)
    return {{1, 0, -2.5f, 0, 1, 0},           {0, -2 * r, -2, r, 1, 0},         {0, 2 * r, -2, -r, 1, 0},
            {0, -0.5f * r2, -0.5f, r2, 1, 0}, {0, 0.5f * r2, -0.5f, -r2, 1, 0}, {0, 1, 0, -2.5f, 0, 1}};
  return {{1, 0, -5.25f, 0, 5.25f, 0, -1, 0},        {0, 1, 1, -4.25f, -4.25f, 1, 1, 0},
          {0, -1, 1, 4.25f, -4.25f, -1, 1, 0},       {0, 0.5f, 0.25f, -2.5f, -1.25f, 2, 1, 0},
          {0, -0.5f, 0.25f, 2.5f, -1.25f, -2, 1, 0}, {0, 2, 4, -2.5f, -5, 0.5f, 1, 0},
          {0, -2, 4, 2.5f, -5, -0.5f, 1, 0},         {0, -1, 0, 5.25f, 0, -5.25f, 0, 1}};
}
std::vector<std::vector<float>> output_transform(int m) {
  std::vector<std::vector<float>> a(static_cast<size_t>(m));
  const float r = std::sqrt(0.5f);
  const std::vector<float> points = m == 2   ? std::vector<float>{1, -1}
                                    : m == 4 ? std::vector<float>{r, -r, 2 * r, -2 * r}
                                             : std::vector<float>{1, -1, 2, -2, 0.5f, -0.5f};
  for (int i = 0; i < m; ++i) {
    auto& row = a[static_cast<size_t>(i)];
    row.push_back(i == 0 ? 1.0f : 0.0f);
    for (const float p : points) row.push_back(std::pow(p, static_cast<float>(i)));
    row.push_back(i == m - 1 ? 1.0f : 0.0f);
  }
  return a;
}

// G g Gt of one pair of channels: N x N numbers.
void transform(const std::vector<std::vector<double>>& g, const float* w, double* to) {
  const size_t n = g.size();
  for (size_t i = 0; i < n; ++i) {
    double row[3];
    for (size_t c = 0; c < 3; ++c)
      row[c] = g[i][0] * static_cast<double>(w[c]) + g[i][1] * static_cast<double>(w[3 + c]) +
               g[i][2] * static_cast<double>(w[6 + c]);
    for (size_t j = 0; j < n; ++j) to[i * n + j] = row[0] * g[j][0] + row[1] * g[j][1] + row[2] * g[j][2];
  }
}

// The sample: this many output channels, each at this many tiles.
constexpr int64_t kChannels = 16;
constexpr size_t kTiles = 4;
template <class T>
using Lanes = std::array<T, kTiles>;

// a d at of every tile, rounded to float at every step; d is n x n, the result rows(a) x rows(a).
std::vector<Lanes<float>> both_sides(const std::vector<std::vector<float>>& a,
                                     const std::vector<Lanes<float>>& d) {
  const size_t n = a[0].size(), m = a.size();
  std::vector<Lanes<float>> t(m * n), y(m * m);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t k = 0; k < n; ++k)
        for (size_t s = 0; s < kTiles; ++s) t[i * n + j][s] += a[i][k] * d[k * n + j][s];
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < m; ++j)
      for (size_t k = 0; k < n; ++k)
        for (size_t s = 0; s < kTiles; ++s) y[i * m + j][s] += t[i * n + k][s] * a[j][k];
  return y;
}

// exact += the 3x3 convolution of the n x n inputs d with k, in double.
void convolve(const float* k, const std::vector<Lanes<double>>& d, size_t n,
              std::vector<Lanes<double>>& exact) {
  const size_t m = n - 2;
  for (size_t tap = 0; tap < 9; ++tap) {
    const double w = static_cast<double>(k[tap]);
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < m; ++j)
        for (size_t s = 0; s < kTiles; ++s) exact[i * m + j][s] += w * d[(i + tap / 3) * n + j + tap % 3][s];
  }
}

}  // namespace

void winograd_weight(int m, const float* w, double* to) {
  static const std::array<std::vector<std::vector<double>>, 3> g = {weight_transform(2), weight_transform(4),
                                                                    weight_transform(6)};
  transform(g[static_cast<size_t>(m / 2 - 1)], w, to);
}

double winograd_error(const Node& node, int m) {
  const Tensor& weight = *node.inputs[1]->data;
  const int64_t out = weight.dim(0), in = weight.dim(1);
  const size_t n = static_cast<size_t>(m) + 2;
  const auto bt = input_transform(m), at = output_transform(m);
  std::mt19937 random(1);
  std::vector<std::vector<Lanes<double>>> inputs;
  std::vector<std::vector<Lanes<float>>> transformed;
  for (int64_t c = 0; c < in; ++c) {
    std::vector<Lanes<float>> d(n * n);
    for (auto& tiles : d)
      for (float& f : tiles) f = static_cast<float>(random()) / 2147483648.0f - 1.0f;
    inputs.emplace_back();
    for (const auto& tiles : d) {
      inputs.back().emplace_back();
      std::copy(tiles.begin(), tiles.end(), inputs.back().back().begin());
    }
    transformed.push_back(both_sides(bt, d));
  }
  double worst = 0, largest = 0;
  std::vector<double> w(n * n);
  for (int64_t o = 0; o < out; o += std::max<int64_t>(1, out / kChannels)) {
    std::vector<Lanes<float>> sums(n * n);
    std::vector<Lanes<double>> exact(static_cast<size_t>(m) * static_cast<size_t>(m));
    for (int64_t c = 0; c < in; ++c) {
      const float* k = weight.as<float>() + (o * in + c) * 9;
      winograd_weight(m, k, w.data());
      const auto& v = transformed[static_cast<size_t>(c)];
      for (size_t i = 0; i < n * n; ++i)
        for (size_t s = 0; s < kTiles; ++s) sums[i][s] += v[i][s] * static_cast<float>(w[i]);
      convolve(k, inputs[static_cast<size_t>(c)], n, exact);
    }
    const auto y = both_sides(at, sums);
    for (size_t i = 0; i < y.size(); ++i)
      for (size_t s = 0; s < kTiles; ++s) {
        worst = std::max(worst, std::abs(static_cast<double>(y[i][s]) - exact[i][s]));
        largest = std::max(largest, std::abs(exact[i][s]));
      }
  }
  return largest > 0 ? worst / largest : 0;
}

}  // namespace sinter
