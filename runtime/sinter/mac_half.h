// The register tile of mac.h for halves: OB vectors of 8 output channels x T pixels, accumulated over k input
// channels, each product fused into its sum, which is rounded to a half:
//
//   acc.a[t][o] += sum over i in [0, k) of x[t * pixel_stride + i * k_stride] * w[(i * OB + o) * 8 ...]
//
// w is a packed panel [k][OB][8]; its rows may be shorter (HalfRow). Sums are taken in the order of i, the
// same bits on every instruction set and in both forms. Nothing but the named elements of x and w is read.
//
// A sum of k halves errs by about 2^-12 sqrt(k) of its size. So a long one is cut into blocks, whose sums are
// added up in floats (flush): then k is the block's length. The floats lie in the first-level cache, as they
// would not fit into registers beside the tile: [T][OB][8]. A block's end costs a vector of sums two loads,
// two conversions, two sums and two stores: with blocks of 64, a tenth more time for a 3x3 convolution on a
// Cortex-A76.
//
// Tiles whose inner loop has no spills with g++ 12: 1x8 2x10 3x7 4x5, OB*T + OB + T <= 32. An element of a
// vector that multiplies must be in registers 0 to 15, so T <= 15. In order, OB >= 3 is faster: of two
// vectors of weights the next one is waited for.
#ifndef SINTER_MAC_HALF_H_
#define SINTER_MAC_HALF_H_
#ifndef SINTER_HALF_ARITHMETIC
#error "include sinter/half_arithmetic.h and a sinter/simd_*.h before sinter/mac_half.h"
#endif

#include "sinter/mac.h"
#include "sinter/simd_half.h"

namespace sinter::SINTER_ISA {

template <int OB, int T>
struct HalfTile {
  f16v a[T][OB];
};

// The largest T (pixels) of a tile of OB vectors that stays in registers, OB = 1 to 4.
template <int OB>
constexpr int kHalfTileT = OB == 1   ? 8
                           : OB == 2 ? 10
                           : OB == 3 ? 7
                           : OB == 4 ? 5
                                     : 1;

// How a panel of OB vectors lies in memory: halves from one value of k to the next. A panel whose last vector
// has only `Last` channels may come without the other lanes: a vector more than the panel can be read then,
// and what is in such lanes only gets to lanes of the sums that nobody stores.
template <int OB, int Last = 8>
using HalfRow = PanelRow<(OB - 1) * kHalfLanes + Last, false>;

namespace detail {
#if defined(SINTER_ISA_NEON)
// The vector at p, loaded each time it is asked for: see load_start of mac.h.
SINTER_INLINE f16v load_half_start(const half* p) {
  typedef uint16_t vector __attribute__((vector_size(16), aligned(2), may_alias));
  f16v v;
  __asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(*reinterpret_cast<const vector*>(p)));
  return v;
}
// Zeros, made anew each time for the same reason.
SINTER_INLINE f16v half_zeros() {
  f16v v;
  __asm__ volatile("movi %0.2d, #0" : "=w"(v));
  return v;
}
#else
SINTER_INLINE f16v load_half_start(const half* p) { return load<f16v>(p); }
SINTER_INLINE f16v half_zeros() { return zero<f16v>(); }
#endif

// One value of k.
template <int Row, int OB, int T>
SINTER_INLINE void mac_half_step(HalfTile<OB, T>& acc, const half* x, std::ptrdiff_t pixel_stride,
                                 const half* w) {
  f16v wv[OB];
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) wv[o] = load<f16v>(w + o * kHalfLanes);
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    const f16v xv = splat<f16v>(x[t * pixel_stride]);
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
#if defined(SINTER_ISA_NEON)
      __asm__("fmla %0.8h, %1.8h, %2.8h" : "+w"(acc.a[t][o]) : "w"(wv[o]), "w"(xv));
#else
      acc.a[t][o] = fma(wv[o], xv, acc.a[t][o]);
#endif
    }
  }
}

#if defined(SINTER_ISA_NEON)
// A vector of x, in one of the registers whose elements can multiply: where the compiler thinks of another
// one, it moves or spills for each use.
SINTER_INLINE f16v load_by_lane(const half* p) {
  typedef uint16_t vector __attribute__((vector_size(16), aligned(2), may_alias));
  f16v v;
  __asm__("ldr %q0, %1" : "=x"(v) : "m"(*reinterpret_cast<const vector*>(p)));
  return v;
}
SINTER_INLINE f16v load_four_by_lane(const half* p) {
  f16v v;
  __asm__("ldr %d0, %1" : "=x"(v) : "m"(*reinterpret_cast<const half_vector*>(p)));
  return v;
}
// One value of k of those whose x sit in the lanes of xv. By the instruction's name: see mac_lane of mac.h.
template <int Lane, int Row, int OB, int T>
SINTER_INLINE void mac_half_lane(HalfTile<OB, T>& acc, const f16v (&xv)[T], const half* w) {
  f16v wv[OB];
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) wv[o] = load<f16v>(w + Lane * Row + o * kHalfLanes);
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++)
      __asm__("fmla %0.8h, %1.8h, %2.h[%3]" : "+w"(acc.a[t][o]) : "w"(wv[o]), "x"(xv[t]), "i"(Lane));
  }
}
template <int Row, int OB, int T, int... Lane>
SINTER_INLINE void mac_half_lanes(HalfTile<OB, T>& acc, const f16v (&xv)[T], const half* w,
                                  std::integer_sequence<int, Lane...>) {
  (mac_half_lane<Lane, Row>(acc, xv, w), ...);
}
#endif
}  // namespace detail

