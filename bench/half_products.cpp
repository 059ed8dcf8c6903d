// Products of halves, as generated code would run them (docs/decisions/0020-half-arithmetic.md): modelled
// cycles of register tiles, of blocks over floats, and of whole layers, and each layer's error against
// doubles.
//
//   flags="-static -std=c++17 -O2 -fno-math-errno -fno-trapping-math -ffp-contract=fast -fno-tree-vectorize"
//   aarch64-linux-gnu-g++ $flags -Iruntime [-DIN_ORDER] bench/half_products.cpp -o half_products
//   armsim --cpu cortex-a76 --regions -- ./half_products conv3 4x4     (or qemu-aarch64 for the error alone)
//
// CASE [FORM]: tile 2x10/64 … | conv3 direct/64, 2x2, 2x4, 4x4 | pw CIN COUT PIXELS | matmul. -DIN_ORDER: the
// form for a Cortex-A55. Peak is 16 multiply-adds a cycle on a Cortex-A76, 8 on a Cortex-A55.
#include "sinter/half_arithmetic.h"
#if defined(IN_ORDER)
#include "sinter/in_order.h"
#endif
#include "sinter/simd_neon.h"
// The words first.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sinter/mac_half.h"
#include "sinter/winograd.h"

using namespace sinter::neon;
using sinter::half;

namespace {

#if defined(IN_ORDER)
constexpr bool kInOrder = true;
#else
constexpr bool kInOrder = false;
#endif
constexpr std::ptrdiff_t kAll = 1 << 20;  // a block that is never full

void begin() { __asm__ volatile("hint #112" ::: "memory"); }
void end() { __asm__ volatile("hint #113" ::: "memory"); }

std::uint32_t state = 1;
float normal() {  // of variance 1, by the sum of twelve
  float s = -6;
  for (int i = 0; i < 12; i++) {
    state = state * 1664525u + 1013904223u;
    s += static_cast<float>(state >> 8) * 0x1p-24f;
  }
  return s;
}
std::vector<half> halves(std::size_t n, float scale, bool relu) {
  std::vector<half> v(n + 64);
  for (std::size_t i = 0; i < n; i++) {
    const float x = normal() * scale;
    v[i] = sinter::to_half(relu && x < 0 ? 0.0f : x);
  }
  return v;
}

template <int OB, int T>
SINTER_INLINE void products(HalfTile<OB, T>& sum, const half* x, std::ptrdiff_t pitch, const half* w,
                            std::ptrdiff_t k) {
  if constexpr (kInOrder)
    mac_in_order(sum, x, pitch, w, k);
  else
    mac(sum, x, pitch, w, k);
}
template <int OB, int T>
SINTER_INLINE void put(const HalfTile<OB, T>& sum, half* y, std::ptrdiff_t pitch) {
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) store(y + t * pitch + o * kHalfLanes, sum.a[t][o]);
  }
}

// Panels [channels / (8 OB)][k][8 OB] of w[k][channels].
template <int OB>
std::vector<half> packed(const std::vector<half>& w, int k, int channels) {
  constexpr int kPanel = OB * kHalfLanes;
  std::vector<half> p(static_cast<std::size_t>((channels + kPanel - 1) / kPanel * kPanel * k) + 64);
  for (int c = 0; c < channels; c++)
    for (int i = 0; i < k; i++)
      p[static_cast<std::size_t>((c / kPanel * k + i) * kPanel + c % kPanel)] =
          w[static_cast<std::size_t>(i * channels + c)];
  return p;
}

// Rows of k halves by a matrix: y[rows][channels]; Block products at a time.
template <int OB, int T, std::ptrdiff_t Block>
[[gnu::noinline]] void matrix(const half* x, std::ptrdiff_t k, const half* w, half* y, std::ptrdiff_t rows,
                              std::ptrdiff_t channels) {
  constexpr std::ptrdiff_t kPanel = OB * kHalfLanes;
  for (std::ptrdiff_t c = 0; c < channels; c += kPanel, w += k * kPanel) {
    const auto tile = [&](auto pixels, std::ptrdiff_t r) __attribute__((always_inline)) {
      constexpr int kPixels = pixels.value;
      HalfTile<OB, kPixels> sum;
      alignas(64) float sums[kPixels * OB * kHalfLanes];
      tile_bias(sum, nullptr);
      if constexpr (Block == kAll) {
        products(sum, x + r * k, k, w, k);
        put(sum, y + r * channels + c, channels);
      } else {
        mac_blocks<Block, kInOrder>(sum, sums, x + r * k, k, w, k);
        SINTER_UNROLL
        for (int t = 0; t < kPixels; t++) {
          SINTER_UNROLL
          for (int o = 0; o < OB; o++)
            store(y + (r + t) * channels + c + o * kHalfLanes,
                  k > Block ? narrow(whole_sum(sum, sums, t, o)) : sum.a[t][o]);
        }
      }
    };
    std::ptrdiff_t r = 0;
    for (; r + T <= rows; r += T) tile(Int<T>(), r);
    if constexpr (T > 4)
      for (; r + 4 <= rows; r += 4) tile(Int<4>(), r);
    for (; r < rows; r++) tile(Int<1>(), r);
  }
}

