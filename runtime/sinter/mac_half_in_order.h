// The register tile of mac_half.h for cores that execute in order and have half-precision arithmetic
// (Cortex-A55), same sums: as mac_in_order of mac.h, eight k at a time. A vector comes as a 64-bit load, an
// integer load beside a multiply-add and an insertion beside the next 64-bit load, each right after the last
// use of what was in its register; single instructions written out in the order in which they are to be
// issued. x's upper half is not needed before lane 4, so it comes during the first steps of a group.
//
// Included by mac_half.h. Nothing but the named elements of x and w is read.
#ifndef SINTER_MAC_HALF_IN_ORDER_H_
#define SINTER_MAC_HALF_IN_ORDER_H_

namespace sinter::SINTER_ISA {

namespace detail {

// What a group's operands are in: weights of the step s in number s % OB, and a vector of each pixel. Upper
// halves lie in wh and xh until they are inserted.
template <int OB, int T>
struct HalfOperands {
  f16v w[OB], x[T];
  std::uint64_t wh[OB], xh[T];
};

SINTER_INLINE f16v load_low_by_lane(const half* p) {
  f16v v;
  __asm__ volatile("ldr %d0, %1" : "=x"(v) : "m"(*reinterpret_cast<const half_vector*>(p)));
  return v;
}

// Eight values of k. Loads what the next group begins with, from next_x and next_w.
template <int Row, int OB, int T>
SINTER_INLINE void mac_half_group(HalfTile<OB, T>& acc, HalfOperands<OB, T>& in, const half* x,
                                  std::ptrdiff_t pixel_stride, const half* w, const half* next_x,
                                  const half* next_w) {
  constexpr int kSteps = 8 * OB;
  each(
      [&](auto step) __attribute__((always_inline)) {
        constexpr int kStep = step.value, kLane = kStep / OB, kOwn = kStep % OB;
        constexpr int kBefore = (kStep + OB - 1) % OB;
        const half* const from = (kLane == 7 ? next_w : w + (kLane + 1) * Row) + kOwn * kHalfLanes;
        each(
            [&](auto pixel) __attribute__((always_inline)) {
              constexpr int kPixel = pixel.value;
              __asm__ volatile("fmla %0.8h, %1.8h, %2.h[%3]"
                               : "+w"(acc.a[kPixel][kOwn])
                               : "w"(in.w[kOwn]), "x"(in.x[kPixel]), "i"(kLane));
              if constexpr (kPixel == 0) in.wh[kOwn] = load_half(from + 4);
              if constexpr (kStep == 0) in.xh[kPixel] = load_half(x + kPixel * pixel_stride + 4);
              if constexpr (kStep == 1) put_high(in.x[kPixel], in.xh[kPixel]);
              if constexpr (kStep == kSteps - 1)
                in.x[kPixel] = load_low_by_lane(next_x + kPixel * pixel_stride);
            },
            std::make_integer_sequence<int, T>());
        if constexpr (OB > 1 || kStep > 0) put_high(in.w[kBefore], in.wh[kBefore]);
        in.w[kOwn] = load_low<f16v>(from);
      },
      std::make_integer_sequence<int, kSteps>());
}

// What the first group begins with.
template <int OB, int T>
SINTER_INLINE void begin_half_groups(HalfOperands<OB, T>& in, const half* x, std::ptrdiff_t pixel_stride,
                                     const half* w) {
  each(
      [&](auto o) __attribute__((always_inline)) {
        in.wh[o.value] = load_half(w + o.value * kHalfLanes + 4);
        in.w[o.value] = load_low<f16v>(w + o.value * kHalfLanes);
      },
      std::make_integer_sequence<int, OB>());
  each(
      [&](auto t)
          __attribute__((always_inline)) { in.x[t.value] = load_low_by_lane(x + t.value * pixel_stride); },
      std::make_integer_sequence<int, T>());
  each(
      [&](auto o) __attribute__((always_inline)) { put_high(in.w[o.value], in.wh[o.value]); },
      std::make_integer_sequence<int, OB>());
}
// The groups of n values of k, moves x and w behind them. `left`: values of k from x on. What the last group
// loads for a next one is its own once more: that is there.
template <int Row, int OB, int T>
SINTER_INLINE void half_groups(HalfTile<OB, T>& acc, HalfOperands<OB, T>& in, const half*& x,
                               std::ptrdiff_t pixel_stride, const half*& w, std::ptrdiff_t n,
                               std::ptrdiff_t left) {
  for (; n >= 8; n -= 8, left -= 8) {
    const bool more = left >= 16;
    mac_half_group<Row>(acc, in, x, pixel_stride, w, more ? x + 8 : x, more ? w + 8 * Row : w);
    x += 8;
    w += 8 * Row;
  }
}

template <int OB, int T>
constexpr bool kHasHalfGroups = OB >= 2 && T >= 4 && OB* T + OB + T <= 32;

// acc += sums, or, where Flush, sums += acc and acc = 0: whole vectors of halves, two cycles each.
template <bool Flush, int OB, int T>
SINTER_INLINE void add_sums_in_order(HalfTile<OB, T>& acc,
                                     std::conditional_t<Flush, half, const half>* sums) {
  constexpr int kCount = OB * T;
  f16v in[kCount];
  std::uint64_t high[kCount];
  each(
      [&](auto step) __attribute__((always_inline)) {
        constexpr int kLoad = step.value, kJoin = kLoad - 2, kAdd = kLoad - 4, kStore = kLoad - 6;
        if constexpr (kLoad < kCount) in[kLoad] = load_low<f16v>(sums + kLoad * kHalfLanes);
        if constexpr (kAdd >= 0 && kAdd < kCount) {
          f16v& sum = acc.a[kAdd / OB][kAdd % OB];
          f16v& to = Flush ? in[kAdd] : sum;
          __asm__ volatile("fadd %0.8h, %1.8h, %2.8h" : "=w"(to) : "w"(in[kAdd]), "w"(sum));
        }
        if constexpr (kLoad < kCount) high[kLoad] = load_half(sums + kLoad * kHalfLanes + 4);
        if constexpr (kJoin >= 0 && kJoin < kCount) put_high(in[kJoin], high[kJoin]);
        if constexpr (Flush && kStore >= 0 && kStore < kCount) {
          typedef uint16_t vector __attribute__((vector_size(16), aligned(2), may_alias));
          __asm__ volatile("str %q1, %0"
                           : "=m"(*reinterpret_cast<vector*>(sums + kStore * kHalfLanes))
                           : "w"(in[kStore]));
          acc.a[kStore / OB][kStore % OB] = half_zeros();
        }
      },
      std::make_integer_sequence<int, kCount + 6>());
}

}  // namespace detail

template <int OB, int T, class Row = HalfRow<OB>>
SINTER_INLINE void mac_in_order(HalfTile<OB, T>& acc, const half* x, std::ptrdiff_t pixel_stride,
                                const half* w, std::ptrdiff_t k, Row row = Row()) {
  if constexpr (detail::kHasHalfGroups<OB, T>) {
    if (k >= 8) {
      detail::HalfOperands<OB, T> in;
      detail::begin_half_groups(in, x, pixel_stride, w);
      detail::half_groups<Row::value>(acc, in, x, pixel_stride, w, k, k);
      k %= 8;
    }
  }
  mac(acc, x, pixel_stride, w, k, row);
}

namespace detail {
// flush of the first block's sums.
template <int OB, int T>
SINTER_INLINE void put_sums_in_order(HalfTile<OB, T>& acc, half* sums) {
  each(
      [&](auto i) __attribute__((always_inline)) {
        f16v& sum = acc.a[i.value / OB][i.value % OB];
        store(sums + i.value * kHalfLanes, sum);
        sum = half_zeros();
      },
      std::make_integer_sequence<int, OB * T>());
}

// mac_blocks of sums that stay halves in this form: what a block's first group begins with is loaded during
// the block before. Between blocks of floats there are no registers for it. The tile is a copy whose elements
// are all named by constants: g++ 12 would leave another one in memory.
template <int Block, int OB, int T, class Row>
SINTER_INLINE bool mac_blocks_in_order(HalfTile<OB, T>& acc, half* sums, const half* x,
                                       std::ptrdiff_t pixel_stride, const half* w, std::ptrdiff_t k,
                                       Row row) {
  static_assert(Block % 8 == 0, "blocks of whole groups");
  const bool many = k > Block;
  if (k >= 8) {
    HalfTile<OB, T> sum = acc;
    HalfOperands<OB, T> in;
    begin_half_groups(in, x, pixel_stride, w);
    if (many) {
      half_groups<Row::value>(sum, in, x, pixel_stride, w, Block, k);
      k -= Block;
      put_sums_in_order(sum, sums);
      while (k > Block) {
        half_groups<Row::value>(sum, in, x, pixel_stride, w, Block, k);
        k -= Block;
        add_sums_in_order<true>(sum, sums);
      }
    }
    half_groups<Row::value>(sum, in, x, pixel_stride, w, k, k);
    acc = sum;
    k %= 8;
  }
  mac(acc, x, pixel_stride, w, k, row);
  return many;
}
}  // namespace detail

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_MAC_HALF_IN_ORDER_H_
