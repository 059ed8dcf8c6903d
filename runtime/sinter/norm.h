// Statistics of the columns of large channels-last tensors, in one pass over memory: rows are cut into blocks
// that fit the first-level cache; each gives its means and its sums of squares of deviations, which are then
// merged in order (Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
// Variances", 1979). No difference of large squares, and no long chain of sums: it is as exact as two passes.
#ifndef SINTER_NORM_H_
#define SINTER_NORM_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/norm.h"
#endif
#include "sinter/dims.h"
#include "sinter/mac.h"

namespace sinter::SINTER_ISA {

namespace detail {

// sum[v] += term(v, x) over `rows` rows, which are `stride` floats apart, for each of V vectors of columns;
// of a single vector four rows at once, so that sums need not wait for each other.
template <int V, class Term>
SINTER_INLINE void sum_columns(const float* x, std::int64_t rows, std::int64_t stride, int lanes,
                               f32v (&sum)[V], Term term) {
  constexpr int kRows = V == 1 ? 4 : 1;
  f32v part[kRows][V];
  SINTER_UNROLL
  for (int r = 0; r < kRows; r++) {
    SINTER_UNROLL
    for (int v = 0; v < V; v++) part[r][v] = zero();
  }
  const auto add_row = [&](f32v(&to)[V], const float* from) __attribute__((always_inline)) {
    SINTER_UNROLL
    for (int v = 0; v < V; v++) to[v] = term(to[v], v, load_lanes(from + v * kLanes, lanes));
  };
  for (std::int64_t k = rows / kRows; k > 0; k--) {
    SINTER_UNROLL
    for (int r = 0; r < kRows; r++, x += stride) add_row(part[r], x);
  }
  for (std::int64_t k = rows % kRows; k > 0; k--, x += stride) add_row(part[0], x);
  SINTER_UNROLL
  for (int v = 0; v < V; v++) {
    sum[v] = part[0][v];
    SINTER_UNROLL
    for (int r = 1; r < kRows; r++) sum[v] = add(sum[v], part[r][v]);
  }
}

}  // namespace detail

// Of V vectors of columns of a block of rows >= 1 rows at x, which are `stride` floats apart: the means to
// mean[], the sums of the squares of what is left to squares[].
template <int V>
SINTER_INLINE void block_statistics(const float* x, std::int64_t rows, std::int64_t stride, int lanes,
                                    float* mean, float* squares) {
  f32v m[V], s[V];
  detail::sum_columns(
      x, rows, stride, lanes, m,
      [](f32v sum, int, f32v e) __attribute__((always_inline)) { return add(sum, e); });
  SINTER_UNROLL
  for (int v = 0; v < V; v++) m[v] = div(m[v], splat(static_cast<float>(rows)));
  detail::sum_columns(
      x, rows, stride, lanes, s, [&](f32v sum, int v, f32v e) __attribute__((always_inline)) {
        const f32v d = sub(e, m[v]);
        return fma(d, d, sum);
      });
  SINTER_UNROLL
  for (int v = 0; v < V; v++) {
    store_lanes(mean + v * kLanes, m[v], lanes);
    store_lanes(squares + v * kLanes, s[v], lanes);
  }
}

// The statistics of all `rows` rows from those of blocks of `block` rows, the last of which may have fewer:
// block i's means are at blocks + 2 * i * pitch, its squares `pitch` floats behind.
template <int V>
SINTER_INLINE void merge_statistics(const float* blocks, std::int64_t pitch, std::int64_t rows,
                                    std::int64_t block, int lanes, f32v (&mean)[V], f32v (&squares)[V]) {
  SINTER_UNROLL
  for (int v = 0; v < V; v++) mean[v] = squares[v] = zero();
  for (std::int64_t before = 0; before < rows; before += block) {
    const std::int64_t here = min_of(block, rows - before);
    const float share = static_cast<float>(here) / static_cast<float>(before + here);
    const f32v of_mean = splat(share), of_squares = splat(share * static_cast<float>(before));
    SINTER_UNROLL
    for (int v = 0; v < V; v++) {
      const f32v d = sub(load_lanes(blocks + v * kLanes, lanes), mean[v]);
      mean[v] = fma(d, of_mean, mean[v]);
      squares[v] =
          fma(mul(d, d), of_squares, add(squares[v], load_lanes(blocks + pitch + v * kLanes, lanes)));
    }
    blocks += 2 * pitch;
  }
}

}  // namespace sinter::SINTER_ISA
#endif  // SINTER_NORM_H_