// Starts every pixel's sums at bias[OB * 8], or at zero if bias is null.
template <int OB, int T>
SINTER_INLINE void tile_bias(HalfTile<OB, T>& acc, const half* bias) {
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++)
      acc.a[t][o] = bias != nullptr ? detail::load_half_start(bias + o * kHalfLanes) : detail::half_zeros();
  }
}

// x elements k_stride halves apart.
template <int OB, int T, class Row = HalfRow<OB>>
SINTER_INLINE void mac_strided(HalfTile<OB, T>& acc, const half* x, std::ptrdiff_t pixel_stride,
                               std::ptrdiff_t k_stride, const half* w, std::ptrdiff_t k, Row = Row()) {
  for (std::ptrdiff_t i = 0; i < k; i++) {
    detail::mac_half_step<Row::value>(acc, x, pixel_stride, w);
    x += k_stride;
    w += Row::value;
  }
}

// x elements contiguous. NEON loads eight of them at once, or four, and multiplies by lane.
template <int OB, int T, class Row = HalfRow<OB>>
SINTER_INLINE void mac(HalfTile<OB, T>& acc, const half* x, std::ptrdiff_t pixel_stride, const half* w,
                       std::ptrdiff_t k, Row row = Row()) {
#if defined(SINTER_ISA_NEON)
  f16v xv[T];
  for (; k >= 8; k -= 8) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) xv[t] = detail::load_by_lane(x + t * pixel_stride);
    detail::mac_half_lanes<Row::value>(acc, xv, w, std::make_integer_sequence<int, 8>());
    x += 8;
    w += 8 * Row::value;
  }
  if (k >= 4) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) xv[t] = detail::load_four_by_lane(x + t * pixel_stride);
    detail::mac_half_lanes<Row::value>(acc, xv, w, std::make_integer_sequence<int, 4>());
    x += 4;
    w += 4 * Row::value;
    k -= 4;
  }
#endif
  mac_strided(acc, x, pixel_stride, 1, w, k, row);
}

// The end of a block: its sums join the floats at sums[T][OB][8], or are the first there, and start at zero
// again.
template <bool First, int OB, int T>
SINTER_INLINE void flush(HalfTile<OB, T>& acc, float* sums) {
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      const Wide w = widen_lanes(acc.a[t][o]);
      float* const to = sums + (t * OB + o) * kHalfLanes;
      SINTER_UNROLL
      for (int i = 0; i < kFloatVectors; i++)
        store(to + i * kLanes, First ? w.part[i] : add(load(to + i * kLanes), w.part[i]));
    }
  }
  tile_bias(acc, nullptr);
}
// The same with sums that stay halves: a third of the cost. They then err by the square root of the number of
// blocks, too; of two or four blocks little is lost.
template <bool First, int OB, int T>
SINTER_INLINE void flush(HalfTile<OB, T>& acc, half* sums) {
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      half* const to = sums + (t * OB + o) * kHalfLanes;
      store(to, First ? acc.a[t][o] : add(load<f16v>(to), acc.a[t][o]));
    }
  }
  tile_bias(acc, nullptr);
}
// The whole sum of a vector of channels of a pixel, after the last block has stayed in the tile.
template <int OB, int T>
SINTER_INLINE Wide whole_sum(const HalfTile<OB, T>& acc, const float* sums, int t, int o) {
  Wide w = widen_lanes(acc.a[t][o]);
  SINTER_UNROLL
  for (int i = 0; i < kFloatVectors; i++)
    w.part[i] = add(load(sums + (t * OB + o) * kHalfLanes + i * kLanes), w.part[i]);
  return w;
}

}  // namespace sinter::SINTER_ISA

#if defined(SINTER_ISA_NEON)
#include "sinter/mac_half_in_order.h"
#else
namespace sinter::SINTER_ISA {
template <int OB, int T, class Row = HalfRow<OB>>
SINTER_INLINE void mac_in_order(HalfTile<OB, T>& acc, const half* x, std::ptrdiff_t pixel_stride,
                                const half* w, std::ptrdiff_t k, Row row = Row()) {
  mac(acc, x, pixel_stride, w, k, row);
}
}  // namespace sinter::SINTER_ISA
#endif