double worst(const std::vector<half>& y, const std::vector<double>& want, const char* what) {
  double largest = 0, error = 0, squares = 0;
  for (double v : want) largest = std::max(largest, std::fabs(v));
  for (std::size_t i = 0; i < want.size(); i++) {
    const double e = std::fabs(static_cast<double>(sinter::to_float(y[i])) - want[i]);
    error = std::max(error, e), squares += e * e;
  }
  std::printf("%s: error %.2e of the largest output, %.2e in the mean square\n", what, error / largest,
              std::sqrt(squares / static_cast<double>(want.size())) / largest);
  return error / largest;
}

// [rows][k] by [k][channels].
template <int OB, int T, std::ptrdiff_t Block>
void matmul(int rows, int k, int channels, bool check, const char* what) {
  const std::vector<half> x = halves(static_cast<std::size_t>(rows * k), 1, false);
  const std::vector<half> w =
      halves(static_cast<std::size_t>(k * channels), std::sqrt(1.0f / static_cast<float>(k)), false);
  const std::vector<half> panels = packed<OB>(w, k, channels);
  std::vector<half> y(static_cast<std::size_t>(rows * channels) + 64);
  matrix<OB, T, Block>(x.data(), k, panels.data(), y.data(), rows, channels);
  begin();
  matrix<OB, T, Block>(x.data(), k, panels.data(), y.data(), rows, channels);
  end();
  if (!check) return;
  std::vector<double> want(static_cast<std::size_t>(rows * channels));
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < k; i++) {
      const double v = static_cast<double>(sinter::to_float(x[static_cast<std::size_t>(r * k + i)]));
      for (int c = 0; c < channels; c++)
        want[static_cast<std::size_t>(r * channels + c)] +=
            v * static_cast<double>(sinter::to_float(w[static_cast<std::size_t>(i * channels + c)]));
    }
  worst(y, want, what);
}

// conv3: 3x3, 64 -> 64 channels at 56 x 56, pads of 1, channels last.
constexpr int kSide = 56, kChannels = 64;

// Directly, from rows with a border of zeros; `Taps` taps' products are summed in halves.
template <int OB, int T, int Block>
[[gnu::noinline]] void direct(const half* x, const half* w, half* y) {
  constexpr std::ptrdiff_t kRow = (kSide + 2) * kChannels, kPanel = OB * kHalfLanes;
  for (int c = 0; c < kChannels; c += OB * kHalfLanes, w += 9 * kChannels * kPanel)
    for (int oy = 0; oy < kSide; oy++)
      for (int ox = 0; ox < kSide; ox += T) {
        HalfTile<OB, T> sum;
        alignas(64) float sums[T * OB * kHalfLanes];
        tile_bias(sum, nullptr);
        const auto from = [&](int tap) { return x + (oy + tap / 3) * kRow + (ox + tap % 3) * kChannels; };
        half* const to = y + (oy * kSide + ox) * kChannels + c;
        if constexpr (Block == 0) {
          for (int ky = 0; ky < 3; ky++)
            products(sum, from(3 * ky), kChannels, w + 3 * ky * kChannels * kPanel, 3 * kChannels);
          put(sum, to, kChannels);
          continue;
        } else {
          // A row of taps lies in one piece: 3 * 64 values of k.
          for (int ky = 0; ky < 3; ky++)
            for (int k = 0; k < 3 * kChannels; k += Block) {
              products(sum, from(3 * ky) + k, kChannels, w + (3 * ky * kChannels + k) * kPanel, Block);
              if (ky == 0 && k == 0)
                flush<true>(sum, sums);
              else if (ky < 2 || k + Block < 3 * kChannels)
                flush<false>(sum, sums);
            }
          SINTER_UNROLL
          for (int t = 0; t < T; t++) {
            SINTER_UNROLL
            for (int o = 0; o < OB; o++)
              store(to + t * kChannels + o * kHalfLanes, narrow(whole_sum(sum, sums, t, o)));
          }
        }
      }
}

