// Depthwise convolution of bytes for ARM cores without dot products (Cortex-A53, A72); the columns, rows and
// sums are those of dot_depthwise.h.
//
// A vector holds sixteen channels of one pixel. Two neighbouring taps of a row are multiplied and summed in
// 16 bits (SMULL, SMLAL), where they fit unless both weights are -128, and then widened onto the sums: a tap
// that has no neighbour, and each where weights hold -128, is widened alone. The pixels of a row are loaded
// once for all the outputs of a tile. Weights are packed [kernel width][rows][sixteen channels].
#ifndef SINTER_PAIRS_DEPTHWISE_H_
#define SINTER_PAIRS_DEPTHWISE_H_

#include "sinter/dot_depthwise.h"
#include "sinter/mac_bytes.h"

#if defined(SINTER_ISA_NEON)
namespace sinter::SINTER_ISA {

namespace detail {
template <int T>
SINTER_INLINE void add_words(IntTile<4, T>& acc, int t, int16x8_t low, int16x8_t high) {
  acc.a[t][0] = (i32v)vaddw_s16((int32x4_t)acc.a[t][0], vget_low_s16(low));
  acc.a[t][1] = (i32v)vaddw_high_s16((int32x4_t)acc.a[t][1], low);
  acc.a[t][2] = (i32v)vaddw_s16((int32x4_t)acc.a[t][2], vget_low_s16(high));
  acc.a[t][3] = (i32v)vaddw_high_s16((int32x4_t)acc.a[t][3], high);
}
}  // namespace detail

// acc.a[t] += the taps of the pixels that begin at row[i] + t * Stride * step[i], of which there are K,
// Dilation apart along the row; `Rows` rows, each for the first `channels` (1 to 16) channels.
template <Lowest L, int K, int Stride, int Dilation, int Rows, int T, class X>
SINTER_INLINE void mac_depthwise_pairs(IntTile<4, T>& acc, const X* const (&row)[Rows],
                                       const std::ptrdiff_t (&step)[Rows], const std::int8_t* w,
                                       int channels) {
  constexpr int kColumns = (T - 1) * Stride + (K - 1) * Dilation + 1;
  SINTER_UNROLL
  for (int r = 0; r < Rows; r++) {
    int8x16_t x[kColumns];
    SINTER_UNROLL
    for (int column = 0; column < kColumns; column++)
      x[column] = detail::load_row(row[r] + column * step[r], channels);
    SINTER_UNROLL
    for (int k = 0; k < K; k++) {
      const bool paired = L == Lowest::kNone && k + 1 < K;
      const int8x16_t a = vld1q_s8(w + (k * Rows + r) * kQuadChannels);
      const int8x16_t b = paired ? vld1q_s8(w + ((k + 1) * Rows + r) * kQuadChannels) : a;
      SINTER_UNROLL
      for (int t = 0; t < T; t++) {
        const int8x16_t xa = x[t * Stride + k * Dilation];
        int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(xa)), high = vmull_high_s8(a, xa);
        if (paired) {
          const int8x16_t xb = x[t * Stride + (k + 1) * Dilation];
          low = vmlal_s8(low, vget_low_s8(b), vget_low_s8(xb));
          high = vmlal_high_s8(high, b, xb);
        }
        detail::add_words(acc, t, low, high);
      }
      if (paired) k++;
    }
  }
}

}  // namespace sinter::SINTER_ISA
#endif

#endif  // SINTER_PAIRS_DEPTHWISE_H_
