// Packing of a matrix that is only known at run time into the panels that mac() reads.
#ifndef SINTER_PACK_H_
#define SINTER_PACK_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/pack.h"
#endif

namespace sinter::SINTER_ISA {

// Columns [0, columns) of b, at most OB * kLanes, as a panel [k][OB][kLanes]; lanes beyond the last column
// are 0. Element (i, j) of b is b[i * row_stride + j * column_stride].
template <int OB>
SINTER_INLINE void pack_panel(const float* b, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride,
                              std::ptrdiff_t k, std::ptrdiff_t columns, float* panel) {
  constexpr std::ptrdiff_t kWidth = std::ptrdiff_t{OB} * kLanes;
  if (column_stride == 1 && columns == kWidth) {
    for (std::ptrdiff_t i = 0; i < k; i++) {
      SINTER_UNROLL
      for (int o = 0; o < OB; o++)
        store(panel + i * kWidth + o * kLanes, load(b + i * row_stride + o * kLanes));
    }
    return;
  }
  // Where rows of b lie side by side, whole blocks are transposed in registers.
  const std::ptrdiff_t blocks = row_stride == 1 ? columns / kLanes * kLanes : 0;
  if (blocks > 0) {
    const std::ptrdiff_t whole = k / kLanes * kLanes;
    for (std::ptrdiff_t done = 0; done < blocks; done += kLanes) {
      for (std::ptrdiff_t i = 0; i < whole; i += kLanes) {
        f32v block[kLanes];
        SINTER_UNROLL
        for (int l = 0; l < kLanes; l++) block[l] = load(b + i + (done + l) * column_stride);
        transpose(block);
        SINTER_UNROLL
        for (int l = 0; l < kLanes; l++) store(panel + (i + l) * kWidth + done, block[l]);
      }
      const float* const column = b + done * column_stride;
      for (std::ptrdiff_t i = whole; i < k; i++)
        for (std::ptrdiff_t l = 0; l < kLanes; l++)
          panel[i * kWidth + done + l] = column[i + l * column_stride];
    }
  }
  if (blocks == kWidth) return;
  for (std::ptrdiff_t i = 0; i < k; i++) {
    for (std::ptrdiff_t j = blocks; j < kWidth; j++)
      panel[i * kWidth + j] = j < columns ? b[i * row_stride + j * column_stride] : 0.0f;
  }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_PACK_H_