// F(MY x MX, 3 x 3) on groups of tiles; Block: how many channels' products are summed in halves, 0: all, and
// the positions' sums are halves then; else they are floats.
template <int MY, int MX, int OB, int T, int Group, int Block>
[[gnu::noinline]] void winograd(const half* x, const half* w, half* y, half* v, half* m, float* f) {
  constexpr int kAcross = (kSide + MX - 1) / MX, kDown = (kSide + MY - 1) / MY, kTiles = kAcross * kDown;
  constexpr int kPositions = (MY + 2) * (MX + 2), kPanel = OB * kHalfLanes;
  constexpr std::ptrdiff_t kPlane = Group * kChannels + 32, kSumPlane = Group * kPanel + 32;
  for (int first = 0; first < kTiles; first += Group) {
    const int count = std::min(Group, kTiles - first);
    for (int t = 0; t < count;) {
      const int ty = (first + t) / kAcross, tx = (first + t) % kAcross,
                run = std::min(count - t, kAcross - tx);
      winograd_input<MY, MX, 3, 3, 1, 1>(x, kSide, kSide, kChannels, ty * MY - 1, tx * MX - 1, run,
                                         v + t * kChannels, kPlane, kChannels);
      t += run;
    }
    for (int c = 0; c < kChannels; c += kPanel) {
      const half* wp = w + c * kPositions * kChannels;
      for (int k = 0; k < kPositions; k++, wp += kChannels * kPanel) {
        const auto tile = [&](auto pixels, int t) __attribute__((always_inline)) {
          constexpr int kPixels = pixels.value;
          HalfTile<OB, kPixels> sum;
          tile_bias(sum, nullptr);
          const half* const from = v + k * kPlane + t * kChannels;
          if constexpr (Block == 0) {
            products(sum, from, kChannels, wp, kChannels);
            put(sum, m + k * kSumPlane + t * kPanel, kPanel);
          } else if constexpr (Block < 0) {
            half* const to = m + k * kSumPlane + t * kPanel;
            for (int i = 0; i < kChannels; i -= Block) {
              products(sum, from + i, kChannels, wp + i * kPanel, -Block);
              if (i == 0)
                flush<true>(sum, to);
              else
                flush<false>(sum, to);
            }
          } else {
            float* const to = f + k * kSumPlane + t * kPanel;
            for (int i = 0; i < kChannels; i += Block) {
              products(sum, from + i, kChannels, wp + i * kPanel, Block);
              if (i == 0)
                flush<true>(sum, to);
              else
                flush<false>(sum, to);
            }
          }
        };
        int t = 0;
        for (; t + T <= count; t += T) tile(Int<T>(), t);
        for (; t + 4 <= count; t += 4) tile(Int<4>(), t);
        for (; t < count; t++) tile(Int<1>(), t);
      }
      for (int t = 0; t < count; t++) {
        const int oy = (first + t) / kAcross * MY, ox = (first + t) % kAcross * MX;
        half* const to = y + (oy * kSide + ox) * kChannels + c;
        for (int o = 0; o < OB; o++) {
          if constexpr (Block <= 0) {
            winograd_output<MY, MX, 3, 3, 1, 1>(
                m + t * kPanel + o * kHalfLanes, kSumPlane, kSide - oy,
                std::min(MX, kSide - ox), [&](int i, int j, f16v s) __attribute__((always_inline)) {
                  store(to + (i * kSide + j) * kChannels + o * kHalfLanes, s);
                });
          } else {
            for (int q = 0; q < 2; q++)
              winograd_output<MY, MX, 3, 3, 1, 1>(
                  f + t * kPanel + o * kHalfLanes + q * kLanes, kSumPlane, kSide - oy,
                  std::min(MX, kSide - ox), [&](int i, int j, f32v s) __attribute__((always_inline)) {
                    store(to + (i * kSide + j) * kChannels + o * kHalfLanes + q * kLanes, s);
                  });
          }
        }
      }
    }
  }
}

