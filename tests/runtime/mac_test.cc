// mac, mac_strided and mac_row against sums in double, over tiles, strides and lengths; every x lies in
// memory of just the size the contract names, so that AddressSanitizer finds a read too far.

// clang-format off
#include "simd_isa.h"  // first: it chooses the instruction set
#include "sinter/mac.h"
// clang-format on

namespace isa = sinter::SINTER_ISA;
using isa::kLanes;

namespace {

std::vector<float> random_floats(std::ptrdiff_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> v(static_cast<size_t>(n));
  // Multiples of 1/64: all sums of up to a thousand products are exact in float, whatever the order.
  for (float& x : v) x = static_cast<float>(static_cast<int>(random() % 129) - 64) / 64.0f;
  return v;
}

struct Case {
  std::ptrdiff_t k, pixel_stride, k_stride;
};

template <int OB, int T>
void check_tile(const Case& c, bool with_bias) {
  const std::ptrdiff_t reach = c.k == 0 ? 0 : (T - 1) * c.pixel_stride + (c.k - 1) * c.k_stride + 1;
  const std::vector<float> x = random_floats(reach, 1), w = random_floats(c.k * OB * kLanes, 2);
  const std::vector<float> bias = random_floats(OB * kLanes, 3);
  isa::Tile<OB, T> tile;
  isa::tile_bias(tile, with_bias ? bias.data() : nullptr);
  if (c.k_stride == 1) {
    isa::mac(tile, x.data(), c.pixel_stride, w.data(), c.k);
  } else {
    isa::mac_strided(tile, x.data(), c.pixel_stride, c.k_stride, w.data(), c.k);
  }
  for (int t = 0; t < T; t++) {
    for (int o = 0; o < OB; o++) {
      float got[kLanes];
      isa::store(got, tile.a[t][o]);
      for (int l = 0; l < kLanes; l++) {
        double want = with_bias ? static_cast<double>(bias[static_cast<size_t>(o * kLanes + l)]) : 0.0;
        for (std::ptrdiff_t i = 0; i < c.k; i++) {
          want += static_cast<double>(x[static_cast<size_t>(t * c.pixel_stride + i * c.k_stride)]) *
                  static_cast<double>(w[static_cast<size_t>((i * OB + o) * kLanes + l)]);
        }
        ASSERT_EQ(static_cast<double>(got[l]), want)
            << OB << "x" << T << " k " << c.k << " pixel " << t << " vector " << o << " lane " << l;
      }
    }
  }
}

template <int OB, int T>
void check_tiles() {
  for (std::ptrdiff_t k : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 64}) {
    const Case cases[] = {{k, k, 1}, {k, k + 5, 1}, {k, 1, 17}, {k, 2, 40}, {k, 3 * k, 3}, {k, 0, 1}};
    for (const Case& c : cases) check_tile<OB, T>(c, k % 2 == 0);
  }
}

TEST(Mac, OneVector) {
  check_tiles<1, 1>();
  check_tiles<1, 2>();
  check_tiles<1, 5>();
  check_tiles<1, isa::kTileT<1>>();
}
TEST(Mac, TwoVectors) {
  check_tiles<2, 1>();
  check_tiles<2, 3>();
  check_tiles<2, 8>();
  check_tiles<2, isa::kTileT<2>>();
}
TEST(Mac, ThreeVectors) {
  check_tiles<3, 1>();
  check_tiles<3, 2>();
  check_tiles<3, 6>();
  check_tiles<3, isa::kTileT<3>>();
}
TEST(Mac, FourVectors) {
  check_tiles<4, 1>();
  check_tiles<4, 2>();
  check_tiles<4, 3>();
  check_tiles<4, isa::kTileT<4>>();
}

#if !defined(SINTER_ISA_NEON)
// What is asked for ahead changes no sum, need not exist, and moves on by Step a value of k.
template <int OB, int T, int Step>
void check_ahead() {
  for (std::ptrdiff_t k : {0, 1, 5, 64}) {
    const std::vector<float> x = random_floats(T * k, 9), w = random_floats(k * OB * kLanes, 10);
    isa::Tile<OB, T> got, want;
    isa::tile_bias(got, nullptr);
    isa::tile_bias(want, nullptr);
    const float* const end = w.data() + w.size();
    isa::Ahead<Step> ahead{end};
    isa::mac(got, x.data(), k, w.data(), k, isa::RowOf<OB>(), ahead);
    isa::mac(want, x.data(), k, w.data(), k);
    EXPECT_EQ(ahead.next, end + k * Step);
    for (int t = 0; t < T; t++)
      for (int o = 0; o < OB; o++) {
        float a[kLanes], b[kLanes];
        isa::store(a, got.a[t][o]);
        isa::store(b, want.a[t][o]);
        for (int l = 0; l < kLanes; l++)
          ASSERT_EQ(a[l], b[l]) << OB << "x" << T << " k " << k << " lane " << l;
      }
  }
}
TEST(Mac, AsksAhead) {
  check_ahead<2, 5, 1>();
  check_ahead<3, isa::kTileT<3>, 7>();
  check_ahead<4, 2, 40>();
}
#endif

