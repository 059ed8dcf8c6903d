// Blocks of a and b that fit the second cache are copied as doubles, in panels of kRows rows and kColumns
// columns as the innermost loop reads them; sums of a block of c stay in doubles until k is through.
#include "ops/products/matrix_product.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace sinter {
namespace {

constexpr int kRows = 6, kColumns = 8;
constexpr int64_t kBlockRows = 192, kBlockColumns = 128, kBlockDepth = 256;

using Lanes = double __attribute__((vector_size(kColumns * sizeof(double))));

// sums[R][kColumns] += a * b, where a holds R numbers for each of k and b kColumns.
template <int R>
inline __attribute__((always_inline)) void add_tile(int64_t k, const double* a, const double* b,
                                                    double* sums) {
  Lanes sum[R];
  std::memcpy(sum, sums, sizeof sum);
  for (int64_t l = 0; l < k; ++l) {
    Lanes x;
    std::memcpy(&x, b + l * kColumns, sizeof x);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r] += a[l * R + r] * x;
  }
  std::memcpy(sums, sum, sizeof sum);
}

struct Block {
  int rows;  // of a panel of a: 1 or kRows
  int64_t row_panels, column_panels, depth;
  const double *a, *b;
  double* sums;  // a tile after the other, those of one panel of b together
};

inline __attribute__((always_inline)) void add_tiles(const Block& d) {
  double* sums = d.sums;
  for (int64_t j = 0; j < d.column_panels; ++j)
    for (int64_t i = 0; i < d.row_panels; ++i, sums += d.rows * kColumns) {
      const double* b = d.b + j * d.depth * kColumns;
      if (d.rows == 1)
        add_tile<1>(d.depth, d.a + i * d.depth, b, sums);
      else
        add_tile<kRows>(d.depth, d.a + i * d.depth * kRows, b, sums);
    }
}

// The same statements for each width of vectors; fused multiply-adds are none of them.
void add_block_plain(const Block& d) { add_tiles(d); }
#ifdef __x86_64__
__attribute__((target("avx2"))) void add_block_avx2(const Block& d) { add_tiles(d); }
__attribute__((target("avx512f"))) void add_block_avx512(const Block& d) { add_tiles(d); }
#endif

void add_block(const Block& d) {
#ifdef __x86_64__
  static const auto best = __builtin_cpu_supports("avx512f") ? add_block_avx512
                           : __builtin_cpu_supports("avx2")  ? add_block_avx2
                                                             : add_block_plain;
  best(d);
#else
  add_block_plain(d);
#endif
}

int64_t panels_of(int64_t extent, int width) { return (extent + width - 1) / width; }

// Copies `extent` lines of `depth` elements into panels of `width` lines; what is missing in the last is
// zero.
template <class T>
void pack(MatrixView<const T> lines, int64_t extent, int64_t depth, int width, double* to) {
  for (int64_t first = 0; first < extent; first += width, to += width * depth) {
    const int64_t count = std::min<int64_t>(width, extent - first);
    const T* from = lines.data + first * lines.row;
    if (count < width) std::fill(to, to + width * depth, 0.0);
    if (lines.column == 1)
      for (int64_t i = 0; i < count; ++i)
        for (int64_t l = 0; l < depth; ++l) to[l * width + i] = static_cast<double>(from[i * lines.row + l]);
    else
      for (int64_t l = 0; l < depth; ++l)
        for (int64_t i = 0; i < count; ++i)
          to[l * width + i] = static_cast<double>(from[i * lines.row + l * lines.column]);
  }
}

// The sums of a block as elements of c, from its first on.
template <class T>
void store(const Block& d, int64_t rows, int64_t columns, MatrixView<T> c) {
  const double* tile = d.sums;
  for (int64_t j = 0; j < columns; j += kColumns)
    for (int64_t i = 0; i < rows; i += d.rows, tile += d.rows * kColumns)
      for (int64_t r = 0; r < std::min<int64_t>(d.rows, rows - i); ++r)
        for (int64_t s = 0; s < std::min<int64_t>(kColumns, columns - j); ++s)
          c.data[(i + r) * c.row + (j + s) * c.column] = static_cast<T>(tile[r * kColumns + s]);
}

template <class T>
MatrixView<T> turned(MatrixView<T> v) {
  return {v.data, v.column, v.row};
}

}  // namespace

template <class T>
void matrix_product(int64_t m, int64_t n, int64_t k, MatrixView<const T> a, MatrixView<const T> b,
                    MatrixView<T> c) {
  if (n == 1 && m > 1) return matrix_product(n, m, k, turned(b), turned(a), turned(c));
  const int panel = m == 1 ? 1 : kRows;
  const auto up = [](int64_t extent, int width) { return panels_of(extent, width) * width; };
  const int64_t rows = up(std::min(m, kBlockRows), panel), columns = up(std::min(n, kBlockColumns), kColumns);
  const auto depth = static_cast<size_t>(std::min(k, kBlockDepth));
  std::vector<double> packed_a(static_cast<size_t>(rows) * depth),
      packed_b(static_cast<size_t>(columns) * depth), sums(static_cast<size_t>(rows * columns));
  for (int64_t j = 0; j < n; j += kBlockColumns)
    for (int64_t i = 0; i < m; i += kBlockRows) {
      const int64_t of_a = std::min(kBlockRows, m - i), of_b = std::min(kBlockColumns, n - j);
      Block d{panel,      panels_of(of_a, panel), panels_of(of_b, kColumns),
              0,          packed_a.data(),        packed_b.data(),
              sums.data()};
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t l = 0; l < k; l += kBlockDepth) {
        d.depth = std::min(kBlockDepth, k - l);
        pack(MatrixView<const T>{a.data + i * a.row + l * a.column, a.row, a.column}, of_a, d.depth, panel,
             packed_a.data());
        pack(MatrixView<const T>{b.data + l * b.row + j * b.column, b.column, b.row}, of_b, d.depth, kColumns,
             packed_b.data());
        add_block(d);
      }
      store(d, of_a, of_b, MatrixView<T>{c.data + i * c.row + j * c.column, c.row, c.column});
    }
}

template void matrix_product(int64_t, int64_t, int64_t, MatrixView<const float>, MatrixView<const float>,
                             MatrixView<float>);
template void matrix_product(int64_t, int64_t, int64_t, MatrixView<const double>, MatrixView<const double>,
                             MatrixView<double>);

}  // namespace sinter