// G of the points of winograd.h, whose rows go with its Bt: N = 4 or 6.
void transform(int n, const double g[3], double* u) {
  if (n == 4) {
    u[0] = g[0], u[1] = (g[0] + g[1] + g[2]) / 2, u[2] = (g[0] - g[1] + g[2]) / 2, u[3] = g[2];
    return;
  }
  const double s = std::sqrt(2.0);
  u[0] = g[0], u[5] = g[2];
  u[1] = -(2 * g[0] + g[2] + s * g[1]) / 3, u[2] = -(2 * g[0] + g[2] - s * g[1]) / 3;
  u[3] = (g[0] + 2 * g[2] + s * g[1]) / 6, u[4] = (g[0] + 2 * g[2] - s * g[1]) / 6;
}

template <int MY, int MX, int OB, int T, int Group, int Block>
std::vector<half> by_winograd(const std::vector<half>& x, const std::vector<half>& w) {
  constexpr int kPositions = (MY + 2) * (MX + 2), kPanel = OB * kHalfLanes;
  std::vector<half> u(kPositions * kChannels * kChannels);
  for (int ci = 0; ci < kChannels; ci++)
    for (int co = 0; co < kChannels; co++) {
      double rows[3][MX + 2], all[MY + 2][MX + 2];
      for (int i = 0; i < 3; i++) {
        double g[3];
        for (int j = 0; j < 3; j++)
          g[j] = static_cast<double>(
              sinter::to_float(w[static_cast<std::size_t>(((i * 3 + j) * kChannels + ci) * kChannels + co)]));
        transform(MX + 2, g, rows[i]);
      }
      for (int j = 0; j < MX + 2; j++) {
        const double g[3] = {rows[0][j], rows[1][j], rows[2][j]};
        double column[MY + 2];
        transform(MY + 2, g, column);
        for (int i = 0; i < MY + 2; i++) all[i][j] = column[i];
      }
      for (int k = 0; k < kPositions; k++)
        u[static_cast<std::size_t>((co / kPanel * kPositions + k) * kChannels * kPanel + ci * kPanel +
                                   co % kPanel)] =
            sinter::to_half(static_cast<float>(all[k / (MX + 2)][k % (MX + 2)]));
    }
  std::vector<half> y(kSide * kSide * kChannels + 64), v(kPositions * (Group * kChannels + 32)),
      m(kPositions * (Group * kPanel + 32));
  std::vector<float> f(m.size());
  winograd<MY, MX, OB, T, Group, Block>(x.data(), u.data(), y.data(), v.data(), m.data(), f.data());
  begin();
  winograd<MY, MX, OB, T, Group, Block>(x.data(), u.data(), y.data(), v.data(), m.data(), f.data());
  end();
  return y;
}

template <int OB, int T, int Block>
std::vector<half> directly(const std::vector<half>& x, const std::vector<half>& w) {
  const std::vector<half> panels = packed<OB>(w, 9 * kChannels, kChannels);
  std::vector<half> bordered((kSide + 2) * (kSide + 2 + T) * kChannels + 64),
      y(kSide * kSide * kChannels + 64 * T);
  for (int i = 0; i < kSide; i++)
    std::copy_n(x.begin() + i * kSide * kChannels, kSide * kChannels,
                bordered.begin() + ((i + 1) * (kSide + 2) + 1) * kChannels);
  direct<OB, T, Block>(bordered.data(), panels.data(), y.data());
  begin();
  direct<OB, T, Block>(bordered.data(), panels.data(), y.data());
  end();
  return y;
}

