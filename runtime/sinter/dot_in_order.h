// The register tile of dot.h for cores that execute in order and have dot products (Cortex-A55), same sums:
// as mac_in_order of mac.h, eight k at a time. There a 128-bit load keeps products waiting; a 64-bit one, an
// integer load and an insertion each issue beside a product. So a vector of weights comes as those three, and
// a pixel as one load for eight k, whose two fours are lanes of it; single instructions written out in the
// order in which they are to be issued, one beside each product.
//
// Included by dot.h. Nothing but the named elements of x and w is read.
#ifndef SINTER_DOT_IN_ORDER_H_
#define SINTER_DOT_IN_ORDER_H_
#ifndef SINTER_DOT_BY_LANE
#error "include sinter/dot.h"
#endif

namespace sinter::SINTER_ISA::detail {

// Eight x whose sign is to be flipped, in an integer register: products leave the vector unit no time.
template <class X>
SINTER_INLINE std::uint64_t flipped_half(const X* p) {
  return load_half(p) ^ kFlip<X> * 0x100000001u;
}
SINTER_INLINE int8x16_t low_half(std::uint64_t h) {
  int8x16_t v;
  __asm__ volatile("fmov %d0, %1" : "=w"(v) : "r"(h));
  return v;
}

// A group's operands: the next kAhead vectors of weights, of which step s takes number s % kAhead, and eight
// k of each pixel. Upper halves of weights lie in wh until they are inserted, and flipped x in xh. Between
// groups the last vector has only its upper half.
template <int OB, int T>
struct DotOperands {
  static constexpr int kAhead = OB == 2 || OB == 4 ? 4 : OB == 3 ? 3 : 2;
  int8x16_t w[kAhead], x[T];
  std::uint64_t wh[kAhead], xh[T];
};

// Pixels of 64-bit loads of their own: the last one's eight k come in the group that multiplies them, as the
// last step is full.
template <int T, class X>
constexpr bool kLastPixelLate = kFlip<X> == 0 && T >= 4;

// A step of an address, kept where it is written.
template <class P>
SINTER_INLINE void move_pointer(const P*& p, int bytes) {
  __asm__ volatile("add %0, %0, %1" : "+r"(p) : "I"(bytes));
}

// Eight values of k. But for the last group: loads what the next one begins with, moves x and w there and
// takes 1 from `left`.
//
// Step s multiplies vector s of the weights by all pixels. Behind it the vector's register is free: beside
// the first product of the next step the lower half of another one comes, whose upper half has come before;
// it is inserted at the end of that step. In the last step the pixels' values are used up and the next ones
// come in their places, so what else can come before does.
template <bool Last, int OB, int T, class X>
SINTER_INLINE void dot_group(IntTile<OB, T>& acc, DotOperands<OB, T>& in, const X*& x,
                             std::ptrdiff_t pixel_stride, const std::int8_t*& w, std::ptrdiff_t& left) {
  constexpr int kAhead = DotOperands<OB, T>::kAhead, kSteps = 2 * OB;
  constexpr bool kFlips = kFlip<X> != 0, kLate = kLastPixelLate<T, X>;
  // At the ends of which steps x, the counter and w move, one in a step where there are as many.
  constexpr int kMoveX = kSteps > 2 ? 1 : 0, kCount = kSteps >= 6 ? 2 : kMoveX,
                kMoveW = kSteps >= 6 ? 3 : kMoveX;
  each(
      [&](auto step) __attribute__((always_inline)) {
        constexpr int kStep = step.value, kLane = kStep / OB, kOut = kStep % OB, kOwn = kStep % kAhead;
        constexpr int kNext = kStep + kAhead - 1, kThen = kNext + 1;  // vectors that come in this step
        constexpr bool kLastStep = kStep == kSteps - 1, kEarly = kAhead > 2;
        constexpr int kMovedX = !Last && kStep > kMoveX ? 8 : 0,
                      kMovedW = !Last && kStep > kMoveW ? kSteps * 16 : 0;
        const auto load_x = [&](auto pixel) __attribute__((always_inline)) {
          constexpr int kPixel = pixel.value;
          if constexpr (kFlips)
            in.x[kPixel] = low_half(in.xh[kPixel]);
          else
            in.x[kPixel] = load_low<int8x16_t>(x + (kLastStep ? 8 - kMovedX : 0) + kPixel * pixel_stride);
        };
        const auto load_upper = [&](auto vector) __attribute__((always_inline)) {
          if constexpr (!Last || vector.value < kSteps)
            in.wh[vector.value % kAhead] = load_half(w + vector.value * 16 + 8 - kMovedW);
        };
        each(
            [&](auto pixel) __attribute__((always_inline)) {
              constexpr int kPixel = pixel.value, kThird = T > 2 ? 2 : T - 1, kFourth = T > 3 ? 3 : T - 1;
              __asm__ volatile("sdot %0.4s, %1.16b, %2.4b[%3]"
                               : "+w"(acc.a[kPixel][kOut])
                               : "w"(in.w[kOwn]), "w"(in.x[kPixel]), "i"(kLane));
              if constexpr (kLate && kStep == 0 && kPixel == 0) load_x(std::integral_constant<int, T - 1>());
              if constexpr (kPixel == 0 && (!Last || kNext < kSteps))
                in.w[kNext % kAhead] = load_low<int8x16_t>(w + kNext * 16 - kMovedW);
              if constexpr (kPixel == kThird && !(kEarly && kLastStep))
                load_upper(std::integral_constant<int, kThen>());
              if constexpr (kPixel == kFourth && kEarly && kStep == kSteps - 2)
                load_upper(std::integral_constant<int, kThen + 1>());
              // The pixels whose next values come through integer registers share the steps before the last.
              if constexpr (kFlips && !Last && !kLastStep)
                each(
                    [&](auto other) __attribute__((always_inline)) {
                      constexpr int kTurn = other.value / (kSteps - 1),
                                    kAt = 2 * kTurn + 1 < T ? 2 * kTurn + 1 : T - 1;
                      if constexpr (other.value % (kSteps - 1) == kStep && kAt == kPixel)
                        in.xh[other.value] = flipped_half(x + 8 - kMovedX + other.value * pixel_stride);
                    },
                    std::make_integer_sequence<int, T>());
              if constexpr (!Last && kLastStep) {
                // Each pixel's values are used up now.
                if constexpr (kPixel > 0) load_x(std::integral_constant<int, kPixel - 1>());
                if constexpr (!kLate && kPixel == T - 1) load_x(pixel);
              }
              if constexpr (!Last && kPixel == T - 1 && kStep == kMoveX) move_pointer(x, 8);
              if constexpr (!Last && kPixel == T - 1 && kStep == kCount) step_down(left);
              if constexpr (!Last && kPixel == T - 1 && kStep == kMoveW) move_pointer(w, kSteps * 16);
              if constexpr (kPixel == T - 1 && (!Last || kNext < kSteps))
                put_high(in.w[kNext % kAhead], in.wh[kNext % kAhead]);
            },
            std::make_integer_sequence<int, T>());
      },
      std::make_integer_sequence<int, kSteps>());
}

// k / 8 groups, k at least 8.
template <int OB, int T, class X>
SINTER_INLINE void dot_groups(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride,
                              const std::int8_t* w, std::ptrdiff_t k) {
  constexpr int kAhead = DotOperands<OB, T>::kAhead;
  DotOperands<OB, T> in;
  each(
      [&](auto s) __attribute__((always_inline)) {
        in.wh[s.value] = load_half(w + s.value * 16 + 8);
        if constexpr (s.value < kAhead - 1) in.w[s.value] = load_low<int8x16_t>(w + s.value * 16);
      },
      std::make_integer_sequence<int, kAhead>());
  each(
      [&](auto t) __attribute__((always_inline)) {
        if constexpr (kFlip<X> != 0)
          in.x[t.value] = low_half(flipped_half(x + t.value * pixel_stride));
        else if constexpr (!(kLastPixelLate<T, X> && t.value == T - 1))
          in.x[t.value] = load_low<int8x16_t>(x + t.value * pixel_stride);
      },
      std::make_integer_sequence<int, T>());
  each(
      [&](auto s) __attribute__((always_inline)) { put_high(in.w[s.value], in.wh[s.value]); },
      std::make_integer_sequence<int, kAhead - 1>());
  std::ptrdiff_t left = k / 8 - 1;
  while (left != 0) dot_group<false>(acc, in, x, pixel_stride, w, left);
  dot_group<true>(acc, in, x, pixel_stride, w, left);
}

}  // namespace sinter::SINTER_ISA::detail

#endif  // SINTER_DOT_IN_ORDER_H_