namespace sinter::SINTER_ISA {

// The whole sums in the tile, rounded once.
template <bool InOrder = false, int OB, int T, class Sum>
SINTER_INLINE void end_blocks(HalfTile<OB, T>& acc, const Sum* sums) {
#if defined(SINTER_ISA_NEON)
  if constexpr (InOrder && std::is_same_v<Sum, half>) return detail::add_sums_in_order<false>(acc, sums);
#endif
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      if constexpr (std::is_same_v<Sum, float>)
        acc.a[t][o] = narrow(whole_sum(acc, sums, t, o));
      else
        acc.a[t][o] = add(acc.a[t][o], load<f16v>(sums + (t * OB + o) * kHalfLanes));
    }
  }
}

// Sums over k in blocks of `Block` values: the last block's stay in the tile, those before are in `sums`.
// Returns whether there are any: then whole_sum gives the result, or end_blocks puts it into the tile; else
// the tile is it. InOrder chooses the form. What is known of k decides how many copies of the loop there are.
template <int Block, bool InOrder = false, int OB, int T, class Sum, class Row = HalfRow<OB>>
SINTER_INLINE bool mac_blocks(HalfTile<OB, T>& acc, Sum* sums, const half* x, std::ptrdiff_t pixel_stride,
                              const half* w, std::ptrdiff_t k, Row row = Row()) {
#if defined(SINTER_ISA_NEON)
  if constexpr (InOrder && std::is_same_v<Sum, half> && Block % 8 == 0 && detail::kHasHalfGroups<OB, T>)
    return detail::mac_blocks_in_order<Block>(acc, sums, x, pixel_stride, w, k, row);
#endif
  const auto block = [&](std::ptrdiff_t n) __attribute__((always_inline)) {
    if constexpr (InOrder)
      mac_in_order(acc, x, pixel_stride, w, n, row);
    else
      mac(acc, x, pixel_stride, w, n, row);
    x += n, w += n * Row::value, k -= n;
  };
  if (k <= Block) {
    block(k);
    return false;
  }
  block(Block);
  flush<true>(acc, sums);
  while (k > Block) {
    block(Block);
    flush<false>(acc, sums);
  }
  block(k);
  return true;
}

// Sums over several runs of k, in blocks of at most `Block` values, which are added up as `Sum`. Between runs
// the tile has the block that is open; end() leaves the whole sums in the tile, rounded once.
template <int OB, int T, int Block = 128, class Sum = float>
struct BlockSums {
  Sum a[T * OB * kHalfLanes] = {};
  std::ptrdiff_t open = 0;  // values of k in the open block

  __attribute__((always_inline)) void close(HalfTile<OB, T>& acc) {
    flush<false>(acc, a);
    open = 0;
  }
  __attribute__((always_inline)) void end(HalfTile<OB, T>& acc) const { end_blocks(acc, a); }
};
template <bool InOrder, int OB, int T, int Block, class Sum, class Row = HalfRow<OB>>
SINTER_INLINE void mac_in_blocks(HalfTile<OB, T>& acc, BlockSums<OB, T, Block, Sum>& blocks, const half* x,
                                 std::ptrdiff_t pixel_stride, const half* w, std::ptrdiff_t k,
                                 Row row = Row()) {
  while (k > 0) {
    if (blocks.open >= Block) blocks.close(acc);
    const std::ptrdiff_t room = Block - blocks.open, n = k < room ? k : room;
    if constexpr (InOrder)
      mac_in_order(acc, x, pixel_stride, w, n, row);
    else
      mac(acc, x, pixel_stride, w, n, row);
    x += n, w += n * Row::value, k -= n, blocks.open += n;
  }
}

// The sums of one pixel at an edge, as those of mac.h's Chains: its tile and blocks. Halves need no more
// chains.
template <int OB, int = 0>
struct HalfChains {
  HalfTile<OB, 1> tile;
  BlockSums<OB, 1> blocks;
};
constexpr int chains_of_halves(int) { return 0; }
template <int OB, int Count>
SINTER_INLINE void chains_bias(HalfChains<OB, Count>& sums, const half* bias) {
  tile_bias(sums.tile, bias);
}
template <int OB, int Count>
SINTER_INLINE HalfTile<OB, 1> chains_sum(HalfChains<OB, Count>& sums) {
  sums.blocks.end(sums.tile);
  return sums.tile;
}
template <int OB, int Count, class Row = HalfRow<OB>>
SINTER_INLINE void mac_chains(HalfChains<OB, Count>& sums, const half* x, const half* w, std::ptrdiff_t k,
                              Row row = Row()) {
  mac_in_blocks<false>(sums.tile, sums.blocks, x, 0, w, k, row);
}
// One pixel's sums that are done by a single run of k.
template <int Whole = 0, int OB, class Row = HalfRow<OB>>
SINTER_INLINE void mac_row(HalfTile<OB, 1>& acc, const half* x, const half* w, std::ptrdiff_t k,
                           Row row = Row()) {
  BlockSums<OB, 1> blocks;
  mac_in_blocks<false>(acc, blocks, x, 0, w, k, row);
  blocks.end(acc);
}
SINTER_INLINE f16v load_half_start(const half* p) { return detail::load_half_start(p); }

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_MAC_HALF_H_