template <int OB>
void check_row() {
  for (std::ptrdiff_t k : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 100}) {
    const std::vector<float> x = random_floats(k, 4), w = random_floats(k * OB * kLanes, 5);
    const std::vector<float> bias = random_floats(OB * kLanes, 6);
    isa::Tile<OB, 1> row, one;
    isa::tile_bias(row, bias.data());
    isa::tile_bias(one, bias.data());
    isa::mac_row(row, x.data(), w.data(), k);
    isa::mac(one, x.data(), 0, w.data(), k);
    for (int o = 0; o < OB; o++) {
      float got[kLanes], want[kLanes];
      isa::store(got, row.a[0][o]);
      isa::store(want, one.a[0][o]);
      for (int l = 0; l < kLanes; l++) ASSERT_EQ(got[l], want[l]) << OB << " k " << k << " lane " << l;
    }
  }
}

// The sums of a narrow panel in the order of a wide one, with products that must be rounded: bit by bit those
// of the wide panel's first columns.
template <int OB, int Whole>
void check_order() {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto draw = [&](std::ptrdiff_t n) {
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) x = uniform(random);
    return v;
  };
  for (const std::ptrdiff_t k : {1, 3, 8, 13, 100, 1027}) {
    const std::vector<float> x = draw(k), wide = draw(k * Whole * kLanes);
    std::vector<float> narrow(static_cast<size_t>(k * OB * kLanes));
    for (std::ptrdiff_t i = 0; i < k; i++)
      std::copy_n(wide.begin() + i * Whole * kLanes, OB * kLanes, narrow.begin() + i * OB * kLanes);
    isa::Tile<OB, 1> got;
    isa::Tile<Whole, 1> want;
    isa::tile_bias(got, nullptr);
    isa::tile_bias(want, nullptr);
    isa::mac_row<Whole>(got, x.data(), narrow.data(), k);
    isa::mac_row(want, x.data(), wide.data(), k);
    for (int o = 0; o < OB; o++) {
      float a[kLanes], b[kLanes];
      isa::store(a, got.a[0][o]);
      isa::store(b, want.a[0][o]);
      for (int l = 0; l < kLanes; l++) ASSERT_EQ(a[l], b[l]) << OB << " k " << k << " lane " << l;
    }
  }
}

TEST(Mac, RowInTheOrderOfWiderPanels) {
  check_order<1, 2>();
  check_order<1, 4>();
  check_order<2, 4>();
  check_order<3, 4>();
}

// Panels whose rows lack the last vector's last lanes against whole ones, in lanes that are there.
template <int OB, int T, int Tail>
void check_short_rows() {
  constexpr isa::ShortRow<OB, (Tail < kLanes ? Tail : kLanes)> row;
  constexpr int kRow = row;
  for (std::ptrdiff_t k : {1, 2, 3, 4, 5, 8, 11, 16, 19}) {
    const std::vector<float> x = random_floats((T + 1) * (k + 3), 7),
                             tight = random_floats(k * kRow + kLanes, 8);
    std::vector<float> whole(static_cast<size_t>(k * OB * kLanes));
    for (std::ptrdiff_t i = 0; i < k; i++)
      std::copy_n(tight.begin() + i * kRow, kRow, whole.begin() + i * OB * kLanes);
    constexpr int kWords = 5;
    isa::Tile<OB, T> got[kWords], want[kWords];
    for (int f = 0; f < kWords; f++) {
      isa::tile_bias(got[f], nullptr);
      isa::tile_bias(want[f], nullptr);
    }
    isa::mac(got[0], x.data(), k + 3, tight.data(), k, row);
    isa::mac(want[0], x.data(), k + 3, whole.data(), k);
    isa::mac_strided(got[1], x.data(), 1, T, tight.data(), k, row);
    isa::mac_strided(want[1], x.data(), 1, T, whole.data(), k);
    isa::mac_padded(got[2], x.data(), k + 3, tight.data(), k, row);
    isa::mac_padded(want[2], x.data(), k + 3, whole.data(), k);
    isa::mac_few<1>(got[3], x.data(), k + 3, tight.data(), row);
    isa::mac_few<1>(want[3], x.data(), k + 3, whole.data());
#if defined(SINTER_ISA_NEON)
    isa::mac_in_order(got[4], x.data(), k + 3, tight.data(), k, row);
    isa::mac_in_order(want[4], x.data(), k + 3, whole.data(), k);
#endif
    if constexpr (T == 1) {
      isa::mac_row(got[4], x.data(), tight.data(), k, row);
      isa::mac_row(want[4], x.data(), whole.data(), k);
    }
    for (int f = 0; f < kWords; f++) {
      for (int t = 0; t < T; t++) {
        float a[OB * kLanes], b[OB * kLanes];
        for (int o = 0; o < OB; o++) {
          isa::store(a + o * kLanes, got[f].a[t][o]);
          isa::store(b + o * kLanes, want[f].a[t][o]);
        }
        for (int l = 0; l < kRow; l++)
          ASSERT_EQ(a[l], b[l]) << "word " << f << ", " << OB << "x" << T << " k " << k << " lane " << l;
      }
    }
  }
}

TEST(Mac, ShortRows) {
  check_short_rows<1, 1, 1>();
  check_short_rows<1, 5, 3>();
  check_short_rows<2, 1, 2>();
  check_short_rows<2, isa::kTileT<2>, 1>();
  check_short_rows<3, 6, 7>();
  check_short_rows<4, 1, 3>();
  check_short_rows<4, isa::kTileT<4>, 9>();
}

TEST(Mac, Row) {
  check_row<1>();
  check_row<2>();
  check_row<3>();
  check_row<4>();
}

}  // namespace

#include "sinter/simd_end.h"
