// The register tile of products of 8 bits by matrices: as mac of dot.h, with eight neighbouring k at a time.
//
// One instruction of ARMv8.6 (SMMLA, of unsigned x USMMLA) multiplies two pixels by two output channels over
// eight k and adds the four sums to a vector: {pixel 0: channels 0, 1; pixel 1: channels 0, 1}. A tile's sums
// lie so while they grow. w is packed eight k at a time, [ceil(k / 8)][channel][8]; behind the last k are
// zeros. x keeps its sign. Nothing but the named elements of x is read.
#ifndef SINTER_DOT_MATRICES_H_
#define SINTER_DOT_MATRICES_H_

#include "sinter/dot.h"

namespace sinter::SINTER_ISA {

namespace detail {
// The lower and the upper halves of two vectors.
SINTER_INLINE i32v low_halves(i32v a, i32v b) { return (i32v)vzip1q_s64((int64x2_t)a, (int64x2_t)b); }
SINTER_INLINE i32v high_halves(i32v a, i32v b) { return (i32v)vzip2q_s64((int64x2_t)a, (int64x2_t)b); }

// sum + two rows of x by two of w. The instructions by name: the compiler's flags need not know them.
template <class X>
SINTER_INLINE void multiply_matrices(i32v& sum, int8x16_t x, int8x16_t w) {
  if constexpr (std::is_signed_v<X>)
    __asm__(".arch_extension i8mm\n\tsmmla %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(x), "w"(w));
  else
    __asm__(".arch_extension i8mm\n\tusmmla %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(x), "w"(w));
}

// The `count` (1 to 8) bytes at a and at b, zeros behind them.
template <class X>
SINTER_INLINE int8x16_t two_rows(const X* a, const X* b, std::ptrdiff_t count) {
  std::uint64_t low = 0, high = 0;
  std::memcpy(&low, a, static_cast<std::size_t>(count));
  std::memcpy(&high, b, static_cast<std::size_t>(count));
  return (int8x16_t)vcombine_u64(vcreate_u64(low), vcreate_u64(high));
}

template <int OB, int Pairs>
struct MatrixSums {
  i32v a[Pairs][2 * OB];
};

// Up to eight values of k.
template <int T, int OB, int Pairs, class X>
SINTER_INLINE void matrix_step(MatrixSums<OB, Pairs>& sums, const X* x, std::ptrdiff_t pixel_stride,
                               const std::int8_t* w, std::ptrdiff_t count) {
  int8x16_t xs[Pairs];
  SINTER_UNROLL
  for (int p = 0; p < Pairs; p++)
    xs[p] = two_rows(x + 2 * p * pixel_stride, x + (2 * p + 1 < T ? 2 * p + 1 : 2 * p) * pixel_stride, count);
  SINTER_UNROLL
  for (int o = 0; o < 2 * OB; o++) {
    const int8x16_t wo = vld1q_s8(w + o * 16);
    SINTER_UNROLL
    for (int p = 0; p < Pairs; p++) multiply_matrices<X>(sums.a[p][o], xs[p], wo);
  }
}
}  // namespace detail

template <int OB, int T, class X>
SINTER_INLINE void mac_matrices(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride,
                                const std::int8_t* w, std::ptrdiff_t k) {
  static_assert(sizeof(X) == 1, "int8 or uint8");
  constexpr int kPairs = (T + 1) / 2;
  detail::MatrixSums<OB, kPairs> sums;
  SINTER_UNROLL
  for (int p = 0; p < kPairs; p++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      const i32v even = acc.a[2 * p][o], odd = acc.a[2 * p + 1 < T ? 2 * p + 1 : 2 * p][o];
      sums.a[p][2 * o] = detail::low_halves(even, odd);
      sums.a[p][2 * o + 1] = detail::high_halves(even, odd);
    }
  }
  for (; k >= 8; k -= 8) {
    detail::matrix_step<T>(sums, x, pixel_stride, w, 8);
    x += 8;
    w += 8 * OB * kLanes;
  }
  if (k > 0) detail::matrix_step<T>(sums, x, pixel_stride, w, k);
  SINTER_UNROLL
  for (int p = 0; p < kPairs; p++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      acc.a[2 * p][o] = detail::low_halves(sums.a[p][2 * o], sums.a[p][2 * o + 1]);
      if (2 * p + 1 < T) acc.a[2 * p + 1][o] = detail::high_halves(sums.a[p][2 * o], sums.a[p][2 * o + 1]);
    }
  }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_DOT_MATRICES_H_
