// The register tile of dot.h for cores that execute in order and have dot products (Cortex-A55), same sums:
// as mac_in_order of mac.h, sixteen k at a time. A vector comes as a 64-bit load, an integer load beside a
// product and an insertion beside a later one, each right after the last use of what was in its register;
// single instructions written out in the order in which they are to be issued. x's upper half is not needed
// before lane 2, so it comes during the first steps of a group.
//
// Included by dot.h. Nothing but the named elements of x and w is read.
#ifndef SINTER_DOT_IN_ORDER_H_
#define SINTER_DOT_IN_ORDER_H_
#ifndef SINTER_DOT_BY_LANE
#error "include sinter/dot.h"
#endif

namespace sinter::SINTER_ISA::detail {

// The halves of sixteen x or weights; x that are unsigned with their sign flipped.
template <class X>
SINTER_INLINE int8x16_t low_bytes(const X* p) {
  const int8x16_t v = load_low<int8x16_t>(p);
  if constexpr (kFlip<X> != 0) return veorq_s8(v, vdupq_n_s8(-128));
  return v;
}
template <class X>
SINTER_INLINE std::uint64_t high_bytes(const X* p) {
  return load_half(p + 8) ^ kFlip<X> * 0x100000001u;
}

// What a group's operands are in: the next kAhead vectors of weights, of which step s takes number s %
// kAhead, and a vector of each pixel. Upper halves lie in wh and xh until they are inserted.
template <int OB, int T>
struct DotOperands {
  static constexpr int kAhead = OB < 2 ? 2 : OB;
  int8x16_t w[kAhead], x[T];
  std::uint64_t wh[kAhead], xh[T];
};

// Sixteen values of k. But for the last group: loads what the next one begins with, from x + 16 and behind w.
template <bool Last, int OB, int T, class X>
SINTER_INLINE void dot_group(IntTile<OB, T>& acc, DotOperands<OB, T>& in, const X* x,
                             std::ptrdiff_t pixel_stride, const std::int8_t* w) {
  constexpr int kAhead = DotOperands<OB, T>::kAhead, kBehind = T < 4 ? T : 3;
  // Upper halves: of weights, loaded beside a step's first product and inserted beside the last one of the
  // next; of pixels, loaded beside their product in step 0 and inserted kBehind products later.
  each(
      [&](auto step) __attribute__((always_inline)) {
        constexpr int kStep = step.value, kLane = kStep / OB, kOut = kStep % OB, kOwn = kStep % kAhead;
        constexpr int kBefore = (kStep + kAhead - 1) % kAhead;
        constexpr bool kLoads = !Last || kStep + kAhead < 4 * OB;
        constexpr bool kLoadedBefore = !Last || kStep - 1 + kAhead < 4 * OB;
        each(
            [&](auto pixel) __attribute__((always_inline)) {
              constexpr int kPixel = pixel.value;
              __asm__ volatile("sdot %0.4s, %1.16b, %2.4b[%3]"
                               : "+w"(acc.a[kPixel][kOut])
                               : "w"(in.w[kOwn]), "w"(in.x[kPixel]), "i"(kLane));
              if constexpr (kPixel == 0 && kLoads) in.wh[kOwn] = high_bytes(w + (kStep + kAhead) * 16);
              if constexpr (kPixel == T - 1 && kLoadedBefore) put_high(in.w[kBefore], in.wh[kBefore]);
              if constexpr (kStep == 0) {
                in.xh[kPixel] = high_bytes(x + kPixel * pixel_stride);
                if constexpr (kPixel >= kBehind) put_high(in.x[kPixel - kBehind], in.xh[kPixel - kBehind]);
              }
              if constexpr (kStep == 1 && kPixel < kBehind)
                put_high(in.x[T - kBehind + kPixel], in.xh[T - kBehind + kPixel]);
              if constexpr (!Last && kStep == 4 * OB - 1)
                in.x[kPixel] = low_bytes(x + 16 + kPixel * pixel_stride);
            },
            std::make_integer_sequence<int, T>());
        if constexpr (kLoads) in.w[kOwn] = low_bytes(w + (kStep + kAhead) * 16);
      },
      std::make_integer_sequence<int, 4 * OB>());
}

// k / 16 groups, k at least 16.
template <int OB, int T, class X>
SINTER_INLINE void dot_groups(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride,
                              const std::int8_t* w, std::ptrdiff_t k) {
  DotOperands<OB, T> in;
  each(
      [&](auto s) __attribute__((always_inline)) {
        in.w[s.value] = low_bytes(w + s.value * 16);
        in.wh[s.value] = high_bytes(w + s.value * 16);  // the last one is inserted once more in step 0
      },
      std::make_integer_sequence<int, DotOperands<OB, T>::kAhead>());
  each(
      [&](auto t) __attribute__((always_inline)) { in.x[t.value] = low_bytes(x + t.value * pixel_stride); },
      std::make_integer_sequence<int, T>());
  each(
      [&](auto s) __attribute__((always_inline)) { put_high(in.w[s.value], in.wh[s.value]); },
      std::make_integer_sequence<int, DotOperands<OB, T>::kAhead>());
  for (; k >= 32; k -= 16) {
    dot_group<false>(acc, in, x, pixel_stride, w);
    x += 16;
    w += 16 * OB * kLanes;
  }
  dot_group<true>(acc, in, x, pixel_stride, w);
}

}  // namespace sinter::SINTER_ISA::detail

#endif  // SINTER_DOT_IN_ORDER_H_
