// Packing of a matrix that is only known at run time into the panels that mac() reads, floats or halves.
#ifndef SINTER_PACK_H_
#define SINTER_PACK_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/pack.h"
#endif

namespace sinter::SINTER_ISA {

namespace detail {
// A block of up to kLanes columns that lie `stride` apart, each of up to kLanes values of k, as rows `pitch`
// apart and `each` of them; lanes beyond the last column become 0.
template <class E, class Each>
SINTER_INLINE void pack_block(const E* b, std::ptrdiff_t stride, std::ptrdiff_t k, std::ptrdiff_t columns,
                              E* to, std::ptrdiff_t pitch, Each each) {
  using V = vector_of<E>;
  constexpr int kLanes = lanes_of<E>;
  V block[kLanes];
  if (k >= kLanes && columns >= kLanes) {
    SINTER_UNROLL
    for (int l = 0; l < kLanes; l++) block[l] = load<V>(b + l * stride);
    transpose(block);
    SINTER_UNROLL
    for (int l = 0; l < kLanes; l++) store(to + l * pitch, each(block[l]));
  } else {
    const std::ptrdiff_t rows = k < kLanes ? k : kLanes;
    SINTER_UNROLL
    for (int l = 0; l < kLanes; l++) block[l] = l < columns ? load_n<V>(b + l * stride, rows) : zero<V>();
    transpose(block);
    SINTER_UNROLL
    for (int l = 0; l < kLanes; l++)
      if (l < rows) store(to + l * pitch, each(block[l]));
  }
}
}  // namespace detail

// What becomes of each value that is packed. Multiply leaves the lanes beyond the last column at 0.
struct Keep {
  template <class V>
  __attribute__((always_inline)) V operator()(V v) const {
    return v;
  }
};
struct Multiply {
  float factor;
  template <class V>
  __attribute__((always_inline)) V operator()(V v) const {
    return mul(v, splat<V>(factor));
  }
};

// Columns [0, columns) of b, at most OB * kLanes, as a panel [k][OB][kLanes]; lanes beyond the last column
// are 0. Element (i, j) of b is b[i * row_stride + j * column_stride].
template <int OB, class Each = Keep, class E = float>
SINTER_INLINE void pack_panel(const E* b, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride,
                              std::ptrdiff_t k, std::ptrdiff_t columns, E* panel, Each each = Each()) {
  using V = vector_of<E>;
  constexpr int kLanes = lanes_of<E>;
  constexpr std::ptrdiff_t kWidth = std::ptrdiff_t{OB} * kLanes;
  if (column_stride == 1 && columns == kWidth) {
    for (std::ptrdiff_t i = 0; i < k; i++) {
      SINTER_UNROLL
      for (int o = 0; o < OB; o++)
        store(panel + i * kWidth + o * kLanes, each(load<V>(b + i * row_stride + o * kLanes)));
    }
  } else if (column_stride == 1) {
    for (std::ptrdiff_t i = 0; i < k; i++) {
      SINTER_UNROLL
      for (int o = 0; o < OB; o++) {
        const std::ptrdiff_t left = columns - o * kLanes;
        const E* const from = b + i * row_stride + o * kLanes;
        const V row = left >= kLanes ? load<V>(from) : left > 0 ? load_n<V>(from, left) : zero<V>();
        store(panel + i * kWidth + o * kLanes, each(row));
      }
    }
  } else if (row_stride == 1) {  // blocks of it are transposed in registers
    for (std::ptrdiff_t j = 0; j < kWidth; j += kLanes) {
      const E* const from = j < columns ? b + j * column_stride : b;
      for (std::ptrdiff_t i = 0; i < k; i += kLanes)
        detail::pack_block(from + i, column_stride, k - i, columns - j, panel + i * kWidth + j, kWidth, each);
    }
  } else {
    for (std::ptrdiff_t i = 0; i < k; i++)
      for (std::ptrdiff_t j = 0; j < kWidth; j++)
        panel[i * kWidth + j] =
            j < columns ? each(static_cast<float>(b[i * row_stride + j * column_stride])) : 0.0f;
  }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_PACK_H_
