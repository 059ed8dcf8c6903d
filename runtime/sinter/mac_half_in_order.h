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

// Eight values of k. But for the last group: loads what the next one begins with, from x + 8 and behind w.
template <bool Last, int Row, int OB, int T>
SINTER_INLINE void mac_half_group(HalfTile<OB, T>& acc, HalfOperands<OB, T>& in, const half* x,
                                  std::ptrdiff_t pixel_stride, const half* w) {
  constexpr int kSteps = 8 * OB;
  each(
      [&](auto step) __attribute__((always_inline)) {
        constexpr int kStep = step.value, kLane = kStep / OB, kOwn = kStep % OB;
        constexpr int kBefore = (kStep + OB - 1) % OB;
        constexpr bool kLoads = !Last || kStep + OB < kSteps;
        constexpr bool kLoadedBefore = !Last || kStep - 1 + OB < kSteps;
        constexpr int kNext = (kLane + 1) * Row + kOwn * kHalfLanes;
        each(
            [&](auto pixel) __attribute__((always_inline)) {
              constexpr int kPixel = pixel.value;
              __asm__ volatile("fmla %0.8h, %1.8h, %2.h[%3]"
                               : "+w"(acc.a[kPixel][kOwn])
                               : "w"(in.w[kOwn]), "x"(in.x[kPixel]), "i"(kLane));
              if constexpr (kPixel == 0 && kLoads) in.wh[kOwn] = load_half(w + kNext + 4);
              if constexpr (kStep == 0) in.xh[kPixel] = load_half(x + kPixel * pixel_stride + 4);
              if constexpr (kStep == 1) put_high(in.x[kPixel], in.xh[kPixel]);
              if constexpr (!Last && kStep == kSteps - 1)
                in.x[kPixel] = load_low_by_lane(x + 8 + kPixel * pixel_stride);
            },
            std::make_integer_sequence<int, T>());
        if constexpr (kLoadedBefore && (OB > 1 || kStep > 0)) put_high(in.w[kBefore], in.wh[kBefore]);
        if constexpr (kLoads) in.w[kOwn] = load_low<f16v>(w + kNext);
      },
      std::make_integer_sequence<int, kSteps>());
}

}  // namespace detail

template <int OB, int T, class Row = HalfRow<OB>>
SINTER_INLINE void mac_in_order(HalfTile<OB, T>& acc, const half* x, std::ptrdiff_t pixel_stride,
                                const half* w, std::ptrdiff_t k, Row row = Row()) {
  if constexpr (OB >= 2 && T >= 4 && OB * T + OB + T <= 32) {
    if (k >= 8) {
      detail::HalfOperands<OB, T> in;
      detail::each(
          [&](auto o) __attribute__((always_inline)) {
            in.wh[o.value] = detail::load_half(w + o.value * kHalfLanes + 4);
            in.w[o.value] = detail::load_low<f16v>(w + o.value * kHalfLanes);
          },
          std::make_integer_sequence<int, OB>());
      detail::each(
          [&](auto t) __attribute__((always_inline)) {
            in.x[t.value] = detail::load_low_by_lane(x + t.value * pixel_stride);
          },
          std::make_integer_sequence<int, T>());
      detail::each(
          [&](auto o) __attribute__((always_inline)) { detail::put_high(in.w[o.value], in.wh[o.value]); },
          std::make_integer_sequence<int, OB>());
      for (; k >= 16; k -= 8) {
        detail::mac_half_group<false, Row::value>(acc, in, x, pixel_stride, w);
        x += 8;
        w += 8 * Row::value;
      }
      detail::mac_half_group<true, Row::value>(acc, in, x, pixel_stride, w);
      x += 8;
      w += 8 * Row::value;
      k -= 8;
    }
  }
  mac(acc, x, pixel_stride, w, k, row);
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_MAC_HALF_IN_ORDER_H_