void conv3(const std::string& form, bool check) {
  const std::vector<half> x = halves(kSide * kSide * kChannels, 1, true);
  const std::vector<half> w = halves(9 * kChannels * kChannels, std::sqrt(2.0f / (9 * kChannels)), false);
  std::vector<half> y;
  if (form == "direct") y = directly<2, 8, 0>(x, w);
  if (form == "direct/32") y = directly<2, 8, 32>(x, w);
  if (form == "direct/64") y = directly<2, 8, 64>(x, w);
  if (form == "direct/192") y = directly<2, 8, 192>(x, w);
  if (form == "2x2") y = by_winograd<2, 2, 2, 10, 40, 0>(x, w);
  if (form == "2x4") y = by_winograd<2, 4, 2, 10, 30, 0>(x, w);
  if (form == "4x4") y = by_winograd<4, 4, 2, 10, 20, 0>(x, w);
  if (form == "4x4/32") y = by_winograd<4, 4, 2, 10, 20, 32>(x, w);
  if (form == "4x4+32") y = by_winograd<4, 4, 2, 10, 20, -32>(x, w);
  if (form == "4x4+16") y = by_winograd<4, 4, 2, 10, 20, -16>(x, w);
  if (form == "4x4/64") y = by_winograd<4, 4, 2, 10, 20, 64>(x, w);
  if (!check) return;
  // Every third row: doubles are slow here.
  std::vector<double> want;
  std::vector<half> got;
  for (int oy = 1; oy < kSide; oy += 9)
    for (int ox = 0; ox < kSide; ox++) {
      std::vector<double> sum(kChannels);
      for (int tap = 0; tap < 9; tap++) {
        const int iy = oy + tap / 3 - 1, ix = ox + tap % 3 - 1;
        if (iy < 0 || iy >= kSide || ix < 0 || ix >= kSide) continue;
        for (int ci = 0; ci < kChannels; ci++) {
          const double v = static_cast<double>(
              sinter::to_float(x[static_cast<std::size_t>((iy * kSide + ix) * kChannels + ci)]));
          const half* const row = w.data() + (tap * kChannels + ci) * kChannels;
          for (int co = 0; co < kChannels; co++)
            sum[static_cast<std::size_t>(co)] += v * static_cast<double>(sinter::to_float(row[co]));
        }
      }
      for (int co = 0; co < kChannels; co++) {
        want.push_back(sum[static_cast<std::size_t>(co)]);
        got.push_back(y[static_cast<std::size_t>((oy * kSide + ox) * kChannels + co)]);
      }
    }
  worst(got, want, form.c_str());
}

// A tile's own speed, from the first-level cache: k = 256.
template <int OB, int T, std::ptrdiff_t Block>
void tile() {
  matmul<OB, T, Block>(T * 4, 256, OB * kHalfLanes * 2, false, "tile");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "conv3", form = argc > 2 ? argv[2] : "4x4";
  const bool check = argc > 3 ? std::atoi(argv[3]) != 0 : false;
  if (what == "conv3") conv3(form, check);
  if (what == "tile") {
    if (form == "2x10") tile<2, 10, kAll>();
    if (form == "2x9") tile<2, 9, kAll>();
    if (form == "2x8") tile<2, 8, kAll>();
    if (form == "3x7") tile<3, 7, kAll>();
    if (form == "3x6") tile<3, 6, kAll>();
    if (form == "4x5") tile<4, 5, kAll>();
    if (form == "4x4") tile<4, 4, kAll>();
    if (form == "1x14") tile<1, 14, kAll>();
    if (form == "1x12") tile<1, 12, kAll>();
    if (form == "2x10/32") tile<2, 10, 32>();
    if (form == "2x10/64") tile<2, 10, 64>();
    if (form == "2x10/128") tile<2, 10, 128>();
    if (form == "3x7/64") tile<3, 7, 64>();
    if (form == "4x5/64") tile<4, 5, 64>();
  }
  if (what == "matmul") {
    if (form == "all") matmul<2, 10, kAll>(128, 768, 768, check, "matmul, one block");
    if (form == "32") matmul<2, 10, 32>(128, 768, 768, check, "matmul, blocks of 32");
    if (form == "64") matmul<2, 10, 64>(128, 768, 768, check, "matmul, blocks of 64");
    if (form == "128") matmul<2, 10, 128>(128, 768, 768, check, "matmul, blocks of 128");
    if (form == "4x5") matmul<4, 5, 128>(128, 768, 768, check, "matmul, tiles of 4x5, blocks of 128");
  }
  if (what == "pw") {  // MobileNetV2's pointwise convolutions
    if (form == "16x96") matmul<3, 7, 128>(112 * 112, 16, 96, check, "112: 16 -> 96");
    if (form == "96x24") matmul<3, 7, 128>(56 * 56, 96, 24, check, "56: 96 -> 24");
    if (form == "24x144") matmul<3, 7, 128>(56 * 56, 24, 144, check, "56: 24 -> 144");
    if (form == "144x24") matmul<3, 7, 128>(56 * 56, 144, 24, check, "56: 144 -> 24");
    if (form == "192x32") matmul<2, 10, 128>(28 * 28, 192, 32, check, "28: 192 -> 32");
    if (form == "384x64") matmul<2, 10, 128>(14 * 14, 384, 64, check, "14: 384 -> 64");
    if (form == "64x384") matmul<2, 10, 128>(14 * 14, 64, 384, check, "14: 64 -> 384");
    if (form == "960x160") matmul<2, 10, 128>(7 * 7, 960, 160, check, "7: 960 -> 160");
    if (form == "320x1280") matmul<2, 10, 128>(7 * 7, 320, 1280, check, "7: 320 -> 1280");
  }
}
