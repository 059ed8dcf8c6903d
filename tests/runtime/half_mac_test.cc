// mac_half.h against sums of halves rounded one by one in double: bit by bit, over tiles, strides, lengths
// and blocks, in both forms; every x lies in memory of just the size the contract names.

// clang-format off
#include <gtest/gtest.h>
#include "sinter/half_arithmetic.h"
#include "simd_isa.h"
#include "half_reference.h"
#include "sinter/mac_half.h"
// clang-format on

namespace isa = sinter::SINTER_ISA;
using isa::kHalfLanes;
using sinter::half;

namespace {

std::vector<half> random_halves(std::ptrdiff_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<half> v(static_cast<size_t>(n));
  for (half& x : v) x = sinter::to_half(uniform(random));
  return v;
}

half rounded(double x) { return sinter::to_half(static_cast<float>(nearest_half(x))); }

struct Case {
  std::ptrdiff_t k, pixel_stride, k_stride;
};

// Sum of [first, last) of k, from `start`, as halves.
template <int Row>
half sum_of(half start, const half* x, const half* w, const Case& c, std::ptrdiff_t first,
            std::ptrdiff_t last) {
  double sum = value(start);
  for (std::ptrdiff_t i = first; i < last; i++)
    sum = nearest_half(value(x[i * c.k_stride]) * value(w[i * Row]) + sum);
  return rounded(sum);
}

template <int OB, int T>
void check_tile(const Case& c, bool with_bias) {
  const std::ptrdiff_t reach = c.k == 0 ? 0 : (T - 1) * c.pixel_stride + (c.k - 1) * c.k_stride + 1;
  constexpr int kRow = OB * kHalfLanes;
  const std::vector<half> x = random_halves(reach, 1), w = random_halves(c.k * kRow, 2);
  const std::vector<half> bias = random_halves(kRow, 3);
  isa::HalfTile<OB, T> tile[2];
  const int forms = c.k_stride == 1 ? 2 : 1;
  for (int f = 0; f < forms; f++) {
    isa::tile_bias(tile[f], with_bias ? bias.data() : nullptr);
    if (c.k_stride != 1)
      isa::mac_strided(tile[f], x.data(), c.pixel_stride, c.k_stride, w.data(), c.k);
    else if (f == 0)
      isa::mac(tile[f], x.data(), c.pixel_stride, w.data(), c.k);
    else
      isa::mac_in_order(tile[f], x.data(), c.pixel_stride, w.data(), c.k);
  }
  for (int f = 0; f < forms; f++)
    for (int t = 0; t < T; t++)
      for (int o = 0; o < OB; o++) {
        half got[kHalfLanes];
        isa::store(got, tile[f].a[t][o]);
        for (int l = 0; l < kHalfLanes; l++) {
          const half start = with_bias ? bias[static_cast<size_t>(o * kHalfLanes + l)] : half{0};
          const half want =
              sum_of<kRow>(start, x.data() + t * c.pixel_stride, w.data() + o * kHalfLanes + l, c, 0, c.k);
          ASSERT_EQ(got[l].bits, want.bits) << OB << "x" << T << " k " << c.k << " form " << f << " pixel "
                                            << t << " vector " << o << " lane " << l;
        }
      }
}

template <int OB, int T>
void check_tiles() {
  for (std::ptrdiff_t k : {0, 1, 3, 4, 5, 7, 8, 9, 12, 16, 23, 40}) {
    const Case cases[] = {{k, k, 1}, {k, k + 5, 1}, {k, 2, 40}, {k, 3 * k, 3}, {k, 0, 1}};
    for (const Case& c : cases) check_tile<OB, T>(c, k % 2 == 0);
  }
}
TEST(HalfMac, OneVector) { check_tiles<1, 1>(), check_tiles<1, 4>(), check_tiles<1, isa::kHalfTileT<1>>(); }
TEST(HalfMac, TwoVectors) {
  check_tiles<2, 1>(), check_tiles<2, 4>(), check_tiles<2, 7>(), check_tiles<2, isa::kHalfTileT<2>>();
}
TEST(HalfMac, ThreeVectors) {
  check_tiles<3, 1>(), check_tiles<3, 5>(), check_tiles<3, 6>(), check_tiles<3, isa::kHalfTileT<3>>();
}
TEST(HalfMac, FourVectors) { check_tiles<4, 1>(), check_tiles<4, 4>(), check_tiles<4, isa::kHalfTileT<4>>(); }

// Blocks: each one's sum a half, the whole in floats, in order.
template <int Block, int OB, int T>
void check_blocks() {
  constexpr int kRow = OB * kHalfLanes;
  for (std::ptrdiff_t k : {1, 16, 17, 31, 32, 33, 64, 96, 100, 161}) {
    const Case c = {k, k + 3, 1};
    const std::vector<half> x = random_halves((T - 1) * c.pixel_stride + k, 4),
                            w = random_halves(k * kRow, 5);
    const std::vector<half> bias = random_halves(kRow, 6);
    for (bool in_order : {false, true}) {
      isa::HalfTile<OB, T> tile;
      std::vector<float> sums(T * kRow);
      isa::tile_bias(tile, bias.data());
      const bool many =
          in_order ? isa::mac_blocks<Block, true>(tile, sums.data(), x.data(), c.pixel_stride, w.data(), k)
                   : isa::mac_blocks<Block>(tile, sums.data(), x.data(), c.pixel_stride, w.data(), k);
      EXPECT_EQ(many, k > Block);
      for (int t = 0; t < T; t++)
        for (int o = 0; o < OB; o++) {
          const isa::Wide wide =
              many ? isa::whole_sum(tile, sums.data(), t, o) : isa::widen_lanes(tile.a[t][o]);
          float got[kHalfLanes];
          for (int v = 0; v < isa::kFloatVectors; v++) isa::store(got + v * isa::kLanes, wide.part[v]);
          for (int l = 0; l < kHalfLanes; l++) {
            float want = 0;
            for (std::ptrdiff_t b = 0; b < k; b += Block) {
              const half start = b == 0 ? bias[static_cast<size_t>(o * kHalfLanes + l)] : half{0};
              const half sum = sum_of<kRow>(start, x.data() + t * c.pixel_stride,
                                            w.data() + o * kHalfLanes + l, c, b, std::min(b + Block, k));
              want = b == 0 ? sinter::to_float(sum) : want + sinter::to_float(sum);
            }
            ASSERT_EQ(got[l], want) << OB << "x" << T << " block " << Block << " k " << k << " in order "
                                    << in_order << " pixel " << t << " vector " << o << " lane " << l;
          }
        }
    }
  }
}
// Blocks whose sums are added in halves.
template <int OB, int T>
void check_half_blocks() {
  constexpr int kRow = OB * kHalfLanes, kBlocks = 3, kBlock = 16, kAll = kBlocks * kBlock;
  const Case c = {kAll, kAll, 1};
  const std::vector<half> x = random_halves(T * kAll, 9), w = random_halves(kAll * kRow, 10);
  std::vector<half> sums(T * kRow);
  isa::HalfTile<OB, T> tile;
  isa::tile_bias(tile, nullptr);
  for (int b = 0; b < kBlocks; b++) {
    isa::mac(tile, x.data() + b * kBlock, kAll, w.data() + b * kBlock * kRow, kBlock);
    if (b == 0)
      isa::flush<true>(tile, sums.data());
    else
      isa::flush<false>(tile, sums.data());
  }
  for (int t = 0; t < T; t++)
    for (int i = 0; i < kRow; i++) {
      double want = 0;
      for (int b = 0; b < kBlocks; b++)
        want = nearest_half(want + value(sum_of<kRow>(half{0}, x.data() + t * kAll, w.data() + i, c,
                                                      b * kBlock, (b + 1) * kBlock)));
      ASSERT_EQ(value(sums[static_cast<size_t>(t * kRow + i)]), want)
          << OB << "x" << T << " " << t << " " << i;
    }
}
// The same by one word, in both forms, with rests of a block; the last block's sum is added last.
template <int OB, int T>
void check_one_run_of_half_blocks(std::ptrdiff_t k) {
  constexpr int kRow = OB * kHalfLanes, kBlock = 16;
  const Case c = {k, k + 3, 1};
  const std::vector<half> x = random_halves((T - 1) * c.pixel_stride + k, 11),
                          w = random_halves(k * kRow, 12);
  for (bool in_order : {false, true}) {
    std::vector<half> sums(T * kRow, half{0x7e00});  // NaNs
    isa::HalfTile<OB, T> tile;
    isa::tile_bias(tile, nullptr);
    const bool many =
        in_order ? isa::mac_blocks<kBlock, true>(tile, sums.data(), x.data(), c.pixel_stride, w.data(), k)
                 : isa::mac_blocks<kBlock>(tile, sums.data(), x.data(), c.pixel_stride, w.data(), k);
    ASSERT_EQ(many, k > kBlock);
    if (many && in_order)
      isa::end_blocks<true>(tile, sums.data());
    else if (many)
      isa::end_blocks(tile, sums.data());
    for (int t = 0; t < T; t++)
      for (int i = 0; i < kRow; i++) {
        half got[kHalfLanes];
        isa::store(static_cast<half*>(got), tile.a[t][i / kHalfLanes]);
        double want = 0;
        for (std::ptrdiff_t b = 0; b < k; b += kBlock)
          want = nearest_half(want + value(sum_of<kRow>(half{0}, x.data() + t * c.pixel_stride, w.data() + i,
                                                        c, b, std::min(b + kBlock, k))));
        ASSERT_EQ(value(got[i % kHalfLanes]), want)
            << OB << "x" << T << " k " << k << " in order " << in_order << " " << t << " " << i;
      }
  }
}
TEST(HalfMac, OneRunOfBlocksInHalves) {
  for (std::ptrdiff_t k : {7, 16, 17, 24, 40, 48, 64, 69}) {
    check_one_run_of_half_blocks<1, 3>(k);
    check_one_run_of_half_blocks<2, isa::kHalfTileT<2>>(k);
    check_one_run_of_half_blocks<3, 6>(k);
    check_one_run_of_half_blocks<4, isa::kHalfTileT<4>>(k);
  }
}
TEST(HalfMac, BlocksInHalves) {
  check_half_blocks<1, 3>();
  check_half_blocks<2, isa::kHalfTileT<2>>();
  check_half_blocks<4, isa::kHalfTileT<4>>();
}
TEST(HalfMac, Blocks) {
  check_blocks<16, 1, 1>();
  check_blocks<32, 1, isa::kHalfTileT<1>>();
  check_blocks<32, 2, isa::kHalfTileT<2>>();
  check_blocks<64, 3, isa::kHalfTileT<3>>();
  check_blocks<32, 4, isa::kHalfTileT<4>>();
  check_blocks<12, 4, 2>();
}

// Panels whose rows lack the last vector's last lanes against whole ones, in lanes that are there.
template <int OB, int T, int Last>
void check_short_rows() {
  constexpr isa::HalfRow<OB, Last> row;
  constexpr int kRow = row;
  for (std::ptrdiff_t k : {1, 4, 8, 11, 16, 29}) {
    const std::vector<half> x = random_halves(T * (k + 3), 7),
                            tight = random_halves(k * kRow + kHalfLanes, 8);
    std::vector<half> whole(static_cast<size_t>(k * OB * kHalfLanes), half{0});
    for (std::ptrdiff_t i = 0; i < k; i++)
      std::copy_n(tight.begin() + i * kRow, kRow, whole.begin() + i * OB * kHalfLanes);
    isa::HalfTile<OB, T> want, got[3];
    isa::tile_bias(want, nullptr);
    for (auto& g : got) isa::tile_bias(g, nullptr);
    isa::mac(want, x.data(), k + 3, whole.data(), k);
    isa::mac(got[0], x.data(), k + 3, tight.data(), k, row);
    isa::mac_in_order(got[1], x.data(), k + 3, tight.data(), k, row);
    isa::mac_strided(got[2], x.data(), k + 3, 1, tight.data(), k, row);
    for (const auto& g : got)
      for (int t = 0; t < T; t++) {
        half a[OB * kHalfLanes], b[OB * kHalfLanes];
        for (int o = 0; o < OB; o++) {
          isa::store(a + o * kHalfLanes, g.a[t][o]);
          isa::store(b + o * kHalfLanes, want.a[t][o]);
        }
        for (int l = 0; l < kRow; l++) ASSERT_EQ(a[l].bits, b[l].bits) << OB << "x" << T << " k " << k;
      }
  }
}
TEST(HalfMac, ShortRows) {
  check_short_rows<1, 3, 3>();
  check_short_rows<2, isa::kHalfTileT<2>, 4>();
  check_short_rows<3, isa::kHalfTileT<3>, 1>();
  check_short_rows<4, 5, 7>();
}

}  // namespace

#include "sinter/simd_end.h"
